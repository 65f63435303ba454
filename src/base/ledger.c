/* ledger.c - the books, the limit and the freeze: see ledger.h. */
#include "base/ledger.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/sized.h"

static const char *const purpose_names[MLA_NUM_PURPOSES] = {
    [MLA_FOR_CONTEXT] = "context",
    [MLA_FOR_SESSION] = "session",
    [MLA_FOR_PLAN] = "plan",
    [MLA_FOR_BINDING] = "binding",
    [MLA_FOR_GRAPH] = "graph",
    [MLA_FOR_COMM] = "comm",
    [MLA_FOR_WEIGHTS] = "weights",
    [MLA_FOR_KV] = "kv",
    [MLA_FOR_ACTIVATIONS] = "activations",
    [MLA_FOR_DRAFTER] = "drafter",
    [MLA_FOR_SERVER] = "server",
    [MLA_FOR_OTHER] = "other",
};

static const char *const space_names[MLA_NUM_SPACES] = {
    [MLA_SPACE_HOST] = "host",
    [MLA_SPACE_PINNED] = "pinned",
    [MLA_SPACE_DEVICE] = "device",
};

_Static_assert((int)MLA_NUM_PURPOSES <= MLA_REPORT_PURPOSES,
               "a report has a cell for each");
_Static_assert((int)MLA_NUM_SPACES <= MLA_REPORT_SPACES, "a report has a cell for each");

const char *mla_purpose_name(mla_purpose purpose)
{
    return (unsigned)purpose < MLA_NUM_PURPOSES ? purpose_names[purpose] : NULL;
}

const char *mla_space_name(mla_space space)
{
    return (unsigned)space < MLA_NUM_SPACES ? space_names[space] : NULL;
}

static void *libc_alloc(void *user, size_t bytes, size_t align_bytes, mla_space space,
                        mla_purpose purpose)
{
    (void)user;
    (void)purpose;
    void *data = NULL;
    size_t align = align_bytes < sizeof(void *) ? sizeof(void *) : align_bytes;
    if (space != MLA_SPACE_HOST || posix_memalign(&data, align, bytes) != 0) {
        return NULL;
    }
    return data;
}

static void libc_release(void *user, void *data, size_t bytes, mla_space space,
                         mla_purpose purpose)
{
    (void)user;
    (void)bytes;
    (void)space;
    (void)purpose;
    free(data);
}

mla_status mlai_ledger_init(mlai_ledger *ledger, const mla_allocator *allocator,
                            uint64_t limit_bytes, mla_error *err)
{
    memset(ledger, 0, sizeof *ledger);
    ledger->limit_bytes = limit_bytes;
    if (!allocator) {
        ledger->allocator.alloc = libc_alloc;
        ledger->allocator.release = libc_release;
        return MLA_OK;
    }
    mla_allocator copy;
    MLAI_TRY(MLAI_SIZED_READ(mla_allocator, release, allocator, &copy));
    MLAI_CHECK(copy.alloc && copy.release, MLA_ERR_ARGUMENT,
               "an allocator needs both alloc and release");
    ledger->allocator = copy;
    ledger->is_callers = true;
    return MLA_OK;
}

void mlai_ledger_set_source(mlai_ledger *ledger, mla_space space,
                            const mlai_ledger_source *source)
{
    ledger->source[space] = *source;
}

static const mlai_ledger_source *source_of(const mlai_ledger *ledger, mla_space space)
{
    const mlai_ledger_source *source = &ledger->source[space];
    return !ledger->is_callers && source->take ? source : NULL;
}

/* Reserves bytes under the space's limit before any memory is asked for, so that two
 * threads cannot pass the limit together. */
static bool reserve(mlai_ledger *ledger, mla_space space, uint64_t bytes)
{
    uint64_t now = atomic_load(&ledger->space_now_bytes[space]);
    uint64_t next;
    do {
        if (__builtin_add_overflow(now, bytes, &next) ||
            (ledger->limit_bytes != 0 && next > ledger->limit_bytes)) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&ledger->space_now_bytes[space], &now, next));
    return true;
}

static void enter(mlai_ledger_cell *cell, uint64_t bytes)
{
    uint64_t now = atomic_fetch_add(&cell->now_bytes, bytes) + bytes;
    uint64_t peak = atomic_load(&cell->peak_bytes);
    while (peak < now && !atomic_compare_exchange_weak(&cell->peak_bytes, &peak, now)) {
    }
    atomic_fetch_add(&cell->num_allocs, 1);
}

