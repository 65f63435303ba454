/* footprint_activations.c - what a forward pass works in, and what preparing its plan does.
 *
 * On a CPU the arrays are those that model/activations.h lays out, and the engine's beside them.
 * For a CUDA device, where no model runs yet, and for models that cannot be run, they are counted
 * the same way: each array of a row once, of which all layers take turns, in bf16 (CPU: f32). Rows
 * are those of the larger of a prefill piece and a step in which every request verifies a draft.
 *
 * The operands and the workspace of attention are what libmla asks of its caller for such a step,
 * and the session's peak is what it tries that plan out on. */
#include "attention/cpu/workspace.h"
#include "attention/cuda/programs.h"
#include "attention/operands.h"
#include "attention/placement.h"
#include "model/activations.h"
#include "model/footprint_parts.h"
#include "model/model.h"

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t value_bytes_of(const profile *self)
{
    return self->backend == MLA_BACKEND_CUDA ? sizeof(uint16_t) : sizeof(float);
}

/* Values of a row in the attention of one layer: the wider of the two kinds. */
static size_t attention_width(const profile *self)
{
    const model_shape *shape = &self->shape;
    const model_config *c = &shape->config;
    size_t heads = (size_t)(c->num_heads / self->is.tensor);
    size_t kda_heads = (size_t)(shape->kda.num_heads / self->is.tensor);
    size_t gates = shape->has_output_gate ? 2 : 1;
    size_t mla = (size_t)c->q_lora_rank +
                 heads * (size_t)(c->qk_nope_head_dim + c->qk_rope_head_dim) +
                 (size_t)(c->kv_lora_rank + c->qk_rope_head_dim) +
                 gates * heads * (size_t)c->v_head_dim;
    size_t kda = shape->kda.num_layers > 0 ? 5 * kda_heads * (size_t)shape->kda.head_dim
                                           : 0; /* q, k, v, gate, output */
    return max_size(mla, kda);
}

/* A dense layer's two inner rows, or the shared experts' and those of the chosen ones. */
static size_t mlp_width(const profile *self)
{
    const model_config *c = &self->shape.config;
    size_t ranks = (size_t)self->is.tensor;
    size_t expert_ranks = ranks / (size_t)self->is.expert;
    size_t shared =
        (size_t)c->moe_intermediate_size * (size_t)c->num_shared_experts / ranks;
    size_t chosen = (size_t)c->experts_per_token *
                    (2 * ((size_t)c->moe_intermediate_size / expert_ranks) +
                     (size_t)self->shape.expert_width);
    size_t dense = 2 * ((size_t)c->intermediate_size / ranks);
    return c->num_experts > 0 ? max_size(dense, 2 * shared + chosen) : dense;
}

static size_t residual_width(const profile *self)
{
    const model_shape *shape = &self->shape;
    size_t kept = shape->residual_span > 0 ? (size_t)mlai_ceil_div(shape->config.num_layers,
                                                                   shape->residual_span)
                                           : 0;
    return (size_t)shape->config.hidden_size * (2 + kept);
}

static byte_sum count_rows(const profile *self, const footprint *print)
{
    size_t rows = max_size((size_t)self->is.prefill_tokens, (size_t)print->step_rows);
    byte_sum row = {0};
    byte_sum all = {0};
    byte_sum_add(&row, residual_width(self) + attention_width(self) + mlp_width(self),
                 value_bytes_of(self));
    byte_sum_add(&row, (size_t)self->shape.config.num_experts, sizeof(float)); /* router */
    byte_sum_add(&all, rows, row.bytes);
    all.is_overflown = all.is_overflown || row.is_overflown;
    return all;
}

static bool is_laid_out(const profile *self)
{
    const model_shape *shape = &self->shape;
    return self->backend == MLA_BACKEND_CPU && shape->kda.num_layers == 0 &&
           !shape->has_output_gate && shape->residual_span == 0 &&
           shape->expert_width == shape->config.hidden_size;
}

/* The arrays of a rank's share of the model, those of the absorbed form included. */
static byte_sum count_arrays(const profile *self, const footprint *print,
                             const mla_requirements *needs)
{
    const profile_numbers *is = &self->is;
    model_config share = self->shape.config;
    share.num_heads /= (int32_t)is->tensor;
    share.intermediate_size /= (int32_t)is->tensor;
    share.moe_intermediate_size /= (int32_t)(is->tensor / is->expert);
    const activation_limits limits = {
        .max_rows = is->prefill_tokens > print->step_rows ? (int32_t)is->prefill_tokens
                                                          : print->step_rows,
        .num_threads = (int32_t)is->threads,
        .needs = needs,
    };
    carve count = {0};
    activations unused;
    activations_lay_out(&share, &limits, &count, &unused);
    return (byte_sum){.bytes = count.used_bytes, .is_overflown = count.is_overflown};
}

/* The engine knows each request's tokens, and how often each word has come. */
static byte_sum count_words(const profile *self, const footprint *print)
{
    size_t words =
        (size_t)self->is.max_context_tokens + (size_t)self->shape.config.vocab_size;
    byte_sum all = {0};
    byte_sum_add(&all, byte_sum_product(&all, (size_t)print->concurrency, words),
                 sizeof(int32_t));
    return all;
}

static byte_sum count_logits(const profile *self, const footprint *print)
{
    byte_sum all = {0};
    size_t vocab = (size_t)mlai_ceil_div(self->shape.config.vocab_size, self->is.tensor);
    byte_sum_add(&all, byte_sum_product(&all, (size_t)print->step_rows, vocab),
                 sizeof(float));
    return all;
}

