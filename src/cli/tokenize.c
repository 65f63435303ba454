/* tokenize.c - `mla tokenize`: text on standard input to token ids, and back. */
#include <errno.h>
#include <stdio.h>

#include "base/status.h"
#include "cli/chat_prompt.h"
#include "cli/command.h"
#include "cli/complain.h"
#include "cli/id_list.h"
#include "cli/loaded_model.h"
#include "cli/text_file.h"
#include "cli/token_text.h"

enum { KEY_BOS = 0x100, KEY_DECODE, KEY_JSON, KEY_CHAT, KEY_ALLOW_SPECIAL, KEY_TEXT };

typedef struct tokenize_options {
    model_options model;
    bool adds_bos, is_decode, is_text;
    chat_source chat; /* without a path: text on standard input */
} tokenize_options;

static const struct argp_option options[] = {
    {"bos", KEY_BOS, NULL, 0, "put BOS in front, unless the text begins with it", 0},
    {"decode", KEY_DECODE, NULL, 0, "ids in (that object, an array or numbers), text out",
     0},
    {"chat", KEY_CHAT, "FILE", 0,
     "the ids of a conversation, {\"messages\": [...]}, as the model's template writes it",
     0},
    {"text", KEY_TEXT, NULL, 0, "with --chat: its text instead of its ids", 0},
    {"allow-special", KEY_ALLOW_SPECIAL, NULL, 0,
     "with --chat: control tokens in its texts are control tokens", 0},
    {"json", KEY_JSON, NULL, 0, "ids are always JSON; for symmetry", 0},
    {0},
};

static error_t check_complete(tokenize_options *out, const arguments_slot *slots)
{
    error_t error = arguments_check_filled(slots, 1);
    bool is_chat = out->chat.path != NULL;
    bool is_wrong = is_chat ? out->adds_bos || out->is_decode
                            : out->is_text || out->chat.allows_control;
    out->chat.dir = out->model.dir;
    if (!error && is_wrong) {
        (void)complain_misuse(
            "--text and --allow-special go with --chat, --bos and --decode "
            "do not");
        error = EINVAL;
    }
    return error;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    tokenize_options *out = state->input;
    const arguments_slot slots[] = {{"MODEL", &out->model.dir}};
    switch (key) {
    case ARGP_KEY_INIT:
        return arguments_begin(state);
    case KEY_BOS:
        out->adds_bos = true;
        return 0;
    case KEY_DECODE:
        out->is_decode = true;
        return 0;
    case KEY_CHAT:
        out->chat.path = text;
        return 0;
    case KEY_TEXT:
        out->is_text = true;
        return 0;
    case KEY_ALLOW_SPECIAL:
        out->chat.allows_control = true;
        return 0;
    case KEY_JSON:
        return 0;
    case ARGP_KEY_ARG:
        return arguments_fill(slots, 1, text);
    case ARGP_KEY_END:
        return check_complete(out, slots);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp tokenize_argp = {
    .options = options,
    .parser = parse,
    .args_doc = "MODEL",
    .doc = "Text on standard input becomes {\"ids\": [...]} on standard output; special "
           "tokens in the text become their ids.",
};

static void print_ids(const token_list *list)
{
    (void)fputs("{\"ids\": [", stdout);
    for (size_t i = 0; i < list->num; i++) {
        (void)printf("%s%d", i ? ", " : "", (int)list->ids[i]);
    }
    (void)fputs("]}\n", stdout);
}

static mla_status encode(const loaded_model *loaded, bool adds_bos, const byte_buffer *text,
                         mla_error *err)
{
    token_list list = {0};
    unsigned flags = TOKENIZER_PARSE_SPECIAL | (adds_bos ? TOKENIZER_ADD_BOS : 0U);
    MLAI_TRY(tokenizer_encode(loaded->tokenizer, text->data, text->num, flags, &list, err));
    print_ids(&list);
    token_list_free(&list);
    return MLA_OK;
}

static mla_status decode(const loaded_model *loaded, const byte_buffer *text,
                         mla_error *err)
{
    id_list ids = {.context = loaded->context};
    token_text out = {.bytes = {.context = loaded->context}};
    mla_status status = id_list_parse(&ids, text->data, text->num, err);
    for (size_t i = 0; status == MLA_OK && i < ids.num; i++) {
        status = token_text_add_any(&out, loaded->tokenizer, ids.ids[i], err);
    }
    if (status == MLA_OK) {
        status = token_text_finish(&out, err);
    }
    if (status == MLA_OK && out.bytes.num > 0) {
        (void)fwrite(out.bytes.data, 1, out.bytes.num, stdout);
    }
    byte_buffer_free(&out.bytes);
    id_list_free(&ids);
    return status;
}

static mla_status print_chat(const loaded_model *loaded, const tokenize_options *wanted,
                             mla_error *err)
{
    token_list list = {0};
    byte_buffer text = {.context = loaded->context};
    if (!wanted->is_text) {
        MLAI_TRY(chat_prompt_encode(loaded->context, loaded->tokenizer, &wanted->chat,
                                    &list, err));
        print_ids(&list);
        token_list_free(&list);
        return MLA_OK;
    }
    mla_status status = chat_prompt_render(loaded->context, &wanted->chat, &text, err);
    if (status == MLA_OK && text.num > 0) {
        (void)fwrite(text.data, 1, text.num, stdout);
    }
    byte_buffer_free(&text);
    return status;
}

static mla_status tokenize(loaded_model *loaded, const tokenize_options *wanted,
                           mla_error *err)
{
    MLAI_TRY(loaded_model_open(loaded, &wanted->model, err));
    if (wanted->chat.path) {
        return print_chat(loaded, wanted, err);
    }
    byte_buffer text = {.context = loaded->context};
    mla_status status = text_file_read("-", &text, err);
    if (status == MLA_OK) {
        status = wanted->is_decode ? decode(loaded, &text, err)
                                   : encode(loaded, wanted->adds_bos, &text, err);
    }
    byte_buffer_free(&text);
    return status;
}

int command_tokenize(int argc, char **argv)
{
    tokenize_options wanted = {.model = {.num_threads = 1}};
    if (!arguments_parse(&tokenize_argp, argc, argv, &wanted)) {
        return COMMAND_MISUSED;
    }
    loaded_model loaded = {0};
    mla_error error = {0};
    mla_status status = tokenize(&loaded, &wanted, &error);
    return loaded_model_end(&loaded, status, &error);
}
