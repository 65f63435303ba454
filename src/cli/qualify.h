/* qualify.h - `mla qualify attention`: the acceptance matrix on a device, and its receipt. */
#ifndef MLA_CLI_QUALIFY_H
#define MLA_CLI_QUALIFY_H

#include <stdbool.h>

#include "cli/qualify_run.h"
#include "server/memory_snapshot.h"

enum { QUALIFY_TEXT = 128 };
#define QUALIFY_HIGH_BYTES (INT64_C(1) << 32)
enum { QUALIFY_BEFORE, QUALIFY_DURING, QUALIFY_AFTER, QUALIFY_NUM_PHASES };

typedef struct qualify_report {
    mla_backend backend;
    char device[QUALIFY_TEXT], driver[QUALIFY_TEXT], compiler[QUALIFY_TEXT];
    int64_t high_bytes; /* pages of the cases of that name lie behind it */
    uint64_t free_bytes[QUALIFY_NUM_PHASES]; /* of the device; not known during */
    bool is_sampled;                         /* the oracle was not asked of every head */
    mla_progress progress;
    int64_t prepare_ns;
    memory_snapshot ledger[QUALIFY_NUM_PHASES]; /* during: of all primes, the largest */
    bool is_balanced;                           /* after: as before */
    qualify_case cases[QUALIFY_NUM_CASES];
    qualify_result results[QUALIFY_NUM_CASES];
} qualify_report;

/* Fills the report. report: all 0 but for the backend, which is the context's. Everything that
 * is taken is given back, however it ends; cache_dir may be NULL. */
mla_status qualify_measure(mla_context *context, const char *cache_dir,
                           qualify_report *report, mla_error *err);

/* What drives and compiles for a device, in words. */
void qualify_device_describe(mla_backend backend, qualify_report *report);

bool qualify_result_passed(const qualify_result *result);
/* The finding that is worst over both sizes of numbers. */
attention_finding qualify_result_worst_output(const qualify_result *result);
attention_finding qualify_result_worst_lse(const qualify_result *result);
int32_t qualify_report_num_failed(const qualify_report *report);
bool qualify_report_passed(const qualify_report *report);

/* NULL where memory is out. Owned by the caller. */
json_t *qualify_receipt(const qualify_report *report);
void qualify_table_print(const qualify_report *report);

#endif
