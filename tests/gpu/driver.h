/* driver.h - as much of the CUDA driver as the kernels' own tests need, by dlopen. Every
 * failure ends the program with the call's name: there is nothing to save here. */
#ifndef TEST_GPU_DRIVER_H
#define TEST_GPU_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "attention/cuda/programs.h"

typedef uint64_t gpu_pointer;
typedef struct gpu_stream gpu_stream;
typedef struct gpu_graph gpu_graph;
typedef struct gpu_function gpu_function;

void gpu_open(void);
mlai_cuda_device gpu_device(void);

gpu_pointer gpu_take(size_t bytes);
void gpu_give(gpu_pointer data);
void gpu_to(gpu_pointer to, const void *from, size_t bytes);
void gpu_from(void *to, gpu_pointer from, size_t bytes);
void gpu_copy(gpu_pointer to, gpu_pointer from, size_t bytes);
void gpu_fill(gpu_pointer to, int byte, size_t bytes);
void gpu_wait(void);

/* Compiled by NVRTC, or read from `folder` where an earlier run left it. */
gpu_function *gpu_program(const mlai_cuda_shape *shape, mlai_cuda_program program,
                          const char *folder);
/* The same without a GPU: leaves the cubin in `folder`. */
void gpu_compile(const mlai_cuda_shape *shape, mlai_cuda_program program,
                 const char *architecture, const char *folder);

/* Onto the stream of this program. follows: with programmatic stream serialisation. */
void gpu_launch(gpu_function *function, mlai_cuda_grid grid, const void *params,
                int follows);

void gpu_record_begin(void);
gpu_graph *gpu_record_end(void);
void gpu_graph_drop(gpu_graph *graph);
/* Microseconds of each replay, by events around it; graphs are taken in turn. */
void gpu_time(gpu_graph **graphs, int num_graphs, int num_replays, float *us);

#endif
