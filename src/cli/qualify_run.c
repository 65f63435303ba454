/* qualify_run.c - one device first, then the ranks in turn and their merge: see
 * qualify_run.h. */
#include "cli/qualify_run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attention/context.h"
#include "attention/merge_parts.h"
#include "base/convert.h"
#include "base/status.h"

enum {
    NUM_WINDOWS = 4,
    MAX_ROWS = 1 + 3 + 4 + QUALIFY_ROWS, /* of all windows */
    NUM_KEPT = 2 * QUALIFY_EMPTY,        /* a content's, of either interleave */
    ALIGN_BYTES = 64,
};

/* 1, 3 and 4 query rows, and all. */
static const qualify_window windows[NUM_WINDOWS] = {
    {14, 1}, {0, 2}, {3, 1}, {0, QUALIFY_REQUESTS}};
static const int32_t interleaves[] = {1, 16};
static const int32_t run_steps[] = {QUALIFY_FULL};
static const int32_t replay_steps[] = {QUALIFY_EMPTY, QUALIFY_FULL, QUALIFY_SHORT,
                                       QUALIFY_EMPTY, QUALIFY_FULL};

/* What all windows gave, one after the other. */
typedef struct answers {
    float *out; /* [rows][H][D]; NULL: nothing yet */
    float *lse; /* [rows][H]; behind them */
} answers;

typedef struct pass {
    qualify_rig rig;
    mlai_pool *pool;
    qualify_result *result;
    qualify_size size;
    int32_t first_window, num_rows;
    answers now, kept[NUM_KEPT];
    float *parts, *part_lse; /* [rows][H][RANKS][D], [rows][H][RANKS] */
    const answers *whole;    /* of one device, for the same content; or NULL */
    int32_t content;
    attention_verdict verdict[MAX_ROWS];
    attention_finding apart[MAX_ROWS];
} pass;

/* --------------------------------------------------------------------- memory */

static size_t pairs_of(const pass *p)
{
    return (size_t)p->num_rows * (size_t)p->rig.caps.num_heads;
}

static size_t answer_bytes(const pass *p)
{
    return pairs_of(p) * (QUALIFY_LATENT + 1) * sizeof(float);
}

static mla_status take_answers(const pass *p, answers *out, mla_error *err)
{
    MLAI_TRY(mla_memory_take(p->rig.input->context, MLA_SPACE_HOST, MLA_FOR_OTHER,
                             answer_bytes(p), ALIGN_BYTES, (void **)&out->out, err));
    out->lse = out->out + pairs_of(p) * QUALIFY_LATENT;
    return MLA_OK;
}

static mla_status take_parts(pass *p, mla_error *err)
{
    MLAI_TRY(mla_memory_take(p->rig.input->context, MLA_SPACE_HOST, MLA_FOR_OTHER,
                             QUALIFY_RANKS * answer_bytes(p), ALIGN_BYTES,
                             (void **)&p->parts, err));
    p->part_lse = p->parts + pairs_of(p) * QUALIFY_RANKS * QUALIFY_LATENT;
    return MLA_OK;
}

static void give(const pass *p, float *data, size_t bytes)
{
    mla_memory_give(p->rig.input->context, MLA_SPACE_HOST, MLA_FOR_OTHER, bytes, data);
}

static mla_status open_pass(pass *p, mla_plan *plan, mla_error *err)
{
    qualify_result *result = p->result;
    char *line = result->plan[p->rig.part];
    bool is_replay = p->rig.c->kind == QUALIFY_REPLAY;
    p->first_window = is_replay ? NUM_WINDOWS - 1 : 0;
    p->num_rows = is_replay ? QUALIFY_ROWS : MAX_ROWS;
    p->pool = p->rig.input->pool;
    mla_plan_describe(plan, line, sizeof result->plan[0], NULL);
    MLAI_TRY(take_answers(p, &p->now, err));
    if (p->rig.part == QUALIFY_SHARD) {
        MLAI_TRY(take_parts(p, err));
    }
    MLAI_TRY(qualify_rig_open(plan, &p->rig, err));
    result->reach_bytes = qualify_rig_reach(&p->rig);
    return MLA_OK;
}

