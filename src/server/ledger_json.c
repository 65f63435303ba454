/* ledger_json.c - books, pages and preparation as one JSON value: see ledger_json.h. */
#include "server/ledger_json.h"

#include <jansson.h>
#include <string.h>

#include "base/status.h"
#include "server/memory_snapshot.h"

/* What engine_page_map says; above are requests, too. */
enum { OWNER_NONE, OWNER_CACHE, OWNER_REQUEST, NUM_OWNERS };

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

/* What the map of the whole pool shows: the engine may have gone on since *stats was taken. */
static void count_pages(const unsigned char *owners, int32_t num, engine_stats *stats)
{
    int32_t num_of[NUM_OWNERS] = {0};
    for (int32_t i = 0; i < num; i++) {
        num_of[owners[i] < OWNER_REQUEST ? owners[i] : OWNER_REQUEST]++;
    }
    stats->pages_free = num_of[OWNER_NONE];
    stats->pages_cached = num_of[OWNER_CACHE];
    stats->pages_used = num_of[OWNER_REQUEST];
    int32_t unused = num_of[OWNER_NONE] + num_of[OWNER_CACHE];
    stats->pages_reserved = stats->pages_reserved < unused ? stats->pages_reserved : unused;
}

static json_t *pages_of(const ledger_view *self, engine_stats *stats,
                        const unsigned char *owners, int32_t num)
{
    const engine_limits *limits = engine_limits_of(self->engine);
    if (num == limits->num_pages) {
        count_pages(owners, num, stats);
    }
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
    enum { NS_A_US = 1000 };
    json_t *points = json_array();
    for (int32_t i = 0; i < told->num; i++) {
        add_pair(points, (uint64_t)(told->points[i].at_ns / NS_A_US),
                 told->points[i].session_bytes);
    }
    return json_pack("{s:o, s:o}", "peak", integer(told->peak_bytes), "points", points);
}

static json_t *limits_of(const engine *self)
{
    const engine_limits *limits = engine_limits_of(self);
    return json_pack("{s:i, s:I, s:I, s:b}", "requests", limits->max_requests, "context",
                     (json_int_t)limits->max_context_tokens, "default_max_tokens",
                     (json_int_t)limits->default_max_tokens, "has_chat",
                     engine_chat_of(self) != NULL);
}

static json_t *view_of(const ledger_view *self, const memory_snapshot *snapshot,
                       const unsigned char *owners, int32_t num)
{
    engine_stats stats;
    engine_stats_take(self->engine, &stats);
    json_t *root = memory_snapshot_json(snapshot);
    (void)json_object_set_new(root, "frozen",
                              json_boolean(atomic_load(&self->ledger->is_frozen)));
    (void)json_object_set_new(root, "limits", limits_of(self->engine));
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
