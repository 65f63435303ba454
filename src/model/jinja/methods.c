/* methods.c - the methods of Python's types that templates call. */
#include "model/jinja/text_methods.h"

typedef mla_status (*call_method)(jinja_run *run, jinja_value self,
                                  const jinja_arguments *given, jinja_value *out,
                                  mla_error *err);

/* `index` of given as a text; NULL data where it is none or not given. */
static mla_status text_argument(const jinja_value *value, const char *callee,
                                jinja_text *out, mla_error *err)
{
    *out = (jinja_text){.data = NULL};
    if (value->kind == JINJA_NONE) {
        return MLA_OK;
    }
    MLAI_CHECK(value->kind == JINJA_STR, MLA_ERR_ARGUMENT, "%s takes a text, not a %s",
               callee, jinja_kind_name(value->kind));
    *out = value->as.text;
    out->data = out->data ? out->data : "";
    return MLA_OK;
}

static mla_status int_argument(const jinja_value *value, const char *callee, int64_t *out,
                               mla_error *err)
{
    MLAI_CHECK(value->kind == JINJA_INT || value->kind == JINJA_BOOL, MLA_ERR_ARGUMENT,
               "%s takes a whole number, not a %s", callee, jinja_kind_name(value->kind));
    *out = jinja_int_of(*value);
    return MLA_OK;
}

static mla_status one_text(const jinja_arguments *given, jinja_text *out, mla_error *err)
{
    jinja_value value = jinja_none();
    MLAI_TRY(jinja_bind(given, "text", &value, err));
    MLAI_TRY(text_argument(&value, given->callee, out, err));
    MLAI_CHECK(out->data, MLA_ERR_ARGUMENT, "%s takes a text", given->callee);
    return MLA_OK;
}

static mla_status no_arguments(const jinja_arguments *given, mla_error *err)
{
    return jinja_bind(given, "", NULL, err);
}

static mla_status split(jinja_run *run, jinja_value self, const jinja_arguments *given,
                        jinja_value *out, mla_error *err)
{
    jinja_value values[] = {jinja_none(), jinja_int(-1)};
    jinja_text separator;
    int64_t limit = -1;
    MLAI_TRY(jinja_bind(given, "sep maxsplit", values, err));
    MLAI_TRY(text_argument(&values[0], given->callee, &separator, err));
    MLAI_TRY(int_argument(&values[1], given->callee, &limit, err));
    return jinja_text_is(jinja_text_of(given->callee), "rsplit")
               ? jinja_split_back(run, self.as.text, separator, limit, out, err)
               : jinja_split(run, self.as.text, separator, limit, out, err);
}

static mla_status split_lines(jinja_run *run, jinja_value self,
                              const jinja_arguments *given, jinja_value *out,
                              mla_error *err)
{
    jinja_value keeps = jinja_bool(false);
    MLAI_TRY(jinja_bind(given, "keepends", &keeps, err));
    return jinja_split_lines(run, self.as.text, jinja_is_true(keeps), out, err);
}

static mla_status strip(jinja_run *run, jinja_value self, const jinja_arguments *given,
                        jinja_value *out, mla_error *err)
{
    jinja_value value = jinja_none();
    jinja_text set;
    char first = given->callee[0];
    MLAI_TRY(jinja_bind(given, "chars", &value, err));
    MLAI_TRY(text_argument(&value, given->callee, &set, err));
    MLAI_TRY(jinja_spend(run->memory, self.as.text.bytes, err));
    *out = jinja_str(jinja_strip_set(self.as.text, set, first != 'r', first != 'l'));
    return MLA_OK;
}

static bool begins_with(jinja_text text, jinja_text what)
{
    return what.bytes <= text.bytes &&
           jinja_text_equal(jinja_text_part(text, 0, what.bytes), what);
}

static bool ends_with(jinja_text text, jinja_text what)
{
    return what.bytes <= text.bytes &&
           jinja_text_equal(jinja_text_part(text, text.bytes - what.bytes, text.bytes),
                            what);
}

