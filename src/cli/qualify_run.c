/* qualify_run.c - one device first, then the ranks in turn and their merge: see
 * qualify_run.h. */
#include "cli/qualify_run.h"

#include <math.h>
#include <string.h>

#include "attention/merge_parts.h"
#include "base/convert.h"
#include "base/status.h"
#include "cli/qualify_pass.h"

static const int32_t interleaves[] = {1, 16};
static const int32_t run_steps[] = {QUALIFY_FULL};
static const int32_t few_steps[] = {QUALIFY_FULL, QUALIFY_EMPTY};
static const int32_t all_steps[] = {QUALIFY_EMPTY, QUALIFY_FULL, QUALIFY_SHORT,
                                    QUALIFY_EMPTY, QUALIFY_FULL};
#define LENGTH_OF(array) (int32_t)(sizeof(array) / sizeof(array)[0])

static const qualify_lap run_laps[] = {
    {0, QUALIFY_WINDOWS, run_steps, LENGTH_OF(run_steps)}};
static const qualify_lap replay_laps[] = {{0, 1, few_steps, LENGTH_OF(few_steps)},
                                          {1, 1, few_steps, LENGTH_OF(few_steps)},
                                          {2, 1, few_steps, LENGTH_OF(few_steps)},
                                          {3, 1, all_steps, LENGTH_OF(all_steps)}};

/* ------------------------------------------------------------------ one device */

static void collect(const qualify_pass *pass, int32_t num_rows, int32_t first)
{
    int32_t heads = pass->rig.caps.num_heads;
    for (int32_t i = 0; i < num_rows * heads; i++) {
        size_t pair = (size_t)first * (size_t)heads + (size_t)i;
        float *out = pass->now.out + pair * QUALIFY_LATENT;
        attention_answer answer = qualify_rig_answer(&pass->rig, i / heads, i % heads);
        pass->now.lse[pair] = answer.lse;
        for (int32_t d = 0; d < QUALIFY_LATENT; d++) {
            out[d] = answer.dtype == MLA_F32
                         ? ((const float *)answer.output)[d]
                         : mlai_f32_from_bf16(((const uint16_t *)answer.output)[d]);
        }
    }
}

static bool is_zero(const float *values)
{
    for (int32_t d = 0; d < QUALIFY_LATENT; d++) {
        if (values[d] != 0) {
            return false;
        }
    }
    return true;
}

/* Copies the result of one rank. An empty part holds exact zeros, and is not read again. */
static mla_status collect_part(const qualify_pass *pass, int32_t rank, int32_t num_rows,
                               int32_t first, mla_error *err)
{
    int32_t heads = pass->rig.caps.num_heads;
    const int32_t *lens = pass->rig.call.context_lens.host;
    for (int32_t i = 0; i < num_rows * heads; i++) {
        size_t part =
            ((size_t)first * (size_t)heads + (size_t)i) * QUALIFY_RANKS + (size_t)rank;
        attention_answer answer = qualify_rig_answer(&pass->rig, i / heads, i % heads);
        bool is_empty = lens[i / heads] == 0;
        pass->part_lse[part] = answer.lse;
        memcpy(pass->parts + part * QUALIFY_LATENT, answer.output,
               QUALIFY_LATENT * sizeof(float));
        MLAI_CHECK(!is_empty || (answer.lse == -INFINITY && is_zero(answer.output)),
                   MLA_ERR_INTERNAL,
                   "rank %d has no key of row %d, head %d, and its part is not empty", rank,
                   i / heads, i % heads);
    }
    return MLA_OK;
}

/* Runs the lap's windows for a share of the keys. */
static mla_status run_windows(qualify_pass *pass, qualify_share share, mla_error *err)
{
    int32_t first = pass->first_row;
    int32_t end = pass->lap.first_window + pass->lap.num_windows;
    MLAI_TRY(
        qualify_rig_store(&pass->rig, pass->content, share, qualify_windows[end - 1], err));
    for (int32_t i = pass->lap.first_window; i < end; i++) {
        MLAI_TRY(
            qualify_rig_run(&pass->rig, pass->content, share, qualify_windows[i], err));
        pass->result->num_runs++;
        if (pass->rig.part == QUALIFY_SHARD) {
            MLAI_TRY(
                collect_part(pass, share.rank, qualify_pass_rows(pass, i), first, err));
        } else {
            collect(pass, qualify_pass_rows(pass, i), first);
        }
        first += qualify_pass_rows(pass, i);
    }
    return MLA_OK;
}

