/* bench.c - `mla bench attention|model`: how fast, and what share of what the machine can
 * do at all, which is measured in the same run with the same threads. */
#include <errno.h>
#include <string.h>

#include "attention/geometry.h"
#include "base/status.h"
#include "cli/bench.h"
#include "cli/command.h"
#include "cli/complain.h"
#include "cli/device_option.h"
#include "cli/isa_option.h"

enum {
    KEY_ROUNDS = 0x100,
    KEY_ISA,
    KEY_PLAN,
    KEY_DEVICE,
    KEY_SHAPE,
    KEY_CACHE,
    DEFAULT_ROUNDS = 40,
    MAX_ROUNDS = 100000,
};

static const struct argp_option options[] = {
    {"rounds", KEY_ROUNDS, "N", 0,
     "of the CPU: times that all rows take turns (default 40)", 0},
    {"isa", KEY_ISA, ISA_OPTION_WORDS, 0, ISA_OPTION_HELP, 0},
    {"plan", KEY_PLAN, "LINE", 0,
     "of attention: a plan's own line instead of the built-in shapes, filled to its caps, "
     "checked against a double-precision reference and timed; again for more",
     0},
    {"device", KEY_DEVICE, DEVICE_OPTION_WORDS, 0,
     "of attention: where (default: that of the plans, else cpu)", 0},
    {"shape", KEY_SHAPE, "TEXT", 0,
     "of attention on CUDA: only the shapes with this in their names", 0},
    {"cache", KEY_CACHE, "DIR", 0, "of CUDA: compiled kernels are kept there", 0},
    {0},
};

static error_t parse_plan(const char *text, bench_options *out)
{
    mla_error error = {0};
    mlai_geometry geometry;
    mlai_plan_line line;
    if (out->num_plans == BENCH_MAX_ROWS) {
        (void)complain_misuse("--plan is there more than %d times", BENCH_MAX_ROWS);
        return EINVAL;
    }
    mla_status status = mlai_plan_line_parse(text, strlen(text), &line, &error);
    if (status == MLA_OK) {
        status = mlai_geometry_of(&line.caps, &geometry, &error);
    }
    if (status != MLA_OK) {
        (void)complain_misuse("--plan: %s", error.message);
        return EINVAL;
    }
    out->plans[out->num_plans++] = line;
    return 0;
}

/* One run has one device: that of --device, or of the plans. */
static error_t check_devices(bench_options *out)
{
    for (int32_t i = 0; i < out->num_plans; i++) {
        uint32_t isa = out->plans[i].isa;
        mla_backend of_plan = isa == MLA_ISA_SM80 ? MLA_BACKEND_CUDA : MLA_BACKEND_CPU;
        if (isa && out->backend && out->backend != of_plan) {
            (void)complain_misuse("plan %d is for another device than %s", i + 1,
                                  "--device or the plans before it");
            return EINVAL;
        }
        out->backend = isa ? of_plan : out->backend;
    }
    out->backend = out->backend ? out->backend : MLA_BACKEND_CPU;
    return 0;
}

static error_t check_cuda(const bench_options *out)
{
    bool is_cuda = out->backend == MLA_BACKEND_CUDA;
    if (is_cuda && strcmp(out->what, "attention") != 0) {
        (void)complain_misuse("--device cuda is for attention, not for a model");
        return EINVAL;
    }
    if (!is_cuda && (out->shape || out->cache_dir)) {
        (void)complain_misuse("--%s is for --device cuda", out->shape ? "shape" : "cache");
        return EINVAL;
    }
    if (out->num_plans > 0 && (out->shape || out->cache_dir)) {
        (void)complain_misuse("--%s is for the built-in shapes, not for --plan",
                              out->shape ? "shape" : "cache");
        return EINVAL;
    }
    if (is_cuda && (out->isa_mask || out->num_rounds)) {
        (void)complain_misuse("--%s is for the CPU", out->isa_mask ? "isa" : "rounds");
        return EINVAL;
    }
    return 0;
}

