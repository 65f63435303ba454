/* outline.h - a JSON object as indented text for people: one key a line, two levels of
 * sections, bytes in units. */
#ifndef MLA_CLI_OUTLINE_H
#define MLA_CLI_OUTLINE_H

#include <jansson.h>

void outline_print(const json_t *object);

#endif
