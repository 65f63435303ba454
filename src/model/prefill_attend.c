/* prefill_attend.c - un-absorbed attention: cached rows become keys and values of every
 * head, one block of the absolute grid at a time, and each query row carries a running
 * softmax over the blocks.
 *
 * A row's bits depend on its position and what is cached before it only: blocks begin at
 * multiples of MODEL_CHUNK_TOKENS, each score is one chain over the key's width, and in the
 * block where keys end each row sums over exactly the keys that it sees. */
#include <math.h>

#include "attention/row_layout.h"
#include "base/size.h"
#include "model/prefill.h"

enum { CELL = MODEL_CHUNK_TOKENS, GATHER_ROWS = 32 };

/* Keys [first_key, first_key + num_keys) against the rows of the chunk. */
typedef struct key_block {
    const model_pass *pass;
    const model_chunk *chunk;
    const unsigned char *pool;
    int64_t first_key;
    int32_t num_keys, num_row_groups;
} key_block;

/* Cached rows -> rows [C][D+R] and rope_keys [R][C]. */
static void gather_task(void *arg, int64_t index, int32_t worker)
{
    const key_block *block = arg;
    const model *self = block->pass->model;
    const model_config *config = &self->config;
    int32_t latent = config->kv_lora_rank;
    int32_t rope_dim = config->qk_rope_head_dim;
    int32_t end = (int32_t)(index + 1) * GATHER_ROWS;
    (void)worker;
    end = end < block->num_keys ? end : block->num_keys;
    for (int32_t i = (int32_t)index * GATHER_ROWS; i < end; i++) {
        int64_t key = block->first_key + i;
        size_t page = (size_t)block->chunk->block_table[key / MODEL_PAGE_TOKENS];
        size_t slot = page * MODEL_PAGE_TOKENS + (size_t)(key % MODEL_PAGE_TOKENS);
        float *out = self->act.rows + (size_t)i * (size_t)(latent + rope_dim);
        mlai_row_decode(self->limits.kv_format, latent, rope_dim,
                        block->pool + slot * self->row_bytes, self->act.kv_scale[0], out);
        for (int32_t r = 0; r < rope_dim; r++) {
            self->act.rope_keys[(size_t)r * CELL + (size_t)i] = out[latent + r];
        }
    }
}

/* kv_b times the latents -> keys [H][P+V][C] */
static void up_project(const key_block *block, const matrix *kv_b)
{
    const model *self = block->pass->model;
    gemm job = gemm_of_matrix(kv_b, self->act.rows, block->num_keys, self->act.keys);
    job.x_stride = (size_t)config_row_dim(&self->config);
    job.y_stride = 1;
    job.y_out_stride = CELL;
    gemm_run(self->ops, self->threads, GEMM_NT, &job, 1);
}

/* Some rows of one head against one block. */
typedef struct row_group {
    const key_block *block;
    float *scores;     /* [ATTEND_ROWS][C] */
    const float *keys; /* [P+V][C] of this head */
    int32_t head, row_begin, row_end;
} row_group;

static int32_t visible_keys(const key_block *block, int32_t row)
{
    int64_t visible = block->chunk->first_position + row - block->first_key + 1;
    return (int32_t)(visible < CELL ? visible : CELL);
}

/* [P+R] of this head and row. */
static float *query_of(const row_group *group, int32_t row)
{
    const model *self = group->block->pass->model;
    size_t heads = (size_t)self->config.num_heads;
    return self->act.q + ((size_t)row * heads + (size_t)group->head) *
                             (size_t)config_head_dim(&self->config);
}

/* [V] of this head and row. */
static float *output_of(const row_group *group, int32_t row)
{
    const model *self = group->block->pass->model;
    size_t heads = (size_t)self->config.num_heads;
    return self->act.attended +
           ((size_t)row * heads + (size_t)group->head) * (size_t)self->config.v_head_dim;
}

static void score_keys(const row_group *group)
{
    const model *self = group->block->pass->model;
    const model_config *config = &self->config;
    gemm_tile tile = {.row_end = group->row_end - group->row_begin,
                      .out_end = visible_keys(group->block, group->row_end - 1)};
    gemm job = {.w = group->keys,
                .w_stride = CELL,
                .w_dtype = MLA_F32,
                .num_out = CELL,
                .depth = config->qk_nope_head_dim,
                .x = query_of(group, group->row_begin),
                .x_stride = (size_t)config->num_heads * (size_t)config_head_dim(config),
                .y = group->scores,
                .y_stride = CELL,
                .y_out_stride = 1,
                .num_rows = tile.row_end};
    self->ops->gemm_nn(&job, &tile);
    job.w = self->act.rope_keys;
    job.depth = config->qk_rope_head_dim;
    job.x += config->qk_nope_head_dim;
    job.is_added = true;
    self->ops->gemm_nn(&job, &tile);
}

