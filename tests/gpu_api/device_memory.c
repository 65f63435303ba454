/* device_memory.c - see device_memory.h. */
#include "device_memory.h"

#include <stdio.h>
#include <stdlib.h>

static const mlai_cuda_driver *driver;

static void must(mlai_cu_result result, const char *what)
{
    if (result != 0) {
        (void)fprintf(stderr, "%s gave error %d\n", what, result);
        exit(2);
    }
}

void memory_open(void)
{
    mla_error error = {0};
    mlai_cu_context context = NULL;
    if (mlai_cuda_driver_get(&driver, &error) != MLA_OK) {
        (void)fprintf(stderr, "%s\n", error.message);
        exit(2);
    }
    must(driver->cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    must(driver->cuCtxPushCurrent(context), "cuCtxPushCurrent");
}

const mlai_cuda_driver *memory_driver(void)
{
    return driver;
}

void *memory_take(size_t bytes, const void *from)
{
    mlai_cu_pointer data = 0;
    must(driver->cuMemAlloc(&data, bytes), "cuMemAlloc");
    if (from) {
        must(driver->cuMemcpyHtoD(data, from, bytes), "cuMemcpyHtoD");
    } else {
        must(driver->cuMemsetD8(data, 0xff, bytes), "cuMemsetD8");
    }
    return (void *)(uintptr_t)data;
}

void memory_give(const void *data)
{
    if (data) {
        (void)driver->cuMemFree((uintptr_t)data); /* fails where the device has died */
    }
}

void memory_to(const void *to, const void *from, size_t bytes)
{
    must(driver->cuMemcpyHtoD((uintptr_t)to, from, bytes), "cuMemcpyHtoD");
}

void memory_from(void *to, const void *from, size_t bytes)
{
    must(driver->cuMemcpyDtoH(to, (uintptr_t)from, bytes), "cuMemcpyDtoH");
}

size_t memory_free_bytes(void)
{
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    must(driver->cuMemGetInfo(&free_bytes, &total_bytes), "cuMemGetInfo");
    return free_bytes;
}

void memory_wait(void)
{
    must(driver->cuCtxSynchronize(), "cuCtxSynchronize");
}
