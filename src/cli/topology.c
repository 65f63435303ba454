/* topology.c - packages, cores and caches, by hwloc: see topology.h. */
#include "cli/topology.h"

#ifdef MLA_HAVE_HWLOC
#include <hwloc.h>
#include <unistd.h>

static json_int_t count(hwloc_topology_t topology, hwloc_obj_type_t type)
{
    int num = hwloc_get_nbobjs_by_type(topology, type);
    return num > 0 ? num : 0;
}

/* The bytes of one and how many, for a kind of cache that there is. */
static int add_cache(json_t *out, const char *name, hwloc_topology_t topology,
                     hwloc_obj_type_t type)
{
    hwloc_obj_t first = hwloc_get_obj_by_type(topology, type, 0);
    if (!first) {
        return 0;
    }
    return json_object_set_new(out, name,
                               json_pack("{s:I, s:I}", "bytes",
                                         (json_int_t)first->attr->cache.size, "count",
                                         count(topology, type)));
}

static json_t *describe_caches(hwloc_topology_t topology)
{
    json_t *caches = json_object();
    if (add_cache(caches, "L1d", topology, HWLOC_OBJ_L1CACHE) != 0 ||
        add_cache(caches, "L2", topology, HWLOC_OBJ_L2CACHE) != 0 ||
        add_cache(caches, "L3", topology, HWLOC_OBJ_L3CACHE) != 0) {
        json_decref(caches);
        return NULL;
    }
    return caches;
}

static json_t *describe_loaded(hwloc_topology_t topology)
{
    return json_pack("{s:b, s:I, s:I, s:I, s:I, s:o}", "hwloc", 1, "packages",
                     count(topology, HWLOC_OBJ_PACKAGE), "numa_nodes",
                     count(topology, HWLOC_OBJ_NUMANODE), "cores",
                     count(topology, HWLOC_OBJ_CORE), "threads",
                     count(topology, HWLOC_OBJ_PU), "caches", describe_caches(topology));
}

json_t *topology_describe(void)
{
    hwloc_topology_t topology;
    json_t *result = NULL;
    /* Without it, as in a bare chroot, hwloc knows little and says so on stderr. */
    if (access("/sys/devices/system/cpu", R_OK) != 0 ||
        hwloc_topology_init(&topology) != 0) {
        return json_pack("{s:b}", "hwloc", 0);
    }
    result = hwloc_topology_load(topology) == 0 ? describe_loaded(topology)
                                                : json_pack("{s:b}", "hwloc", 0);
    hwloc_topology_destroy(topology);
    return result;
}

#else

json_t *topology_describe(void)
{
    return json_pack("{s:b}", "hwloc", 0);
}

#endif
