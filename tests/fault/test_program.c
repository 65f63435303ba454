/* Every allocation of the program's own code fails, once and for good: attention on files,
 * answers to prompts, ids from text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/attend_run.h"
#include "cli/generation.h"
#include "cli/id_list.h"
#include "cli/json_output.h"
#include "server/memory_snapshot.h"
#include "support/fault.h"
#include "support/tiny_model.h"

enum { HEADS = 2, LATENT = 64, ROPE = 16, PAGE = 16, PAGES = 3, ROWS = 2 };

static tiny_model tiny;
static tiny_model attend_dir;

static void put_array(const char *name, npy_type type, int32_t num_dims,
                      const int64_t *dims, const void *data)
{
    char path[128];
    npy_source source = {.type = type, .num_dims = num_dims, .data = data};
    memcpy(source.dims, dims, (size_t)num_dims * sizeof dims[0]);
    (void)snprintf(path, sizeof path, "%s/%s", attend_dir.dir, name);
    assert_int_equal(npy_write(path, &source, NULL), MLA_OK);
}

static void write_case(void)
{
    static const float q[ROWS * HEADS * (LATENT + ROPE)] = {1, 2, 3};
    static const float kv[PAGES * PAGE * (LATENT + ROPE)] = {4, 5, 6};
    static const int32_t table[ROWS * 2] = {2, 0, 1, -1};
    static const int32_t lens[ROWS] = {20, 3};
    static const int32_t starts[ROWS + 1] = {0, 1, 2};
    static const float scale = 0.5F;
    put_array("q.npy", NPY_F32, 3, (const int64_t[]){ROWS, HEADS, LATENT + ROPE}, q);
    put_array("kv.npy", NPY_F32, 3, (const int64_t[]){PAGES, PAGE, LATENT + ROPE}, kv);
    put_array("block_table.npy", NPY_INT32, 2, (const int64_t[]){ROWS, 2}, table);
    put_array("context_lens.npy", NPY_INT32, 1, (const int64_t[]){ROWS}, lens);
    put_array("query_starts.npy", NPY_INT32, 1, (const int64_t[]){ROWS + 1}, starts);
    put_array("kv_scale.npy", NPY_F32, 1, (const int64_t[]){1}, &scale);
    put_array("query_scale.npy", NPY_F32, 0, (const int64_t[]){0}, &scale);
    tiny_model_put_text(
        &attend_dir, "case.json",
        "{\"heads\": 2, \"latent_dim\": 64, \"rope_dim\": 16, \"page_tokens\": 16, "
        "\"kv_format\": \"fp8\", \"query_dtype\": \"e4m3\", "
        "\"softmax_scale\": 0.1, \"causal\": true, \"window\": 0}");
}

static int write_inputs(void **state)
{
    (void)state;
    tiny = tiny_model_write();
    attend_dir = tiny_model_empty();
    write_case();
    return 0;
}

static int remove_inputs(void **state)
{
    (void)state;
    tiny_model_remove(&tiny);
    tiny_model_remove(&attend_dir);
    return 0;
}

static mla_status open_context(const mla_allocator *allocator, mla_context **out,
                               mla_error *err)
{
    mla_context_options options = MLA_INIT(mla_context_options);
    options.backend = MLA_BACKEND_CPU;
    options.num_threads = 1;
    options.allocator = allocator;
    return mla_context_create(&options, out, err);
}

static mla_status attend(const mla_allocator *allocator, void *arg)
{
    (void)arg;
    mla_error err = {0};
    attend_case files = {.dir = attend_dir.dir};
    mla_status status = open_context(allocator, &files.context, &err);
    attention_call call = {.context = files.context};
    if (status == MLA_OK) {
        status = attend_case_read(&files, &err);
    }
    if (status == MLA_OK) {
        status = attend_run(&files, &call, &err);
    }
    attention_call_free(&call);
    attend_case_free(&files);
    assert_int_equal(mla_context_destroy(&files.context, NULL), MLA_OK);
    assert_int_equal(err.status, status);
    return status;
}

static mla_status look(mla_context *context, mla_error *err)
{
    static memory_snapshot snapshot;
    mla_status status = memory_snapshot_take(context, "served", NULL, &snapshot, err);
    json_scope before = json_output_begin(context);
    json_t *classes = status == MLA_OK ? memory_snapshot_classes(&snapshot) : NULL;
    json_scope_leave(before);
    if (status == MLA_OK && !classes) {
        *err = (mla_error){.status = MLA_ERR_NO_MEMORY, .message = "no memory for JSON"};
        status = MLA_ERR_NO_MEMORY;
    }
    json_decref(classes);
    return status;
}

static mla_status answer(generation_batch *batch, mla_error *err)
{
    static const prompt_source sources[] = {{.text = "abc"}, {.text = "a <user> b"}};
    model_options options = {.dir = tiny.dir};
    loaded_model_limits limits = {.engine = {.kv_format = MLA_KV_FP8, .max_requests = 2}};
    mla_status status = loaded_model_open(batch->loaded, &options, err);
    if (status == MLA_OK) {
        status = generation_begin(batch, sources, 2, err);
    }
    if (status == MLA_OK) {
        status = loaded_model_load(batch->loaded, &options, err);
    }
    if (status == MLA_OK) {
        status = generation_size(batch, 6, &limits.engine.max_context_tokens, err);
    }
    if (status == MLA_OK) {
        status = loaded_model_prepare(batch->loaded, &limits, err);
    }
    if (status == MLA_OK) {
        status = mla_context_freeze(batch->loaded->context, err);
    }
    if (status == MLA_OK) {
        status = generation_run(batch, err);
    }
    return status == MLA_OK ? look(batch->loaded->context, err) : status;
}

static mla_status generate(const mla_allocator *allocator, void *arg)
{
    (void)arg;
    mla_error err = {0};
    loaded_model loaded = {0};
    generation_batch batch = {.loaded = &loaded};
    mla_status status = open_context(allocator, &loaded.context, &err);
    if (status == MLA_OK) {
        status = answer(&batch, &err);
    }
    generation_end(&batch);
    assert_int_equal(loaded_model_close(&loaded, NULL), MLA_OK);
    assert_int_equal(err.status, status);
    return status;
}

static mla_status parse_ids(const mla_allocator *allocator, void *arg)
{
    const char *text = arg;
    mla_error err = {0};
    mla_context *context = NULL;
    mla_status status = open_context(allocator, &context, &err);
    id_list ids = {.context = context};
    if (status == MLA_OK) {
        status = id_list_parse(&ids, text, strlen(text), &err);
        assert_true(status != MLA_OK || ids.num == 3);
    }
    id_list_free(&ids);
    assert_int_equal(mla_context_destroy(&context, NULL), MLA_OK);
    assert_int_equal(err.status, status);
    return status;
}

static void every_allocation_of_attention_on_files_may_fail(void **state)
{
    (void)state;
    assert_true(fault_every("attend", attend, NULL, FAULT_MUST_FAIL) > 40);
}

static void every_allocation_of_an_answer_may_fail(void **state)
{
    (void)state;
    assert_true(fault_every("generate", generate, NULL, FAULT_MUST_FAIL) > 200);
}

static void every_allocation_of_reading_ids_may_fail(void **state)
{
    (void)state;
    static char numbers[] = "1 2 3";
    static char json[] = "{\"ids\": [1, 2, 3]}";
    (void)fault_every("numbers", parse_ids, numbers, FAULT_MUST_FAIL);
    (void)fault_every("json", parse_ids, json, FAULT_MUST_FAIL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_of_attention_on_files_may_fail),
        cmocka_unit_test(every_allocation_of_an_answer_may_fail),
        cmocka_unit_test(every_allocation_of_reading_ids_may_fail),
    };
    return cmocka_run_group_tests(tests, write_inputs, remove_inputs);
}
