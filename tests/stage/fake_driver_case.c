/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/fake_driver_case.h"

/* What a sample becomes. */
typedef struct case_sample {
    int32_t inputs[CASE_LENGTH], labels[CASE_LENGTH];
    int32_t positions[CASE_LENGTH], documents[CASE_LENGTH], boundaries[CASE_LENGTH + 1];
    uint32_t n_boundaries, longest;
} case_sample;

static case_sample case_samples[CASE_SAMPLES];

tokmap_loader *case_loader(uint32_t n_rows)
{
    return open_loader(&(options){.length = CASE_LENGTH,
                                  .n_rows = n_rows,
                                  .row_parts = ALL_PARTS,
                                  .windows = TOKMAP_WINDOWS_WITHIN_DOCUMENT,
                                  .io = TOKMAP_IO_MAP});
}

static void case_note(case_sample *c, const tokmap_row *row)
{
    for (uint32_t i = 0; i < CASE_LENGTH; i++) {
        const bool there = i + 1 < row->n_tokens;
        c->inputs[i] = there ? (int32_t)corpus_id(row, i) : CASE_PAD;
        c->labels[i] = there && row->loss_mask[i] ? (int32_t)corpus_id(row, i + 1) : CASE_IGNORE;
        c->positions[i] = row->position_ids[i];
        c->documents[i] = row->document_ids[i];
    }
    c->n_boundaries = row->n_documents;
    for (uint32_t d = 0; d < row->n_documents; d++)
        c->boundaries[d] = row->cu_seqlens[d];
    if (row->n_tokens <= CASE_LENGTH)
        c->boundaries[c->n_boundaries++] = (int32_t)row->n_tokens - 1;
    c->longest = MAX(row->longest_document, CASE_LENGTH + 1 - row->n_tokens);
}

void case_open(void)
{
    corpus_random_state = 1;
    open_corpus_of(8);
    tokmap_loader *l = case_loader(1);
    for (uint32_t g = 0; g < CASE_SAMPLES; g++) {
        tokmap_batch batch = corpus_next(l);
        CHECK_EQ(batch.first_sample, g);
        case_note(&case_samples[g], &batch.rows[0]);
    }
    tokmap_loader_close(l);
}

/* ---- Looking at a batch, on the device ---- */

atomic_uint_fast64_t case_n_looks;

static void case_expect(const case_look *look, int output, uint32_t i, int64_t expected)
{
    const uint32_t widths[] = {look->input_bytes, look->label_bytes, 4, 4, 4};
    static const char *const names[] = {"input", "label", "position", "document", "cu_seqlens"};
    const uint8_t *array = look->outputs[output] ? fake_at(look->outputs[output], 4) : NULL;
    if (array && value(array, widths[output], i) != expected)
        fake_breach("%s %u of the batch at sample %" PRIu64 " is %" PRId64 ", not %" PRId64,
                    names[output], i, look->first_sample, value(array, widths[output], i),
                    expected);
}

/* Runs in the driver, with its mutex held. */
static void case_look_now(void *context)
{
    case_look *look = context;
    uint32_t n_boundaries = 0;
    for (uint32_t r = 0; r < CASE_ROWS; r++) {
        const case_sample *c = &case_samples[look->first_sample + r];
        for (uint32_t i = 0; i < CASE_LENGTH; i++) {
            const uint32_t at = r * CASE_LENGTH + i;
            case_expect(look, 0, at, c->inputs[i]);
            case_expect(look, 1, at, c->labels[i]);
            case_expect(look, 2, at, c->positions[i]);
            case_expect(look, 3, at, c->documents[i]);
        }
        for (uint32_t d = 0; d < c->n_boundaries; d++)
            case_expect(look, 4, n_boundaries++, (int32_t)(r * CASE_LENGTH) + c->boundaries[d]);
    }
    for (; n_boundaries <= CASE_INPUTS; n_boundaries++)
        case_expect(look, 4, n_boundaries, CASE_INPUTS);
    case_n_looks++;
    free(look);
}

/* ---- A stage ---- */

#define CALLERS_CONTEXT ((void *)(uintptr_t)0x77)
enum {
    CALLERS_MODE = 1
};

void case_begin_caller(void)
{
    fake_thread.stack[0] = CALLERS_CONTEXT;
    fake_thread.n = 1;
    fake_thread.mode = CALLERS_MODE;
}

void case_check_caller(void)
{
    if (fake.failed & FAKE_BIT(FAKE_POP) || fake.failed_to_restore)
        case_begin_caller();
    CHECK_INT(fake_thread.n, 1);
    CHECK(fake_thread.stack[0] == CALLERS_CONTEXT);
    CHECK_INT(fake_thread.mode, CALLERS_MODE);
}

static void case_hung(int signal)
{
    static const char text[] = "FAIL hung: a call waits for what never comes\n";
    (void)signal;
    (void)!write(1, text, sizeof text - 1);
    _exit(1);
}

void case_watch(void)
{
    signal(SIGALRM, case_hung);
    alarm(600);
}

/* The stage logs one line at a time. */
static void case_log(void *context, const char *text)
{
    stage_case *c = context;
    snprintf(c->log, sizeof c->log, "%s", text);
    c->n_logs++;
}

const tokmap_i_driver *case_driver = &fake_driver;

