/* check.c - the CUDA backend through the public API, on a GPU. usage:
 *
 *   gpu_api matrix CACHE [CASES [SEED]]   mla_run against the oracle
 *   gpu_api life CACHE                    capacities 1 to 120 at 96 heads: times and bytes
 *   gpu_api replay CACHE                  record, replay, a caller's capture, a dead device
 *
 * Prints a line a check and ends with 1 where one failed. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention/context.h"
#include "base/clock.h"
#include "base/convert.h"
#include "support/cuda_cases.h"
#include "support/device_memory.h"

static int num_failed;

static void expect(bool is_good, const char *what)
{
    printf("%s %s\n", is_good ? "ok  " : "FAIL", what);
    (void)fflush(stdout);
    num_failed += !is_good;
}

static void must(mla_status status, const mla_error *err)
{
    if (status != MLA_OK) {
        printf("FAIL %s: %s (%s)\n", mla_status_name(status), err->message, err->where);
        exit(1);
    }
}

static void print_log(void *user, mla_log_level level, const char *line)
{
    (void)user;
    (void)level;
    printf("     log: %s\n", line);
}

static mla_context *open_context(void)
{
    mla_error err;
    mla_context *context = NULL;
    mla_context_options options = MLA_INIT(mla_context_options);
    options.backend = MLA_BACKEND_CUDA;
    options.log = print_log;
    options.log_level = MLA_LOG_INFO;
    must(mla_context_create(&options, &context, &err), &err);
    return context;
}

static mla_progress progress;

static void note(void *user, const mla_progress *p)
{
    (void)user;
    progress = *p;
}

static mla_session *open_session(mla_context *context, const char *cache)
{
    mla_error err;
    mla_session *session = NULL;
    mla_session_options options = MLA_INIT(mla_session_options);
    options.cache_dir = cache;
    options.progress = note;
    must(mla_session_open(context, &options, &session, &err), &err);
    return session;
}

/* A session of its own for `num` plans. */
static void prepare(mla_context *context, const char *cache, const mla_caps *caps,
                    mla_plan **plan, int num)
{
    mla_error err;
    mla_ticket ticket[256];
    mla_session *session = open_session(context, cache);
    int64_t start_ns = mlai_now_ns();
    for (int i = 0; i < num; i++) {
        must(mla_session_add(session, &caps[i], NULL, &ticket[i], &err), &err);
    }
    must(mla_session_prepare(session, &err), &err);
    printf("     prepared %d requests (%d from the cache) in %lld ms\n",
           progress.num_compiled, progress.num_from_cache,
           (long long)(mlai_now_ns() - start_ns) / 1000000);
    for (int i = 0; i < num; i++) {
        must(mla_session_publish(session, ticket[i], &plan[i], &err), &err);
    }
    mla_session_close(&session);
}

/* A case whose inputs are on the device, bound to a plan. */
typedef struct rig {
    attend_case *c;
    mla_requirements need;
    mla_buffers buffers;
    mla_binding *binding;
} rig;

static mla_in take_in(const fenced *from)
{
    return from->bytes ? (mla_in){memory_take(from->bytes, from->data), from->bytes}
                       : (mla_in){NULL, 0};
}

static mla_out take_out(size_t bytes)
{
    return (mla_out){memory_take(bytes, NULL), bytes};
}

