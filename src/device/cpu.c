/* cpu.c - asks cpuid, xgetbv and the scheduler: see cpu.h. */
#include "device/cpu.h"

#include <cpuid.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>

#include "mla/mla.h"

enum { XCR0_SSE_YMM = 0x6, XCR0_ZMM = 0xe6 };

typedef struct registers {
    uint32_t a, b, c, d; /* EAX, EBX, ECX, EDX */
} registers;

/* All 0, so no feature, where the CPU has no such leaf. */
static registers cpuid(uint32_t leaf)
{
    registers words = {0};
    (void)__get_cpuid_count(leaf, 0, &words.a, &words.b, &words.c, &words.d);
    return words;
}

static uint64_t os_saved_registers(void)
{
    uint32_t low;
    uint32_t high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static bool has_all(uint64_t bits, uint64_t wanted)
{
    return (bits & wanted) == wanted;
}

uint32_t mlai_cpu_isa(void)
{
    const uint32_t avx512 = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
    uint32_t isa = MLA_ISA_C;
    registers basic = cpuid(1);
    if (!has_all(basic.c, bit_OSXSAVE | bit_AVX)) {
        return isa; /* without OSXSAVE there is no xgetbv */
    }
    uint64_t saved = os_saved_registers();
    registers extended = cpuid(7);
    if (has_all(saved, XCR0_SSE_YMM) && has_all(basic.c, bit_FMA | bit_F16C) &&
        has_all(extended.b, bit_AVX2)) {
        isa |= MLA_ISA_AVX2;
    }
    if ((isa & MLA_ISA_AVX2) && has_all(saved, XCR0_ZMM) && has_all(extended.b, avx512)) {
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
    enum { NUM_LEAVES = 3 };
    const uint32_t first_leaf = 0x80000002U;
    registers words[NUM_LEAVES];
    for (uint32_t i = 0; i < NUM_LEAVES; i++) {
        words[i] = cpuid(first_leaf + i);
    }
    memcpy(name, words, sizeof words);
    name[sizeof words] = '\0';
    for (size_t end = strlen(name); end > 0 && name[end - 1] == ' '; end--) {
        name[end - 1] = '\0';
    }
    if (name[0] == '\0') {
        memcpy(name, "CPU", sizeof "CPU");
    }
}
