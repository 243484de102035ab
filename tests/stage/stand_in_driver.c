/* SPDX-License-Identifier: Apache-2.0 */
/* stand_in_driver.c - a libcuda.so.1 whose two devices are the processor: the names that the
 * library looks for, and those that tests of a GPU use. Every call is done when it returns; graphs
 * hold copies. Streams are only compared, so a test may use any number for one. */
#include <stdlib.h>
#include <string.h>

#include "stage/driver.h"

/* The names are called by those who look for them, and have more than the stand-in needs. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define EXPORT __attribute__((visibility("default")))

enum {
    INVALID_VALUE = 1,
    INVALID_CONTEXT = 201,
    LAUNCH_FAILED = 719,
    N_DEVICES = 2,
    MAX_NODES = 16,
    MAX_CALLS = 1 << 16
};

/* ---- For tests, which find these by their names ---- */

/* 'w': a stream waits for an event; 'r': an event is recorded in a stream. */
EXPORT struct call {
    int what;
    void *stream, *event;
} stand_in_calls[MAX_CALLS];
EXPORT int stand_in_n_calls;
EXPORT int stand_in_fail_copies; /* so many */
EXPORT int stand_in_fail_pins;   /* all */
EXPORT void *stand_in_captured;  /* the stream whose calls are captured */

static void note_call(int what, void *stream, void *event)
{
    const int n = __atomic_fetch_add(&stand_in_n_calls, 1, __ATOMIC_SEQ_CST) % MAX_CALLS;
    stand_in_calls[n] = (struct call){what, stream, event};
}

static const tokmap_i_driver *host(void)
{
    return tokmap_i_driver_host();
}

/* ---- Devices and contexts ---- */

static int the_context;
static _Thread_local int n_contexts; /* on the stack of the thread */

EXPORT int cuInit(unsigned flags)
{
    if (getenv("STAND_IN_WITHOUT_DEVICE"))
        return TOKMAP_I_DRIVER_NO_DEVICE;
    return flags ? INVALID_VALUE : 0;
}

EXPORT int cuDriverGetVersion(int *version)
{
    *version = 12000;
    return 0;
}

EXPORT int cuGetErrorName(int error, const char **name)
{
    *name = "CUDA_ERROR_OF_THE_STAND_IN";
    return 0;
}

EXPORT int cuGetErrorString(int error, const char **text)
{
    return host()->get_error_text(error, text);
}

EXPORT int cuDeviceGetCount(int *n)
{
    *n = N_DEVICES;
    return 0;
}

EXPORT int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return ordinal < N_DEVICES ? 0 : INVALID_VALUE;
}

EXPORT int cuDeviceGetName(char *name, int n_bytes, int device)
{
    strncpy(name, "stand-in", (size_t)n_bytes);
    return 0;
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    return host()->get_attribute(value, attribute, device);
}

EXPORT int cuDevicePrimaryCtxRetain(void **context, int device)
{
    *context = &the_context;
    return 0;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device)
{
    return 0;
}

EXPORT int cuCtxPushCurrent_v2(void *context)
{
    n_contexts += context == &the_context;
    return context == &the_context ? 0 : INVALID_CONTEXT;
}

EXPORT int cuCtxPopCurrent_v2(void **context)
{
    *context = &the_context;
    if (n_contexts == 0)
        return INVALID_CONTEXT;
    n_contexts--;
    return 0;
}

EXPORT int cuCtxGetCurrent(void **context)
{
    *context = n_contexts ? &the_context : NULL;
    return 0;
}

EXPORT int cuCtxSetCurrent(void *context)
{
    n_contexts = 0;
    return cuCtxPushCurrent_v2(context);
}

EXPORT int cuCtxSynchronize(void)
{
    return n_contexts ? 0 : INVALID_CONTEXT;
}

EXPORT int cuThreadExchangeStreamCaptureMode(int *mode)
{
    static _Thread_local int now;
    const int before = now;
    now = *mode;
    *mode = before;
    return 0;
}

/* ---- Streams, events, graphs ---- */

typedef struct node {
    uint64_t to, from;
    size_t n_bytes;
} node;

static struct {
    node nodes[MAX_NODES];
    int n_nodes;
} the_graph;

EXPORT int cuStreamCreate(void **stream, unsigned flags)
{
    *stream = malloc(sizeof flags);
    return *stream ? 0 : TOKMAP_I_DRIVER_OUT_OF_MEMORY;
}

EXPORT int cuStreamDestroy_v2(void *stream)
{
    free(stream);
    return 0;
}

EXPORT int cuStreamSynchronize(void *stream)
{
    return cuCtxSynchronize();
}

