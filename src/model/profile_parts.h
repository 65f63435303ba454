/* profile_parts.h - between the files that read a profile. */
#ifndef MLA_MODEL_PROFILE_PARTS_H
#define MLA_MODEL_PROFILE_PARTS_H

#include "model/profile.h"

/* The value of section.key, out of {"value": .., "assumed": ".."} or "reported" where it is one,
 * with a remark then. NULL: it is absent or null. section: NULL where it is absent. */
mla_status profile_find(profile *self, const char *section, const char *key,
                        const json_t **value, mla_error *err);
mla_status profile_remark_default(profile *self, const char *section, const char *key,
                                  int64_t value, mla_error *err);

/* All numbers of profile_numbers, and the words that name formats. */
mla_status profile_read_numbers(profile *self, mla_error *err);
mla_status profile_read_words(profile *self, mla_error *err);

/* Resolves what follows from other inputs, and holds them against each other. */
mla_status profile_complete(profile *self, const json_t *config, mla_error *err);

/* Whether section.key is one that is read. */
bool profile_is_number(const char *section, const char *key);
bool profile_is_word(const char *section, const char *key);

#endif
