/* Bytes become calls of the public API in any order with any numbers in their structs: caps,
 * buffers, batches, appends and the caller's own memory, against an allocator that has little.
 * Nothing crashes, a refusal says why and leaves the out parameter alone, declaring asks for
 * no memory by a number of the caller's, an estimate is what preparing takes, and in the end
 * everything is given back. */
#include <stdbool.h>
#include <string.h>

#include "base/sized.h"
#include "check.h"
#include "mla/mla.h"
#include "support/rig.h"

enum {
    MOST_BLOCK_BYTES = 1 << 20,
    MOST_DECLARED_BYTES = 1 << 16, /* of the session's own books */
    ARENA_BYTES = 1 << 20,
    ARENA_ALIGN = 4096,
    NUM_PLANS = 4,
    MOST_TOKENS = 20000, /* a longer table is not run, for time */
};

typedef struct reader {
    const uint8_t *data;
    size_t num_bytes;
} reader;

static uint8_t next(reader *from)
{
    if (from->num_bytes == 0) {
        return 0;
    }
    from->num_bytes--;
    return *from->data++;
}

/* Mostly numbers at which something changes. */
static int64_t next_number(reader *from)
{
    static const int64_t edges[] = {0,
                                    1,
                                    2,
                                    3,
                                    15,
                                    16,
                                    17,
                                    63,
                                    64,
                                    128,
                                    512,
                                    576,
                                    1024,
                                    4096,
                                    65535,
                                    65536,
                                    65537,
                                    1 << 20,
                                    1 << 24,
                                    1 << 30,
                                    INT32_MAX,
                                    INT64_MAX,
                                    INT64_MIN,
                                    UINT32_MAX,
                                    INT32_MIN,
                                    INT64_C(1) << 32,
                                    INT64_C(1) << 40,
                                    (INT64_C(1) << 62) - 16,
                                    INT64_MAX - 15,
                                    -1,
                                    -16,
                                    0x3f800000,
                                    0x7fc00000,
                                    0x7f800000};
    enum { NUM = sizeof edges / sizeof *edges };
    uint8_t choice = next(from);
    return choice < NUM ? edges[choice] : choice < 2 * NUM ? next(from) : choice;
}

typedef struct world {
    mla_context *context;
    mla_session *session;
    mla_plan *plan[NUM_PLANS];
    mla_binding *binding;
    mla_buffers buffers; /* the binding's */
    bool may_run;        /* they are what they are said to be */
    mla_ticket last_ticket;
    unsigned char *arena; /* [ARENA_BYTES] */
    mla_error err;
} world;

static uint64_t largest_ask;

static void *stingy_alloc(void *user, size_t bytes, size_t align_bytes, mla_space space,
                          mla_purpose purpose)
{
    (void)user;
    (void)purpose;
    void *data = NULL;
    largest_ask = bytes > largest_ask ? bytes : largest_ask;
    size_t align = align_bytes < sizeof(void *) ? sizeof(void *) : align_bytes;
    FUZZ_CHECK(bytes > 0 && space == MLA_SPACE_HOST);
    return bytes <= MOST_BLOCK_BYTES && posix_memalign(&data, align, bytes) == 0 ? data
                                                                                 : NULL;
}

static void stingy_release(void *user, void *data, size_t bytes, mla_space space,
                           mla_purpose purpose)
{
    (void)user;
    (void)bytes;
    (void)space;
    (void)purpose;
    free(data);
}

/* Every status passes through here: a refusal has a sentence and is of its kind. */
static bool is_ok(world *w, mla_status status)
{
    if (status != MLA_OK) {
        FUZZ_CHECK(w->err.status == status && w->err.where && w->err.message[0] != '\0');
        FUZZ_CHECK(memchr(w->err.message, '\0', sizeof w->err.message));
        FUZZ_CHECK(status != MLA_ERR_INTERNAL);
    }
    memset(&w->err, 0, sizeof w->err);
    return status == MLA_OK;
}

/* A struct with room behind it: what a struct_size may claim is there. */
typedef union roomy {
    size_t struct_size;
    mla_caps caps;
    mla_buffers buffers;
    mla_batch batch;
    mla_append_args append;
    mla_memory_report report;
    mla_requirements requirements;
    unsigned char bytes[sizeof(mla_memory_report) + MLAI_SIZED_MAX_TAIL_BYTES + 64];
} roomy;