static int is_captured(void *stream)
{
    return stream && stream == stand_in_captured;
}

EXPORT int cuStreamIsCapturing(void *stream, int *status)
{
    *status = is_captured(stream);
    return 0;
}

EXPORT int cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    note_call('w', stream, event);
    return event ? cuCtxSynchronize() : INVALID_VALUE;
}

EXPORT int cuEventCreate(void **event, unsigned flags)
{
    *event = malloc(sizeof flags);
    return *event ? cuCtxSynchronize() : TOKMAP_I_DRIVER_OUT_OF_MEMORY;
}

EXPORT int cuEventDestroy_v2(void *event)
{
    free(event);
    return 0;
}

EXPORT int cuEventRecord(void *event, void *stream)
{
    note_call('r', stream, event);
    return event ? cuCtxSynchronize() : INVALID_VALUE;
}

EXPORT int cuEventQuery(void *event)
{
    return event ? 0 : INVALID_VALUE;
}

EXPORT int cuEventSynchronize(void *event)
{
    return cuEventQuery(event);
}

EXPORT int cuStreamBeginCapture_v2(void *stream, int mode)
{
    stand_in_captured = stream;
    the_graph.n_nodes = 0;
    return 0;
}

EXPORT int cuStreamEndCapture(void *stream, void **graph)
{
    const int error = is_captured(stream) ? 0 : INVALID_VALUE;
    *graph = &the_graph;
    stand_in_captured = NULL;
    return error;
}

EXPORT int cuGraphInstantiateWithFlags(void **runnable, void *graph, unsigned long long flags)
{
    *runnable = graph;
    return 0;
}

EXPORT int cuGraphLaunch(void *runnable, void *stream)
{
    for (int i = 0; i < the_graph.n_nodes; i++) {
        const node *n = &the_graph.nodes[i];
        memcpy((void *)(uintptr_t)n->to, (const void *)(uintptr_t)n->from, n->n_bytes);
    }
    return runnable == &the_graph ? 0 : INVALID_VALUE;
}

/* ---- Memory ---- */

EXPORT int cuMemAlloc_v2(uint64_t *address, size_t n_bytes)
{
    return n_contexts ? host()->allocate(address, n_bytes) : INVALID_CONTEXT;
}

EXPORT int cuMemFree_v2(uint64_t address)
{
    return host()->free(address);
}

EXPORT int cuMemHostRegister_v2(void *memory, size_t n_bytes, unsigned flags)
{
    return stand_in_fail_pins ? LAUNCH_FAILED : host()->register_host(memory, n_bytes, flags);
}

EXPORT int cuMemHostUnregister(void *memory)
{
    return host()->unregister_host(memory);
}

EXPORT int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t n_bytes, void *stream)
{
    if (stand_in_fail_copies > 0) {
        stand_in_fail_copies--;
        return LAUNCH_FAILED;
    }
    return host()->copy_to_device(to, from, n_bytes, stream);
}

EXPORT int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n_bytes, void *stream)
{
    if (!is_captured(stream))
        return host()->copy_to_device(to, (const void *)(uintptr_t)from, n_bytes, stream);
    if (the_graph.n_nodes == MAX_NODES)
        return INVALID_VALUE;
    the_graph.nodes[the_graph.n_nodes++] = (node){to, from, n_bytes};
    return 0;
}

EXPORT int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t n_bytes)
{
    memcpy(to, (const void *)(uintptr_t)from, n_bytes);
    return 0;
}

EXPORT int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t n_bytes)
{
    return host()->copy_to_device(to, from, n_bytes, NULL);
}

EXPORT int cuMemsetD8_v2(uint64_t at, unsigned char value, size_t n_bytes)
{
    memset((void *)(uintptr_t)at, value, n_bytes);
    return 0;
}

/* ---- The kernel ---- */

EXPORT int cuModuleLoadDataEx(void **module, const void *text, unsigned n_options, int *options,
                              void **values)
{
    *module = (void *)(uintptr_t)text;
    return strstr(text, "tokmap_expand") ? 0 : INVALID_VALUE;
}

EXPORT int cuModuleUnload(void *module)
{
    return module ? 0 : INVALID_VALUE;
}

EXPORT int cuModuleGetFunction(void **function, void *module, const char *name)
{
    *function = module;
    return strcmp(name, "tokmap_expand") == 0 ? 0 : INVALID_VALUE;
}

EXPORT int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                          unsigned block_x, unsigned block_y, unsigned block_z,
                          unsigned shared_bytes, void *stream, void **parameters, void **extra)
{
    return host()->launch(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,
                          stream, parameters, extra);
}
