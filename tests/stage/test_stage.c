/* SPDX-License-Identifier: Apache-2.0 */
/* The stage on the device that is always there: what it hands out is what the loader says, from
 * open to close, saved, restored, edited and exported. */
#include "stage/stage_case.h"
#include "support/bad_days.h"

static tokmap_stage *open_on_host(tokmap_loader *l, tokmap_stage_options o)
{
    o.device = TOKMAP_STAGE_HOST;
    return open_stage(l, o);
}

/* What most tests have: two loaders of the same samples, one of them with a stage. */
static tokmap_loader *mine, *l;
static tokmap_stage *s;
static tokmap_stage_batch b;
static tokmap_batch wanted;
static tokmap_error err;

static void begin(const options *o, tokmap_stage_options so)
{
    open_corpus();
    mine = open_loader(o);
    l = open_loader(o);
    s = open_on_host(l, so);
    b = (tokmap_stage_batch){.struct_size = sizeof b};
    wanted = (tokmap_batch){.struct_size = sizeof wanted};
}

static void end(void)
{
    tokmap_stage_close(s);
    tokmap_loader_close(l);
    tokmap_loader_close(mine);
    close_corpus();
}

static void expect_steps(int n, const tokmap_stage_options *so)
{
    for (int step = 0; step < n; step++) {
        wanted = corpus_next(mine);
        next(s, &b, NULL);
        check_batch(&b, &wanted, so ? so : &(tokmap_stage_options){.ignore_index = -100});
        CHECK_EQ(tokmap_stage_position(s), tokmap_loader_position(mine));
        release(s, &b, NULL);
    }
}

static void run_variant(const tokmap_stage_options *given, tokmap_windows windows)
{
    tokmap_stage_options so = *given;
    begin(&(options){.row_parts = ALL_PARTS, .windows = windows}, so);
    so.ignore_index = so.has_ignore_index ? so.ignore_index : -100;
    expect_steps(60, &so);
    tokmap_stage_close(s);
    s = NULL;
    CHECK_EQ(tokmap_loader_position(l), tokmap_loader_position(mine));
    end();
}

TEST(hands_out_what_the_loader_says_in_every_variant)
{
    for (size_t v = 0; v < N_VARIANTS; v++) {
        run_variant(&variants[v], TOKMAP_WINDOWS_CONCAT);
        run_variant(&variants[v], TOKMAP_WINDOWS_WITHIN_DOCUMENT);
    }
}

/* ---- Position ---- */

TEST(goes_on_exactly_after_save_with_other_rows_and_slots)
{
    uint8_t state[TOKMAP_STATE_BYTES], plain[TOKMAP_STATE_BYTES];
    const uint64_t of_corpus = corpus_random_state;
    begin(&(options){.row_parts = ALL_PARTS}, (tokmap_stage_options){.outputs = ALL});
    expect_steps(9, NULL);
    CHECK_INT(tokmap_stage_save(s, state, &err), TOKMAP_OK);
    CHECK_INT(tokmap_loader_save(mine, plain, &err), TOKMAP_OK);
    CHECK(memcmp(state, plain, sizeof state) == 0);
    end();
    corpus_random_state = of_corpus; /* the same once more */
    begin(&(options){.row_parts = ALL_PARTS, .n_rows = 3},
          (tokmap_stage_options){.outputs = ALL, .no_thread = 1});
    expect_steps(1, NULL);
    CHECK_INT(tokmap_stage_restore(s, state, &err), TOKMAP_OK);
    CHECK_INT(tokmap_loader_restore(mine, state, &err), TOKMAP_OK);
    expect_steps(9, NULL);
    state[30] ^= 1;
    CHECK_INT(tokmap_stage_restore(s, state, &err), TOKMAP_ERR_CORRUPT);
    end();
}

