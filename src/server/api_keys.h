/* api_keys.h - who may ask: keys from a file, one a line. */
#ifndef MLA_SERVER_API_KEYS_H
#define MLA_SERVER_API_KEYS_H

#include <stdbool.h>

#include "mla/mla.h"

enum { API_KEYS_MAX = 256, API_KEY_MAX_BYTES = 256 };

typedef struct api_keys {
    int32_t num;
    char keys[API_KEYS_MAX][API_KEY_MAX_BYTES]; /* zeros behind each */
} api_keys;

/* Blank lines and lines that begin with '#' are no keys. A file without a key, or with one
 * that is too long, is MLA_ERR_ARGUMENT: nobody could ask, or everybody. */
mla_status api_keys_read(const char *path, api_keys *out, mla_error *err);

/* authorization: "Bearer KEY". Takes as long for every key of the same length, right or
 * wrong. */
bool api_keys_allow(const api_keys *self, const char *authorization);

#endif
