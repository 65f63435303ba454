/* checkpoint.h - the *.safetensors files of a model directory, mapped, and one table of all
 * their tensors by name. */
#ifndef MLA_MODEL_CHECKPOINT_H
#define MLA_MODEL_CHECKPOINT_H

#include "model/mapped.h"
#include "model/safetensors.h"

typedef struct checkpoint {
    mlai_ledger *ledger;
    mapped_files mapped; /* [num_files] */
    size_t num_files;
    json_document index;    /* all 0 where there is one file */
    tensor_table *headers;  /* [num_files] */
    stored_tensor **sorted; /* [num], by name, no name twice */
    size_t num;
    const char **shards; /* [num_indexed]; the first num_files are file names, sorted */
    size_t num_indexed;
} checkpoint;

/* Maps model.safetensors or, where that is missing, the shards that
 * model.safetensors.index.json names (which must agree with it, both ways). Mapped bytes are
 * booked as weights, host; tables as context. out: owned, checkpoint_close. */
mla_status checkpoint_open(mlai_ledger *ledger, const char *dir, checkpoint *out,
                           mla_error *err);
/* Frees the tables. The mapped files too, unless the caller took them (mapped all 0 then). */
void checkpoint_close(checkpoint *set);

stored_tensor *checkpoint_find(const checkpoint *set, const char *name);

#endif