tokmap_status case_try_stage(stage_case *c, tokmap_stage_options o, tokmap_error *err)
{
    o.struct_size = sizeof o;
    o.loader = c->loader;
    o.outputs = ALL;
    o.pad_id = CASE_PAD;
    o.input_bytes = o.input_bytes ? o.input_bytes : 4;
    o.label_bytes = o.label_bytes ? o.label_bytes : 8;
    o.log = o.log ? o.log : case_log;
    o.context = c;
    c->options = o;
    c->n_logs = 0;
    c->position = tokmap_loader_position(c->loader);
    c->stage = NULL;
    fake.is_open = false;
    const tokmap_status status = tokmap_i_stage_open(&c->stage, &o, case_driver, err);
    fake.is_open = status == TOKMAP_OK;
    return status;
}

void case_open_stage(stage_case *c, tokmap_stage_options o)
{
    tokmap_error err;
    case_watch();
    c->loader = case_loader(CASE_ROWS);
    CHECK_OK(case_try_stage(c, o, &err), err);
}

void case_close_stage(stage_case *c)
{
    tokmap_stage_close(c->stage);
    CHECK_EQ(tokmap_loader_position(c->loader), c->position);
    tokmap_loader_close(c->loader);
    c->stage = NULL;
    c->loader = NULL;
}

/* The host's part of a batch. */
static void case_check_host(const stage_case *c, const tokmap_stage_batch *b)
{
    uint32_t n_boundaries = 0, longest = 0;
    CHECK(c->position + CASE_ROWS <= CASE_SAMPLES);
    for (uint32_t r = 0; r < CASE_ROWS; r++) {
        n_boundaries += case_samples[c->position + r].n_boundaries;
        longest = MAX(longest, case_samples[c->position + r].longest);
    }
    CHECK_EQ(b->first_sample, c->position);
    CHECK_EQ(b->step_sample, c->position);
    CHECK_EQ(b->n_rows, CASE_ROWS);
    CHECK_EQ(b->sequence_length, CASE_LENGTH);
    CHECK_EQ(b->n_documents, n_boundaries);
    CHECK_EQ(b->max_seqlen, longest);
}

void case_use(const stage_case *c, const tokmap_stage_batch *b, tokmap_i_stream stream)
{
    case_look *look = malloc(sizeof *look);
    CHECK(look != NULL);
    *look = (case_look){.outputs = {(uintptr_t)b->inputs, (uintptr_t)b->labels,
                                    (uintptr_t)b->position_ids, (uintptr_t)b->document_ids,
                                    (uintptr_t)b->cu_seqlens},
                        .first_sample = b->first_sample,
                        .input_bytes = c->options.input_bytes,
                        .label_bytes = c->options.label_bytes};
    fake_add_call(stream, case_look_now, look);
}

tokmap_status case_try_next(stage_case *c, tokmap_stage_batch *b, tokmap_i_stream stream,
                            tokmap_error *err)
{
    *b = (tokmap_stage_batch){.struct_size = sizeof *b};
    const tokmap_status status = tokmap_stage_next(c->stage, b, stream, err);
    if (!status) {
        case_check_host(c, b);
        c->position += CASE_ROWS;
        case_use(c, b, stream);
    }
    CHECK_EQ(tokmap_stage_position(c->stage), c->position);
    return status;
}

void case_next(stage_case *c, tokmap_stage_batch *b, tokmap_i_stream stream)
{
    tokmap_error err;
    CHECK_OK(case_try_next(c, b, stream, &err), err);
}

void case_release(stage_case *c, const tokmap_stage_batch *b, tokmap_i_stream stream)
{
    tokmap_error err;
    case_use(c, b, stream);
    CHECK_OK(tokmap_stage_release(c->stage, b, stream, &err), err);
}

tokmap_stage_batch case_memory(const stage_case *c)
{
    return (tokmap_stage_batch){
        .struct_size = sizeof(tokmap_stage_batch),
        .inputs = (void *)(uintptr_t)fake_take(CASE_INPUTS * c->options.input_bytes),
        .labels = (void *)(uintptr_t)fake_take(CASE_INPUTS * c->options.label_bytes),
        .position_ids = (void *)(uintptr_t)fake_take(CASE_INPUTS * 4),
        .document_ids = (void *)(uintptr_t)fake_take(CASE_INPUTS * 4),
        .cu_seqlens = (void *)(uintptr_t)fake_take((CASE_INPUTS + 1) * 4)};
}

tokmap_status case_try_fill(stage_case *c, const tokmap_stage_batch *memory, tokmap_i_stream stream,
                            tokmap_error *err)
{
    tokmap_stage_batch b = *memory;
    const tokmap_status status = tokmap_stage_fill(c->stage, &b, stream, err);
    if (!status) {
        case_check_host(c, &b);
        CHECK(b.inputs == memory->inputs && b.cu_seqlens == memory->cu_seqlens);
        c->position += CASE_ROWS;
        case_use(c, &b, stream);
    }
    CHECK_EQ(tokmap_stage_position(c->stage), c->position);
    return status;
}

dlpack *case_export(stage_case *c, const tokmap_stage_batch *b, uint32_t output,
                    tokmap_i_stream stream)
{
    tokmap_error err;
    tokmap_stage_tensor t = {.struct_size = sizeof t, .output = output, .stream = stream};
    CHECK_OK(tokmap_stage_export(c->stage, b, &t, &err), err);
    return t.managed;
}

void case_settle(void)
{
    pthread_mutex_lock(&fake.mutex);
    while (fake_run_any())
        continue;
    for (int k = 0; k < FAKE_STREAMS; k++)
        if (fake.streams[k].head < fake.streams[k].n_ops)
            fake_breach("stream %d never comes to its end", k);
    pthread_mutex_unlock(&fake.mutex);
    fake_check();
}