/* -------------------------------------------------------------------- the ranks */

static void merge_row(void *arg, int64_t index, int32_t worker)
{
    (void)worker;
    const qualify_pass *pass = arg;
    size_t heads = (size_t)pass->rig.caps.num_heads;
    size_t first = ((size_t)pass->first_row + (size_t)index) * heads;
    for (size_t pair = first; pair < first + heads; pair++) {
        size_t part = pair * QUALIFY_RANKS;
        mlai_merge_parts(pass->parts + part * QUALIFY_LATENT, pass->part_lse + part,
                         QUALIFY_RANKS, QUALIFY_LATENT,
                         pass->now.out + pair * QUALIFY_LATENT, &pass->now.lse[pair]);
    }
}

static mla_status run_ranks(qualify_pass *pass, int32_t interleave, mla_error *err)
{
    for (int32_t rank = 0; rank < QUALIFY_RANKS; rank++) {
        MLAI_TRY(
            run_windows(pass, (qualify_share){{QUALIFY_RANKS, interleave}, rank}, err));
    }
    mlai_pool_run(pass->pool, pass->num_rows, merge_row, pass);
    return qualify_pass_judge(pass, interleave, err);
}

static mla_status run_step(qualify_pass *pass, const qualify_pass *whole, mla_error *err)
{
    if (pass->rig.part == QUALIFY_WHOLE) {
        MLAI_TRY(run_windows(pass, (qualify_share){{1, 1}, 0}, err));
        return qualify_pass_judge(pass, 1, err);
    }
    bool is_kept = pass->content != QUALIFY_EMPTY &&
                   whole->is_kept[pass->content][pass->lap.first_window];
    pass->whole = is_kept ? &whole->kept[pass->content] : NULL;
    for (size_t i = 0; i < sizeof interleaves / sizeof interleaves[0]; i++) {
        MLAI_TRY(run_ranks(pass, interleaves[i], err));
    }
    return MLA_OK;
}

static mla_status run_lap(qualify_pass *pass, const qualify_lap *lap,
                          const qualify_pass *whole, mla_error *err)
{
    qualify_pass_begin_lap(pass, lap);
    if (pass->rig.c->kind == QUALIFY_REPLAY) {
        MLAI_TRY(qualify_rig_record(&pass->rig, qualify_windows[lap->first_window], err));
    }
    for (int32_t i = 0; i < lap->num_steps; i++) {
        pass->content = lap->steps[i];
        MLAI_TRY(run_step(pass, whole, err));
    }
    return MLA_OK;
}

/* Failures of calls end a pass; wrong values do not. */
static void run_pass(qualify_pass *pass, mla_plan *plan, const qualify_pass *whole)
{
    mla_error error = {0};
    bool is_replay = pass->rig.c->kind == QUALIFY_REPLAY;
    const qualify_lap *laps = is_replay ? replay_laps : run_laps;
    int32_t num_laps = is_replay ? LENGTH_OF(replay_laps) : LENGTH_OF(run_laps);
    mla_status status = qualify_pass_open(pass, plan, &error);
    for (int32_t i = 0; i < num_laps && status == MLA_OK; i++) {
        status = run_lap(pass, &laps[i], whole, &error);
    }
    if (status != MLA_OK) {
        qualify_pass_note_failure(pass, 0, &error);
    }
}

void qualify_run(const qualify_case *c, mla_plan *const plans[QUALIFY_NUM_PARTS],
                 int64_t high_bytes, qualify_size size, const qualify_input *input,
                 qualify_result *result)
{
    static qualify_pass passes[QUALIFY_NUM_PARTS];
    int32_t num_parts = c->num_ranks > 1 ? 2 : 1;
    for (int32_t i = 0; i < num_parts; i++) {
        qualify_pass *pass = &passes[i];
        memset(pass, 0, sizeof *pass);
        pass->rig.c = c;
        pass->rig.part = (qualify_part)i;
        pass->rig.caps = qualify_case_caps(c, pass->rig.part, high_bytes);
        pass->rig.input = input;
        pass->result = result;
        pass->size = size;
        run_pass(pass, plans[i], &passes[QUALIFY_WHOLE]);
        attention_call_free(&pass->rig.call); /* its pool may be large */
        if (result->failure[0] && i + 1 < num_parts && !pass->kept[QUALIFY_FULL].out) {
            num_parts = i + 1; /* there is nothing to compare with */
        }
    }
    for (int32_t i = 0; i < num_parts; i++) {
        qualify_pass_close(&passes[i]);
    }
}
