/* loop_memory.h - libevent's memory: in the ledger's books, class server, up to a limit.
 * libevent has one allocator a process, so there is one of these at a time, and all of
 * libevent's calls are made by one thread. */
#ifndef MLA_SERVER_LOOP_MEMORY_H
#define MLA_SERVER_LOOP_MEMORY_H

#include "mla/mla.h"

/* Before libevent's first call. context: borrowed until the end. */
void loop_memory_begin(mla_context *context, uint64_t limit_bytes);
/* After its last: gives back what libevent keeps for the process. */
void loop_memory_end(void);

#endif