/* startswith and endswith: of a text, or of one of a tuple of texts. */
static mla_status begins_or_ends(jinja_run *run, jinja_value self,
                                 const jinja_arguments *given, jinja_value *out,
                                 mla_error *err)
{
    jinja_value wanted = jinja_none();
    bool is_so = false;
    MLAI_TRY(jinja_bind(given, "prefix", &wanted, err));
    MLAI_TRY(jinja_spend(run->memory, self.as.text.bytes, err));
    bool is_tuple = wanted.kind == JINJA_TUPLE;
    size_t num = is_tuple ? wanted.as.list->num : 1;
    for (size_t i = 0; i < num; i++) {
        jinja_value one = is_tuple ? wanted.as.list->items[i] : wanted;
        jinja_text text;
        MLAI_TRY(text_argument(&one, given->callee, &text, err));
        MLAI_CHECK(text.data, MLA_ERR_ARGUMENT, "%s takes a text", given->callee);
        is_so = is_so || (given->callee[0] == 's' ? begins_with(self.as.text, text)
                                                  : ends_with(self.as.text, text));
    }
    *out = jinja_bool(is_so);
    return MLA_OK;
}

static mla_status remove_end(jinja_run *run, jinja_value self, const jinja_arguments *given,
                             jinja_value *out, mla_error *err)
{
    jinja_text what;
    jinja_text text = self.as.text;
    bool is_prefix = jinja_text_is(jinja_text_of(given->callee), "removeprefix");
    MLAI_TRY(one_text(given, &what, err));
    MLAI_TRY(jinja_spend(run->memory, what.bytes, err));
    if (is_prefix && begins_with(text, what)) {
        text = jinja_text_part(text, what.bytes, text.bytes);
    } else if (!is_prefix && ends_with(text, what)) {
        text = jinja_text_part(text, 0, text.bytes - what.bytes);
    }
    *out = jinja_str(text);
    return MLA_OK;
}

static mla_status replace(jinja_run *run, jinja_value self, const jinja_arguments *given,
                          jinja_value *out, mla_error *err)
{
    jinja_value values[] = {jinja_none(), jinja_none(), jinja_int(-1)};
    jinja_text from;
    jinja_text to;
    int64_t limit = -1;
    MLAI_TRY(jinja_bind(given, "old new count", values, err));
    MLAI_TRY(text_argument(&values[0], given->callee, &from, err));
    MLAI_TRY(text_argument(&values[1], given->callee, &to, err));
    MLAI_TRY(int_argument(&values[2], given->callee, &limit, err));
    MLAI_CHECK(from.data && to.data, MLA_ERR_ARGUMENT, "replace takes two texts");
    out->kind = JINJA_STR;
    return jinja_replace(run, self.as.text, from, to, limit, &out->as.text, err);
}

static mla_status change_case(jinja_run *run, jinja_value self,
                              const jinja_arguments *given, jinja_value *out,
                              mla_error *err)
{
    char first = given->callee[0];
    jinja_letter_case wanted = first == 'u'   ? CASE_UPPER
                               : first == 'l' ? CASE_LOWER
                               : first == 't' ? CASE_TITLE
                                              : CASE_CAPITALIZE;
    MLAI_TRY(no_arguments(given, err));
    out->kind = JINJA_STR;
    return jinja_change_case(run, self.as.text, wanted, &out->as.text, err);
}

/* find and rfind, in code points. */
static mla_status find(jinja_run *run, jinja_value self, const jinja_arguments *given,
                       jinja_value *out, mla_error *err)
{
    jinja_text what;
    jinja_text text = self.as.text;
    MLAI_TRY(one_text(given, &what, err));
    MLAI_TRY(jinja_spend(run->memory, text.bytes, err));
    size_t at = given->callee[0] == 'r' ? jinja_text_find_last(text, what, text.bytes)
                                        : jinja_text_find(text, what, 0);
    *out = jinja_int(
        at == SIZE_MAX ? -1 : (int64_t)jinja_text_length(jinja_text_part(text, 0, at)));
    return MLA_OK;
}

static mla_status count_text(jinja_run *run, jinja_value self, const jinja_arguments *given,
                             jinja_value *out, mla_error *err)
{
    jinja_text what;
    int64_t num = 0;
    MLAI_TRY(one_text(given, &what, err));
    MLAI_CHECK(what.bytes > 0, MLA_ERR_UNSUPPORTED, "counting an empty text");
    MLAI_TRY(jinja_spend(run->memory, self.as.text.bytes, err));
    for (size_t at = 0; (at = jinja_text_find(self.as.text, what, at)) != SIZE_MAX; num++) {
        at += what.bytes;
    }
    *out = jinja_int(num);
    return MLA_OK;
}

