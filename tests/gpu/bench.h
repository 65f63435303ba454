/* bench.h - the CUDA kernels timed over the shapes of docs/kernels/attend_cuda.md. */
#ifndef TEST_GPU_BENCH_H
#define TEST_GPU_BENCH_H

/* Rows whose name contains `filter`. MLA_SPLIT=min:max:waves tries another rule. */
int gpu_bench(const char *folder, const char *filter);
void gpu_bench_compile(const char *folder, const char *architecture);

#endif
