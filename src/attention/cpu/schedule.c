/* schedule.c - rows to groups, and heavy groups to one task a split: see schedule.h. */
#include "attention/cpu/schedule.h"

#include "attention/split.h"
#include "base/size.h"

static int32_t smaller(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

int32_t mlai_schedule_group_rows(const mla_caps *caps)
{
    int32_t rows = MLAI_TASK_QUERIES / caps->num_heads;
    return smaller(rows > 0 ? rows : 1, caps->max_rows_per_request);
}

/* At most 2 * num_threads - 1 groups are heavier than half a fair share; that many slots a
 * worker leave none idle, and bound the memory where each has many splits. */
int32_t mlai_schedule_num_slots(const mla_caps *caps, int32_t num_threads)
{
    enum { SLOTS_A_THREAD = 4 };
    if (num_threads <= 1 || caps->max_context_tokens <= MLAI_MIN_SPLIT_TOKENS) {
        return 0;
    }
    int64_t bound = (int64_t)caps->max_query_rows * MLAI_MAX_SPLITS;
    int64_t wanted = MLAI_MAX_SPLITS + (int64_t)SLOTS_A_THREAD * num_threads;
    return (int32_t)(wanted < bound ? wanted : bound);
}

static mlai_key_range keys_of(const mlai_schedule_in *in, const mlai_group *group,
                              int32_t request_row)
{
    const mla_caps *caps = &in->geometry->caps;
    return mlai_visible_keys(group->length, group->request_rows, request_row,
                             caps->causal != 0, caps->window);
}

/* Takes rows into the group while they share its split length. Ends only grow with the row,
 * and so do begins: the union runs from the first's begin to the last's end. */
static void extend_group(const mlai_schedule_in *in, mlai_group *group, int32_t most_rows)
{
    mlai_key_range keys = keys_of(in, group, group->request_row);
    group->split_tokens = (int32_t)mlai_split_tokens(keys.end);
    group->visible = keys;
    group->num_rows = 1;
    while (group->num_rows < most_rows &&
           group->request_row + group->num_rows < group->request_rows) {
        keys = keys_of(in, group, group->request_row + group->num_rows);
        if (mlai_split_tokens(keys.end) != group->split_tokens) {
            break;
        }
        group->visible.end = keys.end;
        group->num_rows++;
    }
}

static void count_splits(mlai_group *group)
{
    mlai_key_range keys = group->visible;
    group->first_split = keys.begin / group->split_tokens;
    group->num_splits = 0;
    if (keys.begin < keys.end) {
        int64_t last = (keys.end - 1) / group->split_tokens;
        group->num_splits = (int32_t)(last - group->first_split + 1);
    }
}

static int64_t weight_of(const mlai_group *group)
{
    return (group->visible.end - group->visible.begin) * group->num_rows;
}

static int64_t list_groups(const mlai_schedule_in *in, mlai_schedule *schedule)
{
    const int32_t *starts = in->query_starts;
    int32_t most_rows = mlai_schedule_group_rows(&in->geometry->caps);
    int64_t weight = 0;
    for (int32_t r = 0; r < in->batch->num_requests; r++) {
        int64_t length =
            mlai_visible_length(in->context_lens[r], in->geometry->table_tokens);
        for (int32_t row = starts[r]; row < starts[r + 1];) {
            mlai_group *group = &schedule->group[schedule->num_groups++];
            *group = (mlai_group){.request = r,
                                  .first_row = row,
                                  .request_row = row - starts[r],
                                  .request_rows = starts[r + 1] - starts[r],
                                  .first_slot = -1,
                                  .length = length};
            extend_group(in, group, most_rows);
            count_splits(group);
            weight += weight_of(group);
            row += group->num_rows;
        }
    }
    return weight;
}

static void take_slots(mlai_schedule *schedule, int32_t g)
{
    mlai_group *group = &schedule->group[g];
    group->first_slot = schedule->num_slots_used;
    for (int32_t split = 0; split < group->num_splits; split++) {
        schedule->slot[schedule->num_slots_used++] = (mlai_slot_task){g, split};
    }
}

/* Two tasks a worker, so that one that ends early finds another. */
static void cut_heads(const mlai_schedule_in *in, mlai_schedule *schedule)
{
    enum { TASKS_A_THREAD = 2 };
    int64_t num_tasks = schedule->num_slots_used;
    for (int32_t g = 0; g < schedule->num_groups; g++) {
        num_tasks += schedule->group[g].first_slot < 0 && schedule->group[g].num_splits > 0;
    }
    int32_t num_heads = in->geometry->caps.num_heads;
    int64_t wanted = 1;
    if (in->num_threads > 1 && num_tasks > 0) {
        wanted = mlai_ceil_div(TASKS_A_THREAD * (int64_t)in->num_threads, num_tasks);
    }
    int64_t most = mlai_ceil_div(num_heads, MLAI_MIN_BLOCK_HEADS);
    int64_t blocks = wanted < most ? wanted : most;
    schedule->block_heads = (int32_t)mlai_ceil_div(num_heads, blocks);
    schedule->num_head_blocks = (int32_t)mlai_ceil_div(num_heads, schedule->block_heads);
}

void mlai_schedule_build(const mlai_schedule_in *in, mlai_schedule *schedule)
{
    int32_t num_slots = mlai_schedule_num_slots(&in->geometry->caps, in->num_threads);
    schedule->num_groups = 0;
    schedule->num_slots_used = 0;
    int64_t weight = list_groups(in, schedule);
    for (int32_t g = 0; g < schedule->num_groups && num_slots > 0; g++) {
        const mlai_group *group = &schedule->group[g];
        if (group->num_splits > 1 &&
            group->num_splits <= num_slots - schedule->num_slots_used &&
            weight_of(group) > weight / (2 * (int64_t)in->num_threads)) {
            take_slots(schedule, g);
        }
    }
    cut_heads(in, schedule);
}
