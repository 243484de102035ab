/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/driver.h"

#include "base/error.h"
#include "system/platform.h"
#include "system/platform_library.h"
#include "system/platform_thread.h"

/* The names of the calls. `_v2` is a part of a name, and its meaning never changes. */
static const struct {
    const char *name;
    size_t place;
} calls[] = {
    {"cuInit", offsetof(tokmap_i_driver, init)},
    {"cuDriverGetVersion", offsetof(tokmap_i_driver, get_version)},
    {"cuGetErrorName", offsetof(tokmap_i_driver, get_error_name)},
    {"cuGetErrorString", offsetof(tokmap_i_driver, get_error_text)},
    {"cuDeviceGetCount", offsetof(tokmap_i_driver, count_devices)},
    {"cuDeviceGet", offsetof(tokmap_i_driver, get_device)},
    {"cuDeviceGetAttribute", offsetof(tokmap_i_driver, get_attribute)},
    {"cuDevicePrimaryCtxRetain", offsetof(tokmap_i_driver, retain_context)},
    {"cuDevicePrimaryCtxRelease_v2", offsetof(tokmap_i_driver, release_context)},
    {"cuCtxPushCurrent_v2", offsetof(tokmap_i_driver, push_context)},
    {"cuCtxPopCurrent_v2", offsetof(tokmap_i_driver, pop_context)},
    {"cuThreadExchangeStreamCaptureMode", offsetof(tokmap_i_driver, exchange_capture_mode)},
    {"cuStreamCreate", offsetof(tokmap_i_driver, create_stream)},
    {"cuStreamDestroy_v2", offsetof(tokmap_i_driver, destroy_stream)},
    {"cuStreamSynchronize", offsetof(tokmap_i_driver, wait_stream)},
    {"cuStreamIsCapturing", offsetof(tokmap_i_driver, is_capturing)},
    {"cuStreamWaitEvent", offsetof(tokmap_i_driver, stream_wait)},
    {"cuEventCreate", offsetof(tokmap_i_driver, create_event)},
    {"cuEventDestroy_v2", offsetof(tokmap_i_driver, destroy_event)},
    {"cuEventRecord", offsetof(tokmap_i_driver, record)},
    {"cuEventQuery", offsetof(tokmap_i_driver, query)},
    {"cuEventSynchronize", offsetof(tokmap_i_driver, wait_event)},
    {"cuMemAlloc_v2", offsetof(tokmap_i_driver, allocate)},
    {"cuMemFree_v2", offsetof(tokmap_i_driver, free)},
    {"cuMemHostRegister_v2", offsetof(tokmap_i_driver, register_host)},
    {"cuMemHostUnregister", offsetof(tokmap_i_driver, unregister_host)},
    {"cuMemcpyHtoDAsync_v2", offsetof(tokmap_i_driver, copy_to_device)},
    {"cuModuleLoadDataEx", offsetof(tokmap_i_driver, load_module)},
    {"cuModuleUnload", offsetof(tokmap_i_driver, unload_module)},
    {"cuModuleGetFunction", offsetof(tokmap_i_driver, get_function)},
    {"cuLaunchKernel", offsetof(tokmap_i_driver, launch)},
};
_Static_assert(sizeof calls / sizeof calls[0] == sizeof(tokmap_i_driver) / sizeof(void (*)(void)),
               "every call of the table has a name");

static tokmap_i_once once = TOKMAP_I_ONCE;
static struct {
    tokmap_i_driver table;
    tokmap_i_fork_mark fork_mark;
    tokmap_error error; /* why the driver was not found; status 0: found */
} found;

static tokmap_status start_driver(tokmap_i_driver *d, tokmap_error *err)
{
    int version = 0;
    const char *words = "";
    const int error = d->init(0);
    if (error == TOKMAP_I_DRIVER_NO_DEVICE)
        return FAIL(err, TOKMAP_ERR_DEVICE, "the CUDA driver finds no device in this machine");
    if (error == TOKMAP_I_DRIVER_STUB)
        return FAIL(err, TOKMAP_ERR_DEVICE,
                    "libcuda.so.1 is the stub of the toolkit, not a driver: remove its folder from "
                    "LD_LIBRARY_PATH");
    if (error && d->get_error_text(error, &words) == 0)
        return FAIL(err, TOKMAP_ERR_DEVICE, "the CUDA driver cannot be initialized: error %d, %s",
                    error, words);
    if (error || d->get_version(&version))
        return FAIL(err, TOKMAP_ERR_DEVICE, "the CUDA driver cannot be initialized: error %d",
                    error);
    return TOKMAP_OK;
}

static void find_driver(void)
{
    char why[300];
    tokmap_i_fork_mark_set(&found.fork_mark);
    void *library = tokmap_i_library_open("libcuda.so.1", why, sizeof why);
    if (!library) {
        FAIL(&found.error, TOKMAP_ERR_DEVICE, "there is no CUDA driver on this machine (%s)", why);
        return;
    }
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (!tokmap_i_library_find(library, calls[i].name, (char *)&found.table + calls[i].place)) {
            FAIL(&found.error, TOKMAP_ERR_DEVICE, "the CUDA driver is too old: it has no %s",
                 calls[i].name);
            return;
        }
    }
    start_driver(&found.table, &found.error);
}

tokmap_status tokmap_i_driver_find(const tokmap_i_driver **driver, tokmap_error *err)
{
    tokmap_i_run_once(&once, find_driver);
    if (found.error.status) {
        if (err)
            *err = found.error;
        return found.error.status;
    }
    if (tokmap_i_fork_mark_is_child(&found.fork_mark))
        return FAIL(
            err, TOKMAP_ERR_FORKED,
            "the parent process has used the CUDA driver, which does not work after a fork: "
            "start the child with exec, or open the first stage in the child");
    *driver = &found.table;
    return TOKMAP_OK;
}
