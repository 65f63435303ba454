#include "support/covering.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

enum { MAX_PAIRS = COVERING_MAX_FACTORS * COVERING_MAX_VALUES };

typedef struct pairs {
    bool is_seen[MAX_PAIRS][MAX_PAIRS];
} pairs;

static int id_of(int factor, int value)
{
    return factor * COVERING_MAX_VALUES + value;
}

static void note(pairs *seen, const int *value, int num_factors)
{
    for (int a = 0; a < num_factors; a++) {
        for (int b = 0; b < num_factors; b++) {
            seen->is_seen[id_of(a, value[a])][id_of(b, value[b])] = true;
        }
    }
}

/* How many unseen pairs `value` of `factor` makes with what the case has so far. */
static int gain(const pairs *seen, const int *chosen, int num_factors, int factor,
                int value)
{
    int num = 0;
    for (int other = 0; other < num_factors; other++) {
        if (other != factor && chosen[other] >= 0) {
            num += !seen->is_seen[id_of(factor, value)][id_of(other, chosen[other])];
        }
    }
    return num;
}

static bool start_from_unseen(const pairs *seen, const int *num_values, int num_factors,
                              int *chosen)
{
    for (int a = 0; a < num_factors; a++) {
        for (int b = a + 1; b < num_factors; b++) {
            for (int i = 0; i < num_values[a] * num_values[b]; i++) {
                int first = i / num_values[b];
                int second = i % num_values[b];
                if (!seen->is_seen[id_of(a, first)][id_of(b, second)]) {
                    chosen[a] = first;
                    chosen[b] = second;
                    return true;
                }
            }
        }
    }
    return false;
}

/* turn: where ties begin to be broken, so that cases differ. */
static void choose(const pairs *seen, const int *num_values, int num_factors, int *chosen,
                   int turn)
{
    for (int factor = 0; factor < num_factors; factor++) {
        int best = -1;
        for (int i = 0; i < num_values[factor] && chosen[factor] < 0; i++) {
            int value = (i + turn) % num_values[factor];
            if (best < 0 || gain(seen, chosen, num_factors, factor, value) >
                                gain(seen, chosen, num_factors, factor, best)) {
                best = value;
            }
        }
        chosen[factor] = best < 0 ? chosen[factor] : best;
    }
}

void covering_make(const int *num_values, int num_factors, covering *out)
{
    static pairs seen;
    memset(&seen, 0, sizeof seen);
    out->num_cases = 0;
    for (;;) {
        int *chosen = out->value[out->num_cases];
        memset(chosen, -1, sizeof out->value[0]);
        if (!start_from_unseen(&seen, num_values, num_factors, chosen)) {
            return;
        }
        choose(&seen, num_values, num_factors, chosen, out->num_cases);
        note(&seen, chosen, num_factors);
        out->num_cases++;
        assert(out->num_cases < COVERING_MAX_CASES);
    }
}

int covering_missing(const covering *cases, const int *num_values, int num_factors)
{
    static pairs seen;
    int num = 0;
    memset(&seen, 0, sizeof seen);
    for (int i = 0; i < cases->num_cases; i++) {
        note(&seen, cases->value[i], num_factors);
    }
    for (int a = 0; a < num_factors; a++) {
        for (int b = a + 1; b < num_factors; b++) {
            for (int i = 0; i < num_values[a] * num_values[b]; i++) {
                num +=
                    !seen.is_seen[id_of(a, i / num_values[b])][id_of(b, i % num_values[b])];
            }
        }
    }
    return num;
}
