/* plan_line.c - a line by one table of fields, for writing and for reading: see plan_line.h. */
#include "attention/plan_line.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct name {
    const char *text;
    int32_t value;
} name;

static const name devices[] = {{"cpu:c", MLA_ISA_C},          {"cpu:avx2", MLA_ISA_AVX2},
                               {"cuda:sm80", MLA_ISA_SM80},   {"cuda:sm86", MLA_ISA_SM80},
                               {"cuda:sm87", MLA_ISA_SM80},   {"cuda:sm89", MLA_ISA_SM80},
                               {"cuda:sm90a", MLA_ISA_SM80},  {"cuda:sm100", MLA_ISA_SM80},
                               {"cuda:sm103", MLA_ISA_SM80},  {"cuda:sm120a", MLA_ISA_SM80},
                               {"cuda:sm121a", MLA_ISA_SM80}, {0}};
static const name modes[] = {
    {"decode", MLA_DECODE}, {"verify", MLA_VERIFY}, {"extend", MLA_EXTEND}, {0}};
static const name kv_formats[] = {{"f32", MLA_KV_F32},
                                  {"bf16", MLA_KV_BF16},
                                  {"fp8", MLA_KV_FP8},
                                  {"fp8_g128", MLA_KV_FP8_G128},
                                  {0}};
static const name queries[] = {
    {"q:f32", MLA_F32}, {"q:bf16", MLA_BF16}, {"q:e4m3", MLA_E4M3}, {0}};
static const name outputs[] = {
    {"o:f32", MLA_F32}, {"o:bf16", MLA_BF16}, {"o:e4m3", MLA_E4M3}, {0}};
static const name masks[] = {{"causal", 1}, {"full", 0}, {0}};

typedef enum kind { NAMED, NUMBER, WIDE, REAL } kind;

typedef struct field {
    const char *key; /* in front of a number; what to call it where it is named */
    const name *names;
    size_t offset; /* in mlai_plan_line */
    kind kind;
    bool is_optional, is_glued; /* glued: no blank in front, "+64" of "d512+64" */
} field;

#define OF(member) (offsetof(mlai_plan_line, caps) + offsetof(mla_caps, member))
static const field fields[] = {
    {"a device", devices, offsetof(mlai_plan_line, isa), NAMED, true, false},
    {"a mode", modes, OF(mode), NAMED, false, false},
    {"h", NULL, OF(num_heads), NUMBER, false, false},
    {"d", NULL, OF(latent_dim), NUMBER, false, false},
    {"+", NULL, OF(rope_dim), NUMBER, false, true},
    {"p", NULL, OF(page_tokens), NUMBER, false, false},
    {"a KV format", kv_formats, OF(kv_format), NAMED, false, false},
    {"q:TYPE", queries, OF(query_dtype), NAMED, false, false},
    {"o:TYPE", outputs, OF(output_dtype), NAMED, false, false},
    {"b", NULL, OF(max_requests), NUMBER, false, false},
    {"q", NULL, OF(max_query_rows), NUMBER, false, false},
    {"r", NULL, OF(max_rows_per_request), NUMBER, false, false},
    {"t", NULL, OF(table_width), NUMBER, false, false},
    {"n", NULL, OF(num_pages), WIDE, false, false},
    {"s", NULL, OF(page_stride_bytes), WIDE, true, false},
    {"ctx", NULL, OF(max_context_tokens), WIDE, false, false},
    {"a mask", masks, OF(causal), NAMED, false, false},
    {"w", NULL, OF(window), NUMBER, true, false},
    {"x", NULL, OF(softmax_scale), REAL, false, false},
    {"i", NULL, OF(interleave), NUMBER, true, false},
};
enum { NUM_FIELDS = sizeof fields / sizeof fields[0], MAX_REAL_CHARS = 31 };
_Static_assert(sizeof(mla_mode) == sizeof(int32_t) && sizeof(mla_isa) == sizeof(int32_t),
               "an enumeration is read and written like a number");

/* ------------------------------------------------------------------ writing */

typedef struct line_writer {
    char *text;
    size_t text_bytes, length; /* length: as if there were room */
} line_writer;

