/* params.h - what a launch hands to the CUDA programs, by value. This file is read by the C
 * compiler and, as the first lines of every program, by NVRTC: it includes nothing and uses
 * only what is the same in both. programs.h checks the layout. */
#ifndef MLA_ATTENTION_CUDA_PARAMS_H
#define MLA_ATTENTION_CUDA_PARAMS_H

enum { MLAI_CUDA_QUERY_BF16 = 2, MLAI_CUDA_QUERY_E4M3 = 3 };  /* mla_dtype's values */
enum { MLAI_CUDA_OUTPUT_F32 = 1, MLAI_CUDA_OUTPUT_BF16 = 2 }; /* mla_dtype's values */

/* Where a request's keys are cut: see requests.cu. Constants of a plan. */
struct mlai_cuda_split_rule {
    int target;     /* splits of a request when no bound below says otherwise */
    int min_tokens; /* of a split */
    int max_tokens; /* of a split, unless max_splits would be passed */
    int unit;       /* every split but the last is a multiple: the tokens of a tile */
    int max_splits; /* slots in the workspace for each row */
    int reserved;
};

/* For the programs attend and merge of one launch. */
struct mlai_cuda_attend_params {
    const unsigned char *pool;
    const void *query;        /* [Q][H][D+R] */
    const int *tables;        /* [B][T] */
    const int *lens;          /* [B] */
    const int *starts;        /* [B+1] */
    const float *kv_scale;    /* or NULL: 1 */
    const float *query_scale; /* or NULL: 1 */
    void *output;             /* [Q][H][D] */
    float *lse;               /* [Q][H] */
    float *partial;           /* [Q][H][max_splits][D], normalised; or NULL: one split */
    float *partial_lse;       /* [Q][H][max_splits], natural */
    long long num_pages;
    long long page_stride_bytes;
    struct mlai_cuda_split_rule split;
    float softmax_scale;
    int num_heads;
    int page_tokens;
    int table_width;
    int causal;
    int window;
    int num_requests;
    int num_query_rows;
    int query_dtype;
    int output_dtype;
    unsigned page_magic; /* key / page_tokens = key * page_magic >> page_shift */
    int page_shift;
};

struct mlai_cuda_append_params {
    const void *rows;       /* [num_rows][D+R] */
    const long long *slots; /* [num_rows] */
    const float *kv_scale;  /* or NULL: 1 */
    unsigned char *pool;
    long long num_rows;
    long long num_pages;
    long long page_stride_bytes;
    int page_tokens;
    int rows_are_f32; /* else bf16 */
};

#endif
