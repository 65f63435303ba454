/* device.c - opening a device, judging its answers, its memory: see device.h. */
#include "device/cuda/device.h"

#include <string.h>

/* After these every later call of the context fails: see the driver's documentation. */
static bool is_sticky(mlai_cu_result result)
{
    static const int sticky[] = {4,   214, 220, 226, 700, 702, 709, 710,
                                 714, 715, 716, 717, 718, 719, 999};
    for (size_t i = 0; i < sizeof sticky / sizeof sticky[0]; i++) {
        if (sticky[i] == result) {
            return true;
        }
    }
    return false;
}

static bool is_about_capture(mlai_cu_result result)
{
    enum { FIRST = 900, LAST = 908 };
    return result >= FIRST && result <= LAST;
}

static mla_status status_of(mlai_cu_result result)
{
    return result == MLAI_CU_SUCCESS               ? MLA_OK
           : result == MLAI_CU_ERROR_OUT_OF_MEMORY ? MLA_ERR_NO_MEMORY
           : result == MLAI_CU_ERROR_NO_BINARY     ? MLA_ERR_UNSUPPORTED
           : is_sticky(result)                     ? MLA_ERR_DEVICE
           : is_about_capture(result)              ? MLA_ERR_STATE
                                                   : MLA_ERR_INTERNAL;
}

static const char *name_of(const mlai_cuda_driver *driver, mlai_cu_result result)
{
    const char *name = NULL;
    return driver->cuGetErrorName(result, &name) == MLAI_CU_SUCCESS && name ? name
                                                                            : "no name";
}

static mla_status fail(const mlai_cuda_driver *driver, mlai_cu_result result,
                       const char *call, const char *where, mla_error *err)
{
    mla_status status = status_of(result);
    (void)mlai_fail(err, status, where, "%.*s failed: %s (%d)", (int)strcspn(call, "("),
                    call, name_of(driver, result), result);
    if (err) {
        err->native_code = result;
    }
    return status;
}

mla_status mlai_cuda_judge(mlai_cuda *cuda, mlai_cu_result result, const char *call,
                           const char *where, mla_error *err)
{
    if (result == MLAI_CU_SUCCESS) {
        return MLA_OK;
    }
    if (is_sticky(result)) {
        const char *none = NULL;
        if (atomic_compare_exchange_strong(&cuda->failed_call, &none, call)) {
            atomic_store(&cuda->failure, result);
        }
    }
    return fail(cuda->driver, result, call, where, err);
}

mla_status mlai_cuda_check_alive(const mlai_cuda *cuda, mla_error *err)
{
    mlai_cu_result failure = atomic_load(&cuda->failure);
    return failure == MLAI_CU_SUCCESS
               ? MLA_OK
               : fail(cuda->driver, failure, atomic_load(&cuda->failed_call), MLAI_HERE,
                      err);
}

mla_status mlai_cuda_enter(mlai_cuda *cuda, mla_error *err)
{
    MLAI_TRY(mlai_cuda_check_alive(cuda, err));
    return MLAI_CU(cuda, cuCtxPushCurrent(cuda->context));
}

bool mlai_cuda_enter_to_free(const mlai_cuda *cuda)
{
    return cuda->driver->cuCtxPushCurrent(cuda->context) == MLAI_CU_SUCCESS;
}

void mlai_cuda_leave(const mlai_cuda *cuda)
{
    mlai_cu_context left;
    (void)cuda->driver->cuCtxPopCurrent(&left);
}

static mla_status find(const mlai_cuda_driver *driver, int32_t ordinal,
                       mlai_cu_device *device, mla_error *err)
{
    int count = 0;
    mlai_cu_result result = driver->cuDeviceGetCount(&count);
    MLAI_CHECK(result == MLAI_CU_SUCCESS, MLA_ERR_UNSUPPORTED,
               "the CUDA driver does not count its devices: %s (%d)",
               name_of(driver, result), result);
    MLAI_CHECK(ordinal >= 0 && ordinal < count, MLA_ERR_UNSUPPORTED,
               "there is no CUDA device %d: the driver sees %d", ordinal, count);
    result = driver->cuDeviceGet(device, ordinal);
    MLAI_CHECK(result == MLAI_CU_SUCCESS, MLA_ERR_UNSUPPORTED,
               "CUDA device %d cannot be used: %s (%d)", ordinal, name_of(driver, result),
               result);
    return MLA_OK;
}

