/* One tokenizer, many threads: each call's matching memory is its own. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/json.h"
#include "model/tokenizer.h"
#include "support/books.h"

enum { NUM_THREADS = 4, NUM_TURNS = 50 };

static const char text[] =
    "static int main(void)\n{\n    return 0x1234; /* \xe4\xb8\xad\xe6"
    "\x96\x87 text  */\n}\n<\xef\xbd\x9cUser\xef\xbd\x9c>Hello";

typedef struct worker {
    pthread_t thread;
    mla_context *books;
    const tokenizer *t;
    const token_list *wanted;
    int num_wrong;
} worker;

static void *encode_often(void *arg)
{
    worker *self = arg;
    for (int i = 0; i < NUM_TURNS; i++) {
        token_list list = {0};
        mla_status status = tokenizer_encode(self->t, text, sizeof text - 1,
                                             TOKENIZER_PARSE_SPECIAL, &list, NULL);
        self->num_wrong +=
            status != MLA_OK || list.num != self->wanted->num ||
            memcmp(list.ids, self->wanted->ids, list.num * sizeof *list.ids) != 0;
        token_list_free(&list);
    }
    return NULL;
}

/* Documents of many threads, each in its own ledger's books. */
static void *parse_often(void *arg)
{
    worker *self = arg;
    mla_context books = books_open(NULL);
    for (int i = 0; i < NUM_TURNS; i++) {
        json_document doc = {0};
        self->num_wrong += document_parse(&books.ledger, "x", "{\"a\": [1, 2]}", 13, &doc,
                                          NULL) != MLA_OK ||
                           books_now(&books) == 0;
        document_close(&doc);
        self->num_wrong += books_now(&books) != 0;
    }
    return NULL;
}

static void run(worker *workers, void *(*work)(void *))
{
    for (int i = 0; i < NUM_THREADS; i++) {
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < NUM_THREADS; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        assert_int_equal(workers[i].num_wrong, 0);
    }
}

static void threads_encode_with_one_tokenizer(void **state)
{
    (void)state;
    mla_context books = books_open(NULL);
    tokenizer *t = NULL;
    token_list wanted = {0};
    worker workers[NUM_THREADS];
    assert_int_equal(tokenizer_open(&books, TEST_MODELS "/demo", &t, NULL), MLA_OK);
    assert_int_equal(
        tokenizer_encode(t, text, sizeof text - 1, TOKENIZER_PARSE_SPECIAL, &wanted, NULL),
        MLA_OK);
    for (int i = 0; i < NUM_THREADS; i++) {
        workers[i] = (worker){.books = &books, .t = t, .wanted = &wanted};
    }
    run(workers, encode_often);
    token_list_free(&wanted);
    tokenizer_close(&t);
    assert_int_equal(books_now(&books), 0);
}

static void threads_read_json_in_books_of_their_own(void **state)
{
    (void)state;
    worker workers[NUM_THREADS] = {{.num_wrong = 0}};
    run(workers, parse_often);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_encode_with_one_tokenizer),
        cmocka_unit_test(threads_read_json_in_books_of_their_own),
    };
    return cmocka_run_group_tests_name("tokenizer_threads", tests, NULL, NULL);
}
