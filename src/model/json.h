/* json.h - JSON from files: strict, bounded, in the ledger's books, and with errors that
 * name the file, the key and the value. Built on jansson. */
#ifndef MLA_MODEL_JSON_H
#define MLA_MODEL_JSON_H

#include <jansson.h>

#include "base/ledger.h"

/* jansson's allocator hooks are process-wide and carry no user pointer, so the ledger that
 * pays is the one of the scope that this thread has entered. Every block remembers its
 * ledger: a value may be released anywhere, by any thread, before its ledger ends. Outside
 * any scope memory comes from a ledger of the process that no report shows.
 *
 *     json_scope before = json_scope_enter(ledger, MLA_FOR_SERVER);
 *     ... whatever creates values ...
 *     json_scope_leave(before); */
typedef struct json_scope {
    mlai_ledger *ledger;
    mla_purpose purpose;
    bool has_failed;              /* an allocation, since this scope was entered */
    struct json_attempt *attempt; /* of json_scope_parse, while it runs */
} json_scope;
json_scope json_scope_enter(mlai_ledger *ledger, mla_purpose purpose);
void json_scope_leave(json_scope before);

/* Whether memory ran out in the current scope: jansson does not always say so. */
bool json_scope_has_failed(void);

/* json_loadb. Where memory runs out in a scope jansson may go on with half a text and trip over
 * it; this returns NULL at once. The scope has then failed, and *error is not filled. */
json_t *json_scope_parse(const char *text, size_t bytes, size_t flags, json_error_t *error);

/* A parsed file. name: for errors; borrowed until document_close. */
typedef struct json_document {
    const char *name;
    json_t *root; /* always an object */
} json_document;

/* text: read. Duplicate keys, anything after the value, depth above 2048 and a root that is
 * no object are MLA_ERR_CORRUPT with line and column. Memory is class context.
 * out: owned, document_close. */
mla_status document_parse(mlai_ledger *ledger, const char *name, const char *text,
                          size_t bytes, json_document *out, mla_error *err);

/* The same from the file `name` of the directory `dir`, at most max_bytes long. */
mla_status document_read(mlai_ledger *ledger, const char *dir, const char *name,
                         size_t max_bytes, json_document *out, mla_error *err);
void document_close(json_document *doc); /* all 0 is allowed */

/* Typed values of an object of that document. Missing, another type or out of range:
 * MLA_ERR_CORRUPT. Results are borrowed until document_close. */
bool key_is_set(const json_t *object, const char *key); /* there and not null */
mla_status key_int(const json_document *doc, const json_t *object, const char *key,
                   int64_t min, int64_t max, int64_t *out, mla_error *err);
mla_status key_real(const json_document *doc, const json_t *object, const char *key,
                    double min, double max, double *out, mla_error *err);
/* Absent or null leaves *out as it is. */
mla_status key_bool(const json_document *doc, const json_t *object, const char *key,
                    bool *out, mla_error *err);
mla_status key_string(const json_document *doc, const json_t *object, const char *key,
                      const char **out, mla_error *err);
mla_status key_object(const json_document *doc, const json_t *object, const char *key,
                      const json_t **out, mla_error *err);
mla_status key_array(const json_document *doc, const json_t *object, const char *key,
                     const json_t **out, mla_error *err);

/* Writes a short form of a value for an error: 12, "text", null, an object. */
typedef struct json_words {
    char text[48];
} json_words;
json_words json_words_of(const json_t *value);

#endif
