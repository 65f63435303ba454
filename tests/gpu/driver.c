/* driver.c - see driver.h. */
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct launch_attribute {
    int id;
    int pad;
    int value[16];
} launch_attribute;

typedef struct launch_config {
    unsigned grid[3], block[3], shared_bytes;
    gpu_stream *stream;
    launch_attribute *attributes;
    unsigned num_attributes;
} launch_config;

static void *driver;
static gpu_stream *stream;
static mlai_cuda_device device;

static void *symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (!found) {
        (void)fprintf(stderr, "no %s\n", name);
        exit(2);
    }
    return found;
}

static void check(int result, const char *name)
{
    if (result != 0) {
        (void)fprintf(stderr, "%s: error %d\n", name, result);
        exit(2);
    }
}

/* CALL(cuMemFree_v2, (gpu_pointer), data) */
#define CALL(name, types, ...)                                                             \
    do {                                                                                   \
        int(*call) types;                                                                  \
        void *found = symbol(driver, #name);                                               \
        memcpy(&call, &found, sizeof call);                                                \
        check(call(__VA_ARGS__), #name);                                                   \
    } while (0)

static int attribute(int which)
{
    int value = 0;
    CALL(cuDeviceGetAttribute, (int *, int, int), &value, which, 0);
    return value;
}

void gpu_open(void)
{
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) {
        (void)fprintf(stderr, "no libcuda: %s\n", dlerror());
        exit(2);
    }
    void *context;
    CALL(cuInit, (unsigned), 0);
    CALL(cuDevicePrimaryCtxRetain, (void **, int), &context, 0);
    CALL(cuCtxSetCurrent, (void *), context);
    CALL(cuStreamCreate, (gpu_stream **, unsigned), &stream, 1);
    device = (mlai_cuda_device){
        .major = attribute(75),
        .minor = attribute(76),
        .num_units = attribute(16),
        .shared_unit_bytes = (size_t)attribute(81),
        .shared_block_bytes = (size_t)attribute(97),
    };
}

mlai_cuda_device gpu_device(void)
{
    return device;
}

gpu_pointer gpu_take(size_t bytes)
{
    gpu_pointer out = 0;
    CALL(cuMemAlloc_v2, (gpu_pointer *, size_t), &out, bytes);
    return out;
}

void gpu_give(gpu_pointer data)
{
    CALL(cuMemFree_v2, (gpu_pointer), data);
}

void gpu_to(gpu_pointer to, const void *from, size_t bytes)
{
    CALL(cuMemcpyHtoD_v2, (gpu_pointer, const void *, size_t), to, from, bytes);
}

void gpu_from(void *to, gpu_pointer from, size_t bytes)
{
    CALL(cuMemcpyDtoH_v2, (void *, gpu_pointer, size_t), to, from, bytes);
}

void gpu_copy(gpu_pointer to, gpu_pointer from, size_t bytes)
{
    CALL(cuMemcpyDtoD_v2, (gpu_pointer, gpu_pointer, size_t), to, from, bytes);
}

void gpu_fill(gpu_pointer to, int byte, size_t bytes)
{
    CALL(cuMemsetD8_v2, (gpu_pointer, unsigned char, size_t), to, (unsigned char)byte,
         bytes);
    CALL(cuCtxSynchronize, (void), );
}

void gpu_wait(void)
{
    CALL(cuCtxSynchronize, (void), );
}

static void name_file(char *path, size_t bytes, const char *folder,
                      const mlai_cuda_program_row *row, const mlai_cuda_options *options)
{
    int at = snprintf(path, bytes, "%s/%s", folder, row->name);
    for (int32_t i = 0; i < options->num; i++) {
        const char *value = strchr(options->text[i], '=');
        at += snprintf(path + at, bytes - (size_t)at, "-%s", value + 1);
    }
}

void gpu_compile(const mlai_cuda_shape *shape, mlai_cuda_program program,
                 const char *architecture, const char *folder)
{
    const mlai_cuda_program_row *row = mlai_cuda_program_of(program);
    mlai_cuda_options options = mlai_cuda_options_of(shape, program);
    char path[256];
    name_file(path, sizeof path, folder, row, &options);
    FILE *there = fopen(path, "rb");
    if (there) {
        (void)fclose(there);
        return;
    }
    void *nvrtc = dlopen("libnvrtc.so.13", RTLD_NOW);
    nvrtc = nvrtc ? nvrtc : dlopen("/usr/local/cuda/lib64/libnvrtc.so.13", RTLD_NOW);
    nvrtc =
        nvrtc ? nvrtc
              : dlopen("/usr/local/cuda/targets/x86_64-linux/lib/libnvrtc.so.13", RTLD_NOW);
    if (!nvrtc) {
        (void)fprintf(stderr, "no NVRTC: %s\n", dlerror());
        exit(2);
    }
    void *kept = driver;
    driver = nvrtc;
    void *made;
    char target[64];
    const char *list[MLAI_CUDA_MAX_OPTIONS + 1];
    (void)snprintf(target, sizeof target, "--gpu-architecture=%s", architecture);
    list[0] = target;
    for (int32_t i = 0; i < options.num; i++) {
        list[i + 1] = options.text[i];
    }
    CALL(nvrtcCreateProgram,
         (void **, const char *, const char *, int, const char *const *,
          const char *const *),
         &made, row->source, row->name, 0, NULL, NULL);
    int (*compile)(void *, int, const char *const *);
    void *entry = symbol(driver, "nvrtcCompileProgram");
    memcpy(&compile, &entry, sizeof compile);
    size_t bytes;
    if (compile(made, options.num + 1, list) != 0) {
        CALL(nvrtcGetProgramLogSize, (void *, size_t *), made, &bytes);
        char *log = malloc(bytes);
        CALL(nvrtcGetProgramLog, (void *, char *), made, log);
        (void)fprintf(stderr, "%s\n%s\n", path, log);
        exit(2);
    }
    CALL(nvrtcGetCUBINSize, (void *, size_t *), made, &bytes);
    char *cubin = malloc(bytes);
    CALL(nvrtcGetCUBIN, (void *, char *), made, cubin);
    driver = kept;
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(cubin, 1, bytes, file) != bytes || fclose(file) != 0) {
        perror(path);
        exit(2);
    }
    free(cubin);
}

