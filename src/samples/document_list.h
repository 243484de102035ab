/* SPDX-License-Identifier: Apache-2.0 */
/* document_list.h - the order of the documents of a dataset that the caller gives, and the windows
 * that are cut from their tokens: docs/ORDER.md, section 3. */
#pragma once

#include "base/numbers.h"
#include "dataset/index_cache.h"
#include "dataset/token_files.h"
#include "tokmap_loader.h"

typedef struct tokmap_i_document_list {
    const tokmap_dataset *ds;
    uint32_t length; /* inputs in a window */
    bool keeps_rest;
    tokmap_i_numbers documents;
    tokmap_i_numbers starts; /* two for each window */
    /* the memory of `documents` and of `starts`; NULL if that is the caller's */
    void *own_documents, *own_starts;
    uint64_t n_windows, hash;
} tokmap_i_document_list;

/* Takes an array of the caller, which a message calls `what`: copies it to *own if it has less than
 * 64 MiB, and checks that its numbers are of 4 or 8 bytes and below `end`. Hashes them, and a 1 if
 * ends_with_1. The caller frees *own, also after an error. */
tokmap_status tokmap_i_numbers_take(tokmap_i_numbers *numbers, void **own, uint64_t end,
                                    bool ends_with_1, const char *what, const tokmap_dataset *ds,
                                    uint64_t *hash, tokmap_error *err);
/* Returns the size of an array that was copied, else 0. */
uint64_t tokmap_i_numbers_bytes(const tokmap_i_numbers *numbers, const void *own);

/* Opens a list, for windows of `length` inputs. */
tokmap_status tokmap_i_document_list_open(tokmap_i_document_list **out, const tokmap_dataset *ds,
                                          const tokmap_document_list *given, uint32_t length,
                                          tokmap_error *err);
void tokmap_i_document_list_close(tokmap_i_document_list *l); /* l may be NULL */
/* Returns the memory of the list, without the arrays of the caller. */
uint64_t tokmap_i_document_list_bytes(const tokmap_i_document_list *l);

/* Finds the tokens of a window: sets *n ranges, which have room for length + 1. index: the cache of
 * the calling thread; NULL: documents are looked up in the map. TOKMAP_ERR_MISMATCH: the starts do
 * not go with the list. */
tokmap_status tokmap_i_document_list_window(const tokmap_i_document_list *l,
                                            tokmap_i_index_cache *index, uint64_t window,
                                            tokmap_i_extent *ranges, size_t *n, tokmap_error *err);
/* Sets the windows that have one of the tokens [from, to) of the document at a place of the
 * list. */
tokmap_status tokmap_i_document_list_search(const tokmap_i_document_list *l,
                                            tokmap_i_index_cache *index, uint64_t place,
                                            uint64_t from, uint64_t to, tokmap_i_extent *windows,
                                            tokmap_error *err);
