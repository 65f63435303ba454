/* footprint.c - all classes of a rank's memory: see footprint.h. */
#include "model/footprint.h"

#include <string.h>

#include "model/footprint_parts.h"

void footprint_add(footprint *print, mla_purpose purpose, const char *name, byte_sum bytes)
{
    footprint_class *of = &print->classes[purpose];
    uint64_t amount = bytes.is_overflown ? UINT64_MAX : bytes.bytes;
    for (int i = 0; amount > 0 && i < FOOTPRINT_MAX_PARTS; i++) {
        if (!of->parts[i].name) {
            of->parts[i] = (footprint_part){.name = name, .bytes = amount};
            break;
        }
    }
    of->now_bytes = mlai_size_sum(of->now_bytes, amount);
    of->peak_bytes = of->now_bytes;
}

static void add_known(footprint *print, mla_purpose purpose, const char *name,
                      int64_t bytes)
{
    footprint_add(print, purpose, name, (byte_sum){.bytes = (size_t)bytes});
}

static void count_weights(footprint *print)
{
    const weight_sizes *sizes = &print->weights;
    const footprint_part parts[] = {
        {"embedding and head", sizes->embedding_bytes},
        {"attention", sizes->attention_bytes},
        {"dense and shared MLPs", sizes->mlp_bytes},
        {"experts", sizes->expert_bytes},
        {"norms and routers", sizes->other_bytes},
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        add_known(print, MLA_FOR_WEIGHTS, parts[i].name, (int64_t)parts[i].bytes);
    }
}

/* Two staging slots of a packed message of outputs and lse, and the signals: the channel that
 * merges the partials of context ranks. */
static byte_sum slab_of(const profile *self, const footprint *print)
{
    enum { ALIGN = 256, SLOTS = 2 };
    const model_config *c = &self->shape.config;
    byte_sum slot = {0};
    byte_sum slab = {0};
    size_t output = 0;
    size_t lse = 0;
    size_t heads =
        (size_t)c->num_heads / (size_t)self->is.tensor * (size_t)self->is.context;
    size_t rows = byte_sum_product(&slot, (size_t)print->step_rows, heads);
    size_t width = (size_t)c->kv_lora_rank + (size_t)c->qk_rope_head_dim;
    size_t row_bytes = byte_sum_product(&slot, rows, width * sizeof(uint16_t));
    bool fits =
        mlai_size_round_up(row_bytes, ALIGN, &output) &&
        mlai_size_round_up(byte_sum_product(&slot, rows, sizeof(float)), ALIGN, &lse);
    byte_sum_add(&slot, 1, output);
    byte_sum_add(&slot, 1, lse);
    byte_sum_add(&slab, SLOTS, slot.bytes);
    byte_sum_add(&slab, 1, (size_t)self->is.signal_bytes);
    slab.is_overflown = slab.is_overflown || slot.is_overflown || !fits;
    return slab;
}

static void count_comm(const profile *self, footprint *print)
{
    byte_sum communicators = {0};
    byte_sum slabs = {0};
    byte_sum_add(&communicators, (size_t)self->is.communicators,
                 (size_t)self->is.communicator_bytes);
    footprint_add(print, MLA_FOR_COMM, "communicators", communicators);
    if (self->is.context > 1 && self->is.channels > 0) {
        byte_sum slab = slab_of(self, print);
        byte_sum_add(&slabs, (size_t)self->is.channels, slab.bytes);
        slabs.is_overflown = slabs.is_overflown || slab.is_overflown;
        footprint_add(print, MLA_FOR_COMM, "channel slabs", slabs);
    }
}

/* The sizes that the profile lists and a full step reaches, and the full step's own. */
static void count_graphs(const profile *self, footprint *print)
{
    byte_sum all = {0};
    size_t num = 0;
    size_t rows = 0;
    for (int32_t i = 0; i < self->num_graphs; i++) {
        if (self->graph_rows[i] < print->step_rows) {
            num++;
            rows += (size_t)self->graph_rows[i];
        }
    }
    if (self->num_graphs > 0) {
        byte_sum_add(&all, num + 1, (size_t)self->is.graph_bytes_each);
        byte_sum_add(&all, rows + (size_t)print->step_rows,
                     (size_t)self->is.graph_bytes_per_row);
        footprint_add(print, MLA_FOR_GRAPH, "captured steps", all);
    }
}

static void count_held(const profile *self, footprint *print)
{
    const profile_numbers *is = &self->is;
    add_known(print, MLA_FOR_CONTEXT, "driver and runtime", is->context_bytes);
    add_known(print, MLA_FOR_PLAN, "loaded programs", is->plan_bytes);
    add_known(print, MLA_FOR_BINDING, "bindings", is->binding_bytes);
    add_known(print, MLA_FOR_SERVER, "server", is->server_bytes);
    add_known(print, MLA_FOR_OTHER, "unnamed", is->other_bytes);
}

static mla_status check_limits(const profile *self, int32_t concurrency, mla_error *err)
{
    MLAI_CHECK(concurrency >= 1 && concurrency <= PROFILE_MAX_CONCURRENCY, MLA_ERR_ARGUMENT,
               "concurrency is %d, not in 1 to %d", concurrency, PROFILE_MAX_CONCURRENCY);
    MLAI_CHECK(self->shape.config.num_layers <= MODEL_SHAPE_MAX_LAYERS, MLA_ERR_ARGUMENT,
               "%d layers are more than %d", self->shape.config.num_layers,
               MODEL_SHAPE_MAX_LAYERS);
    return MLA_OK;
}

