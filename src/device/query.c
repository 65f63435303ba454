/* query.c - mla_query_device: what a device is and has, asked without a context. */
#include <string.h>

#include "base/sized.h"
#include "device/cpu.h"
#include "device/cuda/device.h"
#include "device/host_memory.h"

static void describe_cpu(mla_device_info *info)
{
    memset(info, 0, sizeof *info);
    info->struct_size = sizeof *info;
    info->backend = MLA_BACKEND_CPU;
    info->isa_mask = mlai_cpu_isa();
    info->num_units = mlai_cpu_count();
    mlai_host_memory(&info->total_bytes, &info->free_bytes);
    mlai_cpu_name(info->name);
}

/* A name that the caller's struct cuts short still ends in NUL. */
static void end_name(mla_device_info *full, size_t struct_size)
{
    size_t begin = offsetof(mla_device_info, name);
    if (struct_size > begin && struct_size < begin + sizeof full->name) {
        full->name[struct_size - begin - 1] = '\0';
    }
}

mla_status mla_query_device(mla_backend backend, int32_t device, mla_device_info *info,
                            mla_error *err)
{
    MLAI_TRY(MLAI_SIZED_CHECK_OUT(mla_device_info, info));
    MLAI_CHECK(backend == MLA_BACKEND_CPU || backend == MLA_BACKEND_CUDA, MLA_ERR_ARGUMENT,
               "backend %d is none: CPU is %d and CUDA %d", (int)backend,
               (int)MLA_BACKEND_CPU, (int)MLA_BACKEND_CUDA);
    MLAI_CHECK(backend == MLA_BACKEND_CUDA || device == 0, MLA_ERR_UNSUPPORTED,
               "there is no CPU device %d: all CPUs together are device 0", device);
    mla_device_info full;
    if (backend == MLA_BACKEND_CUDA) {
        MLAI_TRY(mlai_cuda_describe(device, &full, err));
    } else {
        describe_cpu(&full);
    }
    end_name(&full, info->struct_size);
    MLAI_SIZED_FILL(mla_device_info, info, &full);
    return MLA_OK;
}
