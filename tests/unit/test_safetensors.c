/* Headers of safetensors files, right and wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/safetensors.h"
#include "support/books.h"

/* A file in a block of just its size, so that a read past its end is seen. */
typedef struct image {
    unsigned char *data;
    size_t bytes;
} image;

static image image_of(const char *header, size_t num_data_bytes)
{
    size_t length = (strlen(header) + 7) / 8 * 8; /* so that the data is aligned */
    image made = {.bytes = 8 + length + num_data_bytes};
    made.data = calloc(1, made.bytes);
    assert_non_null(made.data);
    for (int i = 0; i < 8; i++) {
        made.data[i] = (unsigned char)((uint64_t)length >> (8 * i));
    }
    memset(made.data + 8, ' ', length);
    memcpy(made.data + 8, header, strlen(header));
    return made;
}

static mla_status parse(image from, tensor_table *out, mla_error *err, mla_context *books)
{
    *books = books_open(NULL);
    return safetensors_parse(&books->ledger, "x.safetensors", from.data, from.bytes, out,
                             err);
}

/* Parsing it fails with that status and a sentence that has all the words, and nothing is
 * left in the books. */
static void check_refused(image from, mla_status wanted, const char *const words[3])
{
    mla_context books;
    tensor_table table;
    mla_error err = {0};
    mla_status status = parse(from, &table, &err, &books);
    if (status != wanted) {
        fail_msg("%.80s: status %d, %s", (const char *)from.data + 8, (int)status,
                 err.message);
    }
    for (int i = 0; i < 3 && words[i]; i++) {
        if (!strstr(err.message, words[i])) {
            fail_msg("%s is not in: %s", words[i], err.message);
        }
    }
    assert_non_null(strstr(err.message, "x.safetensors"));
    assert_int_equal(books_now(&books), 0);
    free(from.data);
}

static const char good[] =
    "{\"__metadata__\": {\"format\": \"pt\"}, "
    "\"b\": {\"dtype\": \"F32\", \"shape\": [2, 3], \"data_offsets\": [4, 28]}, "
    "\"a\": {\"dtype\": \"BF16\", \"shape\": [2], \"data_offsets\": [0, 4]}, "
    "\"c\": {\"dtype\": \"U8\", \"shape\": [0, 7], \"data_offsets\": [28, 28]}, "
    "\"d\": {\"dtype\": \"F32\", \"shape\": [], \"data_offsets\": [28, 32]}}        ";

static void a_good_header_gives_every_tensor(void **state)
{
    (void)state;
    mla_context books;
    tensor_table table;
    mla_error err = {0};
    image file = image_of(good, 32);
    if (parse(file, &table, &err, &books) != MLA_OK) {
        fail_msg("%s", err.message);
    }
    const unsigned char *data = file.data + file.bytes - 32;
    assert_int_equal(table.num, 4);
    assert_string_equal(table.tensors[0].name, "b");
    assert_int_equal(table.tensors[0].type, TENSOR_F32);
    assert_int_equal(table.tensors[0].num_dims, 2);
    assert_int_equal(table.tensors[0].dims[0], 2);
    assert_int_equal(table.tensors[0].dims[1], 3);
    assert_int_equal(table.tensors[0].bytes, 24);
    assert_ptr_equal(table.tensors[0].data, data + 4);
    assert_ptr_equal(table.tensors[1].data, data);
    assert_int_equal(table.tensors[2].bytes, 0);
    assert_int_equal(table.tensors[3].num_dims, 0);
    assert_int_equal(table.tensors[3].bytes, 4);
    tensor_table_free(&table);
    assert_int_equal(books_now(&books), 0);
    free(file.data);
}

#define ENTRY(dtype, shape, offsets)                                                       \
    "{\"t\": {\"dtype\": \"" dtype "\", \"shape\": " shape ", \"data_offsets\": " offsets  \
    "}}"

typedef struct bad_header {
    const char *header;
    size_t num_data_bytes;
    mla_status status;
    const char *words[3];
} bad_header;

