/* outline.c - walking an object: see outline.h. */
#include "cli/outline.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cli/human_bytes.h"

enum { INDENT = 2, KEY_WIDTH = 20, MAX_SECTION_DEPTH = 2 };

static bool is_bytes(const char *key)
{
    static const char end[] = "bytes";
    size_t length = strlen(key);
    return length >= sizeof end - 1 && !strcmp(key + length - (sizeof end - 1), end);
}

/* "total_bytes" is "total": its value says the unit. Returns how many characters. */
static int print_key(const char *key)
{
    int length = (int)strlen(key) - (is_bytes(key) ? (int)sizeof "_bytes" - 1 : 0);
    for (int i = 0; i < length; i++) {
        (void)putchar(key[i] == '_' ? ' ' : key[i]);
    }
    return length > 0 ? length : 0;
}

static void print_integer(const char *key, json_int_t value)
{
    if (is_bytes(key) && value >= 0) {
        char text[HUMAN_BYTES_CHARS];
        human_bytes_write((uint64_t)value, text);
        (void)printf("%s", text);
    } else {
        (void)printf("%lld", (long long)value);
    }
}

static void print_scalar(const char *key, const json_t *value)
{
    if (json_is_string(value)) {
        const char *text = json_string_value(value);
        (void)printf("%s", *text ? text : "none");
    } else if (json_is_integer(value)) {
        print_integer(key, json_integer_value(value));
    } else if (json_is_real(value)) {
        (void)printf("%g", json_real_value(value));
    } else if (json_is_boolean(value)) {
        (void)printf("%s", json_is_true(value) ? "yes" : "no");
    } else {
        (void)printf("not known");
    }
}

static void print_array(const char *key, const json_t *array)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        (void)printf("%s", i ? ", " : "");
        print_scalar(key, json_array_get(array, i));
    }
    (void)printf("%s", json_array_size(array) ? "" : "none");
}

static void print_object(const json_t *object, int depth);

/* "48.0 KiB, count 2" */
static void print_pairs(const json_t *object)
{
    const char *key;
    json_t *value;
    const char *comma = "";
    json_t *whole = json_incref((json_t *)(uintptr_t)object);
    json_object_foreach(whole, key, value)
    {
        (void)printf("%s", comma);
        (void)printf("%s", print_key(key) > 0 ? " " : "");
        print_scalar(key, value);
        comma = ", ";
    }
    json_decref(whole);
}

static void print_section(const char *key, const json_t *object, int depth)
{
    (void)printf("%s%*s", depth == 0 ? "\n" : "", depth * INDENT, "");
    (void)print_key(key);
    (void)printf("\n");
    print_object(object, depth + 1);
}

static void print_line(const char *key, const json_t *value, int depth)
{
    (void)printf("%*s", depth * INDENT, "");
    int width = depth * INDENT + print_key(key);
    (void)printf("%*s", width < KEY_WIDTH ? KEY_WIDTH - width : 1, "");
    if (json_is_array(value)) {
        print_array(key, value);
    } else if (json_is_object(value)) {
        print_pairs(value);
    } else {
        print_scalar(key, value);
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
        if (json_is_object(value) && depth < MAX_SECTION_DEPTH) {
            print_section(key, value, depth);
        } else {
            print_line(key, value, depth);
        }
    }
    json_decref(whole);
}

void outline_print(const json_t *object)
{
    print_object(object, 0);
}
