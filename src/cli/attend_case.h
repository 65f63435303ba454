/* attend_case.h - the files of one attention call: case.json and the arrays beside it,
 * checked against each other. */
#ifndef MLA_CLI_ATTEND_CASE_H
#define MLA_CLI_ATTEND_CASE_H

#include "cli/npy.h"

enum { ATTEND_MAX_PATH = 4096 };

typedef struct attend_shape {
    int32_t heads, latent_dim, rope_dim, page_tokens; /* H, D, R, P */
    int32_t causal, window;
    mla_kv_format kv_format;
    mla_dtype query_dtype;
    float softmax_scale;
    int32_t num_requests, num_query_rows, table_width; /* B, Q, T */
    int64_t num_pages;                                 /* N */
} attend_shape;

typedef struct attend_case {
    mla_context *context;
    const char *dir;
    attend_shape shape;
    npy_array q;            /* [Q][H][D+R] f32 */
    npy_array kv;           /* [N][P][D+R] f32 */
    npy_array block_table;  /* [B][T] int32 */
    npy_array context_lens; /* [B] int32 */
    npy_array query_starts; /* [B+1] int32 */
    npy_array kv_scale;     /* one f32 where kv_format is fp8; else empty */
    npy_array query_scale;  /* one f32 where query_dtype is e4m3; else empty */
} attend_case;

/* out: {.context, .dir} before; whatever the result, attend_case_free. */
mla_status attend_case_read(attend_case *out, mla_error *err);
void attend_case_free(attend_case *attend);

/* A file of the case. MLA_ERR_ARGUMENT where its path is too long. */
mla_status attend_case_path(const char *dir, const char *name, char out[ATTEND_MAX_PATH],
                            mla_error *err);

#endif
