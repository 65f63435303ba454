#include "attention/count.h"

typedef struct keys {
    int64_t begin, end;
} keys;

/* The last query sits on the last key. */
static keys keys_of(const mla_caps *caps, int64_t length, int64_t rows_after)
{
    int64_t end = caps->causal ? length - rows_after : length;
    end = end < 0 ? 0 : end;
    int64_t begin = caps->window > 0 && end > caps->window ? end - caps->window : 0;
    return (keys){begin, end};
}

static int64_t length_of(const mla_caps *caps, int32_t context_len)
{
    int64_t most = (int64_t)caps->table_width * caps->page_tokens;
    return context_len < 0 ? 0 : context_len > most ? most : context_len;
}

mlai_attention_count mlai_attention_count_of(const mla_caps *caps, int32_t num_requests,
                                             const int32_t *context_lens,
                                             const int32_t *query_starts)
{
    double row_bytes =
        (double)mla_kv_row_bytes(caps->kv_format, caps->latent_dim, caps->rope_dim);
    double pairs = 0.0;
    double rows_read = 0.0;
    for (int32_t r = 0; r < num_requests; r++) {
        int64_t length = length_of(caps, context_lens[r]);
        int64_t num_rows = (int64_t)query_starts[r + 1] - query_starts[r];
        int64_t first_read = length;
        for (int64_t row = 0; row < num_rows; row++) {
            keys seen = keys_of(caps, length, num_rows - 1 - row);
            pairs += (double)(seen.end - seen.begin);
            first_read = seen.begin < first_read ? seen.begin : first_read;
        }
        rows_read += num_rows > 0 ? (double)(length - first_read) : 0.0;
    }
    double flops_of_pair = 4.0 * caps->latent_dim + 2.0 * caps->rope_dim;
    return (mlai_attention_count){
        .pairs = pairs,
        .flops = pairs * caps->num_heads * flops_of_pair,
        .bytes = rows_read * row_bytes,
    };
}
