/* prompts.c - the tokens of a prompt, and its room: see prompts.h. */
#include "cli/prompts.h"

#include <string.h>

#include "base/status.h"
#include "cli/text_file.h"

static mla_status encode_text(const tokenizer *words, const char *text, size_t bytes,
                              token_list *out, mla_error *err)
{
    unsigned flags = TOKENIZER_PARSE_SPECIAL;
    flags |= tokenizer_adds_bos(words) ? TOKENIZER_ADD_BOS : 0U;
    mla_status status = tokenizer_encode(words, text, bytes, flags, out, err);
    if (status != MLA_OK) {
        mlai_error_prefix(err, "the prompt");
        return status;
    }
    if (out->num == 0) {
        token_list_free(out);
        return MLAI_FAIL(MLA_ERR_ARGUMENT, "the prompt has no tokens");
    }
    return MLA_OK;
}

mla_status prompt_encode(mla_context *context, const tokenizer *words,
                         const prompt_source *source, token_list *out, mla_error *err)
{
    if (source->text) {
        return encode_text(words, source->text, strlen(source->text), out, err);
    }
    if (source->chat.path) {
        return chat_prompt_encode(context, words, &source->chat, out, err);
    }
    byte_buffer file = {.context = context};
    mla_status status = text_file_read(source->path, &file, err);
    if (status == MLA_OK) {
        status = encode_text(words, file.data, file.num, out, err);
    }
    byte_buffer_free(&file);
    return status;
}

mla_status prompt_room(int64_t num_prompt, int64_t max_tokens, int64_t context_tokens,
                       int64_t *out, mla_error *err)
{
    int64_t room = context_tokens - num_prompt;
    MLAI_CHECK(room >= 1, MLA_ERR_ARGUMENT,
               "a prompt of %lld tokens leaves no room in the model's context of %lld",
               (long long)num_prompt, (long long)context_tokens);
    MLAI_CHECK(max_tokens <= room, MLA_ERR_ARGUMENT,
               "a prompt of %lld tokens and %lld new ones need %lld, which the model's "
               "context of %lld does not hold",
               (long long)num_prompt, (long long)max_tokens,
               (long long)(num_prompt + max_tokens), (long long)context_tokens);
    *out = max_tokens > 0 ? max_tokens : room;
    return MLA_OK;
}
