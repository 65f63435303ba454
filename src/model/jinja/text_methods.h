/* text_methods.h - what both methods and filters do to texts. */
#ifndef MLA_MODEL_JINJA_TEXT_METHODS_H
#define MLA_MODEL_JINJA_TEXT_METHODS_H

#include "model/jinja/run.h"

typedef enum jinja_letter_case {
    CASE_UPPER,
    CASE_LOWER,
    CASE_TITLE,      /* each word by its letters: str.title */
    CASE_CAPITALIZE, /* the first letter of the text only */
    CASE_WORDS,      /* each word after space, (, [, {, < or -: the filter title */
} jinja_letter_case;

/* ASCII; a text with other letters is MLA_ERR_UNSUPPORTED. */
mla_status jinja_change_case(jinja_run *run, jinja_text text, jinja_letter_case wanted,
                             jinja_text *out, mla_error *err);
/* limit < 0: all */
mla_status jinja_replace(jinja_run *run, jinja_text text, jinja_text from, jinja_text to,
                         int64_t limit, jinja_text *out, mla_error *err);
/* Characters of the set; data NULL: white space. */
jinja_text jinja_strip_set(jinja_text text, jinja_text set, bool left, bool right);
/* separator.data NULL: white space. */
mla_status jinja_split(jinja_run *run, jinja_text text, jinja_text separator, int64_t limit,
                       jinja_value *out, mla_error *err);
mla_status jinja_split_back(jinja_run *run, jinja_text text, jinja_text separator,
                            int64_t limit, jinja_value *out, mla_error *err);
mla_status jinja_split_lines(jinja_run *run, jinja_text text, bool keeps_ends,
                             jinja_value *out, mla_error *err);

#endif
