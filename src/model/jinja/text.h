/* text.h - strings that know where each of their bytes comes from: the template's own text,
 * or the input (messages, tools, fields of a request), which must not be read as control
 * tokens. The mark follows its byte through slices, joins and filters. */
#ifndef MLA_MODEL_JINJA_TEXT_H
#define MLA_MODEL_JINJA_TEXT_H

#include <stdbool.h>

#include "model/jinja/memory.h"

typedef struct jinja_text {
    const char *data; /* [bytes], UTF-8, not NUL-terminated */
    size_t bytes;
    const unsigned char *marks; /* [bytes], 1: from the input; NULL: all as is_input says */
    bool is_input;
} jinja_text;

#define JINJA_TEXT(literal) ((jinja_text){.data = (literal), .bytes = sizeof(literal) - 1})

jinja_text jinja_text_of(const char *name); /* NUL-terminated, of the template */
/* "%.*s" of a text in an error, cut to a readable length at a character. */
#define JINJA_SHOWN(text) jinja_text_shown(text), (text).data ? (text).data : ""
int jinja_text_shown(jinja_text text);

bool jinja_text_is(jinja_text text, const char *name);
bool jinja_text_equal(jinja_text a, jinja_text b);
int jinja_text_compare(jinja_text a, jinja_text b);                    /* by code points */
jinja_text jinja_text_part(jinja_text text, size_t begin, size_t end); /* of bytes */
size_t jinja_text_find(jinja_text in, jinja_text what, size_t from);   /* SIZE_MAX: none */
size_t jinja_text_find_last(jinja_text in, jinja_text what, size_t end);

/* Python counts code points. */
size_t jinja_text_length(jinja_text text);
size_t jinja_text_offset(jinja_text text, size_t from, size_t num_points);
/* The bytes of the white space (as str.isspace has it) at `at`, or before it; 0: none. */
size_t jinja_text_space_at(jinja_text text, size_t at);
size_t jinja_text_space_before(jinja_text text, size_t at);
jinja_text jinja_text_strip(jinja_text text, bool left, bool right);

/* Grows by doubling. Born as {.memory = m}; max_bytes 0: as the memory allows. */
typedef struct jinja_builder {
    jinja_memory *memory;
    char *data;
    unsigned char *marks; /* NULL while all bytes are of one kind */
    size_t bytes, capacity, max_bytes;
    bool is_input; /* of all, while marks is NULL */
} jinja_builder;

mla_status jinja_builder_add(jinja_builder *to, jinja_text text, mla_error *err);
/* num bytes of the mark that `like` has at `at`. */
mla_status jinja_builder_add_like(jinja_builder *to, const char *data, size_t num,
                                  jinja_text like, size_t at, mla_error *err);
jinja_text jinja_builder_text(const jinja_builder *from);
mla_status jinja_text_join(jinja_memory *memory, jinja_text a, jinja_text b,
                           jinja_text *out, mla_error *err);

#endif
