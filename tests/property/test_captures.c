/* What a caller does with graphs and streams on a real GPU: three layers and a kernel of the
 * caller's own in one captured graph, replayed while everything changes but the addresses;
 * several streams; plans that go while their kernels are still to run. Without a GPU this is
 * skipped by name. tests/property/test_cuda_host.c has the same promises on the fake driver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attention/oracle.h"
#include "base/convert.h"
#include "support/device_memory.h"
#include "support/gpu.h"
#include "support/must.h"
#include "support/rig.h"

enum { NUM_LAYERS = 3, D = 128, R = 64, H = 4, NUM_REQUESTS = 3 };

static mla_error err;

/* The caller's own kernel: to[i / dim * width + i % dim] = from[i] for i < num, 16 bits each. */
static const char feed_ptx[] = ".version 7.0\n"
                               ".target sm_80\n"
                               ".address_size 64\n"
                               ".visible .entry feed(.param .u64 to, .param .u64 from,\n"
                               "    .param .u32 num, .param .u32 dim, .param .u32 width)\n"
                               "{\n"
                               "    .reg .pred %p<2>;\n"
                               "    .reg .b16 %h<2>;\n"
                               "    .reg .b32 %r<11>;\n"
                               "    .reg .b64 %rd<7>;\n"
                               "    ld.param.u64 %rd1, [to];\n"
                               "    ld.param.u64 %rd2, [from];\n"
                               "    ld.param.u32 %r1, [num];\n"
                               "    ld.param.u32 %r2, [dim];\n"
                               "    ld.param.u32 %r3, [width];\n"
                               "    mov.u32 %r4, %ctaid.x;\n"
                               "    mov.u32 %r5, %ntid.x;\n"
                               "    mov.u32 %r6, %tid.x;\n"
                               "    mad.lo.u32 %r7, %r4, %r5, %r6;\n"
                               "    setp.ge.u32 %p1, %r7, %r1;\n"
                               "    @%p1 bra done;\n"
                               "    div.u32 %r8, %r7, %r2;\n"
                               "    rem.u32 %r9, %r7, %r2;\n"
                               "    mad.lo.u32 %r10, %r8, %r3, %r9;\n"
                               "    mul.wide.u32 %rd3, %r7, 2;\n"
                               "    add.u64 %rd4, %rd2, %rd3;\n"
                               "    mul.wide.u32 %rd5, %r10, 2;\n"
                               "    add.u64 %rd6, %rd1, %rd5;\n"
                               "    ld.u16 %h1, [%rd4];\n"
                               "    st.u16 [%rd6], %h1;\n"
                               "done:\n"
                               "    ret;\n"
                               "}\n";

static void must_cu(mlai_cu_result result, const char *what)
{
    if (result != 0) {
        fail_msg("%s gave error %d", what, result);
    }
}

#define CU(call, ...) must_cu(memory_driver()->call(__VA_ARGS__), #call)

static mlai_cu_stream new_stream(void)
{
    mlai_cu_stream stream = NULL;
    CU(cuStreamCreate, &stream, MLAI_CU_STREAM_NON_BLOCKING);
    return stream;
}

/* Layers of one plan, each with arrays of its own but for the workspace. */
typedef struct model {
    rig layer[NUM_LAYERS];
    mlai_cu_module module;
    mlai_cu_function feed;
} model;

static mla_caps layer_caps(void)
{
    mla_caps caps = rig_extend_caps(NUM_REQUESTS, 8, 3000);
    caps.output_dtype = MLA_BF16;
    return caps;
}

static model open_model(void)
{
    mla_caps caps = layer_caps();
    model m = {.layer = {rig_open(&caps, 1, 1)}};
    for (int i = 1; i < NUM_LAYERS; i++) {
        rig *r = &m.layer[i];
        *r = m.layer[0];
        r->random = rng_of_seed((uint64_t)i);
        r->buffers = rig_buffers(&r->need);
        r->bound = rig_bound(&r->buffers);
        memory_give(r->bound.workspace.data);
        r->bound.workspace = m.layer[0].bound.workspace;
        must(mla_bind(r->plan, &r->bound, &r->binding, &err), &err);
    }
    CU(cuModuleLoadData, &m.module, feed_ptx);
    CU(cuModuleGetFunction, &m.feed, m.module, "feed");
    return m;
}

