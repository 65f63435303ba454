/* subscript.c - a.b, a[b] and a[b:c:d]. */
#include "model/jinja/run.h"

static mla_status refuse_undefined(jinja_value value, jinja_text name, mla_error *err)
{
    MLAI_CHECK(value.kind != JINJA_UNDEFINED, MLA_ERR_ARGUMENT,
               "'%.*s' is undefined, and asked for '%.*s'", JINJA_SHOWN(value.as.text),
               JINJA_SHOWN(name));
    return MLA_OK;
}

/* The byte offset of a code point, which is there. */
static jinja_value character(jinja_text text, size_t index)
{
    size_t begin = jinja_text_offset(text, 0, index);
    return jinja_str(jinja_text_part(text, begin, jinja_text_offset(text, begin, 1)));
}

static mla_status length_of(jinja_run *run, jinja_value value, int64_t *out, mla_error *err)
{
    if (value.kind == JINJA_STR) {
        *out = (int64_t)jinja_text_length(value.as.text);
        return jinja_spend(run->memory, value.as.text.bytes, err);
    }
    *out = (int64_t)value.as.list->num;
    return MLA_OK;
}

static bool has_positions(jinja_value value)
{
    return value.kind == JINJA_STR || value.kind == JINJA_LIST ||
           value.kind == JINJA_TUPLE || value.kind == JINJA_RANGE;
}

static mla_status index_position(jinja_run *run, jinja_value value, int64_t index,
                                 jinja_value *out, mla_error *err)
{
    int64_t num;
    MLAI_TRY(length_of(run, value, &num, err));
    index += index < 0 ? num : 0;
    if (index < 0 || index >= num) {
        *out = jinja_undefined(JINJA_TEXT("an item beyond the end"));
    } else if (value.kind == JINJA_STR) {
        *out = character(value.as.text, (size_t)index);
    } else {
        *out = value.as.list->items[index];
    }
    return MLA_OK;
}

static void loop_neighbour(const jinja_loop *loop, bool is_next, jinja_value *out)
{
    size_t last = loop->items->num - 1;
    if (is_next && loop->index < last) {
        *out = loop->items->items[loop->index + 1];
    } else if (!is_next && loop->index > 0) {
        *out = loop->items->items[loop->index - 1];
    } else {
        *out = jinja_undefined(JINJA_TEXT("the item beyond the loop's end"));
    }
}

