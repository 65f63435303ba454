/* text_file.h - a whole file, or standard input, into memory. */
#ifndef MLA_CLI_TEXT_FILE_H
#define MLA_CLI_TEXT_FILE_H

#include "server/byte_buffer.h"

/* Appends a file of at most 256 MiB; "-" is standard input. */
mla_status text_file_read(const char *path, byte_buffer *buffer, mla_error *err);

#endif
