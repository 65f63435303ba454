/* The template language: what each part prints, and what is refused with which words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/jinja.h"

static const char fields[] =
    "{\"s\": \"  Abc d\\u00e9 \", \"l\": [3, 1, 2], \"d\": {\"k\": \"v\", \"n\": null},"
    " \"m\": [{\"role\": \"user\", \"content\": \"hi\"}, {\"role\": \"tool\", \"content\": "
    "7}]}";

typedef struct printing {
    const char *source, *wanted;
} printing;

static void check_all(const printing *rows, size_t num)
{
    for (size_t i = 0; i < num; i++) {
        const jinja_result *got = jinja_result_of(rows[i].source, fields, NULL);
        if (got->status != MLA_OK || strcmp(got->text, rows[i].wanted) != 0) {
            fail_msg("%s\n gives  \"%s\" %s\n wanted \"%s\"", rows[i].source, got->text,
                     got->err.message, rows[i].wanted);
        }
    }
}
#define CHECK_ALL(rows) check_all(rows, sizeof(rows) / sizeof *(rows))

static void white_space_round_tags_is_as_in_jinja(void **state)
{
    (void)state;
    static const printing rows[] = {
        {"a\n  {% if true %}\n b\n  {% endif %}\nc\n", "a\n b\nc"},
        {"a \n {%- if true -%} \n b {%- endif %} c", "ab c"},
        {"a\n  {%+ if true +%}\nb{% endif %}", "a\n  \nb"},
        {"a {{ 1 }}\nb", "a 1\nb"},
        {"a {{- 1 -}} \n b", "a1b"},
        {"a\n  {# note #}\nb", "a\nb"},
        {"a {#- note -#} b", "ab"},
        {"{% raw %}\n{{ x }} {% endraw %}\n!", "\n{{ x }} !"},
        {"a\r\nb\rc\n\n", "a\nb\nc\n"},
        {"{{ {'a': {'b': 1}} }}", "{'a': {'b': 1}}"},
        {"", ""},
    };
    CHECK_ALL(rows);
}

static void values_print_as_python_prints_them(void **state)
{
    (void)state;
    static const printing rows[] = {
        {"{{ none }} {{ true }} {{ False }} {{ 1 }} {{ 1.0 }} {{ 1e16 }} {{ 1e-5 }}",
         "None True False 1 1.0 1e+16 1e-05"},
        {"{{ 0.1 + 0.2 }} {{ 100000.0 * 10 }} {{ -0.0 }}",
         "0.30000000000000004 1000000.0 -0.0"},
        {"{{ [1, 'a', none] }} {{ (1,) }} {{ () }} {{ {'a': true} }}",
         "[1, 'a', None] (1,) () {'a': True}"},
        {"{{ [\"it's\", 'say \"x\"', '\\n\\\\'] }}", "[\"it's\", 'say \"x\"', '\\n\\\\']"},
        {"[{{ missing }}]{{ [missing] }}", "[][Undefined]"},
        {"{{ d.items() }} {{ d.keys() }}",
         "dict_items([('k', 'v'), ('n', None)]) dict_keys(['k', 'n'])"},
        {"{{ 'a' 'b' }}{{ '\\u00e9\\x41\\101\\q' }}", "ab\xc3\xa9"
                                                      "AA\\q"},
    };
    CHECK_ALL(rows);
}

static void operators_bind_as_in_jinja(void **state)
{
    (void)state;
    static const printing rows[] = {
        {"{{ 1 + 2 * 3 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 3 }}",
         "7 3 -4 2 3.5 8"},
        {"{{ 1 ~ 2 + 3 }}", NULL}, /* see below */
        {"{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 }} {{ true + 1 }}",
         "True False True 2"},
        {"{{ not 1 == 2 }} {{ 1 in l }} {{ 9 not in l }} {{ 'b' in 'abc' }}",
         "True True True True"},
        {"{{ '' or 'x' }} {{ 0 and 1 }} {{ 'a' if 0 }}|{{ 'a' if 0 else 'b' if 0 else 'c' "
         "}}",
         "x 0 |c"},
        {"{{ 'ab' * 2 }} {{ [1] + [2] }} {{ -2 ** 2 }}", "abab [1, 2] 4"},
    };
    check_all(rows, 1);
    check_all(rows + 2, 4);
    assert_int_equal(jinja_result_of(rows[1].source, NULL, NULL)->status, MLA_ERR_ARGUMENT);
}