/* Some words of the struct become other numbers. */
static void disturb(reader *from, roomy *any, size_t struct_bytes)
{
    enum { MOST_CHANGES = 3 };
    int num = next(from) % (MOST_CHANGES + 1);
    for (int i = 0; i < num; i++) {
        size_t at = next(from) * sizeof(int32_t) % struct_bytes;
        int64_t value = next_number(from);
        size_t width = next(from) & 1 ? sizeof(int32_t) : sizeof(int64_t);
        memcpy(any->bytes + at, &value, width);
    }
    if (next(from) == 1) {
        any->bytes[struct_bytes + next(from)] = 1;
    }
}

static void do_add(world *w, reader *from)
{
    roomy any = {.bytes = {0}};
    any.caps = rig_caps();
    any.caps.table_width = 5; /* all arrays go into the arena */
    any.caps.max_context_tokens = 70;
    any.caps.num_pages = 20;
    any.caps.kv_format = (mla_kv_format)(1 + next(from) % 4);
    disturb(from, &any, sizeof any.caps);
    mla_ticket ticket = -7;
    largest_ask = 0;
    if (is_ok(w, mla_session_add(w->session, &any.caps, NULL, &ticket, &w->err))) {
        FUZZ_CHECK(ticket == w->last_ticket + 1);
        w->last_ticket = ticket;
    } else {
        FUZZ_CHECK(ticket == -7);
    }
    FUZZ_CHECK(largest_ask <= MOST_DECLARED_BYTES);
}

static mla_memory_report books_of(const world *w)
{
    mla_memory_report report = MLA_INIT(mla_memory_report);
    FUZZ_CHECK(mla_context_memory(w->context, &report, NULL) == MLA_OK);
    return report;
}

static void do_prepare(world *w)
{
    const int host = MLA_SPACE_HOST;
    mla_memory_report told = MLA_INIT(mla_memory_report);
    FUZZ_CHECK(mla_session_estimate(w->session, &told, NULL) == MLA_OK);
    mla_memory_report before = books_of(w);
    bool is_done = is_ok(w, mla_session_prepare(w->session, &w->err));
    mla_memory_report after = books_of(w);
    uint64_t stays = is_done ? told.cell[host][MLA_FOR_PLAN].now_bytes : 0;
    FUZZ_CHECK(after.cell[host][MLA_FOR_PLAN].now_bytes ==
               before.cell[host][MLA_FOR_PLAN].now_bytes + stays);
#ifndef MLA_RETAIN_PRIMING /* then it is for the lifetime tests to fail */
    FUZZ_CHECK(after.cell[host][MLA_FOR_SESSION].now_bytes == 0);
    uint64_t peak = told.cell[host][MLA_FOR_SESSION].peak_bytes;
    uint64_t earlier = before.cell[host][MLA_FOR_SESSION].peak_bytes;
    FUZZ_CHECK(after.cell[host][MLA_FOR_SESSION].peak_bytes <=
               (peak > earlier ? peak : earlier));
    FUZZ_CHECK(!is_done || after.cell[host][MLA_FOR_SESSION].peak_bytes >= peak);
#endif
}

static void do_publish(world *w, reader *from)
{
    mla_plan **to = &w->plan[next(from) % NUM_PLANS];
    mla_plan *plan = NULL;
    mla_ticket ticket = next(from) < 8 ? (mla_ticket)next_number(from) : w->last_ticket;
    if (is_ok(w, mla_session_publish(w->session, ticket, &plan, &w->err))) {
        mla_plan_release(to);
        *to = plan;
    }
    FUZZ_CHECK(ticket >= 0 || !plan);
}

/* Carves a buffer out of the arena; false where that is too small. */
static bool carve(const world *w, const mla_need *need, size_t *used, void **data,
                  size_t *bytes)
{
    enum { STEP = 64 };
    *data = w->arena + *used;
    *bytes = need->bytes;
    if (need->bytes > ARENA_BYTES - *used) {
        return false;
    }
    *used += (need->bytes + STEP - 1) / STEP * STEP;
    return *used <= ARENA_BYTES;
}

static bool carve_in(const world *w, const mla_need *need, size_t *used, mla_in *in)
{
    void *data;
    bool fits = carve(w, need, used, &data, &in->bytes);
    in->data = data;
    return fits;
}

static bool carve_out(const world *w, const mla_need *need, size_t *used, mla_out *out)
{
    return carve(w, need, used, &out->data, &out->bytes);
}

