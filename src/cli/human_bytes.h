/* human_bytes.h - a number of bytes as people read it. */
#ifndef MLA_CLI_HUMAN_BYTES_H
#define MLA_CLI_HUMAN_BYTES_H

#include <stdint.h>

enum { HUMAN_BYTES_CHARS = 32 };

/* "14.4 MiB"; "812 B". */
void human_bytes_write(uint64_t bytes, char out[HUMAN_BYTES_CHARS]);

#endif
