/* Any bytes as a safetensors file: refused in one sentence, or every tensor lies inside the
 * file and they cover its data exactly; nothing stays in the books either way. */
#include "check.h"
#include "model/safetensors.h"
#include "support/books.h"

/* Reads every byte, so that a sanitizer sees one that is not the file's. */
static uint64_t sum_of(const stored_tensor *tensor)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < tensor->bytes; i++) {
        sum += tensor->data[i];
    }
    return sum;
}

static void check_table(const tensor_table *table, const uint8_t *data, size_t num_bytes)
{
    size_t covered = 0;
    for (size_t i = 0; i < table->num; i++) {
        const stored_tensor *tensor = &table->tensors[i];
        FUZZ_CHECK(tensor->data >= data + 8 &&
                   tensor->bytes <= (size_t)(data + num_bytes - tensor->data));
        FUZZ_CHECK(sum_of(tensor) <= 255 * (uint64_t)tensor->bytes);
        covered += tensor->bytes;
    }
    uint64_t header = 0;
    for (int i = 7; i >= 0; i--) {
        header = header << 8 | data[i];
    }
    FUZZ_CHECK(covered == num_bytes - 8 - header);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t num_bytes)
{
    mla_context books = books_open(NULL);
    tensor_table table = {0};
    mla_error err = {0};
    if (safetensors_parse(&books.ledger, "x", data, num_bytes, &table, &err) == MLA_OK) {
        check_table(&table, data, num_bytes);
        tensor_table_free(&table);
    } else {
        FUZZ_CHECK(err.status != MLA_OK && err.message[0] != 0);
    }
    FUZZ_CHECK(books_now(&books) == 0);
    return 0;
}
