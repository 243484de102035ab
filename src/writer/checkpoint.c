/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint.c - makes checkpoints, and resumes from them: everything up to the last checkpoint is
 * on the disk, and another writer can continue from there. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/error.h"
#include "base/le.h"
#include "base/options.h"
#include "dataset/dataset.h"
#include "system/platform.h"
#include "writer/writer.h"

enum {
    CHECKED_BLOCKS = 1024, /* blocks of 1 MiB */
    UNCHECKED_SHARE = 100
};

/* ---- Making a checkpoint ---- */

/* Makes everything that the record describes durable, then writes and flushes the record. */
static tokmap_status save_checkpoint(tokmap_writer *w, const void *note, size_t note_bytes,
                                     tokmap_error *err)
{
    tokmap_i_record_parts parts = {.data[TOKMAP_I_NOTE] = note};
    tokmap_status status = tokmap_i_writer_flush(w, err);
    tokmap_i_checkpoint now = {.sequence = w->journal.last.sequence + 1,
                               .n_tokens = w->n_tokens,
                               .largest_id = w->header.largest_id,
                               .tokens_hash = w->header.tokens_hash,
                               .note_bytes = (uint32_t)note_bytes,
                               .input_before_document = w->input_before_document,
                               .block_checksum = tokmap_i_hasher_get(w->hasher)};
    if (!status)
        status = tokmap_i_writer_sync(w, err);
    if (!status)
        status = tokmap_i_index_writer_save(w->index, &now, err);
    if (!status && w->meta)
        status = tokmap_i_meta_writer_save(w->meta, &now, err);
    const tokmap_i_journal_header header = {.token_bytes = w->header.token_bytes,
                                            .eod_id = w->header.eod_id,
                                            .vocab_size = w->header.vocab_size};
    if (!status && w->journal.fd < 0)
        status = tokmap_i_journal_create(&w->journal, w->names.journal, &header, err);
    if (status)
        return status;
    tokmap_i_record_measure(&w->journal.header, &w->journal.last, &now, &parts);
    tokmap_i_index_writer_tails(w->index, &parts);
    status = tokmap_i_journal_append(&w->journal, &now, &parts, err);
    if (status || w->names.has_journal)
        return status;
    int error = tokmap_i_file_stat_fd(w->journal.fd, &w->names.journal_file);
    if (!error)
        error = tokmap_i_folder_sync(w->names.journal);
    w->names.has_journal = !error; /* from now on the partial files are kept */
    return CHECK_IO(err, error, "%s: cannot flush its folder to the disk", w->names.journal);
}

tokmap_status tokmap_writer_checkpoint(tokmap_writer *w, const void *note, size_t note_bytes,
                                       tokmap_error *err)
{
    tokmap_status status =
        tokmap_i_writer_enter(w, note || note_bytes == 0, TOKMAP_I_OUTPUT_ANY, __func__, err);
    if (status)
        return status;
    if (!w->options.resumable)
        status = FAIL(&w->failure, TOKMAP_ERR_ARGUMENT, "%s: was not opened to be resumable",
                      w->names.index_path);
    else if (note_bytes > TOKMAP_MAX_NOTE_BYTES)
        status = FAIL(&w->failure, TOKMAP_ERR_ARGUMENT,
                      "%s: the note has %zu bytes; the limit is 64 KiB", w->names.index_path,
                      note_bytes);
    else
        status = save_checkpoint(w, note, note_bytes, &w->failure);
    return tokmap_i_writer_leave(w, status, err);
}

/* ---- Resuming ---- */

typedef struct text_of_id {
    char s[24];
} text_of_id;

static text_of_id eod_text(uint32_t eod_id)
{
    text_of_id text = {"no eod_id"};
    if (eod_id != TOKMAP_NO_ID)
        snprintf(text.s, sizeof text.s, "eod_id %" PRIu32, eod_id);
    return text;
}

static tokmap_status check_same_options(const tokmap_writer *w, tokmap_error *err)
{
    const tokmap_i_journal_header *was = &w->journal.header;
    const tokmap_i_header *is = &w->header;
    if (was->vocab_size == is->vocab_size && was->token_bytes == is->token_bytes &&
        was->eod_id == is->eod_id)
        return TOKMAP_OK;
    return FAIL(err, TOKMAP_ERR_MISMATCH,
                "%s: was started with vocab_size %" PRIu64 ", token_bytes %" PRIu32
                " and %s, not %" PRIu64 ", %" PRIu32
                " and %s: resume it with the same values, or discard it to start over",
                w->names.journal, was->vocab_size, was->token_bytes, eod_text(was->eod_id).s,
                is->vocab_size, is->token_bytes, eod_text(is->eod_id).s);
}

