/* A file that npy_parse takes has just the items that its header names, and taking it again
 * gives the same; a file that it refuses leaves the result alone. */
#include <string.h>

#include "check.h"
#include "cli/npy.h"

static void check_header(const npy_header *header, size_t num_bytes)
{
    uint64_t num = 1;
    FUZZ_CHECK(header->type == NPY_F32 || header->type == NPY_INT32);
    FUZZ_CHECK(header->num_dims >= 0 && header->num_dims <= NPY_MAX_DIMS);
    for (int32_t i = 0; i < header->num_dims; i++) {
        FUZZ_CHECK(header->dims[i] >= 0);
        num *= (uint64_t)header->dims[i];
    }
    FUZZ_CHECK(header->num_items == num);
    FUZZ_CHECK(header->data_offset <= num_bytes);
    FUZZ_CHECK((num_bytes - header->data_offset) / NPY_ITEM_BYTES == num);
    FUZZ_CHECK((num_bytes - header->data_offset) % NPY_ITEM_BYTES == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t num_bytes)
{
    npy_header header;
    npy_header again;
    npy_header untouched;
    mla_error error;
    memset(&header, 0x5a, sizeof header);
    memset(&again, 0x5a, sizeof again);
    memset(&untouched, 0x5a, sizeof untouched);
    if (npy_parse(data, num_bytes, &header, &error) != MLA_OK) {
        FUZZ_CHECK(memcmp(&header, &untouched, sizeof header) == 0);
        FUZZ_CHECK(error.status != MLA_OK && error.message[0] != 0);
        return 0;
    }
    check_header(&header, num_bytes);
    FUZZ_CHECK(npy_parse(data, num_bytes, &again, NULL) == MLA_OK);
    FUZZ_CHECK(again.num_items == header.num_items &&
               again.data_offset == header.data_offset);
    return 0;
}
