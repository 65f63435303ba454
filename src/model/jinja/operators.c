/* operators.c - + - * / // % ** ~ and the comparisons. */
#include <math.h>

#include "model/jinja/run.h"

static mla_status overflow(mla_error *err)
{
    return MLAI_FAIL(MLA_ERR_UNSUPPORTED, "a whole number does not fit in 64 bits");
}

/* Python rounds towards minus infinity; b is not 0. */
static int64_t floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

static mla_status power_of_ints(int64_t base, int64_t exponent, jinja_value *out,
                                mla_error *err)
{
    int64_t result = 1;
    if (exponent < 0) {
        MLAI_CHECK(base != 0, MLA_ERR_ARGUMENT, "0 has no power of %lld",
                   (long long)exponent);
        *out = jinja_float(pow((double)base, (double)exponent));
        return MLA_OK;
    }
    if (base == 0 || base == 1 || base == -1) { /* any exponent would take its time */
        exponent = exponent == 0 ? 0 : 2 - exponent % 2;
    }
    for (; exponent > 0; exponent--) {
        if (__builtin_mul_overflow(result, base, &result)) {
            return overflow(err);
        }
    }
    *out = jinja_int(result);
    return MLA_OK;
}

static mla_status combine_ints(jinja_operator op, int64_t a, int64_t b, jinja_value *out,
                               mla_error *err)
{
    int64_t result = 0;
    bool overflows = false;
    switch ((int)op) {
    case OPERATOR_ADD:
        overflows = __builtin_add_overflow(a, b, &result);
        break;
    case OPERATOR_SUBTRACT:
        overflows = __builtin_sub_overflow(a, b, &result);
        break;
    case OPERATOR_MULTIPLY:
        overflows = __builtin_mul_overflow(a, b, &result);
        break;
    case OPERATOR_POWER:
        return power_of_ints(a, b, out, err);
    default:
        overflows = a == INT64_MIN && b == -1;
        result = overflows                     ? 0
                 : op == OPERATOR_FLOOR_DIVIDE ? floor_divide(a, b)
                                               : a - floor_divide(a, b) * b;
        break;
    }
    *out = jinja_int(result);
    return overflows ? overflow(err) : MLA_OK;
}

static double modulo(double a, double b)
{
    double rest = fmod(a, b);
    if (rest == 0) {
        return copysign(0.0, b);
    }
    return (rest < 0) != (b < 0) ? rest + b : rest;
}

static mla_status combine_reals(jinja_operator op, double a, double b, jinja_value *out,
                                mla_error *err)
{
    double result = 0;
    switch ((int)op) {
    case OPERATOR_ADD:
        result = a + b;
        break;
    case OPERATOR_SUBTRACT:
        result = a - b;
        break;
    case OPERATOR_MULTIPLY:
        result = a * b;
        break;
    case OPERATOR_DIVIDE:
        result = a / b;
        break;
    case OPERATOR_MODULO:
        result = modulo(a, b);
        break;
    case OPERATOR_FLOOR_DIVIDE:
        result = (a - modulo(a, b)) / b;
        result = result == 0 ? copysign(0.0, a / b) : floor(result + 0.5);
        break;
    default:
        result = pow(a, b);
        MLAI_CHECK(isfinite(result) || !isfinite(a) || !isfinite(b), MLA_ERR_UNSUPPORTED,
                   "%g ** %g is no number", a, b);
        break;
    }
    *out = jinja_float(result);
    return MLA_OK;
}

static mla_status combine_numbers(jinja_operator op, jinja_value a, jinja_value b,
                                  jinja_value *out, mla_error *err)
{
    bool divides =
        op == OPERATOR_DIVIDE || op == OPERATOR_FLOOR_DIVIDE || op == OPERATOR_MODULO;
    MLAI_CHECK(!divides || jinja_real_of(b) != 0, MLA_ERR_ARGUMENT, "division by zero");
    if (op == OPERATOR_DIVIDE || a.kind == JINJA_FLOAT || b.kind == JINJA_FLOAT) {
        return combine_reals(op, jinja_real_of(a), jinja_real_of(b), out, err);
    }
    return combine_ints(op, jinja_int_of(a), jinja_int_of(b), out, err);
}

static mla_status join_lists(jinja_run *run, jinja_value a, jinja_value b, jinja_value *out,
                             mla_error *err)
{
    jinja_list *list = NULL;
    MLAI_TRY(jinja_list_make(run->memory, a.as.list->num + b.as.list->num, &list, err));
    for (size_t i = 0; i < a.as.list->num; i++) {
        MLAI_TRY(jinja_list_add(run->memory, list, a.as.list->items[i], err));
    }
    for (size_t i = 0; i < b.as.list->num; i++) {
        MLAI_TRY(jinja_list_add(run->memory, list, b.as.list->items[i], err));
    }
    out->kind = a.kind;
    out->as.list = list;
    return MLA_OK;
}

