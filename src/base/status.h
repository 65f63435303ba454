/* status.h - how a function says that it failed: a status, and one sentence with the
 * offending values in the caller's mla_error. The macros expect that `err` names it. */
#ifndef MLA_BASE_STATUS_H
#define MLA_BASE_STATUS_H

#include "mla/mla.h"

#define MLAI_TEXT_OF(x) #x
#define MLAI_TEXT(x)    MLAI_TEXT_OF(x)
#define MLAI_HERE       __FILE__ ":" MLAI_TEXT(__LINE__)

/* Fills *err (read: may be NULL; where: static storage) and returns `status`, so that a
 * refusal is one line: return mlai_fail(...). */
mla_status mlai_fail(mla_error *err, mla_status status, const char *where,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The same, with errno's number in native_code and its text after the sentence. */
mla_status mlai_fail_errno(mla_error *err, mla_status status, int error_number,
                           const char *where, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Puts a sentence in front of one that is already there: "request 3: <message>". */
void mlai_error_prefix(mla_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#define MLAI_FAIL(status, ...) mlai_fail(err, (status), MLAI_HERE, __VA_ARGS__)

#define MLAI_CHECK(condition, status, ...)                                                 \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            return mlai_fail(err, (status), MLAI_HERE, __VA_ARGS__);                       \
        }                                                                                  \
    } while (0)

#define MLAI_TRY(call)                                                                     \
    do {                                                                                   \
        mla_status mlai_try_status = (call);                                               \
        if (mlai_try_status != MLA_OK) {                                                   \
            return mlai_try_status;                                                        \
        }                                                                                  \
    } while (0)

/* Twins for functions that clean up: they set a local `status` and go to `label`. */
#define MLAI_CHECK_OR(label, condition, code, ...)                                         \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            status = mlai_fail(err, (code), MLAI_HERE, __VA_ARGS__);                       \
            goto label;                                                                    \
        }                                                                                  \
    } while (0)

#define MLAI_TRY_OR(label, call)                                                           \
    do {                                                                                   \
        status = (call);                                                                   \
        if (status != MLA_OK) {                                                            \
            goto label;                                                                    \
        }                                                                                  \
    } while (0)

#endif