static bool carve_all(const world *w, const mla_requirements *need, mla_buffers *b)
{
    size_t used = 0;
    return carve_in(w, &need->kv_pool, &used, &b->kv_pool) &&
           carve_in(w, &need->query, &used, &b->query) &&
           carve_in(w, &need->block_table, &used, &b->block_table) &&
           carve_in(w, &need->context_lens, &used, &b->context_lens) &&
           carve_in(w, &need->query_starts, &used, &b->query_starts) &&
           carve_out(w, &need->output, &used, &b->output) &&
           carve_out(w, &need->lse, &used, &b->lse) &&
           carve_out(w, &need->workspace, &used, &b->workspace);
}

static void do_bind(world *w, reader *from)
{
    static float one[] = {1.0F, 1.0F};
    mla_plan *plan = w->plan[next(from) % NUM_PLANS];
    mla_requirements need = MLA_INIT(mla_requirements);
    roomy any = {.bytes = {0}};
    any.buffers = (mla_buffers)MLA_INIT(mla_buffers);
    bool fits = is_ok(w, mla_plan_requirements(plan, &need, &w->err)) &&
                carve_all(w, &need, &any.buffers);
    if (next(from) & 1) {
        any.buffers.kv_scale = (mla_in){&one[0], sizeof one[0]};
    }
    roomy told = any;
    disturb(from, &any, sizeof any.buffers);
    bool is_true = memcmp(told.bytes, any.bytes, sizeof any.bytes) == 0;
    mla_binding *binding = NULL;
    if (is_ok(w, mla_bind(plan, &any.buffers, &binding, &w->err))) {
        mla_unbind(&w->binding);
        w->binding = binding;
        w->buffers = any.buffers;
        w->may_run = fits && is_true &&
                     need.block_table.bytes / sizeof(int32_t) <= MOST_TOKENS &&
                     need.kv_pool.bytes < ARENA_BYTES;
    } else {
        FUZZ_CHECK(!binding);
    }
}

/* One row a request, of any length; the table and all else is what the arena holds. */
static void write_lengths(const world *w, reader *from)
{
    unsigned char *starts =
        w->arena + ((const unsigned char *)w->buffers.query_starts.data - w->arena);
    unsigned char *lens =
        w->arena + ((const unsigned char *)w->buffers.context_lens.data - w->arena);
    int32_t num = (int32_t)(w->buffers.context_lens.bytes / sizeof num);
    for (int32_t i = 0; i <= num; i++) {
        memcpy(starts + (size_t)i * sizeof i, &i, sizeof i);
    }
    for (int32_t i = 0; i < num && i < 4; i++) {
        int32_t length = (int32_t)next_number(from);
        memcpy(lens + (size_t)i * sizeof length, &length, sizeof length);
    }
}

static void do_run(world *w, reader *from)
{
    roomy any = {.bytes = {0}};
    any.batch = (mla_batch)MLA_INIT(mla_batch);
    any.batch.num_requests = next(from) % 4;
    any.batch.num_query_rows = any.batch.num_requests;
    if (w->binding && w->may_run && next(from) % 4) {
        write_lengths(w, from);
    }
    disturb(from, &any, sizeof any.batch);
    bool is_recorded = next(from) & 1;
    if (is_recorded) {
        (void)is_ok(w, mla_record(w->binding, &any.batch, &w->err));
    }
    if (w->may_run || !w->binding) {
        (void)is_ok(w, is_recorded
                           ? mla_replay(w->binding, (mla_stream){NULL}, &w->err)
                           : mla_run(w->binding, &any.batch, (mla_stream){NULL}, &w->err));
    }
    (void)is_ok(w, mla_poll(w->binding, &w->err));
}

/* Truthful sizes, any slots. */
static void do_append(world *w, reader *from)
{
    const size_t slots_at = 512; /* in the arena */
    const size_t rows_bytes = (size_t)64 << 10;
    const size_t pool_at = 4 * slots_at + rows_bytes;
    const mla_plan *plan = w->plan[next(from) % NUM_PLANS];
    roomy any = {.bytes = {0}};
    int64_t slots[] = {next_number(from), next_number(from), next_number(from)};
    memcpy(w->arena + slots_at, slots, sizeof slots);
    any.append = (mla_append_args)MLA_INIT(mla_append_args);
    any.append.slots = (mla_in){w->arena + slots_at, sizeof slots};
    any.append.rows = (mla_in){w->arena + 2 * slots_at, rows_bytes};
    any.append.kv_pool = (mla_out){w->arena + pool_at, ARENA_BYTES - pool_at};
    any.append.rows_dtype = MLA_F32;
    any.append.num_rows = next(from) % 4;
    any.append.num_rows = next(from) < 8 ? next_number(from) : any.append.num_rows;
    any.append.rows_dtype = (mla_dtype)(next(from) % 4);
    any.append.reserved = next(from) == 9;
    any.append.struct_size = next(from) == 9 ? (size_t)next_number(from) % sizeof any.bytes
                                             : any.append.struct_size;
    (void)is_ok(w, mla_append(plan, &any.append, (mla_stream){NULL}, &w->err));
}

