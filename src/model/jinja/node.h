/* node.h - a parsed template: a tree of one struct, whose fields each kind uses as said. */
#ifndef MLA_MODEL_JINJA_NODE_H
#define MLA_MODEL_JINJA_NODE_H

#include "model/jinja/value.h"

typedef enum jinja_node_kind {
    /* expressions */
    NODE_CONSTANT,    /* constant */
    NODE_NAME,        /* name */
    NODE_LIST,        /* items */
    NODE_TUPLE,       /* items */
    NODE_DICT,        /* items: key, value, key, value, ... */
    NODE_ATTRIBUTE,   /* a.name */
    NODE_INDEX,       /* a[b] */
    NODE_SLICE,       /* a[b:c:d], each of b, c, d may be NULL */
    NODE_CALL,        /* a(items) */
    NODE_FILTER,      /* a | filter number op (items); a NULL: the text of a block */
    NODE_TEST,        /* a is test number op (items) */
    NODE_KEYWORD,     /* name=a, at the end of the items of those */
    NODE_NOT,         /* not a */
    NODE_AND,         /* a and b */
    NODE_OR,          /* a or b */
    NODE_CONDITIONAL, /* b if a else c; c may be NULL */
    NODE_COMPARE,     /* a, then items: NODE_OPERAND */
    NODE_OPERAND,     /* op a */
    NODE_BINARY,      /* a op b */
    NODE_NEGATIVE,    /* -a */
    NODE_POSITIVE,    /* +a */
    /* statements */
    NODE_DATA,  /* constant */
    NODE_PRINT, /* a */
    NODE_IF,    /* a, body, orelse */
    NODE_FOR,   /* for a in b if c: body, orelse where there was nothing; c may be NULL */
    NODE_SET,   /* a = b */
    NODE_SET_BLOCK, /* a = body, through the filters b (or NULL) */
    NODE_FILTERED,  /* body, through the filters b */
    NODE_SCOPE,     /* body, in a scope of its own */
    NODE_MACRO,     /* name(items: NODE_NAME whose a is the default, or NULL): body */
    NODE_CALLER,    /* a is NODE_CALL, called with caller(items as of a macro): body */
    NODE_BREAK,
    NODE_CONTINUE,
} jinja_node_kind;

typedef enum jinja_operator {
    OPERATOR_ADD,
    OPERATOR_SUBTRACT,
    OPERATOR_MULTIPLY,
    OPERATOR_DIVIDE,
    OPERATOR_FLOOR_DIVIDE,
    OPERATOR_MODULO,
    OPERATOR_POWER,
    OPERATOR_CONCAT,
    OPERATOR_EQUAL,
    OPERATOR_UNEQUAL,
    OPERATOR_LESS,
    OPERATOR_LESS_EQUAL,
    OPERATOR_GREATER,
    OPERATOR_GREATER_EQUAL,
    OPERATOR_IN,
    OPERATOR_NOT_IN,
} jinja_operator;

typedef struct jinja_node jinja_node;

typedef struct jinja_nodes {
    jinja_node *first, *last; /* chained by next */
    int32_t num;
} jinja_nodes;

struct jinja_node {
    jinja_node_kind kind;
    int32_t line;
    int32_t op;
    jinja_text name;
    jinja_value constant;
    jinja_node *a, *b, *c, *d;
    jinja_nodes items, body, orelse;
    jinja_node *next;
};

#endif
