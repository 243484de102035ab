/* SPDX-License-Identifier: Apache-2.0 */
/* The stage and its kernel on a real device: `make gpu-test`. Skips without one. */
#include "expand_ptx.h"
#include "stage/driver.h"
#include "stage/expand_case.h"
#include "system/platform_library.h"
#include "stage/stage_case.h"
#include "support/must.h"

/* What a caller's own code does with the driver. */
static struct {
    const tokmap_i_driver *driver;
    void *context;
    int (*get_context)(void **context);
    int (*set_context)(void *context);
    int (*wait_for_all)(void);
    int (*download)(void *to, uint64_t from, size_t n_bytes);
    int (*upload)(uint64_t to, const void *from, size_t n_bytes);
    int (*copy_on_device)(uint64_t to, uint64_t from, size_t n_bytes, void *stream);
    int (*set)(uint64_t at, unsigned char value, size_t n_bytes);
    int (*begin_capture)(void *stream, int mode);
    int (*end_capture)(void *stream, void **graph);
    int (*make_graph)(void **runnable, void *graph, unsigned long long flags);
    int (*launch_graph)(void *runnable, void *stream);
} gpu;

static void need(int error, const char *what)
{
    const char *text = "";
    if (error && gpu.driver->get_error_text(error, &text))
        text = "?";
    if (error)
        CHECK_FAIL("%s: error %d, %s", what, error, text);
}

static void find(void *library, const char *name, void *function)
{
    if (!tokmap_i_library_find(library, name, function))
        CHECK_FAIL("the driver has no %s", name);
}

static void open_gpu(void)
{
    tokmap_error err;
    char why[200];
    int device = 0;
    if (tokmap_i_driver_find(&gpu.driver, &err))
        SKIP("no device: %s", err.text);
    if (gpu.context)
        return;
    void *library = tokmap_i_library_open("libcuda.so.1", why, sizeof why);
    find(library, "cuCtxGetCurrent", &gpu.get_context);
    find(library, "cuCtxSetCurrent", &gpu.set_context);
    find(library, "cuCtxSynchronize", &gpu.wait_for_all);
    find(library, "cuMemcpyDtoH_v2", &gpu.download);
    find(library, "cuMemcpyHtoD_v2", &gpu.upload);
    find(library, "cuMemcpyDtoDAsync_v2", &gpu.copy_on_device);
    find(library, "cuMemsetD8_v2", &gpu.set);
    find(library, "cuStreamBeginCapture_v2", &gpu.begin_capture);
    find(library, "cuStreamEndCapture", &gpu.end_capture);
    find(library, "cuGraphInstantiateWithFlags", &gpu.make_graph);
    find(library, "cuGraphLaunch", &gpu.launch_graph);
    need(gpu.driver->get_device(&device, 0), "device 0");
    need(gpu.driver->retain_context(&gpu.context, device), "its context");
    need(gpu.set_context(gpu.context), "entering it");
}

static void *new_stream(void)
{
    void *stream;
    need(gpu.driver->create_stream(&stream, TOKMAP_I_STREAM_NON_BLOCKING), "a stream");
    return stream;
}

static uint64_t allocate(size_t n_bytes)
{
    uint64_t address;
    need(gpu.driver->allocate(&address, n_bytes), "device memory");
    need(gpu.set(address, 0xA5, n_bytes), "filling it");
    need(gpu.wait_for_all(), "its end"); /* streams of the tests do not wait for the default one */
    return address;
}

/* ---- The kernel ---- */

static void *kernel;