static rig bind_case(attend_case *c, mla_plan *plan)
{
    mla_error err;
    rig r = {.c = c, .need = MLA_INIT(mla_requirements), .buffers = MLA_INIT(mla_buffers)};
    must(mla_plan_requirements(plan, &r.need, &err), &err);
    r.buffers.kv_pool = take_in(&c->pool);
    r.buffers.query =
        c->query.bytes != 0 /* a plan serves at least one row */
            ? take_in(&c->query)
            : (mla_in){memory_take(r.need.query.bytes, NULL), r.need.query.bytes};
    r.buffers.block_table = take_in(&c->table);
    r.buffers.context_lens = take_in(&c->lengths);
    r.buffers.query_starts = take_in(&c->starts);
    if (c->caps.kv_format == MLA_KV_FP8) {
        r.buffers.kv_scale = take_in(&c->kv_scale);
    }
    if (c->caps.query_dtype == MLA_E4M3) {
        r.buffers.query_scale = take_in(&c->query_scale);
    }
    r.buffers.output = take_out(r.need.output.bytes);
    r.buffers.lse = take_out(r.need.lse.bytes);
    r.buffers.workspace = take_out(r.need.workspace.bytes);
    must(mla_bind(plan, &r.buffers, &r.binding, &err), &err);
    return r;
}

static void unbind_case(rig *r)
{
    mla_unbind(&r->binding);
    memory_give(r->buffers.kv_pool.data);
    memory_give(r->buffers.query.data);
    memory_give(r->buffers.block_table.data);
    memory_give(r->buffers.context_lens.data);
    memory_give(r->buffers.query_starts.data);
    memory_give(r->buffers.kv_scale.data);
    memory_give(r->buffers.query_scale.data);
    memory_give(r->buffers.output.data);
    memory_give(r->buffers.lse.data);
    memory_give(r->buffers.workspace.data);
}

/* Output and lse of the last run as they lie on the device; free it. */
static unsigned char *read_back(const rig *r)
{
    unsigned char *bytes = malloc(r->need.output.bytes + r->need.lse.bytes);
    memory_wait();
    memory_from(bytes, r->buffers.output.data, r->need.output.bytes);
    memory_from(bytes + r->need.output.bytes, r->buffers.lse.data, r->need.lse.bytes);
    return bytes;
}

static gpu_verdict judge(const rig *r)
{
    const attend_case *c = r->c;
    size_t num = (size_t)c->num_queries * (size_t)c->caps.latent_dim;
    unsigned char *bytes = read_back(r);
    float *out = malloc((num + 1) * sizeof *out);
    for (size_t i = 0; i < num; i++) {
        if (c->caps.output_dtype == MLA_F32) {
            memcpy(&out[i], bytes + 4 * i, 4);
        } else {
            uint16_t bits;
            memcpy(&bits, bytes + 2 * i, 2);
            out[i] = mlai_f32_from_bf16(bits);
        }
    }
    gpu_verdict v =
        gpu_case_judge(c, out, (const float *)(const void *)(bytes + r->need.output.bytes));
    free(out);
    free(bytes);
    return v;
}

static void run(const rig *r, mlai_cu_stream stream)
{
    mla_error err;
    must(mla_run(r->binding, &r->c->batch, (mla_stream){stream}, &err), &err);
}

static void matrix(const char *cache, int num, uint64_t seed)
{
    static attend_case cases[256];
    static mla_caps caps[256];
    static mla_plan *plan[256];
    char line[400];
    mla_error err;
    num = num < 256 ? num : 256;
    for (int i = 0; i < num; i++) {
        gpu_case_draw(&cases[i], seed, i);
        caps[i] = cases[i].caps;
    }
    size_t before = memory_free_bytes();
    mla_context *context = open_context();
    prepare(context, cache, caps, plan, num);
    for (int i = 0; i < num; i++) {
        rig r = bind_case(&cases[i], plan[i]);
        run(&r, NULL);
        gpu_verdict v = judge(&r);
        mla_plan_describe(plan[i], line, 200, NULL);
        printf("     case %d share %.3f\n", i, v.worst_share);
        size_t length = strlen(line);
        (void)snprintf(line + length, sizeof line - length, " %.150s", v.first_wrong);
        expect(v.num_wrong == 0, line);
        unbind_case(&r);
        mla_plan_release(&plan[i]);
        attend_case_drop(&cases[i]);
    }
    must(mla_context_destroy(&context, &err), &err);
    printf("     device memory: %zu bytes free before, %zu after\n", before,
           memory_free_bytes());
}

