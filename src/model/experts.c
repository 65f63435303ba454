/* experts.c - the MLP of a layer, dense or by experts. Tokens are sorted by expert, so that
 * an expert's weights are read once for all its tokens; outputs land by token and choice and
 * are summed in the order of the choices, so a token's bits are its own. */
#include "model/router.h"
#include "model/state.h"

void mlp_run(const model_pass *pass, const mlp_weights *weights)
{
    model *self = pass->model;
    activations *act = &self->act;
    int32_t num = pass->num_rows;
    gemm in[2] = {gemm_of_matrix(&weights->gate, act->normed, num, act->gate),
                  gemm_of_matrix(&weights->up, act->normed, num, act->up)};
    pass_multiply(pass, in, 2);
    self->ops->silu_mul(act->gate, act->up, (size_t)num * (size_t)weights->gate.num_out);
    gemm out = gemm_of_matrix(&weights->down, act->gate, num, act->hidden);
    out.is_added = true;
    pass_multiply(pass, &out, 1);
}

static void route(const model_pass *pass, const layer_weights *weights)
{
    const model_config *config = &pass->model->config;
    activations *act = &pass->model->act;
    size_t k = (size_t)config->experts_per_token;
    gemm job =
        gemm_of_matrix(&weights->router, act->normed, pass->num_rows, act->router_logits);
    pass_multiply(pass, &job, 1);
    for (int32_t row = 0; row < pass->num_rows; row++) {
        router_choices out = {act->chosen + (size_t)row * k,
                              act->chosen_weights + (size_t)row * k};
        router_choose(config,
                      act->router_logits + (size_t)row * (size_t)config->num_experts,
                      &weights->router_bias, act->router_scratch, out);
    }
}

/* A counting sort of the pairs (token, choice) by expert. */
static void sort_by_expert(const model_pass *pass)
{
    const model_config *config = &pass->model->config;
    activations *act = &pass->model->act;
    int32_t num_pairs = pass->num_rows * config->experts_per_token;
    int32_t *start = act->expert_start;
    for (int32_t e = 0; e <= config->num_experts; e++) {
        start[e] = 0;
    }
    for (int32_t i = 0; i < num_pairs; i++) {
        start[act->chosen[i] + 1]++;
    }
    for (int32_t e = 0; e < config->num_experts; e++) {
        start[e + 1] += start[e];
    }
    for (int32_t i = 0; i < num_pairs; i++) {
        int32_t place = start[act->chosen[i]]++;
        act->pair_token[place] = i / config->experts_per_token;
        act->pair_index[place] = i;
    }
    for (int32_t e = config->num_experts; e > 0; e--) { /* each start moved to its end */
        start[e] = start[e - 1];
    }
    start[0] = 0;
}

/* Rows of the pairs of expert e in an array that is sorted by expert. */
static float *pairs_of(const activations *act, float *sorted, int32_t e, size_t width)
{
    return sorted + (size_t)act->expert_start[e] * width;
}

static void expert_inputs(const model_pass *pass, const layer_weights *weights)
{
    const model_config *config = &pass->model->config;
    activations *act = &pass->model->act;
    size_t width = (size_t)config->moe_intermediate_size;
    int32_t num_jobs = 0;
    for (int32_t e = 0; e < config->num_experts; e++) {
        int32_t num = act->expert_start[e + 1] - act->expert_start[e];
        const int32_t *tokens = act->pair_token + act->expert_start[e];
        if (num == 0) {
            continue;
        }
        gemm *gate = &act->jobs[num_jobs++];
        gemm *up = &act->jobs[num_jobs++];
        *gate = gemm_of_matrix(&weights->experts[e].gate, act->normed, num,
                               pairs_of(act, act->expert_gate, e, width));
        *up = gemm_of_matrix(&weights->experts[e].up, act->normed, num,
                             pairs_of(act, act->expert_up, e, width));
        gate->x_rows = tokens;
        up->x_rows = tokens;
    }
    pass_multiply(pass, act->jobs, num_jobs);
}

static void expert_outputs(const model_pass *pass, const layer_weights *weights)
{
    const model_config *config = &pass->model->config;
    activations *act = &pass->model->act;
    size_t width = (size_t)config->moe_intermediate_size;
    int32_t num_jobs = 0;
    for (int32_t e = 0; e < config->num_experts; e++) {
        int32_t num = act->expert_start[e + 1] - act->expert_start[e];
        if (num == 0) {
            continue;
        }
        gemm *down = &act->jobs[num_jobs++];
        *down =
            gemm_of_matrix(&weights->experts[e].down,
                           pairs_of(act, act->expert_gate, e, width), num, act->expert_out);
        down->y_rows = act->pair_index + act->expert_start[e];
    }
    pass_multiply(pass, act->jobs, num_jobs);
}

static void add_choices(const model_pass *pass)
{
    const model_config *config = &pass->model->config;
    activations *act = &pass->model->act;
    size_t width = (size_t)config->hidden_size;
    int32_t k = config->experts_per_token;
    for (int32_t i = 0; i < pass->num_rows * k; i++) {
        pass->model->ops->add_scaled(act->hidden + (size_t)(i / k) * width,
                                     act->expert_out + (size_t)i * width,
                                     act->chosen_weights[i], width);
    }
}

void experts_run(const model_pass *pass, const layer_weights *weights)
{
    const model_config *config = &pass->model->config;
    activations *act = &pass->model->act;
    size_t num_pairs = (size_t)pass->num_rows * (size_t)config->experts_per_token;
    route(pass, weights);
    sort_by_expert(pass);
    expert_inputs(pass, weights);
    pass->model->ops->silu_mul(act->expert_gate, act->expert_up,
                               num_pairs * (size_t)config->moe_intermediate_size);
    expert_outputs(pass, weights);
    add_choices(pass);
    if (weights->shared_experts.gate.data) {
        mlp_run(pass, &weights->shared_experts);
    }
}
