/* safetensors.c - a file's header, checked. */
#include "model/safetensors.h"

#include <string.h>

#include "base/size.h"
#include "model/sort.h"

static const struct {
    const char *name;
    size_t bytes;
} types[NUM_TENSOR_TYPES] = {
    [TENSOR_BOOL] = {"BOOL", 1},       [TENSOR_U8] = {"U8", 1},
    [TENSOR_I8] = {"I8", 1},           [TENSOR_F8_E5M2] = {"F8_E5M2", 1},
    [TENSOR_F8_E4M3] = {"F8_E4M3", 1}, [TENSOR_I16] = {"I16", 2},
    [TENSOR_U16] = {"U16", 2},         [TENSOR_F16] = {"F16", 2},
    [TENSOR_BF16] = {"BF16", 2},       [TENSOR_I32] = {"I32", 4},
    [TENSOR_U32] = {"U32", 4},         [TENSOR_F32] = {"F32", 4},
    [TENSOR_F64] = {"F64", 8},         [TENSOR_I64] = {"I64", 8},
    [TENSOR_U64] = {"U64", 8},
};

const char *tensor_type_name(tensor_type type)
{
    return (unsigned)type < NUM_TENSOR_TYPES ? types[type].name : NULL;
}

/* Where the file's parts lie. */
typedef struct file_layout {
    const char *file;
    const unsigned char *data; /* after the header */
    size_t data_bytes;
    size_t data_start; /* counted from the file's first byte */
} file_layout;

static mla_status measure(const char *file, const unsigned char *data, size_t bytes,
                          file_layout *out, mla_error *err)
{
    MLAI_CHECK(bytes >= 8, MLA_ERR_CORRUPT,
               "%s has %zu bytes; a safetensors file starts with 8 bytes of length", file,
               bytes);
    uint64_t header_bytes = 0;
    for (int i = 7; i >= 0; i--) {
        header_bytes = header_bytes << 8 | data[i];
    }
    MLAI_CHECK(header_bytes <= SAFETENSORS_MAX_HEADER_BYTES, MLA_ERR_CORRUPT,
               "%s: its header says it is %llu bytes long, and at most %d are read", file,
               (unsigned long long)header_bytes, SAFETENSORS_MAX_HEADER_BYTES);
    MLAI_CHECK(header_bytes <= bytes - 8, MLA_ERR_CORRUPT,
               "%s: its header says it is %llu bytes long, and the file has %zu after the "
               "length",
               file, (unsigned long long)header_bytes, bytes - 8);
    *out = (file_layout){.file = file,
                         .data = data + 8 + header_bytes,
                         .data_bytes = bytes - 8 - (size_t)header_bytes,
                         .data_start = 8 + (size_t)header_bytes};
    return MLA_OK;
}

static mla_status read_type(const json_document *doc, const json_t *entry,
                            stored_tensor *out, mla_error *err)
{
    const char *name;
    MLAI_TRY(key_string(doc, entry, "dtype", &name, err));
    for (int i = 0; i < NUM_TENSOR_TYPES; i++) {
        if (strcmp(types[i].name, name) == 0) {
            out->type = (tensor_type)i;
            return MLA_OK;
        }
    }
    return MLAI_FAIL(MLA_ERR_UNSUPPORTED, "%s: dtype \"%.40s\" is not known", doc->name,
                     name);
}

static mla_status read_shape(const json_document *doc, const json_t *entry,
                             stored_tensor *out, mla_error *err)
{
    const json_t *shape;
    MLAI_TRY(key_array(doc, entry, "shape", &shape, err));
    size_t num = json_array_size(shape);
    MLAI_CHECK(num <= SAFETENSORS_MAX_DIMS, MLA_ERR_UNSUPPORTED,
               "%s: shape has %zu dimensions, and at most %d are read", doc->name, num,
               SAFETENSORS_MAX_DIMS);
    size_t bytes = types[out->type].bytes;
    for (size_t i = 0; i < num; i++) {
        const json_t *dim = json_array_get(shape, i);
        MLAI_CHECK(json_is_integer(dim) && json_integer_value(dim) >= 0, MLA_ERR_CORRUPT,
                   "%s: shape[%zu] is %s and should be a size", doc->name, i,
                   json_words_of(dim).text);
        out->dims[i] = json_integer_value(dim);
        MLAI_CHECK(mlai_size_mul(bytes, (size_t)out->dims[i], &bytes), MLA_ERR_CORRUPT,
                   "%s: shape[%zu] = %lld makes more bytes than can be counted", doc->name,
                   i, (long long)out->dims[i]);
    }
    out->num_dims = (int32_t)num;
    out->bytes = bytes;
    return MLA_OK;
}

