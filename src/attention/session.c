/* session.c - opening, declaring, estimating, publishing, closing. The job itself is in
 * prepare.c. */
#include "attention/session.h"

#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "base/sized.h"
#include "device/cpu.h"

static mla_status check_options(const mla_session_options *options, mla_error *err)
{
    MLAI_CHECK(options->compile_workers >= 0, MLA_ERR_ARGUMENT,
               "compile_workers is %d, and there cannot be fewer than 0",
               options->compile_workers);
    MLAI_CHECK(options->reserved == 0, MLA_ERR_ARGUMENT, "reserved is %d, not 0",
               options->reserved);
    return MLA_OK;
}

/* Under context->gate, so that no session opens while the freeze looks. */
static mla_status open_behind_gate(mla_context *context, mla_session **out, mla_error *err)
{
    MLAI_CHECK(!mlai_context_is_frozen(context), MLA_ERR_FROZEN,
               "the context is frozen, and a session on %s would compile and allocate",
               context->ops->name(context));
    MLAI_TRY(mlai_ledger_take_zeroed(&context->ledger, MLA_FOR_CONTEXT, 1, sizeof **out,
                                     "a session", (void **)out, err));
    context->num_sessions++;
    atomic_fetch_add(&context->num_children, 1);
    return MLA_OK;
}

static int32_t workers_of(int32_t wanted)
{
    enum { MOST = 8 };
    int32_t num = wanted > 0 ? wanted : mlai_cpu_count();
    return num < MOST ? num : MOST;
}

static mla_status copy_text(mla_session *session, const char *text, char **out,
                            mla_error *err)
{
    if (text) {
        size_t bytes = strlen(text) + 1;
        MLAI_TRY(mlai_ledger_take(&session->context->ledger, MLA_SPACE_HOST,
                                  MLA_FOR_CONTEXT, bytes, 1, "a session's path",
                                  (void **)out, err));
        memcpy(*out, text, bytes);
    }
    return MLA_OK;
}

static void give_text(mla_session *session, char *text)
{
    if (text) {
        mlai_ledger_give(&session->context->ledger, MLA_SPACE_HOST, MLA_FOR_CONTEXT,
                         strlen(text) + 1, text);
    }
}

mla_status mla_session_open(mla_context *context, const mla_session_options *options,
                            mla_session **out, mla_error *err)
{
    mla_session_options full = MLA_INIT(mla_session_options);
    mla_session *session = NULL;
    MLAI_CHECK(context && out, MLA_ERR_ARGUMENT, "context or out is NULL");
    if (options) {
        MLAI_TRY(MLAI_SIZED_READ(mla_session_options, struct_size, options, &full));
    }
    MLAI_TRY(check_options(&full, err));
    pthread_mutex_lock(&context->gate);
    mla_status status = open_behind_gate(context, &session, err);
    pthread_mutex_unlock(&context->gate);
    MLAI_TRY(status);
    assert(session);
    session->context = context;
    session->on_progress = full.progress;
    session->progress_user = full.progress_user;
    session->num_compile_workers = workers_of(full.compile_workers);
    status = copy_text(session, full.cache_dir, &session->cache_dir, err);
    if (status == MLA_OK) {
        status = copy_text(session, full.nvrtc_path, &session->nvrtc_path, err);
    }
    if (status != MLA_OK) {
        mla_session_close(&session);
        return status;
    }
    *out = session;
    return MLA_OK;
}

/* Makes room for one more item. The session's own books are class context: they live as long
 * as it does, and `session` is for what does not outlive prepare. */
