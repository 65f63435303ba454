/* answer_text.h - the text of an answer as its tokens come: valid UTF-8, special tokens left
 * out, cut at a stop string. What may yet become a stop string is held back. The engine finds
 * stop strings with it; whoever writes the text feeds the same tokens to one of its own. */
#ifndef MLA_ENGINE_ANSWER_TEXT_H
#define MLA_ENGINE_ANSWER_TEXT_H

#include "engine/request.h"
#include "model/tokenizer.h"

typedef struct answer_text {
    const tokenizer *words;
    const engine_request *request; /* its stops and what it keeps */
    detokenizer state;
    int32_t stop_string; /* the one that was found, which ends the text, or -1 */
    size_t num_held;
    char held[ENGINE_MAX_STOP_BYTES];
} answer_text;

/* words, request: borrowed as long as the text is added to. */
void answer_text_begin(answer_text *self, const tokenizer *words,
                       const engine_request *request);
/* The most bytes that adding this token, or ending, writes. */
size_t answer_text_room(const answer_text *self, int32_t token);
/* Writes to out the bytes that became certain; returns their number. The token is the index-th;
 * is_end as the engine's event says. After a stop string was found nothing is written. */
size_t answer_text_add(answer_text *self, const engine_event *event, char *out);
/* What is still held back, at the request's end. */
size_t answer_text_end(answer_text *self, char *out);

#endif
