/* filter_text.c - filters that give texts. */
#include "model/jinja/filter_rows.h"
#include "model/jinja/text_methods.h"

/* An argument as a text, whatever it is. */
static mla_status text_of(jinja_run *run, jinja_value value, jinja_text *out,
                          mla_error *err)
{
    return jinja_str_of(run->memory, value, out, err);
}

mla_status jinja_filter_string(jinja_run *run, jinja_value input,
                               const jinja_arguments *given, jinja_value *out,
                               mla_error *err)
{
    MLAI_TRY(jinja_bind(given, "", NULL, err));
    out->kind = JINJA_STR;
    return text_of(run, input, &out->as.text, err);
}

/* Nothing is escaped here, so nothing has to be kept from it. */
mla_status jinja_filter_safe(jinja_run *run, jinja_value input,
                             const jinja_arguments *given, jinja_value *out, mla_error *err)
{
    return jinja_filter_string(run, input, given, out, err);
}

mla_status jinja_filter_trim(jinja_run *run, jinja_value input,
                             const jinja_arguments *given, jinja_value *out, mla_error *err)
{
    jinja_value chars = jinja_none();
    jinja_text text;
    jinja_text set = {.data = NULL};
    MLAI_TRY(jinja_bind(given, "chars", &chars, err));
    MLAI_TRY(text_of(run, input, &text, err));
    if (chars.kind != JINJA_NONE) {
        MLAI_TRY(text_of(run, chars, &set, err));
        set.data = set.data ? set.data : "";
    }
    MLAI_TRY(jinja_spend(run->memory, text.bytes, err));
    *out = jinja_str(jinja_strip_set(text, set, true, true));
    return MLA_OK;
}

mla_status jinja_filter_replace(jinja_run *run, jinja_value input,
                                const jinja_arguments *given, jinja_value *out,
                                mla_error *err)
{
    jinja_value values[] = {jinja_none(), jinja_none(), jinja_int(-1)};
    jinja_text texts[3];
    MLAI_TRY(jinja_bind(given, "old new count", values, err));
    MLAI_CHECK(values[0].kind != JINJA_NONE && values[1].kind != JINJA_NONE,
               MLA_ERR_ARGUMENT, "replace takes two texts");
    MLAI_TRY(text_of(run, input, &texts[0], err));
    MLAI_TRY(text_of(run, values[0], &texts[1], err));
    MLAI_TRY(text_of(run, values[1], &texts[2], err));
    int64_t limit = values[2].kind == JINJA_INT ? values[2].as.integer : -1;
    out->kind = JINJA_STR;
    return jinja_replace(run, texts[0], texts[1], texts[2], limit, &out->as.text, err);
}

static mla_status change_case(jinja_run *run, jinja_value input,
                              const jinja_arguments *given, jinja_letter_case wanted,
                              jinja_value *out, mla_error *err)
{
    jinja_text text;
    MLAI_TRY(jinja_bind(given, "", NULL, err));
    MLAI_TRY(text_of(run, input, &text, err));
    out->kind = JINJA_STR;
    return jinja_change_case(run, text, wanted, &out->as.text, err);
}

mla_status jinja_filter_upper(jinja_run *run, jinja_value input,
                              const jinja_arguments *given, jinja_value *out,
                              mla_error *err)
{
    return change_case(run, input, given, CASE_UPPER, out, err);
}

mla_status jinja_filter_lower(jinja_run *run, jinja_value input,
                              const jinja_arguments *given, jinja_value *out,
                              mla_error *err)
{
    return change_case(run, input, given, CASE_LOWER, out, err);
}

mla_status jinja_filter_title(jinja_run *run, jinja_value input,
                              const jinja_arguments *given, jinja_value *out,
                              mla_error *err)
{
    return change_case(run, input, given, CASE_WORDS, out, err);
}

mla_status jinja_filter_capitalize(jinja_run *run, jinja_value input,
                                   const jinja_arguments *given, jinja_value *out,
                                   mla_error *err)
{
    return change_case(run, input, given, CASE_CAPITALIZE, out, err);
}

