/* SPDX-License-Identifier: Apache-2.0 */
/* test_zero_ids - the ids of GPT-NeoX, whose end of document is 0, with pad_id 0 and ignore_index
 * 0: each 0 can be declared, and a struct of zeros declares none. */
#include "support/loader_corpus.h"
#include "support/must.h"
#include "tokmap_stage.h"
#include "tokmap_writer.h"

enum {
    LENGTH = 6,
    FIRST = 4 /* tokens of the first document, its end included: the row lacks 3 labels */
};

static const uint32_t ids[] = {7, 8, 9, 0, 5, 6, 7, 8, 9, 0};

static tokmap_dataset *write_dataset(int32_t has_eod)
{
    tokmap_writer_options o = TOKMAP_INIT(tokmap_writer_options);
    o.vocab_size = 50432;
    o.has_eod = has_eod;
    o.replace = 1;
    tokmap_writer *w = must_begin(check_path("neox"), &o);
    CHECK_INT(tokmap_writer_append(w, ids, FIRST, NULL), TOKMAP_OK);
    CHECK_INT(tokmap_writer_end_document(w, NULL), TOKMAP_OK);
    CHECK_INT(tokmap_writer_append(w, ids + FIRST, 6, NULL), TOKMAP_OK);
    CHECK_INT(tokmap_writer_end_document(w, NULL), TOKMAP_OK);
    must_finish(w);
    tokmap_dataset *ds = must_open(check_path("neox"));
    const tokmap_dataset_info info = must_info(ds);
    CHECK_EQ(info.eod_id, has_eod ? 0 : TOKMAP_NO_ID);
    return ds;
}

static tokmap_loader *open_loader(tokmap_dataset *const *ds)
{
    const tokmap_loader_source source = {.datasets = ds, .n_datasets = 1};
    const tokmap_loader_options o = {LOADER_SIZES,
                                     .sources = &source,
                                     .n_sources = 1,
                                     .sequence_length = LENGTH,
                                     .batch_rows = 1,
                                     .shuffle = TOKMAP_SHUFFLE_NONE,
                                     .windows = TOKMAP_WINDOWS_WITHIN_DOCUMENT};
    return corpus_open_loader(&o);
}

/* Inputs 7 8 9, padding; labels 8 9 0 and what does not count. */
static void check_row(const int64_t *inputs, const int64_t *labels, int64_t ignored)
{
    for (uint32_t i = 0; i < LENGTH; i++) {
        CHECK_INT(inputs[i], i < FIRST - 1 ? ids[i] : 0);
        CHECK_INT(labels[i], i < FIRST - 1 ? ids[i + 1] : ignored);
    }
}

static void check_gather(tokmap_dataset *ds, int32_t has_ignore_index)
{
    int64_t inputs[LENGTH], labels[LENGTH];
    tokmap_gather_options o = TOKMAP_INIT(tokmap_gather_options);
    tokmap_loader *l = open_loader(&ds);
    o.format = TOKMAP_GATHER_I64;
    o.inputs = inputs;
    o.labels = labels;
    o.has_ignore_index = has_ignore_index;
    tokmap_batch b = corpus_next(l);
    CHECK_INT(tokmap_batch_gather(&b, &o, NULL), TOKMAP_OK);
    check_row(inputs, labels, has_ignore_index ? 0 : -100);
    tokmap_loader_close(l);
}

static void check_stage(tokmap_dataset *ds, int32_t has_ignore_index)
{
    tokmap_stage_options o = TOKMAP_INIT(tokmap_stage_options);
    tokmap_stage_batch b = TOKMAP_INIT(tokmap_stage_batch);
    tokmap_stage *s = NULL;
    o.loader = open_loader(&ds);
    o.device = TOKMAP_STAGE_HOST;
    o.input_bytes = 8;
    o.has_ignore_index = has_ignore_index;
    CHECK_INT(tokmap_stage_open(&s, &o, NULL), TOKMAP_OK);
    CHECK_INT(tokmap_stage_next(s, &b, NULL, NULL), TOKMAP_OK);
    check_row(b.inputs, b.labels, has_ignore_index ? 0 : -100);
    CHECK_INT(tokmap_stage_release(s, &b, NULL, NULL), TOKMAP_OK);
    tokmap_stage_close(s);
    tokmap_loader_close(o.loader);
}

TEST(id_0_of_gpt_neox_ends_documents_pads_and_is_ignored)
{
    tokmap_dataset *ds = write_dataset(1);
    check_gather(ds, 1);
    check_stage(ds, 1);
    tokmap_dataset_close(ds);
}

TEST(a_struct_that_is_all_0_declares_no_id)
{
    tokmap_dataset *ds = write_dataset(0);
    check_gather(ds, 0);
    check_stage(ds, 0);
    tokmap_dataset_close(ds);
}
