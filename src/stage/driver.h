/* SPDX-License-Identifier: Apache-2.0 */
/* driver.h - a table of the calls of the CUDA driver that a stage makes. The calls go to the real
 * driver, loaded at run time, to the host device (driver_host.c), or to a test.
 *
 * Types and values are those of the driver's binary interface, and do not change. Handles are
 * pointers, device addresses 64-bit numbers, and every call returns 0 or an error. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tokmap.h"

typedef void *tokmap_i_stream;
typedef void *tokmap_i_event;
typedef uint64_t tokmap_i_address;

/* Errors that a stage handles differently. */
enum {
    TOKMAP_I_DRIVER_OUT_OF_MEMORY = 2,
    TOKMAP_I_DRIVER_STUB = 34, /* this libcuda.so is only for linking */
    TOKMAP_I_DRIVER_NO_DEVICE = 100,
    TOKMAP_I_DRIVER_NO_COMPILER = 221,
    TOKMAP_I_DRIVER_NOT_READY = 600,
    /* A call for the default stream was made while a stream that it would wait for is being
     * captured. */
    TOKMAP_I_DRIVER_CAPTURE_IMPLICIT = 906
};

/* Flags and attributes. */
enum {
    TOKMAP_I_EVENT_BLOCKING = 1, /* a host thread that waits for the event sleeps */
    TOKMAP_I_EVENT_NO_TIMING = 2,
    TOKMAP_I_STREAM_NON_BLOCKING = 1,
    TOKMAP_I_REGISTER_PORTABLE = 1,
    TOKMAP_I_CAPTURE_RELAXED = 2,
    TOKMAP_I_COMPILE_LOG = 5, /* options of load_module: a buffer for errors, and its size */
    TOKMAP_I_COMPILE_LOG_BYTES = 6,
    TOKMAP_I_ATTRIBUTE_PCI_BUS = 33,
    TOKMAP_I_ATTRIBUTE_PCI_DEVICE = 34,
    TOKMAP_I_ATTRIBUTE_PCI_DOMAIN = 50,
    TOKMAP_I_ATTRIBUTE_HOST_NUMA_ID = 134
};

typedef struct tokmap_i_driver {
    int (*init)(unsigned flags);
    int (*get_version)(int *version);
    int (*get_error_name)(int error, const char **name);
    int (*get_error_text)(int error, const char **text);
    int (*count_devices)(int *n);
    int (*get_device)(int *device, int ordinal);
    int (*get_attribute)(int *value, int attribute, int device);
    int (*retain_context)(void **context, int device);
    int (*release_context)(int device);
    int (*push_context)(void *context);
    int (*pop_context)(void **context);
    int (*exchange_capture_mode)(int *mode); /* of the calling thread */

    int (*create_stream)(tokmap_i_stream *stream, unsigned flags);
    int (*destroy_stream)(tokmap_i_stream stream);
    int (*wait_stream)(tokmap_i_stream stream); /* blocks the host */
    int (*is_capturing)(tokmap_i_stream stream, int *status);
    int (*stream_wait)(tokmap_i_stream stream, tokmap_i_event event, unsigned flags);

    int (*create_event)(tokmap_i_event *event, unsigned flags);
    int (*destroy_event)(tokmap_i_event event);
    int (*record)(tokmap_i_event event, tokmap_i_stream stream);
    int (*query)(tokmap_i_event event); /* 0 or NOT_READY */
    int (*wait_event)(tokmap_i_event event);

    int (*allocate)(tokmap_i_address *address, size_t n_bytes);
    int (*free)(tokmap_i_address address);
    int (*register_host)(void *memory, size_t n_bytes, unsigned flags);
    int (*unregister_host)(void *memory);
    int (*copy_to_device)(tokmap_i_address to, const void *from, size_t n_bytes,
                          tokmap_i_stream stream);

    int (*load_module)(void **module, const void *text, unsigned n_options, int *options,
                       void **values);
    int (*unload_module)(void *module);
    int (*get_function)(void **function, void *module, const char *name);
    int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                  unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                  tokmap_i_stream stream, void **parameters, void **extra);
} tokmap_i_driver;

/* Finds the driver of this machine, loaded and initialized once per process. TOKMAP_ERR_DEVICE:
 * there is no working driver; err says why. */
tokmap_status tokmap_i_driver_find(const tokmap_i_driver **driver, tokmap_error *err);
/* Returns the host as a device. Its calls are complete when they return. */
const tokmap_i_driver *tokmap_i_driver_host(void);
