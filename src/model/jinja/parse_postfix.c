/* parse_postfix.c - what stands behind a value: .name, [index], (call), | filter, is test. */
#include <assert.h>

#include "model/jinja/filters.h"
#include "model/jinja/parser.h"

/* a:b:c of a slice whose first colon is here or follows `first`. NOLINTNEXTLINE(misc-no-recursion) */
static mla_status parse_slice(jinja_parser *parser, jinja_node *slice, mla_error *err)
{
    jinja_node **parts[] = {&slice->c, &slice->d};
    slice->kind = NODE_SLICE;
    for (int i = 0; i < 2 && jinja_at(parser, ":"); i++) {
        MLAI_TRY(jinja_advance(parser, err));
        if (!jinja_at(parser, ":") && !jinja_at(parser, "]")) {
            MLAI_TRY(jinja_parse_expression(parser, parts[i], err));
        }
    }
    return MLA_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status parse_index(jinja_parser *parser, jinja_node **node, mla_error *err)
{
    jinja_node *index = NULL;
    MLAI_TRY(jinja_node_make(parser, NODE_INDEX, &index, err));
    index->a = *node;
    MLAI_TRY(jinja_advance(parser, err));
    if (!jinja_at(parser, ":")) {
        MLAI_TRY(jinja_parse_expression(parser, &index->b, err));
    }
    if (jinja_at(parser, ":")) {
        MLAI_TRY(parse_slice(parser, index, err));
    }
    MLAI_CHECK(!jinja_at(parser, ","), MLA_ERR_UNSUPPORTED,
               "line %d: several subscripts in one [] are not supported", parser->now.line);
    *node = index;
    return jinja_expect(parser, "]", err);
}

static mla_status parse_attribute(jinja_parser *parser, jinja_node **node, mla_error *err)
{
    jinja_node *attribute = NULL;
    MLAI_TRY(jinja_node_make(parser, NODE_ATTRIBUTE, &attribute, err));
    attribute->a = *node;
    MLAI_TRY(jinja_advance(parser, err));
    *node = attribute;
    if (parser->now.kind != JINJA_INTEGER) {
        return jinja_expect_name(parser, &attribute->name, err);
    }
    attribute->kind = NODE_INDEX; /* x.0 is x[0] */
    return jinja_parse_primary(parser, &attribute->b, err);
}

static mla_status refuse_callee(const jinja_parser *parser, const jinja_node *callee,
                                mla_error *err)
{
    static const char *const names[] = {"cycler", "joiner", "lipsum", "super", "self"};
    for (size_t i = 0; callee->kind == NODE_NAME && i < sizeof names / sizeof *names; i++) {
        MLAI_CHECK(!jinja_text_is(callee->name, names[i]), MLA_ERR_UNSUPPORTED,
                   "line %d: the function '%s' is not supported", parser->now.line,
                   names[i]);
    }
    return MLA_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status parse_call(jinja_parser *parser, jinja_node **node, mla_error *err)
{
    jinja_node *call = NULL;
    assert(*node);
    MLAI_TRY(refuse_callee(parser, *node, err));
    MLAI_TRY(jinja_node_make(parser, NODE_CALL, &call, err));
    call->a = *node;
    *node = call;
    return jinja_parse_arguments(parser, call, err);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status parse_argument(jinja_parser *parser, jinja_node *call, mla_error *err)
{
    jinja_node *item = NULL;
    MLAI_CHECK(!jinja_at(parser, "*") && !jinja_at(parser, "**"), MLA_ERR_UNSUPPORTED,
               "line %d: arguments with '%.*s' are not supported", parser->now.line,
               JINJA_SHOWN(parser->now.text));
    if (parser->now.kind == JINJA_NAME && parser->next.kind == JINJA_OPERATOR &&
        jinja_text_is(parser->next.text, "=")) {
        MLAI_TRY(jinja_node_make(parser, NODE_KEYWORD, &item, err));
        MLAI_TRY(jinja_expect_name(parser, &item->name, err));
        MLAI_TRY(jinja_advance(parser, err));
        MLAI_TRY(jinja_parse_expression(parser, &item->a, err));
    } else {
        MLAI_CHECK(!call->items.last || call->items.last->kind != NODE_KEYWORD,
                   MLA_ERR_CORRUPT, "line %d: '%.*s' stands behind a named argument",
                   parser->now.line, JINJA_SHOWN(parser->now.text));
        MLAI_TRY(jinja_parse_expression(parser, &item, err));
    }
    jinja_nodes_add(&call->items, item);
    return MLA_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
mla_status jinja_parse_arguments(jinja_parser *parser, jinja_node *call, mla_error *err)
{
    bool goes_on = true;
    MLAI_TRY(jinja_expect(parser, "(", err));
    while (goes_on && !jinja_at(parser, ")")) {
        MLAI_TRY(parse_argument(parser, call, err));
        MLAI_TRY(jinja_skip_if(parser, ",", &goes_on, err));
    }
    return jinja_expect(parser, ")", err);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
mla_status jinja_parse_postfix(jinja_parser *parser, jinja_node **node, mla_error *err)
{
    for (;;) {
        if (jinja_at(parser, ".")) {
            MLAI_TRY(parse_attribute(parser, node, err));
        } else if (jinja_at(parser, "[")) {
            MLAI_TRY(parse_index(parser, node, err));
        } else if (jinja_at(parser, "(")) {
            MLAI_TRY(parse_call(parser, node, err));
        } else {
            return MLA_OK;
        }
    }
}

/* The filter whose name is here, around *node. NOLINTNEXTLINE(misc-no-recursion) */
static mla_status parse_filter(jinja_parser *parser, jinja_node **node, mla_error *err)
{
    jinja_node *filter = NULL;
    jinja_text name;
    MLAI_TRY(jinja_node_make(parser, NODE_FILTER, &filter, err));
    MLAI_TRY(jinja_expect_name(parser, &name, err));
    filter->op = jinja_filter_find(name);
    MLAI_CHECK(filter->op >= 0, MLA_ERR_UNSUPPORTED,
               "line %d: the filter '%.*s' is not supported", filter->line,
               JINJA_SHOWN(name));
    filter->name = name;
    filter->a = *node;
    *node = filter;
    return jinja_at(parser, "(") ? jinja_parse_arguments(parser, filter, err) : MLA_OK;
}

/* `is divisibleby 3`: one argument without parentheses. */
static bool has_bare_argument(const jinja_parser *parser)
{
    switch ((int)parser->now.kind) {
    case JINJA_NAME:
        return !jinja_at_name(parser, "else") && !jinja_at_name(parser, "or") &&
               !jinja_at_name(parser, "and");
    case JINJA_STRING:
    case JINJA_INTEGER:
    case JINJA_REAL:
        return true;
    default:
        return jinja_at(parser, "[") || jinja_at(parser, "{");
    }
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status parse_test_argument(jinja_parser *parser, jinja_node *test,
                                      mla_error *err)
{
    if (jinja_at(parser, "(")) {
        return jinja_parse_arguments(parser, test, err);
    }
    if (!has_bare_argument(parser)) {
        return MLA_OK;
    }
    jinja_node *argument = NULL;
    MLAI_TRY(jinja_parse_primary(parser, &argument, err));
    MLAI_TRY(jinja_parse_postfix(parser, &argument, err));
    jinja_nodes_add(&test->items, argument);
    return MLA_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status parse_test(jinja_parser *parser, jinja_node **node, mla_error *err)
{
    bool is_not;
    jinja_node *test = NULL;
    jinja_text name;
    MLAI_TRY(jinja_advance(parser, err));
    MLAI_TRY(jinja_skip_if(parser, "not", &is_not, err));
    MLAI_TRY(jinja_node_make(parser, NODE_TEST, &test, err));
    MLAI_TRY(jinja_expect_name(parser, &name, err));
    test->op = jinja_test_find(name);
    MLAI_CHECK(test->op >= 0, MLA_ERR_UNSUPPORTED,
               "line %d: the test '%.*s' is not supported", test->line, JINJA_SHOWN(name));
    test->name = name;
    test->a = *node;
    MLAI_TRY(parse_test_argument(parser, test, err));
    *node = test;
    if (is_not) {
        MLAI_TRY(jinja_node_make(parser, NODE_NOT, node, err));
        (*node)->a = test;
    }
    return MLA_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
mla_status jinja_parse_filters(jinja_parser *parser, jinja_node **node, mla_error *err)
{
    for (;;) {
        if (jinja_at(parser, "|")) {
            MLAI_TRY(jinja_advance(parser, err));
            MLAI_TRY(parse_filter(parser, node, err));
        } else if (jinja_at_name(parser, "is")) {
            MLAI_TRY(parse_test(parser, node, err));
        } else if (jinja_at(parser, "(")) {
            MLAI_TRY(parse_call(parser, node, err));
        } else {
            return MLA_OK;
        }
    }
}

mla_status jinja_parse_filter_chain(jinja_parser *parser, jinja_node **out, mla_error *err)
{
    *out = NULL;
    MLAI_TRY(parse_filter(parser, out, err));
    return jinja_parse_filters(parser, out, err);
}
