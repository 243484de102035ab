/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_view.c - any bytes as a view file of a dataset: refused, or ranges of its documents.
 *
 * The first byte decides: 0 takes the rest as it is; 1 as edits of the true file (u16 offset, u8 to
 * exclusive-or, ...; 255 cuts the file there); 2 makes all checksums fit after the edits. */
#include "fuzz/fuzz.h"

#include "base/hash.h"
#include "base/le.h"
#include "support/bad_days.h"
#include "tokmap_writer.h"
#include "views/view.h"

enum {
    N_DOCUMENTS = 66200, /* two chunks: a bitmap and a list */
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
    static uint8_t keep[N_DOCUMENTS];
    const tokmap_writer_options options = {
        .struct_size = sizeof options, .vocab_size = 1000, .eod_id = TOKMAP_NO_ID};
    const uint32_t ids[4] = {0};
    tokmap_writer *w;
    tokmap_dataset *ds;
    make_folder(folder);
    snprintf(prefix, sizeof prefix, "%s/p", folder);
    snprintf(path, sizeof path, "%s/view", folder);
    atexit(remove_folder);
    require(tokmap_writer_open(&w, prefix, &options, NULL) == TOKMAP_OK);
    for (uint32_t i = 0; i < N_DOCUMENTS; i++) {
        keep[i] = i * i % 13 < (i < TOKMAP_I_VIEW_CHUNK ? 2 : 5);
        require(tokmap_writer_append(w, ids, i * i % 5, NULL) == TOKMAP_OK);
        require(tokmap_writer_end_document(w, NULL) == TOKMAP_OK);
    }
    require(tokmap_writer_finish(w, NULL) == TOKMAP_OK);
    tokmap_writer_close(w);
    require(tokmap_dataset_open(&ds, prefix, NULL) == TOKMAP_OK);
    const tokmap_view_options o = {
        .struct_size = sizeof o, .keep = keep, .n_keep = N_DOCUMENTS, .path = path};
    require(tokmap_view_write(ds, &o, NULL, NULL) == TOKMAP_OK);
    const file_bytes file = file_load(path);
    require(file.n_bytes > 0 && file.n_bytes < MAX_FILE);
    memcpy(truth, file.data, n_truth = file.n_bytes);
    free(file.data);
    return ds;
}

/* The table has the places of the chunks, whatever it was edited to. */
static void sign(uint8_t *bytes, size_t n_bytes)
{
    uint8_t *const table = bytes + TOKMAP_I_SIDE_HEADER_BYTES;
    const size_t table_bytes = 2 * (size_t)TOKMAP_I_VIEW_ENTRY_BYTES;
    if (n_bytes < TOKMAP_I_SIDE_HEADER_BYTES + table_bytes)
        return;
    for (uint8_t *entry = table; entry < table + table_bytes; entry += TOKMAP_I_VIEW_ENTRY_BYTES) {
        const uint64_t place = le_get64(entry + 16);
        const uint32_t n_kept = le_get32(entry + 24);
        const uint64_t n = n_kept <= TOKMAP_I_VIEW_CHUNK ? tokmap_i_view_chunk_bytes(n_kept) : 0;
        if (place <= n_bytes && n <= n_bytes - place)
            le_put64(entry + 32, tokmap_i_checksum(bytes + place, n));
    }
    le_put64(bytes + 88, tokmap_i_checksum(table, table_bytes));
    le_put64(bytes + 120, tokmap_i_checksum(bytes, 120));
}

static void read_all(const tokmap_view *v)
{
    const tokmap_i_extent all = {0, v->header.n_tokens};
    tokmap_i_view_reader reader;
    tokmap_error err;
    uint64_t bits, before;
    require(tokmap_i_view_reader_open(&reader, v->header.n_bytes));
    for (uint64_t at = 0; at < all.end; at += 1 + all.end / 40) {
        if (tokmap_i_view_ranges(v, &reader, at, 300, all, &err)) {
            require(strlen(err.text) > 0);
            continue;
        }
        uint64_t n = 0;
        for (size_t i = 0; i < reader.n_ranges; i++) {
            const tokmap_i_extent r = reader.ranges[i];
            require(r.begin < r.end && r.end <= v->ds->header.n_tokens);
            n += r.end - r.begin;
        }
        require(n == 300);
    }
    for (uint64_t g = 0; g < N_DOCUMENTS / TOKMAP_I_GROUP_DOCUMENTS; g += 53)
        tokmap_i_view_group(v, &reader, g, &bits, &err);
    for (uint64_t d = 0; d <= N_DOCUMENTS; d += 3001)
        tokmap_i_view_before(v, &reader, d, &before, &err);
    tokmap_i_view_reader_close(&reader);
}

/* Lists all documents, at once and in parts. */
static void list_documents(const tokmap_view *v)
{
    static uint64_t all[N_DOCUMENTS], part[N_DOCUMENTS];
    tokmap_error err;
    const uint64_t n = v->header.n_kept;
    require(n <= N_DOCUMENTS);
    if (tokmap_view_documents(v, 0, n, all, &err)) {
        require(strlen(err.text) > 0);
        return;
    }
    for (uint64_t i = 0; i < n; i++)
        require(all[i] < N_DOCUMENTS && (i == 0 || all[i] > all[i - 1]));
    for (uint64_t at = 0; at < n; at += 977) {
        const uint64_t n_part = n - at < 999 ? n - at : 999;
        require(tokmap_view_documents(v, at, n_part, part, &err) == TOKMAP_OK);
        require(memcmp(part, all + at, n_part * sizeof *part) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static tokmap_dataset *ds;
    uint8_t bytes[MAX_FILE];
    const tokmap_view_options o = {.struct_size = sizeof o, .path = path};
    tokmap_view *v;
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
    if (tokmap_view_open(&v, ds, &o, &err) == TOKMAP_OK) {
        read_all(v);
        list_documents(v);
        require(tokmap_view_verify(v, NULL, NULL, &err) == TOKMAP_OK || strlen(err.text) > 0);
    } else {
        require(strlen(err.text) > 0);
    }
    tokmap_view_close(v);
    return 0;
}
