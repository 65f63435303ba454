/* profile.c - a profile's JSON, checked: see profile.h. */
#include "model/profile.h"

#include <stdio.h>
#include <string.h>

#include "model/file.h"
#include "model/profile_parts.h"

#define MAX_PROFILE_BYTES ((size_t)1 << 20)

enum { MAX_GRAPH_ROWS = 1 << 20 };

static const char *const sections[] = {"device",  "weights",     "ranks",
                                       "serving", "speculation", "linear_state",
                                       "graphs",  "comm",        "held"};
enum { NUM_SECTIONS = sizeof sections / sizeof sections[0] };

static mla_status add_remark(profile *self, const char *section, const char *key,
                             profile_remark remark, mla_error *err)
{
    MLAI_CHECK(self->num_remarks < PROFILE_MAX_REMARKS, MLA_ERR_CORRUPT,
               "%s: %s.%s is one remark more than the %d that are kept",
               self->document.name, section, key, PROFILE_MAX_REMARKS);
    (void)snprintf(remark.input, sizeof remark.input, "%s.%s", section, key);
    self->remarks[self->num_remarks++] = remark;
    return MLA_OK;
}

mla_status profile_remark_default(profile *self, const char *section, const char *key,
                                  int64_t value, mla_error *err)
{
    const profile_remark remark = {.ground = PROFILE_DEFAULT, .fallback = value};
    return add_remark(self, section, key, remark, err);
}

/* {"value": .., "assumed": "why"} or {"value": .., "reported": "where"} */
static mla_status unwrap(profile *self, const char *section, const char *key,
                         const json_t **value, mla_error *err)
{
    const json_t *object = *value;
    const json_t *assumed = json_object_get(object, "assumed");
    const json_t *why = assumed ? assumed : json_object_get(object, "reported");
    const json_t *inner = json_object_get(object, "value");
    MLAI_CHECK(json_object_size(object) == 2 && inner && json_is_string(why) &&
                   json_string_length(why) > 0,
               MLA_ERR_CORRUPT,
               "%s: %s.%s is an object without just a value and why it is assumed or where "
               "it is reported",
               self->document.name, section, key);
    const profile_remark remark = {.ground = assumed ? PROFILE_ASSUMED : PROFILE_REPORTED,
                                   .why = json_string_value(why),
                                   .value = inner};
    MLAI_TRY(add_remark(self, section, key, remark, err));
    *value = inner;
    return MLA_OK;
}

mla_status profile_find(profile *self, const char *section, const char *key,
                        const json_t **value, mla_error *err)
{
    const json_t *object = json_object_get(self->document.root, section);
    const json_t *found = json_object_get(object, key);
    *value = NULL;
    if (!found || json_is_null(found)) {
        return MLA_OK;
    }
    if (json_is_object(found)) {
        MLAI_TRY(unwrap(self, section, key, &found, err));
    }
    *value = found;
    return MLA_OK;
}

static bool is_known(const char *section, const char *key)
{
    bool is_graph_list = strcmp(section, "graphs") == 0 && strcmp(key, "rows") == 0;
    return is_graph_list || profile_is_number(section, key) ||
           profile_is_word(section, key);
}

static mla_status check_section(const profile *self, const char *section, mla_error *err)
{
    json_t *object = json_object_get(self->document.root, section);
    const char *key;
    json_t *value;
    MLAI_CHECK(!object || json_is_object(object), MLA_ERR_CORRUPT,
               "%s: %s is %s and should be an object", self->document.name, section,
               json_words_of(object).text);
    json_object_foreach(object, key, value)
    {
        MLAI_CHECK(is_known(section, key), MLA_ERR_CORRUPT,
                   "%s: %s.%.60s is not an input of a profile", self->document.name,
                   section, key);
    }
    return MLA_OK;
}

static bool is_section(const char *key)
{
    static const char *const others[] = {"name", "notes", "config"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (strcmp(others[i], key) == 0) {
            return true;
        }
    }
    for (int i = 0; i < NUM_SECTIONS; i++) {
        if (strcmp(sections[i], key) == 0) {
            return true;
        }
    }
    return false;
}