static void strike(mlai_ledger *ledger, mla_space space, mla_purpose purpose,
                   uint64_t bytes)
{
    /* The cell first: a cell that still counted what its space no longer does could be
     * seen, and its peak recorded, above the limit. */
    atomic_fetch_sub(&ledger->cell[space][purpose].now_bytes, bytes);
    atomic_fetch_sub(&ledger->space_now_bytes[space], bytes);
    atomic_fetch_add(&ledger->cell[space][purpose].num_frees, 1);
}

static mla_status check_cell(mla_space space, mla_purpose purpose, mla_error *err)
{
    MLAI_CHECK((unsigned)space < MLA_NUM_SPACES && (unsigned)purpose < MLA_NUM_PURPOSES,
               MLA_ERR_ARGUMENT, "space %d and purpose %d are not both of the ledger's",
               (int)space, (int)purpose);
    return MLA_OK;
}

static mla_status admit(mlai_ledger *ledger, mla_space space, mla_purpose purpose,
                        uint64_t bytes, const char *what, mla_error *err)
{
    MLAI_TRY(check_cell(space, purpose, err));
    MLAI_CHECK(!atomic_load(&ledger->is_frozen) || purpose == MLA_FOR_SERVER,
               MLA_ERR_FROZEN, "the context is frozen and %s needs %llu bytes (class %s)",
               what, (unsigned long long)bytes, purpose_names[purpose]);
    MLAI_CHECK(reserve(ledger, space, bytes), MLA_ERR_NO_MEMORY,
               "%s needs %llu bytes of %s memory, and %llu of the limit of %llu are taken",
               what, (unsigned long long)bytes, space_names[space],
               (unsigned long long)atomic_load(&ledger->space_now_bytes[space]),
               (unsigned long long)ledger->limit_bytes);
    return MLA_OK;
}

/* What a space's source says, with what it was asked for in front. */
static mla_status obtain_from(const mlai_ledger_source *source, size_t bytes,
                              size_t align_bytes, const char *what, void **data,
                              mla_error *err)
{
    mla_status status = source->take(source->user, bytes, align_bytes, data, err);
    if (status != MLA_OK) {
        mlai_error_prefix(err, "%zu bytes for %s", bytes, what);
    }
    return status;
}

/* An eighth parameter: the seven say what is entered in the books, the last is err. */
// NOLINTNEXTLINE(readability-function-size)
mla_status mlai_ledger_take(mlai_ledger *ledger, mla_space space, mla_purpose purpose,
                            size_t bytes, size_t align_bytes, const char *what, void **out,
                            mla_error *err)
{
    MLAI_CHECK(bytes > 0 && mlai_is_power_of_two(align_bytes), MLA_ERR_ARGUMENT,
               "%s: cannot allocate %zu bytes aligned to %zu", what, bytes, align_bytes);
    MLAI_TRY(admit(ledger, space, purpose, bytes, what, err));
    const mla_allocator *allocator = &ledger->allocator;
    const mlai_ledger_source *source = source_of(ledger, space);
    mla_status status = MLA_OK;
    void *data = NULL;
    if (source) {
        status = obtain_from(source, bytes, align_bytes, what, &data, err);
    } else {
        data = allocator->alloc(allocator->user, bytes, align_bytes, space, purpose);
        status = data ? MLA_OK
                      : MLAI_FAIL(MLA_ERR_NO_MEMORY,
                                  "out of memory: %zu bytes of %s memory for %s", bytes,
                                  space_names[space], what);
    }
    if (status != MLA_OK) {
        atomic_fetch_sub(&ledger->space_now_bytes[space], bytes);
        return status;
    }
    enter(&ledger->cell[space][purpose], bytes);
    *out = data;
    return MLA_OK;
}

mla_status mlai_ledger_take_zeroed(mlai_ledger *ledger, mla_purpose purpose, size_t num,
                                   size_t item_bytes, const char *what, void **out,
                                   mla_error *err)
{
    size_t bytes;
    MLAI_CHECK(mlai_size_mul(num, item_bytes, &bytes), MLA_ERR_NO_MEMORY,
               "%s: %zu items of %zu bytes are more than memory can be", what, num,
               item_bytes);
    MLAI_TRY(mlai_ledger_take(ledger, MLA_SPACE_HOST, purpose, bytes, 64, what, out, err));
    memset(*out, 0, bytes);
    return MLA_OK;
}

