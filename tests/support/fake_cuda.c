/* fake_cuda.c - the driver half of fake_cuda.h. */
#include "support/fake_cuda.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/fake_nvrtc.h"

enum { MOST_NODES = 64, MOST_OBJECTS = 16, TOTAL_BYTES = 1 << 30 };
enum { ERROR_INVALID_VALUE = 1, ERROR_INVALID_CONTEXT = 201, ERROR_CAPTURE = 900 };

struct CUctx_st {
    int device;
};

struct CUfunc_st {
    mlai_cu_module module;
    char name[32];
};

struct CUmod_st {
    bool is_loaded, was_launched;
    char name[64];
    struct CUfunc_st function[4];
    int num_functions;
    mlai_cu_module next; /* modules are kept, so that use after unload is seen */
};

struct CUuserObject_st {
    void (*destroy)(void *data);
    void *data;
    int num_references;
};

struct CUgraph_st {
    fake_launch node[MOST_NODES];
    mlai_cu_function function[MOST_NODES];
    int num_nodes;
    mlai_cu_user_object object[MOST_OBJECTS];
    int num_objects;
};

struct CUgraphExec_st {
    struct CUgraph_st graph;
};

struct CUstream_st {
    mlai_cu_graph capture; /* NULL: none */
};

struct CUevent_st {
    int num_records;
};

typedef struct block {
    size_t bytes;
    struct block *next;
    _Alignas(256) unsigned char data[];
} block;

fake_cuda fake;
static struct CUctx_st primary;
static struct CUctx_st callers;
static mlai_cu_context stack[16];
static struct CUstream_st null_stream;
static block *blocks;
static mlai_cu_module modules;

static void misuse(const char *what)
{
    if (fake.misuse[0] == '\0') {
        (void)snprintf(fake.misuse, sizeof fake.misuse, "%s", what);
    }
}

/* Every call that may fail passes here first. */
static mlai_cu_result begin(const char *name)
{
    int call = fake.num_calls++;
    if (fake.dead != 0) {
        return fake.dead;
    }
    if (call == fake.fail_at) {
        fake.failed = name;
        fake.dead = fake.is_sticky ? fake.fail_with : 0;
        return fake.fail_with;
    }
    return 0;
}

#define BEGIN()                                                                            \
    do {                                                                                   \
        mlai_cu_result begun = begin(__func__);                                            \
        if (begun != 0) {                                                                  \
            return begun;                                                                  \
        }                                                                                  \
    } while (0)

static mlai_cu_result check_current(void)
{
    if (!fake.current) {
        misuse("a call without a current context");
        return ERROR_INVALID_CONTEXT;
    }
    return 0;
}

#define BEGIN_CURRENT()                                                                    \
    do {                                                                                   \
        BEGIN();                                                                           \
        if (check_current() != 0) {                                                        \
            return ERROR_INVALID_CONTEXT;                                                  \
        }                                                                                  \
    } while (0)

static mlai_cu_result init(unsigned flags)
{
    (void)flags;
    BEGIN();
    return 0;
}

static mlai_cu_result driver_version(int *version)
{
    BEGIN();
    *version = 13000;
    return 0;
}

static mlai_cu_result error_name(mlai_cu_result result, const char **name)
{
    (void)result;
    *name = "CUDA_ERROR_FAKE";
    return 0;
}

static mlai_cu_result device_count(int *count)
{
    BEGIN();
    *count = fake.num_devices;
    return 0;
}

static mlai_cu_result device_get(mlai_cu_device *device, int ordinal)
{
    BEGIN();
    *device = ordinal;
    return 0;
}

static mlai_cu_result device_name(char *name, int name_bytes, mlai_cu_device device)
{
    BEGIN();
    (void)snprintf(name, (size_t)name_bytes, "Fake %d", device);
    return 0;
}

static mlai_cu_result device_attribute(int *value, int attribute, mlai_cu_device device)
{
    (void)device;
    BEGIN();
    switch (attribute) {
    case MLAI_CU_ATTRIBUTE_NUM_SMS:
        *value = 16;
        return 0;
    case MLAI_CU_ATTRIBUTE_MAJOR:
        *value = fake.major;
        return 0;
    case MLAI_CU_ATTRIBUTE_MINOR:
        *value = fake.minor;
        return 0;
    case MLAI_CU_ATTRIBUTE_SHARED_UNIT_BYTES:
        *value = 228 * 1024;
        return 0;
    case MLAI_CU_ATTRIBUTE_SHARED_BLOCK_BYTES:
        *value = 227 * 1024;
        return 0;
    default:
        return ERROR_INVALID_VALUE;
    }
}

