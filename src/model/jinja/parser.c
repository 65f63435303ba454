/* parser.c - what all of the parser stands on: tokens and nodes. */
#include "model/jinja/parser.h"

mla_status jinja_advance(jinja_parser *parser, mla_error *err)
{
    parser->now = parser->next;
    do {
        MLAI_TRY(jinja_lexer_next(&parser->lexer, &parser->next, err));
    } while (parser->next.kind == JINJA_DATA && parser->next.text.bytes == 0);
    return MLA_OK;
}

mla_status jinja_node_make(jinja_parser *parser, jinja_node_kind kind, jinja_node **out,
                           mla_error *err)
{
    void *memory = NULL;
    MLAI_TRY(jinja_take(parser->memory, 1, sizeof(jinja_node), &memory, err));
    *out = memory;
    (*out)->kind = kind;
    (*out)->line = parser->now.line;
    return MLA_OK;
}

void jinja_nodes_add(jinja_nodes *list, jinja_node *node)
{
    if (list->last) {
        list->last->next = node;
    } else {
        list->first = node;
    }
    list->last = node;
    list->num++;
}

bool jinja_at(const jinja_parser *parser, const char *text)
{
    return parser->now.kind == JINJA_OPERATOR && jinja_text_is(parser->now.text, text);
}

bool jinja_at_name(const jinja_parser *parser, const char *name)
{
    return parser->now.kind == JINJA_NAME && jinja_text_is(parser->now.text, name);
}

mla_status jinja_skip_if(jinja_parser *parser, const char *text, bool *out, mla_error *err)
{
    *out = jinja_at(parser, text) || jinja_at_name(parser, text);
    return *out ? jinja_advance(parser, err) : MLA_OK;
}

mla_status jinja_unexpected(const jinja_parser *parser, const char *wanted, mla_error *err)
{
    const jinja_token *now = &parser->now;
    if (now->kind == JINJA_END) {
        return MLAI_FAIL(MLA_ERR_CORRUPT, "line %d: the template ends where %s should be",
                         now->line, wanted);
    }
    return MLAI_FAIL(MLA_ERR_CORRUPT, "line %d: '%.*s' is where %s should be", now->line,
                     JINJA_SHOWN(now->text), wanted);
}

mla_status jinja_expect(jinja_parser *parser, const char *text, mla_error *err)
{
    bool is_there;
    if (parser->now.kind == JINJA_BLOCK_END && jinja_text_is(parser->now.text, text)) {
        return jinja_advance(parser, err);
    }
    MLAI_TRY(jinja_skip_if(parser, text, &is_there, err));
    return is_there ? MLA_OK : jinja_unexpected(parser, text, err);
}

mla_status jinja_expect_name(jinja_parser *parser, jinja_text *out, mla_error *err)
{
    if (parser->now.kind != JINJA_NAME) {
        return jinja_unexpected(parser, "a name", err);
    }
    *out = parser->now.text;
    return jinja_advance(parser, err);
}
