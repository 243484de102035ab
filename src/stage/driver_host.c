/* SPDX-License-Identifier: Apache-2.0 */
/* driver_host.c - the host as a device: the processor does the work, in the caller's thread.
 *
 * Every call is complete when it returns, so streams are always idle and events have always
 * happened. */
#include <stdlib.h>
#include <string.h>

#include "stage/driver.h"
#include "stage/expand.h"

/* The driver's calls have more arguments than the host needs. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

static int get_error(int error, const char **text)
{
    *text = error == TOKMAP_I_DRIVER_OUT_OF_MEMORY ? "out of memory" : "unknown";
    return 0;
}

static int get_attribute(int *value, int attribute, int device)
{
    return -1; /* the host has none */
}

static int take_pointer(void *p)
{
    return 0;
}

static int pop_context(void **context)
{
    return 0;
}

static int exchange_capture_mode(int *mode)
{
    return 0;
}

static int create(void **stream_or_event, unsigned flags)
{
    return 0;
}

static int is_capturing(tokmap_i_stream stream, int *status)
{
    return 0;
}

static int stream_wait(tokmap_i_stream stream, tokmap_i_event event, unsigned flags)
{
    return 0;
}

static int record(tokmap_i_event event, tokmap_i_stream stream)
{
    return 0;
}

static int allocate(tokmap_i_address *address, size_t n_bytes)
{
    void *memory = NULL;
    if (posix_memalign(&memory, 256, n_bytes))
        return TOKMAP_I_DRIVER_OUT_OF_MEMORY;
    *address = (uintptr_t)memory;
    return 0;
}

static int give_back(tokmap_i_address address)
{
    free((void *)(uintptr_t)address);
    return 0;
}

static int register_host(void *memory, size_t n_bytes, unsigned flags)
{
    return 0;
}

static int copy_to_device(tokmap_i_address to, const void *from, size_t n_bytes,
                          tokmap_i_stream stream)
{
    memcpy((void *)(uintptr_t)to, from, n_bytes);
    return 0;
}

static int load_module(void **module, const void *text, unsigned n_options, int *options,
                       void **values)
{
    return 0;
}

static int get_function(void **function, void *module, const char *name)
{
    return 0;
}

static int launch(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                  unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                  tokmap_i_stream stream, void **parameters, void **extra)
{
    tokmap_i_expand(parameters[0]);
    return 0;
}

const tokmap_i_driver *tokmap_i_driver_host(void)
{
    /* Nobody searches for this device, and it has no handles: the handles that a stage gets stay
     * NULL. So the calls that find a device or free a handle are missing. */
    static const tokmap_i_driver host = {.get_error_name = get_error,
                                         .get_error_text = get_error,
                                         .get_attribute = get_attribute,
                                         .push_context = take_pointer,
                                         .pop_context = pop_context,
                                         .exchange_capture_mode = exchange_capture_mode,
                                         .create_stream = create,
                                         .wait_stream = take_pointer,
                                         .is_capturing = is_capturing,
                                         .stream_wait = stream_wait,
                                         .create_event = create,
                                         .record = record,
                                         .query = take_pointer,
                                         .wait_event = take_pointer,
                                         .allocate = allocate,
                                         .free = give_back,
                                         .register_host = register_host,
                                         .unregister_host = take_pointer,
                                         .copy_to_device = copy_to_device,
                                         .load_module = load_module,
                                         .get_function = get_function,
                                         .launch = launch};
    return &host;
}