static mlai_cu_result total_mem(size_t *bytes, mlai_cu_device device)
{
    (void)device;
    BEGIN();
    *bytes = TOTAL_BYTES;
    return 0;
}

static mlai_cu_result primary_retain(mlai_cu_context *context, mlai_cu_device device)
{
    BEGIN();
    fake.num_primaries++;
    primary.device = device;
    *context = &primary;
    return 0;
}

static mlai_cu_result primary_release(mlai_cu_device device)
{
    (void)device;
    if (fake.num_primaries-- <= 0) {
        misuse("the primary context was released too often");
    }
    return begin(__func__);
}

static mlai_cu_result primary_state(mlai_cu_device device, unsigned *flags, int *is_active)
{
    (void)device;
    BEGIN();
    *flags = 0;
    *is_active = fake.num_primaries > 0;
    return 0;
}

static mlai_cu_result ctx_current(mlai_cu_context *context)
{
    BEGIN();
    *context = fake.current;
    return 0;
}

static mlai_cu_result ctx_device(mlai_cu_device *device)
{
    BEGIN_CURRENT();
    *device = fake.current->device;
    return 0;
}

static mlai_cu_result ctx_push(mlai_cu_context context)
{
    if (fake.depth == (int)(sizeof stack / sizeof stack[0])) {
        misuse("contexts are pushed and not popped");
        return ERROR_INVALID_VALUE;
    }
    stack[fake.depth++] = fake.current;
    fake.current = context;
    return 0;
}

static mlai_cu_result ctx_pop(mlai_cu_context *context)
{
    if (fake.depth == 0) {
        misuse("a pop without a push");
        return ERROR_INVALID_CONTEXT;
    }
    *context = fake.current;
    fake.current = stack[--fake.depth];
    return 0;
}

static struct CUstream_st *capturing[8];

static bool is_capturing(void)
{
    for (size_t i = 0; i < sizeof capturing / sizeof capturing[0]; i++) {
        if (capturing[i]) {
            return true;
        }
    }
    return false;
}

static mlai_cu_result refuse_in_capture(const char *what)
{
    if (is_capturing()) {
        misuse(what);
        return ERROR_CAPTURE;
    }
    return 0;
}

static mlai_cu_result ctx_synchronize(void)
{
    fake.is_running = false;
    BEGIN_CURRENT();
    return refuse_in_capture("the context was waited for inside a capture");
}

static mlai_cu_result mem_info(size_t *free_bytes, size_t *total_bytes)
{
    BEGIN_CURRENT();
    *total_bytes = TOTAL_BYTES;
    *free_bytes = TOTAL_BYTES - fake.bytes;
    return 0;
}

static void *block_take(size_t bytes)
{
    enum { UNIT = 256 };
    block *made = aligned_alloc(UNIT, sizeof(block) + (bytes + UNIT - 1) / UNIT * UNIT);
    assert_non_null(made);
    *made = (block){.bytes = bytes, .next = blocks};
    memset(made->data, 0xff, bytes);
    blocks = made;
    fake.num_blocks++;
    fake.bytes += bytes;
    return made->data;
}

static void block_give(const void *data)
{
    block **at = &blocks;
    while (*at && (const void *)(*at)->data != data) {
        at = &(*at)->next;
    }
    if (!*at) {
        misuse("memory that is not there was freed");
        return;
    }
    block *gone = *at;
    *at = gone->next;
    fake.num_blocks--;
    fake.bytes -= gone->bytes;
    free(gone);
}

static mlai_cu_result mem_alloc(mlai_cu_pointer *data, size_t bytes)
{
    BEGIN_CURRENT();
    if (refuse_in_capture("memory was taken inside a capture") != 0) {
        return ERROR_CAPTURE;
    }
    if (fake.bytes + bytes > TOTAL_BYTES) {
        return MLAI_CU_ERROR_OUT_OF_MEMORY;
    }
    *data = (uintptr_t)block_take(bytes);
    return 0;
}

