/* doctor.c - `mla doctor`: what this machine and this build offer. Looks, changes nothing. */
#include <dlfcn.h>
#include <stdio.h>

#include "base/status.h"
#include "cli/build_info.h"
#include "cli/command.h"
#include "cli/complain.h"
#include "cli/json_output.h"
#include "cli/machine.h"
#include "cli/model_options.h"
#include "cli/outline.h"
#include "cli/topology.h"
#include "device/cpu.h"

enum { KEY_JSON = 0x100 };

static const struct argp_option options[] = {
    {"json", KEY_JSON, NULL, 0, "print one JSON value", 0},
    {0},
};

static error_t parse(int key, char *text, struct argp_state *state)
{
    bool *is_json = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        return arguments_begin(state);
    case KEY_JSON:
        *is_json = true;
        return 0;
    case ARGP_KEY_ARG:
        return arguments_fill(NULL, 0, text);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp doctor_argp = {
    .options = options,
    .parser = parse,
    .doc = "Says what this machine and this build offer.",
};

static json_t *describe_build(void)
{
    return json_pack("{s:s, s:s, s:s, s:b, s:b}", "type", MLA_BUILD_TYPE, "compiler",
                     MLA_BUILD_COMPILER, "sanitizers", MLA_BUILD_SANITIZE, "static_deps",
                     MLA_BUILD_STATIC_DEPS, "retain_priming", MLA_BUILD_RETAIN_PRIMING);
}

static json_t *describe_isa(uint32_t mask)
{
    static const struct {
        mla_isa isa;
        const char *name;
    } levels[] = {{MLA_ISA_C, "c"}, {MLA_ISA_AVX2, "avx2"}, {MLA_ISA_AVX512, "avx512"}};
    json_t *names = json_array();
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if ((mask & levels[i].isa) &&
            json_array_append_new(names, json_string(levels[i].name)) != 0) {
            json_decref(names);
            return NULL;
        }
    }
    return names;
}

static json_t *describe_cpu(void)
{
    char name[64];
    mlai_cpu_name(name);
    return json_pack("{s:s, s:o, s:i}", "name", name, "isa", describe_isa(mlai_cpu_isa()),
                     "allowed_cpus", (int)mlai_cpu_count());
}

/* Opens the first of the names that is there, and calls nothing of it. It stays open: the
 * program ends soon, and not all of them give back on closing what they took on opening. */
static int is_openable(const char *const *names)
{
    for (; *names; names++) {
        if (dlopen(*names, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE)) {
            return 1;
        }
    }
    return 0;
}

static json_t *describe_libraries(void)
{
    static const char *const cuda[] = {"libcuda.so.1", NULL};
    static const char *const nvrtc[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                        NULL};
    static const char *const nccl[] = {"libnccl.so.2", NULL};
    static const char *const mpi[] = {"libmpi.so.40", "libmpi.so.12", "libmpi.so", NULL};
    return json_pack("{s:b, s:b, s:b, s:b}", "libcuda", is_openable(cuda), "libnvrtc",
                     is_openable(nvrtc), "libnccl", is_openable(nccl), "libmpi",
                     is_openable(mpi));
}

/* The first CUDA device, or the sentence that says why there is none. */
static json_t *describe_cuda(void)
{
    mla_device_info info = MLA_INIT(mla_device_info);
    mla_error error = {0};
    if (mla_query_device(MLA_BACKEND_CUDA, 0, &info, &error) != MLA_OK) {
        return json_pack("{s:s}", "none", error.message);
    }
    return json_pack("{s:s, s:I, s:i}", "name", info.name, "total_bytes",
                     (json_int_t)info.total_bytes, "num_units", (int)info.num_units);
}

static json_t *describe_all(void)
{
    char version[32];
    (void)snprintf(version, sizeof version, "%d.%d.%d", MLA_VERSION_MAJOR,
                   MLA_VERSION_MINOR, MLA_VERSION_PATCH);
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "version", version,
                     "commit", MLA_BUILD_COMMIT, "build", describe_build(), "cpu",
                     describe_cpu(), "cuda", describe_cuda(), "topology",
                     topology_describe(), "memory", machine_memory(), "huge_pages",
                     machine_huge_pages(), "libraries", describe_libraries());
}

int command_doctor(int argc, char **argv)
{
    bool is_json = false;
    mla_error error = {0};
    if (!arguments_parse(&doctor_argp, argc, argv, &is_json)) {
        return COMMAND_MISUSED;
    }
    json_t *found = describe_all();
    if (is_json || !found) {
        mla_status status = json_output_print(found, true, &error);
        return status == MLA_OK ? COMMAND_OK : complain(&error);
    }
    outline_print(found);
    json_decref(found);
    return COMMAND_OK;
}
