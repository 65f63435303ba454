/* ngram.c - guessing by looking the last words up in the text itself: see drafter.h. */
#include "engine/drafter.h"

enum { LONGEST = 4, SHORTEST = 2 };

/* How many tokens up to and including `at` are also the text's last ones. */
static int32_t match_at(const draft *of, int64_t at)
{
    int32_t num = 0;
    while (num < LONGEST && num <= at &&
           of->tokens[at - num] == of->tokens[of->num_tokens - 1 - num]) {
        num++;
    }
    return num;
}

/* Where the longest match ends, or -1. */
static int64_t find_match(const draft *of)
{
    int32_t longest = SHORTEST - 1;
    int64_t found = -1;
    for (int64_t at = of->num_tokens - 2; at >= 0 && longest < LONGEST; at--) {
        int32_t num = match_at(of, at);
        if (num > longest) {
            longest = num;
            found = at;
        }
    }
    return found;
}

/* The text, and behind it the guesses: what repeats goes on repeating. */
static int32_t token_at(const draft *of, int64_t at)
{
    return at < of->num_tokens ? of->tokens[at] : of->guesses[at - of->num_tokens];
}

static mla_status propose(drafter *self, draft *drafts, int32_t num, mla_error *err)
{
    (void)self;
    (void)err;
    for (int32_t i = 0; i < num; i++) {
        draft *out = &drafts[i];
        int64_t next = find_match(out) + 1;
        while (next > 0 && out->num_guesses < out->max_guesses) {
            out->guesses[out->num_guesses] = token_at(out, next++);
            out->num_guesses++;
        }
    }
    return MLA_OK;
}

drafter ngram_drafter(void)
{
    return (drafter){.propose = propose};
}