static void subscripts_are_pythons(void **state)
{
    (void)state;
    static const printing rows[] = {
        {"{{ l[0] }}{{ l[-1] }}{{ l[1:] }}{{ l[::-1] }}{{ l[:-1] }}",
         "32[1, 2][2, 1, 3][3, 1]"},
        {"{{ 'd\xc3\xa9j\xc3\xa0'[1] }}{{ 'd\xc3\xa9j\xc3\xa0'[::-1] }}{{ 'abc'[-2:] }}",
         "\xc3\xa9\xc3\xa0j\xc3\xa9"
         "dbc"},
        {"{{ d.k }}{{ d['k'] }}{{ d.x }}{{ d.get('x', 5) }}{{ l[9] }}|", "vv5|"},
        {"{{ m[0].content }}{{ m.0.role }}", "hiuser"},
    };
    CHECK_ALL(rows);
}

static void loops_have_their_variables_and_scopes(void **state)
{
    (void)state;
    static const printing rows[] = {
        {"{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ "
         "loop.first }}"
         "{{ loop.last }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}",
         "103TrueFalse1;212FalseFalse32;321FalseTrue1;"},
        {"{% for x in l if x > 1 %}{{ loop.length }}{{ x }}{% else %}none{% endfor %}",
         "2322"},
        {"{% for x in [] %}{% else %}none{% endfor %}", "none"},
        {"{% for k, v in d.items() %}{{ k }}={{ v }},{% endfor %}", "k=v,n=None,"},
        {"{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}",
         "32"},
        {"{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}", "3"},
        {"{% set x = 1 %}{% for y in l %}{% set x = x + y %}{{ x }}{% endfor %}{{ x }}",
         "4231"},
        {"{% if true %}{% set x = 2 %}{% endif %}{{ x }}", "2"},
        {"{% set n = namespace(a=0) %}{% for y in l %}{% set n.a = n.a + y %}{% endfor "
         "%}{{ n.a }}",
         "6"},
        {"{% for x in 'a\xc3\xa9' %}[{{ x }}]{% endfor %}{% for k in d %}{{ k }}{% endfor "
         "%}",
         "[a][\xc3\xa9]kn"},
        {"{% for x in range(2) %}{% for y in range(2) %}{{ loop.depth }}{% endfor %}{% "
         "endfor %}",
         "2222"},
    };
    CHECK_ALL(rows);
}

static void macros_calls_and_blocks_capture(void **state)
{
    (void)state;
    static const printing rows[] = {
        {"{% macro f(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ f(1) }} {{ f(1, b=3) }} {{ "
         "f() }}",
         "1-2 1-3 -2"},
        {"{% macro f() %}<{{ caller(1) }}>{% endmacro %}{% call(x) f() %}[{{ x }}]{% "
         "endcall %}",
         "<[1]>"},
        {"{% set t %} a {{ 1 }}{% endset %}{{ t | length }}", "4"},
        {"{% filter upper %}a{{ 'b' }}{% endfilter %}", "AB"},
        {"{% set t | trim %} a {% endset %}[{{ t }}]", "[a]"},
        {"{% macro f(n) %}{{ n }}{% if n %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) "
         "}}",
         "3210"},
        {"{% set a, b = 1, 2 %}{{ b }}{{ a }}", "21"},
        {"{% generation %}x{% endgeneration %}", "x"},
    };
    CHECK_ALL(rows);
}

