/* What this machine says of itself: instruction sets against /proc/cpuinfo, the mask that
 * narrows, CPUs, memory, and mla_query_device with structs of every size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/cpu.h"
#include "device/host_memory.h"
#include "mla/mla.h"

/* The first line that begins with `key`, with a blank at both ends of its words. */
static bool find_cpuinfo(const char *key, char *line, int line_bytes)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    bool is_found = false;
    while (file && !is_found && fgets(line, line_bytes, file)) {
        is_found = strncmp(line, key, strlen(key)) == 0;
    }
    if (file) {
        (void)fclose(file);
    }
    for (char *c = line; is_found && *c; c++) {
        if (*c == '\n' || *c == '\t') {
            *c = ' ';
        }
    }
    return is_found;
}

static bool has_flags(const char *line, const char *const *names)
{
    for (; *names; names++) {
        char word[32];
        (void)snprintf(word, sizeof word, " %s ", *names);
        if (!strstr(line, word)) {
            return false;
        }
    }
    return true;
}

static void the_instruction_sets_are_those_of_proc_cpuinfo(void **state)
{
    (void)state;
    static const char *const avx2[] = {"avx", "avx2", "fma", "f16c", NULL};
    static const char *const avx512[] = {"avx512f", "avx512bw", "avx512dq", "avx512vl",
                                         NULL};
    char line[8192];
    uint32_t isa = mlai_cpu_isa();
    assert_true(isa & MLA_ISA_C);
    assert_int_equal(isa & ~(uint32_t)(MLA_ISA_C | MLA_ISA_AVX2 | MLA_ISA_AVX512), 0);
    if (getenv("MLA_TEST_EMULATED") || !find_cpuinfo("flags", line, sizeof line)) {
        skip(); /* an emulator shows the host's cpuinfo, not the CPU that it plays */
    }
    assert_int_equal((isa & MLA_ISA_AVX2) != 0, has_flags(line, avx2));
    assert_int_equal((isa & MLA_ISA_AVX512) != 0,
                     has_flags(line, avx2) && has_flags(line, avx512));
}

static void a_mask_narrows_and_never_widens(void **state)
{
    (void)state;
    enum { ALL = MLA_ISA_C | MLA_ISA_AVX2 | MLA_ISA_AVX512 };
    for (uint32_t bits = 0; bits <= ALL; bits++) {
        uint32_t isa = bits | MLA_ISA_C;
        for (uint32_t mask = 0; mask <= 2 * ALL + 1; mask++) {
            uint32_t narrowed = mlai_cpu_isa_narrow(isa, mask);
            assert_int_equal(narrowed & ~isa, 0);
            assert_true(narrowed & MLA_ISA_C);
            assert_int_equal(narrowed, mask == 0 ? isa : (isa & mask) | MLA_ISA_C);
        }
    }
    assert_int_equal(mlai_cpu_isa_narrow(MLA_ISA_C, MLA_ISA_AVX2), MLA_ISA_C);
    assert_int_equal(mlai_cpu_isa_narrow(ALL, UINT32_MAX), ALL);
}

static void the_cpus_counted_are_those_allowed(void **state)
{
    (void)state;
    cpu_set_t before;
    cpu_set_t one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    assert_int_equal(mlai_cpu_count(), CPU_COUNT(&before));
    CPU_ZERO(&one);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &before)) {
            CPU_SET(cpu, &one);
            break;
        }
    }
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    int32_t num = mlai_cpu_count();
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_int_equal(num, 1);
}

static void a_meminfo_field_is_read_only_whole(void **state)
{
    (void)state;
    const char *text = "MemTotal:       1000 kB\nMemFree:  7 kB\nHugePages_Total:  3\n"
                       "Huge: 99999999999999999999 kB\nAlmost: 18014398509481984 kB\n"
                       "Most: 18014398509481983 kB\nCut: 12";
    assert_true(mlai_host_memory_field(text, "MemTotal") == UINT64_C(1000) * 1024);
    assert_true(mlai_host_memory_field(text, "MemFree") == UINT64_C(7) * 1024);
    assert_true(mlai_host_memory_field(text, "Mem") == 0);
    assert_true(mlai_host_memory_field(text, "Total") == 0);
    assert_true(mlai_host_memory_field(text, "HugePages_Total") == 0);
    assert_true(mlai_host_memory_field(text, "Huge") == 0);
    assert_true(mlai_host_memory_field(text, "Almost") == 0); /* 2^64 bytes */
    assert_true(mlai_host_memory_field(text, "Most") == UINT64_MAX - 1023);
    assert_true(mlai_host_memory_field(text, "Cut") == 0);
    assert_true(mlai_host_memory_field("", "Cut") == 0);
}