/* All but what rig_close gives of layer 0. */
static void close_model(model *m)
{
    for (int i = 1; i < NUM_LAYERS; i++) {
        rig *r = &m->layer[i];
        mla_unbind(&r->binding);
        r->bound.workspace = (mla_out){NULL, 0};
        rig_bound_free(&r->bound);
        rig_buffers_free(&r->buffers);
    }
    CU(cuModuleUnload, m->module);
}

static void load(model *m, const int32_t lengths[NUM_REQUESTS], uint64_t seed)
{
    static const int32_t rows[NUM_REQUESTS] = {1, 4, 2};
    for (int i = 0; i < NUM_LAYERS; i++) {
        rig_request requests[NUM_REQUESTS];
        for (int q = 0; q < NUM_REQUESTS; q++) {
            requests[q] = (rig_request){seed + (uint64_t)(10 * i + q), lengths[q], rows[q]};
        }
        rig_load(&m->layer[i], requests, NUM_REQUESTS);
    }
}

static void send(model *m)
{
    for (int i = 0; i < NUM_LAYERS; i++) {
        rig_send(&m->layer[i]);
    }
    memory_wait();
}

static void feed(const model *m, int from, mlai_cu_stream stream)
{
    enum { THREADS = 128 };
    const rig *a = &m->layer[from];
    uint64_t source = (uintptr_t)a->bound.output.data;
    uint64_t target = (uintptr_t)m->layer[from + 1].bound.query.data;
    uint32_t num = (uint32_t)a->batch.num_query_rows * H * D;
    uint32_t dim = D;
    uint32_t width = D + R;
    void *parameters[] = {&target, &source, &num, &dim, &width};
    const mlai_cu_launch launch = {.grid = {(num + THREADS - 1) / THREADS, 1, 1},
                                   .block = {THREADS, 1, 1},
                                   .stream = stream};
    CU(cuLaunchKernelEx, &launch, m->feed, parameters, NULL);
}

/* One step of the model: each layer's output is part of the next one's query. */
static void step(const model *m, mlai_cu_stream stream)
{
    for (int i = 0; i < NUM_LAYERS; i++) {
        const rig *r = &m->layer[i];
        must(mla_run(r->binding, &r->batch, (mla_stream){stream}, &err), &err);
        if (i + 1 < NUM_LAYERS) {
            feed(m, i, stream);
        }
    }
}

static mlai_cu_graph_exec capture(const model *m, mlai_cu_stream stream)
{
    mlai_cu_graph graph = NULL;
    mlai_cu_graph_exec exec = NULL;
    CU(cuStreamBeginCapture, stream, 0); /* the strictest mode */
    step(m, stream);
    CU(cuStreamEndCapture, stream, &graph);
    CU(cuGraphInstantiateWithFlags, &exec, graph, 0);
    CU(cuGraphDestroy, graph);
    return exec;
}

/* Outputs and lses of all layers, as bytes; free it. */
static unsigned char *answers(model *m, size_t *bytes)
{
    const mla_requirements *need = &m->layer[0].need;
    size_t each = need->output.bytes + need->lse.bytes;
    unsigned char *all = malloc(NUM_LAYERS * each);
    assert_non_null(all);
    for (int i = 0; i < NUM_LAYERS; i++) {
        unsigned char *to = all + (size_t)i * each;
        rig_fetch(&m->layer[i]);
        memcpy(to, m->layer[i].buffers.output.data, need->output.bytes);
        memcpy(to + need->output.bytes, m->layer[i].buffers.lse.data, need->lse.bytes);
    }
    *bytes = NUM_LAYERS * each;
    return all;
}

/* What `feed` made of a query, on the host. */
static void feed_host(const rig *from, const rig *to)
{
    uint16_t *query = (uint16_t *)(uintptr_t)to->buffers.query.data;
    const uint16_t *output = from->buffers.output.data;
    for (int32_t i = 0; i < from->batch.num_query_rows * H; i++) {
        memcpy(query + (size_t)i * (D + R), output + (size_t)i * D, D * sizeof *query);
    }
}

