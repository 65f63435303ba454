/* demo.h - the demo model, opened for a test, and what its reference says. Any failure on
 * the way fails the test. */
#ifndef TEST_DEMO_H
#define TEST_DEMO_H

#include <jansson.h>

#include "engine/engine.h"
#include "support/must.h"

typedef struct demo_options {
    const char *dir;      /* NULL: models/demo */
    int32_t threads;      /* 0: all */
    uint32_t isa_mask;    /* 0: all */
    mla_kv_format kv;     /* 0: f32 */
    int32_t max_requests; /* 0: 1 */
    int64_t max_context;  /* 0: the model's */
    uint64_t kv_bytes;    /* see engine_options, with the next ones */
    int32_t draft_tokens;
    drafter *drafter;
    bool has_prefix_cache;
    const tokenizer *words;
    uint64_t memory_limit_bytes; /* 0: none */
} demo_options;

typedef struct demo {
    mla_context *context;
    model *model;
    engine *engine; /* NULL after demo_load */
} demo;

demo demo_load(const demo_options *options); /* a model that is not prepared */
demo demo_open(const demo_options *options);
void demo_close(demo *self);

/* Allocations that the context's ledger has counted in all. */
uint64_t demo_num_allocs(const demo *self);

enum { DEMO_MAX_GENERATIONS = 16, DEMO_MAX_TOKENS = 128 };

/* One of tests/data/demo/generations.json. */
typedef struct demo_generation {
    char name[32];
    int32_t prompt[DEMO_MAX_TOKENS], num_prompt;
    int32_t ids[DEMO_MAX_TOKENS], num_ids;
    double margins[DEMO_MAX_TOKENS]; /* [num_ids], in log-probability to the second best */
    engine_finish finish;
} demo_generation;

/* out: [DEMO_MAX_GENERATIONS]; returns their number. */
int32_t demo_read_generations(demo_generation *out);

/* owned, json_decref. */
json_t *demo_read_json(const char *name);

/* tests/data/demo/score.txt cut into windows of 1023 tokens, BOS before each, against
 * score.json: windows [first, first + num), each within 0.02 %; num 0: all, and their sum. */
void demo_check_score(const demo *self, int32_t first, int32_t num);

/* What engine_run made of some requests. */
typedef struct demo_output {
    int32_t ids[DEMO_MAX_GENERATIONS][DEMO_MAX_TOKENS];
    int32_t num[DEMO_MAX_GENERATIONS];
    engine_result results[DEMO_MAX_GENERATIONS];
    engine_request requests[DEMO_MAX_GENERATIONS];
} demo_output;
void demo_generate(const demo *self, const engine_request *requests, int32_t num,
                   demo_output *out);

#endif
