/* tiny_model.h - a whole valid checkpoint of some tens of kilobytes, written to a directory
 * of its own under /tmp: two layers (the second with experts), D 64, R 16, a vocabulary of
 * 256 bytes, a few merges and three special tokens. Random weights, the same every time. */
#ifndef TEST_TINY_MODEL_H
#define TEST_TINY_MODEL_H

#include <stddef.h>

enum {
    TINY_VOCAB = 264,
    TINY_BOS = 261,
    TINY_EOS = 262,
    TINY_USER = 263, /* an added token that is not special */
};

typedef struct tiny_model {
    char dir[48];
} tiny_model;

/* Both fail the test where the directory cannot be written. */
tiny_model tiny_model_write(void);
void tiny_model_remove(const tiny_model *model);

/* An empty directory for the same uses. */
tiny_model tiny_model_empty(void);

/* Files of the directory. patch replaces the first `from` by `to` and fails the test where
 * there is none; in a safetensors file both must be equally long. */
void tiny_model_put(const tiny_model *model, const char *name, const void *bytes,
                    size_t num_bytes);
void tiny_model_put_text(const tiny_model *model, const char *name, const char *text);
void tiny_model_patch(const tiny_model *model, const char *name, const char *from,
                      const char *to);
void tiny_model_drop(const tiny_model *model, const char *name);

/* The file's bytes, malloc'd. */
unsigned char *tiny_model_get(const tiny_model *model, const char *name, size_t *num_bytes);

#endif
