/* cpu.c - asks cpuid, xgetbv and the scheduler: see cpu.h. */
#include "device/cpu.h"

#include <cpuid.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>

#include "mla/mla.h"

enum { XCR0_SSE_YMM = 0x6, XCR0_ZMM = 0xe6 };

static uint64_t os_saved_registers(void)
{
    uint32_t low;
    uint32_t high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static bool has_all(uint32_t bits, uint32_t wanted)
{
    return (bits & wanted) == wanted;
}

uint32_t mlai_cpu_isa(void)
{
    uint32_t a;
    uint32_t b;
    uint32_t c;
    uint32_t d;
    uint32_t leaf7_b;
    uint32_t isa = MLA_ISA_C;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !has_all(c, bit_OSXSAVE | bit_AVX)) {
        return isa;
    }
    uint64_t saved = os_saved_registers();
    uint32_t leaf1_c = c;
    if (!__get_cpuid_count(7, 0, &a, &leaf7_b, &c, &d) ||
        (saved & XCR0_SSE_YMM) != XCR0_SSE_YMM) {
        return isa;
    }
    if (has_all(leaf1_c, bit_FMA | bit_F16C) && has_all(leaf7_b, bit_AVX2)) {
        isa |= MLA_ISA_AVX2;
    }
    uint32_t avx512 = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
    if ((isa & MLA_ISA_AVX2) && has_all(leaf7_b, avx512) &&
        (saved & XCR0_ZMM) == XCR0_ZMM) {
        isa |= MLA_ISA_AVX512;
    }
    return isa;
}

uint32_t mlai_cpu_isa_narrow(uint32_t isa, uint32_t mask)
{
    return mask == 0 ? isa : (isa & mask) | MLA_ISA_C;
}

/* A cpu_set_t ends at CPU 1023, and the kernel refuses a set that is too small for it. */
int32_t mlai_cpu_count(void)
{
    enum { NUM_SETS = 8 };
    cpu_set_t allowed[NUM_SETS];
    memset(allowed, 0, sizeof allowed);
    if (sched_getaffinity(0, sizeof allowed, allowed) != 0) {
        return 1;
    }
    int num = CPU_COUNT_S(sizeof allowed, allowed);
    return num > 0 ? num : 1;
}

void mlai_cpu_name(char name[64])
{
    uint32_t words[12] = {0};
    uint32_t a;
    uint32_t b;
    uint32_t c;
    uint32_t d;
    if (!__get_cpuid(0x80000000U, &a, &b, &c, &d) || a < 0x80000004U) {
        memcpy(name, "CPU", 4);
        return;
    }
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t *part = words + 4 * (size_t)i;
        __cpuid(0x80000002U + i, part[0], part[1], part[2], part[3]);
    }
    memcpy(name, words, 48);
    name[48] = '\0';
    for (size_t end = strlen(name); end > 0 && name[end - 1] == ' '; end--) {
        name[end - 1] = '\0';
    }
}