static mla_status is_digits(jinja_run *run, jinja_value self, const jinja_arguments *given,
                            jinja_value *out, mla_error *err)
{
    jinja_text text = self.as.text;
    bool is_so = text.bytes > 0;
    MLAI_TRY(no_arguments(given, err));
    MLAI_TRY(jinja_spend(run->memory, text.bytes, err));
    for (size_t i = 0; i < text.bytes; i++) {
        MLAI_CHECK((unsigned char)text.data[i] < 0x80, MLA_ERR_UNSUPPORTED,
                   "isdigit is supported for ASCII, not for '%.*s'", JINJA_SHOWN(text));
        is_so = is_so && text.data[i] >= '0' && text.data[i] <= '9';
    }
    *out = jinja_bool(is_so);
    return MLA_OK;
}

static mla_status join(jinja_run *run, jinja_value self, const jinja_arguments *given,
                       jinja_value *out, mla_error *err)
{
    jinja_value items = jinja_none();
    const jinja_list *list;
    jinja_builder built = {.memory = run->memory};
    MLAI_TRY(jinja_bind(given, "items", &items, err));
    MLAI_TRY(jinja_iterate(run, items, &list, err));
    for (size_t i = 0; i < list->num; i++) {
        MLAI_CHECK(list->items[i].kind == JINJA_STR, MLA_ERR_ARGUMENT,
                   "join takes texts, and one is a %s",
                   jinja_kind_name(list->items[i].kind));
        MLAI_TRY(i > 0 ? jinja_builder_add(&built, self.as.text, err) : MLA_OK);
        MLAI_TRY(jinja_builder_add(&built, list->items[i].as.text, err));
    }
    *out = jinja_str(jinja_builder_text(&built));
    return MLA_OK;
}

static mla_status get(jinja_run *run, jinja_value self, const jinja_arguments *given,
                      jinja_value *out, mla_error *err)
{
    jinja_value values[] = {jinja_none(), jinja_none()};
    MLAI_TRY(jinja_bind(given, "key default", values, err));
    MLAI_TRY(jinja_spend(run->memory, self.as.dict->num, err));
    const jinja_value *found = jinja_dict_get(self.as.dict, values[0]);
    *out = found ? *found : values[1];
    return MLA_OK;
}

static mla_status pair(jinja_run *run, jinja_value key, jinja_value value, jinja_value *out,
                       mla_error *err)
{
    MLAI_TRY(jinja_list_value(run->memory, JINJA_TUPLE, out, err));
    MLAI_TRY(jinja_list_add(run->memory, out->as.list, key, err));
    return jinja_list_add(run->memory, out->as.list, value, err);
}

/* keys, values and items */
static mla_status view(jinja_run *run, jinja_value self, const jinja_arguments *given,
                       jinja_value *out, mla_error *err)
{
    const jinja_dict *dict = self.as.dict;
    char first = given->callee[0];
    MLAI_TRY(no_arguments(given, err));
    MLAI_TRY(jinja_list_value(run->memory, JINJA_VIEW, out, err));
    out->as.list->name = first == 'k'   ? "dict_keys"
                         : first == 'v' ? "dict_values"
                                        : "dict_items";
    for (size_t i = 0; i < dict->num; i++) {
        jinja_value item = first == 'k' ? dict->keys[i] : dict->values[i];
        if (first == 'i') {
            MLAI_TRY(pair(run, dict->keys[i], dict->values[i], &item, err));
        }
        MLAI_TRY(jinja_list_add(run->memory, out->as.list, item, err));
    }
    return MLA_OK;
}

/* count and index of a list */
static mla_status count_item(jinja_run *run, jinja_value self, const jinja_arguments *given,
                             jinja_value *out, mla_error *err)
{
    jinja_value wanted = jinja_none();
    int64_t num = 0;
    int64_t first = -1;
    MLAI_TRY(jinja_bind(given, "value", &wanted, err));
    for (size_t i = 0; i < self.as.list->num; i++) {
        bool is_equal;
        MLAI_TRY(jinja_equal(run->memory, self.as.list->items[i], wanted, &is_equal, err));
        num += is_equal;
        first = is_equal && first < 0 ? (int64_t)i : first;
    }
    bool counts = given->callee[0] == 'c';
    MLAI_CHECK(counts || first >= 0, MLA_ERR_ARGUMENT,
               "index: the value is not in the list");
    *out = jinja_int(counts ? num : first);
    return MLA_OK;
}