/* Outputs cross the bus in both directions, so that what the kernel leaves alone stays. */
static void run_on_device(const tokmap_i_expand_job *job, size_t image_bytes)
{
    const size_t n = (size_t)job->n_rows * job->length;
    const size_t sizes[EXPAND_OUTPUTS] = {n * job->input_bytes, n * job->label_bytes, n * 4, n * 4,
                                          (size_t)job->n_cu * 4};
    tokmap_i_expand_job there = *job;
    uint64_t *const places[EXPAND_OUTPUTS] = {&there.inputs, &there.labels, &there.position_ids,
                                              &there.document_ids, &there.cu_seqlens};
    void *outputs[EXPAND_OUTPUTS], *parameters[] = {&there};
    there.image = allocate(image_bytes);
    need(gpu.upload(there.image, (const void *)(uintptr_t)job->image, image_bytes), "an image");
    for (int i = 0; i < EXPAND_OUTPUTS; i++) {
        outputs[i] = (void *)(uintptr_t)*places[i];
        if (!outputs[i])
            continue;
        *places[i] = allocate(sizes[i]);
        need(gpu.upload(*places[i], outputs[i], sizes[i]), "outputs to the device");
    }
    need(gpu.driver->launch(kernel, job->n_rows * job->n_tiles, 1, 1, TOKMAP_I_BLOCK_THREADS, 1, 1,
                            0, NULL, parameters, NULL),
         "the kernel");
    need(gpu.wait_for_all(), "the kernel's end");
    for (int i = 0; i < EXPAND_OUTPUTS; i++) {
        if (!outputs[i])
            continue;
        need(gpu.download(outputs[i], *places[i], sizes[i]), "outputs to the host");
        gpu.driver->free(*places[i]);
    }
    gpu.driver->free(there.image);
}

TEST(the_kernel_writes_what_its_twin_writes)
{
    static expand_run *const run = run_on_device;
    static const char *const name = "the device";
    void *module;
    open_gpu();
    need(gpu.driver->load_module(&module, tokmap_i_expand_ptx, 0, NULL, NULL),
         "compiling the kernel");
    need(gpu.driver->get_function(&kernel, module, "tokmap_expand"), "finding the kernel");
    for (uint32_t k = 0; k < 60; k++) {
        static const uint32_t near[] = {1, 31, 2047, 2048, 2049, 4096, 4097};
        plan p = random_plan();
        p.length = k < 7 ? near[k] : p.length;
        p.n_cu = k < 7 ? 0 : p.n_cu;
        check_plan(&p, &run, &name, 1);
    }
    gpu.driver->unload_module(module);
}

/* ---- The stage ---- */

typedef struct download {
    int64_t inputs[MAX_ROWS * LENGTH], labels[MAX_ROWS * LENGTH];
    int32_t positions[MAX_ROWS * LENGTH], documents[MAX_ROWS * LENGTH],
        boundaries[MAX_ROWS * LENGTH + 1];
} download;

static uint64_t address(const void *p)
{
    return (uintptr_t)p;
}

static tokmap_stage_batch fetch(const tokmap_stage_batch *b, download *d)
{
    tokmap_stage_batch host = *b;
    need(gpu.download(d->inputs, address(b->inputs), sizeof d->inputs / 2), "inputs");
    need(gpu.download(d->labels, address(b->labels), sizeof d->labels / 2), "labels");
    need(gpu.download(d->positions, address(b->position_ids), sizeof d->positions), "positions");
    need(gpu.download(d->documents, address(b->document_ids), sizeof d->documents), "documents");
    need(gpu.download(d->boundaries, address(b->cu_seqlens), sizeof d->boundaries), "boundaries");
    host.inputs = d->inputs;
    host.labels = d->labels;
    host.position_ids = d->positions;
    host.document_ids = d->documents;
    host.cu_seqlens = d->boundaries;
    return host;
}

static void say(void *context, const char *text)
{
    (void)context;
    printf("note %s\n", text);
}

/* What most tests have: two loaders of the same samples, one of them with a stage. */
static tokmap_loader *mine, *l;
static tokmap_stage *s;
static tokmap_error err;

static void begin(const options *lo, tokmap_stage_options so)
{
    open_gpu();
    open_corpus();
    mine = open_loader(lo);
    l = open_loader(lo);
    so.log = say;
    s = open_stage(l, so);
}

static void end(void)
{
    tokmap_stage_close(s);
    tokmap_loader_close(l);
    tokmap_loader_close(mine);
    close_corpus();
}

