/* device_option.c - reads --device: see device_option.h. */
#include "cli/device_option.h"

#include <errno.h>
#include <string.h>

#include "cli/complain.h"

error_t device_option_parse(const char *text, mla_backend *out)
{
    if (strcmp(text, "cpu") != 0 && strcmp(text, "cuda") != 0) {
        (void)complain_misuse("--device '%s' is neither cpu nor cuda", text);
        return EINVAL;
    }
    *out = !strcmp(text, "cuda") ? MLA_BACKEND_CUDA : MLA_BACKEND_CPU;
    return 0;
}
