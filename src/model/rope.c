/* rope.c - frequencies, angles and rotations: see rope.h. */
#include "model/rope.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

static double clamp(double x, double low, double high)
{
    return x < low ? low : (x > high ? high : x);
}

/* The pair whose wave makes `rotations` turns over the original context. */
static double pair_of_rotations(const rope_config *config, int32_t rope_dim,
                                double rotations)
{
    double wave = (double)config->original_max_positions / (rotations * 2.0 * pi);
    return rope_dim * log(wave) / (2.0 * log(config->theta));
}

/* Fast waves keep their frequency, slow ones are stretched, a ramp lies between. */
static double yarn_blend(const rope_config *config, int32_t rope_dim, int32_t pair,
                         double inv_freq)
{
    double low = floor(pair_of_rotations(config, rope_dim, config->beta_fast));
    double high = ceil(pair_of_rotations(config, rope_dim, config->beta_slow));
    low = low > 0.0 ? low : 0.0;
    high = high < rope_dim - 1 ? high : rope_dim - 1;
    if (low == high) {
        high += 0.001;
    }
    double ramp = clamp((pair - low) / (high - low), 0.0, 1.0);
    return inv_freq / config->factor * ramp + inv_freq * (1.0 - ramp);
}

void rope_frequencies(const rope_config *config, int32_t rope_dim, double *inv_freq)
{
    for (int32_t i = 0; i < rope_dim / 2; i++) {
        double plain = pow(config->theta, -2.0 * i / rope_dim);
        inv_freq[i] = config->is_yarn ? yarn_blend(config, rope_dim, i, plain) : plain;
    }
}

float rope_magnitude(const rope_config *config)
{
    if (!config->is_yarn) {
        return 1.0F;
    }
    return (float)(rope_m(config->factor, config->mscale) /
                   rope_m(config->factor, config->mscale_all_dim));
}

void rope_angles(const double *inv_freq, int32_t rope_dim, float magnitude,
                 int64_t position, float *angles)
{
    for (size_t i = 0; i < (size_t)rope_dim / 2; i++) {
        double angle = (double)position * inv_freq[i];
        angles[2 * i] = (float)(cos(angle) * (double)magnitude);
        angles[2 * i + 1] = (float)(sin(angle) * (double)magnitude);
    }
}

void rope_rotate(const float *angles, int32_t rope_dim, bool is_interleaved, float *x)
{
    size_t half = (size_t)rope_dim / 2;
    for (size_t i = 0; i < half; i++) {
        float *a = is_interleaved ? &x[2 * i] : &x[i];
        float *b = is_interleaved ? a + 1 : a + half;
        float cosine = angles[2 * i];
        float sine = angles[2 * i + 1];
        float first = *a;
        *a = first * cosine - *b * sine;
        *b = first * sine + *b * cosine;
    }
}
