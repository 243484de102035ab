/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_state.c - any bytes as the state of a loader: refused, or a state that this loader could
 * have saved.
 *
 * The first byte decides: 0 uses the rest unchanged; 1 makes the checksum fit first; 2 copies the
 * rest over a saved state and makes the checksum fit. */
#include "fuzz/fuzz.h"

#include "base/le.h"
#include "base/hash.h"
#include "tokmap_loader.h"
#include "support/bad_days.h"

enum {
    N_TOKENS = 1000,
    LENGTH = 7,
    ROWS = 3,
    CHECKSUM_AT = 120,
    SAMPLE_AT = 24
};

/* A dataset of the numbers 0 to 999, whose files are gone as soon as it is open. */
static tokmap_dataset *make_dataset(void)
{
    char folder[64], path[80];
    const tokmap_writer_options options = {
        .struct_size = sizeof options, .vocab_size = N_TOKENS, .eod_id = TOKMAP_NO_ID};
    tokmap_writer *w;
    tokmap_dataset *ds;
    make_folder(folder);
    snprintf(path, sizeof path, "%s/d", folder);
    require(tokmap_writer_open(&w, path, &options, NULL) == TOKMAP_OK);
    for (uint32_t id = 0; id < N_TOKENS; id++)
        require(tokmap_writer_append(w, &id, 1, NULL) == TOKMAP_OK);
    require(tokmap_writer_end_document(w, NULL) == TOKMAP_OK);
    /* so that states of other data are compared with those of an earlier id, too */
    static const char metadata[] = "{\"redacted_from\":[\"00112233445566778899aabbccddeeff\"]}";
    require(tokmap_writer_set_metadata(w, metadata, sizeof metadata - 1, NULL) == TOKMAP_OK);
    require(tokmap_writer_finish(w, NULL) == TOKMAP_OK);
    tokmap_writer_close(w);
    require(tokmap_dataset_open(&ds, path, NULL) == TOKMAP_OK);
    remove_dataset(path);
    rmdir(folder);
    return ds;
}

static tokmap_loader *open_loader(tokmap_dataset *ds)
{
    const tokmap_loader_source source = {
        .datasets = &ds, .n_datasets = 1, .weight = 1, .max_epochs = 1000000};
    const tokmap_loader_options options = {.struct_size = sizeof options,
                                           .sources = &source,
                                           .n_sources = 1,
                                           .source_stride = sizeof(tokmap_loader_source),
                                           .row_stride = sizeof(tokmap_row),
                                           .sequence_length = LENGTH,
                                           .batch_rows = ROWS,
                                           .random_offset = 1,
                                           .seed = 3};
    tokmap_loader *l;
    require(tokmap_loader_open(&l, &options, NULL) == TOKMAP_OK);
    return l;
}

static void check_next(tokmap_loader *l, uint64_t sample)
{
    tokmap_batch b = {.struct_size = sizeof b};
    tokmap_error err;
    const tokmap_status status = tokmap_loader_next(l, &b, &err);
    require(status == TOKMAP_OK || status == TOKMAP_END);
    require(tokmap_loader_position(l) == sample + (status == TOKMAP_OK ? ROWS : 0));
    for (uint32_t i = 0; i < ROWS && status == TOKMAP_OK; i++)
        for (uint32_t k = 0; k <= LENGTH; k++)
            require(le_get16((const uint8_t *)b.rows[i].tokens + 2 * (size_t)k) ==
                    (b.rows[i].first_token + k) % N_TOKENS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static tokmap_dataset *ds;
    static tokmap_loader *l;
    uint8_t state[TOKMAP_STATE_BYTES] = {0}, own[TOKMAP_STATE_BYTES];
    tokmap_error err;
    if (n_bytes < 1)
        return 0;
    if (!ds)
        l = open_loader(ds = make_dataset());
    require(tokmap_loader_seek(l, 0, &err) == TOKMAP_OK);
    require(tokmap_loader_save(l, own, &err) == TOKMAP_OK);
    if (data[0] == 2)
        memcpy(state, own, sizeof own);
    for (size_t i = 1; i < n_bytes && i <= TOKMAP_STATE_BYTES; i++)
        state[i - 1] = data[0] == 2 ? state[i - 1] ^ data[i] : data[i];
    if (data[0] == 1 || data[0] == 2)
        le_put64(state + CHECKSUM_AT, tokmap_i_checksum(state, CHECKSUM_AT));
    const uint64_t sample = le_get64(state + SAMPLE_AT);
    const tokmap_status status = tokmap_loader_restore(l, state, &err);
    require(status == TOKMAP_OK || strlen(err.text) > 0);
    require(tokmap_loader_position(l) == (status == TOKMAP_OK ? sample : 0));
    if (status == TOKMAP_OK) {
        require(memcmp(state, own, SAMPLE_AT) == 0);
        require(memcmp(state + SAMPLE_AT + 8, own + SAMPLE_AT + 8, CHECKSUM_AT - SAMPLE_AT - 8) ==
                0);
        check_next(l, sample);
    }
    return 0;
}