static mla_caps life_caps(mla_kv_format format, int32_t capacity)
{
    mla_caps caps = MLA_INIT(mla_caps);
    caps.mode = MLA_DECODE;
    caps.kv_format = format;
    caps.query_dtype = format == MLA_KV_FP8 ? MLA_E4M3 : MLA_BF16;
    caps.output_dtype = MLA_BF16;
    caps.num_heads = 96;
    caps.latent_dim = 512;
    caps.rope_dim = 64;
    caps.page_tokens = 64;
    caps.causal = 1;
    caps.softmax_scale = 0.1352F;
    caps.max_requests = caps.max_query_rows = capacity;
    caps.max_rows_per_request = 1;
    caps.table_width = 2048;
    caps.max_context_tokens = 131072;
    caps.num_pages = 100000;
    return caps;
}

static void print_books(const mla_context *context, const char *when)
{
    printf("     %-18s", when);
    for (int space = 0; space < MLA_NUM_SPACES; space++) {
        for (int purpose = 0; purpose < MLA_FOR_COMM; purpose++) {
            const mlai_ledger_cell *cell = &context->ledger.cell[space][purpose];
            if (cell->peak_bytes) {
                printf(" %s/%s %llu (peak %llu)", mla_space_name((mla_space)space),
                       mla_purpose_name((mla_purpose)purpose),
                       (unsigned long long)cell->now_bytes,
                       (unsigned long long)cell->peak_bytes);
            }
        }
    }
    printf(" | driver free %zu\n", memory_free_bytes());
}

static bool has_transients(const mla_context *context)
{
    uint64_t bytes = 0;
    for (int space = 0; space < MLA_NUM_SPACES; space++) {
        bytes += mlai_ledger_now(&context->ledger, (mla_space)space, MLA_FOR_SESSION);
    }
    return bytes != 0;
}

static void life(const char *cache)
{
    static const int32_t capacity[] = {1, 4, 16, 64, 120};
    static const mla_kv_format format[] = {MLA_KV_BF16, MLA_KV_FP8};
    enum { NUM = 5 };
    mla_error err;
    for (int f = 0; f < 2; f++) {
        mla_caps caps[NUM];
        mla_plan *plan[NUM] = {NULL};
        mla_context *context = open_context();
        size_t before = memory_free_bytes();
        print_books(context, "before");
        for (int i = 0; i < NUM; i++) {
            caps[i] = life_caps(format[f], capacity[i]);
        }
        prepare(context, cache, caps, plan, NUM);
        print_books(context, "published");
        expect(!has_transients(context), "class session reads 0 after publish");
        printf("     the driver gave %zd bytes for the launchers\n",
               (ssize_t)(before - memory_free_bytes()));
        for (int i = 0; i < NUM; i++) {
            mla_plan_release(&plan[i]);
        }
        print_books(context, "released");
        must(mla_context_destroy(&context, &err), &err);
        printf("     device memory not given back: %zd bytes\n",
               (ssize_t)(before - memory_free_bytes()));
    }
}

/* A decode case with `num` requests. */
static void draw_decode(attend_case *c, mla_kv_format format, int num)
{
    rng random = rng_of_seed(7);
    *c = (attend_case){.num_requests = num};
    c->caps = life_caps(format, num);
    c->caps.num_heads = 8;
    c->caps.table_width = 0;
    c->caps.num_pages = 0;
    for (int i = 0; i < num; i++) {
        c->lens[i] = 300 + 401 * i;
        c->rows[i] = 1;
    }
    attend_case_build(c, &random);
}

static bool replay_is(const rig *r, mlai_cu_stream stream, const unsigned char *expected)
{
    mla_error err;
    must(mla_replay(r->binding, (mla_stream){stream}, &err), &err);
    unsigned char *got = read_back(r);
    bool is_same = memcmp(got, expected, r->need.output.bytes + r->need.lse.bytes) == 0;
    free(got);
    return is_same;
}