TEST(says_the_end_in_its_place_and_goes_on_after_seek)
{
    begin(&(options){.row_parts = ALL_PARTS, .max_epochs = 1},
          (tokmap_stage_options){.outputs = ALL});
    for (int round = 0; round < 3; round++) {
        uint32_t n = 0;
        for (; tokmap_loader_next(mine, &wanted, &err) == TOKMAP_OK; n++) {
            next(s, &b, NULL);
            check_batch(&b, &wanted, &(tokmap_stage_options){.ignore_index = -100});
            release(s, &b, NULL);
        }
        CHECK(n > 5);
        CHECK_INT(tokmap_stage_next(s, &b, NULL, &err), TOKMAP_END);
        CHECK_REFUSED(tokmap_stage_next(s, &b, NULL, &err), TOKMAP_END, err, "epochs");
        CHECK_INT(tokmap_stage_seek(s, (uint64_t)round * MAX_ROWS, &err), TOKMAP_OK);
        CHECK_INT(tokmap_loader_seek(mine, (uint64_t)round * MAX_ROWS, &err), TOKMAP_OK);
    }
    CHECK_INT(tokmap_stage_seek(s, UINT64_MAX, &err), TOKMAP_ERR_ARGUMENT);
    next(s, &b, NULL);
    end(); /* with a batch that is held */
}

/* ---- Holding ---- */

TEST(keeps_batches_that_are_held_and_refuses_one_too_many)
{
    enum {
        HELD = 4
    };
    tokmap_stage_batch held[HELD];
    begin(&(options){.row_parts = ALL_PARTS},
          (tokmap_stage_options){.outputs = ALL, .n_slots = HELD + 1});
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < HELD; i++)
            next(s, &held[i], NULL);
        CHECK_INT(tokmap_stage_next(s, &b, NULL, &err), TOKMAP_ERR_ARGUMENT);
        CHECK_SAYS(err.text, "n_slots to at least 6");
        for (int i = 0; i < HELD; i++) {
            wanted = corpus_next(mine);
            check_batch(&held[i], &wanted, &(tokmap_stage_options){.ignore_index = -100});
        }
        for (int i = 0; i < HELD; i++)
            release(s, &held[(i * 3 + round) % HELD], NULL);
        CHECK_INT(tokmap_stage_release(s, &held[0], NULL, &err), TOKMAP_ERR_ARGUMENT);
        CHECK_SAYS(err.text, "is not held");
    }
    end();
}

TEST(fills_memory_of_the_callers)
{
    static int32_t inputs[MAX_ROWS * LENGTH], positions[MAX_ROWS * LENGTH],
        documents[MAX_ROWS * LENGTH], boundaries[MAX_ROWS * LENGTH + 1];
    static int64_t labels[MAX_ROWS * LENGTH];
    for (int32_t no_thread = 0; no_thread < 2; no_thread++) {
        begin(&(options){.row_parts = ALL_PARTS},
              (tokmap_stage_options){.outputs = ALL, .no_thread = no_thread});
        for (int step = 0; step < 20; step++) {
            b = (tokmap_stage_batch){.struct_size = sizeof b,
                                     .inputs = inputs,
                                     .labels = labels,
                                     .position_ids = positions,
                                     .document_ids = documents,
                                     .cu_seqlens = boundaries};
            CHECK_OK(tokmap_stage_fill(s, &b, NULL, &err), err);
            CHECK(b.inputs == inputs && b.cu_seqlens == boundaries);
            wanted = corpus_next(mine);
            check_batch(&b, &wanted, &(tokmap_stage_options){.ignore_index = -100});
        }
        tokmap_stage_close(s);
        s = open_on_host(l, (tokmap_stage_options){.no_thread = no_thread});
        b = (tokmap_stage_batch){.struct_size = sizeof b, .position_ids = positions};
        CHECK_INT(tokmap_stage_fill(s, &b, NULL, &err), TOKMAP_ERR_ARGUMENT);
        CHECK_SAYS(err.text, "position_ids is not one of the outputs");
        b = (tokmap_stage_batch){.struct_size = sizeof b, .labels = (int32_t *)labels + 1};
        CHECK_INT(tokmap_stage_fill(s, &b, NULL, &err), TOKMAP_ERR_ARGUMENT);
        CHECK_SAYS(err.text, "labels is not aligned to 8 bytes");
        end();
    }
}

/* ---- Edit ---- */

