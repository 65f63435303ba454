/* Any bytes as a plan's line: refused in one sentence, or caps whose own line gives the same
 * caps again. */
#include <stdbool.h>
#include <string.h>

#include "attention/plan_line.h"
#include "check.h"

/* Floats by their bits, as all of the caps. */
static bool is_same(const void *a, const void *b, size_t bytes)
{
    return memcmp(a, b, bytes) == 0;
}

static void check_again(const mlai_plan_line *line)
{
    const char *device = line->isa == MLA_ISA_C ? "cpu:c" : "cpu:avx2";
    char text[MLAI_PLAN_LINE_BYTES];
    mlai_plan_line again;
    mla_caps expected = line->caps;
    size_t bytes = mlai_plan_line_format(device, &expected, text, sizeof text);
    FUZZ_CHECK(bytes <= sizeof text && strlen(text) + 1 == bytes);
    FUZZ_CHECK(mlai_plan_line_parse(text, bytes - 1, &again, NULL) == MLA_OK);
    expected.interleave = expected.interleave == 1 ? 0 : expected.interleave;
    FUZZ_CHECK(is_same(&again.caps, &expected, sizeof expected));
    FUZZ_CHECK(line->isa == 0 || again.isa == line->isa);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t num_bytes)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    mlai_plan_line line;
    if (mlai_plan_line_parse((const char *)data, num_bytes, &line, &err) == MLA_OK) {
        check_again(&line);
    } else {
        FUZZ_CHECK(err.status == MLA_ERR_ARGUMENT && err.message[0] != 0);
    }
    return 0;
}