__attribute__((format(printf, 2, 3))) static void put(line_writer *to, const char *format,
                                                      ...)
{
    bool has_room = to->length < to->text_bytes;
    va_list values;
    va_start(values, format);
    int num = vsnprintf(has_room ? to->text + to->length : NULL,
                        has_room ? to->text_bytes - to->length : 0, format, values);
    va_end(values);
    to->length += num < 0 ? 0 : (size_t)num;
}

static int64_t number_at(const field *of, const void *value)
{
    int32_t narrow;
    int64_t wide;
    memcpy(&narrow, value, sizeof narrow);
    if (of->kind != WIDE) {
        return narrow;
    }
    memcpy(&wide, value, sizeof wide);
    return wide;
}

static const char *name_of(const name *names, int64_t value)
{
    for (; names->text; names++) {
        if (names->value == value) {
            return names->text;
        }
    }
    return "?";
}

/* With a point, whatever the caller's locale has; 9 digits give every float back. */
static void put_real(line_writer *to, const char *key, const void *value)
{
    char digits[MAX_REAL_CHARS + 1];
    float real;
    memcpy(&real, value, sizeof real);
    (void)snprintf(digits, sizeof digits, "%.9g", (double)real);
    char *comma = strchr(digits, ',');
    if (comma) {
        *comma = '.';
    }
    put(to, " %s%s", key, digits);
}

static void put_field(line_writer *to, const field *of, const void *value)
{
    const char *blank = of->is_glued ? "" : " ";
    switch (of->kind) {
    case NAMED:
        put(to, "%s%s", blank, name_of(of->names, number_at(of, value)));
        break;
    case NUMBER:
    case WIDE:
        put(to, "%s%s%lld", blank, of->key, (long long)number_at(of, value));
        break;
    case REAL:
        put_real(to, of->key, value);
        break;
    }
}

size_t mlai_plan_line_format(const char *device, const mla_caps *caps, char *text,
                             size_t text_bytes)
{
    const mlai_plan_line line = {.caps = *caps};
    line_writer to = {.text_bytes = text_bytes};
    int num = caps->interleave > 1 ? NUM_FIELDS : NUM_FIELDS - 1; /* it is the last */
    to.text = text;
    put(&to, "%s", device);
    for (int i = 1; i < num; i++) {
        put_field(&to, &fields[i], (const char *)&line + fields[i].offset);
    }
    return to.length + 1;
}

/* ------------------------------------------------------------------ reading */

typedef struct line_reader {
    const char *text, *end, *at;
    const char *word, *word_end; /* the one at hand */
    bool is_seen[NUM_FIELDS];
    mlai_plan_line line;
} line_reader;

static mla_status refuse(const line_reader *in, const char *why, mla_error *err)
{
    enum { SHOWN = 40 };
    ptrdiff_t length = in->word_end - in->word;
    return MLAI_FAIL(MLA_ERR_ARGUMENT, "'%.*s'%s at column %td %s",
                     length < SHOWN ? (int)length : SHOWN, in->word,
                     length > SHOWN ? "..." : "", in->word - in->text + 1, why);
}