typedef struct editor {
    uint16_t tokens[MAX_ROWS][LENGTH + 1];
    uint8_t masks[MAX_ROWS][LENGTH];
    uint64_t first_samples[100];
    uint32_t n_calls;
} editor;

/* The halves of each narrow row change places, and every third label counts. */
static void swap_halves(void *context, tokmap_row *rows, const tokmap_batch *batch)
{
    editor *e = context;
    e->first_samples[e->n_calls++ % 100] = batch->first_sample;
    for (uint32_t r = 0; r < batch->n_rows; r++) {
        if (rows[r].token_bytes != 2)
            continue;
        const uint32_t n = rows[r].n_tokens, half = n / 2;
        memcpy(e->tokens[r], (const uint16_t *)rows[r].tokens + half, (n - half) * 2);
        memcpy(e->tokens[r] + (n - half), rows[r].tokens, half * 2);
        for (uint32_t i = 0; i < LENGTH; i++)
            e->masks[r][i] = i % 3 == 0;
        rows[r].tokens = e->tokens[r];
        rows[r].loss_mask = e->masks[r];
    }
}

TEST(edited_rows_are_staged)
{
    static editor e;
    for (int32_t no_thread = 0; no_thread < 2; no_thread++) {
        e = (editor){0};
        begin(&(options){0},
              (tokmap_stage_options){.no_thread = no_thread, .edit = swap_halves, .context = &e});
        for (int step = 0; step < 20; step++) {
            wanted = corpus_next(mine);
            next(s, &b, NULL);
            for (uint32_t at = 0; at < b.n_rows * LENGTH; at++) {
                const tokmap_row *row = &wanted.rows[at / LENGTH];
                const uint32_t i = at % LENGTH, n = row->n_tokens, half = n / 2;
                const bool swapped = row->token_bytes == 2;
                const uint32_t now = swapped ? (i + half) % n : i;
                const uint32_t then = swapped ? (i + 1 + half) % n : i + 1;
                CHECK_INT(value(b.inputs, 4, at), corpus_id(row, now));
                CHECK_INT(value(b.labels, 8, at),
                          swapped && i % 3 ? -100 : (int64_t)corpus_id(row, then));
            }
            release(s, &b, NULL);
        }
        end();
        for (uint32_t i = 0; i < MIN(e.n_calls, 100); i++)
            CHECK_EQ(e.first_samples[i], i * MAX_ROWS);
    }
}

enum {
    MORE = 24 /* bytes that a newer header might have after a row */
};

/* A caller with a newer header: cuts a token off each row, and sets what the library does not
 * know. */
static void edit_newer_rows(void *context, tokmap_row *rows, const tokmap_batch *batch)
{
    const uint8_t *value = context;
    CHECK_EQ(batch->row_stride, sizeof(tokmap_row) + MORE);
    for (uint32_t r = 0; r < batch->n_rows; r++) {
        uint8_t *at = (uint8_t *)rows + (size_t)r * batch->row_stride;
        tokmap_row *row = (tokmap_row *)(void *)at;
        const tokmap_row *was =
            (const void *)((const uint8_t *)batch->rows + (size_t)r * batch->row_stride);
        CHECK(row->first_token == was->first_token && row->tokens == was->tokens);
        row->n_tokens--;
        at[batch->row_stride - 1] = *value;
    }
}

TEST(edits_rows_of_a_caller_with_a_newer_header)
{
    uint8_t value = 0;
    for (; value < 2; value++) {
        begin(&(options){.row_stride = sizeof(tokmap_row) + MORE},
              (tokmap_stage_options){.edit = edit_newer_rows, .context = &value});
        CHECK_INT(tokmap_stage_next(s, &b, NULL, &err), value ? TOKMAP_ERR_ARGUMENT : TOKMAP_OK);
        if (value)
            CHECK_SAYS(err.text, "tokmap_row: sets a field");
        else
            CHECK_INT(((const int64_t *)b.labels)[LENGTH - 1], -100);
        end();
    }
}

static void grow(void *context, tokmap_row *rows, const tokmap_batch *batch)
{
    (void)context;
    rows[batch->n_rows - 1].n_tokens++;
}

