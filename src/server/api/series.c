/* series.c - the shapes of the histograms: see series.h. */
#include "server/api/series.h"

#define MS INT64_C(1000000)

/* 0.1 ms to 500 s, three a decade. */
static const int64_t time_bounds[] = {
    MS / 10,   MS / 5,     MS / 2,     MS,         2 * MS,      5 * MS,      10 * MS,
    20 * MS,   50 * MS,    100 * MS,   200 * MS,   500 * MS,    1000 * MS,   2000 * MS,
    5000 * MS, 10000 * MS, 20000 * MS, 50000 * MS, 100000 * MS, 500000 * MS,
};
static const int64_t token_bounds[] = {
    1,    2,    5,    10,    20,    50,    100,    200,    500,
    1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000,
};

enum {
    NUM_TIMES = sizeof time_bounds / sizeof time_bounds[0],
    NUM_TOKENS = sizeof token_bounds / sizeof token_bounds[0],
};
_Static_assert((int)NUM_TIMES < (int)API_MAX_BUCKETS &&
                   (int)NUM_TOKENS < (int)API_MAX_BUCKETS,
               "the last bucket has no bound");

#define TIMES(name, vllm_name, help)                                                       \
    {                                                                                      \
        name, help, vllm_name, time_bounds, NUM_TIMES, true                                \
    }
#define TOKENS(name, vllm_name, help)                                                      \
    {                                                                                      \
        name, help, vllm_name, token_bounds, NUM_TOKENS, false                             \
    }

static const api_series_shape shapes[API_NUM_SERIES] = {
    [API_TIME_TO_FIRST_TOKEN] =
        TIMES("time_to_first_token_seconds", "time_to_first_token_seconds",
              "From the request's admission to its first token."),
    [API_INTER_TOKEN] = TIMES("inter_token_seconds", "inter_token_latency_seconds",
                              "Between one token and the next."),
    [API_END_TO_END] = TIMES("request_seconds", "e2e_request_latency_seconds",
                             "From the request's admission to its end."),
    [API_QUEUE_TIME] = TIMES("request_queue_seconds", "request_queue_time_seconds",
                             "Waiting for a place and pages."),
    [API_PREFILL_TIME] = TIMES("request_prefill_seconds", "request_prefill_time_seconds",
                               "From its place to the first token."),
    [API_DECODE_TIME] = TIMES("request_decode_seconds", "request_decode_time_seconds",
                              "From the first token to the last."),
    [API_INFERENCE_TIME] =
        TIMES("request_inference_seconds", "request_inference_time_seconds",
              "From its place to the last token."),
    [API_TIME_PER_TOKEN] =
        TIMES("request_seconds_per_token", "request_time_per_output_token_seconds",
              "A request's decode time over its tokens after the first."),
    [API_PROMPT_TOKENS] =
        TOKENS("request_prompt_tokens", "request_prompt_tokens", "Tokens of a prompt."),
    [API_NEW_TOKENS] = TOKENS("request_generation_tokens", "request_generation_tokens",
                              "New tokens of a request."),
    [API_MAX_TOKENS] = TOKENS("request_max_tokens", "request_params_max_tokens",
                              "New tokens that a request may have."),
    [API_NUM_CHOICES] = TOKENS("request_choices", "request_params_n",
                               "Choices that a call asked for, of each prompt."),
};

const api_series_shape *api_series_shape_of(api_series series)
{
    return &shapes[series];
}
