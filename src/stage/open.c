/* SPDX-License-Identifier: Apache-2.0 */
/* open.c - opens and closes a stage: options, the device, and all memory of the stage. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "expand_ptx.h"
#include "system/platform_memory.h"
#include "stage/stage.h"
#include "base/error.h"
#include "base/options.h"

enum {
    DEFAULT_SLOTS = 4,
    DEFAULT_HOST_SLOTS = 8,
    ALL_OUTPUTS = (1 << TOKMAP_I_STAGE_OUTPUTS) - 1,
    MOST_EVENTS = 4 * TOKMAP_I_STAGE_MAX_SLOTS
};
#define DEFAULT_HOST_BYTES ((uint64_t)64 << 20)

/* ---- Options ---- */

/* Returns the parts of rows that the loader must have. For slices it makes the ids themselves; for
 * whole rows these follow from the documents. */
static uint32_t parts_needed(const tokmap_stage_options *o)
{
    const bool in_rows = o->outputs & TOKMAP_STAGE_ROW_POSITIONS;
    const uint32_t parts =
        (o->outputs & TOKMAP_STAGE_CU_SEQLENS ? TOKMAP_ROW_DOCUMENTS : 0) |
        (o->outputs & TOKMAP_STAGE_POSITION_IDS && !in_rows ? TOKMAP_ROW_POSITION_IDS : 0) |
        (o->outputs & TOKMAP_STAGE_DOCUMENT_IDS ? TOKMAP_ROW_DOCUMENT_IDS : 0);
    return parts && o->loader->slice.size == 1 ? TOKMAP_ROW_DOCUMENTS : parts;
}

static tokmap_status check_options(tokmap_stage_options *o, tokmap_error *err)
{
    if (!o->loader)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "tokmap_stage_open: loader is NULL");
    tokmap_status status = tokmap_i_loader_check_fork(o->loader, err);
    if (o->outputs == 0)
        o->outputs = TOKMAP_STAGE_INPUTS | TOKMAP_STAGE_LABELS;
    o->n_slots = o->n_slots ? o->n_slots : DEFAULT_SLOTS;
    o->input_bytes = o->input_bytes ? o->input_bytes : 4;
    o->label_bytes = o->label_bytes ? o->label_bytes : 8;
    if (!status)
        status = tokmap_i_take_ignore_index(o->has_ignore_index, &o->ignore_index, err);
    const struct {
        uint32_t value, least, most;
        const char *name;
    } ranges[] = {/* 0 is a default */
                  {o->n_slots, 2, TOKMAP_I_STAGE_MAX_SLOTS, "n_slots"},
                  {o->n_host_slots, 1, TOKMAP_I_STAGE_MAX_SLOTS, "n_host_slots"},
                  {o->max_boundaries, 0, INT32_MAX - 1, "max_boundaries"}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges && !status; i++)
        if (ranges[i].value &&
            (ranges[i].value < ranges[i].least || ranges[i].value > ranges[i].most))
            status =
                FAIL(err, TOKMAP_ERR_ARGUMENT, "%s is %" PRIu32 ": must be %" PRIu32 " to %" PRIu32,
                     ranges[i].name, ranges[i].value, ranges[i].least, ranges[i].most);
    if (!status)
        status = tokmap_i_check_flag("no_thread", o->no_thread, err);
    const uint32_t widths[] = {o->input_bytes, o->label_bytes};
    for (int i = 0; i < 2 && !status; i++)
        if (widths[i] != 4 && widths[i] != 8)
            status = FAIL(err, TOKMAP_ERR_ARGUMENT, "%s is %" PRIu32 ": must be 4 or 8",
                          i == 0 ? "input_bytes" : "label_bytes", widths[i]);
    if (!status && o->device < TOKMAP_STAGE_HOST)
        status = FAIL(err, TOKMAP_ERR_ARGUMENT, "device is %" PRId32 ": no such device", o->device);
    return status;
}

