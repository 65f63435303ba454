/* attention_judge.c - values against their bounds: see attention_judge.h. */
#include "cli/attention_judge.h"

#include <math.h>

#include "attention/bound.h"
#include "attention/split.h"
#include "base/convert.h"
#include "base/status.h"

static const double smallest = 0x1p-100; /* weights below 2^-126 are 0 in f32 */
static const double u = 0x1p-24;

static attention_allowance cpu_allowance(const attention_rule *rule,
                                         const attention_expectation *expected)
{
    int64_t split_tokens = mlai_split_tokens(expected->num_keys);
    const mlai_bound_terms terms = {
        rule->caps->latent_dim + rule->caps->rope_dim, split_tokens,
        (int32_t)((expected->num_keys + split_tokens - 1) / split_tokens),
        expected->score_magnitude, expected->lse};
    mlai_bound bound = mlai_bound_of(&terms);
    return (attention_allowance){
        .relative = bound.relative, .absolute = smallest, .lse = bound.lse};
}

static attention_allowance cuda_allowance(const attention_rule *rule,
                                          const attention_expectation *expected)
{
    double delta = 0x1p-20 * (expected->score_magnitude + 16);
    bool is_fp8 = rule->caps->kv_format == MLA_KV_FP8;
    return (attention_allowance){
        .relative = expm1(2 * delta) + (is_fp8 ? 0x1p-11 : 0x1p-8),
        .absolute = is_fp8 ? 0x1p-32 : smallest,
        .lse = delta + 0x1p-22 * (fabs(expected->lse) + 16),
    };
}

/* Of parts that are each within `part` of what they should be. Their lse may be as far below
 * the row's as scores can be, so its rounding is that of the largest. A weight is then off by
 * a factor within e^(+-lse), so is their sum, and so a normalised weight by e^(+-2 lse). */
static attention_allowance merged(attention_allowance part,
                                  const attention_expectation *expected)
{
    double keys = (double)expected->num_keys;
    double lse = part.lse + 4 * u * (expected->score_magnitude + log(keys));
    return (attention_allowance){
        .relative = exp(2 * lse) * (1 + part.relative + u) - 1,
        .absolute = exp(2 * lse) * part.absolute,
        .lse = lse + u * (fabs(expected->lse) + 1),
    };
}

attention_allowance attention_allowance_of(const attention_rule *rule,
                                           const attention_expectation *expected)
{
    if (expected->lse == -HUGE_VAL) {
        return (attention_allowance){0, 0, 0, 0}; /* nothing seen is exactly nothing */
    }
    attention_allowance allowance = rule->backend == MLA_BACKEND_CUDA
                                        ? cuda_allowance(rule, expected)
                                        : cpu_allowance(rule, expected);
    allowance = rule->is_merged ? merged(allowance, expected) : allowance;
    allowance.rounding = rule->caps->output_dtype == MLA_F32 ? u : 0x1p-8;
    return allowance;
}

double attention_allowed(const attention_allowance *allowance,
                         const attention_expectation *expected, int32_t column)
{
    return column == ATTENTION_LSE ? allowance->lse
                                   : allowance->relative * expected->magnitude[column] +
                                         allowance->rounding * fabs(expected->out[column]) +
                                         allowance->absolute;
}

double attention_finding_share(const attention_finding *finding)
{
    if (finding->got == finding->expected) {
        return 0;
    }
    double share = fabs(finding->got - finding->expected) / finding->allowed;
    return isfinite(finding->expected) && share <= HUGE_VAL ? share : HUGE_VAL;
}

static void keep_worse(attention_finding *kept, const attention_finding *finding)
{
    if (attention_finding_share(finding) > attention_finding_share(kept)) {
        *kept = *finding;
    }
}

void attention_verdict_note(attention_verdict *verdict, const attention_finding *finding)
{
    verdict->num_values++;
    if (attention_finding_share(finding) > 1) {
        if (verdict->num_wrong++ == 0) {
            verdict->first_wrong = *finding;
        }
    }
    keep_worse(finding->column == ATTENTION_LSE ? &verdict->worst_lse
                                                : &verdict->worst_output,
               finding);
}

void attention_verdict_add(attention_verdict *to, const attention_verdict *from)
{
    if (to->num_wrong == 0) {
        to->first_wrong = from->first_wrong;
    }
    to->num_values += from->num_values;
    to->num_wrong += from->num_wrong;
    keep_worse(&to->worst_output, &from->worst_output);
    keep_worse(&to->worst_lse, &from->worst_lse);
}

mla_status attention_verdict_status(const attention_verdict *verdict, mla_error *err)
{
    const attention_finding *at = &verdict->first_wrong;
    MLAI_CHECK(verdict->num_wrong == 0 || at->column != ATTENTION_LSE, MLA_ERR_INTERNAL,
               "wrong result: lse of query row %lld, head %d is %.9g, and %.9g +- %.3g "
               "was expected",
               (long long)at->row, at->head, at->got, at->expected, at->allowed);
    MLAI_CHECK(verdict->num_wrong == 0, MLA_ERR_INTERNAL,
               "wrong result: output of query row %lld, head %d, column %d is %.9g, and "
               "%.9g +- %.3g was expected",
               (long long)at->row, at->head, at->column, at->got, at->expected,
               at->allowed);
    return MLA_OK;
}

static double output_at(const attention_answer *answer, int32_t column)
{
    return answer->dtype == MLA_F32
               ? (double)((const float *)answer->output)[column]
               : (double)mlai_f32_from_bf16(((const uint16_t *)answer->output)[column]);
}

void attention_judge(const attention_rule *rule, const attention_expectation *expected,
                     const attention_answer *answer, int64_t row, int32_t head,
                     attention_verdict *verdict)
{
    attention_allowance allowance = attention_allowance_of(rule, expected);
    attention_finding finding = {
        row, head, ATTENTION_LSE, (double)answer->lse, expected->lse, allowance.lse};
    attention_verdict_note(verdict, &finding);
    for (int32_t d = 0; d < rule->caps->latent_dim; d++) {
        finding.column = d;
        finding.got = output_at(answer, d);
        finding.expected = expected->out[d];
        finding.allowed = attention_allowed(&allowance, expected, d);
        attention_verdict_note(verdict, &finding);
    }
}
