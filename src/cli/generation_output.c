/* generation_output.c - printing answers: see generation_output.h. */
#include "cli/generation_output.h"

#include <errno.h>
#include <stdio.h>

#include "base/status.h"
#include "cli/json_output.h"

#define NS_PER_MS 1e6
#define NS_PER_S  1e9

static void print_header(const generation_batch *batch)
{
    if (batch->num > 1) {
        (void)printf("--- prompt %d of %d\n", (int)batch->streaming + 1, (int)batch->num);
    }
}

static void print_new(generation *item)
{
    const byte_buffer *bytes = &item->text.bytes;
    if (bytes->num > item->num_printed) {
        (void)fwrite(bytes->data + item->num_printed, 1, bytes->num - item->num_printed,
                     stdout);
        item->num_printed = bytes->num;
    }
}

mla_status generation_stream(generation_batch *batch, mla_error *err)
{
    while (batch->is_streamed && batch->streaming < batch->num) {
        generation *item = &batch->items[batch->streaming];
        if (item->num_ids == 0 && !item->is_done) {
            break;
        }
        if (item->num_printed == 0 && !item->is_headed) {
            print_header(batch);
            item->is_headed = true;
        }
        print_new(item);
        if (!item->is_done) {
            break;
        }
        (void)putchar('\n');
        batch->streaming++;
    }
    if (fflush(stdout) || ferror(stdout)) {
        return mlai_fail_errno(err, MLA_ERR_ARGUMENT, errno, MLAI_HERE,
                               "standard output cannot be written");
    }
    return MLA_OK;
}

static json_t *ids_of(const int32_t *ids, size_t num)
{
    json_t *array = json_array();
    for (size_t i = 0; i < num; i++) {
        if (json_array_append_new(array, json_integer(ids[i])) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static const char *finish_name(engine_finish finish)
{
    switch (finish) {
    case ENGINE_STOP:
        return "stop";
    case ENGINE_LENGTH:
        return "length";
    case ENGINE_CANCELLED:
        return "cancelled";
    case ENGINE_FAILED:
    case ENGINE_NUM_FINISHES:
        break;
    }
    return "failed";
}

static json_t *rate_of(int64_t num, int64_t ns)
{
    return json_output_rounded(ns > 0 && num > 0 ? (double)num * NS_PER_S / (double)ns : 0);
}

static json_t *milliseconds_of(int64_t ns)
{
    return json_output_rounded((double)ns / NS_PER_MS);
}

static json_t *timings_of(const generation_batch *batch, const generation *item)
{
    const engine_result *result = &item->result;
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "load_ms",
                     milliseconds_of(batch->loaded->load_ns), "prepare_ms",
                     milliseconds_of(batch->loaded->prepare_ns), "prefill_ms",
                     milliseconds_of(result->prefill_ns), "decode_ms",
                     milliseconds_of(result->decode_ns), "prefill_tokens_per_s",
                     rate_of((int64_t)item->prompt.num, result->prefill_ns),
                     "decode_tokens_per_s", rate_of(item->num_ids - 1, result->decode_ns));
}

static json_t *answer_of(const generation_batch *batch, const generation *item,
                         const memory_snapshot *memory)
{
    const byte_buffer *text = &item->text.bytes;
    return json_pack("{s:o, s:o, s:s%, s:s, s:o, s:o}", "prompt_ids",
                     ids_of(item->prompt.ids, item->prompt.num), "ids",
                     ids_of(item->ids, (size_t)item->num_ids), "text",
                     text->data ? text->data : "", text->num, "finish_reason",
                     finish_name(item->result.finish), "timings", timings_of(batch, item),
                     "memory", memory_snapshot_classes(memory));
}

static json_t *answers_of(const generation_batch *batch, const memory_snapshot *memory)
{
    if (batch->num == 1) {
        return answer_of(batch, &batch->items[0], memory);
    }
    json_t *array = json_array();
    for (int32_t i = 0; i < batch->num; i++) {
        if (json_array_append_new(array, answer_of(batch, &batch->items[i], memory)) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

mla_status generation_print_json(generation_batch *batch, const memory_snapshot *memory,
                                 mla_error *err)
{
    json_scope before = json_output_begin(batch->loaded->context);
    mla_status status = json_output_print(answers_of(batch, memory), false, err);
    json_scope_leave(before);
    return status;
}
