/* globals.c - the functions of the environment that transformers gives to chat templates. */
#include <string.h>
#include <time.h>

#include "model/jinja/run.h"

typedef mla_status (*call_global)(jinja_run *run, const jinja_arguments *given,
                                  jinja_value *out, mla_error *err);

static mla_status call_namespace(jinja_run *run, const jinja_arguments *given,
                                 jinja_value *out, mla_error *err)
{
    jinja_dict *dict = NULL;
    MLAI_CHECK(given->num <= 1 && (given->num == 0 || given->values[0].kind == JINJA_DICT),
               MLA_ERR_UNSUPPORTED, "namespace is made of named values, or of one dict");
    MLAI_TRY(jinja_dict_make(run->memory, 0, &dict, err));
    for (size_t i = 0; given->num > 0 && i < given->values[0].as.dict->num; i++) {
        const jinja_dict *from = given->values[0].as.dict;
        MLAI_TRY(jinja_dict_set(run->memory, dict, from->keys[i], from->values[i], err));
    }
    for (int32_t i = 0; i < given->num_named; i++) {
        MLAI_TRY(jinja_dict_set(run->memory, dict, jinja_str(given->names[i]),
                                given->named[i], err));
    }
    *out = (jinja_value){.kind = JINJA_NAMESPACE, .as.dict = dict};
    return MLA_OK;
}

static mla_status call_dict(jinja_run *run, const jinja_arguments *given, jinja_value *out,
                            mla_error *err)
{
    MLAI_TRY(call_namespace(run, given, out, err));
    out->kind = JINJA_DICT;
    return MLA_OK;
}

static mla_status call_range(jinja_run *run, const jinja_arguments *given, jinja_value *out,
                             mla_error *err)
{
    enum { MAX_ITEMS = 100000 }; /* as the sandbox has it */
    int64_t bounds[3] = {0, 0, 1};
    MLAI_CHECK(given->num >= 1 && given->num <= 3 && given->num_named == 0,
               MLA_ERR_ARGUMENT, "range takes 1 to 3 numbers");
    for (int32_t i = 0; i < given->num; i++) {
        MLAI_CHECK(given->values[i].kind == JINJA_INT ||
                       given->values[i].kind == JINJA_BOOL,
                   MLA_ERR_ARGUMENT, "range takes whole numbers, not a %s",
                   jinja_kind_name(given->values[i].kind));
        bounds[given->num == 1 ? 1 : i] = jinja_int_of(given->values[i]);
    }
    MLAI_CHECK(bounds[2] != 0, MLA_ERR_ARGUMENT, "the step of range is 0");
    MLAI_TRY(jinja_list_value(run->memory, JINJA_RANGE, out, err));
    int64_t at = bounds[0];
    while (bounds[2] > 0 ? at < bounds[1] : at > bounds[1]) {
        MLAI_CHECK(out->as.list->num < MAX_ITEMS, MLA_ERR_ARGUMENT,
                   "range has more than %d items", MAX_ITEMS);
        MLAI_TRY(jinja_list_add(run->memory, out->as.list, jinja_int(at), err));
        if (__builtin_add_overflow(at, bounds[2], &at)) {
            break;
        }
    }
    return MLA_OK;
}

static mla_status call_raise(jinja_run *run, const jinja_arguments *given, jinja_value *out,
                             mla_error *err)
{
    jinja_value message = jinja_none();
    jinja_text text;
    (void)out;
    MLAI_TRY(jinja_bind(given, "message", &message, err));
    MLAI_TRY(jinja_str_of(run->memory, message, &text, err));
    return MLAI_FAIL(MLA_ERR_ARGUMENT, "the template refuses: %.*s",
                     (int)(text.bytes < 200 ? text.bytes : (size_t)jinja_text_shown(text)),
                     text.data);
}

static mla_status call_strftime(jinja_run *run, const jinja_arguments *given,
                                jinja_value *out, mla_error *err)
{
    enum { MAX_BYTES = 256 };
    char text[MAX_BYTES];
    char format[MAX_BYTES];
    struct tm parts;
    jinja_value wanted = jinja_none();
    MLAI_TRY(jinja_bind(given, "format", &wanted, err));
    MLAI_CHECK(wanted.kind == JINJA_STR && wanted.as.text.bytes < MAX_BYTES,
               MLA_ERR_ARGUMENT, "strftime_now takes a format of less than %d bytes",
               MAX_BYTES);
    memcpy(format, wanted.as.text.data, wanted.as.text.bytes);
    format[wanted.as.text.bytes] = '\0';
    time_t now = run->now_seconds != 0 ? (time_t)run->now_seconds : time(NULL);
    MLAI_CHECK(localtime_r(&now, &parts) != NULL, MLA_ERR_STATE,
               "the clock of this machine is beyond all calendars");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* the template's own, and bounded */
    size_t num = strftime(text, sizeof text, format, &parts);
#pragma GCC diagnostic pop
    MLAI_CHECK(num > 0 || format[0] == '\0', MLA_ERR_ARGUMENT,
               "strftime_now gives more than %d bytes", MAX_BYTES);
    jinja_builder built = {.memory = run->memory};
    MLAI_TRY(jinja_builder_add(
        &built,
        (jinja_text){.data = text,
                     .bytes = num,
                     .is_input = wanted.as.text.is_input || wanted.as.text.marks},
        err));
    *out = jinja_str(jinja_builder_text(&built));
    return MLA_OK;
}

typedef struct global_row {
    const char *name;
    call_global call;
} global_row;

static const global_row rows[] = {
    {"namespace", call_namespace},   {"dict", call_dict},
    {"range", call_range},           {"raise_exception", call_raise},
    {"strftime_now", call_strftime},
};

int32_t jinja_global_find(jinja_text name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (jinja_text_is(name, rows[i].name)) {
            return (int32_t)i;
        }
    }
    return -1;
}

const char *jinja_global_name(int32_t global)
{
    return rows[global].name;
}

mla_status jinja_global_call(jinja_run *run, int32_t global, const jinja_arguments *given,
                             jinja_value *out, mla_error *err)
{
    jinja_arguments named = *given;
    named.callee = rows[global].name;
    return rows[global].call(run, &named, out, err);
}
