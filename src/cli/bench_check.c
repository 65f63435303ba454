/* bench_check.c - what a run left, against the double oracle. One task is one head of one
 * query row: to the oracle a request of one row and one head. */
#include "attention/context.h"
#include "attention/geometry.h"
#include "attention/oracle.h"
#include "base/status.h"
#include "cli/attention_judge.h"
#include "cli/bench_batch.h"

enum {
    MIN_CHECKED = 4,
    MAX_CHECKED = 4096,
    MAX_WORK = 1 << 29, /* multiply-adds in double: about a second of one thread */
    SPREAD = 7919,      /* a prime: heads and rows alternate */
    ALIGN_BYTES = 64,
};

typedef struct check {
    const bench_batch *batch;
    int64_t num_pairs, num_checked; /* of (row, head) */
    attention_verdict *found;       /* [num_checked] */
    double *values;                 /* [num_checked][2][D]: out, magnitude */
} check;

static void judge_pair(const bench_batch *batch, const mlai_oracle_out *expected,
                       int64_t num_keys, int64_t pair, attention_verdict *found)
{
    const mla_caps *caps = &batch->caps;
    size_t output_bytes = (size_t)caps->latent_dim * mlai_dtype_bytes(caps->output_dtype);
    const char *output = batch->call.output.host;
    const float *lse = batch->call.lse.host;
    const attention_rule rule = {batch->call.context->backend, caps, false};
    const attention_expectation wanted = {expected->out, expected->magnitude,
                                          *expected->lse, *expected->score_magnitude,
                                          num_keys};
    const attention_answer answer = {output + (size_t)pair * output_bytes,
                                     caps->output_dtype, lse[pair]};
    attention_judge(&rule, &wanted, &answer, pair / caps->num_heads,
                    (int32_t)(pair % caps->num_heads), found);
}

static int32_t request_of(const int32_t *starts, int64_t row)
{
    int32_t request = 0;
    while (starts[request + 1] <= row) {
        request++;
    }
    return request;
}

/* Keys up to the last one that the row may see; a window leaves out the first of them. */
static int32_t keys_of(const bench_batch *batch, int32_t request, int64_t row)
{
    const int32_t *starts = batch->call.query_starts.host;
    const int32_t *lens = batch->call.context_lens.host;
    int64_t keys = lens[request];
    if (batch->caps.causal) {
        keys -= starts[request + 1] - 1 - row;
    }
    return keys > 0 ? (int32_t)keys : 0;
}

/* The buffers of one row and one head. */
static mla_buffers inputs_of(const bench_batch *batch, int64_t pair, int32_t request)
{
    const mla_caps *caps = &batch->caps;
    size_t width = (size_t)caps->latent_dim + (size_t)caps->rope_dim;
    size_t query_bytes = width * mlai_dtype_bytes(caps->query_dtype);
    mla_buffers in = MLA_INIT(mla_buffers);
    in.kv_pool.data = batch->call.kv_pool.host;
    in.query.data = (const char *)batch->call.query.host + (size_t)pair * query_bytes;
    in.block_table.data = (const int32_t *)batch->call.block_table.host +
                          (size_t)request * (size_t)caps->table_width;
    in.kv_scale.data = batch->kv_scale;
    in.query_scale.data = batch->query_scale;
    return in;
}

static void check_pair(void *arg, int64_t index, int32_t worker)
{
    (void)worker;
    const check *all = arg;
    const bench_batch *batch = all->batch;
    const int32_t starts[2] = {0, 1};
    int64_t pair = index * SPREAD % all->num_pairs;
    int64_t row = pair / batch->caps.num_heads;
    int32_t request = request_of(batch->call.query_starts.host, row);
    int32_t num_keys = keys_of(batch, request, row);
    mla_caps one = batch->caps;
    mla_batch single = MLA_INIT(mla_batch);
    mla_buffers in = inputs_of(batch, pair, request);
    one.num_heads = 1;
    single.num_requests = 1;
    single.num_query_rows = 1;
    in.context_lens.data = &num_keys;
    in.query_starts.data = starts;
    double lse = 0;
    double score_magnitude = 0;
    double *values = all->values + (size_t)index * 2 * (size_t)one.latent_dim;
    mlai_oracle_out out = {values, &lse, values + one.latent_dim, &score_magnitude};
    mlai_oracle_attend(&one, &in, &single, &out);
    all->found[index] = (attention_verdict){0};
    judge_pair(batch, &out, num_keys, pair, &all->found[index]);
}

static check check_of(const bench_batch *batch)
{
    const mla_caps *caps = &batch->caps;
    double width = 2.0 * caps->latent_dim + caps->rope_dim;
    double affordable = MAX_WORK / (width * (double)caps->max_context_tokens);
    check all = {.batch = batch};
    all.num_pairs = (int64_t)batch->batch.num_query_rows * caps->num_heads;
    all.num_checked = affordable < MIN_CHECKED   ? MIN_CHECKED
                      : affordable > MAX_CHECKED ? MAX_CHECKED
                                                 : (int64_t)affordable;
    if (batch->max_checked > 0 && batch->max_checked < all.num_checked) {
        all.num_checked = batch->max_checked;
    }
    all.num_checked = all.num_checked < all.num_pairs ? all.num_checked : all.num_pairs;
    return all;
}

static mla_status report(const check *all, mla_error *err)
{
    for (int64_t i = 0; i < all->num_checked; i++) {
        MLAI_TRY(attention_verdict_status(&all->found[i], err));
    }
    return MLA_OK;
}

mla_status bench_batch_check(const bench_batch *batch, mla_error *err)
{
    mla_context *context = batch->call.context;
    check all = check_of(batch);
    size_t num = (size_t)all.num_checked;
    size_t found_bytes = num * sizeof *all.found;
    size_t value_bytes = num * 2 * (size_t)batch->caps.latent_dim * sizeof *all.values;
    void *found = NULL;
    void *values = NULL;
    mla_status status = MLA_OK;
    MLAI_TRY_OR(end, mla_memory_take(context, MLA_SPACE_HOST, MLA_FOR_OTHER, found_bytes,
                                     ALIGN_BYTES, &found, err));
    MLAI_TRY_OR(end, mla_memory_take(context, MLA_SPACE_HOST, MLA_FOR_OTHER, value_bytes,
                                     ALIGN_BYTES, &values, err));
    all.found = found;
    all.values = values;
    mlai_pool_run(batch->pool ? batch->pool : mlai_context_pool(context), all.num_checked,
                  check_pair, &all);
    status = report(&all, err);
end:
    mla_memory_give(context, MLA_SPACE_HOST, MLA_FOR_OTHER, value_bytes, values);
    mla_memory_give(context, MLA_SPACE_HOST, MLA_FOR_OTHER, found_bytes, found);
    return status;
}
