/* qualify_pass.h - one part of a case with one size of numbers: its rig, its answers, and the
 * judgement of them. */
#ifndef MLA_CLI_QUALIFY_PASS_H
#define MLA_CLI_QUALIFY_PASS_H

#include "cli/qualify_run.h"

enum {
    QUALIFY_WINDOWS = 4,
    QUALIFY_ANSWERS = 1 + 3 + 4 + QUALIFY_ROWS, /* rows of all windows */
    QUALIFY_KEPT = 2 * QUALIFY_EMPTY,           /* a content's, of either interleave */
};

/* Runs of 1, 3 and 4 query rows, and of all. */
extern const qualify_window qualify_windows[QUALIFY_WINDOWS];

/* Contents that windows attend to, one after the other. */
typedef struct qualify_lap {
    int32_t first_window, num_windows;
    const int32_t *steps;
    int32_t num_steps;
} qualify_lap;

/* What all windows gave, one after the other. */
typedef struct qualify_answers {
    float *out; /* [ANSWERS][H][D]; NULL: nothing yet */
    float *lse; /* [ANSWERS][H]; behind them */
} qualify_answers;

typedef struct qualify_pass {
    qualify_rig rig;
    mlai_pool *pool;
    qualify_result *result;
    qualify_size size;
    qualify_lap lap;
    int32_t first_row, num_rows; /* of the lap, in the answers */
    int32_t content;
    qualify_answers now, kept[QUALIFY_KEPT];
    bool is_kept[QUALIFY_KEPT][QUALIFY_WINDOWS]; /* by the first window of a lap */
    float *parts, *part_lse;      /* [ANSWERS][H][RANKS][D], [ANSWERS][H][RANKS] */
    const qualify_answers *whole; /* of one device, for the same content; or NULL */
    attention_verdict verdict[QUALIFY_ANSWERS];
    attention_finding apart[QUALIFY_ANSWERS];
} qualify_pass;

/* pass: {.rig, .result, .size} before; whatever comes, qualify_pass_close. */
mla_status qualify_pass_open(qualify_pass *pass, mla_plan *plan, mla_error *err);
void qualify_pass_close(qualify_pass *pass);

void qualify_pass_begin_lap(qualify_pass *pass, const qualify_lap *lap);
int32_t qualify_pass_rows(const qualify_pass *pass, int32_t window);

/* Judges the lap's answers of now against the oracle, against one device, and against those of
 * the same content before: the first are kept. What is wrong goes into the result. */
mla_status qualify_pass_judge(qualify_pass *pass, int32_t interleave, mla_error *err);

/* Keeps the first sentence that says what is wrong with a case. */
void qualify_pass_note_failure(const qualify_pass *pass, int32_t interleave,
                               mla_error *err);

#endif