/* Checks the outputs. Also refuses ids that would become negative as int32. */
static tokmap_status check_outputs(const tokmap_stage_options *o, tokmap_error *err)
{
    const bool narrow_inputs = (o->outputs & TOKMAP_STAGE_INPUTS) && o->input_bytes == 4;
    const bool narrow_labels = (o->outputs & TOKMAP_STAGE_LABELS) && o->label_bytes == 4;
    const bool of_pieces = o->loader->samples.o.windows == TOKMAP_WINDOWS_BEST_FIT;
    const bool is_slice = o->loader->slice.size > 1;
    if (o->outputs & ~(uint32_t)(ALL_OUTPUTS | TOKMAP_STAGE_ROW_POSITIONS) ||
        !(o->outputs & ALL_OUTPUTS))
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "outputs is 0x%" PRIx32 ": has unknown bits",
                    o->outputs);
    if ((o->outputs & TOKMAP_STAGE_ROW_POSITIONS) && !(o->outputs & TOKMAP_STAGE_POSITION_IDS))
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "outputs has TOKMAP_STAGE_ROW_POSITIONS, but not TOKMAP_STAGE_POSITION_IDS");
    if (o->label_bytes == 4 && (o->ignore_index < INT32_MIN || o->ignore_index > INT32_MAX))
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "ignore_index is %" PRId64 ": does not fit labels of 4 bytes", o->ignore_index);
    if (is_slice && (o->edit || (o->outputs & TOKMAP_STAGE_ROW_POSITIONS)))
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s needs whole rows: set cp_size to 1",
                    o->edit ? "edit" : "TOKMAP_STAGE_ROW_POSITIONS");
    if (o->edit && of_pieces && !(o->loader->parts.wanted & TOKMAP_ROW_LOSS_MASK))
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "edit gets rows of pieces, which have labels that must be masked: open the "
                    "loader with row_parts = TOKMAP_ROW_LOSS_MASK");
    if (o->loader->lanes.n > 0)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "a stage does not take lanes: open its loader without them");
    for (uint32_t k = 0; (of_pieces || is_slice) && k < o->loader->samples.n_sources; k++)
        if (o->pad_id > UINT16_MAX && o->loader->samples.sources[k].token_bytes == 2)
            return FAIL(err, TOKMAP_ERR_ARGUMENT,
                        "pad_id is %" PRIu32
                        ": must be below 65,536 between pieces of 2-byte tokens",
                        o->pad_id);
    if (parts_needed(o) & ~o->loader->parts.wanted)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "these outputs need %s: open the loader with row_parts = %s",
                    is_slice ? "parts of rows" : "documents",
                    is_slice ? "TOKMAP_ROW_DOCUMENTS for cu_seqlens, TOKMAP_ROW_POSITION_IDS and "
                               "TOKMAP_ROW_DOCUMENT_IDS for ids"
                             : "TOKMAP_ROW_DOCUMENTS");
    if ((narrow_inputs || narrow_labels) && o->loader->samples.largest_id > INT32_MAX)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "the data have ids up to %" PRIu32
                    ", which int32 cannot hold: set input_bytes and label_bytes to 8",
                    o->loader->samples.largest_id);
    if (narrow_inputs && o->pad_id > INT32_MAX)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "pad_id is %" PRIu32 ", which int32 cannot hold: set input_bytes to 8",
                    o->pad_id);
    return TOKMAP_OK;
}

/* Decides the shape and the number of images. */
static tokmap_status size_images(tokmap_stage *s, tokmap_error *err)
{
    tokmap_stage_options *o = &s->options;
    const tokmap_loader *l = o->loader;
    const uint64_t n_inputs = (uint64_t)l->batch_rows * l->samples.length;
    const bool is_slice = l->slice.size > 1;
    const uint32_t parts = parts_needed(o);
    s->shape = (tokmap_i_image_shape){
        .n_rows = l->batch_rows,
        .length = l->samples.length / l->slice.size,
        .token_bytes = l->samples.token_bytes,
        .has_masks = (l->parts.wanted & TOKMAP_ROW_LOSS_MASK) || o->edit || is_slice ||
                     l->samples.o.windows == TOKMAP_WINDOWS_BEST_FIT,
        .has_documents = (parts & TOKMAP_ROW_DOCUMENTS) != 0,
        .n_slices = l->slice.size,
        .has_position_ids = is_slice && (parts & TOKMAP_ROW_POSITION_IDS),
        .has_document_ids = is_slice && (parts & TOKMAP_ROW_DOCUMENT_IDS)};
    const uint32_t most = (uint32_t)MIN(n_inputs, INT32_MAX - 1);
    if (o->max_boundaries == 0)
        o->max_boundaries = most;
    s->shape.max_boundaries = s->shape.has_documents ? MIN(o->max_boundaries, most) : 0;
    s->image_bytes = tokmap_i_image_bytes(&s->shape);
    if (s->image_bytes == 0)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "%" PRIu32 " rows of %" PRIu32
                    " inputs are too many for one batch on a device: at most 2^31 inputs and 4 GiB",
                    l->batch_rows, l->samples.length);
    s->image_bytes = round_up(s->image_bytes, 4096);
    if (o->n_host_slots == 0)
        o->n_host_slots =
            (uint32_t)MIN(DEFAULT_HOST_SLOTS, MAX(DEFAULT_HOST_BYTES / s->image_bytes, 2));
    s->n_cu = o->outputs & TOKMAP_STAGE_CU_SEQLENS ? o->max_boundaries + 1 : 0;
    s->step_samples = (uint64_t)l->n_ranks * l->batch_rows;
    return TOKMAP_OK;
}

