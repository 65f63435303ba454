/* must.c - see must.h. */
#include "support/must.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

void must(mla_status status, const mla_error *err)
{
    if (status != MLA_OK) {
        fail_msg("%s: %s (%s)", mla_status_name(status), err->message, err->where);
    }
}
