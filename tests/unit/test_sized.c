/* Structs of an older and a newer header: read, checked and filled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/sized.h"

typedef struct probe {
    size_t struct_size;
    int32_t first, second; /* required up to here */
    int64_t third;
} probe;

enum { REQUIRED = MLAI_END_OF(probe, second) };

/* The struct in a block of exactly struct_size bytes, so that a sanitizer sees a byte too
 * many; the caller frees it. */
static void *block_of(size_t bytes, size_t struct_size)
{
    unsigned char *block = calloc(1, bytes);
    assert_non_null(block);
    probe full = {struct_size, 11, 22, 33};
    memcpy(block, &full, bytes < sizeof full ? bytes : sizeof full);
    return block;
}

static mla_status read_probe(const void *in, probe *copy, mla_error *err)
{
    return MLAI_SIZED_READ(probe, second, in, copy);
}

static mla_status check_probe(const void *out, mla_error *err)
{
    return MLAI_SIZED_CHECK_OUT(probe, out);
}

static void read_takes_every_size_from_the_required_fields_to_a_zero_tail(void **state)
{
    (void)state;
    for (size_t bytes = REQUIRED; bytes <= sizeof(probe) + MLAI_SIZED_MAX_TAIL_BYTES;
         bytes++) {
        void *in = block_of(bytes, bytes);
        probe copy;
        memset(&copy, 0xa5, sizeof copy);
        assert_int_equal(read_probe(in, &copy, NULL), MLA_OK);
        assert_int_equal(copy.struct_size, sizeof(probe));
        assert_int_equal(copy.first, 11);
        assert_int_equal(copy.second, 22);
        assert_int_equal(copy.third, bytes > REQUIRED ? 33 : 0);
        free(in);
    }
}

static void read_refuses_a_struct_cut_before_its_last_required_byte(void **state)
{
    (void)state;
    for (size_t bytes = 0; bytes < REQUIRED; bytes++) {
        void *in = block_of(sizeof(size_t) > bytes ? sizeof(size_t) : bytes, bytes);
        probe copy = {0};
        mla_error err = {0};
        assert_int_equal(read_probe(in, &copy, &err), MLA_ERR_ARGUMENT);
        assert_int_equal(copy.struct_size, 0); /* not written */
        free(in);
    }
    size_t size = REQUIRED - 1;
    mla_error err = {0};
    probe in = {.struct_size = size};
    probe copy;
    assert_int_equal(read_probe(&in, &copy, &err), MLA_ERR_ARGUMENT);
    assert_non_null(
        strstr(err.message, "15")); /* its size, what is needed, what is known */
    assert_non_null(strstr(err.message, "16"));
    assert_non_null(strstr(err.message, "24"));
}

static void read_refuses_a_tail_with_any_byte_that_is_not_zero(void **state)
{
    (void)state;
    enum { TAIL = 40 };
    for (size_t i = 0; i < TAIL; i++) {
        unsigned char *in = block_of(sizeof(probe) + TAIL, sizeof(probe) + TAIL);
        in[sizeof(probe) + i] = 1;
        probe copy;
        mla_error err = {0};
        assert_int_equal(read_probe(in, &copy, &err), MLA_ERR_ARGUMENT);
        assert_non_null(strstr(err.message, "64"));
        assert_non_null(strstr(err.message, "24"));
        free(in);
    }
}

static void read_refuses_a_size_that_was_never_set_without_reading_behind(void **state)
{
    (void)state;
    static const size_t wild[] = {sizeof(probe) + MLAI_SIZED_MAX_TAIL_BYTES + 1, SIZE_MAX,
                                  SIZE_MAX / 2, (size_t)0xa5a5a5a5};
    for (size_t i = 0; i < sizeof wild / sizeof wild[0]; i++) {
        void *in = block_of(sizeof(probe), wild[i]);
        probe copy;
        assert_int_equal(read_probe(in, &copy, NULL), MLA_ERR_ARGUMENT);
        free(in);
    }
}

static void null_is_refused_by_name(void **state)
{
    (void)state;
    probe copy;
    mla_error err = {0};
    assert_int_equal(read_probe(NULL, &copy, &err), MLA_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "probe is NULL"));
    assert_int_equal(check_probe(NULL, &err), MLA_ERR_ARGUMENT);
}

static void fill_writes_as_far_as_the_struct_reaches_and_keeps_its_size(void **state)
{
    (void)state;
    const probe full = {sizeof(probe), 1, 2, 3};
    for (size_t bytes = sizeof(size_t); bytes <= sizeof(probe) + 8; bytes++) {
        unsigned char *out = calloc(1, bytes);
        assert_non_null(out);
        memcpy(out, &bytes, sizeof bytes);
        assert_int_equal(check_probe(out, NULL), MLA_OK);
        MLAI_SIZED_FILL(probe, out, &full);
        size_t end = bytes < sizeof(probe) ? bytes : sizeof(probe);
        assert_memory_equal(out, &bytes, sizeof bytes);
        assert_memory_equal(out + sizeof bytes, (const unsigned char *)&full + sizeof bytes,
                            end - sizeof bytes);
        for (size_t i = end; i < bytes; i++) {
            assert_int_equal(out[i], 0);
        }
        free(out);
    }
}

static void out_struct_without_a_size_is_refused(void **state)
{
    (void)state;
    probe out = {0};
    assert_int_equal(check_probe(&out, NULL), MLA_ERR_ARGUMENT);
    out.struct_size = sizeof(size_t) - 1;
    assert_int_equal(check_probe(&out, NULL), MLA_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_takes_every_size_from_the_required_fields_to_a_zero_tail),
        cmocka_unit_test(read_refuses_a_struct_cut_before_its_last_required_byte),
        cmocka_unit_test(read_refuses_a_tail_with_any_byte_that_is_not_zero),
        cmocka_unit_test(read_refuses_a_size_that_was_never_set_without_reading_behind),
        cmocka_unit_test(null_is_refused_by_name),
        cmocka_unit_test(fill_writes_as_far_as_the_struct_reaches_and_keeps_its_size),
        cmocka_unit_test(out_struct_without_a_size_is_refused),
    };
    return cmocka_run_group_tests_name("sized", tests, NULL, NULL);
}