static mla_status ask(mlai_cuda *cuda, mla_error *err)
{
    int unit_bytes = 0;
    int block_bytes = 0;
    const mlai_cu_device device = cuda->device;
    MLAI_TRY(
        MLAI_CU(cuda, cuDeviceGetAttribute(&cuda->major, MLAI_CU_ATTRIBUTE_MAJOR, device)));
    MLAI_TRY(
        MLAI_CU(cuda, cuDeviceGetAttribute(&cuda->minor, MLAI_CU_ATTRIBUTE_MINOR, device)));
    MLAI_TRY(MLAI_CU(
        cuda, cuDeviceGetAttribute(&cuda->num_units, MLAI_CU_ATTRIBUTE_NUM_SMS, device)));
    MLAI_TRY(MLAI_CU(cuda, cuDeviceGetAttribute(
                               &unit_bytes, MLAI_CU_ATTRIBUTE_SHARED_UNIT_BYTES, device)));
    MLAI_TRY(
        MLAI_CU(cuda, cuDeviceGetAttribute(&block_bytes,
                                           MLAI_CU_ATTRIBUTE_SHARED_BLOCK_BYTES, device)));
    cuda->shared_unit_bytes = (size_t)unit_bytes;
    cuda->shared_block_bytes = (size_t)block_bytes;
    return MLA_OK;
}

/* The caller's current context, if it has one and that is of this device. */
static mla_status take_current(mlai_cuda *cuda, mla_error *err)
{
    mlai_cu_context current = NULL;
    mlai_cu_device of = -1;
    MLAI_TRY(MLAI_CU(cuda, cuCtxGetCurrent(&current)));
    if (current) {
        MLAI_TRY(MLAI_CU(cuda, cuCtxGetDevice(&of)));
    }
    cuda->context = current && of == cuda->device ? current : NULL;
    return MLA_OK;
}

mla_status mlai_cuda_open(int32_t ordinal, mlai_cuda *out, mla_error *err)
{
    mlai_cuda cuda = {.ordinal = ordinal};
    MLAI_TRY(mlai_cuda_driver_get(&cuda.driver, err));
    MLAI_TRY(find(cuda.driver, ordinal, &cuda.device, err));
    MLAI_TRY(ask(&cuda, err));
    MLAI_CHECK(cuda.major >= 8, MLA_ERR_UNSUPPORTED,
               "CUDA device %d has compute capability %d.%d, and 8.0 is the least", ordinal,
               cuda.major, cuda.minor);
    MLAI_TRY(take_current(&cuda, err));
    if (!cuda.context) {
        MLAI_TRY(MLAI_CU(&cuda, cuDevicePrimaryCtxRetain(&cuda.context, cuda.device)));
        cuda.has_primary = true;
    }
    *out = cuda;
    return MLA_OK;
}

void mlai_cuda_shut(mlai_cuda *cuda)
{
    if (cuda->has_primary) {
        (void)cuda->driver->cuDevicePrimaryCtxRelease(cuda->device);
        cuda->has_primary = false;
    }
    cuda->context = NULL;
}

/* What the driver gives is aligned to 256 bytes at least. */
enum { DRIVER_ALIGN_BYTES = 256 };

static mla_status take_memory(mlai_cuda *cuda, bool is_pinned, size_t bytes, void **out,
                              mla_error *err)
{
    mlai_cu_pointer data = 0;
    MLAI_TRY(mlai_cuda_enter(cuda, err));
    mla_status status = is_pinned ? MLAI_CU(cuda, cuMemAllocHost(out, bytes))
                                  : MLAI_CU(cuda, cuMemAlloc(&data, bytes));
    mlai_cuda_leave(cuda);
    if (status == MLA_OK && !is_pinned) {
        *out = (void *)(uintptr_t)data;
    }
    return status;
}

