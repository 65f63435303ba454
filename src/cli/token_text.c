/* token_text.c - tokens to text: see token_text.h. */
#include "cli/token_text.h"

#include "base/status.h"

enum { MAX_HELD = 4, GROWTH = 3 /* a bad byte becomes the three of U+FFFD */ };

static mla_status feed(token_text *text, const char *piece, size_t bytes, mla_error *err)
{
    MLAI_TRY(byte_buffer_reserve(&text->bytes, GROWTH * (bytes + MAX_HELD), err));
    text->bytes.num +=
        detokenizer_feed(&text->state, piece, bytes, text->bytes.data + text->bytes.num);
    return MLA_OK;
}

mla_status token_text_add(token_text *text, const tokenizer *words, int32_t id,
                          mla_error *err)
{
    size_t bytes = 0;
    if (tokenizer_is_special(words, id)) {
        return MLA_OK;
    }
    const char *piece = tokenizer_bytes_of(words, id, &bytes);
    return feed(text, piece, bytes, err);
}

mla_status token_text_add_any(token_text *text, const tokenizer *words, int32_t id,
                              mla_error *err)
{
    size_t bytes = 0;
    int32_t vocab = tokenizer_vocab_size(words);
    MLAI_CHECK(id >= 0 && id < vocab, MLA_ERR_ARGUMENT,
               "id %d is no token of this model, whose ids end at %d", id, vocab - 1);
    const char *piece = tokenizer_bytes_of(words, id, &bytes);
    return feed(text, piece, bytes, err);
}

mla_status token_text_finish(token_text *text, mla_error *err)
{
    MLAI_TRY(byte_buffer_reserve(&text->bytes, MAX_HELD, err));
    text->bytes.num += detokenizer_finish(&text->state, text->bytes.data + text->bytes.num);
    return MLA_OK;
}
