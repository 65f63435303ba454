/* parse_primary.c - what operators stand between: constants, names, calls, subscripts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/jinja/parser.h"

static mla_status make_constant(jinja_parser *parser, jinja_value value, jinja_node **out,
                                mla_error *err)
{
    MLAI_TRY(jinja_node_make(parser, NODE_CONSTANT, out, err));
    (*out)->constant = value;
    return jinja_advance(parser, err);
}

static mla_status parse_name(jinja_parser *parser, jinja_node **out, mla_error *err)
{
    jinja_text name = parser->now.text;
    static const char *const keywords[] = {"if", "else", "in", "and", "or", "not", "is"};
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++) {
        if (jinja_text_is(name, keywords[i])) {
            return jinja_unexpected(parser, "a value", err);
        }
    }
    if (jinja_text_is(name, "true") || jinja_text_is(name, "True")) {
        return make_constant(parser, jinja_bool(true), out, err);
    }
    if (jinja_text_is(name, "false") || jinja_text_is(name, "False")) {
        return make_constant(parser, jinja_bool(false), out, err);
    }
    if (jinja_text_is(name, "none") || jinja_text_is(name, "None")) {
        return make_constant(parser, jinja_none(), out, err);
    }
    MLAI_TRY(jinja_node_make(parser, NODE_NAME, out, err));
    (*out)->name = name;
    return jinja_advance(parser, err);
}

static mla_status parse_number(jinja_parser *parser, jinja_node **out, mla_error *err)
{
    enum { MAX_DIGITS = 64 };
    char digits[MAX_DIGITS + 1];
    size_t num = 0;
    const jinja_text text = parser->now.text;
    MLAI_CHECK(text.bytes <= MAX_DIGITS, MLA_ERR_UNSUPPORTED,
               "line %d: a number of %zu characters is not supported", parser->now.line,
               text.bytes);
    for (size_t i = 0; i < text.bytes; i++) {
        if (text.data[i] != '_') {
            digits[num++] = text.data[i];
        }
    }
    digits[num] = '\0';
    if (parser->now.kind == JINJA_REAL) {
        return make_constant(parser, jinja_float(strtod(digits, NULL)), out, err);
    }
    int64_t value = 0;
    for (size_t i = 0; i < num; i++) {
        MLAI_CHECK(!__builtin_mul_overflow(value, 10, &value) &&
                       !__builtin_add_overflow(value, digits[i] - '0', &value),
                   MLA_ERR_UNSUPPORTED, "line %d: %s does not fit in 64 bits",
                   parser->now.line, digits);
    }
    return make_constant(parser, jinja_int(value), out, err);
}

/* Strings side by side are one. */
static mla_status parse_strings(jinja_parser *parser, jinja_node **out, mla_error *err)
{
    jinja_builder text = {.memory = parser->memory};
    MLAI_TRY(jinja_node_make(parser, NODE_CONSTANT, out, err));
    while (parser->now.kind == JINJA_STRING) {
        jinja_text piece;
        MLAI_TRY(jinja_parse_string(parser, &piece, err));
        MLAI_TRY(jinja_builder_add(&text, piece, err));
        MLAI_TRY(jinja_advance(parser, err));
    }
    (*out)->constant = jinja_str(jinja_builder_text(&text));
    return MLA_OK;
}

/* [a, b] after its bracket. NOLINTNEXTLINE(misc-no-recursion) */
static mla_status parse_list(jinja_parser *parser, jinja_node **out, mla_error *err)
{
    bool goes_on = true;
    MLAI_TRY(jinja_node_make(parser, NODE_LIST, out, err));
    MLAI_TRY(jinja_advance(parser, err));
    while (goes_on && !jinja_at(parser, "]")) {
        jinja_node *item = NULL;
        MLAI_TRY(jinja_parse_expression(parser, &item, err));
        jinja_nodes_add(&(*out)->items, item);
        MLAI_TRY(jinja_skip_if(parser, ",", &goes_on, err));
    }
    return jinja_expect(parser, "]", err);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status parse_dict(jinja_parser *parser, jinja_node **out, mla_error *err)
{
    bool goes_on = true;
    MLAI_TRY(jinja_node_make(parser, NODE_DICT, out, err));
    MLAI_TRY(jinja_advance(parser, err));
    while (goes_on && !jinja_at(parser, "}")) {
        jinja_node *item = NULL;
        MLAI_TRY(jinja_parse_expression(parser, &item, err));
        jinja_nodes_add(&(*out)->items, item);
        MLAI_TRY(jinja_expect(parser, ":", err));
        MLAI_TRY(jinja_parse_expression(parser, &item, err));
        jinja_nodes_add(&(*out)->items, item);
        MLAI_TRY(jinja_skip_if(parser, ",", &goes_on, err));
    }
    return jinja_expect(parser, "}", err);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status parse_parentheses(jinja_parser *parser, jinja_node **out, mla_error *err)
{
    MLAI_TRY(jinja_advance(parser, err));
    if (jinja_at(parser, ")")) {
        MLAI_TRY(jinja_node_make(parser, NODE_TUPLE, out, err));
    } else {
        MLAI_TRY(jinja_parse_tuple(parser, true, out, err));
    }
    return jinja_expect(parser, ")", err);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the memory allows */
mla_status jinja_parse_primary(jinja_parser *parser, jinja_node **out, mla_error *err)
{
    switch ((int)parser->now.kind) {
    case JINJA_NAME:
        return parse_name(parser, out, err);
    case JINJA_INTEGER:
    case JINJA_REAL:
        return parse_number(parser, out, err);
    case JINJA_STRING:
        return parse_strings(parser, out, err);
    default:
        break;
    }
    if (jinja_at(parser, "(")) {
        return parse_parentheses(parser, out, err);
    }
    if (jinja_at(parser, "[")) {
        return parse_list(parser, out, err);
    }
    return jinja_at(parser, "{") ? parse_dict(parser, out, err)
                                 : jinja_unexpected(parser, "a value", err);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
mla_status jinja_parse_unary(jinja_parser *parser, jinja_node **out, mla_error *err)
{
    jinja_node *chain = NULL; /* the signs, outermost first */
    jinja_node *inner = NULL;
    while (jinja_at(parser, "-") || jinja_at(parser, "+")) {
        jinja_node *sign = NULL;
        bool is_minus = jinja_at(parser, "-");
        MLAI_TRY(
            jinja_node_make(parser, is_minus ? NODE_NEGATIVE : NODE_POSITIVE, &sign, err));
        MLAI_TRY(jinja_enter(parser->memory, err)); /* its depth, when it runs */
        MLAI_TRY(jinja_advance(parser, err));
        *(inner ? &inner->a : &chain) = sign;
        inner = sign;
    }
    jinja_node *value = NULL;
    MLAI_TRY(jinja_parse_primary(parser, &value, err));
    MLAI_TRY(jinja_parse_postfix(parser, &value, err));
    *(inner ? &inner->a : &chain) = value;
    for (jinja_node *sign = chain; inner && sign != value; sign = sign->a) {
        jinja_leave(parser->memory);
    }
    *out = chain;
    return jinja_parse_filters(parser, out, err);
}
