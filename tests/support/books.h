/* books.h - a context that is nothing but a ledger, for parts that need no threads. */
#ifndef TEST_BOOKS_H
#define TEST_BOOKS_H

#include "attention/context.h"

/* allocator: NULL: the C library's. */
static inline mla_context books_open(const mla_allocator *allocator)
{
    mla_context books = {.backend = MLA_BACKEND_CPU};
    (void)mlai_ledger_init(&books.ledger, allocator, 0, NULL);
    return books;
}

/* Everything that is entered now, in all classes. */
static inline uint64_t books_now(const mla_context *books)
{
    return books->ledger.space_now_bytes[MLA_SPACE_HOST];
}

#endif