/* Restores the writer's own part of a checkpoint; the index writer restores the rest. */
static tokmap_status restore_counts(tokmap_writer *w, tokmap_error *err)
{
    const tokmap_i_checkpoint *c = &w->journal.last;
    const tokmap_i_record_parts *parts = &w->journal.parts;
    w->n_tokens = c->n_tokens;
    w->header.largest_id = c->largest_id;
    w->header.tokens_hash = c->tokens_hash;
    w->input_before_document = c->input_before_document;
    w->note.n_bytes = 0;
    if (!tokmap_i_bytes_append(&w->note, parts->data[TOKMAP_I_NOTE],
                               (size_t)parts->n_bytes[TOKMAP_I_NOTE]))
        return FAIL_MEMORY(err);
    return tokmap_i_index_writer_restore(w->index, c, parts, err);
}

/* Reads the journal up to the wanted checkpoint. TOKMAP_END if there is nothing to resume. */
static tokmap_status read_journal(tokmap_writer *w, tokmap_error *err)
{
    const uint64_t wanted = w->options.resume_checkpoint;
    tokmap_i_journal *j = &w->journal;
    tokmap_status status = tokmap_i_journal_open(j, w->names.journal, true, err);
    if (!status)
        status = check_same_options(w, err);
    while (!status && (wanted == 0 || j->last.sequence < wanted)) {
        status = tokmap_i_journal_next(j, err);
        if (!status)
            status = restore_counts(w, err);
    }
    const bool at_the_end = status == TOKMAP_END && wanted == 0 && j->last.sequence > 0;
    return at_the_end ? TOKMAP_OK : status;
}

/* Reads n_bytes back into the buffer, and compares their checksum. */
static tokmap_status check_block(tokmap_writer *w, uint64_t offset, size_t n_bytes,
                                 uint64_t checksum, tokmap_error *err)
{
    size_t n_read;
    const int error = tokmap_i_file_read(w->token_fd, w->buffer, n_bytes, offset, &n_read);
    if (error)
        return FAIL_IO_AT(err, error, offset, "%s: cannot read", w->names.token_partial);
    if (tokmap_i_checksum(w->buffer, n_read) == checksum)
        return TOKMAP_OK;
    return FAIL_AT(
        err, TOKMAP_ERR_CORRUPT, offset,
        "%s: does not match its journal in the block at byte %" PRIu64 TOKMAP_I_CANNOT_RESUME,
        w->names.token_partial, offset);
}

/* Checks the tokens. All were on the disk before the journal stated so, but disks and users may
 * have changed the file since. So all blocks of the last gibibyte are read again, and one in a
 * hundred of the blocks before it, different ones after each checkpoint. The last, unfinished block
 * has to be read anyway, to continue its checksum. */
static tokmap_status check_tokens(tokmap_writer *w, tokmap_error *err)
{
    const uint64_t n_bytes = w->n_tokens * w->header.token_bytes;
    const uint64_t n_blocks = n_bytes / TOKMAP_I_BLOCK_BYTES;
    const uint64_t begun = n_blocks * TOKMAP_I_BLOCK_BYTES;
    tokmap_i_file_stat stat;
    const int error = tokmap_i_file_stat_fd(w->token_fd, &stat);
    if (error)
        return FAIL_IO(err, error, "%s: cannot read", w->names.token_partial);
    if (stat.n_bytes < n_bytes)
        return FAIL(err, TOKMAP_ERR_CORRUPT,
                    "%s: shorter than its journal states" TOKMAP_I_CANNOT_RESUME,
                    w->names.token_partial);
    tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; !status && i < n_blocks; i++)
        if (n_blocks - i <= CHECKED_BLOCKS ||
            i % UNCHECKED_SHARE == w->journal.last.sequence % UNCHECKED_SHARE)
            status = check_block(w, i * TOKMAP_I_BLOCK_BYTES, TOKMAP_I_BLOCK_BYTES,
                                 le_get64(w->index->blocks.data + 8 * i), err);
    w->hashed = (size_t)(n_bytes - begun);
    if (!status)
        status = check_block(w, begun, w->hashed, w->journal.last.block_checksum, err);
    if (!status)
        tokmap_i_hasher_add(w->hasher, w->buffer, w->hashed);
    return status;
}

