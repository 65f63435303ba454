/* cpu.h - what this CPU and this operating system let us use. */
#ifndef MLA_DEVICE_CPU_H
#define MLA_DEVICE_CPU_H

#include <stdint.h>

/* Bits of mla_isa. An instruction set counts only if cpuid reports it and xgetbv says
 * that the operating system saves its registers. MLA_ISA_C is always there. */
uint32_t mlai_cpu_isa(void);

/* isa without what mask lacks; MLA_ISA_C stays, and a mask of 0 takes nothing away. A mask
 * never adds: a bit that isa lacks stays away. */
uint32_t mlai_cpu_isa_narrow(uint32_t isa, uint32_t mask);

/* CPUs that this process may run on (its affinity mask), at least 1. */
int32_t mlai_cpu_count(void);

/* "AMD EPYC 7763 64-Core Processor", or "CPU" where the CPU does not say; NUL-terminated. */
void mlai_cpu_name(char name[64]);

#endif
