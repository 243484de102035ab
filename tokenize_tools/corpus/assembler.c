/* SPDX-License-Identifier: Apache-2.0 */
#include "corpus/assembler.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/utf8.h"

static const uint8_t replacement[] = {0xef, 0xbf, 0xbd};

bool assembler_next_batch(assembler *a, corpus_batch *batch)
{
    size_t limit = a->n_carry > a->options->batch_bytes ? a->n_carry : a->options->batch_bytes;
    /* So that one long document does not cost memory for ever. */
    if (batch->capacity / 4 > limit + CORPUS_PADDING) {
        free(batch->text);
        batch->text = NULL;
        batch->capacity = 0;
    }
    if (!array_reserve(&batch->text, &batch->capacity, limit + CORPUS_PADDING, 1))
        return false;
    if (a->n_carry)
        memcpy(batch->text, a->carry, a->n_carry);
    batch->n_bytes = a->n_carry;
    batch->n_ends = 0;
    batch->values_bytes = 0;
    a->n_carry = 0;
    a->begin = a->n_searched = 0;
    a->limit = limit;
    a->batch = batch;
    return true;
}

void assembler_free(assembler *a)
{
    free(a->carry);
}

uint64_t assembler_document_bytes(const assembler *a)
{
    return a->n_before + (a->batch->n_bytes - a->begin);
}

void assembler_begin_document(assembler *a)
{
    a->begin = a->batch->n_bytes;
    a->n_searched = 0;
    a->n_before = a->n_discard = 0;
    a->replacements = 0;
    a->may_cut = false;
}

void assembler_drop(assembler *a)
{
    a->batch->n_bytes = a->begin;
    a->n_before = 0;
    a->replacements = 0;
}

/* ---- Repairing ---- */

typedef enum stop {
    STOP_END, /* nothing more can be decided now */
    STOP_ROOM,
    STOP_BAD
} stop;

static void append_text(assembler *a, reader_text *text, const uint8_t *bytes, size_t n_bytes,
                        size_t n_read)
{
    memcpy(a->batch->text + a->batch->n_bytes, bytes, n_bytes);
    a->batch->n_bytes += n_bytes;
    text->bytes += n_read;
    text->n_bytes -= n_read;
}

/* One run of valid characters, and the invalid bytes that end it. */
static stop repair_some(assembler *a, reader_text *text)
{
    /* Appends as many valid characters as fit; marked text is no UTF-8. */
    size_t n_bytes = a->limit - a->batch->n_bytes;
    n_bytes = n_bytes < text->n_bytes ? n_bytes : text->n_bytes;
    if (a->options->list) {
        append_text(a, text, text->bytes, n_bytes, n_bytes);
        return text->n_bytes == 0 ? STOP_END : STOP_ROOM;
    }
    n_bytes = utf8_valid_prefix(text->bytes, n_bytes);
    append_text(a, text, text->bytes, n_bytes, n_bytes);
    if (text->n_bytes == 0)
        return STOP_END;
    size_t n_next = text->n_bytes < 4 ? text->n_bytes : 4;
    if (a->batch->n_bytes == a->limit || utf8_valid_prefix(text->bytes, n_next) > 0)
        return STOP_ROOM;
    /* Handles invalid bytes at the beginning of the text. */
    const corpus_options *options = a->options;
    size_t room = a->limit - a->batch->n_bytes;
    size_t n_bad = utf8_bad_bytes(text->bytes, text->n_bytes);
    if (n_bad == 0 && !text->last)
        return STOP_END;
    n_bad = n_bad ? n_bad : text->n_bytes;
    if (options->utf8 == UTF8_ERROR) {
        a->bad_at = assembler_document_bytes(a);
        snprintf(a->reason, sizeof a->reason,
                 "the document is not valid UTF-8 at its byte %" PRIu64, a->bad_at);
        return STOP_BAD;
    }
    bool raw = options->utf8 == UTF8_RAW;
    if (room < (raw ? n_bad : sizeof replacement))
        return STOP_ROOM;
    append_text(a, text, raw ? text->bytes : replacement, raw ? n_bad : sizeof replacement, n_bad);
    a->replacements += !raw;
    return STOP_END;
}

static stop repair_text(assembler *a, reader_text *text)
{
    size_t n_left;
    stop stopped;
    do {
        n_left = text->n_bytes;
        stopped = repair_some(a, text);
    } while (stopped == STOP_END && text->n_bytes > 0 && text->n_bytes < n_left);
    return stopped;
}

/* ---- Cutting ---- */

static void discard_seen_text(assembler *a)
{
    size_t n_bytes = a->batch->n_bytes - a->begin;
    uint8_t *text = a->batch->text + a->begin;
    if (a->n_discard == 0)
        return;
    n_bytes = a->n_discard < n_bytes ? (size_t)a->n_discard : n_bytes;
    memmove(text, text + n_bytes, a->batch->n_bytes - a->begin - n_bytes);
    a->batch->n_bytes -= n_bytes;
    a->n_before += n_bytes;
    a->n_discard -= n_bytes;
}

static bool cut_batch(assembler *a, size_t at)
{
    size_t n_bytes = a->batch->n_bytes - at;
    if (!array_reserve(&a->carry, &a->carry_capacity, n_bytes, 1))
        return false;
    memcpy(a->carry, a->batch->text + at, n_bytes);
    a->n_carry = n_bytes;
    a->batch->n_bytes = at;
    return true;
}

/* ADD_DONE: there is room now. */
static add_result make_room(assembler *a)
{
    const corpus_options *options = a->options;
    corpus_batch *batch = a->batch;
    if (a->begin > 0)
        return cut_batch(a, a->begin) ? ADD_FULL : ADD_NO_MEMORY;
    size_t at = batch->n_bytes;
    if (options->safe_cut)
        at = options->safe_cut(options->context, batch->text, a->n_searched, batch->n_bytes);
    if (at > 0 && !a->may_cut)
        return ADD_FIRST_CUT;
    if (at > 0) {
        if (!cut_batch(a, at))
            return ADD_NO_MEMORY;
        a->n_before += at;
        return ADD_FULL;
    }
    size_t max = options->max_piece_bytes;
    if (a->limit >= max) {
        a->bad_at = 0;
        snprintf(a->reason, sizeof a->reason,
                 "more than %zu bytes without a place to cut; raise --memory", max);
        return ADD_BAD;
    }
    a->n_searched = batch->n_bytes;
    a->limit = a->limit < max / 2 ? a->limit * 2 : max;
    return array_reserve(&batch->text, &batch->capacity, a->limit + CORPUS_PADDING, 1)
               ? ADD_DONE
               : ADD_NO_MEMORY;
}

add_result assembler_add(assembler *a, reader_text *text)
{
    for (;;) {
        stop stopped = repair_text(a, text);
        bool discarding = a->n_discard > 0;
        discard_seen_text(a);
        if (stopped == STOP_BAD)
            return ADD_BAD;
        if (text->last && text->n_bytes == 0 && text->lone_surrogates &&
            a->options->utf8 == UTF8_ERROR) {
            a->bad_at = 0;
            snprintf(a->reason, sizeof a->reason, "a lone surrogate in the text");
            return ADD_BAD;
        }
        if (stopped == STOP_END) {
            if (text->last)
                a->replacements += text->lone_surrogates;
            return ADD_DONE;
        }
        add_result room = discarding ? ADD_DONE : make_room(a);
        if (room != ADD_DONE)
            return room;
    }
}
