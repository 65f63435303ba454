/* serve_pool.h - how many bytes of pages a server takes that was not told. */
#ifndef MLA_CLI_SERVE_POOL_H
#define MLA_CLI_SERVE_POOL_H

#include "engine/engine.h"

/* What max_requests whole contexts need, but at most half of the memory that the system says
 * is available now; at least one context, which then is refused or not by the system. */
uint64_t serve_pool_bytes(const model *target, const engine_options *options);

/* Of a page of all layers. */
uint64_t serve_page_bytes(const model_config *config, mla_kv_format format);

#endif
