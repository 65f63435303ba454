/* qualify_pass.c - answers, kept and judged: see qualify_pass.h. */
#include "cli/qualify_pass.h"

#include <stdio.h>
#include <string.h>

#include "attention/context.h"
#include "base/status.h"

enum { ALIGN_BYTES = 64 };

const qualify_window qualify_windows[QUALIFY_WINDOWS] = {
    {14, 1}, {0, 2}, {3, 1}, {0, QUALIFY_REQUESTS}};

/* --------------------------------------------------------------------- memory */

static size_t pairs_of(const qualify_pass *pass)
{
    return QUALIFY_ANSWERS * (size_t)pass->rig.caps.num_heads;
}

static size_t answer_bytes(const qualify_pass *pass)
{
    return pairs_of(pass) * (QUALIFY_LATENT + 1) * sizeof(float);
}

static mla_status take_answers(const qualify_pass *pass, qualify_answers *out,
                               mla_error *err)
{
    MLAI_TRY(mla_memory_take(pass->rig.input->context, MLA_SPACE_HOST, MLA_FOR_OTHER,
                             answer_bytes(pass), ALIGN_BYTES, (void **)&out->out, err));
    out->lse = out->out + pairs_of(pass) * QUALIFY_LATENT;
    return MLA_OK;
}

static mla_status take_parts(qualify_pass *pass, mla_error *err)
{
    MLAI_TRY(mla_memory_take(pass->rig.input->context, MLA_SPACE_HOST, MLA_FOR_OTHER,
                             QUALIFY_RANKS * answer_bytes(pass), ALIGN_BYTES,
                             (void **)&pass->parts, err));
    pass->part_lse = pass->parts + pairs_of(pass) * QUALIFY_RANKS * QUALIFY_LATENT;
    return MLA_OK;
}

static void give(const qualify_pass *pass, float *data, size_t bytes)
{
    mla_memory_give(pass->rig.input->context, MLA_SPACE_HOST, MLA_FOR_OTHER, bytes, data);
}

mla_status qualify_pass_open(qualify_pass *pass, mla_plan *plan, mla_error *err)
{
    qualify_result *result = pass->result;
    char *line = result->plan[pass->rig.part];
    pass->pool = pass->rig.input->pool;
    mla_plan_describe(plan, line, sizeof result->plan[0], NULL);
    MLAI_TRY(take_answers(pass, &pass->now, err));
    if (pass->rig.part == QUALIFY_SHARD) {
        MLAI_TRY(take_parts(pass, err));
    }
    MLAI_TRY(qualify_rig_open(plan, &pass->rig, err));
    result->reach_bytes = qualify_rig_reach(&pass->rig);
    return MLA_OK;
}

void qualify_pass_close(qualify_pass *pass)
{
    qualify_rig_close(&pass->rig);
    give(pass, pass->now.out, answer_bytes(pass));
    give(pass, pass->parts, QUALIFY_RANKS * answer_bytes(pass));
    for (int32_t i = 0; i < QUALIFY_KEPT; i++) {
        give(pass, pass->kept[i].out, answer_bytes(pass));
    }
}

/* ------------------------------------------------------------------- judgement */

int32_t qualify_pass_rows(const qualify_pass *pass, int32_t window)
{
    const int32_t *starts = pass->rig.input->starts + qualify_windows[window].first;
    return starts[qualify_windows[window].num] - starts[0];
}

void qualify_pass_begin_lap(qualify_pass *pass, const qualify_lap *lap)
{
    pass->lap = *lap;
    pass->first_row = 0;
    pass->num_rows = 0;
    for (int32_t i = 0; i < lap->first_window; i++) {
        pass->first_row += qualify_pass_rows(pass, i);
    }
    for (int32_t i = 0; i < lap->num_windows; i++) {
        pass->num_rows += qualify_pass_rows(pass, lap->first_window + i);
    }
}

/* The query row, of all requests, whose answer is the index-th. */
static int32_t row_of(const qualify_pass *pass, int32_t index)
{
    int32_t window = 0;
    while (index >= qualify_pass_rows(pass, window)) {
        index -= qualify_pass_rows(pass, window);
        window++;
    }
    return pass->rig.input->starts[qualify_windows[window].first] + index;
}

static void compare(const qualify_pass *pass, const attention_expectation *expected,
                    attention_finding at, size_t pair, attention_finding *worst)
{
    mla_backend backend = pass->rig.input->context->backend;
    mla_caps caps = qualify_case_caps(pass->rig.c, QUALIFY_WHOLE, 0);
    const attention_rule rule[] = {{backend, &pass->rig.caps, true},
                                   {backend, &caps, false}};
    attention_allowance merged = attention_allowance_of(&rule[0], expected);
    attention_allowance whole = attention_allowance_of(&rule[1], expected);
    for (int32_t d = 0; d < QUALIFY_LATENT; d++) {
        at.column = d;
        at.got = (double)pass->now.out[pair * QUALIFY_LATENT + (size_t)d];
        at.expected = (double)pass->whole->out[pair * QUALIFY_LATENT + (size_t)d];
        at.allowed = attention_allowed(&merged, expected, d) +
                     attention_allowed(&whole, expected, d);
        if (attention_finding_share(&at) > attention_finding_share(worst)) {
            *worst = at;
        }
    }
}