static const bad_header bad_headers[] = {
    {"", 0, MLA_ERR_CORRUPT, {"line"}},
    {"{", 0, MLA_ERR_CORRUPT, {"line 1"}},
    {"[]", 0, MLA_ERR_CORRUPT, {"array"}},
    {"{\"t\": 1}", 0, MLA_ERR_CORRUPT, {"tensor t", "object"}},
    {"{\"__metadata__\": []}", 0, MLA_ERR_CORRUPT, {"__metadata__", "an array"}},
    {"{\"__metadata__\": {\"a\": 1}}", 0, MLA_ERR_CORRUPT, {"__metadata__ a", "1"}},
    {ENTRY("F33", "[1]", "[0, 4]"), 4, MLA_ERR_UNSUPPORTED, {"tensor t", "F33"}},
    {ENTRY("F32", "[-1]", "[0, 4]"), 4, MLA_ERR_CORRUPT, {"tensor t", "-1"}},
    {ENTRY("F32", "[1.0]", "[0, 4]"), 4, MLA_ERR_CORRUPT, {"tensor t", "1.0"}},
    {ENTRY("F32", "4", "[0, 4]"), 4, MLA_ERR_CORRUPT, {"tensor t", "shape"}},
    {ENTRY("F32", "[1,1,1,1,1,1,1,1,1]", "[0, 4]"),
     4,
     MLA_ERR_UNSUPPORTED,
     {"tensor t", "9 dimensions"}},
    {ENTRY("F32", "[4294967296, 4294967296]", "[0, 0]"),
     0,
     MLA_ERR_CORRUPT,
     {"tensor t", "4294967296"}},
    {ENTRY("F32", "[2]", "[0, 4]"), 4, MLA_ERR_CORRUPT, {"tensor t", "4 bytes", "8"}},
    {ENTRY("F32", "[1]", "[0, 8]"), 4, MLA_ERR_CORRUPT, {"tensor t", "outside", "4"}},
    {ENTRY("F32", "[1]", "[4, 0]"), 4, MLA_ERR_CORRUPT, {"tensor t", "[4, 0]"}},
    {ENTRY("F32", "[1]", "[-4, 0]"), 4, MLA_ERR_CORRUPT, {"tensor t", "[-4, 0]"}},
    {ENTRY("F32", "[1]", "[0]"), 4, MLA_ERR_CORRUPT, {"tensor t", "two integers"}},
    {ENTRY("F32", "[1]", "[0, 4, 8]"), 8, MLA_ERR_CORRUPT, {"tensor t"}},
    {ENTRY("F32", "[1]", "[0, 4], \"x\": 1"), 4, MLA_ERR_CORRUPT, {"tensor t"}},
    {ENTRY("F32", "[1]", "[0, 18446744073709551616]"), 4, MLA_ERR_CORRUPT, {"line 1"}},
    {ENTRY("F32", "[1]", "[0, 4]"), 8, MLA_ERR_CORRUPT, {"tensor t", "4 bytes after"}},
    {ENTRY("F32", "[1]", "[4, 8]"), 8, MLA_ERR_CORRUPT, {"tensor t", "gap"}},
    {ENTRY("F32", "[1]", "[2, 6]"), 6, MLA_ERR_CORRUPT, {"tensor t", "aligned"}},
    {"{\"t\": {\"dtype\": \"U8\", \"shape\": [4], \"data_offsets\": [0, 4]}, "
     "\"u\": {\"dtype\": \"U8\", \"shape\": [4], \"data_offsets\": [2, 6]}}",
     6,
     MLA_ERR_CORRUPT,
     {"tensor u", "overlaps", "byte 4"}},
    {"{\"t\": {\"dtype\": \"U8\", \"shape\": [4], \"data_offsets\": [0, 4]}, "
     "\"u\": {\"dtype\": \"U8\", \"shape\": [4], \"data_offsets\": [0, 4]}}",
     4,
     MLA_ERR_CORRUPT,
     {"overlaps"}},
    {"{\"t\": {\"dtype\": \"U8\", \"shape\": [1], \"data_offsets\": [0, 1]}, "
     "\"t\": {\"dtype\": \"U8\", \"shape\": [1], \"data_offsets\": [0, 1]}}",
     1,
     MLA_ERR_CORRUPT,
     {"duplicate", "\"t\""}},
    {"{}", 3, MLA_ERR_CORRUPT, {"3 bytes after"}},
};

static void every_bad_header_is_one_sentence(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_headers / sizeof bad_headers[0]; i++) {
        check_refused(image_of(bad_headers[i].header, bad_headers[i].num_data_bytes),
                      bad_headers[i].status, bad_headers[i].words);
    }
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    static const char *const nothing[3] = {NULL};
    image whole = image_of(good, 32);
    for (size_t bytes = 0; bytes < whole.bytes; bytes++) {
        image part = {.data = malloc(bytes > 0 ? bytes : 1), .bytes = bytes};
        assert_non_null(part.data);
        memcpy(part.data, whole.data, bytes);
        check_refused(part, MLA_ERR_CORRUPT, nothing);
    }
    free(whole.data);
}

static void a_huge_header_is_refused_before_it_is_read(void **state)
{
    (void)state;
    static const unsigned char lengths[][8] = {
        {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
        {0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, /* 8 + N wraps to 0 */
        {0, 0, 0, 0, 0, 0, 0, 0x80},
        {1, 0, 0, 2}, /* one more than is read */
    };
    static const char *const words[3] = {"header"};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        image file = image_of(good, 32);
        memcpy(file.data, lengths[i], 8);
        check_refused(file, MLA_ERR_CORRUPT, words);
    }
}

static void an_empty_header_is_an_empty_table(void **state)
{
    (void)state;
    mla_context books;
    tensor_table table;
    image file = image_of("{}", 0);
    assert_int_equal(parse(file, &table, NULL, &books), MLA_OK);
    assert_int_equal(table.num, 0);
    tensor_table_free(&table);
    free(file.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_header_gives_every_tensor),
        cmocka_unit_test(every_bad_header_is_one_sentence),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(a_huge_header_is_refused_before_it_is_read),
        cmocka_unit_test(an_empty_header_is_an_empty_table),
    };
    return cmocka_run_group_tests_name("safetensors", tests, NULL, NULL);
}
