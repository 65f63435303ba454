/* machine.h - what the operating system says about memory. */
#ifndef MLA_CLI_MACHINE_H
#define MLA_CLI_MACHINE_H

#include <jansson.h>

/* {"total_bytes", "available_bytes"} and {"transparent", "page_bytes", "total", "free"};
 * null for what is not known. NULL where memory is out. Owned by the caller. */
json_t *machine_memory(void);
json_t *machine_huge_pages(void);

#endif
