/* chat_template_parts.h - what a chat template is made of. */
#ifndef MLA_MODEL_CHAT_TEMPLATE_PARTS_H
#define MLA_MODEL_CHAT_TEMPLATE_PARTS_H

#include "model/chat_template.h"

struct chat_template {
    mlai_ledger *ledger;
    json_t *own; /* special tokens by their names: "bos_token": "<s>" */
    jinja_template *usual;
    jinja_template *with_tools; /* NULL: the usual one */
};

/* A copy of the fields in which content that is a list of text parts is one text. In a
 * json_scope. */
mla_status chat_fields_flatten(const json_t *fields, json_t **out, mla_error *err);

#endif
