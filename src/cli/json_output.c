/* json_output.c - printing one JSON value: see json_output.h. */
#include "cli/json_output.h"

#include <math.h>
#include <stdio.h>

#include "base/status.h"

enum { INDENT = 2, DIGITS = 15 };

json_t *json_output_rounded(double value)
{
    return json_real(isfinite(value) ? round(value * 1000) / 1000 : 0);
}

mla_status json_output_print(json_t *value, bool is_wide, mla_error *err)
{
    size_t flags = JSON_REAL_PRECISION(DIGITS) | JSON_ENCODE_ANY;
    MLAI_CHECK(value, MLA_ERR_NO_MEMORY, "the memory for the JSON answer is out");
    char *text = json_dumps(value, flags | (is_wide ? JSON_INDENT(INDENT) : 0));
    json_decref(value);
    MLAI_CHECK(text, MLA_ERR_NO_MEMORY, "the memory for the JSON answer is out");
    (void)puts(text);
    json_free_t release = NULL;
    json_get_alloc_funcs(NULL, &release);
    release(text);
    return MLA_OK;
}
