/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/format.h"
#include "formats/tar_header.h"

#define MAX_REPORTED 10 /* members of an archive */

typedef struct tar_reader {
    reader base;      /* its inner reader reads text */
    const char *name; /* of the archive */
    char label[200];  /* the archive and the member, for messages */
    tar_member member;
    bool in_member, at_end;
    uint64_t end;                /* of the member's data */
    uint64_t n_read, n_left_out; /* members */
} tar_reader;

static window *window_of(const tar_reader *t)
{
    return &t->base.inner->window;
}

/* ---- Members that hold no documents ---- */

static const char *why_left_out(const tar_reader *t)
{
    const tar_member *m = &t->member;
    static const char *const types[] = {['1'] = "a hard link",
                                        ['2'] = "a symbolic link",
                                        ['3'] = "a device",
                                        ['4'] = "a device",
                                        ['6'] = "a pipe"};
    const uint8_t type = (uint8_t)m->type;
    if (type < sizeof types / sizeof *types && types[type])
        return types[type];
    if (m->kind == TAR_FILE && tar_document_kind(m->name) != TAR_NO_DOCUMENT)
        return t->base.format == CORPUS_JSON_LINES ? "JSON is read from this archive"
                                                   : "text is read from this archive";
    return m->kind == TAR_FILE ? "neither text nor JSON by its name" : "not a file";
}

/* quietly: it was reported before. Folders are not worth a word: they hold nothing. */
static void leave_out(tar_reader *t, bool quietly)
{
    const tar_member *m = &t->member;
    const size_t n = strlen(m->name);
    if (m->type == '5' || (m->kind == TAR_OTHER && n > 0 && m->name[n - 1] == '/'))
        return;
    if (t->n_left_out++ < MAX_REPORTED && !quietly)
        reader_report(&t->base, "%.200s: member %.300s is left out: %s", t->name, m->name,
                      why_left_out(t));
}

/* ---- From member to member ---- */

/* false: the archive ends before that, or cannot be read. */
static bool skip_bytes(tar_reader *t, uint64_t n_bytes, failure *err)
{
    uint64_t n_taken;
    window *w = window_of(t);
    const uint64_t from = w->offset;
    if (!window_take(w, NULL, n_bytes, &n_taken, err))
        return false;
    return n_taken == n_bytes ||
           fail(err,
                "the archive is truncated: it ends in a member that continues to "
                "byte %" PRIu64,
                from + n_bytes);
}

/* The data that describes the next member. */
static bool take_extra(tar_reader *t, failure *err)
{
    tar_member *m = &t->member;
    window *w = window_of(t);
    const uint64_t from = w->offset;
    uint64_t n_taken;
    uint8_t *data = malloc((size_t)m->data_bytes + 1);
    if (!data)
        return fail_memory(err);
    bool done = window_take(w, data, m->data_bytes, &n_taken, err);
    if (done && n_taken < m->data_bytes)
        done = fail(err, "the archive is truncated: it ends in a header");
    const char *why = done ? tar_add_extra(m, data, (size_t)m->data_bytes) : NULL;
    free(data);
    if (why) {
        fail(err, "%s", why);
        return fail_at(err, "%.200s: byte %" PRIu64 ": ", t->name, from);
    }
    return done && skip_bytes(t, tar_padding(m->data_bytes), err);
}

/* After a block of zeros. tar pads archives with any number of them. */
static bool check_end(tar_reader *t, failure *err)
{
    window *w = window_of(t);
    for (;;) {
        const uint8_t *bytes = window_text(w);
        size_t n = 0;
        while (n < window_size(w) && bytes[n] == 0)
            n++;
        window_consume(w, n);
        if (window_size(w) > 0)
            return fail(err,
                        "data after the end of the archive; if archives were joined, unpack them "
                        "with tar --ignore-zeros");
        if (w->at_end)
            return true;
        if (!window_fill(w, err))
            return false;
    }
}

/* Reads headers up to that of a file, a folder and so on, or to the end of the archive. */
static bool next_header(tar_reader *t, failure *err)
{
    uint8_t block[TAR_BLOCK_BYTES];
    window *w = window_of(t);
    uint64_t n_taken;
    do {
        const uint64_t at = w->offset;
        if (!window_take(w, block, TAR_BLOCK_BYTES, &n_taken, err))
            return false;
        if (n_taken > 0 && n_taken < TAR_BLOCK_BYTES)
            return fail(err, "the archive is truncated: it ends in a block");
        const char *why = n_taken ? tar_read_header(&t->member, block)
                                  : "the archive is truncated: its end is missing";
        if (why)
            fail(err, "%s", why);
        else if (t->member.kind == TAR_SPARSE)
            fail(err,
                 "the member %.300s is stored as a sparse file, which is not read; make the "
                 "archive without --sparse",
                 t->member.name);
        if (why || t->member.kind == TAR_SPARSE)
            return fail_at(err, "%.200s: byte %" PRIu64 ": ", t->name, at);
        if (t->member.kind == TAR_EXTRA && !take_extra(t, err))
            return false;
    } while (t->member.kind == TAR_EXTRA);
    return t->member.kind != TAR_ZEROS || check_end(t, err);
}