static void close_pass(pass *p)
{
    qualify_rig_close(&p->rig);
    give(p, p->now.out, answer_bytes(p));
    give(p, p->parts, QUALIFY_RANKS * answer_bytes(p));
    for (int32_t i = 0; i < NUM_KEPT; i++) {
        give(p, p->kept[i].out, answer_bytes(p));
    }
}

/* ------------------------------------------------------------------- judgement */

/* The query row, of all requests, whose answer is the index-th. */
static int32_t row_of(const pass *p, int32_t index)
{
    const int32_t *starts = p->rig.input->starts;
    int32_t window = p->first_window;
    int32_t first = starts[windows[window].first];
    int32_t end = starts[windows[window].first + windows[window].num];
    while (index >= end - first) {
        index -= end - first;
        window++;
        first = starts[windows[window].first];
        end = starts[windows[window].first + windows[window].num];
    }
    return first + index;
}

static void compare(const pass *p, const attention_expectation *expected,
                    attention_finding at, size_t pair, attention_finding *worst)
{
    mla_backend backend = p->rig.input->context->backend;
    mla_caps caps = qualify_case_caps(p->rig.c, QUALIFY_WHOLE, 0);
    const attention_rule rule[] = {{backend, &p->rig.caps, true}, {backend, &caps, false}};
    attention_allowance merged = attention_allowance_of(&rule[0], expected);
    attention_allowance whole = attention_allowance_of(&rule[1], expected);
    for (int32_t d = 0; d < QUALIFY_LATENT; d++) {
        at.column = d;
        at.got = (double)p->now.out[pair * QUALIFY_LATENT + (size_t)d];
        at.expected = (double)p->whole->out[pair * QUALIFY_LATENT + (size_t)d];
        at.allowed = attention_allowed(&merged, expected, d) +
                     attention_allowed(&whole, expected, d);
        if (attention_finding_share(&at) > attention_finding_share(worst)) {
            *worst = at;
        }
    }
}

