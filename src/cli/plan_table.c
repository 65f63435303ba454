/* plan_table.c - a plan for people: see plan_report.h. */
#include <inttypes.h>
#include <stdio.h>

#include "attention/row_layout.h"
#include "cli/human_bytes.h"
#include "cli/plan_report.h"
#include "model/json.h"

static void print_bytes(const char *indent, const char *name, int width, uint64_t bytes)
{
    char text[HUMAN_BYTES_CHARS];
    human_bytes_write(bytes, text);
    (void)printf("%s%-*s %10s %16" PRIu64 "\n", indent, width, name, text, bytes);
}

static void print_class(const char *name, const footprint_class *of)
{
    enum { NAME = 26, PART = 24 };
    bool has_parts = of->parts[0].name && of->parts[1].name;
    print_bytes("  ", name, NAME, of->now_bytes);
    for (int i = 0; has_parts && i < FOOTPRINT_MAX_PARTS && of->parts[i].name; i++) {
        print_bytes("    ", of->parts[i].name, PART, of->parts[i].bytes);
    }
    if (of->peak_bytes > of->now_bytes) {
        print_bytes("    ", "while preparing", PART, of->peak_bytes);
    }
}

static void print_classes(const plan_report *report)
{
    enum { NAME = 26 };
    uint64_t memory = (uint64_t)report->profile->is.memory_bytes;
    uint64_t total = report->print->now_bytes;
    for (int i = 0; i < MLA_NUM_PURPOSES; i++) {
        print_class(mla_purpose_name((mla_purpose)i), &report->print->classes[i]);
    }
    print_bytes("  ", "all classes", NAME, total);
    print_bytes("  ", total > memory ? "more than the device by" : "left", NAME,
                total > memory ? total - memory : memory - total);
}

static void print_head(const plan_report *report)
{
    const profile *from = report->profile;
    char memory[HUMAN_BYTES_CHARS];
    human_bytes_write((uint64_t)from->is.memory_bytes, memory);
    (void)printf("%s\n", from->name);
    (void)printf("%d requests of %" PRId64 " tokens, %s rows, %d rows a step\n",
                 report->print->concurrency, from->is.request_tokens,
                 mlai_kv_format_name(from->kv_format), report->print->step_rows);
    (void)printf("%s, %s (%" PRId64 " B) a rank; ranks: tensor %" PRId64
                 ", context %" PRId64 " (interleave %" PRId64 "), expert %" PRId64 "\n",
                 from->device_name, memory, from->is.memory_bytes, from->is.tensor,
                 from->is.context, from->is.interleave, from->is.expert);
    (void)printf("%" PRIu64 " parameters\n\non one rank\n",
                 report->print->weights.num_parameters);
}

static void print_tokens(const plan_report *report)
{
    const footprint_tokens *tokens = &report->print->tokens;
    (void)printf("\na token: %" PRIu64 " B in each of %" PRId64
                 " layers; on a rank %.1f B at best, %.1f B with pages and states\n",
                 tokens->row_bytes, tokens->latent_layers, tokens->ideal_bytes,
                 tokens->effective_bytes);
    (void)printf("a GiB on each rank: %" PRIu64 " tokens at best, %" PRIu64
                 " with pages and states\n",
                 tokens->ideal_per_gib, tokens->effective_per_gib);
    (void)printf("a request: %" PRId64 " pages, %" PRIu64 " B on a rank; the pool: %" PRId64
                 " pages, %" PRIu64 " tokens on all ranks\n",
                 tokens->request_pages, tokens->request_bytes, tokens->pool_pages,
                 tokens->pool_tokens);
}

static void print_pool_room(const plan_report *report)
{
    const footprint_verdict *verdict = report->verdict;
    if (report->print->fixed_pool_bytes > 0) {
        (void)printf("beside all else there is room for a pool of %" PRIu64
                     " B; with one as large as they need, %d requests fit together\n",
                     verdict->pool_room_bytes, verdict->largest_without_fixed);
    }
}

static void print_verdict(const plan_report *report)
{
    const footprint_verdict *verdict = report->verdict;
    int32_t largest = verdict->largest_concurrency;
    if (verdict->fits) {
        (void)printf("\nfits; %d%s requests fit together\n", largest,
                     largest == PROFILE_MAX_CONCURRENCY ? " or more" : "");
        return;
    }
    (void)printf("\ndoes not fit: %s needs %" PRIu64 " B of %" PRIu64 " B%s, %" PRIu64
                 " B too little; ",
                 mla_purpose_name(verdict->purpose), verdict->required_bytes,
                 verdict->available_bytes,
                 verdict->is_pool_fixed ? " (serving.kv_bytes)" : " left",
                 verdict->deficit_bytes);
    if (largest > 0) {
        (void)printf("%d requests fit together\n", largest);
    } else {
        (void)printf("not one request fits\n");
    }
}

static void print_remarks(const profile *from, profile_ground ground, const char *title)
{
    bool is_first = true;
    for (int32_t i = 0; i < from->num_remarks; i++) {
        const profile_remark *remark = &from->remarks[i];
        if (remark->ground == ground) {
            (void)printf("%s", is_first ? title : "");
            (void)printf("  %s = %s: %s\n", remark->input,
                         json_words_of(remark->value).text, remark->why);
            is_first = false;
        }
    }
}

static void print_defaults(const profile *from)
{
    bool is_first = true;
    for (int32_t i = 0; i < from->num_remarks; i++) {
        const profile_remark *remark = &from->remarks[i];
        if (remark->ground == PROFILE_DEFAULT) {
            (void)printf("%s  %s = %" PRId64 "\n",
                         is_first ? "\nnot given, and taken as:\n" : "", remark->input,
                         remark->fallback);
            is_first = false;
        }
    }
}

static void print_notes(const profile *from)
{
    const json_t *note;
    size_t i;
    json_array_foreach(from->notes, i, note)
    {
        (void)printf("%s  %s\n", i == 0 ? "\nnotes:\n" : "", json_string_value(note));
    }
}

void plan_table_print(const plan_report *report)
{
    print_head(report);
    print_classes(report);
    print_tokens(report);
    print_verdict(report);
    print_pool_room(report);
    print_remarks(report->profile, PROFILE_ASSUMED, "\nassumed:\n");
    print_remarks(report->profile, PROFILE_REPORTED, "\nreported:\n");
    print_defaults(report->profile);
    print_notes(report->profile);
}
