/* SPDX-License-Identifier: Apache-2.0 */
/* publish.h - the file names of a dataset: decides which writer may write P, and makes P visible.
 *
 *     P.bin.partial,  P.tmi.partial    being written; the lock is on the second
 *     P.tmv.partial                    values of documents, until they are in the index
 *     P.tmj.partial                    the journal, if they can be resumed
 *     P.bin.replaced, P.tmi.replaced   the old dataset, while a new one gets its names
 *
 * A dataset is complete or absent: final names are given last, tokens before index, each made
 * durable. A final name is a second name (a link) where the file system has links. The journal and
 * the replaced files are removed next, the partial names last: until then the lock holds, and what
 * a killed writer left can be distinguished from other files. If the new dataset fails, the old one
 * gets its names back, if necessary from the next writer. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/array.h"
#include "system/platform.h"
#include "tokmap.h"

/* The kind of output of a writer. */
typedef enum tokmap_i_output {
    TOKMAP_I_OUTPUT_NEW,     /* P.bin and P.tmi */
    TOKMAP_I_OUTPUT_ADOPTED, /* P.tmi, for a token file that exists; P.bin may be another file */
    TOKMAP_I_OUTPUT_JOINED,  /* P.tmi without P.bin; an existing P.bin is removed */
    TOKMAP_I_OUTPUT_ANY      /* for tokmap_i_writer_enter */
} tokmap_i_output;

typedef struct tokmap_i_names {
    tokmap_i_output output; /* set by the caller */
    bool replace;           /* set by the caller */
    bool resume;            /* set by the caller: P may be left from a killed writer */
    bool owns_partials;     /* this writer holds the lock */
    bool has_journal;       /* partial names are kept; the caller sets it for a new journal */
    bool was_named;         /* the partial index already had its final name when it was locked */
    tokmap_i_file_stat journal_file; /* set by the caller with has_journal, and before publishing */
    tokmap_i_file_stat index_file; /* the locked file, whichever file is called index_partial now */
    tokmap_i_file_stat values_file; /* set by the caller if there are values, before publishing */
    tokmap_i_file_stat token_file;  /* set by the caller, after writing or opening it */
    tokmap_i_bytes unused;          /* set by the caller: paths, each with its NUL, of files that
                                       only the replaced dataset uses */
    char *strings;                  /* the memory of all paths */
    char *token_path;               /* P with its suffix; bin_path unless adopted */
    char *bin_path, *token_partial, *token_replaced;
    char *index_path, *index_partial, *index_replaced;
    char *journal;
    char *values;
} tokmap_i_names;

/* Returns the length of the prefix of a path, which may end in .bin or .tmi. */
size_t tokmap_i_prefix_bytes(const char *path);

/* Makes the names. */
tokmap_status tokmap_i_names_make(tokmap_i_names *n, const char *prefix, size_t prefix_bytes,
                                  const char *suffix, tokmap_error *err);
/* The same as tokmap_i_names_make, but refuses what already exists, unless a killed writer may have
 * left it, which is decided with the lock. */
tokmap_status tokmap_i_names_open(tokmap_i_names *n, const char *prefix, size_t prefix_bytes,
                                  const char *suffix, tokmap_error *err);
/* Takes the lock by opening index_partial, whose content is not changed. */
tokmap_status tokmap_i_names_lock(tokmap_i_names *n, int *fd, tokmap_error *err);
/* Whether P was published by a writer that was killed before it could remove all other names. The
 * lock is held. */
bool tokmap_i_names_published(const tokmap_i_names *n);
/* Clears what a killed writer left, checks again for existing files, and checks that the file
 * system can do what publishing needs. A journal stays, unless its dataset has been published. The
 * lock is held. */
tokmap_status tokmap_i_names_claim(tokmap_i_names *n, tokmap_error *err);
/* Makes the names of a complete dataset durable and removes the others; close removes the partial
 * names. The lock is held. */
tokmap_status tokmap_i_names_clear_up(tokmap_i_names *n, tokmap_error *err);
/* Returns the path of the tokens that belong to the journal; NULL if there are none. */
const char *tokmap_i_names_unfinished(const tokmap_i_names *n);
/* Removes what could be resumed. */
tokmap_status tokmap_i_names_discard(tokmap_i_names *n, tokmap_error *err);
/* Gives the finished, flushed partial files their final names. TOKMAP_ERR_MISMATCH if other files
 * have the partial names now. On failure nothing new is visible, and a dataset that was to be
 * replaced has its names back. */
tokmap_status tokmap_i_names_publish(tokmap_i_names *n, tokmap_error *err);
/* Removes the partial files, if they are ours and cannot be resumed, and frees the strings. */
void tokmap_i_names_close(tokmap_i_names *n);
