/* rope_config.h - the rope part of a config.json. */
#ifndef MLA_MODEL_ROPE_CONFIG_H
#define MLA_MODEL_ROPE_CONFIG_H

#include "model/config.h"
#include "model/json.h"

/* Both spellings: rope_theta with rope_scaling (null or an object), and rope_parameters,
 * which wins where both are there. Types: default (none) and yarn; others are
 * MLA_ERR_UNSUPPORTED by name. out->is_interleaved: the default before the call. */
mla_status rope_config_read(const json_document *doc, rope_config *out, mla_error *err);

#endif
