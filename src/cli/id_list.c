/* id_list.c - reading token ids: see id_list.h. */
#include "cli/id_list.h"

#include <stdbool.h>
#include <string.h>

#include "base/status.h"
#include "cli/json_output.h"

enum { ALIGN_BYTES = 64 };

void id_list_free(id_list *list)
{
    if (list->ids) {
        mla_memory_give(list->context, MLA_SPACE_HOST, MLA_FOR_SERVER,
                        list->capacity * sizeof *list->ids, list->ids);
    }
    *list = (id_list){.context = list->context};
}

/* capacity: what the text can hold at most, so that it is asked for once. */
static mla_status take_room(id_list *list, size_t capacity, mla_error *err)
{
    void *ids = NULL;
    size_t num = capacity > 0 ? capacity : 1;
    MLAI_TRY(mla_memory_take(list->context, MLA_SPACE_HOST, MLA_FOR_SERVER,
                             num * sizeof *list->ids, ALIGN_BYTES, &ids, err));
    list->ids = ids;
    list->capacity = num;
    return MLA_OK;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',';
}

/* One number at *at; false where there is none that fits. */
static bool parse_number(const char **at, const char *end, int32_t *out)
{
    int64_t value = 0;
    const char *first = *at;
    while (*at < end && **at >= '0' && **at <= '9' && value <= INT32_MAX) {
        value = value * 10 + (*(*at)++ - '0');
    }
    *out = (int32_t)value;
    return *at > first && value <= INT32_MAX && (*at == end || is_blank(**at));
}

static mla_status parse_numbers(id_list *list, const char *text, size_t bytes,
                                mla_error *err)
{
    const char *at = text;
    const char *end = text + bytes;
    MLAI_TRY(take_room(list, bytes / 2 + 1, err));
    for (;;) {
        while (at < end && is_blank(*at)) {
            at++;
        }
        if (at == end) {
            return MLA_OK;
        }
        MLAI_CHECK(parse_number(&at, end, &list->ids[list->num]), MLA_ERR_ARGUMENT,
                   "byte %zu of the ids is no part of a token id", (size_t)(at - text));
        list->num++;
    }
}

static mla_status copy_array(id_list *list, const json_t *array, mla_error *err)
{
    MLAI_CHECK(json_is_array(array), MLA_ERR_ARGUMENT, "the JSON holds no array of ids");
    MLAI_TRY(take_room(list, json_array_size(array), err));
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *item = json_array_get(array, i);
        json_int_t value = json_is_integer(item) ? json_integer_value(item) : -1;
        MLAI_CHECK(value >= 0 && value <= INT32_MAX, MLA_ERR_ARGUMENT,
                   "id %zu of the JSON is not a token id but %s", i,
                   json_words_of(item).text);
        list->ids[list->num++] = (int32_t)value;
    }
    return MLA_OK;
}

static mla_status parse_json(id_list *list, const char *text, size_t bytes, mla_error *err)
{
    json_error_t error;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    MLAI_CHECK(root || !json_scope_has_failed(), MLA_ERR_NO_MEMORY,
               "the memory for %zu bytes of JSON is out", bytes);
    MLAI_CHECK(root, MLA_ERR_ARGUMENT, "the ids, line %d column %d: %s", error.line,
               error.column, error.text);
    const json_t *array = json_is_object(root) ? json_object_get(root, "ids") : root;
    mla_status status = copy_array(list, array, err);
    json_decref(root);
    return status;
}

mla_status id_list_parse(id_list *list, const char *text, size_t bytes, mla_error *err)
{
    size_t first = 0;
    while (first < bytes && is_blank(text[first])) {
        first++;
    }
    if (first == bytes || (text[first] != '{' && text[first] != '[')) {
        return parse_numbers(list, text, bytes, err);
    }
    json_scope before = json_output_begin(list->context);
    mla_status status = parse_json(list, text, bytes, err);
    json_scope_leave(before);
    return status;
}
