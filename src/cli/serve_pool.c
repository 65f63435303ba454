/* serve_pool.c - the size of the pool by default: see serve_pool.h. */
#include "cli/serve_pool.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "cli/digits.h"

enum { KIB = 1024, SHARE = 2 };

/* MemAvailable of /proc/meminfo; all there can be where it is not known. */
static uint64_t available_bytes(void)
{
    static const char field[] = "MemAvailable:";
    char text[1024] = {0};
    uint64_t kib = 0;
    int file = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return UINT64_MAX;
    }
    ssize_t got = read(file, text, sizeof text - 1);
    (void)close(file);
    const char *found = got > 0 ? strstr(text, field) : NULL;
    if (!found) {
        return UINT64_MAX;
    }
    found += sizeof field - 1;
    found += strspn(found, " ");
    return digits_read(found, UINT64_MAX / KIB, &kib) ? kib * KIB : UINT64_MAX;
}

uint64_t serve_page_bytes(const model_config *config, mla_kv_format format)
{
    return (uint64_t)config->num_layers * MODEL_PAGE_TOKENS *
           mla_kv_row_bytes(format, config->kv_lora_rank, config->qk_rope_head_dim);
}

uint64_t serve_pool_bytes(const model *target, const engine_options *options)
{
    const model_config *config = model_config_of(target);
    int64_t tokens =
        options->max_context_tokens ? options->max_context_tokens : config->max_positions;
    uint64_t context = (uint64_t)mlai_ceil_div(tokens, MODEL_PAGE_TOKENS) *
                       serve_page_bytes(config, options->kv_format);
    uint64_t whole = 0;
    if (__builtin_mul_overflow(context, (uint64_t)options->max_requests, &whole)) {
        whole = UINT64_MAX;
    }
    uint64_t share = available_bytes() / SHARE;
    uint64_t bytes = whole < share ? whole : share;
    return bytes > context ? bytes : context;
}
