/* demo_score.c - the likelihood of score.txt, window by window: see demo.h. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/tokenizer.h"
#include "support/demo.h"

enum { WINDOW = 1023 };
static const double tolerance = 2e-4;

static char *read_text(size_t bytes)
{
    FILE *file = fopen(TEST_DATA "/demo/score.txt", "rb");
    char *text = malloc(bytes);
    assert_true(file && text);
    assert_int_equal(fread(text, 1, bytes, file), bytes);
    assert_int_equal(fgetc(file), EOF);
    (void)fclose(file);
    return text;
}

static token_list tokens_of_text(const demo *self, size_t bytes)
{
    tokenizer *opened = NULL;
    token_list list = {0};
    mla_error err = {0};
    char *text = read_text(bytes);
    must(tokenizer_open(self->context, TEST_MODELS "/demo", &opened, &err), &err);
    must(tokenizer_encode(opened, text, bytes, TOKENIZER_PLAIN, &list, &err), &err);
    tokenizer_close(&opened);
    free(text);
    return list;
}

static double score_window(const demo *self, const int32_t *ids, int32_t num)
{
    int32_t window[WINDOW + 1];
    double nll = 0.0;
    mla_error err = {0};
    window[0] = model_config_of(self->model)->bos_token;
    memcpy(window + 1, ids, (size_t)num * sizeof *ids);
    must(engine_score(self->engine, window, num + 1, &nll, &err), &err);
    return nll;
}

void demo_check_score(const demo *self, int32_t first, int32_t num)
{
    json_t *reference = demo_read_json("score.json");
    const json_t *windows = json_object_get(reference, "window_nll");
    size_t bytes = (size_t)json_integer_value(json_object_get(reference, "bytes"));
    token_list list = tokens_of_text(self, bytes);
    size_t num_windows = (list.num + WINDOW - 1) / WINDOW;
    size_t end = num ? (size_t)first + (size_t)num : num_windows;
    double worst = 0.0;
    double sum = 0.0;
    assert_int_equal(list.num, json_integer_value(json_object_get(reference, "tokens")));
    assert_int_equal(json_array_size(windows), num_windows);
    for (size_t i = (size_t)first; i < end; i++) {
        size_t left = list.num - i * WINDOW;
        double nll = score_window(self, list.ids + i * WINDOW,
                                  (int32_t)(left < WINDOW ? left : WINDOW));
        double expected = json_number_value(json_array_get(windows, i));
        double difference = fabs(nll / expected - 1.0);
        worst = difference > worst || isnan(difference) ? difference : worst;
        sum += nll;
    }
    print_message("%zu windows: largest relative difference %.1e\n", end - (size_t)first,
                  worst);
    assert_true(worst <= tolerance);
    double all = json_number_value(json_object_get(reference, "nll"));
    assert_true(num || fabs(sum / all - 1.0) <= tolerance);
    token_list_free(&list);
    json_decref(reference);
}