static mla_status make_room(mla_session *session, void **items, int32_t num, int32_t *room,
                            size_t item_bytes, mla_error *err)
{
    enum { FIRST_ROOM = 4 };
    if (num < *room) {
        return MLA_OK;
    }
    mlai_ledger *ledger = &session->context->ledger;
    void *grown;
    MLAI_CHECK(*room <= INT32_MAX / 2, MLA_ERR_NO_MEMORY,
               "%d requests are all that a session holds", *room);
    int32_t grown_room = *room == 0 ? FIRST_ROOM : 2 * *room;
    MLAI_TRY(mlai_ledger_take_zeroed(ledger, MLA_FOR_CONTEXT, (size_t)grown_room,
                                     item_bytes, "a session's requests", &grown, err));
    if (*items) {
        memcpy(grown, *items, (size_t)num * item_bytes);
        mlai_ledger_give(ledger, MLA_SPACE_HOST, MLA_FOR_CONTEXT,
                         (size_t)*room * item_bytes, *items);
    }
    *items = grown;
    *room = grown_room;
    return MLA_OK;
}

/* Caps have no padding, and equal requests have equal defaults filled in. */
static int32_t find_entry(const mla_session *session, const mla_caps *caps)
{
    for (int32_t i = 0; i < session->num_entries; i++) {
        // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): the scale is > 0, never NaN
        if (memcmp(&session->entry[i].geometry.caps, caps, sizeof *caps) == 0) {
            return i;
        }
    }
    return -1;
}

mla_status mla_session_add(mla_session *session, const mla_caps *caps, mla_comm *comm,
                           mla_ticket *out, mla_error *err)
{
    mla_caps full;
    mlai_entry entry = {.workspace_bytes = 0};
    MLAI_CHECK(session && out, MLA_ERR_ARGUMENT, "session or out is NULL");
    MLAI_CHECK(!comm, MLA_ERR_UNSUPPORTED, "this build has no context-parallel groups");
    MLAI_TRY(MLAI_SIZED_READ(mla_caps, num_pages, caps, &full));
    MLAI_TRY(mlai_geometry_of(&full, &entry.geometry, err));
    MLAI_TRY(session->context->ops->choose(session->context, &entry.geometry,
                                           &entry.workspace_bytes, err));
    MLAI_TRY(make_room(session, (void **)&session->ticket, session->num_tickets,
                       &session->ticket_room, sizeof *session->ticket, err));
    int32_t index = find_entry(session, &entry.geometry.caps);
    if (index < 0) {
        MLAI_TRY(make_room(session, (void **)&session->entry, session->num_entries,
                           &session->entry_room, sizeof *session->entry, err));
        index = session->num_entries++;
        session->entry[index] = entry;
    }
    session->ticket[session->num_tickets] = index;
    *out = session->num_tickets++;
    return MLA_OK;
}

static void add_need(mla_memory_report *report, const mla_need *need)
{
    uint64_t *sum = &report->caller_bytes[need->space];
    *sum = mlai_size_sum(*sum, need->bytes);
}

static void add_caller(mla_memory_report *report, const mlai_entry *entry, mla_space space)
{
    mla_requirements need;
    mlai_geometry_requirements(&entry->geometry, space, &need);
    add_need(report, &need.kv_pool);
    add_need(report, &need.query);
    add_need(report, &need.output);
    add_need(report, &need.lse);
    add_need(report, &need.block_table);
    add_need(report, &need.context_lens);
    add_need(report, &need.query_starts);
    need.workspace = (mla_need){entry->workspace_bytes, 1, space};
    add_need(report, &need.workspace);
}

/* Artefacts all live until their plan is loaded; operands live one plan at a time. The n-th
 * prime holds the artefacts of plans n, n + 1, ...: the peak is the largest of those sums. */
static void add_transients(const mla_session *session, mla_memory_report *report)
{
    mla_context *context = session->context;
    mla_memory_cell *host = &report->cell[MLA_SPACE_HOST][MLA_FOR_SESSION];
    mla_space space = context->ops->space;
    mla_memory_cell *operands = &report->cell[space][MLA_FOR_SESSION];
    uint64_t artefacts = 0;
    uint64_t peak = 0;
    for (int32_t i = session->num_entries - 1; i >= 0; i--) {
        const mlai_entry *entry = &session->entry[i];
        if (entry->plan) {
            continue;
        }
        uint64_t bytes = mlai_operands_bytes(&entry->geometry, entry->workspace_bytes);
        bytes = mlai_size_sum(bytes, space == MLA_SPACE_HOST ? artefacts : 0);
        peak = bytes > peak ? bytes : peak;
        artefacts += context->ops->footprint(context, &entry->geometry).artefact_bytes;
    }
    host->peak_bytes = artefacts;
    operands->peak_bytes = peak > operands->peak_bytes ? peak : operands->peak_bytes;
}

