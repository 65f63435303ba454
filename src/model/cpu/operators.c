/* operators.c - which table a context may use. */
#include "model/cpu/operators.h"

const operators *operators_best(uint32_t isa_mask)
{
    if (isa_mask & MLA_ISA_AVX2) {
        return &operators_avx2;
    }
    return isa_mask & MLA_ISA_C ? &operators_c : NULL;
}