/* Opens and checks the tokens, the values and the index. Then renames the tokens back to their
 * partial name. */
static tokmap_status open_tokens(tokmap_writer *w, const char *path, tokmap_error *err)
{
    const tokmap_i_checkpoint *c = &w->journal.last;
    const int error = tokmap_i_file_open_again(path, &w->token_fd);
    if (error)
        return FAIL_IO(err, error, "%s: cannot open", path);
    tokmap_status status = check_tokens(w, err);
    if (!status && c->values_bytes > 0)
        status = tokmap_i_meta_writer_resume(&w->meta, w->names.values, c, err);
    w->index->meta = w->meta;
    w->index->has_spans = c->has_spans;
    if (!status)
        status = tokmap_i_index_writer_check(w->index, c->ends_checksum, err);
    if (status || strcmp(path, w->names.token_partial) == 0)
        return status;
    return CHECK_IO(err, tokmap_i_file_rename(path, w->names.token_partial),
                    "%s: cannot rename it to its .partial name", path);
}

/* Shortens the files, the journal first, because it must never describe what has been cut off. A
 * file with a second name, which may be a user's copy, is not cut. */
static tokmap_status shorten_files(tokmap_writer *w, tokmap_error *err)
{
    tokmap_i_file_stat stat, values = {.n_names = 1};
    int error = tokmap_i_file_stat_fd(w->token_fd, &stat);
    if (!error)
        error = tokmap_i_file_stat_fd(w->journal.fd, &w->names.journal_file);
    if (!error && w->meta)
        error = tokmap_i_file_stat_fd(w->meta->fd, &values);
    if (error)
        return FAIL_IO(err, error, "%s: cannot read", w->names.token_partial);
    if (stat.n_names > 1 || w->names.journal_file.n_names > 1 || values.n_names > 1)
        return FAIL(err, TOKMAP_ERR_EXISTS,
                    "%s: has a second name (a hard link); remove one of the two to resume",
                    stat.n_names > 1     ? w->names.token_partial
                    : values.n_names > 1 ? w->names.values
                                         : w->names.journal);
    tokmap_status status = tokmap_i_journal_cut(&w->journal, err);
    if (!status)
        status =
            CHECK_IO(err, tokmap_i_file_resize(w->token_fd, w->n_tokens * w->header.token_bytes),
                     "%s: cannot shorten", w->names.token_partial);
    if (!status)
        status = tokmap_i_index_writer_cut(w->index, err);
    if (!status && w->meta)
        status = CHECK_IO(err, tokmap_i_file_resize(w->meta->fd, w->meta->n_bytes),
                          "%s: cannot shorten", w->names.values);
    else if (!status)
        tokmap_i_file_remove(w->names.values);
    return status;
}

static tokmap_status nothing_to_resume(tokmap_writer *w, tokmap_error *err)
{
    const uint64_t n_checkpoints = w->journal.last.sequence;
    tokmap_i_journal_close(&w->journal);
    if (w->options.resume_checkpoint == 0)
        return TOKMAP_OK;
    return FAIL(err, TOKMAP_ERR_ARGUMENT,
                "%s: there is no checkpoint %" PRIu64 "; the last one is %" PRIu64,
                w->names.journal, w->options.resume_checkpoint, n_checkpoints);
}

/* Whether the dataset is complete. A writer that was killed after it had removed all other names
 * leaves only a complete P with these options. */
static bool is_complete(const tokmap_writer *w)
{
    tokmap_dataset *ds;
    if (tokmap_i_names_published(&w->names))
        return true;
    if (w->names.replace || tokmap_i_file_exists(w->names.token_partial) ||
        tokmap_dataset_open(&ds, w->names.index_path, NULL))
        return false;
    const bool fits =
        !tokmap_i_is_set_aside(ds) && strcmp(ds->token_path, w->names.token_path) == 0 &&
        ds->header.vocab_size == w->header.vocab_size &&
        ds->header.token_bytes == w->header.token_bytes && ds->header.eod_id == w->header.eod_id;
    tokmap_dataset_close(ds);
    return fits;
}

