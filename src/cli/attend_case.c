/* attend_case.c - reading and checking the files of a case: see attend_case.h. */
#include "cli/attend_case.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "attention/context.h"
#include "attention/row_layout.h"
#include "base/status.h"
#include "model/json.h"

enum { MAX_JSON_BYTES = 1 << 20, MAX_HEADS = 1 << 20, MAX_WIDTH = 1 << 20 };

/* One file of the case: its name, where it goes, its type and its number of dimensions
 * (-1: a single number, of shape [1] or []). */
typedef struct case_file {
    const char *name;
    npy_array *out;
    npy_type type;
    int32_t num_dims;
} case_file;

static mla_status check_kind(const case_file *file, mla_error *err)
{
    const npy_header *header = &file->out->header;
    bool is_single = header->num_dims <= 1 && header->num_items == 1;
    bool is_right = file->num_dims < 0 ? is_single : header->num_dims == file->num_dims;
    MLAI_CHECK(header->type == file->type, MLA_ERR_CORRUPT,
               "%s holds %s where %s are wanted", file->name,
               header->type == NPY_F32 ? "f32" : "int32",
               file->type == NPY_F32 ? "f32" : "int32");
    MLAI_CHECK(is_right, MLA_ERR_CORRUPT, "%s has %d dimensions and %zu items, not %s",
               file->name, (int)header->num_dims, header->num_items,
               file->num_dims < 0    ? "one number of shape [1] or []"
               : file->num_dims == 1 ? "one dimension"
               : file->num_dims == 2 ? "two dimensions"
                                     : "three dimensions");
    return MLA_OK;
}

mla_status attend_case_path(const char *dir, const char *name, char out[ATTEND_MAX_PATH],
                            mla_error *err)
{
    int length = snprintf(out, ATTEND_MAX_PATH, "%s/%s", dir, name);
    MLAI_CHECK(length < ATTEND_MAX_PATH, MLA_ERR_ARGUMENT,
               "a path of %d characters is too long", length);
    return MLA_OK;
}

static mla_status read_file(attend_case *attend, const case_file *file, mla_error *err)
{
    static char path[ATTEND_MAX_PATH];
    MLAI_TRY(attend_case_path(attend->dir, file->name, path, err));
    mla_purpose purpose = file->out == &attend->kv ? MLA_FOR_KV : MLA_FOR_ACTIVATIONS;
    MLAI_TRY(npy_read(attend->context, purpose, path, file->out, err));
    return check_kind(file, err);
}

static mla_status read_scale(attend_case *attend, const char *name, npy_array *out,
                             mla_error *err)
{
    const case_file file = {name, out, NPY_F32, -1};
    MLAI_TRY(read_file(attend, &file, err));
    float scale = 0;
    memcpy(&scale, out->data, sizeof scale);
    MLAI_CHECK(isfinite(scale) && scale > 0, MLA_ERR_ARGUMENT,
               "%s holds %g, which is no positive scale", name, (double)scale);
    return MLA_OK;
}

static mla_status read_arrays(attend_case *attend, mla_error *err)
{
    const case_file files[] = {
        {"q.npy", &attend->q, NPY_F32, 3},
        {"kv.npy", &attend->kv, NPY_F32, 3},
        {"block_table.npy", &attend->block_table, NPY_INT32, 2},
        {"context_lens.npy", &attend->context_lens, NPY_INT32, 1},
        {"query_starts.npy", &attend->query_starts, NPY_INT32, 1},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        MLAI_TRY(read_file(attend, &files[i], err));
    }
    if (attend->shape.kv_format == MLA_KV_FP8) {
        MLAI_TRY(read_scale(attend, "kv_scale.npy", &attend->kv_scale, err));
    }
    if (attend->shape.query_dtype == MLA_E4M3) {
        MLAI_TRY(read_scale(attend, "query_scale.npy", &attend->query_scale, err));
    }
    return MLA_OK;
}

static mla_status read_words(const json_document *doc, attend_shape *out, mla_error *err)
{
    static const struct {
        const char *name;
        mla_dtype dtype;
    } dtypes[] = {{"f32", MLA_F32}, {"bf16", MLA_BF16}, {"e4m3", MLA_E4M3}};
    const char *format = NULL;
    const char *dtype = NULL;
    MLAI_TRY(key_string(doc, doc->root, "kv_format", &format, err));
    MLAI_TRY(key_string(doc, doc->root, "query_dtype", &dtype, err));
    out->kv_format = mlai_kv_format_of_name(format);
    MLAI_CHECK(out->kv_format, MLA_ERR_ARGUMENT,
               "kv_format \"%.40s\" is not f32, bf16, fp8 or fp8_g128", format);
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        if (!strcmp(dtype, dtypes[i].name)) {
            out->query_dtype = dtypes[i].dtype;
        }
    }
    MLAI_CHECK(out->query_dtype, MLA_ERR_ARGUMENT,
               "query_dtype \"%.40s\" is not f32, bf16 or e4m3", dtype);
    return MLA_OK;
}

