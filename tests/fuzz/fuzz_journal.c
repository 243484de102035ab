/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_journal.c - any bytes as the journal beside an unfinished dataset: refused, or resumed to
 * what one of its checkpoints held.
 *
 * The first byte decides: 0 takes the rest as it is; 1 as edits of the true journal (u16 offset,
 * u8 to exclusive-or, ...; an odd one cuts the file there); 2 makes the header and all checksums
 * fit first, so that only counts and contents are wild; 3 takes it as edits of the values beside
 * the true journal; 4 makes all their checksums fit as well. */
#include "fuzz/fuzz.h"

#include "support/bad_days.h"
#include "base/le.h"
#include "base/hash.h"
#include "format/journal_record.h"

enum {
    N_CHECKPOINTS = 4,
    MAX_JOURNAL = 1 << 16,
    HEADER = TOKMAP_I_JOURNAL_HEADER_BYTES,
    HEAD = TOKMAP_I_RECORD_HEAD_BYTES
};

typedef struct stored {
    const char *suffix;
    uint8_t bytes[MAX_JOURNAL];
    size_t n_bytes;
} stored;

static char folder[64], prefix[80];
static stored tokens = {.suffix = ".bin.partial"}, ends = {.suffix = ".tmi.partial"},
              journal = {.suffix = ".tmj.partial"}, values = {.suffix = ".tmv.partial"};
static uint64_t tokens_at[N_CHECKPOINTS + 1], documents_at[N_CHECKPOINTS + 1];

static void remove_files(void)
{
    remove_dataset(prefix);
    unlink(with_suffix(prefix, journal.suffix));
}

static void remove_folder(void)
{
    remove_files();
    rmdir(folder);
}

static void load(stored *s)
{
    const file_bytes file = file_load(with_suffix(prefix, s->suffix));
    require(file.n_bytes > 0 && file.n_bytes < sizeof s->bytes);
    memcpy(s->bytes, file.data, s->n_bytes = file.n_bytes);
    free(file.data);
}

static void store(const char *suffix, const uint8_t *bytes, size_t n_bytes)
{
    require(file_store(with_suffix(prefix, suffix), bytes, n_bytes));
}

/* ---- The true one ---- */

static tokmap_status open_writer(tokmap_writer **w, tokmap_unfinished unfinished)
{
    const tokmap_writer_options options = {.struct_size = sizeof options,
                                           .vocab_size = 1000,
                                           .eod_id = TOKMAP_NO_ID,
                                           .unfinished = unfinished,
                                           .resumable = 1};
    return tokmap_writer_open(w, prefix, &options, NULL);
}

static void add_documents(tokmap_writer *w, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t ids[3] = {i % 1000, 7, 999 - i % 1000};
        const tokmap_value v[2] = {
            {.type = i % 5 ? TOKMAP_VALUE_INT64 : TOKMAP_VALUE_NULL, .integer = i},
            {.type = TOKMAP_VALUE_STRING, .text = "some words", .text_bytes = i % 11}};
        require(tokmap_writer_append(w, ids, i % 4, NULL) == TOKMAP_OK);
        require(tokmap_writer_add_meta(w, v, 2, NULL) == TOKMAP_OK);
        require(tokmap_writer_end_document(w, NULL) == TOKMAP_OK);
        documents_at[0]++;
        tokens_at[0] += i % 4;
    }
}

static void make_true_one(void)
{
    make_folder(folder);
    snprintf(prefix, sizeof prefix, "%s/p", folder);
    atexit(remove_folder);
    tokmap_writer *w;
    static const char *const names[] = {"number", "words"};
    require(open_writer(&w, TOKMAP_UNFINISHED_REFUSE) == TOKMAP_OK);
    require(tokmap_writer_set_meta_columns(w, names, 2, NULL) == TOKMAP_OK);
    for (uint32_t k = 1; k <= N_CHECKPOINTS; k++) {
        add_documents(w, 50 * k);
        require(tokmap_writer_end_input(w, "some name", k, k, NULL) == TOKMAP_OK);
        require(tokmap_writer_checkpoint(w, "a note", k, NULL) == TOKMAP_OK);
        tokens_at[k] = tokens_at[0];
        documents_at[k] = documents_at[0];
    }
    tokmap_writer_close(w);
    load(&tokens);
    load(&ends);
    load(&journal);
    load(&values);
    tokens_at[0] = documents_at[0] = 0;
}

