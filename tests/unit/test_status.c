/* Status names and texts, and how an error is filled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/status.h"

static void every_status_has_its_name_its_text_and_its_value(void **state)
{
    (void)state;
#define MLA_X(name, value, text)                                                           \
    assert_int_equal(MLA_##name, (value));                                                 \
    assert_string_equal(mla_status_name(MLA_##name), "MLA_" #name);                        \
    assert_string_equal(mla_status_text(MLA_##name), (text));
    MLA_STATUS_MAP(MLA_X)
#undef MLA_X
    assert_int_equal(MLA_OK, 0);
    assert_int_equal(MLA_ERR_INTERNAL, 12); /* values do not move */
}

static void an_unknown_status_has_words_too(void **state)
{
    (void)state;
    static const int unknown[] = {-1, 13, 1000, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        assert_string_equal(mla_status_name((mla_status)unknown[i]), "MLA_ERR_UNKNOWN");
        assert_non_null(mla_status_text((mla_status)unknown[i]));
    }
}

static void the_version_is_that_of_the_header(void **state)
{
    (void)state;
    assert_int_equal(mla_version(),
                     MLA_VERSION_MAJOR << 16 | MLA_VERSION_MINOR << 8 | MLA_VERSION_PATCH);
}

static mla_status refuse(int value, mla_error *err)
{
    MLAI_CHECK(value < 3, MLA_ERR_ARGUMENT, "the value is %d, not below %d", value, 3);
    return MLA_OK;
}

static mla_status pass_on(int value, int *num_reached, mla_error *err)
{
    MLAI_TRY(refuse(value, err));
    ++*num_reached;
    return MLA_OK;
}

static void a_failed_check_says_what_and_where_and_is_passed_on(void **state)
{
    (void)state;
    mla_error err = {.native_code = 99};
    int num_reached = 0;
    assert_int_equal(pass_on(7, &num_reached, &err), MLA_ERR_ARGUMENT);
    assert_int_equal(err.status, MLA_ERR_ARGUMENT);
    assert_int_equal(err.native_code, 0);
    assert_string_equal(err.message, "the value is 7, not below 3");
    assert_non_null(strstr(err.where, "test_status.c:"));
    assert_int_equal(num_reached, 0);
    assert_int_equal(pass_on(2, &num_reached, &err), MLA_OK);
    assert_int_equal(num_reached, 1);
    assert_int_equal(err.status, MLA_ERR_ARGUMENT); /* success writes nothing */
}

static void an_error_of_null_is_allowed_everywhere(void **state)
{
    (void)state;
    assert_int_equal(refuse(7, NULL), MLA_ERR_ARGUMENT);
    assert_int_equal(mlai_fail_errno(NULL, MLA_ERR_CORRUPT, ENOENT, "here", "no"),
                     MLA_ERR_CORRUPT);
    mlai_error_prefix(NULL, "nothing");
}

static void an_errno_is_kept_as_number_and_as_words(void **state)
{
    (void)state;
    mla_error err;
    assert_int_equal(mlai_fail_errno(&err, MLA_ERR_CORRUPT, ENOENT, "here", "file %s", "x"),
                     MLA_ERR_CORRUPT);
    assert_int_equal(err.native_code, ENOENT);
    assert_string_equal(err.message, "file x: No such file or directory");
}

static void a_long_sentence_is_cut_and_still_ends(void **state)
{
    (void)state;
    char words[2 * sizeof((mla_error *)0)->message];
    memset(words, 'w', sizeof words - 1);
    words[sizeof words - 1] = '\0';
    mla_error err;
    (void)mlai_fail(&err, MLA_ERR_STATE, "here", "%s", words);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    (void)mlai_fail_errno(&err, MLA_ERR_STATE, ENOENT, "here", "%s", words);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    mlai_error_prefix(&err, "%s", words);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
}

static void a_prefix_goes_in_front_and_keeps_the_rest(void **state)
{
    (void)state;
    mla_error err;
    (void)mlai_fail(&err, MLA_ERR_STATE, "here", "it is late");
    mlai_error_prefix(&err, "request %d", 3);
    assert_string_equal(err.message, "request 3: it is late");
    assert_int_equal(err.status, MLA_ERR_STATE);
    assert_string_equal(err.where, "here");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_name_its_text_and_its_value),
        cmocka_unit_test(an_unknown_status_has_words_too),
        cmocka_unit_test(the_version_is_that_of_the_header),
        cmocka_unit_test(a_failed_check_says_what_and_where_and_is_passed_on),
        cmocka_unit_test(an_error_of_null_is_allowed_everywhere),
        cmocka_unit_test(an_errno_is_kept_as_number_and_as_words),
        cmocka_unit_test(a_long_sentence_is_cut_and_still_ends),
        cmocka_unit_test(a_prefix_goes_in_front_and_keeps_the_rest),
    };
    return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
