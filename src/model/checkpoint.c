/* checkpoint.c - from file names to a table of tensors. */
#include "model/checkpoint.h"

#include <string.h>

#include "base/size.h"
#include "model/file.h"
#include "model/sort.h"

static const char single_name[] = "model.safetensors";
static const char index_name[] = "model.safetensors.index.json";
#define MAX_INDEX_BYTES ((size_t)1 << 26)
enum { MAX_FILE_NAME = 255 };

static mla_status take(mlai_ledger *ledger, size_t num, size_t item_bytes, void **out,
                       mla_error *err)
{
    return mlai_ledger_take_zeroed(ledger, MLA_FOR_CONTEXT, num, item_bytes,
                                   "the table of tensors", out, err);
}

static void give(mlai_ledger *ledger, void *data, size_t num, size_t item_bytes)
{
    mlai_ledger_give(ledger, MLA_SPACE_HOST, MLA_FOR_CONTEXT, num * item_bytes, data);
}

static json_t *weight_map(const checkpoint *set)
{
    return json_object_get(set->index.root, "weight_map");
}

/* The index may name files of its own directory only. */
static mla_status check_shard_name(const char *tensor, const json_t *value, mla_error *err)
{
    const char *name = json_string_value(value);
    MLAI_CHECK(name && name[0] != 0 && name[0] != '.' && !strchr(name, '/') &&
                   strlen(name) <= MAX_FILE_NAME,
               MLA_ERR_CORRUPT,
               "%s: weight_map %.80s is %s and should be a file of this directory",
               index_name, tensor, json_words_of(value).text);
    return MLA_OK;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static size_t drop_repeats(const char **sorted, size_t num)
{
    size_t kept = 0;
    for (size_t i = 0; i < num; i++) {
        if (kept == 0 || strcmp(sorted[kept - 1], sorted[i]) != 0) {
            sorted[kept++] = sorted[i];
        }
    }
    return kept;
}

static mla_status list_shards(checkpoint *set, mla_error *err)
{
    json_t *map = weight_map(set);
    MLAI_CHECK(json_is_object(map) && json_object_size(map) > 0, MLA_ERR_CORRUPT,
               "%s: weight_map is %s and should be an object of file names", index_name,
               json_words_of(map).text);
    void *memory = NULL;
    MLAI_TRY(take(set->ledger, json_object_size(map), sizeof *set->shards, &memory, err));
    set->shards = memory;
    set->num_indexed = json_object_size(map);
    size_t num = 0;
    for (void *at = json_object_iter(map); at; at = json_object_iter_next(map, at)) {
        MLAI_TRY(
            check_shard_name(json_object_iter_key(at), json_object_iter_value(at), err));
        set->shards[num++] = json_string_value(json_object_iter_value(at));
    }
    sort_pointers((const void **)set->shards, num, by_text);
    set->num_files = drop_repeats(set->shards, num);
    return MLA_OK;
}

/* After this set->num_files files are to be mapped; their names are shard_name(i). */
static mla_status list_files(checkpoint *set, const char *dir, mla_error *err)
{
    if (file_is_there(dir, single_name) || !file_is_there(dir, index_name)) {
        set->num_files = 1;
        return MLA_OK;
    }
    MLAI_TRY(
        document_read(set->ledger, dir, index_name, MAX_INDEX_BYTES, &set->index, err));
    return list_shards(set, err);
}

static const char *shard_name(const checkpoint *set, size_t i)
{
    return set->shards ? set->shards[i] : single_name;
}

static mla_status map_files(checkpoint *set, const char *dir, mla_error *err)
{
    mlai_ledger *ledger = set->ledger;
    void *memory = NULL;
    MLAI_TRY(take(ledger, set->num_files, sizeof *set->mapped.files, &memory, err));
    set->mapped = (mapped_files){ledger, memory, set->num_files};
    MLAI_TRY(take(ledger, set->num_files, sizeof *set->headers, &memory, err));
    set->headers = memory;
    for (size_t i = 0; i < set->num_files; i++) {
        mapped_file *file = &set->mapped.files[i];
        MLAI_TRY(mapped_file_open(ledger, dir, shard_name(set, i), file, err));
        MLAI_TRY(safetensors_parse(ledger, shard_name(set, i), file->data, file->bytes,
                                   &set->headers[i], err));
        set->num += set->headers[i].num;
    }
    return MLA_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const stored_tensor *)a)->name, ((const stored_tensor *)b)->name);
}

