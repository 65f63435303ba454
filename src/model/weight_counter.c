/* weight_counter.c - see weight_counter.h. */
#include "model/weight_counter.h"

#include <string.h>

mla_status weight_counter_begin(weight_counter *counter, const model_shape *shape,
                                const weight_storage *storage, mla_error *err)
{
    memset(counter, 0, sizeof *counter);
    counter->shape = shape;
    counter->storage = storage;
    MLAI_CHECK(storage->num_ranks % storage->expert_ranks == 0, MLA_ERR_ARGUMENT,
               "%d expert ranks do not divide %d tensor ranks", storage->expert_ranks,
               storage->num_ranks);
    MLAI_CHECK(shape->config.num_heads % storage->num_ranks == 0, MLA_ERR_ARGUMENT,
               "%d tensor ranks do not divide %d heads", storage->num_ranks,
               shape->config.num_heads);
    MLAI_CHECK(shape->kda.num_layers == 0 || shape->kda.num_heads % storage->num_ranks == 0,
               MLA_ERR_ARGUMENT, "%d tensor ranks do not divide %d KDA heads",
               storage->num_ranks, shape->kda.num_heads);
    return MLA_OK;
}

static weight_format format_of(const weight_counter *counter, const counted_tensor *tensor)
{
    const weight_storage *storage = counter->storage;
    if (tensor->is_f32) {
        return WEIGHT_F32;
    }
    if (tensor->is_vector || tensor->num_columns == 1 || tensor->part == PART_EMBEDDING ||
        tensor->part == PART_OTHERS) {
        return storage->others;
    }
    return tensor->part == PART_EXPERTS ? storage->experts : storage->linears;
}

static mla_status check_split(const counted_tensor *tensor, int32_t num_ranks,
                              mla_error *err)
{
    int32_t cut = tensor->split == SPLIT_ROWS      ? tensor->num_rows
                  : tensor->split == SPLIT_COLUMNS ? tensor->num_columns
                                                   : 0;
    MLAI_CHECK(tensor->may_be_uneven || cut % num_ranks == 0, MLA_ERR_ARGUMENT,
               "%d ranks do not divide the %d %s of %s", num_ranks, cut,
               tensor->split == SPLIT_ROWS ? "rows" : "columns", tensor->name);
    return MLA_OK;
}

mla_status weight_counter_add(weight_counter *counter, const counted_tensor *tensor,
                              mla_error *err)
{
    const weight_storage *storage = counter->storage;
    bool is_expert = tensor->part == PART_EXPERTS;
    int32_t num_experts = is_expert ? counter->shape->config.num_experts : 1;
    int32_t groups = is_expert ? storage->expert_ranks : 1;
    int32_t num_ranks = storage->num_ranks / groups;
    MLAI_TRY(check_split(tensor, num_ranks, err));
    const weight_tensor whole = {
        .num_rows = (size_t)tensor->num_rows,
        .num_columns = (size_t)tensor->num_columns,
        .format = format_of(counter, tensor),
        .split = tensor->split,
        .num_ranks = (size_t)num_ranks,
    };
    size_t copies = (size_t)tensor->num_copies;
    size_t of_a_rank = (size_t)mlai_ceil_div(num_experts, groups);
    byte_sum_add(&counter->parameters,
                 byte_sum_product(&counter->parameters, whole.num_rows, whole.num_columns),
                 copies * (size_t)num_experts);
    weight_tensor_count(&whole, copies * of_a_rank, &counter->bytes[tensor->part]);
    return MLA_OK;
}

mla_status weight_counter_total(const weight_counter *counter, uint64_t *bytes,
                                mla_error *err)
{
    byte_sum total = {0};
    for (int i = 0; i < NUM_PARTS; i++) {
        byte_sum_join(&total, counter->bytes[i]);
    }
    MLAI_CHECK(!total.is_overflown && total.bytes <= INT64_MAX &&
                   !counter->parameters.is_overflown,
               MLA_ERR_ARGUMENT, "the weights are more bytes than can be counted");
    *bytes = total.bytes;
    return MLA_OK;
}
