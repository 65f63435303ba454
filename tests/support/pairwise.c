/* pairwise.c - greedy: a row starts from a pair that is still missing; each other factor, in
 * random order, takes the value that covers most missing pairs with those chosen before. */
#include "support/pairwise.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

enum { NONE = 255 };

typedef struct cover {
    int32_t num_factors;
    const int32_t *num_values;
    int32_t first[PAIRWISE_MAX_FACTORS]; /* of a factor's values among all */
    bool done[PAIRWISE_MAX_VALUES][PAIRWISE_MAX_VALUES];
} cover;

static cover *cover_new(int32_t num_factors, const int32_t *num_values)
{
    cover *c = calloc(1, sizeof *c);
    assert(c && num_factors <= PAIRWISE_MAX_FACTORS);
    c->num_factors = num_factors;
    c->num_values = num_values;
    int32_t total = 0;
    for (int32_t f = 0; f < num_factors; f++) {
        c->first[f] = total;
        total += num_values[f];
    }
    assert(total <= PAIRWISE_MAX_VALUES);
    return c;
}

static int32_t gain(const cover *c, const unsigned char *row, int32_t factor, int32_t value)
{
    int32_t num_new = 0;
    for (int32_t other = 0; other < c->num_factors; other++) {
        if (other != factor && row[other] != NONE) {
            num_new += !c->done[c->first[factor] + value][c->first[other] + row[other]];
        }
    }
    return num_new;
}

static void choose(const cover *c, unsigned char *row, int32_t factor, rng *random)
{
    int32_t start = (int32_t)rng_between(random, 0, c->num_values[factor] - 1);
    int32_t best = -1;
    for (int32_t i = 0; i < c->num_values[factor]; i++) {
        int32_t value = (start + i) % c->num_values[factor];
        int32_t num_new = gain(c, row, factor, value);
        if (num_new > best) {
            best = num_new;
            row[factor] = (unsigned char)value;
        }
    }
}

static void mark(cover *c, const unsigned char *row)
{
    for (int32_t a = 0; a < c->num_factors; a++) {
        for (int32_t b = 0; b < c->num_factors; b++) {
            c->done[c->first[a] + row[a]][c->first[b] + row[b]] = true;
        }
    }
}

static void fill(cover *c, unsigned char *row, rng *random)
{
    int32_t start = (int32_t)rng_between(random, 0, c->num_factors - 1);
    for (int32_t i = 0; i < c->num_factors; i++) {
        int32_t factor = (start + i) % c->num_factors;
        if (row[factor] == NONE) {
            choose(c, row, factor, random);
        }
    }
    mark(c, row);
}

/* The next missing pair of factors a and b; false where there is none. */
static bool seed_row(const cover *c, int32_t a, int32_t b, unsigned char *row)
{
    for (int32_t v = 0; v < c->num_values[a]; v++) {
        for (int32_t w = 0; w < c->num_values[b]; w++) {
            if (!c->done[c->first[a] + v][c->first[b] + w]) {
                for (int32_t f = 0; f < c->num_factors; f++) {
                    row[f] = NONE;
                }
                row[a] = (unsigned char)v;
                row[b] = (unsigned char)w;
                return true;
            }
        }
    }
    return false;
}

pairwise pairwise_plan(int32_t num_factors, const int32_t *num_values, rng *random)
{
    enum { MAX_ROWS = 4096 };
    cover *c = cover_new(num_factors, num_values);
    pairwise plan = {.num_factors = num_factors};
    plan.row = calloc(MAX_ROWS, sizeof *plan.row);
    assert(plan.row);
    for (int32_t a = 0; a < num_factors; a++) {
        for (int32_t b = a + 1; b < num_factors; b++) {
            while (seed_row(c, a, b, plan.row[plan.num_rows])) {
                fill(c, plan.row[plan.num_rows], random);
                plan.num_rows++;
                assert(plan.num_rows < MAX_ROWS);
            }
        }
    }
    free(c);
    return plan;
}

void pairwise_drop(pairwise *plan)
{
    free(plan->row);
    *plan = (pairwise){0};
}

int64_t pairwise_num_missing(const pairwise *plan, const int32_t *num_values,
                             int32_t num_rows)
{
    cover *c = cover_new(plan->num_factors, num_values);
    for (int32_t i = 0; i < num_rows; i++) {
        mark(c, plan->row[i]);
    }
    int64_t num_missing = 0;
    for (int32_t a = 0; a < plan->num_factors; a++) {
        for (int32_t b = a + 1; b < plan->num_factors; b++) {
            for (int32_t i = 0; i < num_values[a] * num_values[b]; i++) {
                num_missing += !c->done[c->first[a] + i / num_values[b]]
                                       [c->first[b] + i % num_values[b]];
            }
        }
    }
    free(c);
    return num_missing;
}
