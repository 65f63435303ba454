/* parse_expression.c - operators by how tightly they bind (a Pratt parser). */
#include "model/jinja/parser.h"

typedef enum binding {
    BINDS_NOT_AT_ALL,
    BINDS_OR,
    BINDS_AND,
    BINDS_NOT,
    BINDS_COMPARE,
    BINDS_ADD,
    BINDS_CONCAT, /* tighter than +, as in Jinja */
    BINDS_MULTIPLY,
    BINDS_POWER,
} binding;

typedef struct operator_row {
    const char *text;
    binding binds;
    jinja_operator op;
} operator_row;

static const operator_row operators[] = {
    {"+", BINDS_ADD, OPERATOR_ADD},
    {"-", BINDS_ADD, OPERATOR_SUBTRACT},
    {"~", BINDS_CONCAT, OPERATOR_CONCAT},
    {"*", BINDS_MULTIPLY, OPERATOR_MULTIPLY},
    {"/", BINDS_MULTIPLY, OPERATOR_DIVIDE},
    {"//", BINDS_MULTIPLY, OPERATOR_FLOOR_DIVIDE},
    {"%", BINDS_MULTIPLY, OPERATOR_MODULO},
    {"**", BINDS_POWER, OPERATOR_POWER},
    {"==", BINDS_COMPARE, OPERATOR_EQUAL},
    {"!=", BINDS_COMPARE, OPERATOR_UNEQUAL},
    {"<", BINDS_COMPARE, OPERATOR_LESS},
    {"<=", BINDS_COMPARE, OPERATOR_LESS_EQUAL},
    {">", BINDS_COMPARE, OPERATOR_GREATER},
    {">=", BINDS_COMPARE, OPERATOR_GREATER_EQUAL},
    {"in", BINDS_COMPARE, OPERATOR_IN},
    {"not", BINDS_COMPARE, OPERATOR_NOT_IN}, /* where `in` follows */
    {"and", BINDS_AND, OPERATOR_ADD},
    {"or", BINDS_OR, OPERATOR_ADD},
};

/* NULL: no operator stands here. */
static const operator_row *operator_here(const jinja_parser *parser)
{
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        const operator_row *row = &operators[i];
        bool is_here = jinja_at(parser, row->text) || jinja_at_name(parser, row->text);
        if (is_here &&
            (row->op != OPERATOR_NOT_IN ||
             (parser->next.kind == JINJA_NAME && jinja_text_is(parser->next.text, "in")))) {
            return row;
        }
    }
    return NULL;
}

