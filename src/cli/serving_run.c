/* serving_run.c - a group of requests sent at once and watched: see serving_run.h. */
#include "cli/serving_run.h"

#include "base/clock.h"
#include "base/status.h"

enum { WAIT_MS = 2, NUM_WATCH_CALLS = 2 };
#define NS_PER_SECOND 1e9

static void clear(serving_answer *answers, int32_t num, mla_context *context)
{
    for (int32_t i = 0; i < num; i++) {
        answers[i] = serving_answer_none(context);
    }
}

void serving_run_begin(serving_run *run, mla_context *context, serving_report *report)
{
    run->context = context;
    run->report = report;
    run->watch = watch_none(context);
    run->prompt_tokens = run->new_tokens = 0;
    clear(run->alone, SERVING_MAX_ANSWERS, context);
    clear(run->mixed, SERVING_MAX_MIXED, context);
    clear(run->beyond, SERVING_MAX_BEYOND, context);
    clear(run->rate, SERVING_RATE_REQUESTS, context);
}

static void end_all(serving_answer *answers, int32_t num)
{
    for (int32_t i = 0; i < num; i++) {
        serving_answer_end(&answers[i]);
    }
}

void serving_run_end(serving_run *run)
{
    watch_end(&run->watch);
    end_all(run->alone, SERVING_MAX_ANSWERS);
    end_all(run->mixed, SERVING_MAX_MIXED);
    end_all(run->beyond, SERVING_MAX_BEYOND);
    end_all(run->rate, SERVING_RATE_REQUESTS);
}

/* All of them write, and none has ended. */
static bool is_steady(const serving_group *group)
{
    for (int32_t i = 0; i < group->num; i++) {
        const serving_answer *answer = &group->answers[i];
        if (!serving_answer_has_begun(answer) || answer->call.is_done) {
            return false;
        }
    }
    return true;
}

static bool has_ended(const serving_group *group)
{
    for (int32_t i = 0; i < group->num; i++) {
        if (!group->answers[i].call.is_done) {
            return false;
        }
    }
    return true;
}

static mla_status take_all(serving_group *group, mla_error *err)
{
    for (int32_t i = 0; i < group->num; i++) {
        MLAI_TRY(serving_answer_take(&group->answers[i], err));
    }
    return MLA_OK;
}

static void give_up(serving_group *group)
{
    for (int32_t i = 0; i < group->num; i++) {
        if (!group->answers[i].call.is_done) {
            client_call_finish(&group->answers[i].call, "no end before --timeout");
        }
    }
}

static void count_tokens(serving_run *run, const serving_group *group)
{
    for (int32_t i = 0; i < group->num; i++) {
        const serving_answer *answer = &group->answers[i];
        run->prompt_tokens += answer->prompt_tokens > 0 ? answer->prompt_tokens : 0;
        run->new_tokens += answer->new_tokens > 0 ? answer->new_tokens : 0;
    }
}

static mla_status wait_for(serving_run *run, serving_group *group, int64_t give_up_ns,
                           mla_error *err)
{
    static client_call *calls[SERVING_MAX_MIXED + NUM_WATCH_CALLS];
    for (int32_t i = 0; i < group->num; i++) {
        calls[i] = &group->answers[i].call;
    }
    calls[group->num] = &run->watch.ledger_call;
    calls[group->num + 1] = &run->watch.metrics_call;
    while (!has_ended(group)) {
        MLAI_TRY(client_poll(calls, group->num + NUM_WATCH_CALLS, WAIT_MS, err));
        MLAI_TRY(take_all(group, err));
        MLAI_TRY(watch_step(&run->watch, is_steady(group), err));
        if (mlai_now_ns() > give_up_ns) {
            give_up(group);
        }
    }
    return take_all(group, err);
}

mla_status serving_group_run(serving_run *run, const serving_ask *asks,
                             serving_group *group, mla_error *err)
{
    int64_t begin_ns = mlai_now_ns();
    double limit_ns = (double)run->report->wanted->timeout_s * NS_PER_SECOND;
    for (int32_t i = 0; i < group->num; i++) {
        MLAI_TRY(serving_answer_begin(&group->answers[i], &asks[i], &run->watch.to, err));
    }
    MLAI_TRY(wait_for(run, group, begin_ns + (int64_t)limit_ns, err));
    count_tokens(run, group);
    group->seconds = (double)(mlai_now_ns() - begin_ns) / NS_PER_SECOND;
    return MLA_OK;
}