static mla_status check_keys(const profile *self, mla_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach(self->document.root, key, value)
    {
        MLAI_CHECK(is_section(key), MLA_ERR_CORRUPT,
                   "%s: %.60s is not a section of a profile", self->document.name, key);
    }
    for (int i = 0; i < NUM_SECTIONS; i++) {
        MLAI_TRY(check_section(self, sections[i], err));
    }
    return MLA_OK;
}

static mla_status read_notes(profile *self, mla_error *err)
{
    const json_t *note;
    size_t i;
    if (!key_is_set(self->document.root, "notes")) {
        return MLA_OK;
    }
    MLAI_TRY(key_array(&self->document, self->document.root, "notes", &self->notes, err));
    json_array_foreach(self->notes, i, note)
    {
        MLAI_CHECK(json_is_string(note), MLA_ERR_CORRUPT,
                   "%s: notes[%zu] is %s and should be a string", self->document.name, i,
                   json_words_of(note).text);
    }
    return MLA_OK;
}

static mla_status read_graph_rows(profile *self, mla_error *err)
{
    const json_t *list;
    const json_t *rows;
    size_t i;
    MLAI_TRY(profile_find(self, "graphs", "rows", &list, err));
    if (!list) {
        return MLA_OK;
    }
    MLAI_CHECK(json_is_array(list) && json_array_size(list) <= PROFILE_MAX_GRAPHS,
               MLA_ERR_CORRUPT, "%s: graphs.rows is %s and should be a list of at most %d",
               self->document.name, json_words_of(list).text, PROFILE_MAX_GRAPHS);
    json_array_foreach(list, i, rows)
    {
        int64_t least = i > 0 ? self->graph_rows[i - 1] + 1 : 1;
        MLAI_CHECK(json_is_integer(rows) && json_integer_value(rows) >= least &&
                       json_integer_value(rows) <= MAX_GRAPH_ROWS,
                   MLA_ERR_CORRUPT,
                   "%s: graphs.rows[%zu] is %s and should be from %lld to %d",
                   self->document.name, i, json_words_of(rows).text, (long long)least,
                   MAX_GRAPH_ROWS);
        self->graph_rows[i] = (int32_t)json_integer_value(rows);
        self->num_graphs++;
    }
    return MLA_OK;
}

static mla_status read_document(mlai_ledger *ledger, profile *self, mla_error *err)
{
    const json_t *config;
    MLAI_TRY(check_keys(self, err));
    MLAI_TRY(key_string(&self->document, self->document.root, "name", &self->name, err));
    MLAI_TRY(read_notes(self, err));
    MLAI_TRY(key_object(&self->document, self->document.root, "config", &config, err));
    MLAI_TRY(model_shape_read(ledger, &self->document, config, &self->shape, err));
    MLAI_TRY(profile_read_words(self, err));
    MLAI_TRY(profile_read_numbers(self, err));
    MLAI_TRY(read_graph_rows(self, err));
    return profile_complete(self, config, err);
}

mla_status profile_parse(mlai_ledger *ledger, const char *name, const char *text,
                         size_t bytes, profile *out, mla_error *err)
{
    memset(out, 0, sizeof *out);
    MLAI_TRY(document_parse(ledger, name, text, bytes, &out->document, err));
    mla_status status = read_document(ledger, out, err);
    if (status != MLA_OK) {
        profile_close(out);
    }
    return status;
}

mla_status profile_read(mlai_ledger *ledger, const char *dir, const char *name,
                        profile *out, mla_error *err)
{
    file_text file = {0};
    MLAI_TRY(file_read(ledger, dir, name, MAX_PROFILE_BYTES, &file, err));
    mla_status status = profile_parse(ledger, name, file.text, file.bytes, out, err);
    file_text_free(&file);
    return status;
}

void profile_close(profile *self)
{
    document_close(&self->document);
    memset(self, 0, sizeof *self);
}