static mla_status sort_tensors(checkpoint *set, mla_error *err)
{
    void *memory = NULL;
    MLAI_TRY(take(set->ledger, set->num + 1, sizeof(void *), &memory, err));
    set->sorted = memory;
    size_t num = 0;
    for (size_t i = 0; i < set->num_files; i++) {
        for (size_t j = 0; j < set->headers[i].num; j++) {
            set->sorted[num++] = &set->headers[i].tensors[j];
        }
    }
    sort_pointers(memory, num, by_name);
    for (size_t i = 1; i < num; i++) {
        const stored_tensor *before = set->sorted[i - 1];
        MLAI_CHECK(strcmp(before->name, set->sorted[i]->name) != 0, MLA_ERR_CORRUPT,
                   "tensor %.80s is in both %.50s and %.50s", before->name, before->file,
                   set->sorted[i]->file);
    }
    return MLA_OK;
}

/* Every tensor is where the index says, and what the index names is there. */
static mla_status check_index(const checkpoint *set, mla_error *err)
{
    json_t *map = weight_map(set);
    if (!map) {
        return MLA_OK;
    }
    for (size_t i = 0; i < set->num; i++) {
        const stored_tensor *tensor = set->sorted[i];
        const char *file = json_string_value(json_object_get(map, tensor->name));
        MLAI_CHECK(file && strcmp(file, tensor->file) == 0, MLA_ERR_CORRUPT,
                   "tensor %.80s is in %.50s, and the index says %.50s", tensor->name,
                   tensor->file, file ? file : "nothing");
    }
    for (void *at = json_object_iter(map); at; at = json_object_iter_next(map, at)) {
        MLAI_CHECK(checkpoint_find(set, json_object_iter_key(at)), MLA_ERR_CORRUPT,
                   "tensor %.80s is not in %.50s, where the index says it is",
                   json_object_iter_key(at), json_string_value(json_object_iter_value(at)));
    }
    return MLA_OK;
}

static mla_status open_steps(checkpoint *set, const char *dir, mla_error *err)
{
    MLAI_TRY(list_files(set, dir, err));
    MLAI_TRY(map_files(set, dir, err));
    MLAI_TRY(sort_tensors(set, err));
    return check_index(set, err);
}

mla_status checkpoint_open(mlai_ledger *ledger, const char *dir, checkpoint *out,
                           mla_error *err)
{
    checkpoint set = {.ledger = ledger};
    mla_status status = open_steps(&set, dir, err);
    if (status != MLA_OK) {
        checkpoint_close(&set);
        return status;
    }
    *out = set;
    return MLA_OK;
}

void checkpoint_close(checkpoint *set)
{
    mlai_ledger *ledger = set->ledger;
    if (set->headers) {
        for (size_t i = 0; i < set->num_files; i++) {
            tensor_table_free(&set->headers[i]);
        }
    }
    give(ledger, set->headers, set->num_files, sizeof *set->headers);
    give(ledger, set->sorted, set->num + 1, sizeof(void *));
    give(ledger, (void *)set->shards, set->num_indexed, sizeof *set->shards);
    mapped_files_close(&set->mapped);
    document_close(&set->index);
    *set = (checkpoint){0};
}

stored_tensor *checkpoint_find(const checkpoint *set, const char *name)
{
    size_t low = 0;
    size_t high = set->num;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(set->sorted[middle]->name, name);
        if (order == 0) {
            return set->sorted[middle];
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}
