/* api_rig.c - the demo model behind the API: see api_rig.h. */
#include "support/api_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attention/context.h"
#include "support/must.h"

static void *rig_alloc(void *user, size_t bytes, size_t align_bytes, mla_space space,
                       mla_purpose purpose)
{
    api_rig *self = user;
    void *data = NULL;
    size_t align = align_bytes < sizeof(void *) ? sizeof(void *) : align_bytes;
    (void)space;
    (void)purpose;
    if (self->fail_at == 0) {
        self->fail_at = self->fails_on ? 0 : -1;
        return NULL;
    }
    if (self->fail_at > 0) { /* never, while other threads allocate */
        self->fail_at--;
    }
    return posix_memalign(&data, align, bytes) == 0 ? data : NULL;
}

static void rig_release(void *user, void *data, size_t bytes, mla_space space,
                        mla_purpose purpose)
{
    (void)user;
    (void)bytes;
    (void)space;
    (void)purpose;
    free(data);
}

static void wake(void *user)
{
    api_rig *self = user;
    atomic_fetch_add(&self->num_wakes, 1);
}

static int64_t rig_now(void *user)
{
    (void)user;
    return 1700000000;
}

static uint64_t rig_entropy(void *user)
{
    api_rig *self = user;
    return atomic_fetch_add(&self->next_number, 1) + 1;
}

static uint64_t server_bytes(const api_rig *self)
{
    return mlai_ledger_now(&self->context->ledger, MLA_SPACE_HOST, MLA_FOR_SERVER);
}

static void open_parts(api_rig *self, const char *dir)
{
    mla_error err = {0};
    mla_allocator allocator = MLA_INIT(mla_allocator);
    mla_context_options wanted = MLA_INIT(mla_context_options);
    allocator.alloc = rig_alloc;
    allocator.release = rig_release;
    allocator.user = self;
    wanted.backend = MLA_BACKEND_CPU;
    wanted.num_threads = 1;
    wanted.allocator = &allocator;
    must(mla_context_create(&wanted, &self->context, &err), &err);
    must(tokenizer_open(self->context, dir, &self->words, &err), &err);
    must(chat_template_open(self->context, dir, &self->chat, &err), &err);
    must(model_load(self->context, dir, &self->model, &err), &err);
    must(model_add_eos(self->model, tokenizer_eos(self->words), &err), &err);
}

void api_rig_open(api_rig *self, const api_rig_options *options)
{
    enum { REQUESTS = 4, CONTEXT = 512, NEW_TOKENS = 16 };
    const char *dir = TEST_MODELS "/demo";
    mla_error err = {0};
    memset(self, 0, sizeof *self);
    self->fail_at = -1;
    open_parts(self, dir);
    const engine_options how = {
        .kv_format = MLA_KV_F32,
        .max_requests = options->max_requests ? options->max_requests : REQUESTS,
        .max_context_tokens =
            options->max_context_tokens ? options->max_context_tokens : CONTEXT,
        .kv_bytes = options->kv_bytes,
        .default_max_tokens =
            options->default_max_tokens ? options->default_max_tokens : NEW_TOKENS,
        .has_prefix_cache = options->has_prefix_cache,
        .words = self->words,
        .chat = options->lacks_chat ? NULL : self->chat,
    };
    self->settings = (api_settings){
        .ledger = mlai_context_ledger(self->context),
        .model_name = "demo",
        .model_path = dir,
        .version = "1.2.3",
        .start_seconds = 1600000000,
        .defaults = {.temperature = 1, .top_p = 1, .repetition_penalty = 1},
        .longest_token_bytes = api_longest_token(self->words),
        .now_seconds = rig_now,
        .entropy = rig_entropy,
        .wake = wake,
        .user = self,
        .metrics = &self->metrics,
    };
    must(engine_open(self->model, &how, &self->settings.engine, &err), &err);
    must(mla_context_freeze(self->context, &err), &err);
    self->server_bytes = server_bytes(self);
}

void api_rig_check(const api_rig *self)
{
    assert_int_equal(server_bytes(self), self->server_bytes);
}

void api_rig_close(api_rig *self)
{
    mla_error err = {0};
    api_rig_check(self);
    engine_close(&self->settings.engine);
    model_unload(&self->model);
    chat_template_close(&self->chat);
    tokenizer_close(&self->words);
    must(mla_context_destroy(&self->context, &err), &err);
}

void api_rig_run(api_rig *self)
{
    mla_error err = {0};
    bool is_idle = false;
    while (!is_idle) {
        must(engine_step(self->settings.engine, &is_idle, &err), &err);
    }
}

char *api_text_of(const byte_buffer *buffer)
{
    char *text = malloc(buffer->num + 1);
    assert_non_null(text);
    if (buffer->num > 0) {
        memcpy(text, buffer->data, buffer->num);
    }
    text[buffer->num] = 0;
    return text;
}

static json_t *parse(const char *text, size_t bytes)
{
    json_error_t error;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (!root) {
        fail_msg("%s at %d of: %.*s", error.text, error.position, (int)bytes, text);
    }
    return root;
}

