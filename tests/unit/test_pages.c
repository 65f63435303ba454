/* The page pool against a naive one: whatever is taken, shared, published and dropped, every
 * page is in one place, what is reserved can be taken, and what is found is what was published
 * last and not given away since. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/pages.h"
#include "support/random.h"

enum { MAX_PAGES = 40, HOLDERS = 6, STEPS = 20000 };

typedef struct holder {
    int32_t pages[MAX_PAGES], num, reserved;
} holder;

typedef struct world {
    page_pool pool;
    void *memory;
    holder holders[HOLDERS];
    int32_t refs[MAX_PAGES];
    uint64_t key_of[MAX_PAGES]; /* 0: none */
    uint64_t next_key;
} world;

static void open_world(world *self, int32_t num_pages)
{
    carve count = {0};
    *self = (world){.next_key = 1};
    pages_lay_out(&self->pool, num_pages, &count);
    assert_int_equal(posix_memalign(&self->memory, CARVE_ALIGN_BYTES, count.used_bytes), 0);
    carve deal = {.base = self->memory};
    pages_lay_out(&self->pool, num_pages, &deal);
    pages_begin(&self->pool);
}

static page_key key_of(uint64_t number)
{
    return (page_key){number * 64, number}; /* all in a few chains */
}

static void take(world *self, holder *by, int32_t place)
{
    int32_t page = pages_take(&self->pool, place);
    assert_in_range(page, 0, self->pool.num_pages - 1);
    assert_int_equal(self->refs[page], 0);
    assert_int_equal(self->pool.owner[page], PAGE_USED + place);
    self->refs[page] = 1;
    self->key_of[page] = 0;
    by->pages[by->num++] = page;
    by->reserved--;
}

static void share(world *self, holder *by, int32_t place, rng *random)
{
    int32_t wanted = (int32_t)rng_between(random, 0, self->pool.num_pages - 1);
    if (self->key_of[wanted] == 0) {
        assert_int_equal(pages_find(&self->pool, key_of(self->next_key)), NO_PAGE);
        return;
    }
    assert_int_equal(pages_find(&self->pool, key_of(self->key_of[wanted])), wanted);
    pages_share(&self->pool, wanted, place);
    self->refs[wanted]++;
    by->pages[by->num++] = wanted;
    by->reserved--;
}

static void publish(world *self, const holder *by)
{
    int32_t page = by->pages[by->num - 1];
    if (self->key_of[page] == 0) {
        self->key_of[page] = self->next_key++;
        pages_publish(&self->pool, page, key_of(self->key_of[page]));
    }
}

static void drop_all(world *self, holder *by)
{
    pages_unreserve(&self->pool, by->reserved);
    by->reserved = 0;
    while (by->num > 0) {
        int32_t page = by->pages[--by->num];
        self->refs[page]--;
        pages_drop(&self->pool, page);
    }
}

static void check(const world *self)
{
    int32_t unused = 0;
    int32_t cached = 0;
    int32_t reserved = 0;
    for (int32_t i = 0; i < self->pool.num_pages; i++) {
        assert_int_equal(self->pool.refs[i], self->refs[i]);
        unused += self->refs[i] == 0;
        cached += self->refs[i] == 0 && self->key_of[i] != 0;
        assert_int_equal(self->pool.owner[i] >= PAGE_USED, self->refs[i] > 0);
    }
    for (int32_t i = 0; i < HOLDERS; i++) {
        reserved += self->holders[i].reserved;
    }
    assert_int_equal(self->pool.num_unused, unused);
    assert_int_equal(self->pool.num_cached, cached);
    assert_int_equal(self->pool.num_reserved, reserved);
    assert_true(reserved <= unused);
}

static void act(world *self, rng *random)
{
    int32_t place = (int32_t)rng_between(random, 0, HOLDERS - 1);
    holder *by = &self->holders[place];
    int32_t most = MAX_PAGES - by->num - by->reserved;
    int32_t free = self->pool.num_unused - self->pool.num_reserved;
    int32_t num = (int32_t)rng_between(random, 0, most);
    switch (rng_between(random, 0, 5)) {
    case 0:
        assert_int_equal(pages_reserve(&self->pool, num), num <= free);
        by->reserved += num <= free ? num : 0;
        break;
    case 1:
        drop_all(self, by);
        break;
    case 2:
        if (by->num > 0) {
            publish(self, by);
        }
        break;
    case 3:
        if (by->reserved > 0) {
            share(self, by, place, random);
        }
        break;
    default:
        if (by->reserved > 0) {
            take(self, by, place);
        }
    }
}

static void a_pool_agrees_with_a_naive_one(void **state)
{
    (void)state;
    rng random = rng_start("a_pool_agrees_with_a_naive_one");
    for (int32_t trial = 0; trial < 10; trial++) {
        world self;
        open_world(&self, (int32_t)rng_between(&random, 1, MAX_PAGES));
        for (int32_t i = 0; i < STEPS / 10; i++) {
            act(&self, &random);
            check(&self);
        }
        for (int32_t i = 0; i < HOLDERS; i++) {
            drop_all(&self, &self.holders[i]);
        }
        check(&self);
        assert_int_equal(self.pool.num_unused, self.pool.num_pages);
        free(self.memory);
    }
}

static void unkeyed_pages_are_given_away_before_cached_ones(void **state)
{
    (void)state;
    world self;
    open_world(&self, 4);
    holder *by = &self.holders[0];
    assert_true(pages_reserve(&self.pool, 4));
    by->reserved = 4;
    for (int32_t i = 0; i < 4; i++) {
        take(&self, by, 0);
        if (i < 2) {
            publish(&self, by);
        }
    }
    int32_t first = by->pages[0];
    int32_t second = by->pages[1];
    drop_all(&self, by);
    assert_int_equal(self.pool.num_cached, 2);
    assert_true(pages_reserve(&self.pool, 4));
    by->reserved = 4;
    for (int32_t i = 0; i < 4; i++) {
        take(&self, by, 0);
    }
    assert_int_equal(by->pages[2], second); /* dropped before the first, so older */
    assert_int_equal(by->pages[3], first);
    assert_int_equal(pages_find(&self.pool, key_of(1)), NO_PAGE);
    drop_all(&self, by);
    free(self.memory);
}

static void keys_depend_on_all_tokens_their_order_and_the_secret(void **state)
{
    (void)state;
    const int32_t tokens[2][2] = {{1, 2}, {2, 1}};
    const page_key none = {0, 0};
    page_key base = page_key_after(none, tokens[0], 2, 7);
    page_key same = page_key_after(none, tokens[0], 2, 7);
    const page_key others[] = {
        page_key_after(none, tokens[1], 2, 7),
        page_key_after(none, tokens[0], 2, 8),
        page_key_after(none, tokens[0], 1, 7),
        page_key_after(base, tokens[0], 2, 7),
        page_key_after((page_key){1, 0}, tokens[0], 2, 7),
    };
    assert_memory_equal(&base, &same, sizeof base);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_memory_not_equal(&base, &others[i], sizeof base);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_agrees_with_a_naive_one),
        cmocka_unit_test(unkeyed_pages_are_given_away_before_cached_ones),
        cmocka_unit_test(keys_depend_on_all_tokens_their_order_and_the_secret),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
