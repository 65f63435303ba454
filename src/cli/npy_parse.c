/* npy_parse.c - the header: a magic, a version, a length, and a Python dictionary with the
 * three keys descr, fortran_order and shape. */
#include <stdbool.h>
#include <string.h>

#include "base/size.h"
#include "base/status.h"
#include "cli/npy.h"

enum {
    MAGIC_BYTES = 6,
    VERSION_AT = 6,
    LENGTH_AT = 8,
    HAS_DESCR = 1,
    HAS_ORDER = 2,
    HAS_SHAPE = 4,
    HAS_ALL = 7,
    MAX_SHOWN = 12, /* characters of a type that is refused */
};
#define MAX_DIM (INT64_C(1) << 48)

typedef struct cursor {
    const char *at, *end;
} cursor;

static void skip_blanks(cursor *in)
{
    while (in->at < in->end && (*in->at == ' ' || *in->at == '\n')) {
        in->at++;
    }
}

/* Takes `text` where it stands next, after blanks. */
static bool take(cursor *in, const char *text)
{
    size_t bytes = strlen(text);
    skip_blanks(in);
    if ((size_t)(in->end - in->at) < bytes || memcmp(in->at, text, bytes) != 0) {
        return false;
    }
    in->at += bytes;
    return true;
}

/* Python writes a string with either quote. */
static bool take_string(cursor *in, const char *text)
{
    size_t bytes = strlen(text);
    skip_blanks(in);
    const char *at = in->at;
    bool is_here = (size_t)(in->end - at) >= bytes + 2 && (*at == '\'' || *at == '"') &&
                   memcmp(at + 1, text, bytes) == 0 && at[bytes + 1] == *at;
    in->at += is_here ? bytes + 2 : 0;
    return is_here;
}

static bool take_number(cursor *in, int64_t *out)
{
    int64_t value = 0;
    skip_blanks(in);
    const char *first = in->at;
    while (in->at < in->end && *in->at >= '0' && *in->at <= '9' && value <= MAX_DIM) {
        value = value * 10 + (*in->at++ - '0');
    }
    *out = value;
    return in->at > first && value <= MAX_DIM;
}

static mla_status parse_descr(cursor *in, npy_header *out, mla_error *err)
{
    if (take_string(in, "<f4")) {
        out->type = NPY_F32;
        return MLA_OK;
    }
    if (take_string(in, "<i4")) {
        out->type = NPY_INT32;
        return MLA_OK;
    }
    skip_blanks(in);
    int shown = 0;
    while (shown < MAX_SHOWN && in->at + shown < in->end && in->at[shown] != ',') {
        shown++;
    }
    return MLAI_FAIL(MLA_ERR_UNSUPPORTED,
                     "an array of type %.*s is neither '<f4' nor '<i4'", shown, in->at);
}

static mla_status parse_order(cursor *in, mla_error *err)
{
    MLAI_CHECK(!take(in, "True"), MLA_ERR_UNSUPPORTED,
               "the array is in Fortran's order, not in C's");
    MLAI_CHECK(take(in, "False"), MLA_ERR_CORRUPT,
               "fortran_order is neither True nor False");
    return MLA_OK;
}

/* "()", "(3,)", "(3, 4)" or "(3, 4,)"; "(3)" is a number in Python, not a shape. */
static mla_status parse_shape(cursor *in, npy_header *out, mla_error *err)
{
    bool has_comma = true;
    MLAI_CHECK(take(in, "("), MLA_ERR_CORRUPT, "the shape does not begin with (");
    while (!take(in, ")")) {
        MLAI_CHECK(has_comma && out->num_dims < NPY_MAX_DIMS, MLA_ERR_CORRUPT,
                   "the shape is not a list of at most %d numbers", NPY_MAX_DIMS);
        MLAI_CHECK(take_number(in, &out->dims[out->num_dims]), MLA_ERR_CORRUPT,
                   "dimension %d of the shape is not a number up to 2^48", out->num_dims);
        out->num_dims++;
        has_comma = take(in, ",");
    }
    MLAI_CHECK(out->num_dims != 1 || has_comma, MLA_ERR_CORRUPT,
               "the shape is a number, not a tuple");
    return MLA_OK;
}

