/* attend.c - `mla attend`: one attention call on the arrays of a directory. */
#include <errno.h>
#include <string.h>

#include "base/status.h"
#include "cli/arguments.h"
#include "cli/attend_run.h"
#include "cli/command.h"
#include "cli/complain.h"
#include "cli/device_option.h"
#include "cli/isa_option.h"
#include "cli/model_options.h"

enum { KEY_ISA = 0x100, KEY_THREADS, KEY_DEVICE };

typedef struct attend_options {
    const char *dir;
    uint32_t isa_mask; /* 0: the best there is */
    int32_t num_threads;
    mla_backend backend;
} attend_options;

static const struct argp_option options[] = {
    {"isa", KEY_ISA, ISA_OPTION_WORDS, 0, ISA_OPTION_HELP, 0},
    {"threads", KEY_THREADS, "N", 0, "threads (default: all allowed CPUs)", 0},
    {"device", KEY_DEVICE, DEVICE_OPTION_WORDS, 0, "where to run (default cpu)", 0},
    {0},
};

static error_t parse(int key, char *text, struct argp_state *state)
{
    attend_options *out = state->input;
    const arguments_slot slots[] = {{"DIR", &out->dir}};
    switch (key) {
    case ARGP_KEY_INIT:
        return arguments_begin(state);
    case KEY_ISA:
        return isa_option_parse(text, &out->isa_mask);
    case KEY_THREADS:
        return arguments_integer32("--threads", text, 1, OPTIONS_MAX_THREADS,
                                   &out->num_threads);
    case KEY_DEVICE:
        return device_option_parse(text, &out->backend);
    case ARGP_KEY_ARG:
        return arguments_fill(slots, 1, text);
    case ARGP_KEY_END:
        return arguments_check_filled(slots, 1);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp attend_argp = {
    .options = options,
    .parser = parse,
    .args_doc = "DIR",
    .doc =
        "Reads case.json, q.npy, kv.npy, block_table.npy, context_lens.npy and "
        "query_starts.npy of DIR (kv_scale.npy and query_scale.npy where the formats want "
        "them) and writes out.npy and lse.npy there."
        "\v"
        "case.json is an object with heads (H), latent_dim (D), rope_dim (R), page_tokens "
        "(P), kv_format (\"f32\", \"bf16\", \"fp8\", \"fp8_g128\"), query_dtype (\"f32\", "
        "\"bf16\", \"e4m3\"), softmax_scale, causal (true, false) and window (0: none).\n"
        "q is [Q,H,D+R] and kv [N,P,D+R], both f32, and are rounded to the formats here; a "
        "scale is one f32; block_table [B,T], context_lens [B] and query_starts [B+1] are "
        "int32; out is [Q,H,D] and lse [Q,H], both f32.",
};

static mla_status open_context(const attend_options *wanted, mla_context **out,
                               mla_error *err)
{
    mla_device_info info = MLA_INIT(mla_device_info);
    MLAI_TRY(mla_query_device(wanted->backend, 0, &info, err));
    MLAI_TRY(isa_option_check(wanted->isa_mask, &info, err));
    mla_context_options context = MLA_INIT(mla_context_options);
    context.backend = wanted->backend;
    context.num_threads = wanted->num_threads;
    context.isa_mask = wanted->isa_mask;
    return mla_context_create(&context, out, err);
}

static mla_status write_array(const char *dir, const char *name, const npy_source *source,
                              mla_error *err)
{
    static char path[ATTEND_MAX_PATH];
    MLAI_TRY(attend_case_path(dir, name, path, err));
    return npy_write(path, source, err);
}

static mla_status write_result(const attend_case *attend, const attention_call *call,
                               mla_error *err)
{
    const attend_shape *shape = &attend->shape;
    npy_source out = {.type = NPY_F32,
                      .num_dims = 3,
                      .dims = {shape->num_query_rows, shape->heads, shape->latent_dim},
                      .data = call->output.host};
    npy_source lse = {.type = NPY_F32,
                      .num_dims = 2,
                      .dims = {shape->num_query_rows, shape->heads},
                      .data = call->lse.host};
    MLAI_TRY(write_array(attend->dir, "out.npy", &out, err));
    return write_array(attend->dir, "lse.npy", &lse, err);
}

static mla_status attend_files(attend_case *attend, mla_error *err)
{
    attention_call call = {.context = attend->context};
    mla_status status = attend_case_read(attend, err);
    if (status == MLA_OK) {
        status = attend_run(attend, &call, err);
    }
    if (status == MLA_OK) {
        status = write_result(attend, &call, err);
    }
    attention_call_free(&call);
    attend_case_free(attend);
    return status;
}

int command_attend(int argc, char **argv)
{
    attend_options wanted = {.backend = MLA_BACKEND_CPU};
    if (!arguments_parse(&attend_argp, argc, argv, &wanted)) {
        return COMMAND_MISUSED;
    }
    mla_error error = {0};
    attend_case attend = {.dir = wanted.dir};
    mla_status status = open_context(&wanted, &attend.context, &error);
    if (status == MLA_OK) {
        status = attend_files(&attend, &error);
    }
    mla_status closed =
        mla_context_destroy(&attend.context, status == MLA_OK ? &error : NULL);
    status = status == MLA_OK ? closed : status;
    return status == MLA_OK ? COMMAND_OK : complain(&error);
}
