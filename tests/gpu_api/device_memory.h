/* device_memory.h - a caller's side of the CUDA driver, for tests on a GPU: memory, copies and
 * streams. Every failure ends the program: it is not what is tested here. */
#ifndef TEST_GPU_DEVICE_MEMORY_H
#define TEST_GPU_DEVICE_MEMORY_H

#include "device/cuda/driver.h"

void memory_open(void); /* makes the primary context current, as a caller would */
const mlai_cuda_driver *memory_driver(void);
void *memory_take(size_t bytes, const void *from); /* from NULL: full of 0xff */
void memory_give(const void *data);
void memory_to(const void *to, const void *from, size_t bytes);
void memory_from(void *to, const void *from, size_t bytes);
size_t memory_free_bytes(void);
void memory_wait(void);

#endif
