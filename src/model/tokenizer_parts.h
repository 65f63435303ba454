/* tokenizer_parts.h - what a tokenizer is made of, and who reads which part of the files. */
#ifndef MLA_MODEL_TOKENIZER_PARTS_H
#define MLA_MODEL_TOKENIZER_PARTS_H

#include "model/added.h"
#include "model/json.h"
#include "model/regex.h"
#include "model/tokenizer.h"
#include "model/vocabulary.h"

enum { TOKENIZER_MAX_SPLITS = 8 };

struct tokenizer {
    mla_context *context;
    mlai_ledger *ledger;
    arena arena; /* tables and texts */
    vocabulary vocabulary;
    bool ignores_merges; /* a piece that is a token is that token */
    regex_memory memory;
    regex *splits[TOKENIZER_MAX_SPLITS]; /* [num_splits], applied one after the other */
    int32_t num_splits;
    regex *word;        /* one character of a word */
    added_token *added; /* [num_added] */
    size_t num_added;
    added_set raw, normalized; /* searched in this order */
    bool adds_bos;
    int32_t bos, eos; /* -1: none */
};

/* The readers: doc is tokenizer.json, except for the last. */
mla_status tokenizer_read_added(tokenizer *t, const json_document *doc, mla_error *err);
mla_status tokenizer_read_model(tokenizer *t, const json_document *doc, mla_error *err);
mla_status tokenizer_read_splits(tokenizer *t, const json_document *doc, mla_error *err);
mla_status tokenizer_read_ends(tokenizer *t, const json_document *doc, mla_error *err);

#endif
