/* safetensors.h - the header of one *.safetensors file:
 *
 *     8 bytes     N, little-endian
 *     N bytes     JSON: {"name": {"dtype": .., "shape": [..], "data_offsets": [a, b]}, ..}
 *     the rest    the tensors' bytes, back to back; a and b count from here
 *
 * Everything is checked before anything is used: the length of the header, the JSON, every
 * dtype, that shape times size is exactly the byte range, that the ranges cover the data
 * with no gap, overlap or rest, and that every tensor is aligned to its element. */
#ifndef MLA_MODEL_SAFETENSORS_H
#define MLA_MODEL_SAFETENSORS_H

#include "model/json.h"

enum { SAFETENSORS_MAX_DIMS = 8, SAFETENSORS_MAX_HEADER_BYTES = 1 << 25 };

typedef enum tensor_type {
    TENSOR_BOOL,
    TENSOR_U8,
    TENSOR_I8,
    TENSOR_F8_E5M2,
    TENSOR_F8_E4M3,
    TENSOR_I16,
    TENSOR_U16,
    TENSOR_F16,
    TENSOR_BF16,
    TENSOR_I32,
    TENSOR_U32,
    TENSOR_F32,
    TENSOR_F64,
    TENSOR_I64,
    TENSOR_U64,
    NUM_TENSOR_TYPES
} tensor_type;

typedef struct stored_tensor {
    const char *name;          /* borrowed until the table is freed */
    const char *file;          /* as given to safetensors_parse */
    const unsigned char *data; /* in the file's bytes */
    size_t bytes;
    int64_t dims[SAFETENSORS_MAX_DIMS];
    int32_t num_dims;
    tensor_type type;
    bool is_used; /* for who resolves names */
} stored_tensor;

typedef struct tensor_table {
    mlai_ledger *ledger;
    stored_tensor *tensors; /* [num], in the order of the header */
    size_t num;
    json_document header; /* holds the names */
} tensor_table;

/* file: for errors, borrowed until the table is freed. data: [bytes], the whole file,
 * borrowed for as long as the tensors are used. Errors: MLA_ERR_CORRUPT,
 * MLA_ERR_UNSUPPORTED (an unknown dtype), MLA_ERR_NO_MEMORY.
 * out: owned, tensor_table_free. Memory is class context. */
mla_status safetensors_parse(mlai_ledger *ledger, const char *file,
                             const unsigned char *data, size_t bytes, tensor_table *out,
                             mla_error *err);
void tensor_table_free(tensor_table *table); /* all 0 is allowed */

const char *tensor_type_name(tensor_type type); /* "BF16" */

#endif