static void filters_do_as_in_jinja(void **state)
{
    (void)state;
    static const printing rows[] = {
        {"[{{ s | trim }}]{{ l | length }}{{ x | default('-') }}{{ '' | d('e', true) }}",
         "[Abc d\xc3\xa9]3-e"},
        {"{{ l | join(',') }} {{ l | first }}{{ l | last }} {{ l | sort }} {{ [1, 1, 2] | "
         "unique | list }}",
         "3,1,2 32 [1, 2, 3] [1, 2]"},
        {"{{ m | selectattr('role', 'equalto', 'user') | map(attribute='content') | list "
         "}}",
         "['hi']"},
        {"{{ m | rejectattr('role', '==', 'user') | list | length }}", "1"},
        {"{{ d | tojson }} {{ {'a': [1, {'b': 2}]} | tojson(indent=1) }}",
         "{\"k\": \"v\", \"n\": null} {\n \"a\": [\n  1,\n  {\n   \"b\": 2\n  }\n ]\n}"},
        {"{{ '\xc3\xa9\"<\\n' | tojson }}{{ '\xc3\xa9' | tojson(true) }}",
         "\"\xc3\xa9\\\"<\\n\"\"\\u00e9\""},
        {"{{ 'a\\nb\\n\\nc' | indent(2) }}", "a\n  b\n\n  c"},
        {"{{ 'ab cd-ef' | title }} {{ 'aB' | upper }} {{ 'aB' | capitalize }}",
         "Ab Cd-Ef AB Ab"},
        {"{{ '12' | int + 1 }} {{ 'x' | int(5) }} {{ 3.9 | int }} {{ '1.5' | float }}",
         "13 5 3 1.5"},
        {"{{ l | map('string') | join('+') }} {{ d | items | list }}",
         "3+1+2 [('k', 'v'), ('n', None)]"},
    };
    CHECK_ALL(rows);
}

static void methods_do_as_in_python(void **state)
{
    (void)state;
    static const printing rows[] = {
        {"{{ 'a,b,c'.split(',', 1) }} {{ ' a  b '.split() }} {{ 'a.b.c'.rsplit('.', 1) }}",
         "['a', 'b,c'] ['a', 'b'] ['a.b', 'c']"},
        {"[{{ s.strip() }}][{{ 'xxaxx'.strip('x') }}][{{ ' a '.lstrip() }}][{{ ' a "
         "'.rstrip() }}]",
         "[Abc d\xc3\xa9][a][a ][ a]"},
        {"{{ 'abc'.startswith('ab') }} {{ 'abc'.endswith(('x', 'c')) }} {{ "
         "'aba'.replace('a', 'x', 1) }}",
         "True True xba"},
        {"{{ d.get('k') }} {{ d.get('z') }} {{ d.keys() | list }}", "v None ['k', 'n']"},
        {"{{ 'd\xc3\xa9j\xc3\xa0'.find('j') }} {{ 'a\\nb\\r\\nc'.splitlines() }}",
         "2 ['a', 'b', 'c']"},
    };
    CHECK_ALL(rows);
}

static void tests_ask_as_in_jinja(void **state)
{
    (void)state;
    static const printing rows[] = {
        {"{{ x is defined }} {{ s is string }} {{ d is mapping }} {{ d is iterable }} {{ "
         "'a' is sequence }}",
         "False True True True True"},
        {"{{ 1 is number }} {{ true is integer }} {{ true is boolean }} {{ none is none }} "
         "{{ 1 is not none }}",
         "True False True True True"},
        {"{{ 4 is divisibleby 2 }} {{ 3 is odd }} {{ 1 is in [1] }} {{ x is false }} {{ "
         "false is false }}",
         "True True True False True"},
    };
    CHECK_ALL(rows);
}

typedef struct refusal {
    const char *source, *words;
    mla_status status;
} refusal;

