/* count.c - pairs, operations and bytes by counting: see count.h. */
#include "attention/count.h"

#include "attention/visibility.h"

mlai_attention_count mlai_attention_count_of(const mla_caps *caps, int32_t num_requests,
                                             const int32_t *context_lens,
                                             const int32_t *query_starts)
{
    double row_bytes =
        (double)mla_kv_row_bytes(caps->kv_format, caps->latent_dim, caps->rope_dim);
    double pairs = 0.0;
    double rows_read = 0.0;
    for (int32_t r = 0; r < num_requests; r++) {
        int64_t length = mlai_visible_length(context_lens[r], (int64_t)caps->table_width *
                                                                  caps->page_tokens);
        int32_t num_rows = query_starts[r + 1] - query_starts[r];
        int64_t first_read = length;
        for (int32_t row = 0; row < num_rows; row++) {
            mlai_key_range seen =
                mlai_visible_keys(length, num_rows, row, caps->causal != 0, caps->window);
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
