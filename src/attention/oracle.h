/* oracle.h - attention in double precision, two passes, no tricks: what every kernel is
 * measured against. It reads the stored rows, so quantisation is its input, not an error.
 * docs/numerics.md derives the bound that goes with it. */
#ifndef MLA_ATTENTION_ORACLE_H
#define MLA_ATTENTION_ORACLE_H

#include "mla/mla.h"

typedef struct mlai_oracle_out {
    double *out; /* [Q][H][D] */
    double *lse; /* [Q][H] */
    double
        *magnitude; /* [Q][H][D]: A = sum of p_i |v_i|, which scales the bound; or NULL */
    /* [Q][H]: largest scale * sum |q_d k_d| of a visible key, infinite ones aside; or NULL */
    double *score_magnitude;
} mlai_oracle_out;

/* caps, buffers, batch: read. Same rules as mla_run for lengths, tables and windows. */
void mlai_oracle_attend(const mla_caps *caps, const mla_buffers *buffers,
                        const mla_batch *batch, const mlai_oracle_out *out);

#endif