static mlai_cu_result mem_free(mlai_cu_pointer data)
{
    (void)check_current();
    if (fake.is_running && fake.dead == 0) {
        misuse("memory was freed before anybody waited for the device");
    }
    block_give((const void *)(uintptr_t)data);
    return begin(__func__);
}

static mlai_cu_result mem_alloc_host(void **data, size_t bytes)
{
    BEGIN_CURRENT();
    *data = block_take(bytes);
    return 0;
}

static mlai_cu_result mem_free_host(void *data)
{
    (void)check_current();
    block_give(data);
    return begin(__func__);
}

static mlai_cu_result to_device(mlai_cu_pointer to, const void *from, size_t bytes)
{
    BEGIN_CURRENT();
    memcpy((void *)(uintptr_t)to, from, bytes);
    return 0;
}

static mlai_cu_result to_host(void *to, mlai_cu_pointer from, size_t bytes)
{
    BEGIN_CURRENT();
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return 0;
}

static mlai_cu_result within_device(mlai_cu_pointer to, mlai_cu_pointer from, size_t bytes,
                                    mlai_cu_stream stream)
{
    (void)stream;
    BEGIN_CURRENT();
    memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    return 0;
}

static mlai_cu_result memset_d8(mlai_cu_pointer to, unsigned char value, size_t bytes)
{
    BEGIN_CURRENT();
    memset((void *)(uintptr_t)to, value, bytes);
    return 0;
}

static mlai_cu_result module_load(mlai_cu_module *module, const void *image)
{
    static const char head[] = "image of ";
    BEGIN_CURRENT();
    if (strncmp(image, head, strlen(head)) != 0) {
        return MLAI_CU_ERROR_NO_BINARY;
    }
    mlai_cu_module made = calloc(1, sizeof *made);
    assert_non_null(made);
    made->is_loaded = true;
    (void)snprintf(made->name, sizeof made->name, "%s", (const char *)image + strlen(head));
    made->next = modules;
    modules = made;
    fake.num_modules++;
    *module = made;
    return 0;
}

static mlai_cu_result module_unload(mlai_cu_module module)
{
    (void)check_current();
    if (fake.is_running && module->was_launched && fake.dead == 0) {
        misuse("a module was unloaded before anybody waited for the device");
    }
    if (!module->is_loaded) {
        misuse("a module was unloaded twice");
    } else {
        module->is_loaded = false;
        fake.num_modules--;
    }
    return begin(__func__);
}

static mlai_cu_result get_function(mlai_cu_function *function, mlai_cu_module module,
                                   const char *name)
{
    BEGIN_CURRENT();
    if (!module->is_loaded || module->num_functions == 4) {
        misuse("a function of no module was asked for");
        return ERROR_INVALID_VALUE;
    }
    *function = &module->function[module->num_functions++];
    (*function)->module = module;
    (void)snprintf((*function)->name, sizeof(*function)->name, "%s", name);
    return 0;
}

static mlai_cu_result set_attribute(mlai_cu_function function, int attribute, int value)
{
    (void)function;
    (void)attribute;
    (void)value;
    BEGIN_CURRENT();
    return 0;
}

static void note_launch(mlai_cu_function function, const fake_launch *launch)
{
    if (!function->module->is_loaded) {
        misuse("a kernel of an unloaded module was launched");
    }
    function->module->was_launched = true;
    fake.is_running = true;
    if (fake.num_launches < FAKE_MOST_LAUNCHES) {
        fake.launch[fake.num_launches] = *launch;
    }
    fake.num_launches++;
}

