/* host_memory.h - how much memory this machine has. */
#ifndef MLA_DEVICE_HOST_MEMORY_H
#define MLA_DEVICE_HOST_MEMORY_H

#include <stdint.h>

/* Both 0 where the system does not say. Free is what could be taken without swapping: caches
 * that the kernel would drop are counted in. Allocates nothing. */
void mlai_host_memory(uint64_t *total_bytes, uint64_t *free_bytes);

/* The value of "name:  123 kB" in a text like /proc/meminfo, in bytes; 0 if it is not there
 * or no number of kB. */
uint64_t mlai_host_memory_field(const char *text, const char *name);

#endif