static mla_status loop_attribute(jinja_value value, jinja_text name, jinja_value *out,
                                 mla_error *err)
{
    const jinja_loop *loop = value.as.loop;
    int64_t index = (int64_t)loop->index;
    int64_t num = (int64_t)loop->items->num;
    const struct {
        const char *name;
        jinja_value value;
    } rows[] = {
        {"index", jinja_int(index + 1)},
        {"index0", jinja_int(index)},
        {"revindex", jinja_int(num - index)},
        {"revindex0", jinja_int(num - index - 1)},
        {"first", jinja_bool(index == 0)},
        {"last", jinja_bool(index == num - 1)},
        {"length", jinja_int(num)},
        {"depth", jinja_int(loop->depth)},
        {"depth0", jinja_int(loop->depth - 1)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (jinja_text_is(name, rows[i].name)) {
            *out = rows[i].value;
            return MLA_OK;
        }
    }
    bool is_next = jinja_text_is(name, "nextitem");
    MLAI_CHECK(is_next || jinja_text_is(name, "previtem"), MLA_ERR_UNSUPPORTED,
               "loop.%.*s is not supported", JINJA_SHOWN(name));
    loop_neighbour(loop, is_next, out);
    return MLA_OK;
}

static bool find_key(jinja_value value, jinja_text name, jinja_value *out)
{
    if (value.kind != JINJA_DICT && value.kind != JINJA_NAMESPACE) {
        return false;
    }
    const jinja_value *found = jinja_dict_find(value.as.dict, name);
    *out = found ? *found : jinja_undefined(name);
    return found != NULL;
}

mla_status jinja_attribute(jinja_run *run, jinja_value value, jinja_text name,
                           jinja_value *out, mla_error *err)
{
    bool is_there = false;
    *out = jinja_undefined(name);
    MLAI_TRY(refuse_undefined(value, name, err));
    MLAI_TRY(jinja_method_find(run, value, name, out, &is_there, err));
    if (value.kind == JINJA_LOOP && !is_there) {
        return loop_attribute(value, name, out, err);
    }
    if (!is_there) {
        MLAI_TRY(jinja_spend(run->memory, 0, err));
        (void)find_key(value, name, out);
    }
    return MLA_OK;
}

mla_status jinja_index(jinja_run *run, jinja_value value, jinja_value key, jinja_value *out,
                       mla_error *err)
{
    jinja_text name = key.kind == JINJA_STR ? key.as.text : JINJA_TEXT("an item");
    MLAI_TRY(refuse_undefined(value, name, err));
    *out = jinja_undefined(name);
    if (key.kind == JINJA_STR) {
        if (find_key(value, name, out)) {
            return jinja_spend(run->memory, 0, err);
        }
        return jinja_attribute(run, value, name, out, err);
    }
    if (value.kind == JINJA_DICT) {
        const jinja_value *found = jinja_dict_get(value.as.dict, key);
        *out = found ? *found : *out;
        return jinja_spend(run->memory, value.as.dict->num, err);
    }
    bool is_whole = key.kind == JINJA_INT || key.kind == JINJA_BOOL;
    return has_positions(value) && is_whole
               ? index_position(run, value, jinja_int_of(key), out, err)
               : MLA_OK;
}

typedef struct slice {
    int64_t begin, end, step;
} slice;

static mla_status part_of_slice(jinja_run *run, const jinja_node *node, int64_t otherwise,
                                int64_t *out, mla_error *err)
{
    jinja_value value = jinja_none();
    *out = otherwise;
    if (node) {
        MLAI_TRY(jinja_eval(run, node, &value, err));
    }
    if (value.kind == JINJA_NONE) {
        return MLA_OK;
    }
    MLAI_CHECK(value.kind == JINJA_INT || value.kind == JINJA_BOOL, MLA_ERR_ARGUMENT,
               "a slice is by whole numbers, not by a %s", jinja_kind_name(value.kind));
    *out = jinja_int_of(value);
    return MLA_OK;
}

static int64_t clamp(int64_t at, int64_t num, int64_t least, int64_t most)
{
    at += at < 0 ? num : 0;
    return at < least ? least : at > most ? most : at;
}

/* The rule of Python's slice.indices. */
static mla_status read_slice(jinja_run *run, const jinja_node *node, int64_t num,
                             slice *out, mla_error *err)
{
    MLAI_TRY(part_of_slice(run, node->d, 1, &out->step, err));
    MLAI_CHECK(out->step != 0, MLA_ERR_ARGUMENT, "the step of a slice is 0");
    bool is_back = out->step < 0;
    int64_t least = is_back ? -1 : 0;
    int64_t most = is_back ? num - 1 : num;
    MLAI_TRY(part_of_slice(run, node->b, INT64_MIN, &out->begin, err));
    MLAI_TRY(part_of_slice(run, node->c, INT64_MIN, &out->end, err));
    out->begin = out->begin == INT64_MIN ? (is_back ? most : least)
                                         : clamp(out->begin, num, least, most);
    out->end = out->end == INT64_MIN ? (is_back ? least : most)
                                     : clamp(out->end, num, least, most);
    return MLA_OK;
}

static mla_status slice_list(jinja_run *run, const jinja_list *list, const slice *part,
                             jinja_list **out, mla_error *err)
{
    MLAI_TRY(jinja_list_make(run->memory, 0, out, err));
    int64_t at = part->begin;
    while (part->step > 0 ? at < part->end : at > part->end) {
        MLAI_TRY(jinja_list_add(run->memory, *out, list->items[at], err));
        if (__builtin_add_overflow(at, part->step, &at)) {
            break;
        }
    }
    return MLA_OK;
}

static mla_status slice_text(jinja_run *run, jinja_text text, const slice *part,
                             jinja_text *out, mla_error *err)
{
    jinja_builder built = {.memory = run->memory};
    const jinja_list *all;
    jinja_list *wanted;
    if (part->step == 1) {
        size_t begin = jinja_text_offset(text, 0, (size_t)part->begin);
        size_t num = part->end > part->begin ? (size_t)(part->end - part->begin) : 0;
        *out = jinja_text_part(text, begin, jinja_text_offset(text, begin, num));
        return MLA_OK;
    }
    MLAI_TRY(jinja_iterate(run, jinja_str(text), &all, err));
    MLAI_TRY(slice_list(run, all, part, &wanted, err));
    for (size_t i = 0; i < wanted->num; i++) {
        MLAI_TRY(jinja_builder_add(&built, wanted->items[i].as.text, err));
    }
    *out = jinja_builder_text(&built);
    return MLA_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
mla_status jinja_eval_slice(jinja_run *run, const jinja_node *node, jinja_value *out,
                            mla_error *err)
{
    jinja_value value;
    int64_t num = 0;
    slice part = {.step = 1};
    MLAI_TRY(jinja_eval(run, node->a, &value, err));
    MLAI_TRY(refuse_undefined(value, JINJA_TEXT("a slice"), err));
    MLAI_CHECK(has_positions(value), MLA_ERR_ARGUMENT, "a %s has no slices",
               jinja_kind_name(value.kind));
    MLAI_TRY(length_of(run, value, &num, err));
    MLAI_TRY(read_slice(run, node, num, &part, err));
    out->kind = value.kind == JINJA_RANGE ? JINJA_LIST : value.kind;
    return value.kind == JINJA_STR
               ? slice_text(run, value.as.text, &part, &out->as.text, err)
               : slice_list(run, value.as.list, &part, &out->as.list, err);
}
