/* outline.c - JSON as indented text: see outline.h. */
#include "cli/outline.h"

#include <stdint.h>
#include <stdio.h>

enum { INDENT = 2, KEY_WIDTH = 22, MAX_DEPTH = 4 };

static void print_scalar(const json_t *value)
{
    if (json_is_string(value)) {
        (void)printf("%s", json_string_value(value));
    } else if (json_is_integer(value)) {
        (void)printf("%lld", (long long)json_integer_value(value));
    } else if (json_is_real(value)) {
        (void)printf("%g", json_real_value(value));
    } else if (json_is_boolean(value)) {
        (void)printf("%s", json_is_true(value) ? "yes" : "no");
    } else {
        (void)printf("not known");
    }
}

static void print_object(const json_t *object, int depth);

static void print_value(const json_t *value, int depth)
{
    if (json_is_object(value) && depth < MAX_DEPTH) {
        (void)printf("\n");
        print_object(value, depth + 1);
        return;
    }
    for (size_t i = 0; json_is_array(value) && i < json_array_size(value); i++) {
        (void)printf("%s", i ? ", " : "");
        print_scalar(json_array_get(value, i));
    }
    if (!json_is_array(value)) {
        print_scalar(value);
    }
    (void)printf("\n");
}

/* jansson's iterators take no const object, but read only. */
static void print_object(const json_t *object, int depth)
{
    const char *key;
    json_t *value;
    json_t *whole = json_incref((json_t *)(uintptr_t)object);
    json_object_foreach(whole, key, value)
    {
        int indent = depth * INDENT;
        (void)printf("%*s%-*s ", indent, "", KEY_WIDTH - indent, key);
        print_value(value, depth);
    }
    json_decref(whole);
}

void outline_print(const json_t *object)
{
    print_object(object, 0);
}
