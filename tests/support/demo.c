/* demo.c - opening the demo and reading its reference: see demo.h. */
#include "support/demo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

demo demo_load(const demo_options *options)
{
    demo self = {0};
    mla_error err = {0};
    mla_context_options context = MLA_INIT(mla_context_options);
    context.backend = MLA_BACKEND_CPU;
    context.num_threads = options->threads;
    context.isa_mask = options->isa_mask;
    context.memory_limit_bytes = options->memory_limit_bytes;
    must(mla_context_create(&context, &self.context, &err), &err);
    const char *dir = options->dir ? options->dir : TEST_MODELS "/demo";
    must(model_load(self.context, dir, &self.model, &err), &err);
    return self;
}

demo demo_open(const demo_options *options)
{
    demo self = demo_load(options);
    mla_error err = {0};
    engine_options how = {
        .kv_format = options->kv ? options->kv : MLA_KV_F32,
        .max_requests = options->max_requests ? options->max_requests : 1,
        .max_context_tokens = options->max_context,
        .kv_bytes = options->kv_bytes,
        .draft_tokens = options->draft_tokens,
        .drafter = options->drafter,
        .has_prefix_cache = options->has_prefix_cache,
        .words = options->words,
        .scores_texts = true,
    };
    must(engine_open(self.model, &how, &self.engine, &err), &err);
    return self;
}

void demo_close(demo *self)
{
    mla_error err = {0};
    engine_close(&self->engine);
    model_unload(&self->model);
    must(mla_context_destroy(&self->context, &err), &err);
}

uint64_t demo_num_allocs(const demo *self)
{
    mla_memory_report report = MLA_INIT(mla_memory_report);
    mla_error err = {0};
    uint64_t num = 0;
    must(mla_context_memory(self->context, &report, &err), &err);
    for (int space = 0; space < MLA_NUM_SPACES; space++) {
        for (int purpose = 0; purpose < MLA_NUM_PURPOSES; purpose++) {
            num += report.cell[space][purpose].num_allocs;
        }
    }
    return num;
}

json_t *demo_read_json(const char *name)
{
    char path[512];
    json_error_t error;
    (void)snprintf(path, sizeof path, "%s/demo/%s", TEST_DATA, name);
    json_t *root = json_load_file(path, 0, &error);
    if (!root) {
        fail_msg("%s: %s", path, error.text);
    }
    return root;
}

static int32_t read_ids(const json_t *array, int32_t *out)
{
    size_t num = json_array_size(array);
    assert_true(num > 0 && num <= DEMO_MAX_TOKENS);
    for (size_t i = 0; i < num; i++) {
        out[i] = (int32_t)json_integer_value(json_array_get(array, i));
    }
    return (int32_t)num;
}

static void read_generation(const json_t *from, demo_generation *out)
{
    const json_t *margins = json_object_get(from, "margins");
    (void)snprintf(out->name, sizeof out->name, "%s",
                   json_string_value(json_object_get(from, "name")));
    out->num_prompt = read_ids(json_object_get(from, "prompt_ids"), out->prompt);
    out->num_ids = read_ids(json_object_get(from, "ids"), out->ids);
    assert_int_equal(json_array_size(margins), out->num_ids);
    for (int32_t i = 0; i < out->num_ids; i++) {
        out->margins[i] = json_number_value(json_array_get(margins, (size_t)i));
    }
    const char *finish = json_string_value(json_object_get(from, "finish"));
    out->finish = strcmp(finish, "stop") == 0 ? ENGINE_STOP : ENGINE_LENGTH;
}

int32_t demo_read_generations(demo_generation *out)
{
    json_t *root = demo_read_json("generations.json");
    const json_t *list = json_object_get(root, "generations");
    size_t num = json_array_size(list);
    assert_true(num > 0 && num <= DEMO_MAX_GENERATIONS);
    for (size_t i = 0; i < num; i++) {
        read_generation(json_array_get(list, i), &out[i]);
    }
    json_decref(root);
    return (int32_t)num;
}

static bool collect(engine_request *request, const engine_event *event)
{
    demo_output *out = request->user;
    int32_t index = (int32_t)(request - out->requests);
    assert_true(out->num[index] < DEMO_MAX_TOKENS);
    assert_int_equal(event->index, out->num[index]);
    out->ids[index][out->num[index]++] = event->token;
    return true;
}

void demo_generate(const demo *self, const engine_request *requests, int32_t num,
                   demo_output *out)
{
    mla_error err = {0};
    assert_true(num <= DEMO_MAX_GENERATIONS);
    memset(out, 0, sizeof *out);
    for (int32_t i = 0; i < num; i++) {
        memcpy(&out->requests[i], &requests[i], sizeof requests[i]);
        out->requests[i].on_token = collect;
        out->requests[i].user = out;
    }
    must(engine_run(self->engine, out->requests, num, out->results, &err), &err);
    for (int32_t i = 0; i < num; i++) {
        assert_int_equal(out->results[i].num_tokens, out->num[i]);
    }
}