static mla_status check_align(size_t align_bytes, mla_error *err)
{
    MLAI_CHECK(align_bytes <= DRIVER_ALIGN_BYTES, MLA_ERR_ARGUMENT,
               "CUDA memory is aligned to %d bytes, not to %zu", DRIVER_ALIGN_BYTES,
               align_bytes);
    return MLA_OK;
}

static mla_status take_device(void *user, size_t bytes, size_t align_bytes, void **out,
                              mla_error *err)
{
    MLAI_TRY(check_align(align_bytes, err));
    return take_memory(user, false, bytes, out, err);
}

static mla_status take_pinned(void *user, size_t bytes, size_t align_bytes, void **out,
                              mla_error *err)
{
    MLAI_TRY(check_align(align_bytes, err));
    return take_memory(user, true, bytes, out, err);
}

static void give_device(void *user, void *data)
{
    const mlai_cuda *cuda = user;
    if (mlai_cuda_enter_to_free(cuda)) {
        (void)cuda->driver->cuMemFree((uintptr_t)data);
        mlai_cuda_leave(cuda);
    }
}

static void give_pinned(void *user, void *data)
{
    const mlai_cuda *cuda = user;
    if (mlai_cuda_enter_to_free(cuda)) {
        (void)cuda->driver->cuMemFreeHost(data);
        mlai_cuda_leave(cuda);
    }
}

mlai_ledger_source mlai_cuda_device_memory(mlai_cuda *cuda)
{
    return (mlai_ledger_source){take_device, give_device, cuda};
}

mlai_ledger_source mlai_cuda_pinned_memory(mlai_cuda *cuda)
{
    return (mlai_ledger_source){take_pinned, give_pinned, cuda};
}

static uint64_t free_bytes_if_active(const mlai_cuda *cuda)
{
    const mlai_cuda_driver *driver = cuda->driver;
    unsigned flags = 0;
    int is_active = 0;
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    mlai_cuda primary = *cuda;
    if (driver->cuDevicePrimaryCtxGetState(cuda->device, &flags, &is_active) != 0 ||
        !is_active ||
        driver->cuDevicePrimaryCtxRetain(&primary.context, cuda->device) != 0) {
        return 0;
    }
    if (mlai_cuda_enter_to_free(&primary)) {
        if (driver->cuMemGetInfo(&free_bytes, &total_bytes) != MLAI_CU_SUCCESS) {
            free_bytes = 0;
        }
        mlai_cuda_leave(&primary);
    }
    (void)driver->cuDevicePrimaryCtxRelease(cuda->device);
    return free_bytes;
}

mla_status mlai_cuda_describe(int32_t ordinal, mla_device_info *info, mla_error *err)
{
    mlai_cuda cuda = {.ordinal = ordinal};
    size_t total_bytes = 0;
    memset(info, 0, sizeof *info);
    MLAI_TRY(mlai_cuda_driver_get(&cuda.driver, err));
    MLAI_TRY(find(cuda.driver, ordinal, &cuda.device, err));
    MLAI_TRY(ask(&cuda, err));
    MLAI_TRY(MLAI_CU(&cuda, cuDeviceTotalMem(&total_bytes, cuda.device)));
    MLAI_TRY(
        MLAI_CU(&cuda, cuDeviceGetName(info->name, (int)sizeof info->name, cuda.device)));
    info->struct_size = sizeof *info;
    info->backend = MLA_BACKEND_CUDA;
    info->device = ordinal;
    info->isa_mask = cuda.major >= 8 ? MLA_ISA_SM80 : 0;
    info->num_units = cuda.num_units;
    info->total_bytes = total_bytes;
    info->free_bytes = free_bytes_if_active(&cuda);
    return MLA_OK;
}