void mlai_ledger_give(mlai_ledger *ledger, mla_space space, mla_purpose purpose,
                      size_t bytes, void *data)
{
    if (!data) {
        return;
    }
    const mla_allocator *allocator = &ledger->allocator;
    const mlai_ledger_source *source = source_of(ledger, space);
    if (source) {
        source->give(source->user, data);
    } else {
        allocator->release(allocator->user, data, bytes, space, purpose);
    }
    strike(ledger, space, purpose, bytes);
}

/* Takes bytes out of the books if they are there, so that two threads cannot strike out
 * the same ones. */
static bool strike_booked(mlai_ledger *ledger, mla_space space, mla_purpose purpose,
                          uint64_t bytes)
{
    mlai_ledger_cell *cell = &ledger->cell[space][purpose];
    uint64_t now = atomic_load(&cell->now_bytes);
    do {
        if (bytes > now) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&cell->now_bytes, &now, now - bytes));
    atomic_fetch_sub(&ledger->space_now_bytes[space], bytes);
    atomic_fetch_add(&cell->num_frees, 1);
    return true;
}

mla_status mlai_ledger_book(mlai_ledger *ledger, mla_space space, mla_purpose purpose,
                            int64_t bytes, const char *what, mla_error *err)
{
    MLAI_CHECK(bytes != 0, MLA_ERR_ARGUMENT, "%s: cannot book 0 bytes", what);
    if (bytes < 0) {
        uint64_t size = UINT64_C(0) - (uint64_t)bytes; /* INT64_MIN has no negative */
        MLAI_TRY(check_cell(space, purpose, err));
        MLAI_CHECK(strike_booked(ledger, space, purpose, size), MLA_ERR_ARGUMENT,
                   "%s: cannot strike %llu bytes out of the %llu booked as %s", what,
                   (unsigned long long)size,
                   (unsigned long long)mlai_ledger_now(ledger, space, purpose),
                   purpose_names[purpose]);
        return MLA_OK;
    }
    MLAI_TRY(admit(ledger, space, purpose, (uint64_t)bytes, what, err));
    enter(&ledger->cell[space][purpose], (uint64_t)bytes);
    return MLA_OK;
}

void mlai_ledger_freeze(mlai_ledger *ledger)
{
    atomic_store(&ledger->is_frozen, true);
}

uint64_t mlai_ledger_now(const mlai_ledger *ledger, mla_space space, mla_purpose purpose)
{
    return atomic_load(&ledger->cell[space][purpose].now_bytes);
}

/* Other threads go on while the cell is read: its counters in an order in which none can be
 * ahead of the one that bounds it. */
static void add_cell(const mlai_ledger_cell *cell, mla_memory_cell *out)
{
    uint64_t num_frees = atomic_load(&cell->num_frees);
    uint64_t now_bytes = atomic_load(&cell->now_bytes);
    uint64_t peak_bytes = atomic_load(&cell->peak_bytes);
    out->num_frees += num_frees;
    out->num_allocs += atomic_load(&cell->num_allocs);
    out->now_bytes += now_bytes;
    out->peak_bytes += peak_bytes > now_bytes ? peak_bytes : now_bytes; /* not raised yet */
}

void mlai_ledger_report(const mlai_ledger *ledger, mla_memory_report *report)
{
    for (int space = 0; space < MLA_NUM_SPACES; space++) {
        for (int purpose = 0; purpose < MLA_NUM_PURPOSES; purpose++) {
            add_cell(&ledger->cell[space][purpose], &report->cell[space][purpose]);
        }
    }
}

typedef struct hook_label {
    _Alignas(16) size_t bytes; /* of label and block */
    mla_purpose purpose;
} hook_label;

void *mlai_ledger_hook_alloc(mlai_ledger *ledger, mla_purpose purpose, size_t bytes)
{
    void *data = NULL;
    size_t whole;
    mla_purpose class = atomic_load(&ledger->is_frozen) ? MLA_FOR_SERVER : purpose;
    if (!mlai_size_add(bytes, sizeof(hook_label), &whole) ||
        mlai_ledger_take(ledger, MLA_SPACE_HOST, class, whole, _Alignof(hook_label),
                         "a third-party library", &data, NULL) != MLA_OK ||
        !data) { /* data: for compilers that cannot see what MLA_OK promises */
        return NULL;
    }
    *(hook_label *)data = (hook_label){.bytes = whole, .purpose = class};
    return (hook_label *)data + 1;
}

void mlai_ledger_hook_free(mlai_ledger *ledger, void *data)
{
    if (data) {
        hook_label *label = (hook_label *)data - 1;
        mlai_ledger_give(ledger, MLA_SPACE_HOST, label->purpose, label->bytes, label);
    }
}
