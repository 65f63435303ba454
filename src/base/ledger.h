/* ledger.h - the only caller of an allocator. Every byte is booked under a space and a
 * purpose before it is handed out, and struck out when it comes back; limits and the
 * freeze are enforced here, so nothing can go round them. All functions are thread-safe. */
#ifndef MLA_BASE_LEDGER_H
#define MLA_BASE_LEDGER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/status.h"

typedef struct mlai_ledger_cell {
    _Atomic uint64_t now_bytes, peak_bytes, num_allocs, num_frees;
} mlai_ledger_cell;

/* Where the memory of a space comes from if the ledger's owner gave no allocator. take says
 * why it failed, so that a dead device is not called short of memory. */
typedef struct mlai_ledger_source {
    mla_status (*take)(void *user, size_t bytes, size_t align_bytes, void **out,
                       mla_error *err);
    void (*give)(void *user, void *data);
    void *user;
} mlai_ledger_source;

typedef struct mlai_ledger {
    mla_allocator allocator;
    bool is_callers; /* the allocator, which then serves every space */
    mlai_ledger_source source[MLA_NUM_SPACES];
    uint64_t limit_bytes; /* per space; 0: none */
    _Atomic uint64_t space_now_bytes[MLA_NUM_SPACES];
    atomic_bool is_frozen;
    mlai_ledger_cell cell[MLA_NUM_SPACES][MLA_NUM_PURPOSES];
} mlai_ledger;

/* allocator: read (copied); NULL: the C library's. limit_bytes per space, 0: none. */
mla_status mlai_ledger_init(mlai_ledger *ledger, const mla_allocator *allocator,
                            uint64_t limit_bytes, mla_error *err);

/* For what is not host memory. An allocator of the owner goes before it. Before the first
 * take in that space. */
void mlai_ledger_set_source(mlai_ledger *ledger, mla_space space,
                            const mlai_ledger_source *source);

/* align_bytes: a power of two. `what` says in errors what the memory was for:
 * "out of memory: 4096 bytes of host memory for the block table". The contents are
 * undefined. Errors: MLA_ERR_ARGUMENT, MLA_ERR_NO_MEMORY, MLA_ERR_FROZEN. */
mla_status mlai_ledger_take(mlai_ledger *ledger, mla_space space, mla_purpose purpose,
                            size_t bytes, size_t align_bytes, const char *what, void **out,
                            mla_error *err);

/* The same in host memory, zeroed. num * item_bytes is checked. */
mla_status mlai_ledger_take_zeroed(mlai_ledger *ledger, mla_purpose purpose, size_t num,
                                   size_t item_bytes, const char *what, void **out,
                                   mla_error *err);

/* data: consumed, NULL is allowed; bytes, space and purpose as they were taken. */
void mlai_ledger_give(mlai_ledger *ledger, mla_space space, mla_purpose purpose,
                      size_t bytes, void *data);

/* Books memory that this ledger did not hand out; bytes < 0 strikes it out, 0 is refused. */
mla_status mlai_ledger_book(mlai_ledger *ledger, mla_space space, mla_purpose purpose,
                            int64_t bytes, const char *what, mla_error *err);

void mlai_ledger_freeze(mlai_ledger *ledger);

uint64_t mlai_ledger_now(const mlai_ledger *ledger, mla_space space, mla_purpose purpose);

/* Adds what the ledger holds to the cells of a report of full size. */
void mlai_ledger_report(const mlai_ledger *ledger, mla_memory_report *report);

/* For libraries whose allocator hooks do not give sizes back: the size and the purpose
 * are kept in front of the block. Both are malloc-like: NULL on any failure, 0 bytes give
 * a block. After the freeze the purpose is always MLA_FOR_SERVER. */
void *mlai_ledger_hook_alloc(mlai_ledger *ledger, mla_purpose purpose, size_t bytes);
void mlai_ledger_hook_free(mlai_ledger *ledger, void *data);

#endif