static json_t *parse_failure(const api_failure *failure)
{
    static char text[API_MAX_FAILURE_BYTES];
    return parse(text, api_failure_print(failure, text));
}

json_t *api_rig_reply(api_rig *self, api_kind kind, const char *body, int32_t *status)
{
    api_call *call = NULL;
    api_failure failure;
    mla_error err = {0};
    bool is_done = false;
    byte_buffer out = {.context = self->context};
    if (!api_call_open(&self->settings, kind, body, strlen(body), &call, &failure)) {
        *status = (int32_t)failure.status;
        api_rig_check(self);
        return parse_failure(&failure);
    }
    assert_false(api_call_is_stream(call));
    api_call_submit(call);
    must(api_call_write(call, &out, &is_done, &err), &err);
    assert_false(is_done);
    assert_int_equal(out.num, 0);
    api_rig_run(self);
    assert_true(api_call_has_ended(call) && api_call_has_news(call));
    must(api_call_write(call, &out, &is_done, &err), &err);
    assert_true(is_done && !api_call_has_news(call));
    *status = (int32_t)api_call_status(call);
    json_t *reply = parse(out.data, out.num);
    api_call_close(&call);
    byte_buffer_free(&out);
    api_rig_check(self);
    return reply;
}

json_t *api_rig_good(api_rig *self, api_kind kind, const char *body)
{
    int32_t status = 0;
    json_t *reply = api_rig_reply(self, kind, body, &status);
    if (status != API_OK) {
        fail_msg("%s: %d %s", body, status, api_string_at(reply, "error.message"));
    }
    return reply;
}

/* "data: ...\n\n", one after another. */
static json_t *parse_events(const char *text, size_t bytes)
{
    json_t *events = json_array();
    const char *at = text;
    const char *end = text + bytes;
    bool is_done = false;
    while (at < end) {
        const char *stop = memmem(at, (size_t)(end - at), "\n\n", 2);
        assert_non_null(stop);
        assert_false(is_done);
        assert_memory_equal(at, "data: ", 6);
        at += 6;
        is_done = stop - at == 6 && memcmp(at, "[DONE]", 6) == 0;
        if (!is_done) {
            assert_int_equal(json_array_append_new(events, parse(at, (size_t)(stop - at))),
                             0);
        }
        at = stop + 2;
    }
    assert_true(is_done);
    return events;
}

json_t *api_rig_stream(api_rig *self, api_kind kind, const char *body)
{
    api_call *call = NULL;
    api_failure failure;
    mla_error err = {0};
    bool is_done = false;
    bool is_idle = false;
    byte_buffer out = {.context = self->context};
    if (!api_call_open(&self->settings, kind, body, strlen(body), &call, &failure)) {
        fail_msg("%s: %s", body, failure.message);
    }
    assert_true(api_call_is_stream(call));
    api_call_submit(call);
    while (!is_done) {
        must(api_call_write(call, &out, &is_done, &err), &err);
        assert_false(api_call_has_news(call));
        must(engine_step(self->settings.engine, &is_idle, &err), &err);
    }
    assert_true(api_call_has_ended(call));
    json_t *events = parse_events(out.data, out.num);
    api_call_close(&call);
    byte_buffer_free(&out);
    api_rig_check(self);
    return events;
}

const json_t *api_at(const json_t *root, const char *path)
{
    const json_t *at = root;
    const char *rest = path;
    char name[64];
    while (at && *rest) {
        size_t num = strcspn(rest, ".");
        (void)snprintf(name, sizeof name, "%.*s", (int)num, rest);
        rest += num + (rest[num] == '.' ? 1 : 0);
        at = json_is_array(at) ? json_array_get(at, strtoul(name, NULL, 10))
                               : json_object_get(at, name);
    }
    if (!at) {
        char *text = json_dumps(root, 0);
        fail_msg("no %s in %s", path, text ? text : "what there is");
    }
    return at;
}

const char *api_string_at(const json_t *root, const char *path)
{
    const char *text = json_string_value(api_at(root, path));
    if (!text) {
        fail_msg("%s is no string", path);
    }
    return text;
}

int64_t api_int_at(const json_t *root, const char *path)
{
    const json_t *value = api_at(root, path);
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

char *api_joined(const json_t *events, int64_t index)
{
    char *joined = strdup("");
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *choices = api_at(json_array_get(events, i), "choices");
        const json_t *choice = json_array_get(choices, 0);
        if (!choice || api_int_at(choice, "index") != index) {
            continue;
        }
        const json_t *delta = json_object_get(choice, "delta");
        const char *text = json_string_value(
            json_object_get(delta ? delta : choice, delta ? "content" : "text"));
        assert_non_null(text);
        size_t num = strlen(joined);
        char *longer = realloc(joined, num + strlen(text) + 1);
        assert_non_null(longer);
        memcpy(longer + num, text, strlen(text) + 1);
        joined = longer;
    }
    return joined;
}