mla_status mla_session_estimate(const mla_session *session, mla_memory_report *report,
                                mla_error *err)
{
    mla_memory_report full = MLA_INIT(mla_memory_report);
    MLAI_CHECK(session, MLA_ERR_ARGUMENT, "session is NULL");
    MLAI_TRY(MLAI_SIZED_CHECK_OUT(mla_memory_report, report));
    mla_context *context = session->context;
    mla_space space = context->ops->space;
    for (int32_t i = 0; i < session->num_entries; i++) {
        const mlai_entry *entry = &session->entry[i];
        if (entry->plan) {
            continue;
        }
        mlai_footprint footprint = context->ops->footprint(context, &entry->geometry);
        full.cell[MLA_SPACE_HOST][MLA_FOR_PLAN].now_bytes +=
            sizeof(mla_plan) + footprint.launcher_bytes;
        full.cell[space][MLA_FOR_PLAN].now_bytes += footprint.module_bytes;
        add_caller(&full, entry, space);
    }
    for (int s = 0; s < MLA_NUM_SPACES; s++) {
        full.cell[s][MLA_FOR_PLAN].peak_bytes = full.cell[s][MLA_FOR_PLAN].now_bytes;
    }
    add_transients(session, &full);
    MLAI_SIZED_FILL(mla_memory_report, report, &full);
    return MLA_OK;
}

void mla_session_cancel(mla_session *session)
{
    if (session) {
        atomic_store(&session->is_cancelled, true);
    }
}

mla_status mla_session_publish(mla_session *session, mla_ticket ticket, mla_plan **out,
                               mla_error *err)
{
    MLAI_CHECK(session && out, MLA_ERR_ARGUMENT, "session or out is NULL");
    MLAI_CHECK(ticket >= 0 && ticket < session->num_tickets, MLA_ERR_ARGUMENT,
               "ticket is %d, and the session gave out %d", ticket, session->num_tickets);
    mlai_entry *entry = &session->entry[session->ticket[ticket]];
    MLAI_CHECK(entry->plan, MLA_ERR_STATE, "ticket %d has not been prepared", ticket);
    *out = mla_plan_retain(entry->plan);
    return MLA_OK;
}

void mla_session_close(mla_session **session_in)
{
    if (!session_in || !*session_in) {
        return;
    }
    mla_session *session = *session_in;
    mla_context *context = session->context;
    for (int32_t i = session->num_entries - 1; i >= 0; i--) {
        mla_plan_release(&session->entry[i].plan);
    }
#ifdef MLA_RETAIN_PRIMING
    mlai_operands_give(context, &session->kept);
#endif
    give_text(session, session->cache_dir);
    give_text(session, session->nvrtc_path);
    mlai_ledger_give(&context->ledger, MLA_SPACE_HOST, MLA_FOR_CONTEXT,
                     (size_t)session->entry_room * sizeof *session->entry, session->entry);
    mlai_ledger_give(&context->ledger, MLA_SPACE_HOST, MLA_FOR_CONTEXT,
                     (size_t)session->ticket_room * sizeof *session->ticket,
                     session->ticket);
    mlai_ledger_give(&context->ledger, MLA_SPACE_HOST, MLA_FOR_CONTEXT, sizeof *session,
                     session);
    *session_in = NULL;
    pthread_mutex_lock(&context->gate);
    context->num_sessions--;
    pthread_mutex_unlock(&context->gate);
    atomic_fetch_sub(&context->num_children, 1);
}

void mlai_session_set_hook(mla_session *session, mlai_step_hook hook, void *user)
{
    session->hook = hook;
    session->hook_user = user;
}
