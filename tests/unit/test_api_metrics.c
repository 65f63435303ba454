/* /metrics: every line is one that Prometheus reads, and the numbers are those of what was
 * served. */
#include <ctype.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/api/series.h"
#include "support/api_rig.h"

static api_rig rig;

/* owned: free. */
static char *page(void)
{
    api_failure failure;
    byte_buffer out = {.context = rig.context};
    assert_true(api_metrics_write(&rig.settings, &out, &failure));
    char *text = api_text_of(&out);
    byte_buffer_free(&out);
    api_rig_check(&rig);
    return text;
}

/* The value of the line that begins with this name and its labels. NAN: there is none. */
static double value_of(const char *text, const char *line)
{
    size_t num = strlen(line);
    for (const char *at = text; at && *at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, line, num) == 0 && at[num] == ' ') {
            return strtod(at + num, NULL);
        }
    }
    return (double)NAN;
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == ':';
}

/* After a name: labels in braces or none. NULL: neither. */
static const char *skip_labels(const char *at)
{
    if (*at != '{') {
        return at;
    }
    do {
        at++;
        while (is_name(*at)) {
            at++;
        }
        if (*at++ != '=' || *at++ != '"') {
            return NULL;
        }
        at += strcspn(at, "\"\n");
        if (*at++ != '"') {
            return NULL;
        }
    } while (*at == ',');
    return *at == '}' ? at + 1 : NULL;
}

/* The metric that the last TYPE line named, and whether it is a histogram. */
static void check_sample(const char *line, const char *name, bool is_histogram)
{
    size_t num = strlen(name);
    const char *at = line;
    char *end = NULL;
    while (is_name(*at)) {
        at++;
    }
    const char *rest = line + num;
    bool is_part = strncmp(rest, "_bucket{", 8) == 0 || strncmp(rest, "_sum", 4) == 0 ||
                   strncmp(rest, "_count", 6) == 0;
    bool is_named =
        strncmp(line, name, num) == 0 && (is_histogram ? is_part : at == line + num);
    at = skip_labels(at);
    if (!is_named || !at) {
        fail_msg("no sample of %s: %.80s", name, line);
        return;
    }
    (void)strtod(at, &end);
    if (*at != ' ' || end == at || *end != '\n') {
        fail_msg("no number: %.80s", line);
    }
}

static int check_page(const char *text)
{
    char name[128] = "";
    char type[32] = "";
    int num = 0;
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        assert_non_null(strchr(line, '\n'));
        if (strncmp(line, "# TYPE ", 7) == 0) {
            assert_int_equal(sscanf(line + 7, "%127s %31s", name, type), 2);
        } else if (strncmp(line, "# HELP ", 7) != 0) {
            check_sample(line, name, strcmp(type, "histogram") == 0);
            num++;
        }
    }
    return num;
}

/* Buckets rise and the last is the count. */
static void check_histogram(const char *text, const char *name, double count)
{
    char line[128];
    double before = 0;
    (void)snprintf(line, sizeof line, "%s_bucket{le=", name);
    for (const char *at = strstr(text, line); at; at = strstr(at + 1, line)) {
        double value = strtod(strchr(at, '}') + 1, NULL);
        assert_true(value >= before);
        before = value;
    }
    (void)snprintf(line, sizeof line, "%s_count", name);
    assert_true(before == count);
    assert_true(value_of(text, line) == count);
}

static void every_line_is_one_that_prometheus_reads(void **state)
{
    (void)state;
    for (int compatible = 0; compatible < 2; compatible++) {
        rig.settings.is_vllm_compatible = compatible != 0;
        char *text = page();
        assert_true(check_page(text) > (compatible ? 400 : 200));
        assert_int_equal(strstr(text, "vllm:") != NULL, compatible);
        free(text);
    }
    rig.settings.is_vllm_compatible = false;
}

