/* answer_text.c - tokens to certain text: see answer_text.h. What is held and what is new are
 * put together in the caller's buffer, searched there, and the uncertain tail is held again. */
#include "engine/answer_text.h"

#include <string.h>

enum { GROWTH = 3, /* a bad byte becomes the three of U+FFFD */ MAX_TAIL = 4 };

void answer_text_begin(answer_text *self, const tokenizer *words,
                       const engine_request *request)
{
    self->words = words;
    self->request = request;
    self->state = (detokenizer){.num_held = 0};
    self->stop_string = -1;
    self->num_held = 0;
}

size_t answer_text_room(const answer_text *self, int32_t token)
{
    size_t bytes = 0;
    (void)tokenizer_bytes_of(self->words, token, &bytes);
    return self->num_held + GROWTH * (bytes + MAX_TAIL);
}

static bool has_text(const answer_text *self, const engine_event *event)
{
    bool is_left_out = event->is_end && !self->request->keeps_stop;
    bool is_hidden =
        !self->request->keeps_special && tokenizer_is_special(self->words, event->token);
    return !is_left_out && !is_hidden;
}

static size_t find(const char *text, size_t num, const engine_text *stop)
{
    for (size_t at = 0; at + stop->bytes <= num; at++) {
        if (memcmp(text + at, stop->data, stop->bytes) == 0) {
            return at;
        }
    }
    return num;
}

/* The first stop string in text [num]: its place, or num. */
static size_t find_stop(answer_text *self, const char *text, size_t num)
{
    const engine_request *request = self->request;
    size_t first = num;
    for (int32_t i = 0; i < request->num_stops; i++) {
        size_t at = find(text, num, &request->stops[i]);
        if (at < first) {
            first = at;
            self->stop_string = i;
        }
    }
    return first;
}

/* The longest end of text [num] that begins a stop string. */
static size_t uncertain_bytes(const engine_request *request, const char *text, size_t num)
{
    size_t longest = 0;
    for (int32_t i = 0; i < request->num_stops; i++) {
        const engine_text *stop = &request->stops[i];
        size_t most = stop->bytes - 1 < num ? stop->bytes - 1 : num;
        for (size_t bytes = most; bytes > longest; bytes--) {
            if (memcmp(text + num - bytes, stop->data, bytes) == 0) {
                longest = bytes;
            }
        }
    }
    return longest;
}

size_t answer_text_add(answer_text *self, const engine_event *event, char *out)
{
    const engine_request *request = self->request;
    size_t num = self->num_held;
    size_t bytes = 0;
    if (self->stop_string >= 0 || !has_text(self, event)) {
        return 0;
    }
    const char *piece = tokenizer_bytes_of(self->words, event->token, &bytes);
    memcpy(out, self->held, num);
    num += detokenizer_feed(&self->state, piece, bytes, out + num);
    self->num_held = 0;
    if (event->index + 1 < request->min_tokens) {
        return num;
    }
    size_t at = find_stop(self, out, num);
    if (self->stop_string >= 0) {
        return at + (request->keeps_stop ? request->stops[self->stop_string].bytes : 0);
    }
    self->num_held = uncertain_bytes(request, out, num);
    memcpy(self->held, out + num - self->num_held, self->num_held);
    return num - self->num_held;
}

size_t answer_text_end(answer_text *self, char *out)
{
    size_t num = self->num_held;
    if (self->stop_string >= 0) {
        return 0;
    }
    memcpy(out, self->held, num);
    self->num_held = 0;
    return num + detokenizer_finish(&self->state, out + num);
}
