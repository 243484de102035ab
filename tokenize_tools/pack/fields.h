/* SPDX-License-Identifier: Apache-2.0 */
/* fields.h - which fields of --meta the inputs of a run have. A field that some inputs lack is null
 * there; a field that all of them lack is an error. */
#pragma once

#include "corpus/corpus.h"
#include "request/error.h"
#include "request/options.h"

typedef struct pack_fields { /* the caller sets the first members; all others are 0 */
    const pack_options *options;
    uint64_t *found;      /* bits of the fields that some input has, */
    uint64_t *lacking;    /* and of those that some input lacks */
    uint64_t seen_before; /* by a run before this one, of the input that it was in */
    bool of_cell;         /* other cells may have them */

    char *why[FIELD_LIST_MAX];          /* of the first input that lacks it; owned */
    uint64_t n_lacking[FIELD_LIST_MAX]; /* inputs that lack it, since this process began, */
    uint64_t n_inputs;                  /* of so many of which it is known */
    bool warned;
} pack_fields;

void pack_fields_free(pack_fields *f);

/* The values of a document, whose number is `n_documents`. Warns once if a field has no value in so
 * many documents that it may be misspelt. */
void pack_fields_see(pack_fields *f, const tokmap_value *values, uint64_t n_documents);
/* The end of an input. */
void pack_fields_end_input(pack_fields *f, const corpus_end *end);
/* Keeps why an input lacks a field. */
void pack_fields_keep(pack_fields *f, size_t field, const char *why);
/* At the end of a run: an error if no input has a field of --meta. Returns an exit code. */
int pack_fields_check(const pack_fields *f, pack_error *err);
/* Prints the fields that some inputs lack. */
void pack_fields_note(const pack_fields *f);
