/* outline.h - a JSON object as indented text: one key a line. */
#ifndef MLA_CLI_OUTLINE_H
#define MLA_CLI_OUTLINE_H

#include <jansson.h>

void outline_print(const json_t *object);

#endif