static void do_memory(world *w, reader *from)
{
    void *data = NULL;
    mla_space space = (mla_space)(next(from) % 8 == 7 ? next_number(from) : 0);
    mla_purpose purpose = (mla_purpose)(next(from) % 16);
    int64_t bytes = next_number(from);
    if (is_ok(w, mla_memory_take(w->context, space, purpose, (size_t)bytes,
                                 (size_t)next_number(from), &data, &w->err))) {
        memset(data, 1, (size_t)bytes);
        mla_memory_give(w->context, space, purpose, (size_t)bytes, data);
    } else {
        FUZZ_CHECK(!data);
    }
    if (is_ok(w, mla_memory_book(w->context, space, purpose, bytes, &w->err))) {
        FUZZ_CHECK(bytes > 0); /* nothing is booked that could be struck out */
        FUZZ_CHECK(is_ok(w, mla_memory_book(w->context, space, purpose, -bytes, &w->err)));
    }
}

static void do_ask(world *w, reader *from)
{
    roomy any = {.bytes = {0}};
    char text[8];
    mla_plan *plan = w->plan[next(from) % NUM_PLANS];
    any.struct_size = (size_t)next_number(from);
    if (any.struct_size <= sizeof any.bytes || any.struct_size > sizeof any.bytes + 4096) {
        any.bytes[next(from) + 64] = next(from) & 1;
        (void)is_ok(w, mla_context_memory(w->context, &any.report, &w->err));
        (void)is_ok(w, mla_session_estimate(w->session, &any.report, &w->err));
        (void)is_ok(w, mla_plan_requirements(plan, &any.requirements, &w->err));
    }
    mla_plan_describe(plan, text, next(from) % sizeof text, NULL);
}

static void do_session(world *w, reader *from)
{
    if (next(from) & 1) {
        mla_session_close(&w->session);
        w->last_ticket = -1;
    }
    if (!w->session && next(from) & 1) {
        (void)is_ok(w, mla_session_open(w->context, NULL, &w->session, &w->err));
    }
    if (next(from) == 1) {
        (void)is_ok(w, mla_context_freeze(w->context, &w->err));
    }
}

static void do_release(world *w, reader *from)
{
    mla_plan **plan = &w->plan[next(from) % NUM_PLANS];
    if (next(from) & 1) {
        mla_plan *again = mla_plan_retain(*plan);
        mla_plan_release(&again);
    }
    mla_plan_release(plan);
    if (next(from) & 1) {
        mla_unbind(&w->binding);
    }
}

static void call(world *w, reader *from)
{
    enum { NUM_CALLS = 12 };
    switch (next(from) % NUM_CALLS) {
    case 0:
    case 1:
        do_add(w, from);
        break;
    case 2:
        if (w->session) {
            do_prepare(w);
        }
        break;
    case 3:
        do_publish(w, from);
        break;
    case 4:
        do_bind(w, from);
        break;
    case 5:
        do_run(w, from);
        break;
    case 6:
        do_append(w, from);
        break;
    case 7:
        do_memory(w, from);
        break;
    case 8:
        do_ask(w, from);
        break;
    case 9:
        do_session(w, from);
        break;
    case 10:
        do_release(w, from);
        break;
    default:
        mla_session_cancel(w->session);
    }
}

static void close_world(world *w)
{
    mla_session_close(&w->session);
    mla_unbind(&w->binding);
    for (int i = 0; i < NUM_PLANS; i++) {
        mla_plan_release(&w->plan[i]);
    }
    FUZZ_CHECK(is_ok(w, mla_context_destroy(&w->context, &w->err)));
    free(w->arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t num_bytes)
{
    reader from = {data, num_bytes};
    world w = {.last_ticket = -1};
    mla_allocator allocator = MLA_INIT(mla_allocator);
    allocator.alloc = stingy_alloc;
    allocator.release = stingy_release;
    w.arena = aligned_alloc(ARENA_ALIGN, ARENA_BYTES);
    FUZZ_CHECK(w.arena);
    memset(w.arena, next(&from), ARENA_BYTES);
    w.context = rig_context(1, &allocator);
    FUZZ_CHECK(is_ok(&w, mla_session_open(w.context, NULL, &w.session, &w.err)));
    while (from.num_bytes > 0) {
        call(&w, &from);
    }
    close_world(&w);
    return 0;
}