/* ---- The device ---- */

static tokmap_status find_device(tokmap_stage *s, tokmap_error *err)
{
    int n = 0;
    tokmap_status status = TOKMAP_OK;
    if (s->options.device == TOKMAP_STAGE_HOST) {
        s->driver = tokmap_i_driver_host();
        return TOKMAP_OK;
    }
    if (!s->driver)
        status = tokmap_i_driver_find(&s->driver, err);
    if (status)
        return status;
    int error = s->driver->count_devices(&n);
    if (!error && s->options.device >= n)
        return FAIL(err, TOKMAP_ERR_DEVICE, "there is no device %" PRId32 ": the driver has %d",
                    s->options.device, n);
    if (!error)
        error = s->driver->get_device(&s->device, s->options.device);
    status = tokmap_i_stage_check(s, error, "finding the device", err);
    if (status)
        return status;
    error = s->driver->retain_context(&s->context, s->device);
    if (error)
        s->context = NULL; /* a driver may set it even if it fails */
    return tokmap_i_stage_check(s, error, "retaining the primary context", err);
}

static tokmap_status open_kernel(tokmap_stage *s, tokmap_error *err)
{
    const tokmap_i_driver *d = s->driver;
    char log[300] = "", what[400];
    int options[] = {TOKMAP_I_COMPILE_LOG, TOKMAP_I_COMPILE_LOG_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
    const int error = d->load_module(&s->module, tokmap_i_expand_ptx, 2, options, values);
    if (error)
        s->module = NULL; /* a driver may set it even if it fails */
    if (error == TOKMAP_I_DRIVER_NO_COMPILER)
        return FAIL(err, TOKMAP_ERR_DEVICE,
                    "device %" PRId32 ": the driver has no compiler for PTX: install the "
                    "libnvidia-ptxjitcompiler.so.1 of its version, or in a container ask for the "
                    "driver capability 'compute'",
                    s->options.device);
    snprintf(what, sizeof what, "compiling the kernel for the device%s%s", *log ? ": " : "", log);
    const tokmap_status status = tokmap_i_stage_check(s, error, what, err);
    return status
               ? status
               : tokmap_i_stage_check(s, d->get_function(&s->function, s->module, "tokmap_expand"),
                                      "finding the kernel", err);
}

/* Returns event n, below MOST_EVENTS: the events of host slots come first. */
static tokmap_i_event *event_at(tokmap_stage *s, uint32_t n)
{
    const uint32_t i = n % TOKMAP_I_STAGE_MAX_SLOTS;
    tokmap_i_device_slot *slot = &s->slots[i];
    tokmap_i_event *const events[] = {&s->host[i].read, &slot->ready, &slot->released,
                                      &slot->exported.returned};
    return events[n / TOKMAP_I_STAGE_MAX_SLOTS];
}

static tokmap_status open_events(tokmap_stage *s, tokmap_error *err)
{
    int error = 0;
    for (uint32_t n = 0; n < MOST_EVENTS && !error; n++) {
        const bool of_host = n < TOKMAP_I_STAGE_MAX_SLOTS;
        const unsigned blocking = of_host ? TOKMAP_I_EVENT_BLOCKING : 0;
        if (n % TOKMAP_I_STAGE_MAX_SLOTS < (of_host ? s->options.n_host_slots : s->options.n_slots))
            error = s->driver->create_event(event_at(s, n), TOKMAP_I_EVENT_NO_TIMING | blocking);
    }
    return tokmap_i_stage_check(s, error, "creating events", err);
}

/* ---- Memory ---- */

/* Returns the memory node of the host that is nearest to the device; -1: any. */
static int find_node(const tokmap_stage *s)
{
    static const int place[] = {TOKMAP_I_ATTRIBUTE_PCI_DOMAIN, TOKMAP_I_ATTRIBUTE_PCI_BUS,
                                TOKMAP_I_ATTRIBUTE_PCI_DEVICE};
    int node = -1, at[3] = {0};
    if (!s->driver->get_attribute(&node, TOKMAP_I_ATTRIBUTE_HOST_NUMA_ID, s->device) && node >= 0)
        return node;
    for (int i = 0; i < 3; i++)
        if (s->driver->get_attribute(&at[i], place[i], s->device))
            return -1;
    return tokmap_i_pci_node(at[0], at[1], at[2]);
}

/* Allocates host memory. If it cannot be pinned, copies still work, through a buffer of the driver;
 * a note reports that. */
static tokmap_status open_host_memory(tokmap_stage *s, tokmap_error *err)
{
    const uint32_t n = s->options.n_host_slots;
    s->host_bytes = n * s->image_bytes;
    void *memory = NULL;
    const int errno_value = tokmap_i_device_memory_take(s->host_bytes, find_node(s), &memory);
    if (errno_value)
        return FAIL_CAUSE(err, TOKMAP_ERR_MEMORY, errno_value, 0,
                          "cannot allocate %" PRIu64 " bytes for batches", s->host_bytes);
    s->host_memory = memory;
    for (uint32_t i = 0; i < n; i++)
        s->host[i].image.memory = s->host_memory + i * s->image_bytes;
    const int error = s->driver->register_host(memory, s->host_bytes, TOKMAP_I_REGISTER_PORTABLE);
    s->pinned = !error;
    if (error) {
        tokmap_error why;
        tokmap_i_stage_check(s, error, "pinning memory", &why);
        tokmap_i_stage_note(s, why.text, "batches are copied from memory that is not pinned");
    }
    return TOKMAP_OK;
}

static tokmap_status open_slot(tokmap_stage *s, tokmap_i_device_slot *slot, tokmap_error *err)
{
    const uint64_t n = (uint64_t)s->shape.n_rows * s->shape.length;
    const uint64_t n_bytes[] = {n * s->options.input_bytes, n * s->options.label_bytes, n * 4,
                                n * 4, (uint64_t)s->n_cu * 4};
    uint64_t slot_bytes = s->image_bytes;
    int error = s->driver->allocate(&slot->raw, s->image_bytes);
    for (int i = 0; i < TOKMAP_I_STAGE_OUTPUTS; i++) {
        if (!(s->options.outputs & 1u << i))
            continue;
        slot_bytes += n_bytes[i];
        if (!error)
            error = s->driver->allocate(&slot->outputs[i], n_bytes[i]);
    }
    s->device_bytes += slot_bytes;
    if (error == TOKMAP_I_DRIVER_OUT_OF_MEMORY)
        return FAIL(err,
                    s->options.device == TOKMAP_STAGE_HOST ? TOKMAP_ERR_MEMORY : TOKMAP_ERR_DEVICE,
                    "out of memory for %" PRIu32 " slots of %" PRIu64
                    " bytes on %s: set fewer slots, or fewer outputs",
                    s->options.n_slots, slot_bytes,
                    s->options.device == TOKMAP_STAGE_HOST ? "the host" : "the device");
    return tokmap_i_stage_check(s, error, "allocating device memory", err);
}

/* ---- Threads ---- */

static tokmap_status open_threads(tokmap_stage *s, tokmap_error *err)
{
    const size_t n_rows = s->shape.n_rows;
    s->rows = calloc(2 * n_rows, sizeof *s->rows);
    if (s->options.edit) {
        s->tokens = malloc(n_rows * (s->shape.length + 1ull) * s->shape.token_bytes);
        s->edit_copies = malloc(2 * n_rows * s->loader->samples.o.row_stride);
    }
    if (!s->rows || (s->options.edit && (!s->tokens || !s->edit_copies)))
        return FAIL_MEMORY(err);
    if (s->options.no_thread)
        return TOKMAP_OK;
    const int error = tokmap_i_thread_start(&s->thread, tokmap_i_stage_run_thread, s);
    s->has_thread = !error;
    return CHECK_IO(err, error, "cannot start the thread of the stage");
}

/* ---- Open and close ---- */

static void free_rows(tokmap_stage *s)
{
    free(s->rows);
    free(s->tokens);
    free(s->edit_copies);
    s->rows = NULL;
    s->tokens = s->edit_copies = NULL;
}

/* Frees everything; no tensor may be left. */
static void free_stage(tokmap_stage *s)
{
    const tokmap_i_driver *d = s->driver;
    int mode;
    const bool in_context = s->context && tokmap_i_stage_enter(s, &mode) == 0;
    for (uint32_t i = 0; i < TOKMAP_I_STAGE_MAX_SLOTS; i++) {
        for (int k = 0; k < TOKMAP_I_STAGE_OUTPUTS; k++)
            if (s->slots[i].outputs[k])
                d->free(s->slots[i].outputs[k]);
        if (s->slots[i].raw)
            d->free(s->slots[i].raw);
    }
    for (uint32_t n = 0; n < MOST_EVENTS; n++)
        if (*event_at(s, n))
            d->destroy_event(*event_at(s, n));
    if (s->module)
        d->unload_module(s->module);
    if (s->stream)
        d->destroy_stream(s->stream);
    if (in_context)
        tokmap_i_stage_leave(s, mode);
    if (s->context)
        d->release_context(s->device);
    tokmap_i_condition_free(&s->work);
    tokmap_i_condition_free(&s->news);
    tokmap_i_mutex_free(&s->mutex);
    tokmap_i_fork_mark_free(&s->fork_mark);
    free(s);
}

/* Frees the struct in a forked child, which has nothing else of the stage. */
static void close_in_child(tokmap_stage *s)
{
    free_rows(s);
    tokmap_i_tensor_free_late(s);
    if (s->n_tensors > 0) /* their deleters read the fork mark */
        return;
    tokmap_i_fork_mark_free(&s->fork_mark);
    free(s);
}

/* Stages whose last tensor was deleted after close. Freeing memory makes the driver wait for the
 * device, which a deleter must not. */
static _Atomic(tokmap_stage *) unfreed;

void tokmap_i_stage_free_later(tokmap_stage *s)
{
    s->next_unfreed = atomic_load(&unfreed);
    while (!atomic_compare_exchange_weak(&unfreed, &s->next_unfreed, s))
        continue;
}

static void free_unfreed(void)
{
    tokmap_stage *s = atomic_exchange(&unfreed, NULL);
    while (s) {
        tokmap_stage *next = s->next_unfreed;
        if (tokmap_i_fork_mark_is_child(&s->fork_mark))
            close_in_child(s);
        else
            free_stage(s);
        s = next;
    }
}

static tokmap_status open_stage(tokmap_stage *s, tokmap_error *err)
{
    int mode;
    tokmap_status status = check_options(&s->options, err);
    if (!status)
        status = check_outputs(&s->options, err);
    if (status)
        return status;
    if (s->options.loader->io == TOKMAP_IO_STORE)
        return FAIL(err, TOKMAP_ERR_UNSUPPORTED,
                    "a stage needs files on a disk, and the loader has a dataset in a store: copy "
                    "it, or move its batches to the device without a stage");
    int user = TOKMAP_I_LOADER_FREE;
    if (!atomic_compare_exchange_strong(&s->options.loader->user, &user, TOKMAP_I_LOADER_STAGED))
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s",
                    user == TOKMAP_I_LOADER_STAGED
                        ? "the loader already has a stage: close that one, or open another loader"
                        : "another thread is in a call of the loader");
    s->loader = s->options.loader;
    s->next_sample = tokmap_loader_position(s->loader);
    status = size_images(s, err);
    if (!status)
        status = tokmap_i_loader_leave_index_map(s->loader, err);
    if (!status)
        status = find_device(s, err);
    if (!status)
        status =
            tokmap_i_stage_check(s, tokmap_i_stage_enter(s, &mode), "entering the context", err);
    if (status)
        return status;
    status =
        tokmap_i_stage_check(s, s->driver->create_stream(&s->stream, TOKMAP_I_STREAM_NON_BLOCKING),
                             "creating a stream", err);
    if (!status)
        status = open_kernel(s, err);
    if (!status)
        status = open_events(s, err);
    if (!status)
        status = open_host_memory(s, err);
    for (uint32_t i = 0; i < s->options.n_slots && !status; i++)
        status = open_slot(s, &s->slots[i], err);
    if (!status)
        status = tokmap_i_stage_start_kernel(s, err);
    tokmap_i_stage_leave(s, mode);
    return status ? status : open_threads(s, err);
}

