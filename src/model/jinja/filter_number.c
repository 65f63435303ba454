/* filter_number.c - filters of numbers, and of anything. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/jinja/filter_rows.h"

mla_status jinja_filter_default(jinja_run *run, jinja_value input,
                                const jinja_arguments *given, jinja_value *out,
                                mla_error *err)
{
    jinja_value values[] = {jinja_str(JINJA_TEXT("")), jinja_bool(false)};
    (void)run;
    MLAI_TRY(jinja_bind(given, "default_value boolean", values, err));
    bool is_missing = input.kind == JINJA_UNDEFINED ||
                      (jinja_is_true(values[1]) && !jinja_is_true(input));
    *out = is_missing ? values[0] : input;
    return MLA_OK;
}

mla_status jinja_filter_length(jinja_run *run, jinja_value input,
                               const jinja_arguments *given, jinja_value *out,
                               mla_error *err)
{
    MLAI_TRY(jinja_bind(given, "", NULL, err));
    if (input.kind == JINJA_STR) {
        *out = jinja_int((int64_t)jinja_text_length(input.as.text));
        return jinja_spend(run->memory, input.as.text.bytes, err);
    }
    if (jinja_is_list(input) && input.kind != JINJA_STREAM) {
        *out = jinja_int((int64_t)input.as.list->num);
        return MLA_OK;
    }
    if (input.kind == JINJA_LOOP) {
        *out = jinja_int((int64_t)input.as.loop->items->num);
        return MLA_OK;
    }
    MLAI_CHECK(input.kind == JINJA_DICT || input.kind == JINJA_UNDEFINED, MLA_ERR_ARGUMENT,
               "a %s has no length", jinja_kind_name(input.kind));
    *out = jinja_int(input.kind == JINJA_DICT ? (int64_t)input.as.dict->num : 0);
    return MLA_OK;
}

/* A text as a number: digits with single underscores, and for a real a point and e. */
static bool read_number(jinja_text text, bool is_real, double *real, int64_t *integer)
{
    enum { MAX_BYTES = 64 };
    char digits[MAX_BYTES + 1];
    char *end = NULL;
    jinja_text trimmed = jinja_text_strip(text, true, true);
    if (trimmed.bytes == 0 || trimmed.bytes > MAX_BYTES) {
        return false;
    }
    for (size_t i = 0; i < trimmed.bytes; i++) {
        bool fits = strchr(is_real ? "0123456789+-.eE" : "0123456789+-", trimmed.data[i]) &&
                    trimmed.data[i] != '\0';
        if (!fits) {
            return false;
        }
        digits[i] = trimmed.data[i];
    }
    digits[trimmed.bytes] = '\0';
    if (is_real) {
        *real = strtod(digits, &end);
        return *end == '\0' && isfinite(*real);
    }
    size_t at = digits[0] == '-' || digits[0] == '+';
    *integer = 0;
    for (size_t i = at; i < trimmed.bytes; i++) {
        int64_t digit = digits[0] == '-' ? '0' - digits[i] : digits[i] - '0';
        if (digits[i] < '0' || digits[i] > '9' ||
            __builtin_mul_overflow(*integer, 10, integer) ||
            __builtin_add_overflow(*integer, digit, integer)) {
            return false;
        }
    }
    return trimmed.bytes > at;
}

static mla_status refuse_undefined(jinja_value input, mla_error *err)
{
    MLAI_CHECK(input.kind != JINJA_UNDEFINED, MLA_ERR_ARGUMENT, "'%.*s' is undefined",
               JINJA_SHOWN(input.as.text));
    return MLA_OK;
}

static bool whole_of(double real, int64_t *out)
{
    bool fits = real > -9.2e18 && real < 9.2e18;
    *out = fits ? (int64_t)real : 0;
    return fits;
}

mla_status jinja_filter_int(jinja_run *run, jinja_value input, const jinja_arguments *given,
                            jinja_value *out, mla_error *err)
{
    jinja_value values[] = {jinja_int(0), jinja_int(10)};
    double real = 0;
    int64_t integer = 0;
    (void)run;
    MLAI_TRY(jinja_bind(given, "default base", values, err));
    MLAI_CHECK(values[1].kind == JINJA_INT && values[1].as.integer == 10,
               MLA_ERR_UNSUPPORTED, "int is supported to base 10");
    MLAI_TRY(refuse_undefined(input, err));
    bool is_number = jinja_is_number(input);
    if (is_number && input.kind == JINJA_FLOAT) {
        is_number = whole_of(input.as.real, &integer);
    } else if (is_number) {
        integer = jinja_int_of(input);
    } else if (input.kind == JINJA_STR) {
        is_number =
            read_number(input.as.text, false, &real, &integer) ||
            (read_number(input.as.text, true, &real, &integer) && whole_of(real, &integer));
    }
    *out = is_number ? jinja_int(integer) : values[0];
    return MLA_OK;
}

mla_status jinja_filter_float(jinja_run *run, jinja_value input,
                              const jinja_arguments *given, jinja_value *out,
                              mla_error *err)
{
    jinja_value otherwise = jinja_float(0);
    double real = 0;
    int64_t integer = 0;
    (void)run;
    MLAI_TRY(jinja_bind(given, "default", &otherwise, err));
    MLAI_TRY(refuse_undefined(input, err));
    if (jinja_is_number(input)) {
        *out = jinja_float(jinja_real_of(input));
    } else if (input.kind == JINJA_STR &&
               read_number(input.as.text, true, &real, &integer)) {
        *out = jinja_float(real);
    } else {
        *out = otherwise;
    }
    return MLA_OK;
}

mla_status jinja_filter_abs(jinja_run *run, jinja_value input, const jinja_arguments *given,
                            jinja_value *out, mla_error *err)
{
    MLAI_TRY(jinja_bind(given, "", NULL, err));
    MLAI_CHECK(jinja_is_number(input), MLA_ERR_ARGUMENT, "a %s has no absolute value",
               jinja_kind_name(input.kind));
    if (input.kind == JINJA_FLOAT) {
        *out = jinja_float(fabs(input.as.real));
        return MLA_OK;
    }
    return jinja_combine(run, jinja_int_of(input) < 0 ? OPERATOR_SUBTRACT : OPERATOR_ADD,
                         jinja_int(0), input, out, err);
}

mla_status jinja_filter_round(jinja_run *run, jinja_value input,
                              const jinja_arguments *given, jinja_value *out,
                              mla_error *err)
{
    jinja_value values[] = {jinja_int(0), jinja_str(JINJA_TEXT("common"))};
    (void)run;
    MLAI_TRY(jinja_bind(given, "precision method", values, err));
    MLAI_CHECK(jinja_is_number(input), MLA_ERR_ARGUMENT, "a %s cannot be rounded",
               jinja_kind_name(input.kind));
    MLAI_CHECK(values[0].kind == JINJA_INT && values[0].as.integer == 0 &&
                   values[1].kind == JINJA_STR,
               MLA_ERR_UNSUPPORTED, "round is supported to whole numbers");
    double real = jinja_real_of(input);
    if (jinja_text_is(values[1].as.text, "common")) {
        real = rint(real);
    } else if (jinja_text_is(values[1].as.text, "ceil")) {
        real = ceil(real);
    } else {
        MLAI_CHECK(jinja_text_is(values[1].as.text, "floor"), MLA_ERR_ARGUMENT,
                   "round is common, ceil or floor, not '%.*s'",
                   JINJA_SHOWN(values[1].as.text));
        real = floor(real);
    }
    *out = input.kind == JINJA_FLOAT ? jinja_float(real) : input;
    return MLA_OK;
}
