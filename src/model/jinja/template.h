/* template.h - a Jinja template, compiled once and rendered as often as wanted, by any number
 * of threads. docs/chat_templates.md says what of the language there is. */
#ifndef MLA_MODEL_JINJA_TEMPLATE_H
#define MLA_MODEL_JINJA_TEMPLATE_H

#include "model/jinja/text.h"
#include "model/json.h"

typedef struct jinja_template jinja_template;

/* source: read, UTF-8. Errors name the line: MLA_ERR_CORRUPT for what is no template,
 * MLA_ERR_UNSUPPORTED for what we do not have. Memory is class context. out: owned,
 * jinja_template_free. */
mla_status jinja_template_compile(mlai_ledger *ledger, const char *source, size_t bytes,
                                  jinja_template **out, mla_error *err);
void jinja_template_free(jinja_template **t);

typedef struct jinja_limits {
    size_t max_memory_bytes, max_output_bytes; /* 0: the default of each */
    int64_t max_steps;
} jinja_limits;

typedef struct jinja_inputs {
    const json_t *own;    /* an object or NULL: names and texts that are the model's own */
    const json_t *fields; /* an object or NULL: names and values of strangers */
    jinja_limits limits;
    int64_t now_seconds; /* since 1970, for strftime_now; 0: the clock's */
} jinja_inputs;

typedef struct jinja_rendering {
    jinja_memory memory;
    jinja_text text; /* its marks say which bytes came from `fields` */
} jinja_rendering;

/* inputs: read, and not needed after. Memory is class server; out: jinja_rendering_free,
 * also after a failure. */
mla_status jinja_template_render(const jinja_template *t, const jinja_inputs *inputs,
                                 jinja_rendering *out, mla_error *err);
void jinja_rendering_free(jinja_rendering *rendering);

#endif