static void judge_row(void *arg, int64_t index, int32_t worker)
{
    (void)worker;
    pass *p = arg;
    int32_t row = row_of(p, (int32_t)index);
    const attention_rule rule = {p->rig.input->context->backend, &p->rig.caps,
                                 p->rig.part == QUALIFY_SHARD};
    p->verdict[index] = (attention_verdict){0};
    p->apart[index] = (attention_finding){0};
    for (int32_t head = 0; head < p->rig.caps.num_heads; head++) {
        if (!qualify_is_asked(p->rig.input, row, head)) {
            continue;
        }
        size_t pair = (size_t)index * (size_t)p->rig.caps.num_heads + (size_t)head;
        attention_expectation expected = qualify_expectation(
            p->rig.input, &p->rig.input->content[p->content], row, head);
        const attention_answer answer = {p->now.out + pair * QUALIFY_LATENT, MLA_F32,
                                         p->now.lse[pair]};
        attention_judge(&rule, &expected, &answer, row, head, &p->verdict[index]);
        if (p->whole) {
            compare(p, &expected, (attention_finding){.row = row, .head = head}, pair,
                    &p->apart[index]);
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
static void note_failure(const pass *p, int32_t interleave, mla_error *err)
{
    char where[40] = "one device";
    if (p->result->failure[0]) {
        return;
    }
    if (p->rig.part == QUALIFY_SHARD) {
        (void)snprintf(where, sizeof where, "%d ranks with interleave %d", QUALIFY_RANKS,
                       interleave);
    }
    mlai_error_prefix(err, "%s, %s, %s", where,
                      p->size == QUALIFY_LARGE ? "large numbers" : "ordinary numbers",
                      content_name(p->content));
    (void)snprintf(p->result->failure, sizeof p->result->failure, "%s", err->message);
}

static mla_status check_bits(const pass *p, const answers *kept, mla_error *err)
{
    MLAI_CHECK(memcmp(p->now.out, kept->out, answer_bytes(p)) == 0, MLA_ERR_INTERNAL,
               "a replay of the same contents gave other bits");
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

/* Judges p->now. The first answers of a content are kept, and later ones must be the same. */
static mla_status judge(pass *p, int32_t interleave, mla_error *err)
{
    attention_verdict sum = {0};
    attention_finding *apart = &p->result->apart;
    mlai_pool_run(p->pool, p->num_rows, judge_row, p);
    for (int32_t i = 0; i < p->num_rows; i++) {
        attention_verdict_add(&sum, &p->verdict[i]);
        if (attention_finding_share(&p->apart[i]) > attention_finding_share(apart)) {
            *apart = p->apart[i];
        }
    }
    attention_verdict_add(&p->result->verdict[p->size], &sum);
    mla_status status = attention_verdict_status(&sum, err);
    status = status == MLA_OK ? check_apart(apart, err) : status;
    if (p->content != QUALIFY_EMPTY) {
        answers *kept = &p->kept[p->content + (interleave > 1 ? QUALIFY_EMPTY : 0)];
        if (!kept->out) {
            MLAI_TRY(take_answers(p, kept, err));
            memcpy(kept->out, p->now.out, answer_bytes(p));
        }
        status = status == MLA_OK ? check_bits(p, kept, err) : status;
    }
    if (status != MLA_OK) {
        note_failure(p, interleave, err);
    }
    return MLA_OK;
}

/* ------------------------------------------------------------------ one device */

static void collect(const pass *p, int32_t num_rows, int32_t first)
{
    int32_t heads = p->rig.caps.num_heads;
    for (int32_t i = 0; i < num_rows * heads; i++) {
        size_t pair = (size_t)first * (size_t)heads + (size_t)i;
        float *out = p->now.out + pair * QUALIFY_LATENT;
        attention_answer answer = qualify_rig_answer(&p->rig, i / heads, i % heads);
        p->now.lse[pair] = answer.lse;
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
static mla_status collect_part(const pass *p, int32_t rank, int32_t num_rows, int32_t first,
                               mla_error *err)
{
    int32_t heads = p->rig.caps.num_heads;
    const int32_t *lens = p->rig.call.context_lens.host;
    for (int32_t i = 0; i < num_rows * heads; i++) {
        size_t part =
            ((size_t)first * (size_t)heads + (size_t)i) * QUALIFY_RANKS + (size_t)rank;
        attention_answer answer = qualify_rig_answer(&p->rig, i / heads, i % heads);
        bool is_empty = lens[i / heads] == 0;
        p->part_lse[part] = answer.lse;
        memcpy(p->parts + part * QUALIFY_LATENT, answer.output,
               QUALIFY_LATENT * sizeof(float));
        MLAI_CHECK(!is_empty || (answer.lse == -INFINITY && is_zero(answer.output)),
                   MLA_ERR_INTERNAL,
                   "rank %d has no key of row %d, head %d, and its part is not empty", rank,
                   i / heads, i % heads);
    }
    return MLA_OK;
}

/* Runs all windows for a share of the keys. */
static mla_status run_windows(pass *p, qualify_share share, mla_error *err)
{
    int32_t first = 0;
    MLAI_TRY(qualify_rig_store(&p->rig, p->content, share, err));
    for (int32_t i = p->first_window; i < NUM_WINDOWS; i++) {
        const int32_t *starts = p->rig.input->starts + windows[i].first;
        int32_t num_rows = starts[windows[i].num] - starts[0];
        MLAI_TRY(qualify_rig_run(&p->rig, p->content, share, windows[i], err));
        p->result->num_runs++;
        if (p->rig.part == QUALIFY_SHARD) {
            MLAI_TRY(collect_part(p, share.rank, num_rows, first, err));
        } else {
            collect(p, num_rows, first);
        }
        first += num_rows;
    }
    return MLA_OK;
}

/* -------------------------------------------------------------------- the ranks */

static void merge_row(void *arg, int64_t index, int32_t worker)
{
    (void)worker;
    const pass *p = arg;
    size_t heads = (size_t)p->rig.caps.num_heads;
    for (size_t pair = (size_t)index * heads; pair < ((size_t)index + 1) * heads; pair++) {
        size_t part = pair * QUALIFY_RANKS;
        mlai_merge_parts(p->parts + part * QUALIFY_LATENT, p->part_lse + part,
                         QUALIFY_RANKS, QUALIFY_LATENT, p->now.out + pair * QUALIFY_LATENT,
                         &p->now.lse[pair]);
    }
}

static mla_status run_ranks(pass *p, int32_t interleave, mla_error *err)
{
    for (int32_t rank = 0; rank < QUALIFY_RANKS; rank++) {
        MLAI_TRY(run_windows(p, (qualify_share){{QUALIFY_RANKS, interleave}, rank}, err));
    }
    mlai_pool_run(p->pool, p->num_rows, merge_row, p);
    return judge(p, interleave, err);
}

static mla_status run_step(pass *p, const pass *whole, mla_error *err)
{
    if (p->rig.part == QUALIFY_WHOLE) {
        MLAI_TRY(run_windows(p, (qualify_share){{1, 1}, 0}, err));
        return judge(p, 1, err);
    }
    bool is_kept = p->content != QUALIFY_EMPTY && whole->kept[p->content].out;
    p->whole = is_kept ? &whole->kept[p->content] : NULL;
    for (size_t i = 0; i < sizeof interleaves / sizeof interleaves[0]; i++) {
        MLAI_TRY(run_ranks(p, interleaves[i], err));
    }
    return MLA_OK;
}

/* Failures of calls end a pass; wrong values do not. */
static void run_pass(pass *p, mla_plan *plan, const pass *whole)
{
    mla_error error = {0};
    bool is_replay = p->rig.c->kind == QUALIFY_REPLAY;
    const int32_t *steps = is_replay ? replay_steps : run_steps;
    size_t num_steps = (is_replay ? sizeof replay_steps : sizeof run_steps) / sizeof *steps;
    mla_status status = open_pass(p, plan, &error);
    for (size_t i = 0; i < num_steps && status == MLA_OK; i++) {
        p->content = steps[i];
        status = run_step(p, whole, &error);
    }
    if (status != MLA_OK) {
        note_failure(p, 0, &error);
    }
}

void qualify_run(const qualify_case *c, mla_plan *const plans[QUALIFY_NUM_PARTS],
                 int64_t high_bytes, qualify_size size, const qualify_input *input,
                 qualify_result *result)
{
    static pass passes[QUALIFY_NUM_PARTS];
    int32_t num_parts = c->num_ranks > 1 ? 2 : 1;
    for (int32_t i = 0; i < num_parts; i++) {
        pass *p = &passes[i];
        memset(p, 0, sizeof *p);
        p->rig.c = c;
        p->rig.part = (qualify_part)i;
        p->rig.caps = qualify_case_caps(c, p->rig.part, high_bytes);
        p->rig.input = input;
        p->result = result;
        p->size = size;
        run_pass(p, plans[i], &passes[QUALIFY_WHOLE]);
        attention_call_free(&p->rig.call); /* its pool may be large */
        if (result->failure[0] && i + 1 < num_parts && !p->kept[QUALIFY_FULL].out) {
            num_parts = i + 1; /* there is nothing to compare with */
        }
    }
    for (int32_t i = 0; i < num_parts; i++) {
        close_pass(&passes[i]);
    }
}