/* All but what does not depend on the concurrency: weights and fixed_pool_bytes are there. */
static mla_status count_for(const profile *self, int32_t concurrency, footprint *print,
                            mla_error *err)
{
    memset(print->classes, 0, sizeof print->classes);
    print->now_bytes = 0;
    print->concurrency = concurrency;
    print->step_rows = concurrency * (int32_t)self->is.rows_per_request;
    count_weights(print);
    MLAI_TRY(footprint_count_rows(self, print, err));
    MLAI_TRY(footprint_count_activations(self, print, err));
    count_comm(self, print);
    count_graphs(self, print);
    count_held(self, print);
    for (int i = 0; i < MLA_NUM_PURPOSES; i++) {
        print->now_bytes = mlai_size_sum(print->now_bytes, print->classes[i].now_bytes);
    }
    MLAI_CHECK(print->now_bytes <= INT64_MAX, MLA_ERR_ARGUMENT,
               "%d requests need more bytes than can be counted", concurrency);
    return MLA_OK;
}

mla_status footprint_of(const profile *self, int32_t concurrency, footprint *out,
                        mla_error *err)
{
    footprint print = {.fixed_pool_bytes = (uint64_t)self->is.kv_bytes};
    MLAI_TRY(check_limits(self, concurrency, err));
    MLAI_TRY(weight_sizes_of(&self->shape, &self->storage, &print.weights, err));
    MLAI_TRY(count_for(self, concurrency, &print, err));
    *out = print;
    return MLA_OK;
}

typedef struct demand {
    uint64_t required_bytes, available_bytes;
    bool is_pool_fixed;
} demand;

/* What a class asks for of `left` bytes. A fixed pool asks for its size, and has no more than it
 * for the requests. */
static demand demand_of(const footprint *print, mla_purpose purpose, uint64_t left)
{
    const footprint_class *of = &print->classes[purpose];
    demand asked = {.required_bytes = of->peak_bytes, .available_bytes = left};
    uint64_t fixed = print->fixed_pool_bytes;
    if (purpose == MLA_FOR_KV && fixed > 0) {
        uint64_t needed = print->tokens.needed_bytes;
        asked.required_bytes = needed > fixed ? needed : fixed;
        asked.is_pool_fixed = needed > fixed && fixed <= left;
        asked.available_bytes = fixed < left && needed > fixed ? fixed : left;
    }
    return asked;
}

void footprint_judge(const profile *self, const footprint *print, footprint_verdict *out)
{
    static const mla_purpose order[] = {
        MLA_FOR_CONTEXT, MLA_FOR_COMM,  MLA_FOR_WEIGHTS, MLA_FOR_DRAFTER,
        MLA_FOR_SESSION, MLA_FOR_PLAN,  MLA_FOR_KV,      MLA_FOR_ACTIVATIONS,
        MLA_FOR_BINDING, MLA_FOR_GRAPH, MLA_FOR_SERVER,  MLA_FOR_OTHER,
    };
    uint64_t memory = (uint64_t)self->is.memory_bytes;
    uint64_t left = memory;
    memset(out, 0, sizeof *out);
    out->fits = true;
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        demand asked = demand_of(print, order[i], left);
        uint64_t now = print->classes[order[i]].now_bytes;
        if (out->fits && asked.required_bytes > asked.available_bytes) {
            out->fits = false;
            out->purpose = order[i];
            out->is_pool_fixed = asked.is_pool_fixed;
            out->required_bytes = asked.required_bytes;
            out->available_bytes = asked.available_bytes;
            out->deficit_bytes = asked.required_bytes - asked.available_bytes;
        }
        left = left > now ? left - now : 0;
    }
    uint64_t others = print->now_bytes - print->classes[MLA_FOR_KV].now_bytes;
    out->pool_room_bytes = others < memory ? memory - others : 0;
    out->total_deficit_bytes = print->now_bytes > memory ? print->now_bytes - memory : 0;
}

/* A concurrency that libmla cannot be prepared for does not fit either. */
static bool does_fit(const profile *self, int32_t concurrency, footprint *print)
{
    footprint_verdict verdict;
    if (count_for(self, concurrency, print, NULL) != MLA_OK) {
        return false;
    }
    footprint_judge(self, print, &verdict);
    return verdict.fits;
}

/* One after the other: workspaces need not grow with the concurrency. */
static int32_t largest_of(const profile *self, footprint print)
{
    int32_t largest = 0;
    while (largest < PROFILE_MAX_CONCURRENCY && does_fit(self, largest + 1, &print)) {
        largest++;
    }
    return largest;
}

void footprint_admit(const profile *self, const footprint *print, footprint_verdict *out)
{
    footprint unfixed = *print;
    unfixed.fixed_pool_bytes = 0;
    footprint_judge(self, print, out);
    out->largest_concurrency = largest_of(self, *print);
    out->largest_without_fixed = largest_of(self, unfixed);
}
