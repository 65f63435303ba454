/* id_list.h - token ids from text: {"ids": [...]}, an array, or numbers between blanks and
 * commas. */
#ifndef MLA_CLI_ID_LIST_H
#define MLA_CLI_ID_LIST_H

#include "mla/mla.h"

/* Born as {.context = context}; class server; released with id_list_free. */
typedef struct id_list {
    mla_context *context;
    int32_t *ids; /* [num] */
    size_t num, capacity;
} id_list;
void id_list_free(id_list *list);

/* text: read. list: empty before. MLA_ERR_ARGUMENT where it is none of the three, or a
 * number is no int32. */
mla_status id_list_parse(id_list *list, const char *text, size_t bytes, mla_error *err);

#endif
