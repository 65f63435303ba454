/* The queue against the definition: look through all pairs, merge the one of lowest rank,
 * the leftmost of equals, and begin again. Random vocabularies over a small alphabet, where
 * pairs overlap and repeat in every way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/bpe.h"
#include "support/books.h"
#include "support/random.h"

enum { NUM_LETTERS = 3, NUM_MERGES = 40, MAX_TEXT = 60, NUM_TRIALS = 300, PER_TRIAL = 20 };

typedef struct made_vocabulary {
    arena arena;
    vocabulary v;
} made_vocabulary;

static void add_text(made_vocabulary *m, int32_t id, const char *a, size_t a_bytes,
                     const char *b, size_t b_bytes)
{
    void *bytes = NULL;
    assert_int_equal(arena_take(&m->arena, a_bytes + b_bytes, 1, "a token", &bytes, NULL),
                     MLA_OK);
    memcpy(bytes, a, a_bytes);
    memcpy((char *)bytes + a_bytes, b, b_bytes);
    vocabulary_token text = {
        .bytes = bytes, .num_bytes = (uint32_t)(a_bytes + b_bytes), .is_byte_level = true};
    assert_true(vocabulary_add(&m->v, id, text));
}

/* Merges of two random tokens; what two merges make alike is one token. */
static void add_random_merge(made_vocabulary *m, rng *random, int32_t *num, int32_t rank)
{
    int32_t left = (int32_t)rng_between(random, 0, *num - 1);
    int32_t right = (int32_t)rng_between(random, 0, *num - 1);
    const vocabulary_token *a = &m->v.tokens[left];
    const vocabulary_token *b = &m->v.tokens[right];
    char whole[MAX_TEXT];
    if (a->num_bytes + b->num_bytes > 12 || vocabulary_find_merge(&m->v, left, right)) {
        return;
    }
    memcpy(whole, a->bytes, a->num_bytes);
    memcpy(whole + a->num_bytes, b->bytes, b->num_bytes);
    int32_t result = vocabulary_find(&m->v, whole, a->num_bytes + b->num_bytes);
    if (result < 0) {
        result = (*num)++;
        add_text(m, result, a->bytes, a->num_bytes, b->bytes, b->num_bytes);
    }
    vocabulary_add_merge(&m->v, (token_merge){left, right, rank, result});
}

static void make(made_vocabulary *m, mla_context *books, rng *random)
{
    int32_t num = NUM_LETTERS;
    m->arena = (arena){.ledger = &books->ledger, .purpose = MLA_FOR_CONTEXT};
    assert_int_equal(
        vocabulary_start(&m->v, &m->arena, NUM_LETTERS + NUM_MERGES, NUM_MERGES, NULL),
        MLA_OK);
    for (int32_t i = 0; i < NUM_LETTERS; i++) {
        const char letter = (char)('a' + i);
        add_text(m, i, &letter, 1, "", 0);
    }
    for (int32_t rank = 0; rank < NUM_MERGES; rank++) {
        add_random_merge(m, random, &num, rank);
    }
}

static size_t encode_by_definition(const vocabulary *v, const char *text, size_t bytes,
                                   int32_t *ids)
{
    size_t num = bytes;
    for (size_t i = 0; i < bytes; i++) {
        ids[i] = v->id_of_byte[(unsigned char)text[i]];
    }
    for (;;) {
        const token_merge *best = NULL;
        size_t best_at = 0;
        for (size_t i = 0; i + 1 < num; i++) {
            const token_merge *here = vocabulary_find_merge(v, ids[i], ids[i + 1]);
            if (here && (!best || here->rank < best->rank)) {
                best = here;
                best_at = i;
            }
        }
        if (!best) {
            return num;
        }
        ids[best_at] = best->result;
        num--;
        memmove(ids + best_at + 1, ids + best_at + 2, (num - best_at - 1) * sizeof *ids);
    }
}

static void check_text(const made_vocabulary *m, bpe_scratch *scratch, rng *random)
{
    char text[MAX_TEXT];
    int32_t ids[MAX_TEXT];
    int32_t wanted[MAX_TEXT];
    size_t num = 0;
    size_t bytes = (size_t)rng_between(random, 1, MAX_TEXT);
    for (size_t i = 0; i < bytes; i++) {
        text[i] = (char)('a' + rng_between(random, 0, NUM_LETTERS - 1));
    }
    assert_int_equal(bpe_encode(&m->v, scratch, text, bytes, ids, &num, NULL), MLA_OK);
    assert_int_equal(num, encode_by_definition(&m->v, text, bytes, wanted));
    assert_memory_equal(ids, wanted, num * sizeof *ids);
}

static void the_queue_merges_as_the_definition_does(void **state)
{
    (void)state;
    rng random = rng_start("the_queue_merges_as_the_definition_does");
    mla_context books = books_open(NULL);
    bpe_scratch scratch = {.ledger = &books.ledger};
    for (int trial = 0; trial < NUM_TRIALS; trial++) {
        made_vocabulary m;
        make(&m, &books, &random);
        for (int i = 0; i < PER_TRIAL; i++) {
            check_text(&m, &scratch, &random);
        }
        arena_free(&m.arena);
    }
    bpe_scratch_free(&scratch);
    assert_int_equal(books_now(&books), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_queue_merges_as_the_definition_does),
    };
    return cmocka_run_group_tests_name("bpe", tests, NULL, NULL);
}
