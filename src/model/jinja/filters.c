/* filters.c - the table of filters. */
#include "model/jinja/filter_rows.h"

typedef struct filter_row {
    const char *name;
    jinja_filter *apply;
} filter_row;

static const filter_row rows[] = {
    {"tojson", jinja_filter_tojson},
    {"trim", jinja_filter_trim},
    {"length", jinja_filter_length},
    {"count", jinja_filter_length},
    {"default", jinja_filter_default},
    {"d", jinja_filter_default},
    {"join", jinja_filter_join},
    {"select", jinja_filter_select},
    {"reject", jinja_filter_reject},
    {"selectattr", jinja_filter_selectattr},
    {"rejectattr", jinja_filter_rejectattr},
    {"map", jinja_filter_map},
    {"list", jinja_filter_list},
    {"first", jinja_filter_first},
    {"last", jinja_filter_last},
    {"items", jinja_filter_items},
    {"string", jinja_filter_string},
    {"int", jinja_filter_int},
    {"float", jinja_filter_float},
    {"upper", jinja_filter_upper},
    {"lower", jinja_filter_lower},
    {"title", jinja_filter_title},
    {"capitalize", jinja_filter_capitalize},
    {"replace", jinja_filter_replace},
    {"indent", jinja_filter_indent},
    {"safe", jinja_filter_safe},
    {"sort", jinja_filter_sort},
    {"dictsort", jinja_filter_dictsort},
    {"unique", jinja_filter_unique},
    {"min", jinja_filter_min},
    {"max", jinja_filter_max},
    {"sum", jinja_filter_sum},
    {"reverse", jinja_filter_reverse},
    {"abs", jinja_filter_abs},
    {"round", jinja_filter_round},
};

int32_t jinja_filter_find(jinja_text name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (jinja_text_is(name, rows[i].name)) {
            return (int32_t)i;
        }
    }
    return -1;
}

mla_status jinja_filter_apply(jinja_run *run, int32_t filter, jinja_value input,
                              const jinja_arguments *given, jinja_value *out,
                              mla_error *err)
{
    jinja_arguments named = *given;
    named.callee = rows[filter].name;
    return rows[filter].apply(run, input, &named, out, err);
}
