/* messages.c - a conversation: checked here, so that what is wrong has a name, and written by
 * the model's template: see prompts.h. */
#include <stdio.h>
#include <string.h>

#include "server/api/prompts.h"

enum { NAME_BYTES = 48 };

/* One message under its name in failures, "messages[3]." */
typedef struct message {
    api_fields fields;
    char path[NAME_BYTES];
    bool is_assistant;
    size_t text_bytes; /* of its content */
} message;

static bool refuse_part(const api_fields *fields, size_t i, const json_t *part)
{
    char name[NAME_BYTES];
    const json_t *type = json_object_get(part, "type");
    (void)snprintf(name, sizeof name, "%scontent[%zu]", fields->path, i);
    return api_fail(fields->failure, API_BAD_REQUEST, name, NULL,
                    "%s is of type %s; only {\"type\": \"text\", \"text\": \"...\"} is "
                    "supported",
                    name, json_words_of(type).text);
}

static bool check_parts(message *self, const json_t *parts)
{
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i);
        const char *type = json_string_value(json_object_get(part, "type"));
        const json_t *text = json_object_get(part, "text");
        if (!type || strcmp(type, "text") != 0 || !json_is_string(text)) {
            return refuse_part(&self->fields, i, part);
        }
        self->text_bytes += json_string_length(text);
    }
    return true;
}

static bool check_content(message *self)
{
    const json_t *content = json_object_get(self->fields.object, "content");
    const json_t *calls = json_object_get(self->fields.object, "tool_calls");
    bool may_lack = self->is_assistant && json_array_size(calls) > 0;
    if (json_is_string(content)) {
        self->text_bytes += json_string_length(content);
        return true;
    }
    if (json_is_array(content) && json_array_size(content) > 0) {
        return check_parts(self, content);
    }
    return (may_lack && (!content || json_is_null(content))) ||
           field_refuse(&self->fields, "content", content,
                        "a string or an array of text parts");
}

/* Templates know no developer: it is what the system was called before. */
static bool rename_developer(json_t *object, api_failure *failure)
{
    return json_object_set_new(object, "role", json_string("system")) == 0 ||
           api_fail(failure, API_UNAVAILABLE, NULL, "out_of_memory",
                    "out of memory for a conversation");
}

static bool check_role(message *self, json_t *object)
{
    static const char *const roles[] = {"system", "user", "assistant", "tool"};
    const json_t *value = json_object_get(object, "role");
    const char *role = json_string_value(value);
    self->is_assistant = role && strcmp(role, "assistant") == 0;
    if (role && strcmp(role, "developer") == 0) {
        return rename_developer(object, self->fields.failure);
    }
    for (size_t i = 0; role && i < sizeof roles / sizeof roles[0]; i++) {
        if (strcmp(role, roles[i]) == 0) {
            return true;
        }
    }
    return field_refuse(&self->fields, "role", value,
                        "system, developer, user, assistant or tool");
}

/* What a message may have beside its text, and is not served. */
static bool check_rest(const message *self)
{
    static const char *const refused[] = {"audio", "function_call"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        const json_t *value = field_value(&self->fields, refused[i]);
        if (value) {
            return field_refuse(&self->fields, refused[i], value,
                                "absent: it is not supported by this server");
        }
    }
    const json_t *calls = NULL;
    const char *name = NULL;
    return field_array(&self->fields, "tool_calls", &calls) &&
           field_string(&self->fields, "name", SIZE_MAX, &name) &&
           field_string(&self->fields, "tool_call_id", SIZE_MAX, &name);
}

static bool check_message(json_t *object, size_t i, api_failure *failure,
                          size_t *text_bytes)
{
    message self = {.text_bytes = 0};
    (void)snprintf(self.path, sizeof self.path, "messages[%zu].", i);
    self.fields = (api_fields){object, self.path, failure};
    if (!json_is_object(object)) {
        char name[NAME_BYTES];
        (void)snprintf(name, sizeof name, "messages[%zu]", i);
        return api_fail(failure, API_BAD_REQUEST, name, NULL,
                        "%s is %s; it must be an object", name, json_words_of(object).text);
    }
    bool is_good = check_role(&self, object) && check_rest(&self) && check_content(&self);
    *text_bytes += self.text_bytes;
    return is_good;
}