static mla_status read_numbers(const json_document *doc, attend_shape *out, mla_error *err)
{
    const struct {
        const char *key;
        int32_t *out;
        int64_t least, most;
    } numbers[] = {
        {"heads", &out->heads, 1, MAX_HEADS},
        {"latent_dim", &out->latent_dim, 1, MAX_WIDTH},
        {"rope_dim", &out->rope_dim, 0, MAX_WIDTH},
        {"page_tokens", &out->page_tokens, 1, MAX_WIDTH},
        {"window", &out->window, 0, INT32_MAX},
    };
    double scale = 0;
    bool causal = false;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        int64_t value = 0;
        MLAI_TRY(key_int(doc, doc->root, numbers[i].key, numbers[i].least, numbers[i].most,
                         &value, err));
        *numbers[i].out = (int32_t)value;
    }
    MLAI_TRY(key_real(doc, doc->root, "softmax_scale", 0, (double)INFINITY, &scale, err));
    MLAI_CHECK(key_is_set(doc->root, "causal"), MLA_ERR_CORRUPT, "%s: causal is missing",
               doc->name);
    MLAI_TRY(key_bool(doc, doc->root, "causal", &causal, err));
    out->softmax_scale = (float)scale;
    out->causal = causal;
    return MLA_OK;
}

static mla_status read_json(attend_case *attend, mla_error *err)
{
    json_document doc = {0};
    MLAI_TRY(document_read(mlai_context_ledger(attend->context), attend->dir, "case.json",
                           MAX_JSON_BYTES, &doc, err));
    mla_status status = read_numbers(&doc, &attend->shape, err);
    if (status == MLA_OK) {
        status = read_words(&doc, &attend->shape, err);
    }
    document_close(&doc);
    return status;
}

static mla_status check_dim(const char *what, int64_t found, int64_t wanted, mla_error *err)
{
    MLAI_CHECK(found == wanted, MLA_ERR_ARGUMENT, "%s is %lld and should be %lld", what,
               (long long)found, (long long)wanted);
    return MLA_OK;
}

static mla_status check_dims(attend_case *attend, mla_error *err)
{
    attend_shape *shape = &attend->shape;
    const int64_t *q = attend->q.header.dims;
    const int64_t *kv = attend->kv.header.dims;
    const int64_t *table = attend->block_table.header.dims;
    int64_t width = (int64_t)shape->latent_dim + shape->rope_dim;
    MLAI_TRY(check_dim("the second dimension of q.npy", q[1], shape->heads, err));
    MLAI_TRY(check_dim("the third dimension of q.npy", q[2], width, err));
    MLAI_TRY(check_dim("the second dimension of kv.npy", kv[1], shape->page_tokens, err));
    MLAI_TRY(check_dim("the third dimension of kv.npy", kv[2], width, err));
    MLAI_TRY(check_dim("the length of context_lens.npy",
                       attend->context_lens.header.dims[0], table[0], err));
    MLAI_TRY(check_dim("the length of query_starts.npy",
                       attend->query_starts.header.dims[0], table[0] + 1, err));
    MLAI_CHECK(q[0] < INT32_MAX && table[0] < INT32_MAX && table[1] < INT32_MAX,
               MLA_ERR_ARGUMENT,
               "%lld query rows, %lld requests or %lld slots are too many", (long long)q[0],
               (long long)table[0], (long long)table[1]);
    MLAI_CHECK(kv[0] > 0 && table[0] > 0 && table[1] > 0, MLA_ERR_ARGUMENT,
               "%lld pages, %lld requests and %lld slots: there must be one of each",
               (long long)kv[0], (long long)table[0], (long long)table[1]);
    shape->num_query_rows = (int32_t)q[0];
    shape->num_pages = kv[0];
    shape->num_requests = (int32_t)table[0];
    shape->table_width = (int32_t)table[1];
    return MLA_OK;
}

static mla_status check_starts(const attend_case *attend, mla_error *err)
{
    const int32_t *starts = attend->query_starts.data;
    int32_t num = attend->shape.num_requests;
    for (int32_t i = 0; i < num; i++) {
        MLAI_CHECK(starts[i] <= starts[i + 1], MLA_ERR_ARGUMENT,
                   "query_starts falls from %d to %d at request %d", (int)starts[i],
                   (int)starts[i + 1], (int)i);
    }
    MLAI_CHECK(starts[0] == 0 && starts[num] == attend->shape.num_query_rows,
               MLA_ERR_ARGUMENT, "query_starts goes from %d to %d, and q.npy has %d rows",
               (int)starts[0], (int)starts[num], (int)attend->shape.num_query_rows);
    return MLA_OK;
}

mla_status attend_case_read(attend_case *out, mla_error *err)
{
    MLAI_TRY(read_json(out, err));
    MLAI_TRY(read_arrays(out, err));
    MLAI_TRY(check_dims(out, err));
    return check_starts(out, err);
}

void attend_case_free(attend_case *attend)
{
    npy_array *arrays[] = {&attend->q,
                           &attend->kv,
                           &attend->block_table,
                           &attend->context_lens,
                           &attend->query_starts,
                           &attend->kv_scale,
                           &attend->query_scale};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        npy_free(arrays[i]);
    }
}
