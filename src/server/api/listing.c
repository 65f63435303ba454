/* listing.c - which model, which program: see simple.h. */
#include <string.h>

#include "server/api/model_name.h"
#include "server/api/simple.h"
#include "server/api/text.h"

/* The answer of an endpoint whose only trouble can be memory. */
static bool finish(api_text *text, api_failure *failure)
{
    return api_text_end(text) == MLA_OK || api_fail_of(failure, text->err, NULL);
}

static void write_model(const api_settings *settings, api_text *out)
{
    api_text_add(out, "{\"id\":");
    api_text_string(out, settings->model_name);
    api_text_add(out, ",\"object\":\"model\",\"created\":");
    api_text_int(out, settings->start_seconds);
    api_text_add(out, ",\"owned_by\":\"mla\",\"root\":");
    api_text_string(out, settings->model_name);
    api_text_add(out, ",\"parent\":null,\"max_model_len\":");
    api_text_int(out, engine_limits_of(settings->engine)->max_context_tokens);
    api_text_add(out, "}");
}

bool api_models(const api_settings *settings, const char *name, byte_buffer *out,
                api_failure *failure)
{
    mla_error err = {0};
    api_text text = api_text_begin(out, &err);
    if (name && !model_is_served(settings, name)) {
        return model_refuse(settings, name, failure);
    }
    if (!name) {
        api_text_add(&text, "{\"object\":\"list\",\"data\":[");
    }
    write_model(settings, &text);
    if (!name) {
        api_text_add(&text, "]}");
    }
    return finish(&text, failure);
}

bool api_version(const api_settings *settings, byte_buffer *out, api_failure *failure)
{
    mla_error err = {0};
    api_text text = api_text_begin(out, &err);
    api_text_add(&text, "{\"version\":");
    api_text_string(&text, settings->version);
    api_text_add(&text, "}");
    return finish(&text, failure);
}
