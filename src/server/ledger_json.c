/* ledger_json.c - books, pages and preparation as one JSON value: see ledger_json.h. */
#include "server/ledger_json.h"

#include <jansson.h>
#include <string.h>

#include "base/status.h"
#include "server/memory_snapshot.h"

static json_t *integer(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static void add_pair(json_t *array, uint64_t first, uint64_t second)
{
    json_t *pair = json_array();
    (void)json_array_append_new(pair, integer(first));
    (void)json_array_append_new(pair, integer(second));
    (void)json_array_append_new(array, pair);
}

static json_t *map_of(const unsigned char *owners, int32_t num)
{
    json_t *map = json_array();
    for (int32_t begin = 0, end = 0; begin < num; begin = end) {
        for (end = begin; end < num && owners[end] == owners[begin]; end++) {
        }
        add_pair(map, owners[begin], (uint64_t)(end - begin));
    }
    return map;
}

static json_t *pages_of(const ledger_view *self, const engine_stats *stats,
                        const unsigned char *owners, int32_t num)
{
    const engine_limits *limits = engine_limits_of(self->engine);
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "num",
                     integer((uint64_t)limits->num_pages), "tokens",
                     integer((uint64_t)limits->page_tokens), "bytes",
                     integer(limits->page_bytes), "used",
                     integer((uint64_t)stats->pages_used), "cached",
                     integer((uint64_t)stats->pages_cached), "free",
                     integer((uint64_t)stats->pages_free), "reserved",
                     integer((uint64_t)stats->pages_reserved), "map", map_of(owners, num));
}

static json_t *preparation_of(const timeline *told)
{
    enum { NS_A_MS = 1000000 };
    json_t *points = json_array();
    for (int32_t i = 0; i < told->num; i++) {
        add_pair(points, (uint64_t)(told->points[i].at_ns / NS_A_MS),
                 told->points[i].session_bytes);
    }
    return json_pack("{s:o, s:o}", "peak", integer(told->peak_bytes), "points", points);
}

static json_t *view_of(const ledger_view *self, const memory_snapshot *snapshot,
                       const unsigned char *owners, int32_t num)
{
    engine_stats stats;
    engine_stats_take(self->engine, &stats);
    json_t *root = memory_snapshot_json(snapshot);
    (void)json_object_set_new(root, "requests",
                              json_pack("{s:i, s:i}", "running", stats.num_running,
                                        "waiting", stats.num_waiting));
    (void)json_object_set_new(root, "pages", pages_of(self, &stats, owners, num));
    if (self->preparation) {
        (void)json_object_set_new(root, "preparation", preparation_of(self->preparation));
    }
    return root;
}

static int append(const char *data, size_t bytes, void *user)
{
    byte_buffer *out = user;
    if (byte_buffer_reserve(out, bytes, NULL) != MLA_OK) {
        return -1;
    }
    if (bytes > 0) {
        memcpy(out->data + out->num, data, bytes);
    }
    out->num += bytes;
    return 0;
}

static mla_status write_json(const ledger_view *self, const memory_snapshot *snapshot,
                             const unsigned char *owners, int32_t num, byte_buffer *out,
                             mla_error *err)
{
    json_scope before = json_scope_enter(self->ledger, MLA_FOR_SERVER);
    json_t *root = view_of(self, snapshot, owners, num);
    bool is_written = root && json_dump_callback(root, append, out, JSON_COMPACT) == 0;
    json_decref(root);
    bool has_failed = json_scope_has_failed();
    json_scope_leave(before);
    MLAI_CHECK(is_written && !has_failed, MLA_ERR_NO_MEMORY,
               "the memory for the ledger's JSON is out");
    return MLA_OK;
}

mla_status ledger_view_write(const ledger_view *self, byte_buffer *out, mla_error *err)
{
    memory_snapshot snapshot;
    void *owners = NULL;
    int32_t num = engine_limits_of(self->engine)->num_pages;
    num = num < LEDGER_MAX_MAP_PAGES ? num : LEDGER_MAX_MAP_PAGES;
    MLAI_TRY(memory_snapshot_take(self->context, self->phase, NULL, &snapshot, err));
    MLAI_TRY(mla_memory_take(self->context, MLA_SPACE_HOST, MLA_FOR_SERVER, (size_t)num, 1,
                             &owners, err));
    engine_page_map(self->engine, owners, num);
    mla_status status = write_json(self, &snapshot, owners, num, out, err);
    mla_memory_give(self->context, MLA_SPACE_HOST, MLA_FOR_SERVER, (size_t)num, owners);
    return status;
}