/* Un-absorbed prefill reads earlier rows a block at a time: the rows, and the keys and the values
 * that they become. With context ranks the block is that many times as long. */
static byte_sum count_prefill(const profile *self)
{
    const model_config *c = &self->shape.config;
    byte_sum all = {0};
    size_t heads = (size_t)(c->num_heads / self->is.tensor);
    size_t width = (size_t)(c->kv_lora_rank + c->qk_rope_head_dim) +
                   heads * (size_t)(c->qk_nope_head_dim + c->v_head_dim);
    size_t block = MODEL_CHUNK_TOKENS * (size_t)self->is.context;
    byte_sum_add(&all, byte_sum_product(&all, block, width), value_bytes_of(self));
    return all;
}

/* With context ranks every rank attends for the heads of its whole group. */
static int32_t attended_heads(const profile *self)
{
    return (int32_t)(self->shape.config.num_heads / self->is.tensor * self->is.context);
}

static mla_caps caps_of(const profile *self, const footprint *print)
{
    const profile_numbers *is = &self->is;
    const model_config *config = &self->shape.config;
    bool is_cuda = self->backend == MLA_BACKEND_CUDA;
    const mlai_placement placement = {.num_ranks = (int32_t)is->context,
                                      .interleave = (int32_t)is->interleave};
    mla_caps caps = MLA_INIT(mla_caps);
    caps.mode = is->rows_per_request > 1 ? MLA_VERIFY : MLA_DECODE;
    caps.kv_format = self->kv_format;
    caps.query_dtype = is_cuda ? MLA_BF16 : MLA_F32;
    caps.output_dtype =
        is_cuda && is->context == 1 ? MLA_BF16 : MLA_F32; /* partials: f32 */
    caps.num_heads = attended_heads(self);
    caps.latent_dim = config->kv_lora_rank;
    caps.rope_dim = config->qk_rope_head_dim;
    caps.page_tokens = (int32_t)is->page_tokens;
    caps.causal = 1;
    caps.softmax_scale = 1.0F; /* changes no size */
    caps.max_requests = print->concurrency;
    caps.max_query_rows = print->step_rows;
    caps.max_rows_per_request = (int32_t)is->rows_per_request;
    caps.interleave = (int32_t)is->interleave;
    caps.max_context_tokens =
        mlai_placement_local_length(placement, 0, is->max_context_tokens);
    caps.table_width = (int32_t)mlai_ceil_div(caps.max_context_tokens, is->page_tokens);
    caps.num_pages = print->tokens.pool_pages > 0 ? print->tokens.pool_pages : 1;
    return caps;
}

static mla_status workspace_of(const profile *self, const mlai_geometry *geometry,
                               size_t *bytes, mla_error *err)
{
    if (self->backend == MLA_BACKEND_CPU) {
        mlai_cpu_layout layout;
        MLAI_TRY(mlai_cpu_layout_of(geometry, &mlai_cpu_kernels_c,
                                    (int32_t)self->is.threads, &layout, err));
        *bytes = layout.bytes;
        return MLA_OK;
    }
    const mlai_cuda_device device = {
        .major = (int32_t)self->is.compute_major,
        .minor = (int32_t)self->is.compute_minor,
        .num_units = (int32_t)self->is.multiprocessors,
        .shared_unit_bytes = (size_t)self->is.shared_unit_bytes,
        .shared_block_bytes = (size_t)self->is.shared_block_bytes,
    };
    mlai_cuda_shape shape;
    MLAI_TRY(mlai_cuda_shape_of(geometry, &device, &shape, err));
    *bytes = shape.workspace_bytes;
    return MLA_OK;
}

static byte_sum operands_of(const mla_requirements *needs)
{
    byte_sum all = {0};
    const mla_need *each[] = {&needs->query,        &needs->output,
                              &needs->lse,          &needs->block_table,
                              &needs->context_lens, &needs->query_starts};
    for (size_t i = 0; i < sizeof each / sizeof(mla_need *); i++) {
        byte_sum_add(&all, 1, each[i]->bytes);
    }
    return all;
}

mla_status footprint_count_activations(const profile *self, footprint *print,
                                       mla_error *err)
{
    mla_caps caps = caps_of(self, print);
    mlai_geometry geometry;
    mla_requirements needs;
    byte_sum workspace = {0};
    MLAI_TRY(mlai_geometry_of(&caps, &geometry, err));
    MLAI_TRY(workspace_of(self, &geometry, &workspace.bytes, err));
    mlai_geometry_requirements(&geometry, MLA_SPACE_DEVICE, &needs);
    print->classes[MLA_FOR_SESSION].peak_bytes =
        mlai_operands_bytes(&geometry, workspace.bytes); /* and 0 when prepared */
    if (is_laid_out(self)) {
        footprint_add(print, MLA_FOR_ACTIVATIONS, "model arrays",
                      count_arrays(self, print, &needs));
        footprint_add(print, MLA_FOR_ACTIVATIONS, "requests' words",
                      count_words(self, print));
    } else {
        footprint_add(print, MLA_FOR_ACTIVATIONS, "rows of a pass",
                      count_rows(self, print));
        footprint_add(print, MLA_FOR_ACTIVATIONS, "prefill block", count_prefill(self));
        footprint_add(print, MLA_FOR_ACTIVATIONS, "attention operands",
                      operands_of(&needs));
    }
    footprint_add(print, MLA_FOR_ACTIVATIONS, "logits", count_logits(self, print));
    footprint_add(print, MLA_FOR_ACTIVATIONS, "attention workspace", workspace);
    return MLA_OK;
}
