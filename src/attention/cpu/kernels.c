/* kernels.c - which table of kernels to use. */
#include "attention/cpu/kernels.h"

/* Best first. */
static const mlai_cpu_kernels *const levels[] = {&mlai_cpu_kernels_avx2,
                                                 &mlai_cpu_kernels_c};
enum { NUM_LEVELS = sizeof levels / sizeof levels[0] };

const mlai_cpu_kernels *mlai_cpu_kernels_best(uint32_t isa_mask)
{
    for (int i = 0; i < NUM_LEVELS; i++) {
        if (isa_mask & (uint32_t)levels[i]->isa) {
            return levels[i];
        }
    }
    return NULL;
}
