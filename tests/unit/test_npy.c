/* The .npy header: what is taken and what is refused, with its reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "cli/npy.h"

typedef struct npy_file {
    unsigned char bytes[512];
    size_t num;
} npy_file;

/* A file of that version with the dictionary and `num_items` items of 4 bytes. */
static npy_file file_of(int version, const char *dictionary, size_t num_items)
{
    npy_file file = {.bytes = "\x93NUMPY"};
    size_t length = strlen(dictionary);
    size_t begin = version == 1 ? 10 : 12;
    file.bytes[6] = (unsigned char)version;
    file.bytes[8] = (unsigned char)(length & 0xff);
    file.bytes[9] = (unsigned char)(length >> 8);
    memcpy(file.bytes + begin, dictionary, length);
    file.num = begin + length + 4 * num_items;
    return file;
}

static void expect_refusal(const npy_file *file, mla_status wanted, const char *words)
{
    npy_header header = {.num_items = 77};
    mla_error error = {0};
    assert_int_equal(npy_parse(file->bytes, file->num, &header, &error), wanted);
    assert_non_null(strstr(error.message, words));
    assert_int_equal(header.num_items, 77);
}

static void takes_all_three_versions(void **state)
{
    (void)state;
    for (int version = 1; version <= 3; version++) {
        npy_file file = file_of(
            version, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 6);
        npy_header header;
        assert_int_equal(npy_parse(file.bytes, file.num, &header, NULL), MLA_OK);
        assert_int_equal(header.type, NPY_F32);
        assert_int_equal(header.num_dims, 2);
        assert_int_equal(header.dims[0], 2);
        assert_int_equal(header.dims[1], 3);
        assert_int_equal(header.num_items, 6);
        assert_int_equal(header.data_offset, file.num - 24);
    }
}

static void takes_any_order_of_keys_and_scalars(void **state)
{
    (void)state;
    npy_file file =
        file_of(1, "{\"shape\":(),\"fortran_order\":False,\"descr\":\"<i4\"}", 1);
    npy_header header;
    assert_int_equal(npy_parse(file.bytes, file.num, &header, NULL), MLA_OK);
    assert_int_equal(header.type, NPY_INT32);
    assert_int_equal(header.num_dims, 0);
    assert_int_equal(header.num_items, 1);
}

static void takes_an_array_without_items(void **state)
{
    (void)state;
    npy_file file =
        file_of(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9), }", 0);
    npy_header header;
    assert_int_equal(npy_parse(file.bytes, file.num, &header, NULL), MLA_OK);
    assert_int_equal(header.num_items, 0);
}

static void refuses_a_file_of_another_length(void **state)
{
    (void)state;
    npy_file file =
        file_of(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 3);
    file.num--;
    expect_refusal(&file, MLA_ERR_CORRUPT, "its header asks for");
    file.num += 2;
    expect_refusal(&file, MLA_ERR_CORRUPT, "its header asks for");
}

static void refuses_every_prefix_of_a_file(void **state)
{
    (void)state;
    npy_file file =
        file_of(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 3);
    for (size_t num = 0; num < file.num; num++) {
        npy_header header;
        assert_int_not_equal(npy_parse(file.bytes, num, &header, NULL), MLA_OK);
    }
}

static void refuses_other_kinds_with_their_names(void **state)
{
    (void)state;
    static const struct {
        const char *dictionary;
        mla_status status;
        const char *words;
    } cases[] = {
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", MLA_ERR_UNSUPPORTED,
         "type '<f8' is"},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", MLA_ERR_UNSUPPORTED,
         "'>f4'"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }", MLA_ERR_UNSUPPORTED,
         "Fortran"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1), }", MLA_ERR_CORRUPT,
         "tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", MLA_ERR_CORRUPT,
         "dimension 0"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } x", MLA_ERR_CORRUPT,
         "follow"},
        {"{'descr': '<f4', 'shape': (1,), }", MLA_ERR_CORRUPT, "lacks"},
        {"{'descr': '<f4', 'descr': '<f4', 'shape': (1,), }", MLA_ERR_CORRUPT,
         "dictionary"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }",
         MLA_ERR_CORRUPT, "at most 8"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (281474976710656, "
         "281474976710656), }",
         MLA_ERR_CORRUPT, "more items than can be counted"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        npy_file file = file_of(1, cases[i].dictionary, 1);
        expect_refusal(&file, cases[i].status, cases[i].words);
    }
}

static void refuses_a_header_longer_than_the_file(void **state)
{
    (void)state;
    npy_file file =
        file_of(2, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", 1);
    memset(file.bytes + 8, 0xff, 4);
    expect_refusal(&file, MLA_ERR_CORRUPT, "4294967295");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_all_three_versions),
        cmocka_unit_test(takes_any_order_of_keys_and_scalars),
        cmocka_unit_test(takes_an_array_without_items),
        cmocka_unit_test(refuses_a_file_of_another_length),
        cmocka_unit_test(refuses_every_prefix_of_a_file),
        cmocka_unit_test(refuses_other_kinds_with_their_names),
        cmocka_unit_test(refuses_a_header_longer_than_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
