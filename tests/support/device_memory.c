/* device_memory.c - see device_memory.h. */
#include "support/device_memory.h"

#include <stdio.h>
#include <stdlib.h>

enum { ZONE = 4096, UNIT = 256, ZONE_BYTE = 0xcd, ALL_ONES = 0xff };

static const mlai_cuda_driver *driver;
static mlai_cu_context kept;

static void must(mlai_cu_result result, const char *what)
{
    if (result != 0) {
        (void)fprintf(stderr, "%s gave error %d\n", what, result);
        exit(2);
    }
}

#define MUST(call, ...) must(memory_driver()->call(__VA_ARGS__), #call)

void memory_open(void)
{
    mla_error error = {0};
    if (driver) {
        return;
    }
    if (mlai_cuda_driver_get(&driver, &error) != MLA_OK) {
        (void)fprintf(stderr, "%s\n", error.message);
        exit(2);
    }
    must(driver->cuDevicePrimaryCtxRetain(&kept, 0), "cuDevicePrimaryCtxRetain");
}

const mlai_cuda_driver *memory_driver(void)
{
    mlai_cu_context current = NULL;
    must(driver->cuCtxGetCurrent(&current), "cuCtxGetCurrent");
    if (!current) {
        must(driver->cuCtxPushCurrent(kept), "cuCtxPushCurrent");
    }
    return driver;
}

void *memory_take(size_t bytes, const void *from)
{
    mlai_cu_pointer data = 0;
    MUST(cuMemAlloc, &data, bytes);
    if (from) {
        MUST(cuMemcpyHtoD, data, from, bytes);
    } else {
        MUST(cuMemsetD8, data, ALL_ONES, bytes);
    }
    return (void *)(uintptr_t)data;
}

void memory_give(const void *data)
{
    if (data) {
        (void)memory_driver()->cuMemFree((uintptr_t)data); /* fails on a device that died */
    }
}

void memory_to(const void *to, const void *from, size_t bytes)
{
    MUST(cuMemcpyHtoD, (uintptr_t)to, from, bytes);
}

void memory_from(void *to, const void *from, size_t bytes)
{
    MUST(cuMemcpyDtoH, to, (uintptr_t)from, bytes);
}

void memory_fill(const void *to, unsigned char byte, size_t bytes)
{
    MUST(cuMemsetD8, (uintptr_t)to, byte, bytes);
}

size_t memory_free_bytes(void)
{
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    MUST(cuMemGetInfo, &free_bytes, &total_bytes);
    return free_bytes;
}

void memory_wait(void)
{
    must(memory_driver()->cuCtxSynchronize(), "cuCtxSynchronize");
}

walled walled_take(size_t bytes, const void *from)
{
    size_t room = (bytes + UNIT - 1) / UNIT * UNIT;
    walled w = {.bytes = bytes, .all_bytes = room + 2 * (size_t)ZONE};
    w.all = memory_take(w.all_bytes, NULL);
    w.data = w.all + ZONE;
    memory_fill(w.all, ZONE_BYTE, w.all_bytes);
    if (bytes > 0 && from) {
        memory_to(w.data, from, bytes);
    } else if (bytes > 0) {
        memory_fill(w.data, ALL_ONES, bytes);
    }
    memory_wait();
    return w;
}

static size_t num_trespassed(const unsigned char *zone, size_t bytes)
{
    size_t num = 0;
    unsigned char *seen = malloc(bytes);
    must(seen == NULL, "malloc");
    memory_from(seen, zone, bytes);
    for (size_t i = 0; i < bytes; i++) {
        num += seen[i] != ZONE_BYTE;
    }
    free(seen);
    return num;
}

size_t walled_drop(walled *w)
{
    const unsigned char *end = w->data + w->bytes;
    size_t num = w->all ? num_trespassed(w->all, ZONE) +
                              num_trespassed(end, (size_t)(w->all + w->all_bytes - end))
                        : 0;
    memory_give(w->all);
    *w = (walled){NULL, NULL, 0, 0};
    return num;
}
