/* filters.h - the filters and tests by name, and how they are called. */
#ifndef MLA_MODEL_JINJA_FILTERS_H
#define MLA_MODEL_JINJA_FILTERS_H

#include "model/jinja/value.h"

struct jinja_run;

/* The arguments of a call, in memory of the rendering. */
typedef struct jinja_arguments {
    const jinja_value *values; /* [num] */
    int32_t num;
    const jinja_text *names;  /* [num_named] */
    const jinja_value *named; /* [num_named] */
    int32_t num_named;
    const char *callee; /* for errors */
} jinja_arguments;

enum { JINJA_MAX_PARAMETERS = 4 };

/* Arguments by the callee's parameters, "a b c"; what is not given keeps out's value.
 * Too many or an unknown name: MLA_ERR_ARGUMENT. */
mla_status jinja_bind(const jinja_arguments *given, const char *parameters,
                      jinja_value *out, mla_error *err);

/* The number of a filter or test, -1: none of that name. */
int32_t jinja_filter_find(jinja_text name);
int32_t jinja_test_find(jinja_text name);

mla_status jinja_filter_apply(struct jinja_run *run, int32_t filter, jinja_value input,
                              const jinja_arguments *given, jinja_value *out,
                              mla_error *err);
mla_status jinja_test_apply(struct jinja_run *run, int32_t test, jinja_value input,
                            const jinja_arguments *given, bool *out, mla_error *err);

#endif
