/* qualify_serving.c - `mla qualify serving`: its receipt and its exit status. */
#include "cli/qualify_serving.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "cli/command.h"
#include "cli/complain.h"
#include "cli/json_output.h"
#include "cli/receipt_file.h"

static mla_status write_receipt(const serving_report *report, receipt_file *receipt,
                                mla_error *err)
{
    enum { INDENT = 2, DIGITS = 6 };
    json_t *value = serving_receipt(report);
    char *text =
        value ? json_dumps(value, JSON_INDENT(INDENT) | JSON_REAL_PRECISION(DIGITS)) : NULL;
    json_decref(value);
    MLAI_CHECK(text, MLA_ERR_NO_MEMORY, "the memory for the receipt is out");
    size_t length = strlen(text);
    text[length] = '\n'; /* in the place of its NUL */
    mla_status status = receipt_file_finish(receipt, text, length + 1, err);
    serving_text_release(text);
    return status;
}

static mla_status publish(const serving_report *report, const serving_options *wanted,
                          receipt_file *receipt, mla_error *err)
{
    mla_status status = wanted->out ? write_receipt(report, receipt, err) : MLA_OK;
    if (!wanted->model.is_json) {
        serving_table_print(report);
        return status;
    }
    return status == MLA_OK ? json_output_print(serving_receipt(report), true, err)
                            : status;
}

static mla_status qualify(mla_context **context, const serving_options *wanted,
                          serving_report *report, receipt_file *receipt, mla_error *err)
{
    mla_context_options made_from = MLA_INIT(mla_context_options);
    made_from.backend = MLA_BACKEND_CPU; /* for its books */
    MLAI_TRY(mla_context_create(&made_from, context, err));
    if (wanted->out) {
        MLAI_TRY(receipt_file_open(wanted->out, receipt, err));
    }
    mla_status status = serving_measure(*context, wanted, report, err);
    if (status == MLA_OK) {
        status = publish(report, wanted, receipt, err);
    }
    serving_report_end(report);
    return status;
}

static int judge(const serving_report *report, const serving_options *wanted)
{
    int32_t num_failed = 0;
    for (int32_t i = 0; i < report->num_checks; i++) {
        num_failed += !report->checks[i].is_passed;
    }
    if (!serving_report_passed(report)) {
        return complain_text("%d of %d checks failed: see %s", num_failed,
                             report->num_checks, wanted->out ? wanted->out : "the table");
    }
    if (!wanted->model.is_json) {
        (void)printf("%d checks passed\n", report->num_checks);
    }
    return COMMAND_OK;
}

int command_qualify_serving(int argc, char **argv)
{
    static serving_options wanted;
    static serving_report report;
    static receipt_file receipt = {.file = -1};
    mla_error error = {0};
    mla_context *context = NULL;
    if (!serving_options_parse(argc, argv, &wanted)) {
        return COMMAND_MISUSED;
    }
    mla_status status = qualify(&context, &wanted, &report, &receipt, &error);
    receipt_file_close(&receipt);
    mla_status closed = mla_context_destroy(&context, status == MLA_OK ? &error : NULL);
    status = status == MLA_OK ? closed : status;
    return status == MLA_OK ? judge(&report, &wanted) : complain(&error);
}
