/* lane.h - one workspace for all plans that run in turn on one lane (the target's layers, the
 * drafter's): as large as the largest of them asks for, in the backend's space. It is borrowed
 * for a step and given back; a loan that overlaps another is an error, never two runs in the
 * same memory. Any thread may ask. */
#ifndef MLA_ATTENTION_LANE_H
#define MLA_ATTENTION_LANE_H

#include "attention/context.h"

typedef struct mlai_lane {
    mla_context *context;
    mla_purpose purpose;
    void *data; /* owned */
    size_t bytes;
    bool is_fixed;               /* graphs may hold its address */
    _Atomic uint64_t generation; /* odd: lent */
} mlai_lane;

/* What a borrower shows when it gives back. */
typedef struct mlai_loan {
    mla_out workspace;
    uint64_t generation;
} mlai_loan;

/* Empty. context: borrowed until mlai_lane_close. */
mlai_lane mlai_lane_open(mla_context *context, mla_purpose purpose);
void mlai_lane_close(mlai_lane *lane); /* waits for the device */

/* Makes room for `bytes`, and waits for the device before what was there goes. MLA_ERR_STATE
 * while lent, and once fixed where it would grow. */
mla_status mlai_lane_reserve(mlai_lane *lane, size_t bytes, mla_error *err);

/* From here on the address stays: before the first capture. */
void mlai_lane_fix(mlai_lane *lane);

/* MLA_ERR_STATE while lent to somebody else; MLA_ERR_BUFFER_SMALL where too little is
 * reserved. Takes no memory. */
mla_status mlai_lane_borrow(mlai_lane *lane, size_t bytes, mlai_loan *out, mla_error *err);

/* MLA_ERR_STATE for a loan that was given back before. */
mla_status mlai_lane_give_back(mlai_lane *lane, const mlai_loan *loan, mla_error *err);

#endif