static void the_machine_has_the_memory_that_sysconf_says(void **state)
{
    (void)state;
    uint64_t total = 0;
    uint64_t free_now = 0;
    mlai_host_memory(&total, &free_now);
    uint64_t wanted = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    assert_true(total == wanted);
    assert_true(free_now > 0 && free_now <= total);
}

static void the_cpu_is_described_in_full(void **state)
{
    (void)state;
    mla_device_info info = MLA_INIT(mla_device_info);
    mla_error err;
    assert_int_equal(mla_query_device(MLA_BACKEND_CPU, 0, &info, &err), MLA_OK);
    assert_int_equal(info.struct_size, sizeof info);
    assert_int_equal(info.backend, MLA_BACKEND_CPU);
    assert_int_equal(info.device, 0);
    assert_int_equal(info.isa_mask, mlai_cpu_isa());
    assert_int_equal(info.num_units, mlai_cpu_count());
    assert_true(info.total_bytes > 0 && info.free_bytes <= info.total_bytes);
    size_t length = strnlen(info.name, sizeof info.name);
    assert_true(length > 0 && length < sizeof info.name);
    char line[8192];
    if (!getenv("MLA_TEST_EMULATED") && find_cpuinfo("model name", line, sizeof line)) {
        assert_non_null(strstr(line, info.name));
    }
}

static void a_device_info_is_filled_as_far_as_it_reaches(void **state)
{
    (void)state;
    enum { GUARD = 0xa5 };
    mla_device_info full = MLA_INIT(mla_device_info);
    assert_int_equal(mla_query_device(MLA_BACKEND_CPU, 0, &full, NULL), MLA_OK);
    size_t name_at = offsetof(mla_device_info, name);
    for (size_t bytes = sizeof bytes; bytes < sizeof full; bytes++) {
        mla_device_info info;
        memset(&info, GUARD, sizeof info);
        info.struct_size = bytes;
        assert_int_equal(mla_query_device(MLA_BACKEND_CPU, 0, &info, NULL), MLA_OK);
        assert_int_equal(info.struct_size, bytes);
        for (size_t i = bytes; i < sizeof info; i++) {
            assert_int_equal(((unsigned char *)&info)[i], GUARD);
        }
        if (bytes > name_at) { /* cut short, it still ends */
            assert_true(strnlen(info.name, bytes - name_at) < bytes - name_at);
        }
        if (bytes >= name_at) {
            assert_true(info.total_bytes == full.total_bytes);
        }
    }
}

static void a_device_that_is_not_there_is_refused_by_name(void **state)
{
    (void)state;
    mla_device_info info = MLA_INIT(mla_device_info);
    const mla_device_info before = info;
    mla_error err;
    assert_int_equal(mla_query_device(MLA_BACKEND_CPU, 1, &info, &err),
                     MLA_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "device 1"));
    assert_int_equal(mla_query_device(MLA_BACKEND_CPU, -1, &info, &err),
                     MLA_ERR_UNSUPPORTED);
    assert_int_equal(mla_query_device((mla_backend)3, 0, &info, &err), MLA_ERR_ARGUMENT);
    assert_int_equal(mla_query_device((mla_backend)0, 0, &info, NULL), MLA_ERR_ARGUMENT);
    assert_int_equal(mla_query_device(MLA_BACKEND_CPU, 0, NULL, &err), MLA_ERR_ARGUMENT);
    assert_int_equal(mla_query_device(MLA_BACKEND_CUDA, 4096, &info, &err),
                     MLA_ERR_UNSUPPORTED);
    assert_memory_equal(&info, &before, sizeof info); /* written only on MLA_OK */
    info.struct_size = 0;
    assert_int_equal(mla_query_device(MLA_BACKEND_CPU, 0, &info, &err), MLA_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_instruction_sets_are_those_of_proc_cpuinfo),
        cmocka_unit_test(a_mask_narrows_and_never_widens),
        cmocka_unit_test(the_cpus_counted_are_those_allowed),
        cmocka_unit_test(a_meminfo_field_is_read_only_whole),
        cmocka_unit_test(the_machine_has_the_memory_that_sysconf_says),
        cmocka_unit_test(the_cpu_is_described_in_full),
        cmocka_unit_test(a_device_info_is_filled_as_far_as_it_reaches),
        cmocka_unit_test(a_device_that_is_not_there_is_refused_by_name),
    };
    return cmocka_run_group_tests_name("device", tests, NULL, NULL);
}
