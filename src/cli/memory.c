/* memory.c - `mla memory`: the ledger from loading to closing, one snapshot a phase. */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/loaded_model.h"
#include "cli/memory_table.h"
#include "cli/prompts.h"

enum { KEY_REQUESTS = 0x100, KEY_CONTEXT };
enum { LOADED, PREPARING, PREPARED, FROZEN, SERVED, CLOSED, NUM_PHASES };
enum { SERVED_TOKENS = 8, MAX_REQUESTS = 1024, LEAST_CONTEXT = 64 };

static const char *const phases[NUM_PHASES] = {"loaded", "preparing", "prepared",
                                               "frozen", "served",    "closed"};

typedef struct memory_options {
    model_options model;
    int32_t max_requests;
    int64_t max_context_tokens; /* 0: the model's */
} memory_options;

typedef struct memory_run {
    loaded_model loaded;
    memory_snapshot snapshots[NUM_PHASES];
    mla_memory_report estimate;
    bool is_text;
    mla_status status; /* of the snapshots inside prime */
    mla_error error;
} memory_run;

static const struct argp_option options[] = {
    {"requests", KEY_REQUESTS, "N", 0, "requests that run together (default 1)", 0},
    {"context", KEY_CONTEXT, "N", 0, "tokens of one request (default: the model's)", 0},
    {0},
};

static error_t parse(int key, char *text, struct argp_state *state)
{
    memory_options *out = state->input;
    const arguments_slot slots[] = {{"MODEL", &out->model.dir}};
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &out->model;
        return arguments_begin(state);
    case KEY_REQUESTS:
        return arguments_integer32("--requests", text, 1, MAX_REQUESTS, &out->max_requests);
    case KEY_CONTEXT:
        return arguments_integer("--context", text, LEAST_CONTEXT, INT32_MAX,
                                 &out->max_context_tokens);
    case ARGP_KEY_ARG:
        return arguments_fill(slots, 1, text);
    case ARGP_KEY_END:
        return arguments_check_filled(slots, 1);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child children[] = {{&model_options_argp, 0, NULL, 0}, {0}};
static const struct argp memory_argp = {
    .options = options,
    .parser = parse,
    .args_doc = "MODEL",
    .doc =
        "Loads, prepares, freezes, serves and closes the model, and prints the ledger in "
        "each phase: what each class of memory holds. `session` is transient: it rises "
        "while preparing and is 0 ever after. Mapped weights and pages that nothing was "
        "written to are in the books in full, and not yet resident.",
    .children = children,
};

static mla_status take(memory_run *run, int phase, mla_error *err)
{
    MLAI_TRY(memory_snapshot_take(run->loaded.context, phases[phase],
                                  phase > 0 ? &run->snapshots[phase - 1] : NULL,
                                  &run->snapshots[phase], err));
    if (run->is_text) {
        memory_table_print(&run->snapshots[phase]);
    }
    return MLA_OK;
}

/* Inside a prime. Of all primes the one that holds most is kept. */
static void watch_prime(void *user)
{
    static memory_snapshot now;
    memory_run *run = user;
    memory_snapshot *kept = &run->snapshots[PREPARING];
    if (run->status != MLA_OK) {
        return;
    }
    run->status = memory_snapshot_take(run->loaded.context, phases[PREPARING],
                                       &run->snapshots[LOADED], &now, &run->error);
    if (run->status == MLA_OK &&
        (!kept->phase || memory_snapshot_now(&now, MLA_FOR_SESSION) >
                             memory_snapshot_now(kept, MLA_FOR_SESSION))) {
        *kept = now;
    }
}

static mla_status prepare(memory_run *run, const memory_options *wanted, mla_error *err)
{
    loaded_model_limits limits = {
        .engine = {.kv_format = wanted->model.kv_format,
                   .max_requests = wanted->max_requests,
                   .max_context_tokens = wanted->max_context_tokens,
                   .estimate = &run->estimate},
        .inside = watch_prime,
        .user = run,
    };
    run->estimate = (mla_memory_report)MLA_INIT(mla_memory_report);
    MLAI_TRY(loaded_model_prepare(&run->loaded, &limits, err));
    if (run->status != MLA_OK) {
        *err = run->error;
        return run->status;
    }
    MLAI_CHECK(run->snapshots[PREPARING].phase, MLA_ERR_INTERNAL,
               "the preparation primed nothing");
    if (run->is_text) {
        memory_table_print(&run->snapshots[PREPARING]);
    }
    return take(run, PREPARED, err);
}

/* A short answer: prefill and decode have run. */
static mla_status serve(memory_run *run, mla_error *err)
{
    token_list prompt = {0};
    const prompt_source source = {.text = "int main(int argc, char **argv)\n{\n"};
    engine_result result = {0};
    MLAI_TRY(
        prompt_encode(run->loaded.context, run->loaded.tokenizer, &source, &prompt, err));
    engine_request request = {.prompt = prompt.ids,
                              .num_prompt = (int32_t)prompt.num,
                              .max_tokens = SERVED_TOKENS};
    mla_status status = engine_run(run->loaded.engine, &request, 1, &result, err);
    token_list_free(&prompt);
    MLAI_TRY(status);
    return take(run, SERVED, err);
}

static mla_status live(memory_run *run, const memory_options *wanted, mla_error *err)
{
    MLAI_TRY(loaded_model_open(&run->loaded, &wanted->model, err));
    MLAI_TRY(loaded_model_load(&run->loaded, &wanted->model, err));
    MLAI_TRY(take(run, LOADED, err));
    MLAI_TRY(prepare(run, wanted, err));
    MLAI_TRY(mla_context_freeze(run->loaded.context, err));
    MLAI_TRY(take(run, FROZEN, err));
    MLAI_TRY(serve(run, err));
    loaded_model_unload(&run->loaded);
    return take(run, CLOSED, err);
}

static json_t *snapshots_of(const memory_run *run)
{
    json_t *array = json_array();
    for (int i = 0; i < NUM_PHASES; i++) {
        if (json_array_append_new(array, memory_snapshot_json(&run->snapshots[i])) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static mla_status watch(memory_run *run, const memory_options *wanted, mla_error *err)
{
    MLAI_TRY(live(run, wanted, err));
    if (run->is_text) {
        memory_table_summarise(run->snapshots, NUM_PHASES);
        memory_table_compare(&run->estimate, &run->snapshots[PREPARED]);
        return MLA_OK;
    }
    json_scope before = json_output_begin(run->loaded.context);
    mla_status status = json_output_print(snapshots_of(run), true, err);
    json_scope_leave(before);
    return status;
}

int command_memory(int argc, char **argv)
{
    static memory_run run;
    memory_options wanted = {.model = MODEL_OPTIONS_DEFAULT, .max_requests = 1};
    if (!arguments_parse(&memory_argp, argc, argv, &wanted)) {
        return COMMAND_MISUSED;
    }
    mla_error error = {0};
    run.is_text = !wanted.model.is_json;
    mla_status status = watch(&run, &wanted, &error);
    return loaded_model_end(&run.loaded, status, &error);
}