static void what_is_wrong_is_refused_with_its_line_and_word(void **state)
{
    (void)state;
    static const refusal rows[] = {
        {"a\n{% if x %}", "line 2", MLA_ERR_CORRUPT},
        {"\n\n{{ 1 + }}", "line 3: '}}' is where a value", MLA_ERR_CORRUPT},
        {"{% nonsense %}", "'nonsense'", MLA_ERR_CORRUPT},
        {"{{ (1] }}", "unexpected ']'", MLA_ERR_CORRUPT},
        {"{{ 'abc }}", "no closing '", MLA_ERR_CORRUPT},
        {"{# x", "no closing #}", MLA_ERR_CORRUPT},
        {"{% break %}", "'break' is outside", MLA_ERR_CORRUPT},
        {"{{ x ! y }}", "unexpected character '!'", MLA_ERR_CORRUPT},
        {"{% include 'x' %}", "the tag 'include' is not supported", MLA_ERR_UNSUPPORTED},
        {"\n{{ x | xmlattr }}", "line 2: the filter 'xmlattr' is not supported",
         MLA_ERR_UNSUPPORTED},
        {"{{ x is escaped }}", "the test 'escaped' is not supported", MLA_ERR_UNSUPPORTED},
        {"{% for x in y recursive %}{% endfor %}", "'recursive'", MLA_ERR_UNSUPPORTED},
        {"{{ f(*x) }}", "arguments with '*'", MLA_ERR_UNSUPPORTED},
        {"{{ cycler(1) }}", "'cycler' is not supported", MLA_ERR_UNSUPPORTED},
        {"a\n{{ x.y }}", "line 2: 'x' is undefined", MLA_ERR_ARGUMENT},
        {"{{ 'a' + 1 }}", "'str' + 'int'", MLA_ERR_ARGUMENT},
        {"{{ l.append(1) }}", "the method 'append' of a list is not supported",
         MLA_ERR_UNSUPPORTED},
        {"{{ raise_exception('no ' ~ 1) }}", "the template refuses: no 1",
         MLA_ERR_ARGUMENT},
        {"{{ 9223372036854775807 + 1 }}", "64 bits", MLA_ERR_UNSUPPORTED},
        {"{{ 1 // 0 }}", "division by zero", MLA_ERR_ARGUMENT},
        {"{% set s.x = 1 %}", "no namespace", MLA_ERR_ARGUMENT},
        {"\xff", "not UTF-8", MLA_ERR_CORRUPT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const jinja_result *got = jinja_result_of(rows[i].source, fields, NULL);
        if (got->status != rows[i].status || !strstr(got->err.message, rows[i].words)) {
            fail_msg("%s gives %s: %s, wanted %s", rows[i].source,
                     mla_status_name(got->status), got->err.message, rows[i].words);
        }
    }
}

static void what_does_not_end_meets_a_limit(void **state)
{
    (void)state;
    static const printing rows[] = {
        {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "nests deeper"},
        {"{% for a in range(999) %}{% for b in range(999) %}{% endfor %}{% endfor %}",
         "steps"},
        {"{% set n = namespace(a='x') %}{% for a in range(99) %}{% set n.a = n.a ~ n.a "
         "%}{% endfor %}",
         "limit"},
        {"{% for a in range(9999) %}0123456789{% endfor %}", "longer than the limit"},
        {"{% set n = namespace(a=[]) %}{% for a in range(999) %}{% set n.a = [n.a] %}{% "
         "endfor %}"
         "{{ n.a }}",
         "nests deeper"},
        {"{{ 'a' * 9999999999 }}", "limit"},
    };
    static const jinja_limits limits = {
        .max_memory_bytes = 1 << 28, .max_output_bytes = 10000, .max_steps = 100000};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const jinja_result *got = jinja_result_of(rows[i].source, fields, &limits);
        assert_int_equal(got->status, MLA_ERR_UNSUPPORTED);
        if (!strstr(got->err.message, rows[i].wanted)) {
            fail_msg("%s: %s", rows[i].source, got->err.message);
        }
    }
}