static bool next_word(line_reader *in)
{
    while (in->at < in->end && *in->at == ' ') {
        in->at++;
    }
    in->word = in->at;
    while (in->at < in->end && *in->at != ' ') {
        in->at++;
    }
    in->word_end = in->at;
    return in->word < in->word_end;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(const line_reader *in, const char *text)
{
    size_t length = (size_t)(in->word_end - in->word);
    return length == strlen(text) && memcmp(in->word, text, length) == 0;
}

/* What follows the key, where the word begins with it and a digit. */
static const char *after_key(const line_reader *in, const char *key)
{
    size_t length = strlen(key);
    bool begins = (size_t)(in->word_end - in->word) > length &&
                  memcmp(in->word, key, length) == 0 && is_digit(in->word[length]);
    return begins ? in->word + length : NULL;
}

/* The field that the word at hand is, and where its number begins or which name it is. */
static const field *find_field(const line_reader *in, const char **number, int32_t *value)
{
    for (const field *of = fields; of < fields + NUM_FIELDS; of++) {
        for (const name *at = of->names; at && at->text; at++) {
            if (is_word(in, at->text)) {
                *value = at->value;
                return of;
            }
        }
        const char *digits =
            of->kind == NAMED || of->is_glued ? NULL : after_key(in, of->key);
        if (digits) {
            *number = digits;
            return of;
        }
    }
    return NULL;
}

static mla_status store(line_reader *in, const field *of, const void *value, size_t bytes,
                        mla_error *err)
{
    if (in->is_seen[of - fields]) {
        return refuse(in, "says again what the line has said", err);
    }
    in->is_seen[of - fields] = true;
    memcpy((char *)&in->line + of->offset, value, bytes);
    return MLA_OK;
}

static mla_status read_number(line_reader *in, const field *of, const char **at,
                              mla_error *err)
{
    int64_t value = 0;
    for (; *at < in->word_end && is_digit(**at); (*at)++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, **at - '0', &value)) {
            return refuse(in, "is more than a number can be", err);
        }
    }
    if (of->kind == WIDE) {
        return store(in, of, &value, sizeof value, err);
    }
    if (value > INT32_MAX) {
        return refuse(in, "is more than 2147483647", err);
    }
    int32_t narrow = (int32_t)value;
    return store(in, of, &narrow, sizeof narrow, err);
}

/* The digits are copied, as what follows the text may be anything. */
static mla_status read_real(line_reader *in, const field *of, const char **at,
                            mla_error *err)
{
    char digits[MAX_REAL_CHARS + 1] = "";
    size_t length = (size_t)(in->word_end - *at);
    if (length > MAX_REAL_CHARS) {
        return refuse(in, "has more digits than a float", err);
    }
    memcpy(digits, *at, length);
    char *end = digits;
    float value = strtof(digits, &end);
    if (strspn(digits, "0123456789.e+-") != length || end != digits + length) {
        return MLA_OK; /* what was not read is refused by the caller */
    }
    if (!isfinite(value)) {
        return refuse(in, "is more than a float can be", err);
    }
    *at += length;
    return store(in, of, &value, sizeof value, err);
}

static mla_status read_word(line_reader *in, mla_error *err)
{
    const char *at = in->word;
    int32_t value = 0;
    const field *of = find_field(in, &at, &value);
    if (!of) {
        return refuse(in, "is no word of a plan", err);
    }
    if (of->kind == NAMED) {
        return store(in, of, &value, sizeof value, err);
    }
    MLAI_TRY(of->kind == REAL ? read_real(in, of, &at, err)
                              : read_number(in, of, &at, err));
    bool has_more = of + 1 < fields + NUM_FIELDS && of[1].is_glued;
    if (has_more && in->word_end - at > 1 && *at == *of[1].key && is_digit(at[1])) {
        at++;
        MLAI_TRY(read_number(in, of + 1, &at, err));
    }
    return at == in->word_end ? MLA_OK : refuse(in, "is no word of a plan", err);
}

static mla_status check_complete(const line_reader *in, mla_error *err)
{
    for (int i = 0; i < NUM_FIELDS; i++) {
        bool is_there = in->is_seen[i] || fields[i].is_optional;
        MLAI_CHECK(is_there, MLA_ERR_ARGUMENT, "the line lacks %s%s%s", fields[i].key,
                   fields[i].names ? ", for example " : "NUMBER",
                   fields[i].names ? fields[i].names[0].text : "");
    }
    return MLA_OK;
}

mla_status mlai_plan_line_parse(const char *text, size_t text_bytes, mlai_plan_line *out,
                                mla_error *err)
{
    MLAI_CHECK(text_bytes < MLAI_PLAN_LINE_BYTES, MLA_ERR_ARGUMENT,
               "the line has %zu characters, and at most %d make sense", text_bytes,
               MLAI_PLAN_LINE_BYTES - 1);
    line_reader in = {.text = text, .end = text + text_bytes, .at = text};
    in.line.caps.struct_size = sizeof in.line.caps;
    while (next_word(&in)) {
        MLAI_TRY(read_word(&in, err));
    }
    MLAI_TRY(check_complete(&in, err));
    *out = in.line;
    return MLA_OK;
}
