/* driver.h - the CUDA driver as one table of functions. libcuda is opened at run time, and each
 * function is asked for in the version that its prototype here has; no header of CUDA is
 * needed. Every call of the driver goes through this table, so that tests can put a
 * recording fake in its place. */
#ifndef MLA_DEVICE_CUDA_DRIVER_H
#define MLA_DEVICE_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef int mlai_cu_result;
typedef int mlai_cu_device;
typedef uint64_t mlai_cu_pointer;
typedef struct CUctx_st *mlai_cu_context;
typedef struct CUmod_st *mlai_cu_module;
typedef struct CUfunc_st *mlai_cu_function;
typedef struct CUstream_st *mlai_cu_stream;
typedef struct CUevent_st *mlai_cu_event;
typedef struct CUgraph_st *mlai_cu_graph;
typedef struct CUgraphExec_st *mlai_cu_graph_exec;
typedef struct CUuserObject_st *mlai_cu_user_object;

enum {
    MLAI_CU_SUCCESS = 0,
    MLAI_CU_ERROR_OUT_OF_MEMORY = 2,
    MLAI_CU_ERROR_NO_DEVICE = 100,
    MLAI_CU_ERROR_NO_BINARY = 209,
    MLAI_CU_ERROR_NOT_READY = 600,
    MLAI_CU_ERROR_ILLEGAL_ADDRESS = 700,
    MLAI_CU_ERROR_LAUNCH_FAILED = 719,
};

enum {
    MLAI_CU_ATTRIBUTE_NUM_SMS = 16,
    MLAI_CU_ATTRIBUTE_MAJOR = 75,
    MLAI_CU_ATTRIBUTE_MINOR = 76,
    MLAI_CU_ATTRIBUTE_SHARED_UNIT_BYTES = 81,
    MLAI_CU_ATTRIBUTE_SHARED_BLOCK_BYTES = 97, /* with opt-in */
    MLAI_CU_FUNCTION_SHARED_BYTES = 8,         /* the most dynamic shared memory */
    MLAI_CU_STREAM_NON_BLOCKING = 1,
    MLAI_CU_EVENT_DISABLE_TIMING = 2,
    MLAI_CU_CAPTURE_THREAD_LOCAL = 1,
    MLAI_CU_CAPTURE_ACTIVE = 1, /* of capture status; 0: none, 2: invalidated */
    MLAI_CU_CAPTURE_INVALID = 2,
    MLAI_CU_USER_OBJECT_NO_SYNC = 1,
    MLAI_CU_GRAPH_MOVE = 1,
    MLAI_CU_LAUNCH_EARLY = 6, /* the id of programmatic stream serialisation; value: 1 */
    MLAI_CU_LAUNCH_EARLY_MAJOR = 9,
};

/* Of a launch. The one that we use: the kernel may begin before the one in front of it on the
 * stream has ended, and waits by itself (compute capability 9.0 and later). */
typedef struct mlai_cu_launch_attribute {
    int id;
    int padding;
    int value[16];
} mlai_cu_launch_attribute;

typedef struct mlai_cu_launch {
    unsigned grid[3], block[3], shared_bytes;
    mlai_cu_stream stream;
    const mlai_cu_launch_attribute *attributes;
    unsigned num_attributes;
} mlai_cu_launch;

