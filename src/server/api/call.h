/* call.h - one /v1/completions or /v1/chat/completions: from the body of the HTTP request to
 * the bytes of its reply. No socket and no thread is known here.
 *
 *     worker thread:  api_call_open      parses, checks, renders, tokenises, allocates
 *     loop thread:    api_call_submit    once, if the client is still there
 *                     api_call_write     after each wake; also once right after submit
 *                     api_call_cancel    the client has left, or the server ends
 *                     api_call_close     when api_call_has_ended
 *     engine's:       fills the mailboxes and calls settings->wake
 *
 * All but api_call_open are the loop thread's. */
#ifndef MLA_SERVER_API_CALL_H
#define MLA_SERVER_API_CALL_H

#include "server/api/failure.h"
#include "server/api/settings.h"

typedef enum api_kind { API_COMPLETION, API_CHAT } api_kind;

typedef struct api_call api_call;

/* body: read, any bytes. settings: borrowed until close. Any thread. false: *failure says why,
 * and nothing was made. out: owned, api_call_close. */
bool api_call_open(const api_settings *settings, api_kind kind, const char *body,
                   size_t bytes, api_call **out, api_failure *failure);
/* Never submitted, or ended. *call may be NULL. */
void api_call_close(api_call **call);

bool api_call_is_stream(const api_call *call); /* text/event-stream, not application/json */

/* Its engine requests, one a choice; prompts times n. */
int32_t api_call_num_requests(const api_call *call);
engine_request *api_call_request(api_call *call, int32_t i);

void api_call_submit(api_call *call); /* all of them, to settings->engine */
void api_call_cancel(api_call *call); /* those that have not ended; often is harmless */
bool api_call_has_ended(const api_call *call); /* all of them, or none was submitted */

/* Is there anything that api_call_write would write? Cheap: a load a choice. */
bool api_call_has_news(const api_call *call);

/* Appends to out what is new. A stream: whole server-sent events, the first time the chunks
 * with the roles (also before any token: write once at submit, so that the client sees that it
 * was admitted), at the end "data: [DONE]". A plain reply: nothing until all choices have
 * ended, then the body; of a large one a part, and a wake for the next part. *is_done: that was
 * all. On failure (out of memory) nothing was appended; the reply cannot go on, and the
 * transport cancels the call. */
mla_status api_call_write(api_call *call, byte_buffer *out, bool *is_done, mla_error *err);

/* The HTTP status of a plain reply: known once is_done; 500 where the engine died. A stream
 * was answered 200 and says in its last event what became of it. */
api_status api_call_status(const api_call *call);

/* For logs: prompt tokens in all, and new ones so far. */
typedef struct api_call_counts {
    int64_t prompt_tokens, cached_tokens, new_tokens;
    int32_t num_choices, num_ended;
} api_call_counts;
api_call_counts api_call_count(const api_call *call);

#endif
