/* The template of a model's directory, and the tokens of a conversation: the demo's vectors,
 * where a template is looked for, and that no text of a message becomes a control token. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "model/chat_template.h"
#include "support/books.h"
#include "support/demo.h"

static mla_context books;
static tokenizer *demo_words;
static chat_template *demo_template;

static int open_demo(void **state)
{
    (void)state;
    mla_error err = {0};
    books = books_open(NULL);
    if (tokenizer_open(&books, TEST_MODELS "/demo", &demo_words, &err) != MLA_OK ||
        chat_template_open(&books, TEST_MODELS "/demo", &demo_template, &err) != MLA_OK) {
        print_error("%s\n", err.message);
        return -1;
    }
    return 0;
}

static int close_demo(void **state)
{
    (void)state;
    tokenizer_close(&demo_words);
    chat_template_close(&demo_template);
    chat_template_close(&demo_template);
    return books_now(&books) == 0 ? 0 : -1;
}

static token_list encode(const json_t *fields, bool allows_control)
{
    mla_error err = {0};
    token_list list = {0};
    const chat_options options = {.is_answered = true, .allows_control = allows_control};
    must(chat_template_encode(demo_template, demo_words, fields, &options, &list, &err),
         &err);
    return list;
}

static token_list encode_plain(const char *text, size_t bytes, unsigned flags)
{
    mla_error err = {0};
    token_list list = {0};
    must(tokenizer_encode(demo_words, text, bytes, flags, &list, &err), &err);
    return list;
}

static bool is_same(const token_list *a, const token_list *b)
{
    return a->num == b->num && memcmp(a->ids, b->ids, a->num * sizeof *a->ids) == 0;
}

static json_t *asking(const char *content)
{
    return json_pack("{s:[{s:s, s:s}]}", "messages", "role", "user", "content", content);
}

static void the_demos_vectors_are_exact(void **state)
{
    (void)state;
    json_t *vectors = demo_read_json("chat_vectors.json");
    assert_true(json_array_size(vectors) > 4);
    for (size_t i = 0; i < json_array_size(vectors); i++) {
        const json_t *golden = json_array_get(vectors, i);
        const json_t *ids = json_object_get(golden, "ids");
        const json_t *text = json_object_get(golden, "text");
        mla_error err = {0};
        jinja_rendering made;
        json_t *fields = json_pack(
            "{s:O, s:O}", "messages", json_object_get(golden, "messages"),
            "add_generation_prompt", json_object_get(golden, "add_generation_prompt"));
        must(chat_template_render(demo_template, fields, true, &made, &err), &err);
        assert_int_equal(made.text.bytes, json_string_length(text));
        assert_memory_equal(made.text.data, json_string_value(text), made.text.bytes);
        jinja_rendering_free(&made);
        token_list list = encode(fields, false);
        assert_int_equal(list.num, json_array_size(ids));
        for (size_t j = 0; j < list.num; j++) {
            assert_int_equal(list.ids[j], json_integer_value(json_array_get(ids, j)));
        }
        token_list_free(&list);
        json_decref(fields);
    }
    json_decref(vectors);
}

/* Without control tokens in the messages, the ids are those of the rendered text. */
static void ordinary_text_is_encoded_as_one(void **state)
{
    (void)state;
    static const char *const texts[] = {"Hello",
                                        " a",
                                        "1234567",
                                        "\n\n x \n",
                                        "na\xc3\xafve",
                                        "\xe4\xbd\xa0\xe5\xa5\xbd",
                                        "<",
                                        "",
                                        "if (a<b)",
                                        "<\xef\xbd\x9c",
                                        "User",
                                        " \t"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        mla_error err = {0};
        jinja_rendering made;
        json_t *fields = asking(texts[i]);
        must(chat_template_render(demo_template, fields, true, &made, &err), &err);
        token_list wanted =
            encode_plain(made.text.data, made.text.bytes, TOKENIZER_PARSE_SPECIAL);
        token_list got = encode(fields, false);
        assert_true(is_same(&got, &wanted));
        token_list_free(&got);
        token_list_free(&wanted);
        jinja_rendering_free(&made);
        json_decref(fields);
    }
}

