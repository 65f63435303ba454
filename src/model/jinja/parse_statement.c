/* parse_statement.c - tags: what each begins, and where its body ends. */
#include "model/jinja/parser.h"

typedef mla_status (*parse_tag)(jinja_parser *parser, jinja_node **out, mla_error *err);

/* Up to a tag whose name is among `ends` (NULL-terminated); that name is the current token. */
static mla_status parse_body(jinja_parser *parser, const char *const *ends,
                             jinja_nodes *out, mla_error *err);

static mla_status end_tag(jinja_parser *parser, mla_error *err)
{
    return jinja_expect(parser, "%}", err);
}

/* %}, a body, and {% end %}. NOLINTNEXTLINE(misc-no-recursion): as deep as the memory allows */
static mla_status parse_block(jinja_parser *parser, const char *end, jinja_nodes *out,
                              mla_error *err)
{
    const char *const ends[] = {end, NULL};
    MLAI_TRY(end_tag(parser, err));
    MLAI_TRY(parse_body(parser, ends, out, err));
    MLAI_TRY(jinja_advance(parser, err));
    return end_tag(parser, err);
}

/* At `if` or `elif`. NOLINTNEXTLINE(misc-no-recursion) */
static mla_status parse_if(jinja_parser *parser, jinja_node **out, mla_error *err)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    MLAI_TRY(jinja_enter(parser->memory, err));
    MLAI_TRY(jinja_node_make(parser, NODE_IF, out, err));
    MLAI_TRY(jinja_advance(parser, err));
    MLAI_TRY(jinja_parse_tuple(parser, false, &(*out)->a, err));
    MLAI_TRY(end_tag(parser, err));
    MLAI_TRY(parse_body(parser, ends, &(*out)->body, err));
    if (jinja_at_name(parser, "elif")) {
        jinja_node *other = NULL;
        MLAI_TRY(parse_if(parser, &other, err));
        jinja_nodes_add(&(*out)->orelse, other);
    } else if (jinja_at_name(parser, "else")) {
        MLAI_TRY(jinja_advance(parser, err));
        MLAI_TRY(parse_block(parser, "endif", &(*out)->orelse, err));
    } else {
        MLAI_TRY(jinja_advance(parser, err));
        MLAI_TRY(end_tag(parser, err));
    }
    jinja_leave(parser->memory);
    return MLA_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status parse_for(jinja_parser *parser, jinja_node **out, mla_error *err)
{
    static const char *const ends[] = {"else", "endfor", NULL};
    bool is_there;
    MLAI_TRY(jinja_node_make(parser, NODE_FOR, out, err));
    MLAI_TRY(jinja_advance(parser, err));
    MLAI_TRY(jinja_parse_target(parser, false, &(*out)->a, err));
    MLAI_TRY(jinja_expect(parser, "in", err));
    MLAI_TRY(jinja_parse_tuple(parser, false, &(*out)->b, err));
    MLAI_TRY(jinja_skip_if(parser, "if", &is_there, err));
    MLAI_TRY(is_there ? jinja_parse_expression(parser, &(*out)->c, err) : MLA_OK);
    MLAI_CHECK(!jinja_at_name(parser, "recursive"), MLA_ERR_UNSUPPORTED,
               "line %d: 'recursive' loops are not supported", parser->now.line);
    MLAI_TRY(end_tag(parser, err));
    parser->num_loops++;
    MLAI_TRY(parse_body(parser, ends, &(*out)->body, err));
    parser->num_loops--;
    is_there = jinja_at_name(parser, "else");
    MLAI_TRY(jinja_advance(parser, err));
    return is_there ? parse_block(parser, "endfor", &(*out)->orelse, err)
                    : end_tag(parser, err);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status parse_set(jinja_parser *parser, jinja_node **out, mla_error *err)
{
    bool is_there;
    MLAI_TRY(jinja_node_make(parser, NODE_SET, out, err));
    MLAI_TRY(jinja_advance(parser, err));
    MLAI_TRY(jinja_parse_target(parser, true, &(*out)->a, err));
    MLAI_TRY(jinja_skip_if(parser, "=", &is_there, err));
    if (is_there) {
        MLAI_TRY(jinja_parse_tuple(parser, true, &(*out)->b, err));
        return end_tag(parser, err);
    }
    (*out)->kind = NODE_SET_BLOCK;
    MLAI_TRY(jinja_skip_if(parser, "|", &is_there, err));
    MLAI_TRY(is_there ? jinja_parse_filter_chain(parser, &(*out)->b, err) : MLA_OK);
    return parse_block(parser, "endset", &(*out)->body, err);
}

/* (name, name=default), the tokens of a macro or of call. NOLINTNEXTLINE(misc-no-recursion) */
static mla_status parse_parameters(jinja_parser *parser, jinja_nodes *out, mla_error *err)
{
    bool goes_on = true;
    bool has_default = false;
    MLAI_TRY(jinja_expect(parser, "(", err));
    while (goes_on && !jinja_at(parser, ")")) {
        jinja_node *name = NULL;
        MLAI_TRY(jinja_node_make(parser, NODE_NAME, &name, err));
        MLAI_TRY(jinja_expect_name(parser, &name->name, err));
        MLAI_CHECK(jinja_at(parser, "=") || !has_default, MLA_ERR_CORRUPT,
                   "line %d: '%.*s' has no default and stands behind one that has",
                   name->line, JINJA_SHOWN(name->name));
        if (jinja_at(parser, "=")) {
            has_default = true;
            MLAI_TRY(jinja_advance(parser, err));
            MLAI_TRY(jinja_parse_expression(parser, &name->a, err));
        }
        jinja_nodes_add(out, name);
        MLAI_TRY(jinja_skip_if(parser, ",", &goes_on, err));
    }
    return jinja_expect(parser, ")", err);
}

/* A body in which an outer loop cannot be left. NOLINTNEXTLINE(misc-no-recursion) */
static mla_status parse_closed(jinja_parser *parser, const char *end, jinja_nodes *out,
                               mla_error *err)
{
    int32_t num_loops = parser->num_loops;
    parser->num_loops = 0;
    MLAI_TRY(parse_block(parser, end, out, err));
    parser->num_loops = num_loops;
    return MLA_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status parse_macro(jinja_parser *parser, jinja_node **out, mla_error *err)
{
    MLAI_TRY(jinja_node_make(parser, NODE_MACRO, out, err));
    MLAI_TRY(jinja_advance(parser, err));
    MLAI_TRY(jinja_expect_name(parser, &(*out)->name, err));
    MLAI_TRY(parse_parameters(parser, &(*out)->items, err));
    return parse_closed(parser, "endmacro", &(*out)->body, err);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status parse_caller(jinja_parser *parser, jinja_node **out, mla_error *err)
{
    MLAI_TRY(jinja_node_make(parser, NODE_CALLER, out, err));
    MLAI_TRY(jinja_advance(parser, err));
    (*out)->name = JINJA_TEXT("caller");
    if (jinja_at(parser, "(")) {
        MLAI_TRY(parse_parameters(parser, &(*out)->items, err));
    }
    MLAI_TRY(jinja_parse_unary(parser, &(*out)->a, err));
    MLAI_CHECK((*out)->a->kind == NODE_CALL, MLA_ERR_CORRUPT,
               "line %d: 'call' stands before something that is no call", (*out)->line);
    return parse_closed(parser, "endcall", &(*out)->body, err);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status parse_filtered(jinja_parser *parser, jinja_node **out, mla_error *err)
{
    MLAI_TRY(jinja_node_make(parser, NODE_FILTERED, out, err));
    MLAI_TRY(jinja_advance(parser, err));
    MLAI_TRY(jinja_parse_filter_chain(parser, &(*out)->b, err));
    return parse_block(parser, "endfilter", &(*out)->body, err);
}

/* Marks what the assistant said, for training; it prints its body. NOLINTNEXTLINE(misc-no-recursion) */
static mla_status parse_generation(jinja_parser *parser, jinja_node **out, mla_error *err)
{
    MLAI_TRY(jinja_node_make(parser, NODE_SCOPE, out, err));
    MLAI_TRY(jinja_advance(parser, err));
    return parse_closed(parser, "endgeneration", &(*out)->body, err);
}

static mla_status parse_jump(jinja_parser *parser, jinja_node **out, mla_error *err)
{
    MLAI_CHECK(parser->num_loops > 0, MLA_ERR_CORRUPT,
               "line %d: '%.*s' is outside of any loop", parser->now.line,
               JINJA_SHOWN(parser->now.text));
    MLAI_TRY(jinja_node_make(
        parser, jinja_at_name(parser, "break") ? NODE_BREAK : NODE_CONTINUE, out, err));
    MLAI_TRY(jinja_advance(parser, err));
    return end_tag(parser, err);
}

typedef struct tag_row {
    const char *name;
    parse_tag parse;
} tag_row;

static const tag_row tags[] = {
    {"if", parse_if},       {"for", parse_for},       {"set", parse_set},
    {"macro", parse_macro}, {"call", parse_caller},   {"filter", parse_filtered},
    {"break", parse_jump},  {"continue", parse_jump}, {"generation", parse_generation},
};

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status parse_statement(jinja_parser *parser, jinja_node **out, mla_error *err)
{
    static const char *const refused[] = {"block", "extends", "include", "import",
                                          "from",  "with",    "do",      "autoescape",
                                          "trans", "debug"};
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        if (jinja_at_name(parser, tags[i].name)) {
            return tags[i].parse(parser, out, err);
        }
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        MLAI_CHECK(!jinja_at_name(parser, refused[i]), MLA_ERR_UNSUPPORTED,
                   "line %d: the tag '%s' is not supported", parser->now.line, refused[i]);
    }
    return jinja_unexpected(parser, "the name of a tag", err);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status parse_piece(jinja_parser *parser, jinja_node **out, mla_error *err)
{
    if (parser->now.kind == JINJA_DATA) {
        MLAI_TRY(jinja_node_make(parser, NODE_DATA, out, err));
        (*out)->constant = jinja_str(parser->now.text);
        return jinja_advance(parser, err);
    }
    MLAI_TRY(jinja_node_make(parser, NODE_PRINT, out, err));
    MLAI_TRY(jinja_advance(parser, err));
    MLAI_TRY(jinja_parse_tuple(parser, true, &(*out)->a, err));
    return parser->now.kind == JINJA_PRINT_END ? jinja_advance(parser, err)
                                               : jinja_unexpected(parser, "}}", err);
}

static bool is_end(const jinja_parser *parser, const char *const *ends)
{
    for (; *ends; ends++) {
        if (jinja_at_name(parser, *ends)) {
            return true;
        }
    }
    return false;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status parse_body(jinja_parser *parser, const char *const *ends,
                             jinja_nodes *out, mla_error *err)
{
    MLAI_TRY(jinja_enter(parser->memory, err));
    while (parser->now.kind != JINJA_END) {
        jinja_node *node = NULL;
        if (parser->now.kind != JINJA_BLOCK_BEGIN) {
            MLAI_TRY(parse_piece(parser, &node, err));
        } else {
            MLAI_TRY(jinja_advance(parser, err));
            if (is_end(parser, ends)) {
                break;
            }
            MLAI_TRY(parse_statement(parser, &node, err));
        }
        jinja_nodes_add(out, node);
    }
    jinja_leave(parser->memory);
    return parser->now.kind != JINJA_END || !*ends ? MLA_OK
                                                   : jinja_unexpected(parser, *ends, err);
}

mla_status jinja_parse_target(jinja_parser *parser, bool with_namespace, jinja_node **out,
                              mla_error *err)
{
    jinja_node *item = NULL;
    jinja_node *tuple = NULL;
    bool goes_on = true;
    bool is_open;
    MLAI_TRY(jinja_skip_if(parser, "(", &is_open, err));
    while (goes_on && !(tuple && parser->now.kind != JINJA_NAME)) {
        MLAI_TRY(jinja_node_make(parser, NODE_NAME, &item, err));
        MLAI_TRY(jinja_expect_name(parser, &item->name, err));
        if (!tuple && with_namespace && jinja_at(parser, ".")) {
            jinja_node *object = item;
            MLAI_TRY(jinja_node_make(parser, NODE_ATTRIBUTE, &item, err));
            item->a = object;
            MLAI_TRY(jinja_advance(parser, err));
            MLAI_TRY(jinja_expect_name(parser, &item->name, err));
            break;
        }
        MLAI_TRY(jinja_skip_if(parser, ",", &goes_on, err));
        MLAI_TRY(goes_on && !tuple ? jinja_node_make(parser, NODE_TUPLE, &tuple, err)
                                   : MLA_OK);
        if (tuple) {
            jinja_nodes_add(&tuple->items, item);
        }
    }
    *out = tuple ? tuple : item;
    return is_open ? jinja_expect(parser, ")", err) : MLA_OK;
}

mla_status jinja_parse(jinja_memory *memory, jinja_text source, jinja_nodes *out,
                       mla_error *err)
{
    static const char *const ends[] = {NULL};
    jinja_parser parser = {.memory = memory};
    *out = (jinja_nodes){.num = 0};
    MLAI_TRY(jinja_lexer_begin(memory, source, &parser.lexer, err));
    MLAI_TRY(jinja_advance(&parser, err));
    MLAI_TRY(jinja_advance(&parser, err));
    return parse_body(&parser, ends, out, err);
}
