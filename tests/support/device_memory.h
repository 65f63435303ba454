/* device_memory.h - a caller's side of the CUDA driver, for tests on a real GPU: memory, copies
 * and what is free. Every failure ends the program: it is not what is tested here. Any
 * thread may call; the primary context is made current for it. */
#ifndef TEST_DEVICE_MEMORY_H
#define TEST_DEVICE_MEMORY_H

#include "device/cuda/driver.h"

/* Opens device 0 and keeps its primary context, as a caller would. Once a process. */
void memory_open(void);
const mlai_cuda_driver *memory_driver(void); /* with a context current in this thread */

void *memory_take(size_t bytes, const void *from); /* from NULL: full of 0xff */
void memory_give(const void *data);                /* of NULL: nothing */
void memory_to(const void *to, const void *from, size_t bytes);
void memory_from(void *to, const void *from, size_t bytes);
void memory_fill(const void *to, unsigned char byte, size_t bytes);
size_t memory_free_bytes(void);
void memory_wait(void); /* for the whole device */

/* Device memory between two zones that nobody may write. */
typedef struct walled {
    unsigned char *data, *all;
    size_t bytes, all_bytes;
} walled;

walled walled_take(size_t bytes, const void *from); /* as memory_take */
size_t walled_drop(walled *w); /* returns how many bytes were trespassed */

#endif