static void the_numbers_are_those_of_what_was_served(void **state)
{
    (void)state;
    char *before = page();
    json_t *reply = api_rig_good(&rig, API_COMPLETION,
                                 "{\"prompt\":[1,2,3],\"n\":2,\"max_tokens\":5,"
                                 "\"ignore_eos\":true}");
    json_decref(reply);
    char *after = page();
    static const struct row {
        const char *line;
        double more;
    } rows[] = {
        {"mla_generation_tokens_total", 10},
        {"mla_prompt_tokens_total", 6},
        {"mla_requests_ended_total{finish=\"length\"}", 2},
        {"mla_requests_ended_total{finish=\"stop\"}", 0},
        {"mla_time_to_first_token_seconds_count", 2},
        {"mla_inter_token_seconds_count", 8},
        {"mla_request_seconds_count", 2},
        {"mla_request_inference_seconds_count", 2},
        {"mla_request_seconds_per_token_count", 2},
        {"mla_request_max_tokens_sum", 10},
        {"mla_request_choices_sum", 2},
        {"mla_request_choices_count", 1},
        {"mla_request_prompt_tokens_sum", 6},
        {"mla_request_generation_tokens_sum", 10},
        {"mla_request_generation_tokens_bucket{le=\"5\"}", 2},
        {"mla_request_generation_tokens_bucket{le=\"2\"}", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double more = value_of(after, rows[i].line) - value_of(before, rows[i].line);
        if (!(more == rows[i].more)) {
            fail_msg("%s rose by %g, not by %g", rows[i].line, more, rows[i].more);
        }
    }
    assert_true(value_of(after, "mla_requests_running") == 0);
    assert_true(value_of(after, "mla_kv_pages{state=\"used\"}") == 0);
    assert_true(value_of(after, "mla_memory_bytes{class=\"kv\",space=\"host\"}") > 0);
    check_histogram(after, "mla_inter_token_seconds",
                    value_of(after, "mla_inter_token_seconds_count"));
    free(before);
    free(after);
}

static void the_transports_counts_are_told(void **state)
{
    (void)state;
    api_count(&rig.metrics.transport.replies[429], 3);
    api_count(&rig.metrics.transport.connections_open, 2);
    api_uncount(&rig.metrics.transport.connections_open, 1);
    char *text = page();
    assert_true(value_of(text, "mla_http_replies_total{status=\"429\"}") == 3);
    assert_true(isnan(value_of(text, "mla_http_replies_total{status=\"400\"}")));
    assert_true(value_of(text, "mla_http_connections_open") == 1);
    free(text);
}

static void a_value_falls_into_the_bucket_of_the_next_bound(void **state)
{
    (void)state;
    api_metrics *metrics = calloc(1, sizeof *metrics);
    assert_non_null(metrics);
    const api_series_shape *shape = api_series_shape_of(API_NEW_TOKENS);
    for (int32_t i = 0; i < shape->num_bounds; i++) {
        assert_true(i == 0 || shape->bounds[i] > shape->bounds[i - 1]);
        api_observe(metrics, API_NEW_TOKENS, shape->bounds[i]);
        api_observe(metrics, API_NEW_TOKENS, shape->bounds[i] + 1);
    }
    assert_int_equal(metrics->series[API_NEW_TOKENS].num[0], 1);
    assert_int_equal(metrics->series[API_NEW_TOKENS].num[shape->num_bounds], 1);
    api_observe(metrics, API_NEW_TOKENS, -5); /* a clock that went back */
    assert_int_equal(metrics->series[API_NEW_TOKENS].num[0], 2);
    api_observe(NULL, API_NEW_TOKENS, 1);
    free(metrics);
}

static int open_rig(void **state)
{
    const api_rig_options options = {.max_requests = 2};
    (void)state;
    api_rig_open(&rig, &options);
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    api_rig_close(&rig);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_line_is_one_that_prometheus_reads),
        cmocka_unit_test(the_numbers_are_those_of_what_was_served),
        cmocka_unit_test(the_transports_counts_are_told),
        cmocka_unit_test(a_value_falls_into_the_bucket_of_the_next_bound),
    };
    return cmocka_run_group_tests_name("api metrics", tests, open_rig, close_rig);
}