/* Everything is checked before anything is changed. */
tokmap_status tokmap_i_writer_resume(tokmap_writer *w, tokmap_error *err)
{
    tokmap_status status = TOKMAP_OK;
    if (is_complete(w)) {
        status = tokmap_i_names_clear_up(&w->names, err);
        return status ? status : FAIL(err, TOKMAP_END, "%s: is complete", w->names.index_path);
    }
    const char *tokens = w->names.has_journal ? tokmap_i_names_unfinished(&w->names) : NULL;
    status = tokens ? read_journal(w, err) : TOKMAP_END;
    if (status == TOKMAP_END)
        return nothing_to_resume(w, err);
    if (!status)
        status = open_tokens(w, tokens, err);
    if (!status)
        status = tokmap_i_names_claim(&w->names, err);
    return status ? status : shorten_files(w, err);
}

/* ---- Listing checkpoints ---- */

const void *tokmap_writer_note(const tokmap_writer *w, size_t *n_bytes)
{
    if (!n_bytes)
        return NULL;
    *n_bytes = w ? w->note.n_bytes : 0;
    return w ? w->note.data : NULL;
}

uint64_t tokmap_writer_n_checkpoints(const tokmap_writer *w)
{
    return w ? w->journal.last.sequence : 0;
}

static tokmap_status find_checkpoint(const char *path, uint64_t wanted,
                                     tokmap_checkpoint_info *info, void *note, tokmap_error *err)
{
    tokmap_i_journal j = TOKMAP_I_NO_JOURNAL;
    tokmap_status status = tokmap_i_journal_open(&j, path, false, err);
    while (!status) {
        status = tokmap_i_journal_next(&j, err);
        if (status)
            break;
        info->n_checkpoints = j.last.sequence;
        if (wanted != 0 && wanted != j.last.sequence)
            continue;
        info->n_tokens = j.last.n_tokens;
        info->n_documents = j.last.n_documents;
        info->n_inputs = j.last.n_inputs;
        info->vocab_size = j.header.vocab_size;
        info->token_bytes = j.header.token_bytes;
        info->eod_id = j.header.eod_id;
        info->note_bytes = (size_t)j.parts.n_bytes[TOKMAP_I_NOTE];
        if (note)
            memcpy(note, j.parts.data[TOKMAP_I_NOTE], info->note_bytes);
    }
    tokmap_i_journal_close(&j);
    const bool found = info->n_checkpoints >= wanted;
    if (status == TOKMAP_END && !found)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "%s: there is no checkpoint %" PRIu64 "; the last one is %" PRIu64, path,
                    wanted, info->n_checkpoints);
    if (status != TOKMAP_END && (wanted == 0 || !found))
        return status;
    tokmap_i_error_clear(err);
    return TOKMAP_OK;
}

tokmap_status tokmap_i_writer_refuse_unfinished(const tokmap_writer *w, tokmap_error *err)
{
    tokmap_checkpoint_info last = {0};
    if (!tokmap_i_names_unfinished(&w->names))
        return TOKMAP_OK;
    const tokmap_status status = find_checkpoint(w->names.journal, 0, &last, NULL, err);
    const bool damaged = status == TOKMAP_ERR_CORRUPT || status == TOKMAP_ERR_VERSION;
    if (!damaged && (status || last.n_checkpoints == 0))
        return status;
    return FAIL_REASON(
        err, TOKMAP_ERR_EXISTS, TOKMAP_REASON_UNFINISHED,
        "%s: an unfinished dataset of %" PRIu64
        " tokens, which can be resumed; resume it, or remove this file to discard it",
        w->names.journal, last.n_tokens);
}

tokmap_status tokmap_writer_get_checkpoint(const char *prefix, uint64_t checkpoint,
                                           tokmap_checkpoint_info *info, void *note,
                                           tokmap_error *err)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_checkpoint_info, n_checkpoints)};
    tokmap_checkpoint_info all = {0};
    tokmap_i_names names = {0};
    tokmap_i_error_clear(err);
    if (!prefix)
        return FAIL_NULL(err);
    tokmap_status status = tokmap_i_check_struct(info, &kind, err);
    if (status)
        return status;
    status = tokmap_i_names_make(&names, prefix, tokmap_i_prefix_bytes(prefix), ".bin", err);
    if (!status && (checkpoint > 0 || tokmap_i_names_unfinished(&names)))
        status = find_checkpoint(names.journal, checkpoint, &all, note, err);
    tokmap_i_names_close(&names);
    tokmap_i_give_struct(info, &all, &kind, NULL);
    return status;
}