#define USER "<\xef\xbd\x9cUser\xef\xbd\x9c>"
#define ASSISTANT                                                                          \
    "<\xef\xbd\x9c"                                                                        \
    "Assistant\xef\xbd\x9c>"
#define BOS                                                                                \
    "<\xef\xbd\x9c"                                                                        \
    "begin\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>"

/* Every added token of the demo, in a message: its ids must be those of its letters. */
static void no_message_forges_a_control_token(void **state)
{
    (void)state;
    int32_t num = 0;
    for (int32_t id = 0; id < tokenizer_vocab_size(demo_words); id++) {
        size_t bytes;
        char text[256];
        const char *token = tokenizer_bytes_of(demo_words, id, &bytes);
        if (bytes < 4 || bytes > 200 || token[0] != '<' || token[bytes - 1] != '>') {
            continue;
        }
        (void)snprintf(text, sizeof text, "a%.*s", (int)bytes, token);
        json_t *fields = asking(text);
        token_list got = encode(fields, false);
        token_list plain = encode_plain(text, bytes + 1, TOKENIZER_PLAIN);
        assert_int_equal(got.num, plain.num + 3); /* BOS, user, assistant */
        assert_memory_equal(got.ids + 2, plain.ids, plain.num * sizeof *plain.ids);
        token_list allowed = encode(fields, true);
        assert_int_equal(allowed.num, 5);
        assert_int_equal(allowed.ids[3], id);
        token_list_free(&allowed);
        token_list_free(&got);
        token_list_free(&plain);
        json_decref(fields);
        num++;
    }
    assert_true(num > 4);
}

/* Half of a token from the template and half from a message is none either. */
static void a_token_over_a_border_is_none(void **state)
{
    (void)state;
    static const char text[] = USER "x" USER;
    static const char *const marked[] = {"i........", "........i", "....i...."};
    for (size_t i = 0; i < 3; i++) {
        unsigned char marks[sizeof text] = {0};
        mla_error err = {0};
        token_list list = {0};
        size_t bytes = strlen(USER);
        for (size_t j = 0; j < 9; j++) {
            marks[j == 8 ? bytes - 1 : j] |= marked[i][j] == 'i';
        }
        must(tokenizer_encode_marked(demo_words, text, marks, sizeof text - 1,
                                     TOKENIZER_PARSE_SPECIAL, &list, &err),
             &err);
        token_list user = encode_plain(USER, bytes, TOKENIZER_PARSE_SPECIAL);
        token_list first = encode_plain(USER "x", bytes + 1, TOKENIZER_PLAIN);
        assert_int_equal(user.num, 1);
        assert_int_equal(list.num, first.num + 1);
        assert_memory_equal(list.ids, first.ids, first.num * sizeof *first.ids);
        assert_int_equal(list.ids[first.num], user.ids[0]);
        token_list_free(&user);
        token_list_free(&first);
        token_list_free(&list);
    }
}

static void parts_of_text_are_joined_and_others_refused(void **state)
{
    (void)state;
    json_t *parts = json_loads(
        "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\", "
        "\"text\": \"Hel\"}, {\"type\": \"text\", \"text\": \"lo\"}]}]}",
        0, NULL);
    json_t *whole = asking("Hello");
    token_list a = encode(parts, false);
    token_list b = encode(whole, false);
    assert_true(is_same(&a, &b));
    token_list_free(&a);
    token_list_free(&b);
    json_decref(parts);
    json_decref(whole);
    static const char *const bad[] = {
        "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image_url\"}]}]}",
        "{\"messages\": 3}", "[]"};
    for (size_t i = 0; i < 3; i++) {
        mla_error err = {0};
        jinja_rendering made;
        json_t *fields = json_loads(bad[i], 0, NULL);
        assert_int_equal(chat_template_render(demo_template, fields, true, &made, &err),
                         MLA_ERR_ARGUMENT);
        assert_true(i > 0 || strstr(err.message, "\"image_url\""));
        jinja_rendering_free(&made);
        json_decref(fields);
    }
}

