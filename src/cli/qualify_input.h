/* qualify_input.h - what the cases of one pair of formats and one number of heads attend to:
 * requests, keys, queries, and what the double oracle says of them. The oracle reads the
 * stored rows one after the other, without pages: tables and padding are a case's own. */
#ifndef MLA_CLI_QUALIFY_INPUT_H
#define MLA_CLI_QUALIFY_INPUT_H

#include "cli/attention_judge.h"
#include "cli/qualify_case.h"
#include "device/pool.h"

/* Ordinary: scores that differ by a few. Large: of odd requests scores of thousands that
 * differ by a few, of even ones scores that differ by thousands. */
typedef enum qualify_size {
    QUALIFY_ORDINARY,
    QUALIFY_LARGE,
    QUALIFY_NUM_SIZES
} qualify_size;

/* Full: all lengths. Short: others, 0 among them, and other queries. Empty: all are 0. */
enum { QUALIFY_FULL, QUALIFY_SHORT, QUALIFY_EMPTY, QUALIFY_NUM_CONTENTS };
enum { QUALIFY_MAX_BLOCKS = 16 };

typedef struct qualify_content {
    int32_t lens[QUALIFY_REQUESTS];
    unsigned char *query;          /* [ROWS][H][W] query_dtype */
    double *out, *magnitude;       /* [ROWS][H][D]; NULL of the empty one */
    double *lse, *score_magnitude; /* [ROWS][H] */
} qualify_content;

typedef struct qualify_input {
    mla_context *context;
    mlai_pool *pool;
    mla_caps caps;                           /* as the oracle has it: pages of one token */
    int32_t starts[QUALIFY_REQUESTS + 1];    /* of query rows */
    int32_t first_key[QUALIFY_REQUESTS + 1]; /* of the keys below */
    float *keys;                             /* [T][W] */
    unsigned char *stored;                   /* [T] rows as the format has them */
    int32_t *places;                         /* [T] 0, 1, 2, ...: the oracle's table */
    float kv_scale, query_scale;
    int32_t head_stride; /* the oracle is asked of every so manieth head of a row */
    qualify_content content[QUALIFY_NUM_CONTENTS];
    struct {
        void *data; /* owned */
        size_t bytes;
    } block[QUALIFY_MAX_BLOCKS];
    int32_t num_blocks;
} qualify_input;

/* With fewer threads than these the oracle is asked of one head in so many, where there are
 * many heads. */
enum { QUALIFY_MANY_THREADS = 8, QUALIFY_HEAD_STRIDE = 6 };

/* out: zeroed but for context and pool, which are borrowed; whatever comes,
 * qualify_input_close. */
mla_status qualify_input_open(const qualify_case *c, qualify_size size, qualify_input *out,
                              mla_error *err);
void qualify_input_close(qualify_input *input);

/* The keys that a row sees of a request of `length` tokens. */
int32_t qualify_row_keys(const qualify_input *input, int32_t request, int32_t row,
                         int32_t length);
int32_t qualify_request_of(const qualify_input *input, int32_t row);

/* Whether the oracle has been asked of it: of all heads of one row or another. */
bool qualify_is_asked(const qualify_input *input, int32_t row, int32_t head);

/* Of a row and head that it was asked of. */
attention_expectation qualify_expectation(const qualify_input *input,
                                          const qualify_content *content, int32_t row,
                                          int32_t head);

#endif