/* One run has one instruction set: that of --isa, or of the plans. */
static error_t check_plans(bench_options *out)
{
    if (out->num_plans > 0 && strcmp(out->what, "attention") != 0) {
        (void)complain_misuse("--plan is for attention, not for a model");
        return EINVAL;
    }
    error_t error = check_devices(out);
    error = error ? error : check_cuda(out);
    if (error) {
        return error;
    }
    out->num_rounds = out->num_rounds ? out->num_rounds : DEFAULT_ROUNDS;
    for (int32_t i = 0; i < out->num_plans && out->backend == MLA_BACKEND_CPU; i++) {
        uint32_t isa = out->plans[i].isa;
        uint32_t mask = isa ? isa | MLA_ISA_C : out->isa_mask;
        if (out->isa_mask && mask != out->isa_mask) {
            (void)complain_misuse("plan %d has another instruction set than %s", i + 1,
                                  "--isa or the plans before it");
            return EINVAL;
        }
        out->isa_mask = mask;
    }
    return 0;
}

static error_t check_complete(bench_options *out)
{
    if (!out->what) {
        (void)complain_misuse("what to time is missing: attention or model");
        return EINVAL;
    }
    if (strcmp(out->what, "attention") != 0 && strcmp(out->what, "model") != 0) {
        (void)complain_misuse("'%s' is neither attention nor model", out->what);
        return EINVAL;
    }
    if (!strcmp(out->what, "attention") && out->model.dir) {
        (void)complain_misuse("'%s' is one argument too many", out->model.dir);
        return EINVAL;
    }
    return check_plans(out);
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    bench_options *out = state->input;
    const arguments_slot slots[] = {{"attention|model", &out->what},
                                    {"MODEL", &out->model.dir}};
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &out->model;
        return arguments_begin(state);
    case KEY_ROUNDS:
        return arguments_integer32("--rounds", text, 1, MAX_ROUNDS, &out->num_rounds);
    case KEY_ISA:
        return isa_option_parse(text, &out->isa_mask);
    case KEY_DEVICE:
        return device_option_parse(text, &out->backend);
    case KEY_SHAPE:
        out->shape = text;
        return 0;
    case KEY_CACHE:
        out->cache_dir = text;
        return 0;
    case KEY_PLAN:
        return parse_plan(text, out);
    case ARGP_KEY_ARG:
        return arguments_fill(slots, 2, text);
    case ARGP_KEY_END:
        return check_complete(out);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child children[] = {{&model_options_argp, 0, NULL, 0}, {0}};
static const struct argp bench_argp = {
    .options = options,
    .parser = parse,
    .args_doc = "attention\nmodel [MODEL]",
    .doc = "Times the attention kernels, or prefill and decode of a model (default: "
           "models/demo). Every number is the best of all rounds; on CUDA, the median of "
           "graph "
           "replays.",
    .children = children,
};

static mla_status open_context(const bench_options *wanted, bench_report *report,
                               mla_context **out, mla_error *err)
{
    mla_device_info info = MLA_INIT(mla_device_info);
    MLAI_TRY(mla_query_device(wanted->backend, 0, &info, err));
    MLAI_TRY(isa_option_check(wanted->isa_mask, &info, err));
    memcpy(report->device, info.name, sizeof report->device);
    report->backend = wanted->backend;
    mla_context_options context = MLA_INIT(mla_context_options);
    context.backend = wanted->backend;
    context.num_threads = wanted->model.num_threads;
    context.isa_mask = wanted->isa_mask;
    if (wanted->num_plans > 0) { /* which may ask for any amount */
        context.memory_limit_bytes = info.free_bytes;
    }
    return mla_context_create(&context, out, err);
}

static mla_status measure(mla_context *context, const bench_options *wanted,
                          bench_report *report, mla_error *err)
{
    if (wanted->backend == MLA_BACKEND_CUDA) {
        MLAI_TRY(bench_attention_cuda(context, wanted, report, err));
    } else if (!strcmp(wanted->what, "attention")) {
        MLAI_TRY(bench_attention(context, wanted, report, err));
    } else {
        MLAI_TRY(bench_model(context, wanted, report, err));
    }
    return bench_print(context, report, wanted->model.is_json, err);
}

int command_bench(int argc, char **argv)
{
    static bench_report report;
    static bench_options wanted = {.model = MODEL_OPTIONS_DEFAULT};
    if (!arguments_parse(&bench_argp, argc, argv, &wanted)) {
        return COMMAND_MISUSED;
    }
    mla_error error = {0};
    mla_context *context = NULL;
    mla_status status = open_context(&wanted, &report, &context, &error);
    if (status == MLA_OK) {
        status = measure(context, &wanted, &report, &error);
    }
    mla_status closed = mla_context_destroy(&context, status == MLA_OK ? &error : NULL);
    status = status == MLA_OK ? closed : status;
    return status == MLA_OK ? COMMAND_OK : complain(&error);
}
