/* sort.c - heap sort. */
#include "model/sort.h"

static void swap(const void **a, const void **b)
{
    const void *other = *a;
    *a = *b;
    *b = other;
}

/* Lets the item at `root` sink until neither child is larger. */
static void sink(const void **items, size_t root, size_t num, sort_order order)
{
    for (size_t child = 2 * root + 1; child < num; child = 2 * root + 1) {
        if (child + 1 < num && order(items[child], items[child + 1]) < 0) {
            child++;
        }
        if (order(items[root], items[child]) >= 0) {
            return;
        }
        swap(&items[root], &items[child]);
        root = child;
    }
}

void sort_pointers(const void **items, size_t num, sort_order order)
{
    for (size_t i = num / 2; i > 0; i--) {
        sink(items, i - 1, num, order);
    }
    for (size_t end = num; end > 1; end--) {
        swap(&items[0], &items[end - 1]);
        sink(items, 0, end - 1, order);
    }
}