/* ---- Values ---- */

/* The head of the file, as docs/FORMAT.md section 9.4 has it; 0 if there is none. */
static size_t values_head_bytes(const uint8_t *bytes, size_t n_bytes)
{
    size_t at = 16;
    const uint64_t n_columns = le_get64(bytes + 8);
    for (uint64_t i = 0; i < n_columns && at + 8 <= n_bytes; i++) {
        const uint64_t n = le_get64(bytes + at);
        if (n > n_bytes)
            return 0;
        at += 8 + (size_t)n;
    }
    return at + 8 <= n_bytes ? at + 8 : 0;
}

static void sign_head(uint8_t *head, size_t n_bytes, tokmap_i_hasher *hasher)
{
    le_put64(head + n_bytes - 8, tokmap_i_checksum(head, n_bytes - 8));
    tokmap_i_hasher_add(hasher, head, n_bytes);
}

/* Makes the checksums of all heads and segments fit, as far as their sizes do. */
static uint64_t fit_values(uint8_t *bytes, size_t n_bytes)
{
    tokmap_i_hasher *hasher = tokmap_i_hasher_open();
    require(hasher != NULL);
    size_t at = values_head_bytes(bytes, n_bytes);
    const uint64_t n_columns = le_get64(bytes + 8);
    if (at > 0)
        sign_head(bytes, at, hasher);
    while (at > 0 && n_columns <= 64 && n_bytes - at >= 16 + 16 * n_columns) {
        uint8_t *head = bytes + at;
        size_t end = at + 16 + 16 * (size_t)n_columns;
        for (uint64_t i = 0; i < n_columns; i++) {
            const uint64_t n = le_get64(head + 8 + 16 * i);
            if (n > n_bytes - end)
                break;
            le_put64(head + 16 + 16 * i, tokmap_i_checksum(bytes + end, (size_t)n));
            end += (size_t)n;
        }
        sign_head(head, 16 + 16 * (size_t)n_columns, hasher);
        at = end;
    }
    const uint64_t checksum = tokmap_i_hasher_get(hasher);
    tokmap_i_hasher_close(hasher);
    return checksum;
}

/* The last record of the true journal, with another checksum of the values. */
static void fit_last_record(uint8_t *bytes, uint64_t checksum)
{
    size_t last = HEADER;
    for (size_t at = HEADER; at + HEAD <= journal.n_bytes; at += 8)
        if (tokmap_i_record_is_head(bytes + at))
            last = at;
    le_put64(bytes + last + 104, checksum);
    le_put64(bytes + last + 152, tokmap_i_checksum(bytes + last, 152));
}

/* ---- Journals ---- */

static size_t edit(const stored *s, uint8_t *bytes, const uint8_t *data, size_t n_bytes)
{
    size_t n = s->n_bytes;
    memcpy(bytes, s->bytes, n);
    for (; n_bytes >= 3; data += 3, n_bytes -= 3)
        bytes[le_get16(data) % s->n_bytes] ^= data[2];
    if (n_bytes == 2)
        n = le_get16(data) % s->n_bytes;
    return n;
}

static void fit(uint8_t *bytes, size_t n_bytes)
{
    tokmap_i_journal_header header;
    tokmap_i_checkpoint before = {0}, now;
    tokmap_i_record_parts parts;
    size_t at = HEADER;
    if (n_bytes < HEADER)
        return;
    memcpy(bytes, journal.bytes, HEADER);
    require(tokmap_i_journal_header_decode(bytes, &header));
    while (n_bytes - at >= HEAD) {
        uint8_t *head = bytes + at;
        memcpy(head, journal.bytes + HEADER, 8);
        le_put64(head + 8, before.sequence == 0 ? header.checksum : before.checksum);
        if (tokmap_i_record_head_decode(head, &header, &before, &now))
            break;
        tokmap_i_record_measure(&header, &before, &now, &parts);
        const uint64_t n_payload = tokmap_i_record_payload_bytes(&parts);
        if (n_payload > n_bytes - at - HEAD)
            break;
        le_put64(head + 144, tokmap_i_checksum(head + HEAD, (size_t)n_payload));
        le_put64(head + 152, now.checksum = tokmap_i_checksum(head, 152));
        before = now;
        at += HEAD + (size_t)n_payload;
    }
    if (n_bytes - at >= HEAD)
        le_put64(bytes + at + 152, tokmap_i_checksum(bytes + at, 152));
}

