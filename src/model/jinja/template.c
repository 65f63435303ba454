/* template.c - compiling and rendering, with the limits of both. */
#include "model/jinja/template.h"

#include "model/jinja/input.h"
#include "model/jinja/parser.h"
#include "model/jinja/run.h"
#include "model/utf8.h"

enum {
    MAX_SOURCE_BYTES = 1 << 20,
    MAX_TREE_BYTES = 1 << 27,
    MAX_MEMORY_BYTES = 1 << 28,
    MAX_OUTPUT_BYTES = 1 << 26,
    MAX_STEPS = 50000000,
    MAX_DEPTH = 200,
};

struct jinja_template {
    jinja_memory memory;
    jinja_nodes nodes;
};

static jinja_memory make_memory(mlai_ledger *ledger, mla_purpose purpose, size_t max_bytes,
                                int64_t max_steps)
{
    return (jinja_memory){.arena = {.ledger = ledger, .purpose = purpose},
                          .max_bytes = max_bytes,
                          .max_steps = max_steps,
                          .max_depth = MAX_DEPTH};
}

static mla_status parse(jinja_template *t, const char *source, size_t bytes, mla_error *err)
{
    MLAI_CHECK(bytes <= MAX_SOURCE_BYTES, MLA_ERR_UNSUPPORTED,
               "%zu bytes are more than the limit of %d for a template", bytes,
               MAX_SOURCE_BYTES);
    size_t bad = utf8_first_bad(source, bytes);
    MLAI_CHECK(bad == bytes, MLA_ERR_CORRUPT, "byte %zu (0x%02x) is not UTF-8", bad,
               (unsigned char)source[bad]);
    return jinja_parse(&t->memory, (jinja_text){.data = source, .bytes = bytes}, &t->nodes,
                       err);
}

mla_status jinja_template_compile(mlai_ledger *ledger, const char *source, size_t bytes,
                                  jinja_template **out, mla_error *err)
{
    jinja_memory memory = make_memory(ledger, MLA_FOR_CONTEXT, MAX_TREE_BYTES, MAX_STEPS);
    void *place = NULL;
    MLAI_TRY(jinja_take(&memory, 1, sizeof(jinja_template), &place, err));
    jinja_template *t = place; /* lives in its own memory */
    t->memory = memory;
    mla_status status = parse(t, source, bytes, err);
    if (status != MLA_OK) {
        mlai_error_prefix(err, "the chat template");
        jinja_template_free(&t);
        return status;
    }
    *out = t;
    return MLA_OK;
}

void jinja_template_free(jinja_template **t)
{
    if (*t) {
        arena memory = (*t)->memory.arena;
        arena_free(&memory);
    }
    *t = NULL;
}

static mla_status set_fields(jinja_run *run, const json_t *fields, bool is_input,
                             mla_error *err)
{
    jinja_value value;
    if (!fields) {
        return MLA_OK;
    }
    MLAI_TRY(jinja_value_of_json(run->memory, fields, is_input, &value, err));
    for (size_t i = 0; i < value.as.dict->num; i++) {
        MLAI_TRY(jinja_scope_set(run, value.as.dict->keys[i].as.text,
                                 value.as.dict->values[i], err));
    }
    return MLA_OK;
}

static mla_status render(const jinja_template *t, jinja_run *run,
                         const jinja_inputs *inputs, mla_error *err)
{
    jinja_flow flow = FLOW_ON;
    MLAI_TRY(jinja_scope_enter(run, NULL, err));
    MLAI_TRY(set_fields(run, inputs->own, false, err));
    MLAI_TRY(set_fields(run, inputs->fields, true, err));
    return jinja_run_nodes(run, &t->nodes, &flow, err);
}

mla_status jinja_template_render(const jinja_template *t, const jinja_inputs *inputs,
                                 jinja_rendering *out, mla_error *err)
{
    const jinja_limits *limits = &inputs->limits;
    *out = (jinja_rendering){
        .memory = make_memory(t->memory.arena.ledger, MLA_FOR_SERVER,
                              limits->max_memory_bytes ? limits->max_memory_bytes
                                                       : (size_t)MAX_MEMORY_BYTES,
                              limits->max_steps ? limits->max_steps : (int64_t)MAX_STEPS)};
    size_t most =
        limits->max_output_bytes ? limits->max_output_bytes : (size_t)MAX_OUTPUT_BYTES;
    jinja_builder text = {.memory = &out->memory, .max_bytes = most};
    jinja_run run = {.memory = &out->memory,
                     .out = &text,
                     .max_output_bytes = most,
                     .now_seconds = inputs->now_seconds};
    mla_status status = render(t, &run, inputs, err);
    if (status != MLA_OK && run.bad_line > 0) {
        mlai_error_prefix(err, "the chat template, line %d", (int)run.bad_line);
    } else if (status != MLA_OK) {
        mlai_error_prefix(err, "the chat template");
    }
    out->text = jinja_builder_text(&text);
    return status;
}

void jinja_rendering_free(jinja_rendering *rendering)
{
    arena_free(&rendering->memory.arena);
    *rendering = (jinja_rendering){.text = {.bytes = 0}};
}
