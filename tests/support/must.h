/* must.h - calls that a test needs and does not test: where one fails, so does the test, with
 * the sentence of its error. */
#ifndef TEST_MUST_H
#define TEST_MUST_H

#include "mla/mla.h"

void must(mla_status status, const mla_error *err);

#endif