/* ---- What comes of it ---- */

static void expect_dataset(uint64_t k)
{
    tokmap_dataset *ds;
    const void *is;
    const tokmap_verify_options one = {.struct_size = sizeof one, .n_threads = 1};
    tokmap_dataset_info info = {.struct_size = sizeof info};
    require(tokmap_dataset_open(&ds, prefix, NULL) == TOKMAP_OK);
    tokmap_dataset_get_info(ds, &info);
    require(info.n_tokens == tokens_at[k] && info.n_documents == documents_at[k] &&
            info.n_inputs == k);
    require(tokmap_dataset_tokens(ds, 0, info.n_tokens, &is) == TOKMAP_OK);
    require(memcmp(is, tokens.bytes, 2 * info.n_tokens) == 0);
    require(tokmap_dataset_verify(ds, &one, NULL, NULL) == TOKMAP_OK);
    tokmap_dataset_close(ds);
}

static void go_on(bool checksums_were_fitted)
{
    static uint8_t note[TOKMAP_MAX_NOTE_BYTES];
    tokmap_writer *w = NULL;
    tokmap_checkpoint_info info = {.struct_size = sizeof info};
    const tokmap_status asked = tokmap_writer_get_checkpoint(prefix, 0, &info, note, NULL);
    const tokmap_status opened = open_writer(&w, TOKMAP_UNFINISHED_RESUME);
    require(asked <= 0 && (opened < 0) == !w);
    if (opened) {
        require(asked == opened || asked == TOKMAP_OK);
        return;
    }
    const uint64_t k = tokmap_writer_n_checkpoints(w);
    size_t note_bytes;
    require(k == info.n_checkpoints);
    const void *again = tokmap_writer_note(w, &note_bytes);
    require(note_bytes == info.note_bytes && memcmp(again ? again : "", note, note_bytes) == 0);
    require(checksums_were_fitted || k <= N_CHECKPOINTS);
    const tokmap_status finished = tokmap_writer_finish(w, NULL);
    tokmap_writer_close(w);
    if (!checksums_were_fitted) {
        require(finished == TOKMAP_OK);
        expect_dataset(k);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static uint8_t bytes[MAX_JOURNAL];
    if (!folder[0])
        make_true_one();
    if (n_bytes == 0 || n_bytes > MAX_JOURNAL)
        return 0;
    size_t n = n_bytes - 1;
    static uint8_t value_bytes[MAX_JOURNAL];
    size_t n_values = values.n_bytes;
    memcpy(value_bytes, values.bytes, n_values);
    if (data[0] == 3 || data[0] == 4) {
        n_values = edit(&values, value_bytes, data + 1, n);
        n = journal.n_bytes;
        memcpy(bytes, journal.bytes, n);
    } else if (data[0] == 1) {
        n = edit(&journal, bytes, data + 1, n);
    } else {
        memcpy(bytes, data + 1, n);
    }
    if (data[0] == 4 && n_values == values.n_bytes)
        fit_last_record(bytes, fit_values(value_bytes, n_values));
    if (data[0] == 2)
        fit(bytes, n);
    remove_files();
    store(tokens.suffix, tokens.bytes, tokens.n_bytes);
    store(ends.suffix, ends.bytes, ends.n_bytes);
    store(journal.suffix, bytes, n);
    store(values.suffix, value_bytes, n_values);
    go_on(data[0] == 2 || data[0] == 4);
    return 0;
}
