/* mailbox.h - the tokens of one choice on their way from the engine's thread to the loop's:
 * one writer, one reader, memory for every token taken before, no lock. */
#ifndef MLA_SERVER_API_MAILBOX_H
#define MLA_SERVER_API_MAILBOX_H

#include "server/api/memory.h"
#include "server/api/settings.h"

typedef struct api_mailbox {
    /* The engine's thread writes these */
    _Atomic int64_t num;  /* of ids; what is before it is there to read */
    int64_t end_index;    /* of the token that ended it, or -1; before num */
    engine_result result; /* before has_ended */
    int64_t submit_ns, last_ns;

    /* Fixed before the request is submitted */
    const api_settings *settings;
    int32_t *ids;             /* [max_tokens] */
    engine_logprob *logprobs; /* [max_tokens][1 + num_top]: the token's own, then the
                                 likeliest, id -1 where there are fewer; NULL: none wanted */
    int64_t max_tokens;
    int32_t num_top;

    atomic_bool has_ended; /* the last that the engine's thread writes */
} api_mailbox;

/* How many bytes a mailbox takes beside itself; SIZE_MAX: more than memory can be. */
size_t api_mailbox_bytes(int64_t max_tokens, bool has_logprobs, int32_t num_top);

/* Makes `request` write here: its max_tokens is the true number, not 0, and its user is the
 * mailbox. */
mla_status api_mailbox_begin(api_mailbox *self, const api_settings *settings,
                             engine_request *request, api_memory *memory, mla_error *err);
/* The reader's, right before engine_submit. */
void api_mailbox_submit(api_mailbox *self);

static inline int64_t api_mailbox_num(const api_mailbox *self)
{
    return atomic_load_explicit(&self->num, memory_order_acquire);
}

/* Then every token is there, and the result. */
static inline bool api_mailbox_has_ended(const api_mailbox *self)
{
    return atomic_load_explicit(&self->has_ended, memory_order_acquire);
}

/* The index-th token as answer_text wants it. top: borrowed from the mailbox. */
engine_event api_mailbox_event(const api_mailbox *self, int64_t index);

#endif