/* Scores -> weights relative to the new maximum; what the row has so far shrinks to it. */
static void weigh_row(const row_group *group, int32_t row)
{
    const key_block *block = group->block;
    const model *self = block->pass->model;
    size_t index = (size_t)row * (size_t)self->config.num_heads + (size_t)group->head;
    float *max = &self->act.row_max[index];
    float *weight = &self->act.row_weight[index];
    float *scores = group->scores + (size_t)(row - group->row_begin) * CELL;
    float *out = output_of(group, row);
    int32_t num_keys = visible_keys(block, row);
    float scale = self->config.softmax_scale;
    float block_max = scale * self->ops->max_of(scores, num_keys);
    bool is_first = block->first_key == 0;
    float new_max = is_first || block_max > *max ? block_max : *max;
    float shrink = is_first ? 0.0F : expf(*max - new_max);
    float sum = self->ops->exp_sum(scores, num_keys, scale, new_max);
    *weight = is_first ? sum : *weight * shrink + sum;
    *max = new_max;
    for (int32_t v = 0; v < self->config.v_head_dim; v++) {
        out[v] = is_first ? 0.0F : out[v] * shrink;
    }
}

/* Adds weights times values for rows that all see num_keys keys. */
static void add_values(const row_group *group, int32_t begin, int32_t end, int32_t num_keys)
{
    const model *self = group->block->pass->model;
    const model_config *config = &self->config;
    gemm_tile tile = {.row_end = end - begin, .out_end = config->v_head_dim};
    gemm job = {.w = group->keys + (size_t)config->qk_nope_head_dim * CELL,
                .w_stride = CELL,
                .w_dtype = MLA_F32,
                .num_out = config->v_head_dim,
                .depth = num_keys,
                .x = group->scores + (size_t)(begin - group->row_begin) * CELL,
                .x_stride = CELL,
                .y = output_of(group, begin),
                .y_stride = (size_t)config->num_heads * (size_t)config->v_head_dim,
                .y_out_stride = 1,
                .num_rows = tile.row_end,
                .is_added = true};
    self->ops->gemm_nt(&job, &tile);
}

static void attend_task(void *arg, int64_t index, int32_t worker)
{
    const key_block *block = arg;
    const model *self = block->pass->model;
    const model_config *config = &self->config;
    size_t key_dims = (size_t)config->qk_nope_head_dim + (size_t)config->v_head_dim;
    row_group group = {.block = block,
                       .head = (int32_t)(index / block->num_row_groups),
                       .row_begin = (int32_t)(index % block->num_row_groups) * ATTEND_ROWS};
    int32_t end = group.row_begin + ATTEND_ROWS;
    group.row_end = end < block->pass->num_rows ? end : block->pass->num_rows;
    group.scores = self->act.scores + (size_t)worker * ATTEND_ROWS * CELL;
    group.keys = self->act.keys + (size_t)group.head * key_dims * CELL;
    score_keys(&group);
    for (int32_t row = group.row_begin; row < group.row_end; row++) {
        weigh_row(&group, row);
    }
    if (visible_keys(block, group.row_begin) == CELL) {
        add_values(&group, group.row_begin, group.row_end, CELL);
        return;
    }
    for (int32_t row = group.row_begin; row < group.row_end; row++) {
        add_values(&group, row, row + 1, visible_keys(block, row));
    }
}

static void normalise(const model_pass *pass)
{
    const model_config *config = &pass->model->config;
    const activations *act = &pass->model->act;
    size_t num = (size_t)pass->num_rows * (size_t)config->num_heads;
    size_t values = (size_t)config->v_head_dim;
    for (size_t i = 0; i < num; i++) {
        float inverse = 1.0F / act->row_weight[i];
        for (size_t v = 0; v < values; v++) {
            act->attended[i * values + v] *= inverse;
        }
    }
}

void prefill_attend(const model_pass *pass, int32_t layer, const model_chunk *chunk)
{
    model *self = pass->model;
    int64_t num_keys = chunk->first_position + chunk->num_tokens;
    key_block block = {
        .pass = pass,
        .chunk = chunk,
        .pool = self->layers[layer].pool,
        .num_row_groups = (int32_t)mlai_ceil_div(pass->num_rows, ATTEND_ROWS),
    };
    for (; block.first_key < num_keys; block.first_key += CELL) {
        int64_t left = num_keys - block.first_key;
        block.num_keys = (int32_t)(left < CELL ? left : CELL);
        mlai_pool_run(self->threads, mlai_ceil_div(block.num_keys, GATHER_ROWS),
                      gather_task, &block);
        up_project(&block, &self->weights.layers[layer].kv_b);
        mlai_pool_run(self->threads, (int64_t)self->config.num_heads * block.num_row_groups,
                      attend_task, &block);
    }
    normalise(pass);
}
