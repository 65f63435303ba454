/* rope.h - rotary positions: frequencies once, angles once a forward pass, then rotations.
 * Angles are worked out in double precision from the integer position. */
#ifndef MLA_MODEL_ROPE_H
#define MLA_MODEL_ROPE_H

#include "model/config.h"

/* inv_freq: [rope_dim / 2] radians a position, YaRN's blend where the config has it. */
void rope_frequencies(const rope_config *config, int32_t rope_dim, double *inv_freq);

/* What YaRN multiplies cosines and sines by; 1 without. The softmax scale has a factor of
 * its own, which is in config.softmax_scale. */
float rope_magnitude(const rope_config *config);

/* angles: [rope_dim / 2][2], the cosine and the sine of each pair, times magnitude. */
void rope_angles(const double *inv_freq, int32_t rope_dim, float magnitude,
                 int64_t position, float *angles);

/* x: [rope_dim], rotated in place. Pairs are (2i, 2i+1) where is_interleaved, else
 * (i, i + rope_dim / 2). */
void rope_rotate(const float *angles, int32_t rope_dim, bool is_interleaved, float *x);

#endif
