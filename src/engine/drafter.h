/* drafter.h - who guesses the next tokens, and learns what became of the guesses.
 *
 * A guess costs a row of the next step and never changes an answer: a row's token is drawn
 * from the target's logits with the random number of its position, as without a drafter, and
 * the guess is accepted where it is that token. So a drafter that samples does best to draw
 * with sample_token, the request's own sampling and the position of the token it guesses: the
 * same random number meets nearly the same distribution.
 *
 * A drafter with a model of its own reads the target's features (model_step.features) of
 * every row that was computed. Positions are absolute; those that the prefix cache gave are
 * never observed, so a drafter must not count on having seen all of them. */
#ifndef MLA_ENGINE_DRAFTER_H
#define MLA_ENGINE_DRAFTER_H

#include "engine/request.h"
#include "mla/mla.h"

/* One sequence that may be guessed for. */
typedef struct draft {
    int32_t place;         /* of the running request, 0 to max_requests - 1 */
    const int32_t *tokens; /* [num_tokens] the prompt and the answer so far; the last one is
                              not in the cache yet */
    int64_t num_tokens;
    const sampling_options *sampling;
    int32_t max_guesses; /* 1 to the engine's draft_tokens */

    int32_t num_guesses; /* out, 0 to max_guesses */
    int32_t guesses[ENGINE_MAX_DRAFT];
    float confidence
        [ENGINE_MAX_DRAFT]; /* that it and all before it are accepted; 1 at birth */
} draft;

/* Rows of one sequence that are in the cache now: a piece of a prompt, or the last token and
 * the guesses that were accepted. */
typedef struct draft_rows {
    int32_t place;
    int64_t first_position; /* 0: a new sequence has this place */
    int32_t num_rows;
    int32_t num_refused;   /* guesses of this step that were not accepted */
    const int32_t *tokens; /* [num_rows] */
    const float *features; /* [num_rows][num_layers][hidden]; NULL without feature_layers */
} draft_rows;

typedef struct drafter drafter;
struct drafter {
    const int32_t *feature_layers; /* [num_feature_layers] see model_limits; may be NULL */
    int32_t num_feature_layers;
    /* Fills the guesses of drafts [num], all together; allocates nothing. */
    mla_status (*propose)(drafter *self, draft *drafts, int32_t num, mla_error *err);
    void (*observe)(drafter *self, const draft_rows *rows); /* NULL: does not care */
};

/* Looks for the longest of the last tokens, at most 4 and at least 2, that came before; what
 * followed there is the guess, the latest place first. Has no memory. */
drafter ngram_drafter(void);

#endif