static mla_status parse_pair(cursor *in, npy_header *out, int *seen, mla_error *err)
{
    int key = take_string(in, "descr")           ? HAS_DESCR
              : take_string(in, "fortran_order") ? HAS_ORDER
              : take_string(in, "shape")         ? HAS_SHAPE
                                                 : 0;
    MLAI_CHECK(key && !(*seen & key) && take(in, ":"), MLA_ERR_CORRUPT,
               "the header is not a dictionary of descr, fortran_order and shape");
    *seen |= key;
    switch (key) {
    case HAS_DESCR:
        return parse_descr(in, out, err);
    case HAS_ORDER:
        return parse_order(in, err);
    default:
        return parse_shape(in, out, err);
    }
}

static mla_status parse_dictionary(cursor *in, npy_header *out, mla_error *err)
{
    int seen = 0;
    bool has_comma = true;
    MLAI_CHECK(take(in, "{"), MLA_ERR_CORRUPT, "the header does not begin with {");
    while (!take(in, "}")) {
        MLAI_CHECK(has_comma, MLA_ERR_CORRUPT, "the header lacks a comma between its keys");
        MLAI_TRY(parse_pair(in, out, &seen, err));
        has_comma = take(in, ",");
    }
    MLAI_CHECK(seen == HAS_ALL, MLA_ERR_CORRUPT,
               "the header lacks descr, fortran_order or shape");
    skip_blanks(in);
    MLAI_CHECK(in->at == in->end, MLA_ERR_CORRUPT, "%zu bytes of the header follow its }",
               (size_t)(in->end - in->at));
    return MLA_OK;
}

static mla_status check_size(npy_header *out, size_t file_bytes, mla_error *err)
{
    size_t num = 1;
    size_t bytes = 0;
    bool fits = true;
    for (int32_t i = 0; i < out->num_dims; i++) {
        fits = fits && mlai_size_mul(num, (size_t)out->dims[i], &num);
    }
    fits = fits && mlai_size_mul(num, NPY_ITEM_BYTES, &bytes) &&
           mlai_size_add(bytes, out->data_offset, &bytes);
    MLAI_CHECK(fits, MLA_ERR_CORRUPT, "the shape has more items than can be counted");
    MLAI_CHECK(bytes == file_bytes, MLA_ERR_CORRUPT,
               "the file has %zu bytes where its header asks for %zu", file_bytes, bytes);
    out->num_items = num;
    return MLA_OK;
}

/* Finds the dictionary: [*begin, out->data_offset). */
static mla_status parse_front(const unsigned char *start, size_t bytes, size_t *begin,
                              npy_header *out, mla_error *err)
{
    static const char magic[MAGIC_BYTES + 1] = "\x93NUMPY";
    MLAI_CHECK(bytes >= LENGTH_AT + 2 && memcmp(start, magic, MAGIC_BYTES) == 0,
               MLA_ERR_CORRUPT, "the file does not begin as a .npy file does");
    unsigned major = start[VERSION_AT];
    MLAI_CHECK(major >= 1 && major <= 3 && start[VERSION_AT + 1] == 0, MLA_ERR_UNSUPPORTED,
               "version %u.%u of the .npy format is not known", major,
               start[VERSION_AT + 1]);
    size_t length = start[LENGTH_AT] | (size_t)start[LENGTH_AT + 1] << 8;
    *begin = LENGTH_AT + 2;
    if (major > 1) {
        MLAI_CHECK(bytes >= LENGTH_AT + 4, MLA_ERR_CORRUPT, "the header is cut short");
        length |= (size_t)start[LENGTH_AT + 2] << 16 | (size_t)start[LENGTH_AT + 3] << 24;
        *begin = LENGTH_AT + 4;
    }
    MLAI_CHECK(length <= bytes - *begin, MLA_ERR_CORRUPT,
               "the header's length %zu passes the end of the file", length);
    out->data_offset = *begin + length;
    return MLA_OK;
}

mla_status npy_parse(const void *file, size_t bytes, npy_header *out, mla_error *err)
{
    npy_header header = {0};
    size_t begin = 0;
    MLAI_TRY(parse_front(file, bytes, &begin, &header, err));
    const char *text = file;
    cursor in = {text + begin, text + header.data_offset};
    MLAI_TRY(parse_dictionary(&in, &header, err));
    MLAI_TRY(check_size(&header, bytes, err));
    *out = header;
    return MLA_OK;
}
