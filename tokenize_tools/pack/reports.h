/* SPDX-License-Identifier: Apache-2.0 */
/* reports.h - keeps what the corpus reports while it reads, beside the job that it belongs to:
 * messages are printed when it is the job's turn. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "corpus/corpus.h"

/* What the corpus reported: a message, why an input lacks a field, or a document that is left
 * out. */
typedef struct pack_item {
    size_t begin, n_bytes; /* in the text of the reports: the message, "PLACE: REASON" */
    bool is_lacking;       /* with: */
    size_t field;
    bool is_bad;    /* with the members below */
    size_t n_place; /* bytes before ": REASON" */
    uint64_t input;
    corpus_record at;
} pack_item;

/* The counts at the end of a document or an input. If a limit ends the run there, nothing that was
 * read after it counts. */
typedef struct pack_moment {
    corpus_counts counts;
    size_t n_items;
} pack_moment;

/* What the corpus reported while it read. */
typedef struct pack_reports {
    char *text;
    size_t n_bytes, capacity;
    pack_item *items;
    size_t n_items, items_capacity;
    pack_moment *moments; /* one for each end in the batch, if they are needed */
    size_t n_moments, moments_capacity;
    bool no_memory;
} pack_reports;

/* The callbacks of corpus_options; the context is a pointer to the pack_reports of the current
 * read. */
void pack_reports_add_message(void *context, const char *text);
void pack_reports_add_lacking(void *context, size_t field, const char *text);
void pack_reports_add_bad(void *context, const corpus_bad *bad);
void pack_reports_add_moment(void *context, const corpus_counts *counts);
