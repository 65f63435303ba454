/* chat_template.h - how a model wants a conversation written: the template of its directory,
 * and the tokens of a conversation. */
#ifndef MLA_MODEL_CHAT_TEMPLATE_H
#define MLA_MODEL_CHAT_TEMPLATE_H

#include "model/jinja/template.h"
#include "model/tokenizer.h"

typedef struct chat_template chat_template;

/* The first there is of: chat_template.jinja; chat_template in tokenizer_config.json (a text,
 * or a list of {"name", "template"}); chat_template in chat_template.json. None:
 * MLA_ERR_UNSUPPORTED. context: borrowed until close; memory of class context. out: owned,
 * chat_template_close. */
mla_status chat_template_open(mla_context *context, const char *dir, chat_template **out,
                              mla_error *err);
void chat_template_close(chat_template **t);

/* fields: {"messages": [...], ...}, read, the words of strangers. As transformers has them,
 * tools and documents are none where they are not given; add_generation_prompt is
 * `is_answered` where it is not given. Content that is a list of text parts is joined; another
 * part is MLA_ERR_ARGUMENT. Memory is class server; out: jinja_rendering_free, also after a
 * failure. */
mla_status chat_template_render(const chat_template *t, const json_t *fields,
                                bool is_answered, jinja_rendering *out, mla_error *err);

typedef struct chat_options {
    bool is_answered; /* end with what begins an answer, unless the fields say otherwise */
    bool allows_control; /* the fields may hold control tokens */
} chat_options;

/* Rendered and encoded; the template writes BOS itself, so none is added. Unless allowed, no
 * text of the fields becomes a control token, whole or in part: tokenizer_encode_marked. out:
 * owned, token_list_free. */
mla_status chat_template_encode(const chat_template *t, const tokenizer *words,
                                const json_t *fields, const chat_options *options,
                                token_list *out, mla_error *err);

#endif