static void *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        exit(2);
    }
    (void)fseek(file, 0, SEEK_END);
    size_t bytes = (size_t)ftell(file);
    rewind(file);
    void *data = malloc(bytes);
    if (fread(data, 1, bytes, file) != bytes) {
        perror(path);
        exit(2);
    }
    (void)fclose(file);
    return data;
}

gpu_function *gpu_program(const mlai_cuda_shape *shape, mlai_cuda_program program,
                          const char *folder)
{
    enum { MAX_DYNAMIC_SHARED = 8, MOST = 64 };
    static struct {
        char path[256];
        gpu_function *function;
    } loaded[MOST];
    static int num_loaded;
    const mlai_cuda_program_row *row = mlai_cuda_program_of(program);
    mlai_cuda_options options = mlai_cuda_options_of(shape, program);
    char path[256];
    name_file(path, sizeof path, folder, row, &options);
    for (int i = 0; i < num_loaded; i++) {
        if (strcmp(loaded[i].path, path) == 0) {
            return loaded[i].function;
        }
    }
    gpu_compile(shape, program, mlai_cuda_architecture_of(&device).text, folder);
    void *module;
    gpu_function *function;
    void *cubin = read_file(path);
    CALL(cuModuleLoadData, (void **, const void *), &module, cubin);
    free(cubin);
    CALL(cuModuleGetFunction, (gpu_function **, void *, const char *), &function, module,
         row->entry);
    if (program == shape->attend) {
        CALL(cuFuncSetAttribute, (gpu_function *, int, int), function, MAX_DYNAMIC_SHARED,
             (int)shape->shared_bytes);
    }
    if (num_loaded < MOST) {
        (void)snprintf(loaded[num_loaded].path, sizeof path, "%s", path);
        loaded[num_loaded++].function = function;
    }
    return function;
}

void gpu_launch(gpu_function *function, mlai_cuda_grid grid, const void *params,
                int follows)
{
    launch_attribute serial = {.id = 6, .value = {1}};
    launch_config config = {
        .grid = {grid.blocks, grid.blocks_y, 1},
        .block = {grid.threads, 1, 1},
        .shared_bytes = (unsigned)grid.shared_bytes,
        .stream = stream,
        .attributes = follows ? &serial : NULL,
        .num_attributes = follows ? 1 : 0,
    };
    void *list[1];
    memcpy(list, &params, sizeof params);
    if (grid.blocks > 0) {
        CALL(cuLaunchKernelEx, (const launch_config *, gpu_function *, void **, void **),
             &config, function, list, NULL);
    }
}

void gpu_record_begin(void)
{
    CALL(cuStreamBeginCapture_v2, (gpu_stream *, int), stream, 1);
}

gpu_graph *gpu_record_end(void)
{
    void *graph;
    gpu_graph *ready;
    CALL(cuStreamEndCapture, (gpu_stream *, void **), stream, &graph);
    CALL(cuGraphInstantiateWithFlags, (gpu_graph **, void *, unsigned long long), &ready,
         graph, 0);
    CALL(cuGraphDestroy, (void *), graph);
    return ready;
}

void gpu_graph_drop(gpu_graph *graph)
{
    CALL(cuGraphExecDestroy, (gpu_graph *), graph);
}

void gpu_time(gpu_graph **graphs, int num_graphs, int num_replays, float *us)
{
    enum { MOST = 512 };
    static void *event[MOST][2];
    for (int i = 0; i < num_replays; i++) {
        for (int j = 0; j < 2 && !event[i][j]; j++) {
            CALL(cuEventCreate, (void **, unsigned), &event[i][j], 0);
        }
    }
    for (int i = 0; i < num_graphs; i++) {
        CALL(cuGraphLaunch, (gpu_graph *, gpu_stream *), graphs[i], stream);
    }
    gpu_wait();
    for (int i = 0; i < num_replays; i++) {
        CALL(cuEventRecord, (void *, gpu_stream *), event[i][0], stream);
        CALL(cuGraphLaunch, (gpu_graph *, gpu_stream *), graphs[i % num_graphs], stream);
        CALL(cuEventRecord, (void *, gpu_stream *), event[i][1], stream);
    }
    gpu_wait();
    for (int i = 0; i < num_replays; i++) {
        CALL(cuEventElapsedTime_v2, (float *, void *, void *), &us[i], event[i][0],
             event[i][1]);
        us[i] *= 1000;
    }
}
