/* attend_case.h - an attention problem with all its arrays, made hostile: what must not be
 * read is NaN (unused rows, padding, pages nobody owns) or nonsense (table slots past the
 * end), and every array ends at an unmapped page.
 *
 *   attend_case c = {.caps = ..., .num_requests = 2, .lens = {65, 4}, .rows = {1, 4}};
 *   attend_case_build(&c, &random);
 *   ... c.buffers has the inputs; c.expected the oracle's answer ...
 *   attend_case_drop(&c); */
#ifndef TEST_ATTEND_CASE_H
#define TEST_ATTEND_CASE_H

#include <stdbool.h>

#include "attention/oracle.h"
#include "support/random.h"

enum { ATTEND_MAX_REQUESTS = 8 };

/* Memory whose last byte is followed by an unmapped page. */
typedef struct fenced {
    unsigned char *data;
    size_t bytes;
    void *map;
    size_t map_bytes;
} fenced;

fenced fenced_take(size_t bytes, int fill);
void fenced_drop(fenced *memory);

typedef struct attend_case {
    /* The caller's: caps needs the geometry only; the rest is filled in by build. */
    mla_caps caps;
    int32_t num_requests;
    int32_t lens[ATTEND_MAX_REQUESTS];
    int32_t rows[ATTEND_MAX_REQUESTS];
    double logit_deviation; /* of a score over the keys; 0: 1.5, an ordinary one */
    bool has_bad_pages;     /* some slots inside the length are -1, N and 2^31-1 */

    mla_buffers buffers; /* inputs only */
    mla_batch batch;
    fenced pool, query, table, lengths, starts, kv_scale, query_scale;
    mlai_oracle_out expected;
    int64_t num_queries; /* Q * H */
} attend_case;

void attend_case_build(attend_case *c, rng *random);
void attend_case_shape(attend_case *c); /* completes caps and batch only, as build does */
void attend_case_drop(attend_case *c);

/* How an implementation sums, which is what the bound of docs/numerics.md depends on. */
typedef struct attend_sums {
    int64_t split_tokens; /* longest split */
    int32_t num_merges;   /* of splits, one after another */
    double u_out;         /* unit round-off of the output's dtype: 2^-24, 2^-8 */
    bool is_cuda;         /* then by docs/kernels/attend_cuda.md, splits or not */
} attend_sums;

typedef struct attend_verdict {
    int64_t num_wrong;  /* values beyond the bound, or special where they should not be */
    double worst_share; /* largest |error| / bound */
    double worst_in_u;  /* largest (|error| - u_out |ref|) / (u A) */
    bool is_mistrusted; /* the case proves nothing: see attend_case.c */
    char first_wrong[160];
} attend_verdict;

/* Of what a run of the case does: the longest split, and how often splits of one row are
 * merged. */
attend_sums attend_case_sums(const attend_case *c);
attend_sums attend_case_sums_on_cuda(const attend_case *c);

/* out: [Q][H][D] output_dtype. The same as f32, malloc'd. */
float *attend_case_out_as_f32(const attend_case *c, const unsigned char *out);

/* out [Q][H][D], lse [Q][H], both f32, against expected. */
attend_verdict attend_case_judge(const attend_case *c, const float *out, const float *lse,
                                 attend_sums sums);

#endif
