/* regex.c - PCRE2, called in one place. */
#include "model/regex.h"

#include "model/pattern.h"

enum {
    JIT_STACK_START_BYTES = 1 << 15,
    JIT_STACK_MAX_BYTES = 1 << 20,
    MAX_STEPS = 10000000,         /* of one match */
    MAX_HEAP_KIBIBYTES = 1 << 16, /* of one match without JIT */
};

static void *hook_alloc(size_t bytes, void *user)
{
    regex_memory *memory = user;
    void *data = mlai_ledger_hook_alloc(memory->ledger, memory->purpose, bytes);
    memory->has_failed |= !data;
    return data;
}

static void hook_free(void *data, void *user)
{
    const regex_memory *memory = user;
    mlai_ledger_hook_free(memory->ledger, data);
}

static mla_status no_memory(mla_error *err)
{
    return MLAI_FAIL(MLA_ERR_NO_MEMORY, "out of memory for the pre-tokenizer's patterns");
}

mla_status regex_memory_open(mlai_ledger *ledger, mla_purpose purpose, regex_memory *out,
                             mla_error *err)
{
    *out = (regex_memory){.ledger = ledger, .purpose = purpose};
    out->context = pcre2_general_context_create(hook_alloc, hook_free, out);
    return out->context ? MLA_OK : no_memory(err);
}

void regex_memory_close(regex_memory *memory)
{
    pcre2_general_context_free(memory->context);
    memory->context = NULL;
}

static mla_status refuse(int code, PCRE2_SIZE offset, mla_error *err)
{
    unsigned char words[128];
    (void)pcre2_get_error_message(code, words, sizeof words);
    return MLAI_FAIL(MLA_ERR_UNSUPPORTED, "pattern: %s (at byte %zu, rewritten)", words,
                     offset);
}

static mla_status compile(regex_memory *memory, const char *pattern, regex **out,
                          mla_error *err)
{
    pcre2_compile_context *context = pcre2_compile_context_create(memory->context);
    if (!context) {
        return no_memory(err);
    }
    int code = 0;
    PCRE2_SIZE offset = 0;
    (void)pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    regex *made = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                                PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &code,
                                &offset, context);
    pcre2_compile_context_free(context);
    if (!made) {
        return memory->has_failed ? no_memory(err) : refuse(code, offset, err);
    }
    /* Where no executable memory is to be had, the interpreter gives the same pieces. */
    (void)pcre2_jit_compile(made, PCRE2_JIT_COMPLETE);
    if (memory->has_failed) {
        pcre2_code_free(made);
        return no_memory(err);
    }
    *out = made;
    return MLA_OK;
}

mla_status regex_compile(regex_memory *memory, const char *pattern, size_t bytes,
                         regex **out, mla_error *err)
{
    MLAI_CHECK(bytes <= PATTERN_MAX_BYTES, MLA_ERR_UNSUPPORTED,
               "pattern: it has %zu bytes, and at most %d are read", bytes,
               PATTERN_MAX_BYTES);
    size_t capacity = 1 + PATTERN_GROWTH * bytes;
    void *rewritten = NULL;
    MLAI_TRY(mlai_ledger_take(memory->ledger, MLA_SPACE_HOST, memory->purpose, capacity, 1,
                              "a rewritten pattern", &rewritten, err));
    mla_status status = pattern_rewrite(pattern, bytes, rewritten, capacity, err);
    if (status == MLA_OK) {
        status = compile(memory, rewritten, out, err);
    }
    mlai_ledger_give(memory->ledger, MLA_SPACE_HOST, memory->purpose, capacity, rewritten);
    return status;
}

void regex_free(regex *pattern)
{
    pcre2_code_free(pattern);
}

static mla_status open_parts(regex_matcher *matcher, mla_error *err)
{
    pcre2_general_context *context = matcher->memory.context;
    matcher->data = pcre2_match_data_create(1, context);
    matcher->context = pcre2_match_context_create(context);
    matcher->stack =
        pcre2_jit_stack_create(JIT_STACK_START_BYTES, JIT_STACK_MAX_BYTES, context);
    if (!matcher->data || !matcher->context || !matcher->stack) {
        return no_memory(err);
    }
    (void)pcre2_set_match_limit(matcher->context, MAX_STEPS);
    (void)pcre2_set_heap_limit(matcher->context, MAX_HEAP_KIBIBYTES);
    pcre2_jit_stack_assign(matcher->context, NULL, matcher->stack);
    return MLA_OK;
}

mla_status regex_matcher_open(regex_matcher *matcher, mlai_ledger *ledger, mla_error *err)
{
    *matcher = (regex_matcher){.data = NULL};
    MLAI_TRY(regex_memory_open(ledger, MLA_FOR_SERVER, &matcher->memory, err));
    mla_status status = open_parts(matcher, err);
    if (status != MLA_OK) {
        regex_matcher_close(matcher);
    }
    return status;
}

void regex_matcher_close(regex_matcher *matcher)
{
    pcre2_jit_stack_free(matcher->stack);
    pcre2_match_context_free(matcher->context);
    pcre2_match_data_free(matcher->data);
    regex_memory_close(&matcher->memory);
    *matcher = (regex_matcher){.data = NULL};
}

mla_status regex_find(regex_matcher *matcher, const regex *pattern, const char *text,
                      size_t bytes, size_t start, regex_match *out, mla_error *err)
{
    int code =
        pcre2_match(pattern, (PCRE2_SPTR)text, bytes, start,
                    PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, matcher->data, matcher->context);
    if (code == PCRE2_ERROR_NOMATCH) {
        *out = (regex_match){bytes, bytes};
        return MLA_OK;
    }
    if (code < 0) {
        unsigned char words[96];
        (void)pcre2_get_error_message(code, words, sizeof words);
        return MLAI_FAIL(matcher->memory.has_failed ? MLA_ERR_NO_MEMORY
                                                    : MLA_ERR_UNSUPPORTED,
                         "cannot split the text after byte %zu of a piece of %zu: %s",
                         start, bytes, words);
    }
    const PCRE2_SIZE *range = pcre2_get_ovector_pointer(matcher->data);
    *out = (regex_match){range[0], range[1]};
    return MLA_OK;
}