/* index: of a row of the lap. */
static void judge_row(void *arg, int64_t index, int32_t worker)
{
    (void)worker;
    qualify_pass *pass = arg;
    int32_t at = pass->first_row + (int32_t)index;
    int32_t row = row_of(pass, at);
    const attention_rule rule = {pass->rig.input->context->backend, &pass->rig.caps,
                                 pass->rig.part == QUALIFY_SHARD};
    pass->verdict[index] = (attention_verdict){0};
    pass->apart[index] = (attention_finding){0};
    for (int32_t head = 0; head < pass->rig.caps.num_heads; head++) {
        if (!qualify_is_asked(pass->rig.input, row, head)) {
            continue;
        }
        size_t pair = (size_t)at * (size_t)pass->rig.caps.num_heads + (size_t)head;
        attention_expectation expected = qualify_expectation(
            pass->rig.input, &pass->rig.input->content[pass->content], row, head);
        const attention_answer answer = {pass->now.out + pair * QUALIFY_LATENT, MLA_F32,
                                         pass->now.lse[pair]};
        attention_judge(&rule, &expected, &answer, row, head, &pass->verdict[index]);
        if (pass->whole) {
            compare(pass, &expected, (attention_finding){.row = row, .head = head}, pair,
                    &pass->apart[index]);
        }
    }
}

static const char *content_name(int32_t content)
{
    return content == QUALIFY_FULL    ? "full lengths"
           : content == QUALIFY_SHORT ? "other lengths, tables and queries"
                                      : "no lengths";
}

/* Keeps the first sentence that says what is wrong with a case. */
void qualify_pass_note_failure(const qualify_pass *pass, int32_t interleave, mla_error *err)
{
    char where[40] = "one device";
    if (pass->result->failure[0]) {
        return;
    }
    if (pass->rig.part == QUALIFY_SHARD) {
        (void)snprintf(where, sizeof where, "%d ranks with interleave %d", QUALIFY_RANKS,
                       interleave);
    }
    mlai_error_prefix(err, "%s, %s, %s", where,
                      pass->size == QUALIFY_LARGE ? "large numbers" : "ordinary numbers",
                      content_name(pass->content));
    (void)snprintf(pass->result->failure, sizeof pass->result->failure, "%s", err->message);
}

/* The lap's values of one kind, [rows][per_row]. */
static bool is_same(const qualify_pass *pass, const float *a, const float *b,
                    size_t per_row)
{
    size_t first = (size_t)pass->first_row * per_row;
    const void *bits = a + first;
    const void *others = b + first;
    return memcmp(bits, others, (size_t)pass->num_rows * per_row * sizeof *a) == 0;
}

/* The first answers of a content are kept, and later ones must be the same. */
static mla_status check_bits(qualify_pass *pass, int32_t slot, mla_error *err)
{
    qualify_answers *kept = &pass->kept[slot];
    size_t heads = (size_t)pass->rig.caps.num_heads;
    size_t first = (size_t)pass->first_row * heads;
    size_t num = (size_t)pass->num_rows * heads;
    if (pass->is_kept[slot][pass->lap.first_window]) {
        MLAI_CHECK(is_same(pass, pass->now.out, kept->out, heads * QUALIFY_LATENT) &&
                       is_same(pass, pass->now.lse, kept->lse, heads),
                   MLA_ERR_INTERNAL, "a replay of the same contents gave other bits");
        return MLA_OK;
    }
    if (!kept->out) {
        MLAI_TRY(take_answers(pass, kept, err));
    }
    memcpy(kept->out + first * QUALIFY_LATENT, pass->now.out + first * QUALIFY_LATENT,
           num * QUALIFY_LATENT * sizeof *kept->out);
    memcpy(kept->lse + first, pass->now.lse + first, num * sizeof *kept->lse);
    pass->is_kept[slot][pass->lap.first_window] = true;
    return MLA_OK;
}

static mla_status check_apart(const attention_finding *apart, mla_error *err)
{
    MLAI_CHECK(attention_finding_share(apart) <= 1, MLA_ERR_INTERNAL,
               "row %lld, head %d, column %d is %.9g, and %.9g +- %.3g on one device",
               (long long)apart->row, apart->head, apart->column, apart->got,
               apart->expected, apart->allowed);
    return MLA_OK;
}

/* Judges the lap's answers of now. */
mla_status qualify_pass_judge(qualify_pass *pass, int32_t interleave, mla_error *err)
{
    attention_verdict sum = {0};
    attention_finding *apart = &pass->result->apart;
    mlai_pool_run(pass->pool, pass->num_rows, judge_row, pass);
    for (int32_t i = 0; i < pass->num_rows; i++) {
        attention_verdict_add(&sum, &pass->verdict[i]);
        if (attention_finding_share(&pass->apart[i]) > attention_finding_share(apart)) {
            *apart = pass->apart[i];
        }
    }
    attention_verdict_add(&pass->result->verdict[pass->size], &sum);
    mla_status status = attention_verdict_status(&sum, err);
    status = status == MLA_OK ? check_apart(apart, err) : status;
    if (pass->content != QUALIFY_EMPTY) {
        int32_t slot = pass->content + (interleave > 1 ? QUALIFY_EMPTY : 0);
        mla_error error = {0};
        mla_status same = check_bits(pass, slot, &error);
        if (status == MLA_OK && same != MLA_OK) {
            *err = error;
            status = same;
        }
    }
    if (status != MLA_OK) {
        qualify_pass_note_failure(pass, interleave, err);
    }
    return MLA_OK;
}
