/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_lane.c - any bytes as a lane of a dataset: refused, or numbers for each token.
 *
 * The first byte decides: 0 takes the rest as it is; 1 as edits of the true file (u16 offset, u8 to
 * exclusive-or, ...; 255 cuts the file there); 2 makes all checksums fit after the edits. */
#include "fuzz/fuzz.h"

#include "base/hash.h"
#include "base/le.h"
#include "dataset/lane.h"
#include "support/bad_days.h"
#include "tokmap_writer.h"

enum {
    N_TOKENS = 70,
    MAX_FILE = 1 << 16
};

static char folder[64], prefix[80], path[96];
static uint8_t truth[MAX_FILE];
static size_t n_truth;

static void remove_folder(void)
{
    remove_dataset(prefix);
    unlink(path);
    rmdir(folder);
}

static tokmap_dataset *make_dataset(void)
{
    const tokmap_writer_options options = {
        .struct_size = sizeof options, .vocab_size = 1000, .eod_id = TOKMAP_NO_ID};
    const tokmap_lane_options of_lane = {.struct_size = sizeof of_lane,
                                         .name = "a",
                                         .about = "{}",
                                         .type = TOKMAP_LANE_F16,
                                         .count = 3};
    const uint32_t ids[N_TOKENS] = {1, 2, 3};
    const uint8_t values[N_TOKENS * 6] = {1, 2, 3};
    tokmap_writer *w;
    tokmap_lane_writer *of_values;
    tokmap_dataset *ds;
    make_folder(folder);
    snprintf(prefix, sizeof prefix, "%s/p", folder);
    snprintf(path, sizeof path, "%s/p.a.tml", folder);
    atexit(remove_folder);
    require(tokmap_writer_open(&w, prefix, &options, NULL) == TOKMAP_OK);
    require(tokmap_writer_append(w, ids, N_TOKENS, NULL) == TOKMAP_OK);
    require(tokmap_writer_end_document(w, NULL) == TOKMAP_OK);
    require(tokmap_writer_finish(w, NULL) == TOKMAP_OK);
    tokmap_writer_close(w);
    require(tokmap_dataset_open(&ds, prefix, NULL) == TOKMAP_OK);
    require(tokmap_lane_writer_open(&of_values, ds, &of_lane, NULL) == TOKMAP_OK);
    require(tokmap_lane_writer_put(of_values, 0, values, N_TOKENS, NULL) == TOKMAP_OK);
    require(tokmap_lane_writer_finish(of_values, NULL) == TOKMAP_OK);
    tokmap_lane_writer_close(of_values);
    const file_bytes file = file_load(path);
    require(file.n_bytes > 0 && file.n_bytes < MAX_FILE);
    memcpy(truth, file.data, n_truth = file.n_bytes);
    free(file.data);
    return ds;
}

/* There is one block, if the type and the count are not edited. */
static void sign(uint8_t *bytes, size_t n_bytes)
{
    const size_t begin = TOKMAP_I_LANE_CHECKSUMS_AT + TOKMAP_I_LANE_ALIGNMENT;
    if (n_bytes < begin)
        return;
    le_put64(bytes + TOKMAP_I_LANE_CHECKSUMS_AT, tokmap_i_checksum(bytes + begin, n_bytes - begin));
    le_put64(bytes + 56,
             tokmap_i_checksum(bytes + TOKMAP_I_LANE_CHECKSUMS_AT, TOKMAP_I_LANE_ALIGNMENT));
    le_put64(bytes + 72,
             tokmap_i_checksum(bytes + TOKMAP_I_SIDE_HEADER_BYTES, TOKMAP_I_LANE_ABOUT_ROOM));
    le_put64(bytes + 120, tokmap_i_checksum(bytes, 120));
}

static void read_all(const tokmap_lane *lane)
{
    tokmap_lane_info info = TOKMAP_INIT(tokmap_lane_info);
    tokmap_error err;
    const void *values;
    require(tokmap_lane_get_info(lane, &info) == TOKMAP_OK);
    require(info.n_tokens == N_TOKENS && info.count > 0 && info.token_bytes <= 65536);
    require(strlen(info.about) <= TOKMAP_I_LANE_ABOUT_ROOM);
    const size_t n_bytes = (size_t)N_TOKENS * info.token_bytes;
    uint8_t *copy = malloc(n_bytes);
    require(copy != NULL);
    require(tokmap_lane_values(lane, 0, N_TOKENS, &values) == TOKMAP_OK);
    require(tokmap_lane_read(lane, 0, N_TOKENS, copy, &err) == TOKMAP_OK);
    require(memcmp(copy, values, n_bytes) == 0);
    require(tokmap_lane_values(lane, 1, N_TOKENS, &values) == TOKMAP_ERR_ARGUMENT);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static tokmap_dataset *ds;
    uint8_t bytes[MAX_FILE];
    tokmap_lane *lane;
    tokmap_error err;
    if (n_bytes < 1 || n_bytes > MAX_FILE)
        return 0;
    if (!ds)
        ds = make_dataset();
    size_t n_file = n_bytes - 1;
    if (data[0] == 0)
        memcpy(bytes, data + 1, n_file);
    else
        n_file = edit_file(bytes, truth, n_truth, data + 1, n_bytes - 1);
    if (data[0] == 2)
        sign(bytes, n_file);
    require(file_store(path, bytes, n_file));
    if (tokmap_lane_open(&lane, ds, "a", &err) == TOKMAP_OK) {
        read_all(lane);
        require(tokmap_lane_verify(lane, NULL, &err) == TOKMAP_OK || strlen(err.text) > 0);
    } else {
        require(strlen(err.text) > 0);
    }
    tokmap_lane_close(lane);
    return 0;
}
