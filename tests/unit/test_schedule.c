/* The schedule of a run: every row in one group, groups within their bounds, splits that
 * cover what the rows see, and slots only as many as the workspace has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "attention/cpu/workspace.h"
#include "attention/split.h"
#include "support/rig.h"

enum { MAX_ROWS = 300, MAX_SLOTS = 200, MAX_REQUESTS = 9 };

typedef struct trial {
    mlai_geometry geometry;
    mla_batch batch;
    int32_t lens[MAX_REQUESTS], starts[MAX_REQUESTS + 1];
    mlai_group group[MAX_ROWS];
    mlai_slot_task slot[MAX_SLOTS];
    mlai_schedule schedule;
} trial;

static void build(trial *t, const mla_caps *caps, int32_t num_requests, int32_t num_threads)
{
    assert_int_equal(mlai_geometry_of(caps, &t->geometry, NULL), MLA_OK);
    assert_true(mlai_schedule_num_slots(caps, num_threads) <= MAX_SLOTS);
    t->batch.num_requests = num_requests;
    t->batch.num_query_rows = t->starts[num_requests];
    t->schedule = (mlai_schedule){.group = t->group, .slot = t->slot};
    const mlai_schedule_in in = {&t->geometry, &t->batch, t->lens, t->starts, num_threads};
    mlai_schedule_build(&in, &t->schedule);
}

static void check_group(const trial *t, const mlai_group *group)
{
    const mla_caps *caps = &t->geometry.caps;
    int32_t first = t->starts[group->request];
    assert_true(group->num_rows == 1 ||
                group->num_rows * caps->num_heads <= MLAI_TASK_QUERIES);
    assert_int_equal(group->request_row, group->first_row - first);
    assert_int_equal(group->request_rows, t->starts[group->request + 1] - first);
    assert_true(group->request_row + group->num_rows <= group->request_rows);
    for (int32_t i = 0; i < group->num_rows; i++) {
        mlai_key_range keys =
            mlai_visible_keys(group->length, group->request_rows, group->request_row + i,
                              caps->causal != 0, caps->window);
        assert_int_equal(mlai_split_tokens(keys.end), group->split_tokens);
        int64_t begin = group->first_split * group->split_tokens;
        assert_true(keys.begin >= keys.end ||
                    (keys.begin >= begin &&
                     keys.end <= begin + (int64_t)group->num_splits * group->split_tokens));
    }
    assert_true(group->num_splits <= MLAI_MAX_SPLITS);
}

static void check(const trial *t, int32_t num_threads)
{
    int32_t num_slots = mlai_schedule_num_slots(&t->geometry.caps, num_threads);
    int32_t row = 0;
    int32_t slot = 0;
    for (int32_t g = 0; g < t->schedule.num_groups; g++) {
        const mlai_group *group = &t->schedule.group[g];
        assert_int_equal(group->first_row, row); /* each row once, in order */
        row += group->num_rows;
        check_group(t, group);
        for (int32_t s = 0; group->first_slot >= 0 && s < group->num_splits; s++, slot++) {
            assert_int_equal(group->first_slot + s, slot);
            assert_int_equal(t->schedule.slot[slot].group, g);
            assert_int_equal(t->schedule.slot[slot].split, s);
        }
    }
    assert_int_equal(row, t->batch.num_query_rows);
    assert_int_equal(slot, t->schedule.num_slots_used);
    assert_true(slot <= num_slots);
}

static void random_batches_are_scheduled_whole(void **state)
{
    (void)state;
    static trial t;
    static const int32_t heads[] = {1, 3, 16, 48, 128, 200};
    rng random = rng_start("schedule");
    for (int i = 0; i < 3000; i++) {
        mla_caps caps = rig_extend_caps(MAX_REQUESTS, MAX_ROWS, 20000);
        caps.num_heads = heads[rng_between(&random, 0, 5)];
        caps.causal = (int32_t)rng_between(&random, 0, 1);
        caps.window =
            rng_between(&random, 0, 2) ? 0 : (int32_t)rng_between(&random, 1, 3000);
        int32_t num_requests = (int32_t)rng_between(&random, 0, MAX_REQUESTS);
        for (int32_t r = 0; r < num_requests; r++) {
            t.lens[r] = (int32_t)rng_between(&random, -3, rng_between(&random, 0, 20050));
            t.starts[r + 1] = t.starts[r] + (int32_t)rng_between(&random, 0, 33);
        }
        int32_t num_threads = (int32_t)rng_between(&random, 1, 20);
        build(&t, &caps, num_requests, num_threads);
        check(&t, num_threads);
    }
}