static mlai_cu_result launch_kernel(const mlai_cu_launch *wanted, mlai_cu_function function,
                                    void **parameters, void **extra)
{
    enum { LEAST_PARAMETER_BYTES = 64 };
    const unsigned *grid = wanted->grid;
    const unsigned *threads = wanted->block;
    mlai_cu_stream stream = wanted->stream;
    BEGIN_CURRENT();
    if (grid[0] == 0 || grid[1] == 0 || grid[2] != 1 || threads[0] == 0 ||
        threads[1] != 1 || threads[2] != 1 || !parameters || extra) {
        misuse("a launch with an impossible grid");
        return ERROR_INVALID_VALUE;
    }
    for (unsigned i = 0; i < wanted->num_attributes; i++) {
        if (fake.major < MLAI_CU_LAUNCH_EARLY_MAJOR) {
            misuse("an early launch on a device that has none");
            return ERROR_INVALID_VALUE;
        }
    }
    fake_launch launch = {.grid_x = grid[0],
                          .grid_y = grid[1],
                          .block_x = threads[0],
                          .shared_bytes = wanted->shared_bytes,
                          .is_early = wanted->num_attributes > 0,
                          .stream = stream};
    memcpy(launch.module, function->module->name, sizeof launch.module);
    memcpy(launch.function, function->name, sizeof launch.function);
    memcpy(launch.parameters, parameters[0], LEAST_PARAMETER_BYTES);
    mlai_cu_graph graph = stream ? stream->capture : NULL;
    if (!graph) {
        note_launch(function, &launch);
        return 0;
    }
    assert_true(graph->num_nodes < MOST_NODES);
    graph->function[graph->num_nodes] = function;
    graph->node[graph->num_nodes++] = launch;
    return 0;
}

static mlai_cu_result stream_create(mlai_cu_stream *stream, unsigned flags)
{
    (void)flags;
    BEGIN_CURRENT();
    *stream = calloc(1, sizeof **stream);
    assert_non_null(*stream);
    fake.num_streams++;
    return 0;
}

static mlai_cu_result stream_destroy(mlai_cu_stream stream)
{
    free(stream);
    fake.num_streams--;
    return begin(__func__);
}

static mlai_cu_result stream_synchronize(mlai_cu_stream stream)
{
    (void)stream;
    BEGIN_CURRENT();
    return refuse_in_capture("a stream was waited for inside a capture");
}

static mlai_cu_result begin_capture(mlai_cu_stream stream, int mode)
{
    (void)mode;
    BEGIN_CURRENT();
    if (!stream || stream->capture) {
        misuse("a capture of the null stream, or a second one");
        return ERROR_INVALID_VALUE;
    }
    stream->capture = calloc(1, sizeof *stream->capture);
    assert_non_null(stream->capture);
    for (size_t i = 0; i < sizeof capturing / sizeof capturing[0]; i++) {
        if (!capturing[i]) {
            capturing[i] = stream;
            break;
        }
    }
    fake.num_graphs++;
    return 0;
}

static void drop_objects(mlai_cu_graph graph)
{
    for (int i = 0; i < graph->num_objects; i++) {
        mlai_cu_user_object object = graph->object[i];
        if (--object->num_references == 0) {
            object->destroy(object->data);
            free(object);
            fake.num_objects--;
        }
    }
}

static mlai_cu_result end_capture(mlai_cu_stream stream, mlai_cu_graph *graph)
{
    mlai_cu_graph made = stream->capture;
    if (!made) {
        misuse("the end of no capture");
        return ERROR_INVALID_VALUE;
    }
    stream->capture = NULL;
    for (size_t i = 0; i < sizeof capturing / sizeof capturing[0]; i++) {
        capturing[i] = capturing[i] == stream ? NULL : capturing[i];
    }
    mlai_cu_result result = begin(__func__);
    if (result != 0) {
        drop_objects(made);
        free(made);
        fake.num_graphs--;
        made = NULL;
    }
    *graph = made;
    return result;
}

static mlai_cu_result capture_info(mlai_cu_stream stream, int *status, uint64_t *id,
                                   mlai_cu_graph *graph, const void **dependencies,
                                   size_t *num_dependencies)
{
    BEGIN_CURRENT();
    mlai_cu_graph captured = stream ? stream->capture : null_stream.capture;
    *status = captured ? MLAI_CU_CAPTURE_ACTIVE : 0;
    if (id) {
        *id = 1;
    }
    if (graph) {
        *graph = captured;
    }
    (void)dependencies;
    (void)num_dependencies;
    return 0;
}

static mlai_cu_result event_create(mlai_cu_event *event, unsigned flags)
{
    (void)flags;
    BEGIN_CURRENT();
    *event = calloc(1, sizeof **event);
    assert_non_null(*event);
    fake.num_events++;
    return 0;
}

static mlai_cu_result event_destroy(mlai_cu_event event)
{
    free(event);
    fake.num_events--;
    return begin(__func__);
}