typedef struct place {
    const char *jinja, *config, *legacy; /* the files; NULL: none */
    const char *wanted;                  /* printed, or */
    const char *refusal;                 /* words of it */
} place;

static void write_file(const char *dir, const char *name, const char *text)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    (void)unlink(path);
    if (text) {
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        assert_true(fputs(text, file) >= 0);
        assert_int_equal(fclose(file), 0);
    }
}

static void check_place(const char *dir, const place *row)
{
    mla_error err = {0};
    chat_template *t = NULL;
    jinja_rendering made = {.text = {.bytes = 0}};
    json_t *fields = json_loads("{\"messages\": [], \"tools\": [1]}", 0, NULL);
    write_file(dir, "chat_template.jinja", row->jinja);
    write_file(dir, "tokenizer_config.json", row->config);
    write_file(dir, "chat_template.json", row->legacy);
    mla_status status = chat_template_open(&books, dir, &t, &err);
    status = status == MLA_OK ? chat_template_render(t, fields, true, &made, &err) : status;
    if (row->wanted) {
        must(status, &err);
        assert_int_equal(made.text.bytes, strlen(row->wanted));
        assert_memory_equal(made.text.data, row->wanted, made.text.bytes);
    } else if (status == MLA_OK || !strstr(err.message, row->refusal)) {
        fail_msg("%s, wanted %s", err.message, row->refusal);
    }
    jinja_rendering_free(&made);
    chat_template_close(&t);
    json_decref(fields);
}

static void templates_are_found_where_transformers_finds_them(void **state)
{
    (void)state;
    static const place rows[] = {
        {"J{{ bos_token }}", "{\"chat_template\": \"C\", \"bos_token\": \"<b>\"}",
         "{\"chat_template\": \"L\"}", "J<b>", NULL},
        {NULL,
         "{\"chat_template\": \"C{{ eos_token }}\", \"eos_token\": {\"content\": \"<e>\"}}",
         "{\"chat_template\": \"L\"}", "C<e>", NULL},
        {NULL, "{}", "{\"chat_template\": \"L{{ bos_token }}\"}", "L", NULL},
        {NULL, NULL, "{\"chat_template\": \"L\"}", "L", NULL},
        {NULL, "{\"chat_template\": [{\"name\": \"default\", \"template\": \"D\"}]}", NULL,
         "D", NULL},
        {NULL,
         "{\"chat_template\": [{\"name\": \"default\", \"template\": \"D\"}, {\"name\": "
         "\"tool_use\", \"template\": \"T\"}]}",
         NULL, "T", NULL},
        {NULL, "{\"chat_template\": [{\"name\": \"rag\", \"template\": \"D\"}]}", NULL,
         NULL, "\"default\""},
        {NULL, "{\"chat_template\": 3}", NULL, NULL, "is 3 and should be a string"},
        {NULL, "{}", NULL, NULL, "has no chat template"},
        {"{% if %}", "{}", NULL, NULL, "line 1: '%}' is where a value should be"},
        {"\n{{ messages.x.y }}", "{}", NULL, NULL,
         "the chat template, line 2: 'x' is undefined"},
    };
    char dir[] = "/tmp/mla_chat_XXXXXX";
    assert_non_null(mkdtemp(dir));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_place(dir, &rows[i]);
    }
    check_place(dir, &(place){NULL, NULL, NULL, NULL, "has no chat template"});
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_demos_vectors_are_exact),
        cmocka_unit_test(ordinary_text_is_encoded_as_one),
        cmocka_unit_test(no_message_forges_a_control_token),
        cmocka_unit_test(a_token_over_a_border_is_none),
        cmocka_unit_test(parts_of_text_are_joined_and_others_refused),
        cmocka_unit_test(templates_are_found_where_transformers_finds_them),
    };
    return cmocka_run_group_tests_name("chat_template", tests, open_demo, close_demo);
}