/* Values are below 2, and both they and the weights are rounded to bf16. */
static void expect_near_oracle(const rig *r)
{
    size_t queries = (size_t)r->batch.num_query_rows * H;
    double *out = calloc(queries * D, sizeof *out);
    double *lse = calloc(queries, sizeof *lse);
    if (!out || !lse) {
        fail_msg("no memory");
        return;
    }
    mlai_oracle_out want = {out, lse, NULL, NULL};
    mlai_oracle_attend(&r->caps, &r->buffers, &r->batch, &want);
    for (size_t i = 0; i < queries * D; i++) {
        double got =
            (double)mlai_f32_from_bf16(((const uint16_t *)r->buffers.output.data)[i]);
        assert_true(fabs(got - out[i]) <= 2 * (0x1p-7 + 0x1p-10));
    }
    for (size_t i = 0; i < queries; i++) {
        double got = (double)((const float *)r->buffers.lse.data)[i];
        assert_true(got == lse[i] || fabs(got - lse[i]) <= 1e-3);
    }
    free(out);
    free(lse);
}

static void expect_chain(model *m)
{
    for (int i = 0; i < NUM_LAYERS; i++) {
        if (i > 0) {
            feed_host(&m->layer[i - 1], &m->layer[i]);
        }
        expect_near_oracle(&m->layer[i]);
    }
}

static void a_callers_graph_of_layers_and_kernels_follows_the_contents(void **state)
{
    (void)state;
    static const int32_t lengths[][NUM_REQUESTS] = {
        {700, 2900, 5}, {701, 130, 2}, {0, 0, 0}, {2999, 1, -3}, {16, 1024, 2500}};
    model m = open_model();
    mlai_cu_stream stream[] = {new_stream(), new_stream()};
    load(&m, lengths[0], 1);
    mlai_cu_graph_exec exec = capture(&m, stream[0]);
    size_t before = 0;
    for (int i = 0; i < 5; i++) {
        size_t bytes;
        load(&m, lengths[i], UINT64_C(100) * (uint64_t)i); /* other tables, queries, keys */
        send(&m);
        step(&m, NULL);
        unsigned char *want = answers(&m, &bytes);
        send(&m);
        CU(cuGraphLaunch, exec, stream[i % 2]);
        unsigned char *got = answers(&m, &bytes);
        assert_memory_equal(got, want, bytes);
        expect_chain(&m);
        free(want);
        free(got);
        before = i == 0 ? gpu_free_bytes() : before; /* the first launch may take some */
    }
    assert_int_equal(gpu_free_bytes(), before);
    CU(cuGraphExecDestroy, exec);
    close_model(&m);
    rig_close(&m.layer[0]);
    CU(cuStreamDestroy, stream[0]);
    CU(cuStreamDestroy, stream[1]);
}

/* The driver lets go of what a graph held some time after the graph. */
static void destroy_soon(mla_context **context)
{
    enum { NUM_TRIALS = 10000 };
    const struct timespec pause = {0, 1000000};
    mla_status status = MLA_ERR_STATE;
    for (int i = 0; i < NUM_TRIALS && status == MLA_ERR_STATE; i++) {
        status = mla_context_destroy(context, &err);
        (void)nanosleep(&pause, NULL);
    }
    must(status, &err);
}

/* A thousand steps are queued; bindings and plan go before they have run. */
static void a_plan_may_go_while_a_callers_graph_is_replayed(void **state)
{
    (void)state;
    enum { NUM_REPLAYS = 1000 };
    static const int32_t lengths[NUM_REQUESTS] = {3000, 2900, 2000};
    size_t bytes;
    model m = open_model();
    rig *r = &m.layer[0];
    mla_context *context = r->context;
    mlai_cu_stream stream = new_stream();
    load(&m, lengths, 1);
    mlai_cu_graph_exec exec = capture(&m, stream);
    send(&m);
    step(&m, NULL);
    unsigned char *want = answers(&m, &bytes);
    send(&m);
    for (int i = 0; i < test_cases(NUM_REPLAYS); i++) {
        CU(cuGraphLaunch, exec, stream);
    }
    for (int i = 0; i < NUM_LAYERS; i++) {
        mla_unbind(&m.layer[i].binding);
    }
    mla_plan_release(&r->plan);
    assert_int_equal(mla_context_destroy(&context, &err), MLA_ERR_STATE);
    CU(cuGraphLaunch, exec, stream);
    unsigned char *got = answers(&m, &bytes);
    assert_memory_equal(got, want, bytes);
    CU(cuGraphExecDestroy, exec);
    memory_wait();
    destroy_soon(&context);
    free(want);
    free(got);
    close_model(&m);
    rig_bound_free(&r->bound);
    rig_buffers_free(&r->buffers);
    CU(cuStreamDestroy, stream);
}