tokmap_status tokmap_i_stage_open(tokmap_stage **out, const tokmap_stage_options *options,
                                  const tokmap_i_driver *driver, tokmap_error *err)
{
    tokmap_i_error_clear(err);
    if (!out || !options)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "tokmap_stage_open: an argument is NULL");
    *out = NULL;
    free_unfreed();
    tokmap_stage *s = calloc(1, sizeof *s);
    if (!s)
        return FAIL_MEMORY(err);
    s->driver = driver;
    tokmap_i_fork_mark_set(&s->fork_mark);
    tokmap_i_mutex_init(&s->mutex);
    tokmap_i_condition_init(&s->work);
    tokmap_i_condition_init(&s->news);
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_stage_options, edit)};
    tokmap_status status = tokmap_i_take_options(&s->options, options, &kind, err);
    if (!status)
        status = open_stage(s, err);
    tokmap_i_stage_send_notes(s);
    if (status)
        tokmap_stage_close(s);
    else
        *out = s;
    return status;
}

tokmap_status tokmap_stage_open(tokmap_stage **out, const tokmap_stage_options *options,
                                tokmap_error *err)
{
    return tokmap_i_stage_open(out, options, NULL, err);
}

void tokmap_stage_close(tokmap_stage *s)
{
    int mode;
    free_unfreed();
    if (!s)
        return;
    if (tokmap_i_fork_mark_is_child(&s->fork_mark)) {
        close_in_child(s);
        return;
    }
    if (s->has_thread) {
        tokmap_i_mutex_lock(&s->mutex);
        s->quitting = true;
        tokmap_i_condition_signal(&s->work);
        tokmap_i_mutex_unlock(&s->mutex);
        tokmap_i_thread_join(s->thread);
    }
    const bool in_context = s->context && tokmap_i_stage_enter(s, &mode) == 0;
    /* Waits for work of the device that uses the memory of the stage. */
    if (s->stream)
        s->driver->wait_stream(s->stream);
    for (uint32_t n = 0; n < MOST_EVENTS; n++)
        if (*event_at(s, n))
            s->driver->wait_event(*event_at(s, n));
    if (s->pinned) /* tensors do not use host memory */
        s->driver->unregister_host(s->host_memory);
    tokmap_i_device_memory_give_back(s->host_memory, s->host_bytes);
    free_rows(s);
    if (in_context)
        tokmap_i_stage_leave(s, mode);
    if (s->loader) {
        tokmap_i_loader_go_to(s->loader, s->next_sample, NULL);
        atomic_store(&s->loader->user, TOKMAP_I_LOADER_FREE);
    }
    tokmap_i_mutex_lock(&s->mutex);
    s->closed = true; /* from here on a deleter adds no late tensor */
    tokmap_i_tensor_free_late(s);
    const bool has_tensors = s->n_tensors > 0;
    tokmap_i_mutex_unlock(&s->mutex);
    if (!has_tensors)
        free_stage(s);
}

tokmap_status tokmap_stage_count_devices(uint32_t *n_devices, tokmap_error *err)
{
    const tokmap_i_driver *driver;
    int n = 0;
    tokmap_i_error_clear(err);
    if (!n_devices)
        return FAIL_NULL(err);
    *n_devices = 0;
    const tokmap_status status = tokmap_i_driver_find(&driver, err);
    if (status)
        return status;
    const int error = driver->count_devices(&n);
    if (error || n < 1)
        return FAIL(err, TOKMAP_ERR_DEVICE, "the driver finds no device: error %d", error);
    *n_devices = (uint32_t)n;
    return TOKMAP_OK;
}
