/* plan_json.c - a plan as one JSON value: see plan_report.h. */
#include "attention/row_layout.h"
#include "cli/json_output.h"
#include "cli/plan_report.h"

/* A class lies on the device that the profile describes: the host's memory for a CPU. */
static json_t *spaces_of(const profile *from, uint64_t bytes)
{
    mla_space own = from->backend == MLA_BACKEND_CUDA ? MLA_SPACE_DEVICE : MLA_SPACE_HOST;
    json_t *spaces = json_object();
    for (int space = 0; space < MLA_NUM_SPACES; space++) {
        json_int_t now = space == (int)own ? (json_int_t)bytes : 0;
        if (json_object_set_new(spaces, mla_space_name((mla_space)space),
                                json_integer(now)) != 0) {
            json_decref(spaces);
            return NULL;
        }
    }
    return spaces;
}

static json_t *parts_of(const footprint_class *of)
{
    json_t *parts = json_object();
    for (int i = 0; i < FOOTPRINT_MAX_PARTS && of->parts[i].name; i++) {
        if (json_object_set_new(parts, of->parts[i].name,
                                json_integer((json_int_t)of->parts[i].bytes)) != 0) {
            json_decref(parts);
            return NULL;
        }
    }
    return parts;
}

static json_t *classes_of(const plan_report *report)
{
    json_t *classes = json_object();
    for (int i = 0; i < MLA_NUM_PURPOSES; i++) {
        const footprint_class *of = &report->print->classes[i];
        json_t *one =
            json_pack("{s:I, s:I, s:o, s:o}", "now", (json_int_t)of->now_bytes, "peak",
                      (json_int_t)of->peak_bytes, "by_space",
                      spaces_of(report->profile, of->now_bytes), "parts", parts_of(of));
        if (json_object_set_new(classes, mla_purpose_name((mla_purpose)i), one) != 0) {
            json_decref(classes);
            return NULL;
        }
    }
    return classes;
}

static json_t *refusal_of(const footprint_verdict *verdict)
{
    if (verdict->fits) {
        return json_null();
    }
    return json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:b}", "class", mla_purpose_name(verdict->purpose),
        "required", (json_int_t)verdict->required_bytes, "available",
        (json_int_t)verdict->available_bytes, "deficit", (json_int_t)verdict->deficit_bytes,
        "total_deficit", (json_int_t)verdict->total_deficit_bytes, "is_pool_fixed",
        (int)verdict->is_pool_fixed);
}

static json_t *pool_of(const plan_report *report)
{
    const footprint_verdict *verdict = report->verdict;
    return json_pack("{s:I, s:I, s:i}", "fixed",
                     (json_int_t)report->print->fixed_pool_bytes, "room",
                     (json_int_t)verdict->pool_room_bytes, "largest_without_fixed",
                     (int)verdict->largest_without_fixed);
}

static json_t *tokens_of(const plan_report *report)
{
    const footprint_tokens *tokens = &report->print->tokens;
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:I, s:I}",
        "request_tokens", (json_int_t)report->profile->is.request_tokens, "latent_layers",
        (json_int_t)tokens->latent_layers, "row_bytes", (json_int_t)tokens->row_bytes,
        "local_tokens", (json_int_t)tokens->local_tokens, "request_pages",
        (json_int_t)tokens->request_pages, "request_bytes",
        (json_int_t)tokens->request_bytes, "needed_bytes", (json_int_t)tokens->needed_bytes,
        "pool_pages", (json_int_t)tokens->pool_pages, "pool_tokens",
        (json_int_t)tokens->pool_tokens, "ideal_bytes",
        json_output_rounded(tokens->ideal_bytes), "effective_bytes",
        json_output_rounded(tokens->effective_bytes), "ideal_per_gib",
        (json_int_t)tokens->ideal_per_gib, "effective_per_gib",
        (json_int_t)tokens->effective_per_gib);
}

static json_t *remark_of(const profile_remark *remark)
{
    if (remark->ground == PROFILE_DEFAULT) {
        return json_pack("{s:s, s:I}", "input", remark->input, "value",
                         (json_int_t)remark->fallback);
    }
    return json_pack("{s:s, s:o, s:s}", "input", remark->input, "value",
                     json_deep_copy(remark->value), "why", remark->why);
}

static json_t *remarks_of(const profile *from, profile_ground ground)
{
    json_t *list = json_array();
    for (int32_t i = 0; i < from->num_remarks; i++) {
        if (from->remarks[i].ground == ground &&
            json_array_append_new(list, remark_of(&from->remarks[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *ranks_of(const profile *from)
{
    return json_pack("{s:I, s:I, s:I, s:I}", "tensor", (json_int_t)from->is.tensor,
                     "context", (json_int_t)from->is.context, "interleave",
                     (json_int_t)from->is.interleave, "expert",
                     (json_int_t)from->is.expert);
}

json_t *plan_report_json(const plan_report *report)
{
    const profile *from = report->profile;
    const footprint *print = report->print;
    const footprint_verdict *verdict = report->verdict;
    json_t *notes = from->notes ? json_deep_copy(from->notes) : json_array();
    return json_pack(
        "{s:s, s:b, s:i, s:i, s:i, s:s, s:I, s:o, s:s, s:I, s:I, s:o, s:I, s:o, s:o, s:o, "
        "s:o, "
        "s:o, s:o, s:o}",
        "profile", from->name, "fits", (int)verdict->fits, "concurrency",
        (int)print->concurrency, "largest_concurrency", (int)verdict->largest_concurrency,
        "step_rows", (int)print->step_rows, "device", from->device_name, "memory",
        (json_int_t)from->is.memory_bytes, "ranks", ranks_of(from), "kv_format",
        mlai_kv_format_name(from->kv_format), "parameters",
        (json_int_t)print->weights.num_parameters, "mtp_parameters",
        (json_int_t)print->weights.num_mtp_parameters, "classes", classes_of(report),
        "total", (json_int_t)print->now_bytes, "tokens", tokens_of(report), "pool",
        pool_of(report), "refusal", refusal_of(verdict), "assumed",
        remarks_of(from, PROFILE_ASSUMED), "reported", remarks_of(from, PROFILE_REPORTED),
        "defaults", remarks_of(from, PROFILE_DEFAULT), "notes", notes);
}
