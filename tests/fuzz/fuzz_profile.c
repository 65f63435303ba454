/* Any bytes as a profile: refused in one sentence, or counted: all classes make the sum, and what
 * does not fit says by how much. */
#include <string.h>

#include "check.h"
#include "model/footprint.h"
#include "support/books.h"

static void check_counts(const profile *parsed)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    static footprint print;
    footprint_verdict verdict;
    int32_t concurrency = (int32_t)parsed->is.concurrency;
    if (footprint_of(parsed, concurrency, &print, &err) != MLA_OK) {
        FUZZ_CHECK(err.status != MLA_OK && err.message[0] != 0);
        return;
    }
    uint64_t sum = 0;
    for (int i = 0; i < MLA_NUM_PURPOSES; i++) {
        sum += print.classes[i].now_bytes;
    }
    FUZZ_CHECK(sum == print.now_bytes && sum <= INT64_MAX);
    footprint_judge(parsed, &print, &verdict);
    FUZZ_CHECK(!verdict.fits || sum <= (uint64_t)parsed->is.memory_bytes);
    FUZZ_CHECK(verdict.fits ||
               verdict.deficit_bytes == verdict.required_bytes - verdict.available_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t num_bytes)
{
    static profile parsed;
    mla_error err = {MLA_OK, 0, NULL, ""};
    mla_context books = books_open(NULL);
    mla_status status = profile_parse(&books.ledger, "profile.json", (const char *)data,
                                      num_bytes, &parsed, &err);
    if (status == MLA_OK) {
        check_counts(&parsed);
        profile_close(&parsed);
    } else {
        FUZZ_CHECK(err.status == status && err.message[0] != 0);
    }
    FUZZ_CHECK(books_now(&books) == 0);
    return 0;
}