/* Whether this member is read. The first one that could be decides, unless the user did. */
static bool is_wanted(tar_reader *t, tar_document kind)
{
    if (t->member.kind != TAR_FILE || kind == TAR_NO_DOCUMENT)
        return false;
    if (t->base.format == CORPUS_AUTO)
        t->base.format =
            kind == TAR_TEXT && !t->base.options->fields_only ? CORPUS_TEXT : CORPUS_JSON_LINES;
    return (kind == TAR_TEXT) == (t->base.format != CORPUS_JSON_LINES);
}

static void set_label(tar_reader *t)
{
    const int room = 90;
    const char *name = t->member.name;
    const size_t n = strlen(name);
    const bool fits = n <= (size_t)room;
    snprintf(t->label, sizeof t->label, "%.95s: member %s%.*s", t->name, fits ? "" : "...", room,
             fits ? name : name + n - room);
    window_of(t)->name = t->label;
}

/* Goes to the next member that is read, or to the end of the archive. */
static bool next_member(tar_reader *t, bool quietly, failure *err)
{
    window *w = window_of(t);
    while (!t->at_end) {
        if (!next_header(t, err))
            return false;
        if (t->member.kind == TAR_ZEROS) {
            t->at_end = true;
            break;
        }
        const tar_document kind = tar_document_kind(t->member.name);
        const uint64_t n_bytes = t->member.data_bytes;
        if (is_wanted(t, kind)) {
            t->in_member = true;
            t->base.names_byte = false; /* but the place in the text */
            t->n_read++;
            t->end = w->offset + n_bytes;
            set_label(t);
            window_limit(w, n_bytes);
            text_reader_restart(t->base.inner, t->base.format, kind == TAR_JSON);
            return true;
        }
        leave_out(t, quietly);
        if (!skip_bytes(t, n_bytes + tar_padding(n_bytes), err))
            return false;
    }
    const uint64_t n_more = t->n_left_out > MAX_REPORTED ? t->n_left_out - MAX_REPORTED : 0;
    if (!quietly && n_more > 0)
        reader_report(&t->base, "%.200s: %" PRIu64 " more member%s left out", t->name, n_more,
                      n_more == 1 ? " is" : "s are");
    /* Otherwise an archive of .csv or .txt.gz would be lost without an error. */
    if (t->n_read > 0 || t->n_left_out == 0)
        return true;
    fail(err, "no member of this archive is text or JSON by its name (.txt, .text, .md, .json, "
              ".jsonl, .ndjson); unpack it to pack other files");
    return fail_kind(err, "a tar archive without text");
}

/* Skips what is left of the member. */
static bool leave_member(tar_reader *t, failure *err)
{
    window *w = window_of(t);
    const uint64_t next = t->end + tar_padding(t->member.data_bytes);
    window_limit(w, UINT64_MAX);
    w->name = t->name;
    t->in_member = false;
    t->base.names_byte = true;
    return skip_bytes(t, next - w->offset, err);
}

/* ---- The reader ---- */

static reader_result next_tar(reader *base, document *d, failure *err)
{
    tar_reader *t = (tar_reader *)base;
    while (!t->at_end) {
        if (!t->in_member && !next_member(t, false, err))
            return READER_FAILED;
        const reader_result result =
            t->in_member ? base->inner->kind->next(base->inner, d, err) : READER_END;
        if (result == READER_FAILED)
            err->kind = NULL; /* it is that of a member: the others may be text */
        if (result != READER_END)
            return result;
        if (t->in_member && !leave_member(t, err))
            return READER_FAILED;
    }
    return READER_END;
}

/* A place is in a member, or at an end of the archive. */
static int seek_tar(reader *base, reader_place to, uint64_t max_bytes, failure *err)
{
    tar_reader *t = (tar_reader *)base;
    window *w = window_of(t);
    const uint64_t from = w->offset;
    base->inner->n_records = to.n_records;
    while (w->offset < to.offset || t->in_member) {
        if (t->in_member && to.offset <= t->end)
            return base->inner->kind->seek(base->inner, to, max_bytes, err);
        if (t->in_member && !leave_member(t, err))
            return -1;
        if (w->offset - from >= max_bytes)
            return 0;
        if (!next_member(t, true, err))
            return -1;
        if (t->at_end && w->offset < to.offset) {
            fail_changed(err,
                         "has changed: it ends here, but an earlier run read up to byte %" PRIu64,
                         to.offset);
            return -1;
        }
    }
    return 1;
}

static reader_place place_of_tar(const reader *base)
{
    const reader *text = base->inner;
    return ((const tar_reader *)base)->in_member
               ? text->kind->where(text)
               : (reader_place){.offset = text->window.offset, .n_records = text->n_records};
}

static bool open_tar(reader *base, failure *err)
{
    tar_reader *t = (tar_reader *)base;
    reader text = *base;
    text.kind = &text_reader_kind;
    base->format = base->options->format;
    base->names_byte = true;
    base->inner = reader_new(&text, err);
    t->name = base->window.name;
    base->window = (window){0};
    return base->inner != NULL;
}

const reader_kind tar_reader_kind = {
    .reader_bytes = sizeof(tar_reader),
    .open = open_tar,
    .next = next_tar,
    .seek = seek_tar,
    .where = place_of_tar,
};