static void replay_often(const rig *r, mlai_cu_stream stream)
{
    enum { NUM = 1000 };
    mla_error err;
    run(r, NULL);
    unsigned char *expected = read_back(r);
    must(mla_record(r->binding, &r->c->batch, &err), &err);
    int num_same = 0;
    size_t before = memory_free_bytes();
    for (int i = 0; i < NUM; i++) {
        num_same += replay_is(r, i % 2 ? stream : NULL, expected);
    }
    expect(num_same == NUM, "1000 replays on two streams give the bits of the run");
    expect(memory_free_bytes() == before, "and take no device memory");
    int32_t zero[ATTEND_MAX_REQUESTS] = {0};
    memory_to(r->buffers.context_lens.data, zero, r->c->lengths.bytes);
    expect(!replay_is(r, stream, expected), "a replay sees that lengths went to 0");
    memory_to(r->buffers.context_lens.data, r->c->lengths.data, r->c->lengths.bytes);
    expect(replay_is(r, stream, expected), "and that they came back");
    free(expected);
}

/* Three layers, one workspace, one graph of the caller's. */
static void capture_by_caller(rig *r, mla_plan *plan, mlai_cu_stream stream)
{
    enum { LAYERS = 3 };
    const mlai_cuda_driver *driver = memory_driver();
    mla_error err;
    mla_binding *layer[LAYERS] = {NULL};
    mla_buffers buffers[LAYERS];
    mlai_cu_graph graph = NULL;
    mlai_cu_graph_exec exec = NULL;
    run(r, NULL);
    unsigned char *expected = read_back(r);
    for (int i = 0; i < LAYERS; i++) {
        buffers[i] = r->buffers;
        buffers[i].output = take_out(r->need.output.bytes);
        must(mla_bind(plan, &buffers[i], &layer[i], &err), &err);
    }
    (void)driver->cuStreamBeginCapture(stream, 0); /* the strictest mode */
    for (int i = 0; i < LAYERS; i++) {
        must(mla_run(layer[i], &r->c->batch, (mla_stream){stream}, &err), &err);
    }
    expect(driver->cuStreamEndCapture(stream, &graph) == 0, "a caller captures three runs");
    expect(driver->cuGraphInstantiateWithFlags(&exec, graph, 0) == 0, "and instantiates");
    (void)driver->cuGraphDestroy(graph);
    for (int i = 0; i < LAYERS; i++) {
        mla_unbind(&layer[i]);
    }
    int num_same = 0;
    for (int i = 0; i < 10; i++) {
        (void)driver->cuGraphLaunch(exec, stream);
    }
    memory_wait();
    unsigned char *got = malloc(r->need.output.bytes);
    for (int i = 0; i < LAYERS; i++) {
        memory_from(got, buffers[i].output.data, r->need.output.bytes);
        num_same += memcmp(got, expected, r->need.output.bytes) == 0;
        memory_give(buffers[i].output.data);
    }
    expect(num_same == LAYERS, "whose replays give the bits of the run");
    free(got);
    free(expected);
    (void)driver->cuGraphExecDestroy(exec);
}

/* A graph of the caller's outlives its plan; then the plan goes. */
static void outlive(rig *r, mla_plan **plan, mla_context *context, mlai_cu_stream stream)
{
    const mlai_cuda_driver *driver = memory_driver();
    mla_error err;
    mlai_cu_graph graph = NULL;
    mlai_cu_graph_exec exec = NULL;
    (void)driver->cuStreamBeginCapture(stream, 0);
    run(r, stream);
    (void)driver->cuStreamEndCapture(stream, &graph);
    (void)driver->cuGraphInstantiateWithFlags(&exec, graph, 0);
    (void)driver->cuGraphDestroy(graph);
    mla_unbind(&r->binding);
    mla_plan_release(plan);
    expect(driver->cuGraphLaunch(exec, stream) == 0 &&
               driver->cuStreamSynchronize(stream) == 0,
           "a graph is replayed after its plan was released");
    mla_context *same = context;
    expect(mla_context_destroy(&same, &err) == MLA_ERR_STATE,
           "and the context is not destroyed under it");
    (void)driver->cuGraphExecDestroy(exec);
    memory_wait();
}

