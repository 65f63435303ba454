/* driver.c - fills the table from libcuda: see driver.h. */
#include "device/cuda/driver.h"

#include <dlfcn.h>
#include <pthread.h>

typedef mlai_cu_result (*get_address)(const char *name, void **function, int version,
                                      uint64_t flags, int *found);

static const mlai_cuda_driver *installed;

/* What the one attempt to open the real driver gave. */
static struct {
    pthread_once_t once;
    mlai_cuda_driver table;
    mla_status status;
    mla_error why;
} real = {.once = PTHREAD_ONCE_INIT};

/* dlsym gives functions as data pointers; POSIX says that this is the way back. */
static void to_function(void *symbol, void *function)
{
    *(void **)function = symbol;
}

static mla_status look_up(get_address get, const char *name, int version, void *function,
                          mla_error *err)
{
    void *symbol = NULL;
    int found = 0;
    mlai_cu_result result = get(name, &symbol, version, 0, &found);
    MLAI_CHECK(result == MLAI_CU_SUCCESS && symbol, MLA_ERR_UNSUPPORTED,
               "the CUDA driver has no %s of version %d (error %d)", name, version, result);
    to_function(symbol, function);
    return MLA_OK;
}

static mla_status fill_table(mlai_cuda_driver *table, get_address get, mla_error *err)
{
    const struct {
        const char *name;
        int version;
        void *function;
    } calls[] = {
#define MLAI_X(name, version, parameters) {#name, version, &table->name},
        MLAI_CUDA_CALLS(MLAI_X)
#undef MLAI_X
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        MLAI_TRY(look_up(get, calls[i].name, calls[i].version, calls[i].function, err));
    }
    return MLA_OK;
}

static mla_status open_real(mlai_cuda_driver *table, mla_error *err)
{
    get_address get;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    MLAI_CHECK(library, MLA_ERR_UNSUPPORTED,
               "there is no CUDA device: the driver's libcuda.so.1 is not here");
    to_function(dlsym(library, "cuGetProcAddress_v2"), &get);
    MLAI_CHECK(get, MLA_ERR_UNSUPPORTED,
               "the CUDA driver is older than 12.0: it has no cuGetProcAddress_v2");
    MLAI_TRY(fill_table(table, get, err));
    mlai_cu_result result = table->cuInit(0);
    MLAI_CHECK(result != MLAI_CU_ERROR_NO_DEVICE, MLA_ERR_UNSUPPORTED,
               "there is no CUDA device: the driver sees none");
    MLAI_CHECK(result == MLAI_CU_SUCCESS, MLA_ERR_UNSUPPORTED,
               "the CUDA driver does not start: cuInit gave error %d", result);
    return MLA_OK;
}

static void open_real_once(void)
{
    real.status = open_real(&real.table, &real.why);
}

mla_status mlai_cuda_driver_get(const mlai_cuda_driver **out, mla_error *err)
{
    if (installed) {
        *out = installed;
        return MLA_OK;
    }
    (void)pthread_once(&real.once, open_real_once);
    if (real.status != MLA_OK) {
        if (err) {
            *err = real.why;
        }
        return real.status;
    }
    *out = &real.table;
    return MLA_OK;
}

void mlai_cuda_driver_install(const mlai_cuda_driver *driver)
{
    installed = driver;
}