static mla_status read_range(const json_document *doc, const json_t *entry,
                             const file_layout *layout, stored_tensor *out, mla_error *err)
{
    const json_t *range;
    MLAI_TRY(key_array(doc, entry, "data_offsets", &range, err));
    const json_t *first = json_array_get(range, 0);
    const json_t *last = json_array_get(range, 1);
    MLAI_CHECK(json_array_size(range) == 2 && json_is_integer(first) &&
                   json_is_integer(last),
               MLA_ERR_CORRUPT, "%s: data_offsets should be two integers", doc->name);
    int64_t begin = json_integer_value(first);
    int64_t end = json_integer_value(last);
    MLAI_CHECK(0 <= begin && begin <= end && (uint64_t)end <= layout->data_bytes,
               MLA_ERR_CORRUPT,
               "%s: data_offsets [%lld, %lld] lie outside the %zu bytes of "
               "data",
               doc->name, (long long)begin, (long long)end, layout->data_bytes);
    MLAI_CHECK((uint64_t)(end - begin) == out->bytes, MLA_ERR_CORRUPT,
               "%s: data_offsets [%lld, %lld] hold %lld bytes, and the shape asks for %zu",
               doc->name, (long long)begin, (long long)end, (long long)(end - begin),
               out->bytes);
    MLAI_CHECK((layout->data_start + (size_t)begin) % types[out->type].bytes == 0,
               MLA_ERR_CORRUPT, "%s: data_offsets [%lld, %lld] are not aligned to %s",
               doc->name, (long long)begin, (long long)end, types[out->type].name);
    out->data = layout->data + begin;
    return MLA_OK;
}

static mla_status read_entry(const json_document *doc, const json_t *entry,
                             const file_layout *layout, stored_tensor *out, mla_error *err)
{
    MLAI_CHECK(json_is_object(entry) && json_object_size(entry) == 3, MLA_ERR_CORRUPT,
               "%s: it should be an object of dtype, shape and data_offsets", doc->name);
    MLAI_TRY(read_type(doc, entry, out, err));
    MLAI_TRY(read_shape(doc, entry, out, err));
    return read_range(doc, entry, layout, out, err);
}

static mla_status check_metadata(const json_document *doc, json_t *metadata, mla_error *err)
{
    MLAI_CHECK(json_is_object(metadata), MLA_ERR_CORRUPT,
               "%s: __metadata__ is %s and should be an object", doc->name,
               json_words_of(metadata).text);
    for (void *at = json_object_iter(metadata); at;
         at = json_object_iter_next(metadata, at)) {
        const json_t *value = json_object_iter_value(at);
        MLAI_CHECK(json_is_string(value), MLA_ERR_CORRUPT,
                   "%s: __metadata__ %.60s is %s and should be a string", doc->name,
                   json_object_iter_key(at), json_words_of(value).text);
    }
    return MLA_OK;
}

/* Everything in the header, in its order. */
static mla_status read_header(tensor_table *table, const file_layout *layout,
                              mla_error *err)
{
    json_t *root = table->header.root;
    for (void *at = json_object_iter(root); at; at = json_object_iter_next(root, at)) {
        const char *name = json_object_iter_key(at);
        json_t *entry = json_object_iter_value(at);
        if (strcmp(name, "__metadata__") == 0) {
            MLAI_TRY(check_metadata(&table->header, entry, err));
            continue;
        }
        stored_tensor *tensor = &table->tensors[table->num];
        *tensor = (stored_tensor){.name = name, .file = layout->file};
        const json_document named = {.name = "its entry", .root = root};
        mla_status status = read_entry(&named, entry, layout, tensor, err);
        if (status != MLA_OK) {
            mlai_error_prefix(err, "%s: tensor %.80s", layout->file, name);
            return status;
        }
        table->num++;
    }
    return MLA_OK;
}