static void destroy_soon(mla_context *context)
{
    enum { NUM_TRIALS = 1000 };
    mla_error err = {MLA_OK, 0, NULL, ""};
    mla_status status = MLA_ERR_STATE;
    for (int i = 0; i < NUM_TRIALS && status == MLA_ERR_STATE; i++) {
        status = mla_context_destroy(&context, &err); /* the driver may still be at it */
    }
    expect(status == MLA_OK, "the context goes after the graph");
}

/* Keys at an address that is nobody's. */
static void die(const char *cache)
{
    static attend_case c;
    mla_error err;
    mla_plan *plan = NULL;
    draw_decode(&c, MLA_KV_BF16, 2);
    mla_context *context = open_context();
    prepare(context, cache, &c.caps, &plan, 1);
    rig r = bind_case(&c, plan);
    mla_buffers bad = r.buffers;
    mla_binding *binding = NULL;
    bad.kv_pool.data = (const void *)(uintptr_t)0x1000;
    must(mla_bind(plan, &bad, &binding, &err), &err);
    must(mla_run(binding, &c.batch, (mla_stream){NULL}, &err), &err);
    mla_status status = MLA_ERR_STATE;
    while (status == MLA_ERR_STATE) {
        status = mla_poll(binding, &err);
    }
    printf("     %s: %s\n", mla_status_name(status), err.message);
    expect(status == MLA_ERR_DEVICE, "a poll tells that the device died");
    expect(mla_run(r.binding, &c.batch, (mla_stream){NULL}, &err) == MLA_ERR_DEVICE,
           "then a run is refused");
    mla_unbind(&binding);
    unbind_case(&r);
    mla_plan_release(&plan);
    expect(mla_context_destroy(&context, &err) == MLA_OK, "and destroying works");
    attend_case_drop(&c);
}

static void replay(const char *cache)
{
    static attend_case c;
    mla_error err;
    mla_plan *plan = NULL;
    mlai_cu_stream stream = NULL;
    (void)memory_driver()->cuStreamCreate(&stream, MLAI_CU_STREAM_NON_BLOCKING);
    draw_decode(&c, MLA_KV_BF16, 4);
    mla_context *context = open_context();
    prepare(context, cache, &c.caps, &plan, 1);
    rig r = bind_case(&c, plan);
    replay_often(&r, stream);
    capture_by_caller(&r, plan, stream);
    must(mla_context_freeze(context, &err), &err);
    run(&r, stream);
    memory_wait();
    expect(mla_poll(r.binding, &err) == MLA_OK, "a frozen context runs");
    expect(mla_record(r.binding, &c.batch, &err) == MLA_ERR_FROZEN, "and records nothing");
    outlive(&r, &plan, context, stream);
    unbind_case(&r);
    destroy_soon(context);
    attend_case_drop(&c);
    (void)memory_driver()->cuStreamDestroy(stream);
    die(cache);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        (void)fprintf(stderr, "usage: gpu_api matrix|life|replay CACHE [CASES [SEED]]\n");
        return 2;
    }
    memory_open();
    (void)memory_driver();
    if (strcmp(argv[1], "matrix") == 0) {
        matrix(argv[2], argc > 3 ? (int)strtol(argv[3], NULL, 10) : 64,
               argc > 4 ? strtoull(argv[4], NULL, 10) : 1);
    } else if (strcmp(argv[1], "life") == 0) {
        life(argv[2]);
    } else {
        replay(argv[2]);
    }
    printf("%d failed\n", num_failed);
    return num_failed != 0;
}
