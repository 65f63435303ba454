/* qualify.c - `mla qualify attention`: its options, its receipt and its exit status; and which
 * of the two is meant. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/complain.h"
#include "cli/device_option.h"
#include "cli/json_output.h"
#include "cli/qualify.h"
#include "cli/qualify_serving.h"
#include "cli/receipt_file.h"

enum { KEY_DEVICE = 0x100, KEY_OUT, KEY_CACHE, KEY_LIST, KEY_JSON };

typedef struct qualify_options {
    const char *what;
    mla_backend backend;
    const char *out, *cache_dir; /* NULL: none */
    bool is_list, is_json;
} qualify_options;

static const struct argp_option options[] = {
    {"device", KEY_DEVICE, DEVICE_OPTION_WORDS, 0, "what to qualify (default cpu)", 0},
    {"out", KEY_OUT, "FILE", 0, "where the receipt goes, as JSON", 0},
    {"cache", KEY_CACHE, "DIR", 0, "compiled programs are kept there", 0},
    {"list", KEY_LIST, NULL, 0, "print the names of the cases and run none", 0},
    {"json", KEY_JSON, NULL, 0, "print the receipt instead of a table", 0},
    {0},
};

static error_t check_complete(const qualify_options *out)
{
    if (!out->what || strcmp(out->what, "attention") != 0) {
        (void)complain_misuse("what to qualify is %s%s: attention or serving come first",
                              out->what ? "not " : "missing", out->what ? out->what : "");
        return EINVAL;
    }
    return 0;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    qualify_options *out = state->input;
    const arguments_slot slots[] = {{"attention", &out->what}};
    switch (key) {
    case ARGP_KEY_INIT:
        return arguments_begin(state);
    case KEY_DEVICE:
        return device_option_parse(text, &out->backend);
    case KEY_OUT:
        out->out = text;
        return 0;
    case KEY_CACHE:
        out->cache_dir = text;
        return 0;
    case KEY_LIST:
        out->is_list = true;
        return 0;
    case KEY_JSON:
        out->is_json = true;
        return 0;
    case ARGP_KEY_ARG:
        return arguments_fill(slots, 1, text);
    case ARGP_KEY_END:
        return check_complete(out);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp qualify_argp = {
    .options = options,
    .parser = parse,
    .args_doc = "attention\nserving MODEL --help",
    .doc =
        "Runs the acceptance matrix of attention: formats, ranks, padding, high pages and "
        "replays, each case against a double-precision reference. The receipt says what "
        "was measured, on what, and what it does not show.",
};

static void print_names(void)
{
    for (int32_t i = 0; i < QUALIFY_NUM_CASES; i++) {
        (void)puts(qualify_case_of(i).name);
    }
}

/* ------------------------------------------------------------------- the receipt */

static mla_status write_receipt(const qualify_report *report, receipt_file *receipt,
                                mla_error *err)
{
    enum { INDENT = 2, DIGITS = 6 };
    json_t *value = qualify_receipt(report);
    char *text =
        value ? json_dumps(value, JSON_INDENT(INDENT) | JSON_REAL_PRECISION(DIGITS)) : NULL;
    json_decref(value);
    MLAI_CHECK(text, MLA_ERR_NO_MEMORY, "the memory for the receipt is out");
    size_t length = strlen(text);
    text[length] = '\n'; /* in the place of its NUL */
    mla_status status = receipt_file_finish(receipt, text, length + 1, err);
    json_free_t release = NULL;
    json_get_alloc_funcs(NULL, &release);
    release(text);
    return status;
}

static mla_status publish(mla_context *context, const qualify_report *report,
                          const qualify_options *wanted, receipt_file *receipt,
                          mla_error *err)
{
    json_scope before = json_output_begin(context);
    mla_status status = wanted->out ? write_receipt(report, receipt, err) : MLA_OK;
    if (status == MLA_OK && wanted->is_json) {
        status = json_output_print(qualify_receipt(report), true, err);
    }
    json_scope_leave(before);
    if (!wanted->is_json) {
        qualify_table_print(report);
    }
    return status;
}

static mla_status qualify(mla_context **context, qualify_report *report,
                          const qualify_options *wanted, receipt_file *receipt,
                          mla_error *err)
{
    mla_context_options made_from = MLA_INIT(mla_context_options);
    made_from.backend = report->backend = wanted->backend;
    MLAI_TRY(mla_context_create(&made_from, context, err));
    if (wanted->out) {
        MLAI_TRY(receipt_file_open(wanted->out, receipt, err));
    }
    MLAI_TRY(qualify_measure(*context, wanted->cache_dir, report, err));
    return publish(*context, report, wanted, receipt, err);
}

static int judge(const qualify_report *report, const qualify_options *wanted)
{
    int32_t num_failed = qualify_report_num_failed(report);
    const char *where = wanted->out ? wanted->out : "the table";
    if (num_failed > 0) {
        return complain_text("%d of %d cases failed: see %s", num_failed, QUALIFY_NUM_CASES,
                             where);
    }
    if (!report->is_balanced) {
        return complain_text("the ledger is not as it was before: see %s", where);
    }
    if (!wanted->is_json) {
        (void)printf("%d cases passed\n", QUALIFY_NUM_CASES);
    }
    return COMMAND_OK;
}

int command_qualify(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "serving") == 0) {
        static char title[] = "mla qualify serving";
        argv[1] = title;
        complain_as(title);
        return command_qualify_serving(argc - 1, argv + 1);
    }
    static qualify_report report;
    static receipt_file receipt = {.file = -1};
    qualify_options wanted = {.backend = MLA_BACKEND_CPU};
    if (!arguments_parse(&qualify_argp, argc, argv, &wanted)) {
        return COMMAND_MISUSED;
    }
    if (wanted.is_list) {
        print_names();
        return COMMAND_OK;
    }
    mla_error error = {0};
    mla_context *context = NULL;
    memset(&report, 0, sizeof report);
    mla_status status = qualify(&context, &report, &wanted, &receipt, &error);
    receipt_file_close(&receipt);
    mla_status closed = mla_context_destroy(&context, status == MLA_OK ? &error : NULL);
    status = status == MLA_OK ? closed : status;
    return status == MLA_OK ? judge(&report, &wanted) : complain(&error);
}