static mla_status parse_binary(jinja_parser *parser, binding least, jinja_node **out,
                               mla_error *err);

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the memory allows */
static mla_status parse_comparison(jinja_parser *parser, jinja_node *left, jinja_node **out,
                                   mla_error *err)
{
    MLAI_TRY(jinja_node_make(parser, NODE_COMPARE, out, err));
    (*out)->a = left;
    const operator_row *row = operator_here(parser);
    for (; row && row->binds == BINDS_COMPARE; row = operator_here(parser)) {
        jinja_node *operand = NULL;
        MLAI_TRY(jinja_node_make(parser, NODE_OPERAND, &operand, err));
        operand->op = (int32_t)row->op;
        MLAI_TRY(jinja_advance(parser, err));
        MLAI_TRY(row->op == OPERATOR_NOT_IN ? jinja_advance(parser, err) : MLA_OK);
        MLAI_TRY(parse_binary(parser, BINDS_ADD, &operand->a, err));
        jinja_nodes_add(&(*out)->items, operand);
    }
    return MLA_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status parse_pair(jinja_parser *parser, const operator_row *row,
                             jinja_node *left, jinja_node **out, mla_error *err)
{
    jinja_node_kind kind = row->binds == BINDS_AND  ? NODE_AND
                           : row->binds == BINDS_OR ? NODE_OR
                                                    : NODE_BINARY;
    MLAI_TRY(jinja_node_make(parser, kind, out, err));
    (*out)->op = (int32_t)row->op;
    (*out)->a = left;
    MLAI_TRY(jinja_advance(parser, err));
    return parse_binary(parser, row->binds + 1, &(*out)->b, err);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status parse_not(jinja_parser *parser, jinja_node **out, mla_error *err)
{
    MLAI_TRY(jinja_node_make(parser, NODE_NOT, out, err));
    MLAI_TRY(jinja_advance(parser, err));
    return parse_binary(parser, BINDS_NOT, &(*out)->a, err);
}

/* All that binds at least so tightly. NOLINTNEXTLINE(misc-no-recursion) */
static mla_status parse_binary(jinja_parser *parser, binding least, jinja_node **out,
                               mla_error *err)
{
    jinja_node *left = NULL;
    bool is_not = least <= BINDS_NOT && jinja_at_name(parser, "not");
    binding most = is_not ? BINDS_AND : BINDS_POWER; /* nothing binds tighter than not */
    MLAI_TRY(jinja_enter(parser->memory, err));
    MLAI_TRY(is_not ? parse_not(parser, &left, err)
                    : jinja_parse_unary(parser, &left, err));
    for (;;) {
        const operator_row *row = operator_here(parser);
        if (!row || row->binds < least || row->binds > most) {
            break;
        }
        jinja_node *whole = NULL;
        MLAI_TRY(row->binds == BINDS_COMPARE ? parse_comparison(parser, left, &whole, err)
                                             : parse_pair(parser, row, left, &whole, err));
        left = whole;
    }
    jinja_leave(parser->memory);
    *out = left;
    return MLA_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
mla_status jinja_parse_or(jinja_parser *parser, jinja_node **out, mla_error *err)
{
    return parse_binary(parser, BINDS_OR, out, err);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
mla_status jinja_parse_expression(jinja_parser *parser, jinja_node **out, mla_error *err)
{
    bool is_there;
    jinja_node *value = NULL;
    MLAI_TRY(jinja_parse_or(parser, &value, err));
    while (jinja_at_name(parser, "if")) {
        jinja_node *choice = NULL;
        MLAI_TRY(jinja_node_make(parser, NODE_CONDITIONAL, &choice, err));
        MLAI_TRY(jinja_advance(parser, err));
        choice->b = value;
        MLAI_TRY(jinja_parse_or(parser, &choice->a, err));
        MLAI_TRY(jinja_skip_if(parser, "else", &is_there, err));
        if (is_there) {
            MLAI_TRY(jinja_enter(parser->memory, err));
            MLAI_TRY(jinja_parse_expression(parser, &choice->c, err));
            jinja_leave(parser->memory);
        }
        value = choice;
    }
    *out = value;
    return MLA_OK;
}

static bool ends_tuple(const jinja_parser *parser)
{
    return parser->now.kind == JINJA_BLOCK_END || parser->now.kind == JINJA_PRINT_END ||
           jinja_at(parser, ")") || jinja_at(parser, "]") || jinja_at(parser, "=") ||
           jinja_at_name(parser, "in");
}

/* NOLINTNEXTLINE(misc-no-recursion) */
mla_status jinja_parse_tuple(jinja_parser *parser, bool has_ternary, jinja_node **out,
                             mla_error *err)
{
    jinja_node *item = NULL;
    jinja_node *tuple = NULL;
    for (bool goes_on = true; goes_on && !(tuple && ends_tuple(parser));) {
        MLAI_TRY(has_ternary ? jinja_parse_expression(parser, &item, err)
                             : jinja_parse_or(parser, &item, err));
        if (!tuple && !jinja_at(parser, ",")) {
            *out = item;
            return MLA_OK;
        }
        MLAI_TRY(tuple ? MLA_OK : jinja_node_make(parser, NODE_TUPLE, &tuple, err));
        jinja_nodes_add(&tuple->items, item);
        MLAI_TRY(jinja_skip_if(parser, ",", &goes_on, err));
    }
    *out = tuple;
    return MLA_OK;
}
