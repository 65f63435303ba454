/* weight_format.c - see weight_format.h. */
#include "model/weight_format.h"

#include <string.h>

enum { BLOCK = 128, GROUP = 32, BITS = 8 };

static const char *const names[] = {
    [WEIGHT_F32] = "f32",
    [WEIGHT_BF16] = "bf16",
    [WEIGHT_FP8_BLOCK128] = "fp8_block128",
    [WEIGHT_MXFP8] = "mxfp8",
    [WEIGHT_MXFP4] = "mxfp4",
    [WEIGHT_MXFP4_X4T] = "mxfp4_x4t",
    [WEIGHT_INT4_GROUP32] = "int4_group32",
};
enum { NUM_NAMES = sizeof names / sizeof names[0] };

weight_format weight_format_of_name(const char *name)
{
    for (int i = WEIGHT_F32; i < NUM_NAMES; i++) {
        if (strcmp(names[i], name) == 0) {
            return (weight_format)i;
        }
    }
    return (weight_format)0;
}

const char *weight_format_name(weight_format format)
{
    return (int)format >= WEIGHT_F32 && (int)format < NUM_NAMES ? names[format] : NULL;
}

static size_t ceil_div(size_t value, size_t by)
{
    return value / by + (value % by > 0);
}

/* Where share `rank` of equal shares begins; the last ones of a number that does not divide are
 * shorter, or empty. */
static size_t share_begin(size_t num, size_t num_ranks, size_t rank)
{
    size_t begin = ceil_div(num, num_ranks) * rank;
    return begin < num ? begin : num;
}

/* Blocks of `unit` that the share with most of them touches: a share may begin inside one. */
static size_t most_blocks(size_t num, size_t num_ranks, size_t unit)
{
    size_t share = ceil_div(num, num_ranks);
    size_t most = 0;
    if (share % unit == 0) {
        return share / unit; /* the first one has no fewer than any */
    }
    for (size_t rank = 0; rank < num_ranks; rank++) {
        size_t begin = share_begin(num, num_ranks, rank);
        size_t end = share_begin(num, num_ranks, rank + 1);
        size_t blocks = end > begin ? ceil_div(end, unit) - begin / unit : 0;
        most = blocks > most ? blocks : most;
    }
    return most;
}

/* What a rank has of it, in units of `unit` rows or columns. */
static size_t rows_of(const weight_tensor *tensor, size_t unit)
{
    return most_blocks(tensor->num_rows,
                       tensor->split == SPLIT_ROWS ? tensor->num_ranks : 1, unit);
}

static size_t columns_of(const weight_tensor *tensor, size_t unit)
{
    return most_blocks(tensor->num_columns,
                       tensor->split == SPLIT_COLUMNS ? tensor->num_ranks : 1, unit);
}

static void count_one(const weight_tensor *tensor, byte_sum *sum)
{
    size_t rows = rows_of(tensor, 1);
    size_t columns = columns_of(tensor, 1);
    size_t groups = columns_of(tensor, GROUP);
    switch (tensor->format) {
    case WEIGHT_F32:
        byte_sum_add(sum, byte_sum_product(sum, rows, columns), sizeof(float));
        break;
    case WEIGHT_BF16:
        byte_sum_add(sum, byte_sum_product(sum, rows, columns), sizeof(uint16_t));
        break;
    case WEIGHT_FP8_BLOCK128:
        byte_sum_add(sum, rows, columns);
        byte_sum_add(
            sum, byte_sum_product(sum, rows_of(tensor, BLOCK), columns_of(tensor, BLOCK)),
            sizeof(float));
        break;
    case WEIGHT_MXFP8:
        byte_sum_add(sum, rows, columns);
        byte_sum_add(sum, rows, groups);
        break;
    case WEIGHT_MXFP4:
        byte_sum_add(sum, rows, columns_of(tensor, 2));
        byte_sum_add(sum, rows, groups);
        break;
    case WEIGHT_MXFP4_X4T:
        byte_sum_add(sum, rows, columns_of(tensor, 2));
        byte_sum_add(sum, rows, 1 + ceil_div(groups, BITS));
        break;
    case WEIGHT_INT4_GROUP32:
        byte_sum_add(sum, rows, columns_of(tensor, 2));
        byte_sum_add(sum, byte_sum_product(sum, rows, groups), sizeof(uint16_t));
        break;
    }
}

void weight_tensor_count(const weight_tensor *tensor, size_t num_copies, byte_sum *sum)
{
    byte_sum one = {0};
    count_one(tensor, &one);
    byte_sum_add(sum, one.bytes, num_copies);
    sum->is_overflown = sum->is_overflown || one.is_overflown;
}