static mlai_cu_result event_record(mlai_cu_event event, mlai_cu_stream stream)
{
    BEGIN_CURRENT();
    if (stream && stream->capture) {
        misuse("an event was recorded into a caller's capture");
    }
    event->num_records++;
    return 0;
}

static mlai_cu_result event_query(mlai_cu_event event)
{
    (void)event;
    BEGIN_CURRENT();
    mlai_cu_result result = refuse_in_capture("an event was asked for inside a capture");
    return result == 0 && fake.is_busy ? MLAI_CU_ERROR_NOT_READY : result;
}

static mlai_cu_result event_synchronize(mlai_cu_event event)
{
    (void)event;
    BEGIN_CURRENT();
    return refuse_in_capture("an event was waited for inside a capture");
}

static mlai_cu_result elapsed_time(float *ms, mlai_cu_event from, mlai_cu_event to)
{
    (void)from;
    (void)to;
    BEGIN_CURRENT();
    *ms = 1;
    return 0;
}

static mlai_cu_result graph_instantiate(mlai_cu_graph_exec *exec, mlai_cu_graph graph,
                                        unsigned long long flags)
{
    (void)flags;
    BEGIN_CURRENT();
    *exec = calloc(1, sizeof **exec);
    assert_non_null(*exec);
    (*exec)->graph = *graph;
    for (int i = 0; i < graph->num_objects; i++) {
        graph->object[i]->num_references++;
    }
    fake.num_graphs++;
    return 0;
}

static mlai_cu_result graph_launch(mlai_cu_graph_exec exec, mlai_cu_stream stream)
{
    BEGIN_CURRENT();
    for (int i = 0; i < exec->graph.num_nodes; i++) {
        exec->graph.node[i].stream = stream;
        note_launch(exec->graph.function[i], &exec->graph.node[i]);
    }
    return 0;
}

static mlai_cu_result exec_destroy(mlai_cu_graph_exec exec)
{
    drop_objects(&exec->graph);
    free(exec);
    fake.num_graphs--;
    return begin(__func__);
}

static mlai_cu_result graph_destroy(mlai_cu_graph graph)
{
    drop_objects(graph);
    free(graph);
    fake.num_graphs--;
    return begin(__func__);
}

static mlai_cu_result object_create(mlai_cu_user_object *object, void *data,
                                    void (*destroy)(void *data), unsigned num_references,
                                    unsigned flags)
{
    (void)flags;
    BEGIN();
    *object = calloc(1, sizeof **object);
    assert_non_null(*object);
    (*object)->data = data;
    (*object)->destroy = destroy;
    (*object)->num_references = (int)num_references;
    fake.num_objects++;
    return 0;
}

static mlai_cu_result object_release(mlai_cu_user_object object, unsigned num_references)
{
    object->num_references -= (int)num_references;
    if (object->num_references == 0) {
        object->destroy(object->data);
        free(object);
        fake.num_objects--;
    }
    return begin(__func__);
}

static mlai_cu_result retain_object(mlai_cu_graph graph, mlai_cu_user_object object,
                                    unsigned num_references, unsigned flags)
{
    BEGIN();
    assert_true(graph->num_objects < MOST_OBJECTS);
    assert_int_equal(num_references, 1);
    object->num_references += flags == MLAI_CU_GRAPH_MOVE ? 0 : 1;
    graph->object[graph->num_objects++] = object;
    return 0;
}

