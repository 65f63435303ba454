/* filter_rows.h - the filters, for the table in filters.c. */
#ifndef MLA_MODEL_JINJA_FILTER_ROWS_H
#define MLA_MODEL_JINJA_FILTER_ROWS_H

#include "model/jinja/run.h"

typedef mla_status jinja_filter(jinja_run *run, jinja_value input,
                                const jinja_arguments *given, jinja_value *out,
                                mla_error *err);

/* of texts */
jinja_filter jinja_filter_trim, jinja_filter_replace, jinja_filter_indent,
    jinja_filter_upper, jinja_filter_lower, jinja_filter_title, jinja_filter_capitalize,
    jinja_filter_string, jinja_filter_tojson, jinja_filter_safe;
/* of numbers, and of anything */
jinja_filter jinja_filter_int, jinja_filter_float, jinja_filter_abs, jinja_filter_round,
    jinja_filter_default, jinja_filter_length;
/* of lists */
jinja_filter jinja_filter_join, jinja_filter_list, jinja_filter_first, jinja_filter_last,
    jinja_filter_reverse, jinja_filter_items, jinja_filter_sum;
jinja_filter jinja_filter_select, jinja_filter_reject, jinja_filter_selectattr,
    jinja_filter_rejectattr, jinja_filter_map;
jinja_filter jinja_filter_sort, jinja_filter_unique, jinja_filter_min, jinja_filter_max,
    jinja_filter_dictsort;

/* "a.b.0" of a value, as map(attribute=...) has it; attribute none: the value itself. */
mla_status jinja_follow(jinja_run *run, jinja_value value, jinja_value attribute,
                        jinja_value *out, mla_error *err);

#endif