TEST(refuses_rows_that_have_grown)
{
    begin(&(options){0}, (tokmap_stage_options){.edit = grow});
    CHECK_INT(tokmap_stage_next(s, &b, NULL, &err), TOKMAP_ERR_ARGUMENT);
    CHECK_SAYS(err.text, "row 6 has grown");
    CHECK_EQ(tokmap_stage_position(s), 0);
    end();
}

/* ---- Damage ---- */

static void look_at_rows(void *context, tokmap_row *rows, const tokmap_batch *batch)
{
    uint64_t *sum = context;
    for (uint32_t r = 0; r < batch->n_rows; r++)
        for (uint32_t i = 0; i < batch->rows[r].n_tokens; i++)
            *sum += corpus_id(&rows[r], i) + corpus_id(&batch->rows[r], i);
}

static void cut_file_under(const tokmap_stage_options *so, const options *o)
{
    begin(o, *so);
    const char *path = with_suffix(narrow.path, ".bin");
    file_bytes whole = file_cut(path, 10);
    tokmap_status status = TOKMAP_OK;
    for (int i = 0; i < 100 && !status; i++) {
        status = tokmap_stage_next(s, &b, NULL, &err);
        if (!status)
            release(s, &b, NULL);
    }
    CHECK_REFUSED(status, TOKMAP_ERR_IO, err, path);
    CHECK_INT(tokmap_stage_next(s, &b, NULL, &err), TOKMAP_ERR_IO);
    CHECK(file_store(path, whole.data, whole.n_bytes));
    free(whole.data);
    CHECK_INT(tokmap_loader_seek(mine, tokmap_stage_position(s), &err), TOKMAP_OK);
    expect_steps(20, NULL);
    end();
}

/* Of the map alone the process would hear by a signal, in the stage's thread. */
TEST(a_file_that_is_cut_is_an_error_of_its_step_and_no_signal)
{
    uint64_t sum = 0;
    const options o = {.row_parts = ALL_PARTS, .io = TOKMAP_IO_MAP};
    const tokmap_stage_options so[] = {{.outputs = ALL},
                                       {.outputs = ALL, .no_thread = 1},
                                       {.outputs = ALL, .edit = look_at_rows, .context = &sum}};
    for (size_t v = 0; v < sizeof so / sizeof so[0]; v++)
        cut_file_under(&so[v], &o);
    CHECK(sum > 0);
}

/* ---- Tensors ---- */

TEST(tensors_keep_a_batch_until_the_last_is_deleted)
{
    tokmap_stage_tensor t = {.struct_size = sizeof t};
    begin(&(options){.row_parts = ALL_PARTS}, (tokmap_stage_options){.outputs = ALL, .n_slots = 3});
    tokmap_stage_batch kept, more = {.struct_size = sizeof more};
    dlpack *tensors[5];
    wanted = corpus_next(mine);
    next(s, &kept, NULL);
    for (uint32_t i = 0; i < 5; i++) {
        t.output = 1u << i;
        CHECK_INT(tokmap_stage_export(s, &kept, &t, &err), TOKMAP_OK);
        tensors[i] = t.managed;
    }
    t.output = 32;
    CHECK_INT(tokmap_stage_export(s, &kept, &t, &err), TOKMAP_ERR_ARGUMENT);
    CHECK(t.managed == NULL);
    release(s, &kept, NULL);
    for (int step = 0; step < 10; step++) { /* its slot is not used again */
        next(s, &b, NULL);
        release(s, &b, NULL);
    }
    check_batch(&kept, &wanted, &(tokmap_stage_options){.ignore_index = -100});
    CHECK(tensors[1]->data == kept.labels && tensors[1]->bits == 64 && tensors[1]->code == 0);
    CHECK_INT(tensors[0]->bits, 32);
    CHECK_INT(tensors[0]->device_type, 1);
    CHECK_INT(tensors[0]->shape[0] * 1000 + tensors[0]->shape[1], MAX_ROWS * 1000 + LENGTH);
    CHECK_INT(tensors[4]->shape[0], MAX_ROWS * LENGTH + 1);
    CHECK_INT(tensors[4]->n_dimensions, 1);
    next(s, &b, NULL);
    CHECK_INT(tokmap_stage_next(s, &more, NULL, &err), TOKMAP_ERR_ARGUMENT);
    for (int i = 0; i < 4; i++)
        tensors[i]->deleter(tensors[i]);
    CHECK_INT(tokmap_stage_next(s, &more, NULL, &err), TOKMAP_ERR_ARGUMENT);
    t.output = TOKMAP_STAGE_INPUTS;
    CHECK_INT(tokmap_stage_export(s, &b, &t, &err), TOKMAP_OK);
    tensors[4]->deleter(tensors[4]);
    next(s, &more, NULL);
    const int64_t first = value(b.inputs, 4, 0);
    end();
    tensors[0] = t.managed; /* outlives the stage */
    CHECK_INT(value(tensors[0]->data, 4, 0), first);
    tensors[0]->deleter(tensors[0]);
}

