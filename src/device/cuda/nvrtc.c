/* nvrtc.c - finds and opens the compiler: see nvrtc.h. */
#include "device/cuda/nvrtc.h"

#include <dlfcn.h>

static const mlai_nvrtc *installed;

static const char *const names[] = {
    "libnvrtc.so.13",
    "libnvrtc.so.12",
    "libnvrtc.so",
    "/usr/local/cuda/lib64/libnvrtc.so",
    "/usr/local/cuda/lib/libnvrtc.so",
};

static void *open_library(const char *path)
{
    if (path) {
        return dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !library; i++) {
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    }
    return library;
}

static mla_status fill_table(void *library, mlai_nvrtc *table, mla_error *err)
{
    const struct {
        const char *name;
        void *function;
    } calls[] = {
#define MLAI_X(name, parameters) {#name, &table->name},
        MLAI_NVRTC_CALLS(MLAI_X)
#undef MLAI_X
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        void *symbol = dlsym(library, calls[i].name);
        MLAI_CHECK(symbol, MLA_ERR_UNSUPPORTED, "the NVRTC library has no %s",
                   calls[i].name);
        *(void **)calls[i].function = symbol;
    }
    return MLA_OK;
}

static mla_status check_version(mlai_nvrtc *table, mla_error *err)
{
    int major = 0;
    int minor = 0;
    MLAI_CHECK(table->nvrtcVersion && table->nvrtcVersion(&major, &minor) == 0,
               MLA_ERR_UNSUPPORTED, "the NVRTC library does not say its version");
    table->version = 1000 * major + 10 * minor;
    MLAI_CHECK(table->version >= MLAI_NVRTC_OLDEST, MLA_ERR_UNSUPPORTED,
               "NVRTC is version %d.%d, and 12.8 is the oldest that will do", major, minor);
    return MLA_OK;
}

mla_status mlai_nvrtc_open(const char *path, mlai_nvrtc *out, mla_error *err)
{
    mlai_nvrtc table = {.version = 0};
    if (installed) {
        table = *installed;
    } else {
        void *library = open_library(path);
        MLAI_CHECK(library, MLA_ERR_UNSUPPORTED,
                   "there is no NVRTC to compile CUDA kernels: %s cannot be opened",
                   path ? path : "libnvrtc.so.13 or .12");
        MLAI_TRY(fill_table(library, &table, err));
    }
    MLAI_TRY(check_version(&table, err));
    *out = table;
    return MLA_OK;
}

void mlai_nvrtc_install(const mlai_nvrtc *nvrtc)
{
    installed = nvrtc;
}