/* A text or list several times over. */
static mla_status repeat(jinja_run *run, jinja_value what, int64_t times, jinja_value *out,
                         mla_error *err)
{
    jinja_builder text = {.memory = run->memory};
    jinja_list *list = NULL;
    MLAI_TRY(jinja_list_make(run->memory, 0, &list, err));
    for (int64_t i = 0; i < times; i++) {
        MLAI_TRY(jinja_spend(run->memory, 0, err));
        if (what.kind == JINJA_STR) {
            MLAI_TRY(jinja_builder_add(&text, what.as.text, err));
            continue;
        }
        for (size_t j = 0; j < what.as.list->num; j++) {
            MLAI_TRY(jinja_list_add(run->memory, list, what.as.list->items[j], err));
        }
    }
    *out = (jinja_value){.kind = what.kind, .as.list = list};
    if (what.kind == JINJA_STR) {
        *out = jinja_str(jinja_builder_text(&text));
    }
    return MLA_OK;
}

static bool is_sequence(jinja_value value)
{
    return value.kind == JINJA_STR || value.kind == JINJA_LIST || value.kind == JINJA_TUPLE;
}

static bool is_whole(jinja_value value)
{
    return value.kind == JINJA_INT || value.kind == JINJA_BOOL;
}

static mla_status concat(jinja_run *run, jinja_value a, jinja_value b, jinja_value *out,
                         mla_error *err)
{
    jinja_text left;
    jinja_text right;
    jinja_text joined;
    MLAI_TRY(jinja_str_of(run->memory, a, &left, err));
    MLAI_TRY(jinja_str_of(run->memory, b, &right, err));
    MLAI_TRY(jinja_text_join(run->memory, left, right, &joined, err));
    *out = jinja_str(joined);
    return MLA_OK;
}

mla_status jinja_combine(jinja_run *run, jinja_operator op, jinja_value a, jinja_value b,
                         jinja_value *out, mla_error *err)
{
    static const char *const names[] = {"+", "-", "*", "/", "//", "%", "**"};
    if (op == OPERATOR_CONCAT) {
        return concat(run, a, b, out, err);
    }
    MLAI_CHECK(op != OPERATOR_MODULO || a.kind != JINJA_STR, MLA_ERR_UNSUPPORTED,
               "formatting a text with %% is not supported");
    const jinja_value *undefined = a.kind == JINJA_UNDEFINED ? &a : &b;
    MLAI_CHECK(undefined->kind != JINJA_UNDEFINED, MLA_ERR_ARGUMENT,
               "'%.*s' is undefined, in %s", JINJA_SHOWN(undefined->as.text), names[op]);
    if (jinja_is_number(a) && jinja_is_number(b)) {
        return combine_numbers(op, a, b, out, err);
    }
    if (op == OPERATOR_ADD && a.kind == b.kind && is_sequence(a)) {
        return a.kind == JINJA_STR ? concat(run, a, b, out, err)
                                   : join_lists(run, a, b, out, err);
    }
    if (op == OPERATOR_MULTIPLY && is_sequence(a) && is_whole(b)) {
        return repeat(run, a, jinja_int_of(b), out, err);
    }
    if (op == OPERATOR_MULTIPLY && is_whole(a) && is_sequence(b)) {
        return repeat(run, b, jinja_int_of(a), out, err);
    }
    return MLAI_FAIL(MLA_ERR_ARGUMENT, "'%s' %s '%s' is not possible",
                     jinja_kind_name(a.kind), names[op], jinja_kind_name(b.kind));
}

/* NOLINTNEXTLINE(misc-no-recursion) */
mla_status jinja_eval_binary(jinja_run *run, const jinja_node *node, jinja_value *out,
                             mla_error *err)
{
    jinja_value a;
    jinja_value b;
    MLAI_TRY(jinja_eval(run, node->a, &a, err));
    MLAI_TRY(jinja_eval(run, node->b, &b, err));
    return jinja_combine(run, (jinja_operator)node->op, a, b, out, err);
}

static mla_status compare(jinja_run *run, jinja_operator op, jinja_value a, jinja_value b,
                          bool *out, mla_error *err)
{
    int order = 0;
    bool is_so = false;
    switch ((int)op) {
    case OPERATOR_EQUAL:
    case OPERATOR_UNEQUAL:
        MLAI_TRY(jinja_equal(run->memory, a, b, &is_so, err));
        *out = is_so == (op == OPERATOR_EQUAL);
        return MLA_OK;
    case OPERATOR_IN:
    case OPERATOR_NOT_IN:
        MLAI_TRY(jinja_contains(run, b, a, &is_so, err));
        *out = is_so == (op == OPERATOR_IN);
        return MLA_OK;
    default:
        break;
    }
    MLAI_TRY(jinja_order(run->memory, a, b, &order, err));
    *out = op == OPERATOR_LESS         ? order < 0
           : op == OPERATOR_LESS_EQUAL ? order <= 0
           : op == OPERATOR_GREATER    ? order > 0
                                       : order >= 0;
    return MLA_OK;
}

/* a < b < c: each with its neighbour, up to the first that is not so. NOLINTNEXTLINE(misc-no-recursion) */
mla_status jinja_eval_compare(jinja_run *run, const jinja_node *node, jinja_value *out,
                              mla_error *err)
{
    jinja_value a;
    bool is_so = true;
    MLAI_TRY(jinja_eval(run, node->a, &a, err));
    for (const jinja_node *next = node->items.first; next && is_so; next = next->next) {
        jinja_value b;
        MLAI_TRY(jinja_eval(run, next->a, &b, err));
        MLAI_TRY(compare(run, (jinja_operator)next->op, a, b, &is_so, err));
        a = b;
    }
    *out = jinja_bool(is_so);
    return MLA_OK;
}
