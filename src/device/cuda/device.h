/* device.h - one CUDA device, opened: the context that calls run in, what the device has, and
 * the first failure after which it is dead.
 *
 * A call of the driver is written MLAI_TRY(MLAI_CU(cuda, cuMemFree(data))) between
 * mlai_cuda_enter and mlai_cuda_leave. */
#ifndef MLA_DEVICE_CUDA_DEVICE_H
#define MLA_DEVICE_CUDA_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/ledger.h"
#include "device/cuda/driver.h"

typedef struct mlai_cuda {
    const mlai_cuda_driver *driver;
    mlai_cu_device device;
    mlai_cu_context context;
    bool has_primary; /* retained by us: no context of the device was current */
    int32_t ordinal, major, minor, num_units;
    size_t shared_unit_bytes, shared_block_bytes;
    atomic_int failure;                /* the first sticky CUresult; 0: alive */
    _Atomic(const char *) failed_call; /* the call that gave it */
} mlai_cuda;

/* Takes the caller's current context if it is of this device, else the primary one.
 * MLA_ERR_UNSUPPORTED where there is no such device. out: shut it. */
mla_status mlai_cuda_open(int32_t ordinal, mlai_cuda *out, mla_error *err);
void mlai_cuda_shut(mlai_cuda *cuda);

/* Makes the context current; leave restores the caller's. MLA_ERR_DEVICE once the device is
 * dead, with the failure that it died of: then nothing was entered. */
mla_status mlai_cuda_enter(mlai_cuda *cuda, mla_error *err);
void mlai_cuda_leave(const mlai_cuda *cuda);

/* The same for calls that give something back: a dead device is entered, too. false: the
 * driver does not even do that. */
bool mlai_cuda_enter_to_free(const mlai_cuda *cuda);

/* What a CUresult means: MLA_ERR_DEVICE kills the device, everything else leaves it alive.
 * call: its text, static; the name up to the parenthesis is shown. */
mla_status mlai_cuda_judge(mlai_cuda *cuda, mlai_cu_result result, const char *call,
                           const char *where, mla_error *err);

#define MLAI_CU(cuda, call)                                                                \
    mlai_cuda_judge((cuda), (cuda)->driver->call, #call, MLAI_HERE, err)

/* MLA_ERR_DEVICE with the first failure of a dead device. */
mla_status mlai_cuda_check_alive(const mlai_cuda *cuda, mla_error *err);

/* Device and pinned memory for a ledger whose owner gave no allocator. cuda: borrowed. */
mlai_ledger_source mlai_cuda_device_memory(mlai_cuda *cuda);
mlai_ledger_source mlai_cuda_pinned_memory(mlai_cuda *cuda);

/* What mla_query_device says. free_bytes is 0 where no context is active yet: to ask for it
 * would make one. */
mla_status mlai_cuda_describe(int32_t ordinal, mla_device_info *info, mla_error *err);

#endif