static int by_data(const void *a, const void *b)
{
    const stored_tensor *x = a;
    const stored_tensor *y = b;
    if (x->data != y->data) {
        return x->data < y->data ? -1 : 1;
    }
    return (x->bytes > y->bytes) - (x->bytes < y->bytes); /* empty ones first */
}

/* The tensors lie back to back from the first byte of the data to the last. */
static mla_status check_cover(const stored_tensor *const *sorted, size_t num,
                              const file_layout *layout, mla_error *err)
{
    size_t covered = 0;
    for (size_t i = 0; i < num; i++) {
        size_t begin = (size_t)(sorted[i]->data - layout->data);
        MLAI_CHECK(begin == covered, MLA_ERR_CORRUPT,
                   "%s: tensor %.80s begins at byte %zu of the data and %s at byte %zu",
                   layout->file, sorted[i]->name, begin,
                   begin < covered ? "overlaps the one before, which ends"
                                   : "leaves a gap after the one before, which ends",
                   covered);
        covered = begin + sorted[i]->bytes;
    }
    MLAI_CHECK(covered == layout->data_bytes, MLA_ERR_CORRUPT,
               "%s: %zu bytes after the last tensor %.80s belong to none", layout->file,
               layout->data_bytes - covered, num > 0 ? sorted[num - 1]->name : "(none)");
    return MLA_OK;
}

static mla_status check_order(const tensor_table *table, const file_layout *layout,
                              mla_error *err)
{
    void *memory = NULL;
    MLAI_TRY(mlai_ledger_take_zeroed(table->ledger, MLA_FOR_CONTEXT, table->num + 1,
                                     sizeof(void *), "the order of tensors", &memory, err));
    const void **sorted = memory;
    for (size_t i = 0; i < table->num; i++) {
        sorted[i] = &table->tensors[i];
    }
    sort_pointers(sorted, table->num, by_data);
    mla_status status =
        check_cover((const stored_tensor *const *)sorted, table->num, layout, err);
    mlai_ledger_give(table->ledger, MLA_SPACE_HOST, MLA_FOR_CONTEXT,
                     (table->num + 1) * sizeof(void *), memory);
    return status;
}

/* The room for tensors is one per key of the header, which has been read in full: no number
 * in the file decides how much is taken. */
static size_t num_slots(const tensor_table *table)
{
    return json_object_size(table->header.root) + 1;
}

mla_status safetensors_parse(mlai_ledger *ledger, const char *file,
                             const unsigned char *data, size_t bytes, tensor_table *out,
                             mla_error *err)
{
    file_layout layout = {0};
    tensor_table table = {.ledger = ledger};
    MLAI_TRY(measure(file, data, bytes, &layout, err));
    MLAI_TRY(document_parse(ledger, file, (const char *)data + 8, layout.data_start - 8,
                            &table.header, err));
    void *tensors = NULL;
    mla_status status = mlai_ledger_take_zeroed(ledger, MLA_FOR_CONTEXT, num_slots(&table),
                                                sizeof(stored_tensor), file, &tensors, err);
    table.tensors = tensors;
    if (status == MLA_OK) {
        status = read_header(&table, &layout, err);
    }
    if (status == MLA_OK) {
        status = check_order(&table, &layout, err);
    }
    if (status != MLA_OK) {
        tensor_table_free(&table);
        return status;
    }
    *out = table;
    return MLA_OK;
}

void tensor_table_free(tensor_table *table)
{
    if (table->tensors) {
        mlai_ledger_give(table->ledger, MLA_SPACE_HOST, MLA_FOR_CONTEXT,
                         num_slots(table) * sizeof(stored_tensor), table->tensors);
    }
    document_close(&table->header);
    *table = (tensor_table){0};
}
