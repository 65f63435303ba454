/* One decode step of Multi-head Latent Attention on the CPU: prepare, publish, bind, run.
 * Three tokens are in the cache, with latent values 1, 2 and 3. The query is 0, so it likes
 * them all the same, and the answer is their mean. */
#include <mla/mla.h>
#include <stdio.h>
#include <stdlib.h>

enum { HEADS = 4, LATENT = 64, ROPE = 16, PAGE_TOKENS = 16, TOKENS = 3 };

static mla_error error; /* every function that can fail writes one sentence here */

static void check(mla_status status)
{
    if (status != MLA_OK) {
        fprintf(stderr, "%s: %s\n", mla_status_name(status), error.message);
        exit(1);
    }
}

/* A plan says exactly what it needs: one byte less is refused. */
static void *buffer_for(mla_need need)
{
    size_t unit = need.align_bytes;
    void *data = aligned_alloc(unit, (need.bytes + unit - 1) / unit * unit);
    if (!data) {
        exit(1);
    }
    return data;
}

/* A session compiles and tries out what its plans will run; all that it held meanwhile is
 * given back before mla_session_prepare returns. */
static mla_plan *prepare(mla_context *context)
{
    mla_caps caps = MLA_INIT(mla_caps);
    caps.mode = MLA_DECODE;
    caps.kv_format = MLA_KV_F32;
    caps.query_dtype = caps.output_dtype = MLA_F32;
    caps.num_heads = HEADS;
    caps.latent_dim = LATENT;
    caps.rope_dim = ROPE;
    caps.softmax_scale = 0.125F;
    caps.page_tokens = PAGE_TOKENS;
    caps.num_pages = caps.table_width = 1;
    caps.max_context_tokens = PAGE_TOKENS;
    caps.max_requests = caps.max_query_rows = caps.max_rows_per_request = 1;

    mla_session *session;
    mla_ticket ticket;
    mla_plan *plan;
    mla_session_options options = MLA_INIT(mla_session_options);
    check(mla_session_open(context, &options, &session, &error));
    check(mla_session_add(session, &caps, NULL, &ticket, &error));
    check(mla_session_prepare(session, &error));
    check(mla_session_publish(session, ticket, &plan, &error));
    mla_session_close(&session);
    return plan;
}

/* Writes the rows of three tokens into page 0. */
static void fill_cache(const mla_plan *plan, mla_out pool)
{
    static float rows[TOKENS][LATENT + ROPE];
    const int64_t slots[TOKENS] = {0, 1, 2};
    for (int token = 0; token < TOKENS; token++) {
        for (int column = 0; column < LATENT; column++) {
            rows[token][column] = (float)(token + 1);
        }
    }
    mla_append_args append = MLA_INIT(mla_append_args);
    append.rows = (mla_in){rows, sizeof rows};
    append.slots = (mla_in){slots, sizeof slots};
    append.kv_pool = pool;
    append.num_rows = TOKENS;
    append.rows_dtype = MLA_F32;
    check(mla_append(plan, &append, (mla_stream){NULL}, &error));
}

int main(void)
{
    mla_context_options options = MLA_INIT(mla_context_options);
    options.backend = MLA_BACKEND_CPU;
    mla_context *context;
    check(mla_context_create(&options, &context, &error));
    mla_plan *plan = prepare(context);

    mla_requirements need = MLA_INIT(mla_requirements);
    check(mla_plan_requirements(plan, &need, &error));
    void *pool = buffer_for(need.kv_pool);
    float *output = buffer_for(need.output); /* [1][HEADS][LATENT] */
    float *lse = buffer_for(need.lse);       /* [1][HEADS] */
    void *workspace = buffer_for(need.workspace);
    fill_cache(plan, (mla_out){pool, need.kv_pool.bytes});

    static _Alignas(64) float query[HEADS][LATENT + ROPE];
    static _Alignas(64) int32_t table[1] = {0}; /* the request's only page */
    static _Alignas(64) int32_t lens[1] = {TOKENS};
    static _Alignas(64) int32_t starts[2] = {0, 1};
    mla_buffers buffers = MLA_INIT(mla_buffers);
    buffers.kv_pool = (mla_in){pool, need.kv_pool.bytes};
    buffers.query = (mla_in){query, sizeof query};
    buffers.block_table = (mla_in){table, sizeof table};
    buffers.context_lens = (mla_in){lens, sizeof lens};
    buffers.query_starts = (mla_in){starts, sizeof starts};
    buffers.output = (mla_out){output, need.output.bytes};
    buffers.lse = (mla_out){lse, need.lse.bytes};
    buffers.workspace = (mla_out){workspace, need.workspace.bytes};
    mla_binding *binding;
    check(mla_bind(plan, &buffers, &binding, &error));
    check(mla_context_freeze(context, &error)); /* from here on nothing allocates */

    mla_batch batch = MLA_INIT(mla_batch);
    batch.num_requests = batch.num_query_rows = 1;
    batch.max_context_tokens = TOKENS;
    check(mla_run(binding, &batch, (mla_stream){NULL}, &error));
    printf("output %.4f, lse %.4f\n", output[0], lse[0]); /* 2 and ln 3 */

    mla_unbind(&binding);
    mla_plan_release(&plan);
    check(mla_context_destroy(&context, &error));
    free(workspace);
    free(lse);
    free(output);
    free(pool);
    return 0;
}