/* ---- Refusals ---- */

static void expect_refusal(tokmap_stage_options o, const char *words)
{
    tokmap_stage *none = (tokmap_stage *)&o;
    o.struct_size = sizeof o;
    o.device = o.device ? o.device : TOKMAP_STAGE_HOST;
    const tokmap_status status = tokmap_stage_open(&none, &o, &err);
    if (status != TOKMAP_ERR_ARGUMENT || none || !strstr(err.text, words))
        CHECK_FAIL("%d, %s: not '%s'", (int)status, err.text, words);
}

TEST(open_says_which_option_is_wrong)
{
    open_corpus();
    const options plain = {0}, parts = {.row_parts = ALL_PARTS};
    const options masks = {.row_parts = TOKMAP_ROW_LOSS_MASK};
    l = open_loader(&plain);
    tokmap_loader *lp = open_loader(&parts), *lm = open_loader(&masks);
    expect_refusal((tokmap_stage_options){.loader = lm, .outputs = TOKMAP_STAGE_CU_SEQLENS},
                   "TOKMAP_ROW_DOCUMENTS");
    tokmap_loader_close(lm);
    expect_refusal((tokmap_stage_options){0}, "loader is NULL");
    expect_refusal((tokmap_stage_options){.loader = l, .n_slots = 1}, "n_slots is 1");
    expect_refusal((tokmap_stage_options){.loader = l, .n_slots = 65}, "n_slots is 65");
    expect_refusal((tokmap_stage_options){.loader = l, .n_host_slots = 65}, "n_host_slots is 65");
    expect_refusal((tokmap_stage_options){.loader = l, .n_host_slots = 65}, "must be 1 to 64");
    expect_refusal((tokmap_stage_options){.loader = l, .no_thread = 2}, "no_thread is 2");
    expect_refusal((tokmap_stage_options){.loader = l, .input_bytes = 2}, "input_bytes is 2");
    expect_refusal((tokmap_stage_options){.loader = l, .label_bytes = 9}, "label_bytes is 9");
    expect_refusal((tokmap_stage_options){.loader = l, .outputs = 64}, "unknown bits");
    expect_refusal((tokmap_stage_options){.loader = l, .outputs = 32}, "unknown bits");
    expect_refusal((tokmap_stage_options){.loader = l, .outputs = TOKMAP_STAGE_CU_SEQLENS},
                   "TOKMAP_ROW_DOCUMENTS");
    expect_refusal((tokmap_stage_options){.loader = l, .device = -2}, "device is -2");
    expect_refusal((tokmap_stage_options){.loader = l, .outputs = 1 | TOKMAP_STAGE_ROW_POSITIONS},
                   "but not TOKMAP_STAGE_POSITION_IDS");
    expect_refusal(
        (tokmap_stage_options){
            .loader = l, .label_bytes = 4, .has_ignore_index = 1, .ignore_index = 1LL << 40},
        "does not fit labels of 4 bytes");
    expect_refusal((tokmap_stage_options){.loader = l, .max_boundaries = UINT32_MAX},
                   "max_boundaries is 4294967295");
    const tokmap_stage_options unsized = {.loader = l};
    CHECK_INT(tokmap_stage_open(&s, &unsized, &err), TOKMAP_ERR_ARGUMENT);
    CHECK_INT(tokmap_stage_open(NULL, &unsized, &err), TOKMAP_ERR_ARGUMENT);
    tokmap_stage_close(NULL);
    s = open_on_host(
        lp, (tokmap_stage_options){.outputs = TOKMAP_STAGE_CU_SEQLENS, .max_boundaries = 1});
    b = (tokmap_stage_batch){.struct_size = sizeof b};
    CHECK_INT(tokmap_stage_next(s, &b, NULL, &err), TOKMAP_ERR_ARGUMENT);
    CHECK_SAYS(err.text, "more than max_boundaries (1)");
    b.struct_size = 8;
    CHECK_INT(tokmap_stage_next(s, &b, NULL, &err), TOKMAP_ERR_ARGUMENT);
    tokmap_stage_close(s);
    /* Position ids of rows need no documents. */
    s = open_on_host(l, (tokmap_stage_options){.outputs = TOKMAP_STAGE_POSITION_IDS |
                                                          TOKMAP_STAGE_ROW_POSITIONS});
    next(s, &b, NULL);
    for (int32_t i = 0; i < MAX_ROWS * LENGTH; i++)
        CHECK_INT(b.position_ids[i], i % LENGTH);
    CHECK(!b.inputs && !b.labels && !b.document_ids && !b.cu_seqlens);
    tokmap_stage_close(s);
    tokmap_loader_close(l);
    tokmap_loader_close(lp);
    close_corpus();
}

