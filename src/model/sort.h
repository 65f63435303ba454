/* sort.h - sorting pointers in place. The C library's qsort may call the allocator behind
 * the ledger's back (glibc's does); this one takes no memory and is O(n log n) always. */
#ifndef MLA_MODEL_SORT_H
#define MLA_MODEL_SORT_H

#include <stddef.h>

typedef int (*sort_order)(const void *a, const void *b); /* of what the pointers point to */

/* items: [num], sorted in place; equal ones in any order. */
void sort_pointers(const void **items, size_t num, sort_order order);

#endif