static mla_status indentation(jinja_run *run, jinja_value width, jinja_text *out,
                              mla_error *err)
{
    jinja_value spaces;
    if (width.kind == JINJA_STR) {
        *out = width.as.text;
        return MLA_OK;
    }
    MLAI_TRY(jinja_combine(run, OPERATOR_MULTIPLY, jinja_str(JINJA_TEXT(" ")), width,
                           &spaces, err));
    *out = spaces.as.text;
    return MLA_OK;
}

mla_status jinja_filter_indent(jinja_run *run, jinja_value input,
                               const jinja_arguments *given, jinja_value *out,
                               mla_error *err)
{
    jinja_value values[] = {jinja_int(4), jinja_bool(false), jinja_bool(false)};
    jinja_builder built = {.memory = run->memory};
    jinja_text indent;
    jinja_text text;
    jinja_value lines;
    MLAI_TRY(jinja_bind(given, "width first blank", values, err));
    MLAI_CHECK(input.kind == JINJA_STR, MLA_ERR_ARGUMENT, "indent takes a text, not a %s",
               jinja_kind_name(input.kind));
    MLAI_TRY(indentation(run, values[0], &indent, err));
    MLAI_TRY(text_of(run, input, &text, err));
    MLAI_TRY(jinja_text_join(run->memory, text, JINJA_TEXT("\n"), &text, err));
    MLAI_TRY(jinja_split_lines(run, text, false, &lines, err));
    MLAI_TRY(jinja_is_true(values[1]) ? jinja_builder_add(&built, indent, err) : MLA_OK);
    for (size_t i = 0; i < lines.as.list->num; i++) {
        jinja_text line = lines.as.list->items[i].as.text;
        bool is_indented = i > 0 && (line.bytes > 0 || jinja_is_true(values[2]));
        MLAI_TRY(i > 0 ? jinja_builder_add(&built, JINJA_TEXT("\n"), err) : MLA_OK);
        MLAI_TRY(is_indented ? jinja_builder_add(&built, indent, err) : MLA_OK);
        MLAI_TRY(jinja_builder_add(&built, line, err));
    }
    *out = jinja_str(jinja_builder_text(&built));
    return MLA_OK;
}

static mla_status json_separators(jinja_value value, jinja_json_style *style,
                                  mla_error *err)
{
    if (value.kind == JINJA_NONE) {
        style->comma = style->indent >= 0 ? JINJA_TEXT(",") : JINJA_TEXT(", ");
        style->colon = JINJA_TEXT(": ");
        return MLA_OK;
    }
    const jinja_list *list = jinja_is_list(value) ? value.as.list : NULL;
    MLAI_CHECK(list && list->num == 2 && list->items[0].kind == JINJA_STR &&
                   list->items[1].kind == JINJA_STR,
               MLA_ERR_ARGUMENT, "the separators of tojson are two texts");
    style->comma = list->items[0].as.text;
    style->colon = list->items[1].as.text;
    return MLA_OK;
}

/* As transformers has it: the first argument is ensure_ascii, and nothing is escaped for
 * HTML. */
mla_status jinja_filter_tojson(jinja_run *run, jinja_value input,
                               const jinja_arguments *given, jinja_value *out,
                               mla_error *err)
{
    enum { MAX_INDENT = 64 };
    jinja_value values[] = {jinja_bool(false), jinja_none(), jinja_none(),
                            jinja_bool(false)};
    jinja_builder built = {.memory = run->memory};
    jinja_json_style style = {.indent = -1};
    MLAI_TRY(jinja_bind(given, "ensure_ascii indent separators sort_keys", values, err));
    style.is_ascii = jinja_is_true(values[0]);
    style.sorts_keys = jinja_is_true(values[3]);
    if (values[1].kind != JINJA_NONE) {
        MLAI_CHECK(values[1].kind == JINJA_INT && values[1].as.integer >= 0 &&
                       values[1].as.integer <= MAX_INDENT,
                   MLA_ERR_UNSUPPORTED, "the indent of tojson is not 0 to %d", MAX_INDENT);
        style.indent = values[1].as.integer;
    }
    MLAI_TRY(json_separators(values[2], &style, err));
    MLAI_TRY(jinja_print_json(&built, input, &style, err));
    *out = jinja_str(jinja_builder_text(&built));
    return MLA_OK;
}