static void source_that_nests_too_deep_is_refused(void **state)
{
    (void)state;
    static const char *const pieces[] = {"(",         "[", "not ", "-", "x if x else ",
                                         "{% if x %}"};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        static char source[16384];
        size_t at = 0;
        if (pieces[i][0] != '{') {
            at += (size_t)snprintf(source, sizeof source, "{{ ");
        }
        for (int j = 0; j < 1000; j++) {
            at += (size_t)snprintf(source + at, sizeof source - at, "%s", pieces[i]);
        }
        const jinja_result *got = jinja_result_of(source, NULL, NULL);
        assert_int_equal(got->status, MLA_ERR_UNSUPPORTED);
        assert_non_null(strstr(got->err.message, "deep"));
    }
}

/* Each byte of a text: t is the template's, i the input's. */
static void every_byte_keeps_the_mark_of_where_it_came_from(void **state)
{
    (void)state;
    static const struct {
        const char *source, *text, *marks;
    } rows[] = {
        {"<{{ m[0].content }}>", "<hi>", "tiit"},
        {"{{ '<' + m[0].content ~ '>' }}", "<hi>", "tiit"},
        {"{{ bos_token ~ d.k }}", "<s>v", "ttti"},
        {"{{ (bos_token ~ m[0].content)[2:4] }}", ">h", "ti"},
        {"{{ ('<' ~ m[0].content)[::-1] }}", "ih<", "iit"},
        {"{{ ('  ' ~ m[0].content ~ ' ') | trim | upper }}", "HI", "ii"},
        {"{{ d.k | tojson }}", "\"v\"", "tit"},
        {"{{ [m[0].content] }}", "['hi']", "ttiitt"},
        {"{{ 'a-b'.replace('-', d.k) }}", "avb", "tit"},
        {"{{ m[0].content.split('i') | join('|') }}", "h|", "it"},
        {"{% set t %}<{{ d.k }}{% endset %}{{ t }}{% macro f(x) %}({{ x }}){% endmacro "
         "%}{{ f(d.k) }}",
         "<v(v)", "titit"},
        {"{{ d }}", "{'k': 'v', 'n': None}", "ttittttittttittttttttt"},
        {"{{ d.k * 2 }}{{ d | tojson | indent(1, true) }}",
         "vv {\"k\": \"v\", \"n\": null}",
         "iittti"
         "ttttittttittttttttt"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const jinja_result *got = jinja_result_of(rows[i].source, fields, NULL);
        bool is_same = strcmp(got->text, rows[i].text) == 0 &&
                       strncmp(got->marks, rows[i].marks, got->bytes) == 0;
        if (!is_same) {
            fail_msg("%s gives %s %s", rows[i].source, got->text, got->marks);
        }
    }
}

static void the_clock_can_be_told(void **state)
{
    (void)state;
    assert_string_equal(jinja_result_of("{{ strftime_now('%Y') }}", NULL, NULL)->text,
                        "1970");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(white_space_round_tags_is_as_in_jinja),
        cmocka_unit_test(values_print_as_python_prints_them),
        cmocka_unit_test(operators_bind_as_in_jinja),
        cmocka_unit_test(subscripts_are_pythons),
        cmocka_unit_test(loops_have_their_variables_and_scopes),
        cmocka_unit_test(macros_calls_and_blocks_capture),
        cmocka_unit_test(filters_do_as_in_jinja),
        cmocka_unit_test(methods_do_as_in_python),
        cmocka_unit_test(tests_ask_as_in_jinja),
        cmocka_unit_test(what_is_wrong_is_refused_with_its_line_and_word),
        cmocka_unit_test(what_does_not_end_meets_a_limit),
        cmocka_unit_test(source_that_nests_too_deep_is_refused),
        cmocka_unit_test(every_byte_keeps_the_mark_of_where_it_came_from),
        cmocka_unit_test(the_clock_can_be_told),
    };
    return cmocka_run_group_tests_name("jinja", tests, NULL, NULL);
}
