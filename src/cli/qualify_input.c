/* qualify_input.c - made-up requests and the oracle's answer: see qualify_input.h. */
#include "cli/qualify_input.h"

#include <math.h>

#include "attention/geometry.h"
#include "attention/oracle.h"
#include "base/convert.h"
#include "base/status.h"

enum { ALIGN_BYTES = 64, CODES = 400 /* of e4m3, whose largest is 448 */ };

static const int32_t lengths[QUALIFY_REQUESTS] = {
    1, 63, 64, 100, 2, 65, 96, 128, 60, 61, 62, 63, 64, 65, QUALIFY_TOKENS};
static const int32_t num_rows[QUALIFY_REQUESTS] = {1, 2, 1, 4, 3, 3, 1, 2,
                                                   1, 1, 1, 2, 1, 1, 1};
static const double nothing[QUALIFY_LATENT];

static mla_status take(qualify_input *input, size_t bytes, void **out, mla_error *err)
{
    MLAI_TRY(mla_memory_take(input->context, MLA_SPACE_HOST, MLA_FOR_OTHER, bytes,
                             ALIGN_BYTES, out, err));
    input->block[input->num_blocks].data = *out;
    input->block[input->num_blocks++].bytes = bytes;
    return MLA_OK;
}

void qualify_input_close(qualify_input *input)
{
    while (input->num_blocks > 0) {
        input->num_blocks--;
        mla_memory_give(input->context, MLA_SPACE_HOST, MLA_FOR_OTHER,
                        input->block[input->num_blocks].bytes,
                        input->block[input->num_blocks].data);
    }
}

/* In [-1, 1). */
static float noise(uint32_t *state)
{
    *state = *state * 1664525U + 1013904223U;
    return (float)(int32_t)*state * 0x1p-31F;
}

static float sign_of(int32_t column)
{
    return (uint32_t)column * 2654435761U >> 31 ? -1.0F : 1.0F;
}

/* What values of a size and a request are drawn from: base * sign + spread * noise. */
typedef struct draw {
    float base, spread, query;
} draw;

static draw draw_of(qualify_size size, int32_t request)
{
    static const draw ordinary = {0, 1, 3};
    static const draw apart = {0, 32, 32};
    static const draw together = {32, 2, 2};
    return size == QUALIFY_ORDINARY ? ordinary : request % 2 ? together : apart;
}

static float largest_key(qualify_size size)
{
    return size == QUALIFY_ORDINARY ? 1.0F : 34.0F;
}

static float largest_query(qualify_size size)
{
    return size == QUALIFY_ORDINARY ? 3.0F : 32.0F;
}

static void fill_keys(qualify_input *input, qualify_size size)
{
    uint32_t state = 1;
    size_t row_bytes = mla_kv_row_bytes(input->caps.kv_format, input->caps.latent_dim,
                                        input->caps.rope_dim);
    for (int32_t request = 0; request < QUALIFY_REQUESTS; request++) {
        draw from = draw_of(size, request);
        for (int32_t i = input->first_key[request]; i < input->first_key[request + 1];
             i++) {
            float *key = input->keys + (size_t)i * QUALIFY_WIDTH;
            for (int32_t d = 0; d < QUALIFY_WIDTH; d++) {
                key[d] = from.base * sign_of(d) + from.spread * noise(&state);
            }
            mlai_row_encode(input->caps.kv_format, input->caps.latent_dim,
                            input->caps.rope_dim, key, input->kv_scale,
                            input->stored + (size_t)i * row_bytes);
            input->places[i] = i;
        }
    }
}

static void fill_query(const qualify_input *input, qualify_size size, uint32_t state,
                       unsigned char *query)
{
    size_t heads = (size_t)input->caps.num_heads;
    for (int32_t row = 0; row < QUALIFY_ROWS; row++) {
        float spread = draw_of(size, qualify_request_of(input, row)).query;
        size_t first = (size_t)row * heads * QUALIFY_WIDTH;
        for (size_t i = first; i < first + heads * QUALIFY_WIDTH; i++) {
            float value = spread * noise(&state);
            if (input->caps.query_dtype == MLA_BF16) {
                ((uint16_t *)(void *)query)[i] = mlai_bf16_from_f32(value);
            } else {
                query[i] = mlai_e4m3_from_f32(value / input->query_scale);
            }
        }
    }
}

static void set_lengths(qualify_input *input)
{
    for (int32_t i = 0; i < QUALIFY_REQUESTS; i++) {
        input->starts[i + 1] = input->starts[i] + num_rows[i];
        input->first_key[i + 1] = input->first_key[i] + lengths[i];
        input->content[QUALIFY_FULL].lens[i] = lengths[i];
        input->content[QUALIFY_SHORT].lens[i] = i % 4 == 2 ? 0 : (lengths[i] + 1) / 2;
    }
    input->content[QUALIFY_SHORT].lens[QUALIFY_REQUESTS - 1] = QUALIFY_PAGE + 1;
}