/* X(name, version of the interface, parameters) */
#define MLAI_CUDA_CALLS(X)                                                                 \
    X(cuInit, 2000, (unsigned flags))                                                      \
    X(cuDriverGetVersion, 2020, (int *version))                                            \
    X(cuGetErrorName, 6000, (mlai_cu_result result, const char **name))                    \
    X(cuDeviceGetCount, 2000, (int *count))                                                \
    X(cuDeviceGet, 2000, (mlai_cu_device * device, int ordinal))                           \
    X(cuDeviceGetName, 2000, (char *name, int name_bytes, mlai_cu_device device))          \
    X(cuDeviceGetAttribute, 2000, (int *value, int attribute, mlai_cu_device device))      \
    X(cuDeviceTotalMem, 3020, (size_t * bytes, mlai_cu_device device))                     \
    X(cuDevicePrimaryCtxRetain, 7000, (mlai_cu_context * context, mlai_cu_device device))  \
    X(cuDevicePrimaryCtxRelease, 11000, (mlai_cu_device device))                           \
    X(cuDevicePrimaryCtxGetState, 7000,                                                    \
      (mlai_cu_device device, unsigned *flags, int *is_active))                            \
    X(cuCtxGetCurrent, 4000, (mlai_cu_context * context))                                  \
    X(cuCtxGetDevice, 2000, (mlai_cu_device * device))                                     \
    X(cuCtxPushCurrent, 4000, (mlai_cu_context context))                                   \
    X(cuCtxPopCurrent, 4000, (mlai_cu_context * context))                                  \
    X(cuCtxSynchronize, 2000, (void))                                                      \
    X(cuMemGetInfo, 3020, (size_t * free_bytes, size_t * total_bytes))                     \
    X(cuMemAlloc, 3020, (mlai_cu_pointer * data, size_t bytes))                            \
    X(cuMemFree, 3020, (mlai_cu_pointer data))                                             \
    X(cuMemAllocHost, 3020, (void **data, size_t bytes))                                   \
    X(cuMemFreeHost, 2000, (void *data))                                                   \
    X(cuMemcpyHtoD, 3020, (mlai_cu_pointer to, const void *from, size_t bytes))            \
    X(cuMemcpyDtoH, 3020, (void *to, mlai_cu_pointer from, size_t bytes))                  \
    X(cuMemcpyDtoDAsync, 3020,                                                             \
      (mlai_cu_pointer to, mlai_cu_pointer from, size_t bytes, mlai_cu_stream stream))     \
    X(cuMemsetD8, 3020, (mlai_cu_pointer to, unsigned char value, size_t bytes))           \
    X(cuModuleLoadData, 2000, (mlai_cu_module * module, const void *image))                \
    X(cuModuleUnload, 2000, (mlai_cu_module module))                                       \
    X(cuModuleGetFunction, 2000,                                                           \
      (mlai_cu_function * function, mlai_cu_module module, const char *name))              \
    X(cuFuncSetAttribute, 9000, (mlai_cu_function function, int attribute, int value))     \
    X(cuLaunchKernelEx, 11060,                                                             \
      (const mlai_cu_launch *launch, mlai_cu_function function, void **parameters,         \
       void **extra))                                                                      \
    X(cuStreamCreate, 2000, (mlai_cu_stream * stream, unsigned flags))                     \
    X(cuStreamDestroy, 4000, (mlai_cu_stream stream))                                      \
    X(cuStreamSynchronize, 2000, (mlai_cu_stream stream))                                  \
    X(cuStreamBeginCapture, 10010, (mlai_cu_stream stream, int mode))                      \
    X(cuStreamEndCapture, 10000, (mlai_cu_stream stream, mlai_cu_graph * graph))           \
    X(cuStreamGetCaptureInfo, 11030,                                                       \
      (mlai_cu_stream stream, int *status, uint64_t *id, mlai_cu_graph *graph,             \
       const void **dependencies, size_t *num_dependencies))                               \
    X(cuEventCreate, 2000, (mlai_cu_event * event, unsigned flags))                        \
    X(cuEventDestroy, 4000, (mlai_cu_event event))                                         \
    X(cuEventRecord, 2000, (mlai_cu_event event, mlai_cu_stream stream))                   \
    X(cuEventQuery, 2000, (mlai_cu_event event))                                           \
    X(cuEventSynchronize, 2000, (mlai_cu_event event))                                     \
    X(cuEventElapsedTime, 2000, (float *ms, mlai_cu_event begin, mlai_cu_event end))       \
    X(cuGraphInstantiateWithFlags, 11040,                                                  \
      (mlai_cu_graph_exec * exec, mlai_cu_graph graph, unsigned long long flags))          \
    X(cuGraphLaunch, 10000, (mlai_cu_graph_exec exec, mlai_cu_stream stream))              \
    X(cuGraphExecDestroy, 10000, (mlai_cu_graph_exec exec))                                \
    X(cuGraphDestroy, 10000, (mlai_cu_graph graph))                                        \
    X(cuUserObjectCreate, 11030,                                                           \
      (mlai_cu_user_object * object, void *data, void (*destroy)(void *data),              \
       unsigned num_references, unsigned flags))                                           \
    X(cuUserObjectRelease, 11030, (mlai_cu_user_object object, unsigned num_references))   \
    X(cuGraphRetainUserObject, 11030,                                                      \
      (mlai_cu_graph graph, mlai_cu_user_object object, unsigned num_references,           \
       unsigned flags))

typedef struct mlai_cuda_driver {
// NOLINTNEXTLINE(bugprone-macro-parentheses): they are declarators
#define MLAI_X(name, version, parameters) mlai_cu_result(*name) parameters;
    MLAI_CUDA_CALLS(MLAI_X)
#undef MLAI_X
} mlai_cuda_driver;

/* Opened and initialised once a process, and kept. MLA_ERR_UNSUPPORTED says what is missing:
 * no libcuda, a driver that is too old, or no device. */
mla_status mlai_cuda_driver_get(const mlai_cuda_driver **out, mla_error *err);

/* For tests: what mlai_cuda_driver_get gives from now on; NULL: the real one. Not while a CUDA
 * context of ours is open. */
void mlai_cuda_driver_install(const mlai_cuda_driver *driver);

#endif