static const mlai_cuda_driver table = {
    .cuInit = init,
    .cuDriverGetVersion = driver_version,
    .cuGetErrorName = error_name,
    .cuDeviceGetCount = device_count,
    .cuDeviceGet = device_get,
    .cuDeviceGetName = device_name,
    .cuDeviceGetAttribute = device_attribute,
    .cuDeviceTotalMem = total_mem,
    .cuDevicePrimaryCtxRetain = primary_retain,
    .cuDevicePrimaryCtxRelease = primary_release,
    .cuDevicePrimaryCtxGetState = primary_state,
    .cuCtxGetCurrent = ctx_current,
    .cuCtxGetDevice = ctx_device,
    .cuCtxPushCurrent = ctx_push,
    .cuCtxPopCurrent = ctx_pop,
    .cuCtxSynchronize = ctx_synchronize,
    .cuMemGetInfo = mem_info,
    .cuMemAlloc = mem_alloc,
    .cuMemFree = mem_free,
    .cuMemAllocHost = mem_alloc_host,
    .cuMemFreeHost = mem_free_host,
    .cuMemcpyHtoD = to_device,
    .cuMemcpyDtoH = to_host,
    .cuMemcpyDtoDAsync = within_device,
    .cuMemsetD8 = memset_d8,
    .cuModuleLoadData = module_load,
    .cuModuleUnload = module_unload,
    .cuModuleGetFunction = get_function,
    .cuFuncSetAttribute = set_attribute,
    .cuLaunchKernelEx = launch_kernel,
    .cuStreamCreate = stream_create,
    .cuStreamDestroy = stream_destroy,
    .cuStreamSynchronize = stream_synchronize,
    .cuStreamBeginCapture = begin_capture,
    .cuStreamEndCapture = end_capture,
    .cuStreamGetCaptureInfo = capture_info,
    .cuEventCreate = event_create,
    .cuEventDestroy = event_destroy,
    .cuEventRecord = event_record,
    .cuEventQuery = event_query,
    .cuEventSynchronize = event_synchronize,
    .cuEventElapsedTime = elapsed_time,
    .cuGraphInstantiateWithFlags = graph_instantiate,
    .cuGraphLaunch = graph_launch,
    .cuGraphExecDestroy = exec_destroy,
    .cuGraphDestroy = graph_destroy,
    .cuUserObjectCreate = object_create,
    .cuUserObjectRelease = object_release,
    .cuGraphRetainUserObject = retain_object,
};

static void forget_modules(void)
{
    while (modules) {
        mlai_cu_module gone = modules;
        modules = gone->next;
        free(gone);
    }
}

void fake_cuda_begin(void)
{
    forget_modules();
    memset(capturing, 0, sizeof capturing);
    fake = (fake_cuda){.num_devices = 1, .major = 9, .minor = 0, .fail_at = -1};
    fake_nvrtc_begin();
    mlai_cuda_driver_install(&table);
}

/* "" where all is well. */
static void describe_leftovers(char *text, size_t text_bytes)
{
    int num = fake.num_blocks + fake.num_modules + fake.num_streams + fake.num_events +
              fake.num_graphs + fake.num_objects + fake.num_primaries + fake.depth;
    text[0] = '\0';
    if (fake.misuse[0] != '\0' || num != 0) {
        (void)snprintf(text, text_bytes,
                       "%s; not given back: %d blocks, %d modules, %d streams, %d events, "
                       "%d graphs, %d user objects, %d contexts, %d pushed; the call that "
                       "was made to fail: %s",
                       fake.misuse[0] != '\0' ? fake.misuse : "no misuse", fake.num_blocks,
                       fake.num_modules, fake.num_streams, fake.num_events, fake.num_graphs,
                       fake.num_objects, fake.num_primaries, fake.depth,
                       fake.failed ? fake.failed : "none");
    }
}

enum { TEXT_BYTES = 400 };

void fake_cuda_check(void)
{
    char text[TEXT_BYTES];
    describe_leftovers(text, sizeof text);
    if (text[0] != '\0') {
        fail_msg("%s", text);
    }
}

bool fake_cuda_is_clean(void)
{
    char text[TEXT_BYTES];
    describe_leftovers(text, sizeof text);
    if (text[0] != '\0') {
        print_error("%s\n", text);
    }
    return text[0] == '\0';
}

void fake_cuda_end(void)
{
    fake_cuda_check();
    forget_modules();
    fake_nvrtc_end();
    mlai_cuda_driver_install(NULL);
}

void fake_cuda_fail(int after, mlai_cu_result with, bool is_sticky)
{
    fake.fail_at = fake.num_calls + after;
    fake.fail_with = with;
    fake.is_sticky = is_sticky;
}

void fake_cuda_set_current(int device)
{
    callers.device = device;
    fake.current = device < 0 ? NULL : &callers;
}

mlai_cu_stream fake_cuda_stream(void)
{
    mlai_cu_stream stream = calloc(1, sizeof *stream);
    assert_non_null(stream);
    fake.num_streams++;
    return stream;
}

void fake_cuda_stream_free(mlai_cu_stream stream)
{
    free(stream);
    fake.num_streams--;
}

const mlai_cuda_driver *fake_cuda_driver(void)
{
    return &table;
}
