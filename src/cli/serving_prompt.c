/* serving_prompt.c - what `mla qualify serving` asks: coding tasks in words, and long prompts of
 * token ids that only their number decides. */
#include <jansson.h>

#include "cli/noise.h"
#include "cli/serving_answer.h"

enum { FIRST_ID = 256, LEAST_IDS = 512, SEED = 0x5eed, SEED_STEP = 7919 };

static const char *const tasks[] = {
    "Write a C function named buffer_free. Frees the buffer.",
    "Write a C function that counts the words of a string.",
    "Write a C function named list_reverse that reverses a linked list in place.",
    "Write a C function that says whether a number is prime.",
    "Write a C function named hash_string. Returns a 64-bit hash of a string.",
    "Write a C function that copies a file to another name.",
    "Write a C function named queue_push. Adds an item at the end.",
    "Write a C function that sorts an array of integers.",
};
enum { NUM_TASKS = sizeof tasks / sizeof tasks[0] };

/* Small ids are often control tokens. */
static json_t *ids_of(const serving_ask *ask)
{
    json_t *ids = json_array();
    uint32_t state = (uint32_t)SEED + (uint32_t)SEED_STEP * (uint32_t)(ask->number + 1);
    int32_t first = ask->vocab_size >= LEAST_IDS ? FIRST_ID : 0;
    for (int32_t i = 0; i < ask->prompt_tokens; i++) {
        uint32_t drawn = noise_draw(&state);
        json_int_t id = first + (json_int_t)(drawn % (uint32_t)(ask->vocab_size - first));
        if (json_array_append_new(ids, json_integer(id)) != 0) {
            json_decref(ids);
            return NULL;
        }
    }
    return ids;
}

static json_t *prompt_of(const serving_ask *ask)
{
    return ask->is_chat ? json_pack("[{s:s, s:s}]", "role", "user", "content",
                                    tasks[ask->number % NUM_TASKS])
                        : ids_of(ask);
}

/* Greedy, and to the last token, so that the usage is known beforehand. */
static json_t *body_of(const serving_ask *ask)
{
    json_t *body =
        json_pack("{s:o, s:I, s:i, s:b, s:s}", ask->is_chat ? "messages" : "prompt",
                  prompt_of(ask), "max_tokens", (json_int_t)ask->new_tokens, "temperature",
                  0, "ignore_eos", 1, "cache_salt", ask->salt);
    if (body && ask->is_stream) {
        (void)json_object_set_new(body, "stream", json_true());
        (void)json_object_set_new(body, "stream_options",
                                  json_pack("{s:b}", "include_usage", 1));
    }
    return body;
}

char *serving_ask_write(const serving_ask *ask)
{
    json_t *body = body_of(ask);
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    json_decref(body);
    return text;
}

void serving_text_release(char *text)
{
    json_free_t release = NULL;
    json_get_alloc_funcs(NULL, &release);
    release(text);
}
