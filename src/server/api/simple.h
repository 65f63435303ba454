/* simple.h - the endpoints that need no engine step. Each appends the JSON body of a 200 to
 * out, or returns false with *failure filled and out as it was. Any thread. */
#ifndef MLA_SERVER_API_SIMPLE_H
#define MLA_SERVER_API_SIMPLE_H

#include "server/api/failure.h"
#include "server/api/settings.h"

/* POST /tokenize: {"prompt"} or {"messages"} -> {"count", "max_model_len", "tokens"}, with
 * "token_strs" where "return_token_strs". */
bool api_tokenize(const api_settings *settings, const char *body, size_t bytes,
                  byte_buffer *out, api_failure *failure);
/* POST /detokenize: {"tokens"} -> {"prompt"} */
bool api_detokenize(const api_settings *settings, const char *body, size_t bytes,
                    byte_buffer *out, api_failure *failure);

/* GET /v1/models; name: NULL, or what stands behind /v1/models/, decoded. Another model than
 * the served one is 404. */
bool api_models(const api_settings *settings, const char *name, byte_buffer *out,
                api_failure *failure);
/* GET /version */
bool api_version(const api_settings *settings, byte_buffer *out, api_failure *failure);

/* GET /metrics: text/plain; version=0.0.4 */
bool api_metrics_write(const api_settings *settings, byte_buffer *out,
                       api_failure *failure);

#endif
