/* weight_format.h - how many bytes a weight tensor takes in the formats that checkpoints and
 * their servers use, whole or as one rank's part, its scales included. */
#ifndef MLA_MODEL_WEIGHT_FORMAT_H
#define MLA_MODEL_WEIGHT_FORMAT_H

#include "model/byte_sum.h"

typedef enum weight_format {
    WEIGHT_F32 = 1,
    WEIGHT_BF16,
    WEIGHT_FP8_BLOCK128, /* e4m3, and an f32 scale for each 128 x 128 block */
    WEIGHT_MXFP8,        /* e4m3, and an e8m0 scale for each 32 columns of a row */
    WEIGHT_MXFP4,        /* e2m1, and the same */
    WEIGHT_MXFP4_X4T, /* e2m1; of the scales one byte a row and one bit each, no exceptions */
    WEIGHT_INT4_GROUP32, /* 4-bit integers, and a bf16 scale for each 32 columns of a row */
} weight_format;

/* "bf16"; 0 where no format has the name. */
weight_format weight_format_of_name(const char *name);
const char *weight_format_name(weight_format format); /* NULL where it is none */

typedef enum weight_split { SPLIT_NONE, SPLIT_ROWS, SPLIT_COLUMNS } weight_split;

/* A tensor of num_rows x num_columns and the share of it that a rank keeps: of equal contiguous
 * shares of the rows or of the columns, the one that takes most bytes. */
typedef struct weight_tensor {
    size_t num_rows, num_columns;
    weight_format format;
    weight_split split;
    size_t num_ranks; /* at least 1 */
} weight_tensor;

/* sum += copies of it. */
void weight_tensor_count(const weight_tensor *tensor, size_t num_copies, byte_sum *sum);

#endif
