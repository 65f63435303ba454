/* tests.c - what stands behind `is`. */
#include "model/jinja/run.h"

typedef bool (*ask_kind)(jinja_value value);

static bool is_defined(jinja_value value)
{
    return value.kind != JINJA_UNDEFINED;
}

static bool is_undefined(jinja_value value)
{
    return value.kind == JINJA_UNDEFINED;
}

static bool is_none(jinja_value value)
{
    return value.kind == JINJA_NONE;
}

static bool is_string(jinja_value value)
{
    return value.kind == JINJA_STR;
}

static bool is_mapping(jinja_value value)
{
    return value.kind == JINJA_DICT;
}

/* What has a length and subscripts: a dict, too, and what is undefined. */
static bool is_sequence(jinja_value value)
{
    return value.kind == JINJA_UNDEFINED || value.kind == JINJA_STR ||
           value.kind == JINJA_DICT || value.kind == JINJA_LIST ||
           value.kind == JINJA_TUPLE || value.kind == JINJA_RANGE;
}

static bool is_iterable(jinja_value value)
{
    return is_sequence(value) || jinja_is_list(value) || value.kind == JINJA_LOOP;
}

static bool is_boolean(jinja_value value)
{
    return value.kind == JINJA_BOOL;
}

static bool is_true(jinja_value value)
{
    return value.kind == JINJA_BOOL && value.as.truth;
}

static bool is_false(jinja_value value)
{
    return value.kind == JINJA_BOOL && !value.as.truth;
}

static bool is_integer(jinja_value value)
{
    return value.kind == JINJA_INT;
}

static bool is_float(jinja_value value)
{
    return value.kind == JINJA_FLOAT;
}

static bool is_callable(jinja_value value)
{
    return value.kind == JINJA_MACRO || value.kind == JINJA_GLOBAL ||
           value.kind == JINJA_METHOD || value.kind == JINJA_UNDEFINED ||
           value.kind == JINJA_LOOP;
}

typedef mla_status (*ask)(jinja_run *run, jinja_value value, jinja_value other, bool *out,
                          mla_error *err);

static mla_status ask_equal(jinja_run *run, jinja_value value, jinja_value other, bool *out,
                            mla_error *err)
{
    return jinja_equal(run->memory, value, other, out, err);
}

static mla_status ask_unequal(jinja_run *run, jinja_value value, jinja_value other,
                              bool *out, mla_error *err)
{
    bool is_equal = false;
    MLAI_TRY(jinja_equal(run->memory, value, other, &is_equal, err));
    *out = !is_equal;
    return MLA_OK;
}

static mla_status ask_less(jinja_run *run, jinja_value value, jinja_value other, bool *out,
                           mla_error *err)
{
    int order = 0;
    MLAI_TRY(jinja_order(run->memory, value, other, &order, err));
    *out = order < 0;
    return MLA_OK;
}

static mla_status ask_less_equal(jinja_run *run, jinja_value value, jinja_value other,
                                 bool *out, mla_error *err)
{
    int order = 0;
    MLAI_TRY(jinja_order(run->memory, value, other, &order, err));
    *out = order <= 0;
    return MLA_OK;
}

static mla_status ask_greater(jinja_run *run, jinja_value value, jinja_value other,
                              bool *out, mla_error *err)
{
    return ask_less(run, other, value, out, err);
}

static mla_status ask_greater_equal(jinja_run *run, jinja_value value, jinja_value other,
                                    bool *out, mla_error *err)
{
    return ask_less_equal(run, other, value, out, err);
}

static mla_status ask_in(jinja_run *run, jinja_value value, jinja_value other, bool *out,
                         mla_error *err)
{
    return jinja_contains(run, other, value, out, err);
}

static mla_status ask_divisible(jinja_run *run, jinja_value value, jinja_value other,
                                bool *out, mla_error *err)
{
    jinja_value rest;
    MLAI_TRY(jinja_combine(run, OPERATOR_MODULO, value, other, &rest, err));
    *out = jinja_is_number(rest) && !jinja_is_true(rest);
    return MLA_OK;
}