/* Each lane has a binding, buffers and a stream of its own; all are of one plan. */
static void streams_do_not_meet(void **state)
{
    (void)state;
    enum { NUM_LANES = 3, NUM_RUNS = 100 };
    mla_caps caps = layer_caps();
    rig lane[NUM_LANES] = {rig_open(&caps, 1, 1)};
    mlai_cu_stream stream[NUM_LANES] = {new_stream(), new_stream(), new_stream()};
    unsigned char *want[NUM_LANES];
    size_t bytes = lane[0].need.output.bytes;
    for (int i = 0; i < NUM_LANES; i++) {
        rig *r = &lane[i];
        const rig_request request = {(uint64_t)i, 3000 - 900 * i, 3};
        if (i > 0) {
            *r = lane[0];
            r->buffers = rig_buffers(&r->need);
            r->bound = rig_bound(&r->buffers);
            must(mla_bind(r->plan, &r->bound, &r->binding, &err), &err);
        }
        rig_load(r, &request, 1);
        rig_run(r);
        want[i] = malloc(bytes + 1);
        assert_non_null(want[i]);
        memcpy(want[i], r->buffers.output.data, bytes);
        must(mla_record(r->binding, &r->batch, &err), &err);
        rig_send(r);
    }
    memory_wait();
    for (int n = 0; n < test_cases(NUM_RUNS); n++) {
        for (int i = 0; i < NUM_LANES; i++) {
            mla_stream on = {stream[i]};
            must(n % 2 ? mla_replay(lane[i].binding, on, &err)
                       : mla_run(lane[i].binding, &lane[i].batch, on, &err),
                 &err);
        }
    }
    for (int i = NUM_LANES - 1; i >= 0; i--) {
        rig *r = &lane[i];
        rig_fetch(r);
        assert_memory_equal(r->buffers.output.data, want[i], bytes);
        must(mla_poll(r->binding, &err), &err);
        free(want[i]);
        if (i > 0) {
            mla_unbind(&r->binding);
            rig_bound_free(&r->bound);
            rig_buffers_free(&r->buffers);
        }
        CU(cuStreamDestroy, stream[i]);
    }
    rig_close(&lane[0]);
}

static void a_frozen_context_replays_and_takes_no_device_memory(void **state)
{
    (void)state;
    enum { NUM_REPLAYS = 1000 };
    mla_caps caps = layer_caps();
    const rig_request requests[] = {{1, 2500, 4}, {2, 60, 3}};
    rig r = rig_open(&caps, 1, 1);
    rig_load(&r, requests, 2);
    rig_run(&r);
    must(mla_record(r.binding, &r.batch, &err), &err);
    must(mla_context_freeze(r.context, &err), &err);
    rig_replay(&r);
    size_t before = gpu_free_bytes();
    for (int i = 0; i < test_cases(NUM_REPLAYS); i++) {
        must(mla_replay(r.binding, (mla_stream){NULL}, &err), &err);
    }
    memory_wait();
    assert_int_equal(gpu_free_bytes(), before);
    assert_int_equal(mla_record(r.binding, &r.batch, &err), MLA_ERR_FROZEN);
    rig_close(&r);
}

static int run_suite(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_callers_graph_of_layers_and_kernels_follows_the_contents),
        cmocka_unit_test(a_plan_may_go_while_a_callers_graph_is_replayed),
        cmocka_unit_test(streams_do_not_meet),
        cmocka_unit_test(a_frozen_context_replays_and_takes_no_device_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return gpu_only_suite("captures", run_suite);
}
