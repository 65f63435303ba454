/* value.h - what an expression may be: Python's types, as far as templates meet them. */
#ifndef MLA_MODEL_JINJA_VALUE_H
#define MLA_MODEL_JINJA_VALUE_H

#include "model/jinja/text.h"

typedef enum jinja_kind {
    JINJA_UNDEFINED, /* text: its name, for errors */
    JINJA_NONE,
    JINJA_BOOL,
    JINJA_INT,
    JINJA_FLOAT,
    JINJA_STR,
    JINJA_LIST,
    JINJA_TUPLE,
    JINJA_VIEW,   /* keys(), values(), items() of a dict */
    JINJA_STREAM, /* a generator, of map and its like: read once, without a length */
    JINJA_RANGE,
    JINJA_DICT,
    JINJA_NAMESPACE,
    JINJA_MACRO,
    JINJA_GLOBAL, /* a function of the environment */
    JINJA_METHOD, /* bound to its value */
    JINJA_LOOP,
} jinja_kind;

typedef struct jinja_list jinja_list;
typedef struct jinja_dict jinja_dict;
typedef struct jinja_macro jinja_macro;
typedef struct jinja_method jinja_method;
typedef struct jinja_loop jinja_loop;

typedef struct jinja_value {
    jinja_kind kind;
    union {
        bool truth;
        int64_t integer;
        double real;
        jinja_text text;
        jinja_list *list;
        jinja_dict *dict;
        jinja_macro *macro;
        int32_t global;
        const jinja_method *method;
        jinja_loop *loop;
    } as;
} jinja_value;

struct jinja_list {
    jinja_value *items; /* [capacity], num are there */
    size_t num, capacity;
    size_t next;      /* of a stream */
    const char *name; /* of a view or stream, for its text */
};

struct jinja_dict {
    jinja_value *keys, *values; /* [capacity], in the order of their making */
    size_t num, capacity;
};

struct jinja_method {
    jinja_value self;
    jinja_text name;
};

struct jinja_loop {
    const jinja_list *items;
    size_t index;
    int32_t depth;
};

static inline jinja_value jinja_none(void)
{
    return (jinja_value){.kind = JINJA_NONE};
}

static inline jinja_value jinja_bool(bool truth)
{
    return (jinja_value){.kind = JINJA_BOOL, .as.truth = truth};
}

static inline jinja_value jinja_int(int64_t integer)
{
    return (jinja_value){.kind = JINJA_INT, .as.integer = integer};
}

static inline jinja_value jinja_float(double real)
{
    return (jinja_value){.kind = JINJA_FLOAT, .as.real = real};
}

static inline jinja_value jinja_str(jinja_text text)
{
    return (jinja_value){.kind = JINJA_STR, .as.text = text};
}

static inline jinja_value jinja_undefined(jinja_text name)
{
    return (jinja_value){.kind = JINJA_UNDEFINED, .as.text = name};
}

const char *jinja_kind_name(jinja_kind kind); /* as Python has it: 'str' */
bool jinja_is_list(jinja_value value);        /* kinds with `as.list` */
bool jinja_is_number(jinja_value value);      /* bool, int or float */
bool jinja_is_true(jinja_value value);        /* Python's truth */
double jinja_real_of(jinja_value number);
int64_t jinja_int_of(jinja_value number); /* of a bool or int */

mla_status jinja_list_make(jinja_memory *memory, size_t capacity, jinja_list **out,
                           mla_error *err);
mla_status jinja_list_add(jinja_memory *memory, jinja_list *list, jinja_value value,
                          mla_error *err);
mla_status jinja_list_value(jinja_memory *memory, jinja_kind kind, jinja_value *out,
                            mla_error *err); /* an empty one */
mla_status jinja_dict_make(jinja_memory *memory, size_t capacity, jinja_dict **out,
                           mla_error *err);
mla_status jinja_dict_set(jinja_memory *memory, jinja_dict *dict, jinja_value key,
                          jinja_value value, mla_error *err);
/* NULL: no such key. */
const jinja_value *jinja_dict_get(const jinja_dict *dict, jinja_value key);
const jinja_value *jinja_dict_find(const jinja_dict *dict, jinja_text key);

/* Python's ==, and the order of two numbers, texts or lists; MLA_ERR_ARGUMENT for others. */
mla_status jinja_equal(jinja_memory *memory, jinja_value a, jinja_value b, bool *out,
                       mla_error *err);
mla_status jinja_order(jinja_memory *memory, jinja_value a, jinja_value b, int *out,
                       mla_error *err);

/* str(value) and repr(value), marked. */
mla_status jinja_print(jinja_builder *to, jinja_value value, mla_error *err);
mla_status jinja_str_of(jinja_memory *memory, jinja_value value, jinja_text *out,
                        mla_error *err);

typedef struct jinja_json_style {
    bool is_ascii, sorts_keys;
    int64_t indent; /* -1: all in one line */
    jinja_text comma, colon;
} jinja_json_style;
mla_status jinja_print_json(jinja_builder *to, jinja_value value,
                            const jinja_json_style *style, mla_error *err);

/* repr(double): the shortest digits that give it back. */
typedef struct jinja_digits {
    char text[40];
} jinja_digits;
jinja_digits jinja_digits_of(double real);

#endif
