/* gpu.c - see gpu.h. */
#include "support/gpu.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "device/cuda/nvrtc.h"
#include "support/device_memory.h"
#include "support/folder.h"
#include "support/must.h"
#include "support/rig.h"

static char made[] = "/tmp/mla-kernels-XXXXXX";
static const char *cache;

static bool gpu_is_there(void)
{
    static mlai_nvrtc nvrtc;
    mla_error err = {MLA_OK, 0, NULL, ""};
    mla_device_info info = MLA_INIT(mla_device_info);
    if (mla_query_device(MLA_BACKEND_CUDA, 0, &info, &err) != MLA_OK ||
        mlai_nvrtc_open(NULL, &nvrtc, &err) != MLA_OK) {
        printf("no GPU level: %s\n", err.message);
        return false;
    }
    if (!(info.isa_mask & MLA_ISA_SM80)) {
        printf("no GPU level: %s is older than sm_80\n", info.name);
        return false;
    }
    return true;
}

static void drop_cache(void)
{
    folder_drop(made);
}

static const char *make_cache(void)
{
    const char *given = getenv("MLA_TEST_CACHE");
    if (given && given[0]) {
        return given;
    }
    folder_make(made);
    (void)atexit(drop_cache);
    return made;
}

static void gpu_begin(void)
{
    memory_open();
    cache = cache ? cache : make_cache();
    rig_backend = MLA_BACKEND_CUDA;
    rig_is_on_gpu = true;
}

static void gpu_end(void)
{
    rig_backend = MLA_BACKEND_CPU;
    rig_is_on_gpu = false;
}

const char *gpu_cache(void)
{
    return rig_is_on_gpu ? cache : NULL;
}

void gpu_level(levels *suite, int (*run)(void))
{
    if (levels_run(suite, "sm80", gpu_is_there())) {
        gpu_begin();
        suite->num_failed += run();
        gpu_end();
    }
}

int gpu_suite(const char *name, int (*run)(void))
{
    levels suite = levels_start(name);
    if (levels_run(&suite, "cpu", true)) {
        suite.num_failed += run();
    }
    gpu_level(&suite, run);
    return levels_finish(&suite);
}

int gpu_only_suite(const char *name, int (*run)(void))
{
    levels suite = levels_start(name);
    gpu_level(&suite, run);
    return suite.num_run == 0 && !levels_requires("sm80") ? GPU_SKIPPED
                                                          : levels_finish(&suite);
}

size_t gpu_free_bytes(void)
{
    return getenv("MLA_TEST_CASES") ? 0 : memory_free_bytes();
}

static mla_progress last;

static void note(void *user, const mla_progress *progress)
{
    (void)user;
    last = *progress;
}

void gpu_warm(const mla_caps *caps, int num)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    mla_session *session = NULL;
    mla_session_options options = MLA_INIT(mla_session_options);
    mla_ticket ticket;
    if (!rig_is_on_gpu) {
        return;
    }
    mla_context *context = rig_context(1, NULL);
    options.cache_dir = gpu_cache();
    options.progress = note;
    must(mla_session_open(context, &options, &session, &err), &err);
    for (int i = 0; i < num; i++) {
        must(mla_session_add(session, &caps[i], NULL, &ticket, &err), &err);
    }
    int64_t start_ns = mlai_now_ns();
    must(mla_session_prepare(session, &err), &err);
    printf("%d plans prepared, %d of them from the cache, in %lld ms\n", last.num_compiled,
           last.num_from_cache, (long long)(mlai_now_ns() - start_ns) / 1000000);
    mla_session_close(&session);
    must(mla_context_destroy(&context, &err), &err);
}