/* With room for the maximum number of boundaries, they need twice the memory of 16-bit tokens. Only
 * the actual ones are copied to the device. */
TEST(max_boundaries_is_what_images_have_room_for)
{
    static const uint32_t most[] = {0, 9999, 999};
    uint64_t host_bytes[3], bytes_moved[3];
    open_corpus();
    const options o = {.row_parts = TOKMAP_ROW_DOCUMENTS, .n_rows = 999};
    for (int i = 0; i < 3; i++) {
        l = open_loader(&o);
        s = open_on_host(l, (tokmap_stage_options){.outputs = TOKMAP_STAGE_DOCUMENT_IDS,
                                                   .max_boundaries = most[i],
                                                   .n_host_slots = 4,
                                                   .no_thread = 1});
        tokmap_stage_info info = {.struct_size = sizeof info};
        b = (tokmap_stage_batch){.struct_size = sizeof b};
        const bool fits = most[i] != 999;
        CHECK_INT(tokmap_stage_next(s, &b, NULL, &err), fits ? TOKMAP_OK : TOKMAP_ERR_ARGUMENT);
        CHECK(fits || strstr(err.text, "more than max_boundaries (999)") != NULL);
        tokmap_stage_get_info(s, &info);
        host_bytes[i] = info.host_bytes;
        bytes_moved[i] = info.bytes_moved;
        tokmap_stage_close(s);
        tokmap_loader_close(l);
    }
    CHECK(host_bytes[0] - host_bytes[2] >= 4 * 4 * 999 * (LENGTH - 1) - 4 * 8192);
    CHECK_EQ(bytes_moved[0], bytes_moved[1]);
    close_corpus();
}

TEST(ids_that_do_not_fit_are_refused_at_open)
{
    static corpus_shape large = {
        .name = "large", .n_tokens = 9, .first_id = INT32_MAX - 7, .token_bytes = 4};
    corpus_shape_open(&large);
    tokmap_dataset *datasets[] = {large.ds};
    const tokmap_loader_source source = {.datasets = datasets, .n_datasets = 1, .weight = 1};
    const tokmap_loader_options lo = {LOADER_SIZES, .sources = &source, .n_sources = 1,
                                      .sequence_length = 4, .batch_rows = 1};
    l = corpus_open_loader(&lo);
    tokmap_stage_options so = {.struct_size = sizeof so, .loader = l, .device = TOKMAP_STAGE_HOST};
    s = NULL;
    CHECK_INT(tokmap_stage_open(&s, &so, &err), TOKMAP_ERR_ARGUMENT);
    CHECK_SAYS(err.text, "ids up to 2147483648");
    so.input_bytes = 8;
    CHECK_INT(tokmap_stage_open(&s, &so, &err), TOKMAP_OK);
    tokmap_stage_close(s);
    tokmap_loader_close(l);
    corpus_shape_close(&large);
}