static void a_lone_long_row_is_split_among_the_workers(void **state)
{
    (void)state;
    static trial t;
    mla_caps caps = rig_extend_caps(2, 4, 20000);
    t.lens[0] = 8000;
    t.starts[1] = 1;
    build(&t, &caps, 1, 2);
    assert_int_equal(t.schedule.num_slots_used, 16);
    build(&t, &caps, 1, 1); /* one worker folds it alone */
    assert_int_equal(t.schedule.num_slots_used, 0);
    caps.max_context_tokens = 512; /* one split is all that there can be */
    assert_int_equal(mlai_schedule_num_slots(&caps, 8), 0);
}

static void one_long_row_among_short_ones_is_split_too(void **state)
{
    (void)state;
    static trial t;
    mla_caps caps = rig_extend_caps(9, 9, 20000);
    for (int32_t r = 0; r < 9; r++) {
        t.lens[r] = r == 4 ? 16000 : 100;
        t.starts[r + 1] = r + 1;
    }
    build(&t, &caps, 9, 2);
    assert_int_equal(t.schedule.num_groups, 9);
    assert_int_equal(t.schedule.num_slots_used, 16);
    assert_int_equal(t.schedule.group[4].first_slot, 0);
}

/* 4 tasks for 16 workers: heads in blocks of 4 make 20. Enough tasks leave them together. */
static void heads_are_cut_where_workers_would_idle(void **state)
{
    (void)state;
    static trial t;
    mla_caps caps = rig_extend_caps(9, 9, 20000);
    caps.num_heads = 20;
    for (int32_t r = 0; r < 9; r++) {
        t.lens[r] = 2000;
        t.starts[r + 1] = r + 1;
    }
    build(&t, &caps, 1, 16);
    assert_int_equal(t.schedule.num_slots_used, 4);
    assert_int_equal(t.schedule.block_heads, 4);
    assert_int_equal(t.schedule.num_head_blocks, 5);
    build(&t, &caps, 1, 2);
    assert_int_equal(t.schedule.num_head_blocks, 1);
    build(&t, &caps, 9, 16);
    assert_int_equal(t.schedule.num_head_blocks, 1);
    t.lens[0] = 100; /* one split: a worker alone has nobody to share with */
    build(&t, &caps, 1, 1);
    assert_int_equal(t.schedule.num_head_blocks, 1);
    build(&t, &caps, 1, 2);
    assert_int_equal(t.schedule.num_head_blocks, 4);
}

static void a_workspace_grows_with_every_capacity(void **state)
{
    (void)state;
    mla_caps caps = rig_extend_caps(2, 8, 2000);
    mlai_geometry geometry;
    mlai_cpu_layout base;
    mlai_cpu_layout more;
    const mlai_cpu_kernels *kernels = &mlai_cpu_kernels_c;
    assert_int_equal(mlai_geometry_of(&caps, &geometry, NULL), MLA_OK);
    assert_int_equal(mlai_cpu_layout_of(&geometry, kernels, 2, &base, NULL), MLA_OK);
    assert_int_equal(mlai_cpu_layout_of(&geometry, kernels, 3, &more, NULL), MLA_OK);
    assert_true(more.bytes > base.bytes);
    for (int i = 0; i < 3; i++) {
        mla_caps larger = caps;
        larger.num_heads *= i == 0 ? 2 : 1;
        larger.max_query_rows *= i == 1 ? 2 : 1;
        larger.latent_dim *= i == 2 ? 2 : 1;
        assert_int_equal(mlai_geometry_of(&larger, &geometry, NULL), MLA_OK);
        assert_int_equal(mlai_cpu_layout_of(&geometry, kernels, 2, &more, NULL), MLA_OK);
        assert_true(more.bytes > base.bytes);
    }
    caps.max_query_rows = INT32_MAX;
    caps.num_heads = 1;
    assert_int_equal(mlai_geometry_of(&caps, &geometry, NULL), MLA_OK);
    assert_int_equal(mlai_cpu_layout_of(&geometry, kernels, 2, &more, NULL), MLA_OK);
    assert_true(more.bytes <
                (size_t)INT32_MAX * (sizeof(mlai_group) + 1)); /* no Q * S * D */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_batches_are_scheduled_whole),
        cmocka_unit_test(a_lone_long_row_is_split_among_the_workers),
        cmocka_unit_test(one_long_row_among_short_ones_is_split_too),
        cmocka_unit_test(heads_are_cut_where_workers_would_idle),
        cmocka_unit_test(a_workspace_grows_with_every_capacity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
