/* byte_buffer.h - bytes that grow in the ledger's memory, class server: text on its way in
 * or out. Grows also after the freeze. */
#ifndef MLA_SERVER_BYTE_BUFFER_H
#define MLA_SERVER_BYTE_BUFFER_H

#include "mla/mla.h"

/* Born as {.context = context}; released with byte_buffer_free. */
typedef struct byte_buffer {
    mla_context *context; /* borrowed */
    char *data;           /* [capacity], the first `num` are in use */
    size_t num, capacity;
} byte_buffer;

void byte_buffer_free(byte_buffer *buffer);

/* Room for `extra` more bytes after the `num` in use. */
mla_status byte_buffer_reserve(byte_buffer *buffer, size_t extra, mla_error *err);

#endif
