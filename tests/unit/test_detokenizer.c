/* Bytes become valid UTF-8, however they are cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/tokenizer.h"
#include "model/utf8.h"
#include "support/random.h"

#define FFFD "\xef\xbf\xbd"

/* Feeds in three parts, [0, a), [a, b), [b, bytes). */
static size_t feed(const char *in, size_t bytes, size_t a, size_t b, char *out)
{
    detokenizer state = {.num_held = 0};
    const size_t cuts[] = {0, a, b, bytes};
    size_t written = 0;
    for (int i = 0; i < 3; i++) {
        size_t part = cuts[i + 1] - cuts[i];
        size_t room = 3 * (part + (size_t)state.num_held);
        size_t more = detokenizer_feed(&state, in + cuts[i], part, out + written);
        assert_true(more <= room);
        assert_true(state.num_held <= 3);
        written += more;
        assert_int_equal(utf8_first_bad(out, written), written); /* at every step */
    }
    return written + detokenizer_finish(&state, out + written);
}

static void check(const char *in, size_t bytes, const char *wanted)
{
    char out[256];
    for (size_t a = 0; a <= bytes; a++) {
        for (size_t b = a; b <= bytes; b++) {
            size_t written = feed(in, bytes, a, b, out);
            assert_int_equal(written, strlen(wanted));
            assert_memory_equal(out, wanted, written);
        }
    }
}

static void text_comes_out_as_it_went_in_wherever_it_is_cut(void **state)
{
    (void)state;
    static const char text[] = "a\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80z\xf4\x8f\xbf\xbf"
                               "\xed\x9f\xbf\xee\x80\x80\xc2\x80\x7f";
    check(text, sizeof text - 1, text);
}

/* The examples of the Unicode standard, section 3.9: tables 3-8 to 3-11. */
static void each_maximal_invalid_subpart_becomes_one_mark(void **state)
{
    (void)state;
    check("\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41", 9,
          FFFD FFFD FFFD FFFD FFFD FFFD FFFD FFFD "A");
    check("\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41", 9,
          FFFD FFFD FFFD FFFD FFFD FFFD FFFD FFFD "A");
    check("\xf4\x91\x92\x93\xff\x41\x80\xbf\x42", 9,
          FFFD FFFD FFFD FFFD FFFD "A" FFFD FFFD "B");
    check("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", 9, FFFD FFFD FFFD FFFD "A");
    check("\x61\xf1\x80\x80\xe1\x80\xc2\x62\x80\x63\x80\xbf\x64", 13,
          "a" FFFD FFFD FFFD "b" FFFD "c" FFFD FFFD "d");
}

static void a_tail_that_stays_incomplete_becomes_one_mark(void **state)
{
    (void)state;
    check("a\xf0\x9f\x98", 4, "a" FFFD);
    check("\xe4\xb8", 2, FFFD);
    check("\xc3", 1, FFFD);
    check("", 0, "");
}

/* Against the definition: at each place a character, or else the longest start of one. */
static void random_bytes_become_valid_text_that_does_not_depend_on_the_cuts(void **state)
{
    (void)state;
    static const unsigned char often[] = {0xe0, 0xa0, 0x80, 0xf0, 0x90, 0xbf,
                                          0xed, 0xc2, 0x41, 0xf4, 0x8f, 0xff};
    rng random = rng_start("random_bytes_become_valid_text");
    for (int trial = 0; trial < 2000; trial++) {
        char in[16];
        char whole[64];
        char parts[64];
        size_t bytes = (size_t)rng_between(&random, 0, sizeof in);
        for (size_t i = 0; i < bytes; i++) {
            in[i] = (char)often[rng_between(&random, 0, sizeof often - 1)];
        }
        size_t num = feed(in, bytes, 0, 0, whole);
        size_t a = (size_t)rng_between(&random, 0, (int64_t)bytes);
        size_t b = (size_t)rng_between(&random, (int64_t)a, (int64_t)bytes);
        assert_int_equal(feed(in, bytes, a, b, parts), num);
        assert_memory_equal(whole, parts, num);
    }
}

static void a_text_is_valid_up_to_its_first_bad_byte(void **state)
{
    (void)state;
    assert_int_equal(utf8_first_bad("ab\xc3\xa9", 4), 4);
    assert_int_equal(utf8_first_bad("ab\xc3", 3), 2);
    assert_int_equal(utf8_first_bad("a\0b", 3), 3);
    assert_int_equal(utf8_first_bad("\xc0\x80", 2), 0);
    assert_int_equal(utf8_first_bad("x\xed\xa0\x80", 4), 1);
    assert_int_equal(utf8_first_bad("\xf4\x90\x80\x80", 4), 0);
    assert_int_equal(utf8_first_bad("", 0), 0);
}

/* Returns the bytes of the character. */
static size_t write_utf8(uint32_t code, char out[4])
{
    size_t bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char marks[5] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = bytes - 1; i > 0; i--) {
        out[i] = (char)(0x80U | (code & 0x3fU));
        code >>= 6;
    }
    out[0] = (char)(marks[bytes] | code);
    return bytes;
}

static void every_character_survives_writing_and_reading(void **state)
{
    (void)state;
    for (uint32_t code = 0; code < 0x110000; code++) {
        char text[4];
        size_t length;
        if (code >= 0xd800 && code < 0xe000) {
            continue;
        }
        size_t bytes = write_utf8(code, text);
        assert_int_equal(utf8_first_bad(text, bytes), bytes);
        assert_int_equal(utf8_read(text, &length), code);
        assert_int_equal(length, bytes);
        assert_int_equal(utf8_before(text, bytes), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_comes_out_as_it_went_in_wherever_it_is_cut),
        cmocka_unit_test(each_maximal_invalid_subpart_becomes_one_mark),
        cmocka_unit_test(a_tail_that_stays_incomplete_becomes_one_mark),
        cmocka_unit_test(random_bytes_become_valid_text_that_does_not_depend_on_the_cuts),
        cmocka_unit_test(a_text_is_valid_up_to_its_first_bad_byte),
        cmocka_unit_test(every_character_survives_writing_and_reading),
    };
    return cmocka_run_group_tests_name("detokenizer", tests, NULL, NULL);
}
