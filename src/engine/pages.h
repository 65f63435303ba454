/* pages.h - who holds each page of the KV pool, and what unused pages still remember.
 *
 * A page is used while at least one request refers to it. Unused pages stand in a line: the
 * next one to be given away is at its head. A page that was published under a key, which says
 * all tokens up to its end, is kept at the tail, so that a later prompt may find it; it is
 * forgotten when it is given away.
 *
 * A request reserves pages before it runs and takes them one by one: reserved <= unused always
 * holds, so a take never fails. */
#ifndef MLA_ENGINE_PAGES_H
#define MLA_ENGINE_PAGES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/carve.h"

enum {
    NO_PAGE = -1,
    PAGE_FREE = 0, /* what owner[] says */
    PAGE_CACHED = 1,
    PAGE_USED = 2, /* + place of the request, as far as a byte goes */
};

/* Of a page's tokens and all before them. */
typedef struct page_key {
    uint64_t low, high;
} page_key;

typedef struct page_pool {
    int32_t num_pages, num_unused, num_cached, num_reserved;
    int32_t num_buckets;          /* a power of two */
    int32_t oldest, newest;       /* ends of the line */
    int32_t *refs;                /* [num_pages] */
    int32_t *before, *after;      /* [num_pages] in the line */
    page_key *keys;               /* [num_pages] */
    bool *is_keyed;               /* [num_pages] */
    int32_t *bucket;              /* [num_buckets] first page of a key's chain */
    int32_t *chain;               /* [num_pages] the next one in its chain */
    _Atomic unsigned char *owner; /* [num_pages] for readers in other threads */
} page_pool;

/* Lays the arrays out in block (see carve.h); then, with memory, pages_begin. */
void pages_lay_out(page_pool *self, int32_t num_pages, carve *block);
void pages_begin(page_pool *self);

/* Promises num more pages, if that many unused ones are not promised yet. */
bool pages_reserve(page_pool *self, int32_t num);
void pages_unreserve(page_pool *self, int32_t num);

/* A page for the request in `place`, out of its reservation. */
int32_t pages_take(page_pool *self, int32_t place);
/* The page that was published under key and is still remembered, or NO_PAGE. */
int32_t pages_find(const page_pool *self, page_key key);
/* One more reference, instead of a page of the caller's reservation. */
void pages_share(page_pool *self, int32_t page, int32_t place);
/* Its rows are those of key from now on. A key that another page has stays with that one. */
void pages_publish(page_pool *self, int32_t page, page_key key);
/* One reference less. */
void pages_drop(page_pool *self, int32_t page);

/* The key of a page that holds tokens [num] after the pages of `before`. secret: of this
 * process, so that nobody can aim at another's pages. */
page_key page_key_after(page_key before, const int32_t *tokens, int32_t num,
                        uint64_t secret);

#endif