static mla_status take_all(qualify_input *input, mla_error *err)
{
    size_t num_keys = (size_t)input->first_key[QUALIFY_REQUESTS];
    size_t pairs = QUALIFY_ROWS * (size_t)input->caps.num_heads;
    size_t query_bytes = pairs * QUALIFY_WIDTH * mlai_dtype_bytes(input->caps.query_dtype);
    size_t row_bytes = mla_kv_row_bytes(input->caps.kv_format, input->caps.latent_dim,
                                        input->caps.rope_dim);
    MLAI_TRY(
        take(input, num_keys * QUALIFY_WIDTH * sizeof(float), (void **)&input->keys, err));
    MLAI_TRY(take(input, num_keys * row_bytes, (void **)&input->stored, err));
    MLAI_TRY(take(input, num_keys * sizeof(int32_t), (void **)&input->places, err));
    for (int i = 0; i < QUALIFY_EMPTY; i++) {
        qualify_content *content = &input->content[i];
        size_t bytes = pairs * sizeof(double);
        MLAI_TRY(take(input, query_bytes, (void **)&content->query, err));
        MLAI_TRY(take(input, bytes * QUALIFY_LATENT, (void **)&content->out, err));
        MLAI_TRY(take(input, bytes * QUALIFY_LATENT, (void **)&content->magnitude, err));
        MLAI_TRY(take(input, bytes, (void **)&content->lse, err));
        MLAI_TRY(take(input, bytes, (void **)&content->score_magnitude, err));
    }
    input->content[QUALIFY_EMPTY].query = input->content[QUALIFY_FULL].query;
    return MLA_OK;
}

int32_t qualify_request_of(const qualify_input *input, int32_t row)
{
    int32_t request = 0;
    while (input->starts[request + 1] <= row) {
        request++;
    }
    return request;
}

int32_t qualify_row_keys(const qualify_input *input, int32_t request, int32_t row,
                         int32_t length)
{
    int32_t keys = length - (input->starts[request + 1] - 1 - row);
    return keys > 0 ? keys : 0;
}

bool qualify_is_asked(const qualify_input *input, int32_t row, int32_t head)
{
    return (row + head) % input->head_stride == 0;
}

typedef struct oracle_job {
    const qualify_input *input;
    const qualify_content *content;
} oracle_job;

/* To the oracle one head of one row is a request of its own. */
static void ask_oracle(void *arg, int64_t pair, int32_t worker)
{
    (void)worker;
    const oracle_job *job = arg;
    const qualify_input *input = job->input;
    const qualify_content *content = job->content;
    const int32_t starts[2] = {0, 1};
    int32_t row = (int32_t)(pair / input->caps.num_heads);
    int32_t request = qualify_request_of(input, row);
    int32_t keys = qualify_row_keys(input, request, row, content->lens[request]);
    if (!qualify_is_asked(input, row, (int32_t)(pair % input->caps.num_heads))) {
        return;
    }
    size_t query_bytes = QUALIFY_WIDTH * mlai_dtype_bytes(input->caps.query_dtype);
    mla_caps one = input->caps;
    mla_batch batch = MLA_INIT(mla_batch);
    mla_buffers in = MLA_INIT(mla_buffers);
    one.num_heads = 1;
    batch.num_requests = 1;
    batch.num_query_rows = 1;
    in.kv_pool.data = input->stored;
    in.query.data = content->query + (size_t)pair * query_bytes;
    in.block_table.data = input->places + input->first_key[request];
    in.context_lens.data = &keys;
    in.query_starts.data = starts;
    in.kv_scale.data = &input->kv_scale;
    in.query_scale.data = &input->query_scale;
    const mlai_oracle_out out = {content->out + pair * QUALIFY_LATENT, content->lse + pair,
                                 content->magnitude + pair * QUALIFY_LATENT,
                                 content->score_magnitude + pair};
    mlai_oracle_attend(&one, &in, &batch, &out);
}

mla_status qualify_input_open(const qualify_case *c, qualify_size size, qualify_input *out,
                              mla_error *err)
{
    mla_caps caps = qualify_case_caps(c, QUALIFY_WHOLE, 0);
    set_lengths(out);
    caps.page_tokens = 1;
    caps.page_stride_bytes = 0;
    caps.num_pages = out->first_key[QUALIFY_REQUESTS];
    caps.table_width = QUALIFY_TOKENS;
    out->caps = caps;
    bool is_sampled =
        c->num_ranks > 1 && mlai_pool_num_threads(out->pool) < QUALIFY_MANY_THREADS;
    out->head_stride = is_sampled ? QUALIFY_HEAD_STRIDE : 1;
    out->kv_scale = largest_key(size) / CODES;
    out->query_scale = largest_query(size) / CODES;
    MLAI_TRY(take_all(out, err));
    fill_keys(out, size);
    for (int i = 0; i < QUALIFY_EMPTY; i++) {
        const oracle_job job = {out, &out->content[i]};
        fill_query(out, size, 2 + (uint32_t)i, out->content[i].query);
        mlai_pool_run(out->pool, (int64_t)QUALIFY_ROWS * caps.num_heads, ask_oracle,
                      (void *)(uintptr_t)&job);
    }
    return MLA_OK;
}

attention_expectation qualify_expectation(const qualify_input *input,
                                          const qualify_content *content, int32_t row,
                                          int32_t head)
{
    if (!content->out) {
        return (attention_expectation){nothing, nothing, -HUGE_VAL, 0, 0};
    }
    int64_t pair = (int64_t)row * input->caps.num_heads + head;
    int32_t request = qualify_request_of(input, row);
    return (attention_expectation){
        content->out + pair * QUALIFY_LATENT, content->magnitude + pair * QUALIFY_LATENT,
        content->lse[pair], content->score_magnitude[pair],
        qualify_row_keys(input, request, row, content->lens[request])};
}
