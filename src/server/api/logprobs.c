/* logprobs.c - the logprobs of tokens, in the words of each endpoint. */
#include "server/api/call_parts.h"

/* One token or alternative as chat has it. */
static void write_chat_fields(const tokenizer *words, const engine_logprob *row,
                              api_text *out)
{
    size_t bytes = 0;
    const char *piece = tokenizer_bytes_of(words, row->id, &bytes);
    api_text_add(out, "{\"token\":");
    api_text_bytes_as_string(out, piece, bytes);
    api_text_add(out, ",\"logprob\":");
    api_text_real(out, (double)row->logprob);
    api_text_add(out, ",\"bytes\":");
    for (size_t i = 0; i < bytes; i++) {
        api_text_add(out, i == 0 ? "[" : ",");
        api_text_int(out, (unsigned char)piece[i]);
    }
    api_text_add(out, bytes == 0 ? "[]" : "]");
}

static void write_chat(const api_choice *choice, int64_t from, int64_t until, api_text *out)
{
    const tokenizer *words = choice->text.words;
    api_text_add(out, "{\"content\":[");
    for (int64_t index = from; index < until; index++) {
        engine_event event = api_mailbox_event(&choice->mail, index);
        const engine_logprob own = {event.token, event.logprob};
        api_text_add(out, index > from ? "," : "");
        write_chat_fields(words, &own, out);
        api_text_add(out, ",\"top_logprobs\":[");
        for (int32_t i = 0; i < event.num_top; i++) {
            api_text_add(out, i > 0 ? "," : "");
            write_chat_fields(words, &event.top[i], out);
            api_text_add(out, "}");
        }
        api_text_add(out, "]}");
    }
    api_text_add(out, "],\"refusal\":null}");
}

/* A token's text; where it is no text by itself, its bytes as OpenAI writes them, so that two
 * halves of two characters are not one key. */
static void write_piece(const tokenizer *words, int32_t id, api_text *out)
{
    static const char hex[] = "0123456789abcdef";
    size_t bytes = 0;
    const char *piece = tokenizer_bytes_of(words, id, &bytes);
    if (api_is_text(piece, bytes)) {
        api_text_add(out, "\"");
        api_text_escaped(out, piece, bytes);
        api_text_add(out, "\"");
        return;
    }
    api_text_add(out, "\"bytes:");
    for (size_t i = 0; i < bytes; i++) {
        unsigned char byte = (unsigned char)piece[i];
        const char escaped[] = {'\\', '\\', 'x', hex[byte >> 4], hex[byte & 15]};
        api_text_bytes(out, escaped, sizeof escaped);
    }
    api_text_add(out, "\"");
}

typedef void (*write_item)(const api_choice *choice, const engine_event *event,
                           api_text *out);

static void write_list(const api_choice *choice, int64_t from, int64_t until,
                       write_item write, api_text *out)
{
    for (int64_t index = from; index < until; index++) {
        engine_event event = api_mailbox_event(&choice->mail, index);
        api_text_add(out, index > from ? "," : "");
        write(choice, &event, out);
    }
}

static void write_token(const api_choice *choice, const engine_event *event, api_text *out)
{
    write_piece(choice->text.words, event->token, out);
}

static void write_logprob(const api_choice *choice, const engine_event *event,
                          api_text *out)
{
    (void)choice;
    api_text_real(out, (double)event->logprob);
}

static void write_pair(const tokenizer *words, int32_t id, float logprob, api_text *out)
{
    write_piece(words, id, out);
    api_text_add(out, ":");
    api_text_real(out, (double)logprob);
}

/* The likeliest, and the token itself where it is none of them. */
static void write_tops(const api_choice *choice, const engine_event *event, api_text *out)
{
    const tokenizer *words = choice->text.words;
    bool has_own = false;
    api_text_add(out, "{");
    for (int32_t i = 0; i < event->num_top; i++) {
        api_text_add(out, i > 0 ? "," : "");
        write_pair(words, event->top[i].id, event->top[i].logprob, out);
        has_own = has_own || event->top[i].id == event->token;
    }
    if (!has_own) {
        api_text_add(out, event->num_top > 0 ? "," : "");
        write_pair(words, event->token, event->logprob, out);
    }
    api_text_add(out, "}");
}

/* How many characters begin in a token's share of the text. */
static int64_t chars_of(const api_choice *choice, const engine_event *event)
{
    const tokenizer *words = choice->text.words;
    const engine_request *request = &choice->request;
    size_t bytes = 0;
    int64_t num = 0;
    const char *piece = tokenizer_bytes_of(words, event->token, &bytes);
    bool is_left_out =
        (event->is_end && !request->keeps_stop) ||
        (!request->keeps_special && tokenizer_is_special(words, event->token));
    for (size_t i = 0; !is_left_out && i < bytes; i++) {
        num += ((unsigned char)piece[i] & 0xc0) != 0x80;
    }
    return num;
}

static void write_offsets(api_choice *choice, int64_t from, int64_t until, api_text *out)
{
    for (int64_t index = from; index < until; index++) {
        engine_event event = api_mailbox_event(&choice->mail, index);
        api_text_add(out, index > from ? "," : "");
        api_text_int(out, choice->text_offset);
        choice->text_offset += chars_of(choice, &event);
    }
}

static void write_completion(api_choice *choice, int64_t from, int64_t until, api_text *out)
{
    api_text_add(out, "{\"tokens\":[");
    write_list(choice, from, until, write_token, out);
    api_text_add(out, "],\"token_logprobs\":[");
    write_list(choice, from, until, write_logprob, out);
    api_text_add(out, "],\"top_logprobs\":");
    if (choice->request.num_top_logprobs > 0) {
        api_text_add(out, "[");
        write_list(choice, from, until, write_tops, out);
        api_text_add(out, "]");
    } else {
        api_text_add(out, "null");
    }
    api_text_add(out, ",\"text_offset\":[");
    write_offsets(choice, from, until, out);
    api_text_add(out, "]}");
}

void api_write_logprobs(const api_call *call, api_choice *choice, int64_t from,
                        int64_t until, api_text *out)
{
    if (!choice->mail.logprobs) {
        api_text_add(out, "null");
    } else if (call->kind == API_CHAT) {
        write_chat(choice, from, until, out);
    } else {
        write_completion(choice, from, until, out);
    }
}
