/* pages.c - the page pool: see pages.h. */
#include "engine/pages.h"

#include <assert.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { MAX_OWNER = 255 };

static int32_t buckets_for(int32_t num_pages)
{
    int32_t num = 1;
    while (num < num_pages && num < INT32_MAX / 2) {
        num *= 2;
    }
    return num;
}

void pages_lay_out(page_pool *self, int32_t num_pages, carve *block)
{
    size_t num = (size_t)num_pages;
    self->num_pages = num_pages;
    self->num_buckets = buckets_for(num_pages);
    self->refs = carve_take(block, num, sizeof *self->refs);
    self->before = carve_take(block, num, sizeof *self->before);
    self->after = carve_take(block, num, sizeof *self->after);
    self->keys = carve_take(block, num, sizeof *self->keys);
    self->is_keyed = carve_take(block, num, sizeof *self->is_keyed);
    self->bucket = carve_take(block, (size_t)self->num_buckets, sizeof *self->bucket);
    self->chain = carve_take(block, num, sizeof *self->chain);
    self->owner = carve_take(block, num, sizeof *self->owner);
}

static void set_owner(page_pool *self, int32_t page, int32_t owner)
{
    unsigned char byte = (unsigned char)(owner < MAX_OWNER ? owner : MAX_OWNER);
    atomic_store_explicit(&self->owner[page], byte, memory_order_relaxed);
}

/* --- the line of unused pages */

static void line_insert(page_pool *self, int32_t page, int32_t before, int32_t after)
{
    self->before[page] = before;
    self->after[page] = after;
    *(before == NO_PAGE ? &self->oldest : &self->after[before]) = page;
    *(after == NO_PAGE ? &self->newest : &self->before[after]) = page;
    self->num_unused++;
    self->num_cached += self->is_keyed[page];
    set_owner(self, page, self->is_keyed[page] ? PAGE_CACHED : PAGE_FREE);
}

static void line_remove(page_pool *self, int32_t page)
{
    int32_t before = self->before[page];
    int32_t after = self->after[page];
    *(before == NO_PAGE ? &self->oldest : &self->after[before]) = after;
    *(after == NO_PAGE ? &self->newest : &self->before[after]) = before;
    self->num_unused--;
    self->num_cached -= self->is_keyed[page];
}

void pages_begin(page_pool *self)
{
    self->num_unused = 0;
    self->num_cached = 0;
    self->num_reserved = 0;
    self->oldest = NO_PAGE;
    self->newest = NO_PAGE;
    for (int32_t i = 0; i < self->num_buckets; i++) {
        self->bucket[i] = NO_PAGE;
    }
    for (int32_t i = 0; i < self->num_pages; i++) {
        self->refs[i] = 0;
        self->is_keyed[i] = false;
        line_insert(self, i, self->newest, NO_PAGE);
    }
}

/* --- keys */

static int32_t *bucket_of(const page_pool *self, page_key key)
{
    return &self->bucket[key.low & (uint64_t)(self->num_buckets - 1)];
}

static bool is_same(page_key a, page_key b)
{
    return a.low == b.low && a.high == b.high;
}

int32_t pages_find(const page_pool *self, page_key key)
{
    int32_t page = *bucket_of(self, key);
    while (page != NO_PAGE && !is_same(self->keys[page], key)) {
        page = self->chain[page];
    }
    return page;
}

void pages_publish(page_pool *self, int32_t page, page_key key)
{
    assert(self->refs[page] > 0 && !self->is_keyed[page]);
    if (pages_find(self, key) != NO_PAGE) {
        return;
    }
    int32_t *first = bucket_of(self, key);
    self->keys[page] = key;
    self->is_keyed[page] = true;
    self->chain[page] = *first;
    *first = page;
}

static void forget(page_pool *self, int32_t page)
{
    int32_t *link = bucket_of(self, self->keys[page]);
    while (*link != page) {
        link = &self->chain[*link];
    }
    *link = self->chain[page];
    self->is_keyed[page] = false;
}

page_key page_key_after(page_key before, const int32_t *tokens, int32_t num,
                        uint64_t secret)
{
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    (void)XXH3_128bits_reset_withSeed(&state, secret);
    (void)XXH3_128bits_update(&state, &before, sizeof before);
    (void)XXH3_128bits_update(&state, tokens, (size_t)num * sizeof *tokens);
    XXH128_hash_t hash = XXH3_128bits_digest(&state);
    return (page_key){hash.low64, hash.high64};
}

/* --- reservations and references */

bool pages_reserve(page_pool *self, int32_t num)
{
    if (num > self->num_unused - self->num_reserved) {
        return false;
    }
    self->num_reserved += num;
    return true;
}

void pages_unreserve(page_pool *self, int32_t num)
{
    assert(num <= self->num_reserved);
    self->num_reserved -= num;
}

int32_t pages_take(page_pool *self, int32_t place)
{
    int32_t page = self->oldest;
    assert(self->num_reserved > 0 && page != NO_PAGE);
    line_remove(self, page);
    if (self->is_keyed[page]) {
        forget(self, page);
    }
    self->refs[page] = 1;
    self->num_reserved--;
    set_owner(self, page, PAGE_USED + place);
    return page;
}

void pages_share(page_pool *self, int32_t page, int32_t place)
{
    assert(self->num_reserved > 0);
    self->num_reserved--;
    if (self->refs[page]++ == 0) {
        line_remove(self, page);
        set_owner(self, page, PAGE_USED + place);
    }
}

void pages_drop(page_pool *self, int32_t page)
{
    assert(self->refs[page] > 0);
    if (--self->refs[page] > 0) {
        return;
    }
    if (self->is_keyed[page]) {
        line_insert(self, page, self->newest, NO_PAGE);
    } else {
        line_insert(self, page, NO_PAGE, self->oldest);
    }
}
