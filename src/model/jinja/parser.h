/* parser.h - tokens to a tree. What the language has and we do not is refused here, by name.
 * Statements are in parse_statement.c, expressions in parse_expression.c and below. */
#ifndef MLA_MODEL_JINJA_PARSER_H
#define MLA_MODEL_JINJA_PARSER_H

#include "model/jinja/lexer.h"
#include "model/jinja/node.h"

typedef struct jinja_parser {
    jinja_memory *memory;
    jinja_lexer lexer;
    jinja_token now, next;
    int32_t num_loops; /* that break and continue may be of */
} jinja_parser;

/* source: copied into the memory, where the tree is, too. */
mla_status jinja_parse(jinja_memory *memory, jinja_text source, jinja_nodes *out,
                       mla_error *err);

/* Shared by the files of the parser. */
mla_status jinja_advance(jinja_parser *parser, mla_error *err);
mla_status jinja_node_make(jinja_parser *parser, jinja_node_kind kind, jinja_node **out,
                           mla_error *err);
void jinja_nodes_add(jinja_nodes *list, jinja_node *node);
bool jinja_at(const jinja_parser *parser, const char *text);      /* an operator */
bool jinja_at_name(const jinja_parser *parser, const char *name); /* a word */
mla_status jinja_skip_if(jinja_parser *parser, const char *text, bool *out,
                         mla_error *err); /* an operator or word */
mla_status jinja_expect(jinja_parser *parser, const char *text, mla_error *err);
mla_status jinja_expect_name(jinja_parser *parser, jinja_text *out, mla_error *err);
mla_status jinja_unexpected(const jinja_parser *parser, const char *wanted, mla_error *err);

mla_status jinja_parse_expression(jinja_parser *parser, jinja_node **out, mla_error *err);
/* Without the ternary, as `for x in ...` has it. */
mla_status jinja_parse_or(jinja_parser *parser, jinja_node **out, mla_error *err);
/* One, or several with commas: a tuple. */
mla_status jinja_parse_tuple(jinja_parser *parser, bool has_ternary, jinja_node **out,
                             mla_error *err);
/* name or name, name: what for and set assign to; with_namespace: or name.name */
mla_status jinja_parse_target(jinja_parser *parser, bool with_namespace, jinja_node **out,
                              mla_error *err);
mla_status jinja_parse_unary(jinja_parser *parser, jinja_node **out, mla_error *err);
mla_status jinja_parse_primary(jinja_parser *parser, jinja_node **out, mla_error *err);
mla_status jinja_parse_postfix(jinja_parser *parser, jinja_node **node, mla_error *err);
/* | filter(...) and is test(...), as often as they come */
mla_status jinja_parse_filters(jinja_parser *parser, jinja_node **node, mla_error *err);
/* name(...) | name(...) of a filter block, from the first name on */
mla_status jinja_parse_filter_chain(jinja_parser *parser, jinja_node **out, mla_error *err);
/* ( ... ) to call->items */
mla_status jinja_parse_arguments(jinja_parser *parser, jinja_node *call, mla_error *err);
/* The token of a string, its escapes replaced. */
mla_status jinja_parse_string(jinja_parser *parser, jinja_text *out, mla_error *err);

#endif