static mla_status ask_same(jinja_run *run, jinja_value value, jinja_value other, bool *out,
                           mla_error *err)
{
    bool is_plain = value.kind == JINJA_NONE || value.kind == JINJA_BOOL;
    MLAI_CHECK(is_plain || other.kind == JINJA_NONE || other.kind == JINJA_BOOL,
               MLA_ERR_UNSUPPORTED, "sameas is supported with none, true and false");
    *out = value.kind == other.kind;
    return *out ? jinja_equal(run->memory, value, other, out, err) : MLA_OK;
}

static mla_status ask_even(jinja_run *run, jinja_value value, jinja_value other, bool *out,
                           mla_error *err)
{
    (void)other;
    return ask_divisible(run, value, jinja_int(2), out, err);
}

static mla_status ask_odd(jinja_run *run, jinja_value value, jinja_value other, bool *out,
                          mla_error *err)
{
    jinja_value rest;
    (void)other;
    MLAI_TRY(jinja_combine(run, OPERATOR_MODULO, value, jinja_int(2), &rest, err));
    return jinja_equal(run->memory, rest, jinja_int(1), out, err);
}

typedef struct test_row {
    const char *name;
    ask_kind of_kind; /* or */
    ask of_values;
    int32_t num_arguments;
} test_row;

static const test_row rows[] = {
    {"defined", is_defined, NULL, 0},
    {"undefined", is_undefined, NULL, 0},
    {"none", is_none, NULL, 0},
    {"string", is_string, NULL, 0},
    {"mapping", is_mapping, NULL, 0},
    {"sequence", is_sequence, NULL, 0},
    {"iterable", is_iterable, NULL, 0},
    {"boolean", is_boolean, NULL, 0},
    {"true", is_true, NULL, 0},
    {"false", is_false, NULL, 0},
    {"number", jinja_is_number, NULL, 0},
    {"integer", is_integer, NULL, 0},
    {"float", is_float, NULL, 0},
    {"callable", is_callable, NULL, 0},
    {"even", NULL, ask_even, 0},
    {"odd", NULL, ask_odd, 0},
    {"divisibleby", NULL, ask_divisible, 1},
    {"sameas", NULL, ask_same, 1},
    {"in", NULL, ask_in, 1},
    {"eq", NULL, ask_equal, 1},
    {"equalto", NULL, ask_equal, 1},
    {"==", NULL, ask_equal, 1},
    {"ne", NULL, ask_unequal, 1},
    {"!=", NULL, ask_unequal, 1},
    {"lt", NULL, ask_less, 1},
    {"lessthan", NULL, ask_less, 1},
    {"<", NULL, ask_less, 1},
    {"le", NULL, ask_less_equal, 1},
    {"<=", NULL, ask_less_equal, 1},
    {"gt", NULL, ask_greater, 1},
    {"greaterthan", NULL, ask_greater, 1},
    {">", NULL, ask_greater, 1},
    {"ge", NULL, ask_greater_equal, 1},
    {">=", NULL, ask_greater_equal, 1},
};

int32_t jinja_test_find(jinja_text name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (jinja_text_is(name, rows[i].name)) {
            return (int32_t)i;
        }
    }
    return -1;
}

mla_status jinja_test_apply(jinja_run *run, int32_t test, jinja_value input,
                            const jinja_arguments *given, bool *out, mla_error *err)
{
    const test_row *row = &rows[test];
    MLAI_CHECK(given->num == row->num_arguments && given->num_named == 0, MLA_ERR_ARGUMENT,
               "the test '%s' takes %d arguments, not %d", row->name,
               (int)row->num_arguments, (int)(given->num + given->num_named));
    if (row->of_kind) {
        *out = row->of_kind(input);
        return MLA_OK;
    }
    return row->of_values(
        run, input, row->num_arguments > 0 ? given->values[0] : jinja_none(), out, err);
}