static bool check_messages(const api_settings *settings, const api_fields *fields,
                           const json_t **out)
{
    size_t text_bytes = 0;
    if (!field_array(fields, "messages", out)) {
        return false;
    }
    size_t num = json_array_size(*out);
    if (num < 1 || num > API_MAX_MESSAGES) {
        return api_fail(fields->failure, API_BAD_REQUEST, "messages", NULL,
                        "messages has %zu entries; 1 to %d", num, API_MAX_MESSAGES);
    }
    for (size_t i = 0; i < num; i++) {
        if (!check_message(json_array_get(*out, i), i, fields->failure, &text_bytes)) {
            return false;
        }
    }
    return api_prompt_may_fit(settings, text_bytes, "messages", fields->failure);
}

/* What the template may see: the messages, and what is meant for it. */
static bool template_fields(const api_fields *fields, const json_t *messages, json_t **out)
{
    bool is_answered = true;
    const json_t *more = NULL;
    if (!field_bool(fields, "add_generation_prompt", &is_answered) ||
        !field_object(fields, "chat_template_kwargs", &more)) {
        return false;
    }
    static const char *const own[] = {"messages", "tools", "documents", "chat_template"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        if (json_object_get(more, own[i])) {
            return api_fail(fields->failure, API_BAD_REQUEST, "chat_template_kwargs", NULL,
                            "chat_template_kwargs has %s, which is not for it to say",
                            own[i]);
        }
    }
    json_t *made = more ? json_copy((json_t *)(uintptr_t)more) : json_object();
    if (!json_object_get(more, "add_generation_prompt")) {
        (void)json_object_set_new(made, "add_generation_prompt", json_boolean(is_answered));
    }
    (void)json_object_set(made, "messages", (json_t *)(uintptr_t)messages);
    if (!made || json_scope_has_failed()) {
        json_decref(made);
        return api_fail(fields->failure, API_UNAVAILABLE, NULL, "out_of_memory",
                        "out of memory for a conversation");
    }
    *out = made;
    return true;
}

static bool encode(const api_settings *settings, const json_t *made, api_failure *failure,
                   api_prompt *out)
{
    const chat_options options = {.is_answered = true,
                                  .allows_control = settings->allows_control};
    mla_error err = {0};
    mla_status status = chat_template_encode(engine_chat_of(settings->engine),
                                             engine_tokenizer_of(settings->engine), made,
                                             &options, &out->encoded, &err);
    out->ids = out->encoded.ids;
    out->num = (int32_t)out->encoded.num;
    return status == MLA_OK || api_fail_of(failure, &err, "messages");
}

/* The template writes BOS itself; who asks for it nevertheless never gets a second one. */
static bool add_special(const api_settings *settings, const api_fields *fields,
                        api_memory *memory, api_prompt *prompt)
{
    bool adds_special = false;
    int32_t bos = tokenizer_bos(engine_tokenizer_of(settings->engine));
    void *ids = NULL;
    mla_error err = {0};
    if (!field_bool(fields, "add_special_tokens", &adds_special)) {
        return false;
    }
    if (!adds_special || bos < 0 || prompt->ids[0] == bos) {
        return true;
    }
    if (api_memory_take(memory, (size_t)prompt->num + 1, sizeof(int32_t),
                        "the tokens of a request", &ids, &err) != MLA_OK) {
        return api_fail_of(fields->failure, &err, NULL);
    }
    *(int32_t *)ids = bos;
    memcpy((int32_t *)ids + 1, prompt->ids, (size_t)prompt->num * sizeof(int32_t));
    prompt->ids = ids;
    prompt->num++;
    return true;
}

bool api_messages_read(const api_settings *settings, const api_fields *fields,
                       api_memory *memory, api_prompts *out)
{
    const json_t *messages = NULL;
    json_t *made = NULL;
    mla_error err = {0};
    void *list = NULL;
    if (!engine_chat_of(settings->engine)) {
        return api_fail(fields->failure, API_BAD_REQUEST, "messages", NULL,
                        "this model has no chat template");
    }
    if (!check_messages(settings, fields, &messages) ||
        !template_fields(fields, messages, &made)) {
        return false;
    }
    bool is_good = api_memory_take(memory, 1, sizeof(api_prompt), "the prompt of a request",
                                   &list, &err) == MLA_OK ||
                   api_fail_of(fields->failure, &err, NULL);
    if (is_good) {
        *(api_prompt *)list = (api_prompt){.num = 0};
        *out = (api_prompts){.list = list, .num = 1};
        is_good = encode(settings, made, fields->failure, out->list) &&
                  add_special(settings, fields, memory, out->list);
    }
    json_decref(made);
    return is_good;
}
