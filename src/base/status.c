/* status.c - the words of a status, and filling an error: see status.h. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *text;
} status_words[] = {
#define MLA_X(name, value, text) [(value)] = {"MLA_" #name, (text)},
    MLA_STATUS_MAP(MLA_X)
#undef MLA_X
};

static int is_status(mla_status status)
{
    return (unsigned)status < sizeof status_words / sizeof status_words[0];
}

const char *mla_status_name(mla_status status)
{
    return is_status(status) ? status_words[status].name : "MLA_ERR_UNKNOWN";
}

const char *mla_status_text(mla_status status)
{
    return is_status(status) ? status_words[status].text : "a status of another version";
}

uint32_t mla_version(void)
{
    return (uint32_t)MLA_VERSION_MAJOR << 16 | (uint32_t)MLA_VERSION_MINOR << 8 |
           (uint32_t)MLA_VERSION_PATCH;
}

__attribute__((format(printf, 4, 0))) static void fill(mla_error *err, mla_status status,
                                                       const char *where,
                                                       const char *format, va_list values)
{
    err->status = status;
    err->native_code = 0;
    err->where = where;
    (void)vsnprintf(err->message, sizeof err->message, format, values);
}

mla_status mlai_fail(mla_error *err, mla_status status, const char *where,
                     const char *format, ...)
{
    if (err) {
        va_list values;
        va_start(values, format);
        fill(err, status, where, format, values);
        va_end(values);
    }
    return status;
}

mla_status mlai_fail_errno(mla_error *err, mla_status status, int error_number,
                           const char *where, const char *format, ...)
{
    if (err) {
        va_list values;
        va_start(values, format);
        fill(err, status, where, format, values);
        va_end(values);
        err->native_code = error_number;
        size_t used = strlen(err->message);
        char words[96]; /* GNU strerror_r may answer with a string of its own */
        (void)snprintf(err->message + used, sizeof err->message - used, ": %s",
                       strerror_r(error_number, words, sizeof words));
    }
    return status;
}

void mlai_error_prefix(mla_error *err, const char *format, ...)
{
    if (!err) {
        return;
    }
    char old[sizeof err->message];
    memcpy(old, err->message, sizeof old);
    va_list values;
    va_start(values, format);
    (void)vsnprintf(err->message, sizeof err->message, format, values);
    va_end(values);
    size_t used = strlen(err->message);
    (void)snprintf(err->message + used, sizeof err->message - used, ": %s", old);
}
