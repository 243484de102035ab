/* publish.h - the names of a dataset on disk: who may write P, and how it becomes visible.
 *
 *     P.bin.partial,  P.tmi.partial    being written; the lock is on the second
 *     P.tmj.partial                    their journal, if they can be resumed
 *     P.bin.replaced, P.tmi.replaced   the old dataset, aside while a new one takes its names
 *
 * Complete or absent: final names are given last, tokens before index, each made durable. A
 * final name is a second name (link) where the file system has such, and the partial names go
 * at the very end, the journal and what was replaced before them: until then the lock holds, and
 * what a killed writer left can be told from somebody else's file. An old dataset is put back when
 * the new one fails, by the next writer if need be. */
#ifndef TOKMAP_PUBLISH_H
#define TOKMAP_PUBLISH_H

#include <stdbool.h>
#include <stddef.h>

#include "system/platform.h"
#include "tokmap.h"

typedef struct tokmap_i_names {
    bool writes_tokens; /* set by the caller: false where the token file is adopted */
    bool replace;       /* set by the caller */
    bool resume;        /* set by the caller: P may be what a killed writer has made of it */
    bool owns_partials; /* by the lock */
    bool has_journal;   /* so they are kept: set by the lock; by the caller for a new one */
    bool was_named;     /* the lock met a partial index that had its final name already */
    tokmap_i_file_stat journal_file; /* set by the caller with the last, and before publishing */
    tokmap_i_file_stat index_file;   /* that has the lock, whatever is called index_partial now */
    tokmap_i_file_stat token_file;   /* set by the caller: as written, or as opened */
    char *token_path;                /* P and its suffix; bin_path where tokens are written */
    char *bin_path, *token_partial, *token_replaced;
    char *index_path, *index_partial, *index_replaced;
    char *journal;
} tokmap_i_names;

/* Of a path that may end in .bin or .tmi, the bytes of the prefix. */
size_t tokmap_i_prefix_bytes(const char *path);

/* Makes the texts. */
tokmap_status tokmap_i_names_make(tokmap_i_names *n, const char *prefix, size_t prefix_bytes,
                                  const char *suffix, tokmap_error *err);
/* And refuses what already exists, unless a killed writer may have left it: the lock decides. */
tokmap_status tokmap_i_names_open(tokmap_i_names *n, const char *prefix, size_t prefix_bytes,
                                  const char *suffix, tokmap_error *err);
/* Takes the lock, by opening index_partial, which is left as it is. */
tokmap_status tokmap_i_names_lock(tokmap_i_names *n, int *fd, tokmap_error *err);
/* With the lock: whether P was published by a writer that was killed before it had removed all
 * other names. */
bool tokmap_i_names_published(const tokmap_i_names *n);
/* With the lock: clears what a killed writer left, looks again, and makes sure that the folder
 * can be flushed. A journal stays, unless its dataset turns out to be published. */
tokmap_status tokmap_i_names_claim(tokmap_i_names *n, tokmap_error *err);
/* With the lock, of a dataset that is complete: makes its names durable and removes the others; the
 * partial ones go with close. */
tokmap_status tokmap_i_names_clear_up(tokmap_i_names *n, tokmap_error *err);
/* Where the tokens are that belong to the journal; NULL where there are none. */
const char *tokmap_i_names_unfinished(const tokmap_i_names *n);
/* Gives up what could be resumed. */
tokmap_status tokmap_i_names_discard(tokmap_i_names *n, tokmap_error *err);
/* Gives the finished, flushed partial files their final names; TOKMAP_ERR_MISMATCH when other files
 * have the partial names by now. On failure nothing new is visible, and a dataset that was to be
 * replaced is back. */
tokmap_status tokmap_i_names_publish(tokmap_i_names *n, tokmap_error *err);
/* Removes the partial names, if they are ours and cannot be resumed, and frees the texts. */
void tokmap_i_names_close(tokmap_i_names *n);

#endif /* TOKMAP_PUBLISH_H */