TEST(a_loader_has_one_stage_at_a_time)
{
    open_corpus();
    const options o = {0};
    l = open_loader(&o);
    tokmap_stage *second = NULL;
    const tokmap_stage_options so = {
        .struct_size = sizeof so, .loader = l, .device = TOKMAP_STAGE_HOST};
    for (int round = 0; round < 3; round++) {
        s = open_on_host(l, so);
        for (int i = 0; i < 2; i++) {
            CHECK_INT(tokmap_stage_open(&second, &so, &err), TOKMAP_ERR_ARGUMENT);
            CHECK(strstr(err.text, "already has a stage") != NULL && second == NULL);
        }
        next(s, &b, NULL);
        CHECK_EQ(b.first_sample, round * MAX_ROWS);
        tokmap_batch taken = {.struct_size = sizeof taken};
        uint8_t state[TOKMAP_STATE_BYTES];
        CHECK_INT(tokmap_loader_next(l, &taken, &err), TOKMAP_ERR_ARGUMENT);
        CHECK_SAYS(err.text, "a stage uses this loader");
        CHECK_INT(tokmap_loader_save(l, state, &err), TOKMAP_ERR_ARGUMENT);
        CHECK_INT(tokmap_loader_seek(l, 0, &err), TOKMAP_ERR_ARGUMENT);
        tokmap_stage_close(s);
        CHECK_EQ(tokmap_loader_position(l), (round + 1) * MAX_ROWS);
        /* One that could not be opened has not taken it. */
        const tokmap_stage_options none = {
            .struct_size = sizeof none, .loader = l, .device = 1 << 20};
        CHECK_INT(tokmap_stage_open(&second, &none, &err), TOKMAP_ERR_DEVICE);
    }
    tokmap_loader_close(l);
    close_corpus();
}

TEST(without_a_driver_or_a_device_it_says_so)
{
    uint32_t n = 7;
    const tokmap_status status = tokmap_stage_count_devices(&n, &err);
    if (status == TOKMAP_OK)
        SKIP("there is a device");
    CHECK_INT(status, TOKMAP_ERR_DEVICE);
    CHECK_EQ(n, 0);
    CHECK(strstr(err.text, "driver") && strstr(err.text, "libcuda.so.1"));
    printf("note %s\n", err.text);
    open_corpus();
    const options o = {0};
    l = open_loader(&o);
    s = (tokmap_stage *)&o;
    CHECK_INT(tokmap_stage_open(
                  &s,
                  &(tokmap_stage_options){.struct_size = sizeof(tokmap_stage_options), .loader = l},
                  &err),
              TOKMAP_ERR_DEVICE);
    CHECK(!s && strstr(err.text, "driver"));
    tokmap_loader_close(l);
    close_corpus();
}

TEST(counts_what_it_does)
{
    begin(&(options){0}, (tokmap_stage_options){.no_thread = 1, .n_slots = 3});
    tokmap_stage_info info = {.struct_size = sizeof info};
    for (int i = 0; i < 10; i++) {
        next(s, &b, NULL);
        release(s, &b, NULL);
    }
    tokmap_stage_get_info(s, &info);
    CHECK_EQ(info.n_batches, 10);
    CHECK_EQ(info.n_tokens, 10 * MAX_ROWS * LENGTH);
    CHECK(info.bytes_moved >= 10 * MAX_ROWS * (LENGTH + 1) * 2);
    CHECK(info.device_bytes >= (uint64_t)3 * MAX_ROWS * LENGTH * 12);
    CHECK_EQ(info.n_waits, 1); /* the first one; the others were prepared by the call before */
    CHECK(info.wait_max_ns >= info.wait_p999_ns && info.wait_p999_ns >= info.wait_p50_ns);
    CHECK_INT(info.pinned, 1);
    CHECK_EQ(info.n_late, 0);
    end();
}