static void run_variant(tokmap_stage_options o, tokmap_windows windows)
{
    static download d;
    void *stream = new_stream(), *before = NULL, *after = NULL;
    o.input_bytes = o.label_bytes = 4;
    need(gpu.get_context(&before), "the context");
    begin(&(options){.row_parts = ALL_PARTS, .windows = windows}, o);
    o.ignore_index = o.has_ignore_index ? o.ignore_index : -100;
    for (int step = 0; step < 40; step++) {
        tokmap_stage_batch b;
        tokmap_batch rows = corpus_next(mine);
        next(s, &b, stream);
        need(gpu.driver->wait_stream(stream), "the stream");
        const tokmap_stage_batch host = fetch(&b, &d);
        check_batch(&host, &rows, &o);
        release(s, &b, stream);
    }
    end();
    need(gpu.get_context(&after), "the context");
    CHECK(before == after);
}

TEST(hands_out_what_the_loader_says_in_every_variant)
{
    open_gpu();
    for (size_t v = 0; v < N_VARIANTS; v++) {
        run_variant(variants[v], TOKMAP_WINDOWS_CONCAT);
        run_variant(variants[v], TOKMAP_WINDOWS_WITHIN_DOCUMENT);
    }
}

/* Inputs of steps that were copied to `kept` are those of the loader. */
static void check_kept(uint64_t kept, int32_t *seen, uint32_t n_steps)
{
    const uint32_t n = MAX_ROWS * LENGTH;
    need(gpu.wait_for_all(), "the device");
    need(gpu.download(seen, kept, (size_t)n_steps * n * sizeof *seen), "what was kept");
    for (uint32_t step = 0; step < n_steps; step++) {
        tokmap_batch rows = corpus_next(mine);
        for (uint32_t at = 0; at < n; at++)
            CHECK_INT(seen[step * n + at], corpus_id(&rows.rows[at / LENGTH], at % LENGTH));
    }
}

/* Nothing waits on the host: copies that stand in two streams see the batch of their step. */
TEST(streams_see_their_own_batches_without_the_host)
{
    enum {
        STEPS = 500,
        N = MAX_ROWS * LENGTH
    };
    static int32_t seen[STEPS * N];
    open_gpu();
    for (uint32_t n_slots = 2; n_slots < 5; n_slots++) {
        begin(&(options){0}, (tokmap_stage_options){.n_slots = n_slots});
        void *streams[2] = {new_stream(), new_stream()};
        const uint64_t kept = allocate(sizeof seen);
        for (uint32_t step = 0; step < STEPS; step++) {
            tokmap_stage_batch b;
            next(s, &b, streams[step % 2]);
            need(gpu.copy_on_device(kept + (uint64_t)step * N * 4, address(b.inputs), N * 4,
                                    streams[step % 2]),
                 "copying");
            release(s, &b, streams[step % 2]);
        }
        check_kept(kept, seen, STEPS);
        gpu.driver->free(kept);
        end();
    }
}

/* Each is copied late, when it is released, in the stream of its step. */
TEST(batches_that_are_held_are_not_written_over_whatever_their_order)
{
    enum {
        STEPS = 400,
        SLOTS = 5,
        N = MAX_ROWS * LENGTH
    };
    static int32_t seen[STEPS * N];
    tokmap_stage_batch held[SLOTS];
    uint32_t steps[SLOTS], n_held = 0;
    begin(&(options){0}, (tokmap_stage_options){.n_slots = SLOTS});
    void *streams[2] = {new_stream(), new_stream()};
    const uint64_t kept = allocate(sizeof seen);
    for (uint32_t step = 0; step < STEPS || n_held > 0;) {
        if (step < STEPS && n_held < SLOTS - 1 && (n_held == 0 || corpus_any(2))) {
            next(s, &held[n_held], streams[step % 2]);
            steps[n_held++] = step++;
            continue;
        }
        const uint32_t i = corpus_any(n_held), at = steps[i];
        need(gpu.copy_on_device(kept + (uint64_t)at * N * 4, address(held[i].inputs), N * 4,
                                streams[at % 2]),
             "copying");
        release(s, &held[i], streams[at % 2]);
        held[i] = held[--n_held];
        steps[i] = steps[n_held];
    }
    check_kept(kept, seen, STEPS);
    gpu.driver->free(kept);
    end();
}