/* loop.cycle(a, b, ...) */
static mla_status cycle(jinja_run *run, jinja_value self, const jinja_arguments *given,
                        jinja_value *out, mla_error *err)
{
    (void)run;
    MLAI_CHECK(given->num > 0 && given->num_named == 0, MLA_ERR_ARGUMENT,
               "cycle takes values, and has none");
    *out = given->values[self.as.loop->index % (size_t)given->num];
    return MLA_OK;
}

static mla_status refuse(jinja_run *run, jinja_value self, const jinja_arguments *given,
                         jinja_value *out, mla_error *err)
{
    (void)run;
    (void)out;
    return MLAI_FAIL(MLA_ERR_UNSUPPORTED, "the method '%s' of a %s is not supported",
                     given->callee, jinja_kind_name(self.kind));
}

typedef struct method_row {
    jinja_kind kind;
    const char *names; /* one or more, with spaces round each */
    call_method call;
} method_row;

static const method_row rows[] = {
    {JINJA_STR, " split rsplit ", split},
    {JINJA_STR, " splitlines ", split_lines},
    {JINJA_STR, " strip lstrip rstrip ", strip},
    {JINJA_STR, " startswith endswith ", begins_or_ends},
    {JINJA_STR, " removeprefix removesuffix ", remove_end},
    {JINJA_STR, " replace ", replace},
    {JINJA_STR, " upper lower title capitalize ", change_case},
    {JINJA_STR, " find rfind ", find},
    {JINJA_STR, " count ", count_text},
    {JINJA_STR, " isdigit ", is_digits},
    {JINJA_STR, " join ", join},
    {JINJA_STR,
     " format format_map encode center ljust rjust zfill casefold swapcase expandtabs "
     "isalnum isalpha isascii isdecimal isidentifier islower isnumeric isprintable isspace "
     "istitle isupper index rindex partition rpartition translate maketrans ",
     refuse},
    {JINJA_DICT, " get ", get},
    {JINJA_DICT, " keys values items ", view},
    {JINJA_DICT, " clear pop popitem setdefault update copy fromkeys ", refuse},
    {JINJA_LIST, " count index ", count_item},
    {JINJA_TUPLE, " count index ", count_item},
    {JINJA_LIST, " append clear copy extend insert pop remove reverse sort ", refuse},
    {JINJA_LOOP, " cycle ", cycle},
};

/* The row of a method, and its name as a constant, NULL: none. */
static const method_row *row_of(jinja_kind kind, jinja_text name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        jinja_text names = jinja_text_of(rows[i].names);
        size_t at = rows[i].kind == kind && name.bytes > 0 ? jinja_text_find(names, name, 0)
                                                           : SIZE_MAX;
        for (; at != SIZE_MAX; at = jinja_text_find(names, name, at + 1)) {
            if (names.data[at - 1] == ' ' && names.data[at + name.bytes] == ' ') {
                return &rows[i];
            }
        }
    }
    return NULL;
}

mla_status jinja_method_find(jinja_run *run, jinja_value self, jinja_text name,
                             jinja_value *out, bool *is_there, mla_error *err)
{
    *is_there = row_of(self.kind, name) != NULL;
    if (!*is_there) {
        return MLA_OK;
    }
    void *memory = NULL;
    MLAI_TRY(jinja_take(run->memory, 1, sizeof(jinja_method), &memory, err));
    jinja_method *method = memory;
    *method = (jinja_method){.self = self, .name = name};
    *out = (jinja_value){.kind = JINJA_METHOD, .as.method = method};
    return MLA_OK;
}

mla_status jinja_method_call(jinja_run *run, const jinja_method *method,
                             const jinja_arguments *given, jinja_value *out, mla_error *err)
{
    enum { MAX_NAME = 32 };
    char name[MAX_NAME];
    size_t bytes = method->name.bytes < MAX_NAME ? method->name.bytes : MAX_NAME - 1;
    for (size_t i = 0; i < bytes; i++) {
        name[i] = method->name.data[i];
    }
    name[bytes] = '\0';
    jinja_arguments named = *given;
    named.callee = name;
    return row_of(method->self.kind, method->name)
        ->call(run, method->self, &named, out, err);
}
