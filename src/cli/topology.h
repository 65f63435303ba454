/* topology.h - packages, cores, caches and NUMA nodes, where the program was built with
 * hwloc. */
#ifndef MLA_CLI_TOPOLOGY_H
#define MLA_CLI_TOPOLOGY_H

#include <jansson.h>

/* {"hwloc": false}, or what hwloc says. NULL where memory is out. Owned by the caller. */
json_t *topology_describe(void);

#endif
