/* texts.h - the CUDA programs as text, embedded when the library is built: for each program
 * params.h, then its pieces in the order of src/CMakeLists.txt. NUL-terminated. */
#ifndef MLA_ATTENTION_CUDA_TEXTS_H
#define MLA_ATTENTION_CUDA_TEXTS_H

extern const char mlai_cuda_text_attend[];
extern const char mlai_cuda_text_merge[];
extern const char mlai_cuda_text_append[];

#endif
