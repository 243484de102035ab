/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_rows.c - any bytes as the rows file of a dataset: refused, or rows of whole documents and
 * parts of them.
 *
 * The first byte decides: 0 takes the rest as it is; 1 as edits of the true file (u16 offset, u8 to
 * exclusive-or, ...; 255 cuts the file there); 2 makes all checksums fit after the edits. */
#include "fuzz/fuzz.h"

#include "base/le.h"
#include "base/hash.h"
#include "rows/rows.h"
#include "rows/rows_find.h"
#include "support/bad_days.h"
#include "tokmap_writer.h"

enum {
    LENGTH = 16,
    N_DOCUMENTS = 150,
    MAX_FILE = 1 << 16
};

static const tokmap_i_rows_kind kind = {.length = LENGTH, .align = 4};
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
    const uint32_t ids[60] = {0};
    tokmap_writer *w;
    tokmap_dataset *ds;
    make_folder(folder);
    snprintf(prefix, sizeof prefix, "%s/p", folder);
    snprintf(path, sizeof path, "%s/rows", folder);
    atexit(remove_folder);
    require(tokmap_writer_open(&w, prefix, &options, NULL) == TOKMAP_OK);
    for (uint32_t i = 0; i < N_DOCUMENTS; i++) {
        require(tokmap_writer_append(w, ids, i * i % 60, NULL) == TOKMAP_OK);
        require(tokmap_writer_end_document(w, NULL) == TOKMAP_OK);
    }
    require(tokmap_writer_finish(w, NULL) == TOKMAP_OK);
    tokmap_writer_close(w);
    require(tokmap_dataset_open(&ds, prefix, NULL) == TOKMAP_OK);
    const tokmap_rows_options o = {
        .struct_size = sizeof o, .sequence_length = LENGTH, .align = kind.align, .path = path};
    require(tokmap_rows_write(ds, &o, NULL, NULL) == TOKMAP_OK);
    const file_bytes file = file_load(path);
    require(file.n_bytes > 0 && file.n_bytes < MAX_FILE);
    memcpy(truth, file.data, n_truth = file.n_bytes);
    free(file.data);
    return ds;
}

/* There is one chunk. */
static void sign(uint8_t *bytes, size_t n_bytes)
{
    const size_t header = TOKMAP_I_SIDE_HEADER_BYTES;
    if (n_bytes < header + 16)
        return;
    le_put64(bytes + header, tokmap_i_checksum(bytes + header + 8, n_bytes - header - 16));
    le_put64(bytes + header - 8, tokmap_i_checksum(bytes, header - 8));
}

static void check_row(const tokmap_i_rows *r, const tokmap_i_rows_reader *reader)
{
    uint32_t end = 0;
    require(reader->n_pieces > 0);
    for (uint32_t i = 0; i < reader->n_pieces; i++) {
        const tokmap_piece *p = &reader->pieces[i];
        tokmap_document d;
        require(tokmap_i_documents_get(&r->ds->documents, NULL, p->document, &d) == TOKMAP_OK);
        require(p->n_tokens >= 2 && p->first_token >= d.first_token &&
                p->first_token + p->n_tokens <= d.first_token + d.n_tokens);
        require(p->place >= end && p->place % kind.align == 0);
        require(!p->tokens && p->n_inputs >= 1 && p->n_inputs <= p->n_tokens);
        end = p->place + p->n_tokens;
    }
    require(end <= LENGTH + 1);
}

static void read_all(const tokmap_i_rows *r)
{
    tokmap_i_rows_reader reader;
    tokmap_i_rows_finder finder = {.rows = r, .reader = &reader};
    tokmap_error err;
    uint64_t begin, end, row;
    require(tokmap_i_rows_reader_open(&reader, r->header.n_bytes));
    for (uint64_t k = 0; k < r->header.n_rows && k < 1000; k++) {
        if (tokmap_i_rows_get(r, &reader, k, &err) == TOKMAP_OK)
            check_row(r, &reader);
        else
            require(strlen(err.text) > 0);
    }
    for (uint64_t k = 0; k < r->header.n_chunks && k < 10; k++)
        tokmap_i_rows_extent(r, &reader, k, &begin, &end, &err);
    for (uint64_t d = 0; d < N_DOCUMENTS && r->header.n_chunks > 0; d++)
        tokmap_i_rows_find(&finder, d, 0, 2, &row, &err);
    tokmap_i_rows_finder_close(&finder);
    tokmap_i_rows_reader_close(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static tokmap_dataset *ds;
    uint8_t bytes[MAX_FILE];
    tokmap_i_rows r;
    tokmap_error err;
    bool exists;
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
    r = (tokmap_i_rows){.ds = ds, .file.fd = -1};
    if (tokmap_i_rows_open(&r, &kind, path, &exists, &err) == TOKMAP_OK)
        read_all(&r);
    else
        require(strlen(err.text) > 0);
    tokmap_i_rows_close(&r);
    return 0;
}
