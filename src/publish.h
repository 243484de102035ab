/* publish.h - the names of a dataset on disk: who may write P, and how it becomes visible.
 *
 *     P.bin.partial,  P.tmi.partial    being written; the lock is on the second
 *     P.bin.replaced, P.tmi.replaced   the old dataset, aside while a new one takes its names
 *
 * Complete or absent: final names are given last, tokens before index, each made durable. A
 * final name is a second name (link) where the file system has such, and the partial names go
 * at the very end: until then the lock holds, and what a killed writer left can be told from
 * somebody else's file. An old dataset is put back when the new one fails, by the next writer
 * if need be. */
#ifndef TOKMAP_PUBLISH_H
#define TOKMAP_PUBLISH_H

#include <stdbool.h>
#include <stddef.h>

#include "tokmap.h"

typedef struct tokmap_i_names {
    bool writes_tokens; /* set by the caller: false where the token file is adopted */
    bool replace;       /* set by the caller */
    bool owns_partials; /* by the lock */
    char *token_path;   /* P and its suffix; bin_path where tokens are written */
    char *bin_path, *token_partial, *token_replaced;
    char *index_path, *index_partial, *index_replaced;
} tokmap_i_names;

/* Makes the names and refuses what is there already. */
tokmap_status tokmap_i_names_open(tokmap_i_names *n, const char *prefix, size_t prefix_bytes,
                                  const char *suffix, tokmap_error *err);
/* To be called once the lock on index_partial is held: clears what a killed writer left, looks
 * again, and makes sure that the folder can be flushed. */
tokmap_status tokmap_i_names_claim(tokmap_i_names *n, tokmap_error *err);
/* Gives the finished, flushed partial files their final names. On failure nothing new is visible,
 * and a dataset that was to be replaced is back. */
tokmap_status tokmap_i_names_publish(tokmap_i_names *n, tokmap_error *err);
/* Removes the partial names, if they are ours, and frees the texts. */
void tokmap_i_names_close(tokmap_i_names *n);

#endif /* TOKMAP_PUBLISH_H */