TEST(graphs_read_what_fill_has_written)
{
    enum {
        N = MAX_ROWS * LENGTH
    };
    static int32_t seen[N];
    void *graph, *runnable;
    begin(&(options){0}, (tokmap_stage_options){0});
    void *stream = new_stream();
    const uint64_t inputs = allocate(sizeof seen), copy = allocate(sizeof seen);
    tokmap_stage_batch b = {.struct_size = sizeof b, .inputs = (void *)(uintptr_t)inputs};
    need(gpu.begin_capture(stream, TOKMAP_I_CAPTURE_RELAXED), "capturing");
    CHECK_REFUSED(tokmap_stage_fill(s, &b, stream, &err), TOKMAP_ERR_ARGUMENT, err, "captured");
    need(gpu.copy_on_device(copy, inputs, sizeof seen, stream), "a node of the graph");
    need(gpu.end_capture(stream, &graph), "a graph");
    need(gpu.make_graph(&runnable, graph, 0), "a graph that runs");
    for (int step = 0; step < 50; step++) {
        tokmap_batch rows = corpus_next(mine);
        CHECK_OK(tokmap_stage_fill(s, &b, stream, &err), err);
        need(gpu.launch_graph(runnable, stream), "the graph");
        need(gpu.driver->wait_stream(stream), "its end");
        need(gpu.download(seen, copy, sizeof seen), "its copy");
        for (uint32_t at = 0; at < N; at++)
            CHECK_INT(seen[at], corpus_id(&rows.rows[at / LENGTH], at % LENGTH));
    }
    end();
}

TEST(a_device_that_is_not_there_is_refused)
{
    uint32_t n = 0;
    open_gpu();
    CHECK_INT(tokmap_stage_count_devices(&n, &err), TOKMAP_OK);
    CHECK(n > 0);
    open_corpus();
    l = open_loader(&(options){0});
    const tokmap_stage_options o = {.struct_size = sizeof o, .loader = l, .device = (int32_t)n};
    CHECK_REFUSED(tokmap_stage_open(&s, &o, &err), TOKMAP_ERR_DEVICE, err, "there is no device");
    tokmap_loader_close(l);
    close_corpus();
}

TEST(a_child_is_told_that_the_driver_is_the_parents)
{
    open_gpu();
    if (check_sanitized())
        SKIP("a sanitizer with threads and fork");
    begin(&(options){0}, (tokmap_stage_options){0});
    const pid_t child = fork();
    if (child == 0) {
        uint32_t n;
        tokmap_stage_batch b = {.struct_size = sizeof b};
        const bool told = tokmap_stage_next(s, &b, NULL, &err) == TOKMAP_ERR_FORKED &&
                          tokmap_stage_count_devices(&n, &err) == TOKMAP_ERR_FORKED;
        tokmap_stage_close(s);
        _exit(told ? 0 : 1);
    }
    must_end(child);
    end();
}

TEST(says_what_it_moved_and_how_long_steps_waited)
{
    begin(&(options){0}, (tokmap_stage_options){0});
    tokmap_stage_info info = {.struct_size = sizeof info};
    void *stream = new_stream();
    for (int i = 0; i < 200; i++) {
        tokmap_stage_batch b;
        next(s, &b, stream);
        release(s, &b, stream);
    }
    tokmap_stage_get_info(s, &info);
    CHECK_EQ(info.n_batches, 200);
    CHECK(info.bytes_moved > info.n_tokens * 2);
    printf("note pinned %d, waits p50 %llu p99 %llu max %llu ns, %llu of 200 late\n",
           (int)info.pinned, (unsigned long long)info.wait_p50_ns,
           (unsigned long long)info.wait_p99_ns, (unsigned long long)info.wait_max_ns,
           (unsigned long long)info.n_late);
    end();
}
