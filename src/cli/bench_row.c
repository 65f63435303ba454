/* bench_row.c - counts a batch's work: see bench_row.h. */
#include "cli/bench_row.h"

#include "attention/count.h"

static const char *name_of(mla_mode mode)
{
    return mode == MLA_DECODE ? "decode" : mode == MLA_VERIFY ? "verify" : "extend";
}

bench_row bench_row_of(const bench_batch *batch, const char *name)
{
    const mla_caps *caps = &batch->caps;
    mlai_attention_count count =
        mlai_attention_count_of(caps, caps->max_requests, batch->call.context_lens.host,
                                batch->call.query_starts.host);
    bench_row row = {
        .name = name ? name : name_of(caps->mode),
        .heads = caps->num_heads,
        .rows = batch->most_rows,
        .requests = caps->max_requests,
        .context = caps->max_context_tokens,
        .kv_format = caps->kv_format,
        .flops = count.flops,
        .bytes = count.bytes,
    };
    mla_plan_describe(batch->call.plan, row.plan, sizeof row.plan, NULL);
    return row;
}
