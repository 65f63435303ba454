/* plan_report.h - what `mla plan` says: for people, and as JSON. */
#ifndef MLA_CLI_PLAN_REPORT_H
#define MLA_CLI_PLAN_REPORT_H

#include <jansson.h>

#include "model/footprint.h"

typedef struct plan_report {
    const profile *profile;
    const footprint *print;
    const footprint_verdict *verdict;
} plan_report;

void plan_table_print(const plan_report *report);

/* Classes as in memory_snapshot.h, each with its parts. NULL: memory is out. */
json_t *plan_report_json(const plan_report *report);

#endif
