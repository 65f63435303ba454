/* jinja.h - one template rendered for a test. */
#ifndef TEST_JINJA_H
#define TEST_JINJA_H

#include "model/jinja/template.h"
#include "support/books.h"

typedef struct jinja_result {
    mla_status status;
    mla_error err;
    char text[8192];  /* what was printed, cut there */
    char marks[8192]; /* 't' or 'i' for each byte of it: the template's, the input's */
    size_t bytes;
} jinja_result;

/* fields: JSON of an object, or NULL. limits: NULL: the usual. Fails the test where memory
 * stays in the books. */
const jinja_result *jinja_result_of(const char *source, const char *fields,
                                    const jinja_limits *limits);

#endif
