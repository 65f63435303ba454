/* input.h - JSON becomes values. */
#ifndef MLA_MODEL_JINJA_INPUT_H
#define MLA_MODEL_JINJA_INPUT_H

#include <jansson.h>

#include "model/jinja/value.h"

/* Texts are borrowed from the JSON. is_input: the mark of all of them. */
mla_status jinja_value_of_json(jinja_memory *memory, const json_t *json, bool is_input,
                               jinja_value *out, mla_error *err);

#endif
