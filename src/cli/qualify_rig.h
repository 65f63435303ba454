/* qualify_rig.h - one part of a case on the device: a plan with its buffers, and how keys,
 * tables and queries get into them. */
#ifndef MLA_CLI_QUALIFY_RIG_H
#define MLA_CLI_QUALIFY_RIG_H

#include "attention/placement.h"
#include "cli/attention_call.h"
#include "cli/qualify_input.h"

typedef struct qualify_rig {
    const qualify_case *c;
    qualify_part part;
    mla_caps caps;
    const qualify_input *input;
    attention_call call;
    float *rows; /* [TOKENS][W]: keys on their way into the pool */
} qualify_rig;

/* Which keys: those of a rank. One rank has all. */
typedef struct qualify_share {
    mlai_placement placement;
    int32_t rank;
} qualify_share;

/* Requests that run together. */
typedef struct qualify_window {
    int32_t first, num;
} qualify_window;

/* out: {.c, .part, .caps, .input} before; whatever comes, qualify_rig_close. */
mla_status qualify_rig_open(mla_plan *plan, qualify_rig *out, mla_error *err);
void qualify_rig_close(qualify_rig *rig);

/* Of a case of replays, before any: while the requests have no keys. */
mla_status qualify_rig_record(qualify_rig *rig, qualify_window window, mla_error *err);

/* Writes the keys that a share has of the window into the pages of the content: those of rank
 * 0 after NaN all over these pages, those of others over what the rank before them left. */
mla_status qualify_rig_store(qualify_rig *rig, int32_t content, qualify_share share,
                             qualify_window window, mla_error *err);

/* Runs (or replays) the window; the result is then on the host side, NaN where nothing was
 * written. */
mla_status qualify_rig_run(qualify_rig *rig, int32_t content, qualify_share share,
                           qualify_window window, mla_error *err);

/* Of the last run, row by row of the window. */
attention_answer qualify_rig_answer(const qualify_rig *rig, int32_t row, int32_t head);

/* The bytes from the pool's begin to the end of the last page that a case uses. */
int64_t qualify_rig_reach(const qualify_rig *rig);

#endif
