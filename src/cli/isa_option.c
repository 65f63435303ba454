/* isa_option.c - the words of --isa: see isa_option.h. */
#include "cli/isa_option.h"

#include <errno.h>
#include <string.h>

#include "base/status.h"
#include "cli/complain.h"

error_t isa_option_parse(const char *text, uint32_t *mask)
{
    bool is_avx2 = !strcmp(text, "avx2");
    if (!is_avx2 && strcmp(text, "c") != 0) {
        (void)complain_misuse("--isa '%s' is neither c nor avx2", text);
        return EINVAL;
    }
    *mask = MLA_ISA_C | (is_avx2 ? (uint32_t)MLA_ISA_AVX2 : 0U);
    return 0;
}

mla_status isa_option_check(uint32_t mask, const mla_device_info *info, mla_error *err)
{
    MLAI_CHECK((mask & ~info->isa_mask) == 0, MLA_ERR_UNSUPPORTED,
               "--isa avx2: this CPU or operating system lacks AVX2, FMA or F16C (%s)",
               info->name);
    return MLA_OK;
}
