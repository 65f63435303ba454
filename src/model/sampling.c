/* sampling.c - filters in the order of Hugging Face transformers: temperature, top-k, top-p
 * (over what top-k left), min-p (against the most likely token). top-p keeps a token while
 * the mass before it is below p, so the one that crosses is kept.
 *
 * Candidates come off a heap in falling order, ties by the lower id, and only as many as the
 * filters keep: nothing is sorted that will not be looked at, and nothing is allocated. */
#include "model/sampling.h"

#include <math.h>
#include <stdbool.h>

static bool comes_first(const sampling_candidate *a, const sampling_candidate *b)
{
    return a->logit > b->logit || (a->logit == b->logit && a->id < b->id);
}

static void sift_down(sampling_candidate *heap, int32_t num, int32_t at)
{
    sampling_candidate moved = heap[at];
    for (int32_t child = 2 * at + 1; child < num; child = 2 * at + 1) {
        if (child + 1 < num && comes_first(&heap[child + 1], &heap[child])) {
            child++;
        }
        if (!comes_first(&heap[child], &moved)) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

/* Moves the first candidate to the heap's end, which the heap gives up. */
static void pop(sampling_candidate *heap, int32_t num)
{
    sampling_candidate first = heap[0];
    heap[0] = heap[num - 1];
    sift_down(heap, num - 1, 0);
    heap[num - 1] = first;
}

static int32_t greedy(const float *logits, int32_t vocab_size)
{
    int32_t best = 0;
    for (int32_t id = 1; id < vocab_size; id++) {
        if (logits[id] > logits[best] || isnan(logits[best])) {
            best = id;
        }
    }
    return best;
}

/* splitmix64's mix: seed and position in, 64 well-stirred bits out. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Uniform in [0, 1), from the seed and the position alone. */
static double uniform(uint64_t seed, int64_t position)
{
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t bits = mix(mix(seed + golden) + golden * ((uint64_t)position + 1));
    return (double)(bits >> 11) * 0x1p-53;
}

/* logits -> candidates with their ids, in a heap. */
static void make_heap(const float *logits, int32_t vocab_size, sampling_candidate *heap)
{
    for (int32_t id = 0; id < vocab_size; id++) {
        heap[id] = (sampling_candidate){isnan(logits[id]) ? -INFINITY : logits[id], id};
    }
    for (int32_t at = vocab_size / 2 - 1; at >= 0; at--) {
        sift_down(heap, vocab_size, at);
    }
}

/* Relative to the most likely candidate, whose weight is 1. */
static double weight_of(float logit, float best, float temperature)
{
    double weight = exp(((double)logit - (double)best) / (double)temperature);
    return weight >= 0.0 ? weight : 0.0; /* NaN weighs nothing */
}

static double sum_of_weights(const sampling_candidate *items, int32_t num, float best,
                             float temperature)
{
    double sum = 0.0;
    for (int32_t i = 0; i < num; i++) {
        sum += weight_of(items[i].logit, best, temperature);
    }
    return sum;
}

/* Without filters no order is needed: a walk by id. */
static int32_t draw_from_all(const float *logits, int32_t vocab_size, float best,
                             float temperature, double u)
{
    double sum = 0.0;
    for (int32_t id = 0; id < vocab_size; id++) {
        sum += weight_of(logits[id], best, temperature);
    }
    double target = u * sum;
    double before = 0.0;
    int32_t last = 0;
    for (int32_t id = 0; id < vocab_size; id++) {
        double weight = weight_of(logits[id], best, temperature);
        before += weight;
        if (target < before) {
            return id;
        }
        last = weight > 0.0 ? id : last; /* rounding may leave the target at the sum */
    }
    return last;
}

/* What the filters keep: heap[vocab_size - 1] and below, in falling order. */
typedef struct kept_candidates {
    int32_t num;
    double mass;
} kept_candidates;

static kept_candidates keep_best(sampling_candidate *heap, int32_t vocab_size,
                                 const sampling_options *options)
{
    float best = heap[0].logit;
    float temperature = options->temperature;
    bool has_top_k = options->top_k > 0 && options->top_k < vocab_size;
    bool has_top_p = options->top_p > 0.0F && options->top_p < 1.0F;
    int32_t most = has_top_k ? options->top_k : vocab_size;
    int32_t num_popped = 0;
    for (; has_top_k && num_popped < most; num_popped++) {
        pop(heap, vocab_size - num_popped);
    }
    double allowed = (double)INFINITY;
    if (has_top_p) {
        int32_t begin = vocab_size - num_popped;
        allowed = (double)options->top_p *
                  (has_top_k ? sum_of_weights(heap + begin, most, best, temperature)
                             : sum_of_weights(heap, vocab_size, best, temperature));
    }
    kept_candidates kept = {0};
    while (kept.num < most) {
        if (kept.num == num_popped) {
            pop(heap, vocab_size - num_popped++);
        }
        double weight = weight_of(heap[vocab_size - 1 - kept.num].logit, best, temperature);
        bool is_wanted = kept.mass < allowed && weight >= (double)options->min_p;
        if (kept.num > 0 && !is_wanted) {
            break;
        }
        kept.mass += weight;
        kept.num++;
    }
    return kept;
}

static int32_t draw_from_kept(const sampling_candidate *heap, int32_t vocab_size,
                              kept_candidates kept, float temperature, double u)
{
    const sampling_candidate *first = heap + vocab_size - 1;
    double before = 0.0;
    for (int32_t i = 0; i < kept.num; i++) {
        before += weight_of(first[-i].logit, first->logit, temperature);
        if (u * kept.mass < before) {
            return first[-i].id;
        }
    }
    return first[1 - kept.num].id;
}

int32_t sample_token(const float *logits, int32_t vocab_size,
                     const sampling_options *options, int64_t position,
                     sampling_candidate *scratch)
{
    float temperature = options->temperature;
    int32_t best = greedy(logits, vocab_size);
    if (!(temperature > 0.0F) || !isfinite(logits[best])) {
        return best;
    }
    double u = uniform(options->seed, position);
    bool is_filtered = (options->top_k > 0 && options->top_k < vocab_size) ||
                       (options->top_p > 0.0F && options->top_p < 1.0F) ||
                       options->min_p > 0.0F;
    if (!is_filtered) {
        return draw_from_all(logits, vocab_size, logits[best], temperature, u);
    }
    make_heap(logits, vocab_size, scratch);
    kept_candidates kept = keep_best(scratch, vocab_size, options);
    return draw_from_kept(scratch, vocab_size, kept, temperature, u);
}
