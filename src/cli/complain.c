/* complain.c - one line on standard error: see complain.h. */
#include "cli/complain.h"

#include <stdarg.h>
#include <stdio.h>

#include "cli/command.h"

static const char *complain_title = "mla";
static bool has_spoken;

void complain_as(const char *title)
{
    complain_title = title;
}

bool complain_has_spoken(void)
{
    return has_spoken;
}

/* Control characters of a file name or a value must not make a second line. */
static void flatten(char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7f) {
            *text = '?';
        }
    }
}

__attribute__((format(printf, 1, 0))) static void print_line(const char *format,
                                                             va_list values)
{
    char text[768];
    (void)vsnprintf(text, sizeof text, format, values);
    flatten(text);
    has_spoken = true;
    (void)fflush(stdout);
    (void)fprintf(stderr, "%s: %s\n", complain_title, text);
}

int complain_text(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    print_line(format, values);
    va_end(values);
    return COMMAND_FAILED;
}

int complain_misuse(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    print_line(format, values);
    va_end(values);
    return COMMAND_MISUSED;
}

int complain(const mla_error *err)
{
    return complain_text("%s", err->message);
}
