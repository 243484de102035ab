/* SPDX-License-Identifier: Apache-2.0 */
/* lane.h - an open lane, for the other files of the library.
 *
 * A lane is a dataset whose tokens are wider: the numbers of a token are one token of `wide`, so
 * everything in token_files.h finds, maps and reads them. Token number t of the dataset is token
 * number t of `wide`. */
#pragma once

#include "dataset/dataset.h"
#include "dataset/side_file.h"
#include "dataset/token_files.h"
#include "format/lane_file.h"

struct tokmap_lane {
    /* header.token_bytes and header.n_tokens, the files, and how they are used: nothing else is
     * set. The first member, so that the check of a file finds its lane. */
    tokmap_dataset wide;
    const tokmap_dataset *ds;    /* whose tokens have these numbers */
    bool by_file;                /* each token file of `ds` has its lane beside it */
    char *path;                  /* P.NAME.tml, whether there is such a file or not */
    tokmap_i_lane_header header; /* of P.NAME.tml, or of the first file */
    char name[TOKMAP_I_COLUMN_NAME_MAX + 1];
    char about[TOKMAP_I_LANE_ABOUT_ROOM + 1];
    atomic_bool knows_hash; /* tokmap_i_lane_hash has found it: */
    _Atomic uint64_t hash;
};

/* Computes what identifies the values: the hash of P.NAME.tml, or a checksum of the hashes of all
 * files, whose headers are read. */
tokmap_status tokmap_i_lane_hash(const tokmap_lane *lane, uint64_t *hash, tokmap_error *err);

/* Reads the header of an open file of the lane, and checks that it belongs to this lane and to the
 * token file beside it. */
tokmap_status tokmap_i_lane_read_header(const tokmap_lane *lane, const tokmap_i_token_file *file,
                                        int fd, tokmap_i_lane_header *h, tokmap_error *err);

/* Reads `about` of a file of the lane, with the zeros after it: TOKMAP_I_LANE_ABOUT_ROOM. Compares
 * it with the header. */
tokmap_status tokmap_i_lane_read_about(tokmap_i_named_file from, const tokmap_i_lane_header *h,
                                       char *about, tokmap_error *err);
/* Reads the checksums of a file of the lane, with the zeros after them, into new memory, and
 * compares them with the header; the caller frees them. */
tokmap_status tokmap_i_lane_read_checksums(tokmap_i_named_file from, const tokmap_i_lane_header *h,
                                           uint8_t **out, tokmap_error *err);

/* Returns the path of the lane beside a token file; the caller frees it. NULL: out of memory. */
char *tokmap_i_lane_path(const char *token_path, const char *name);
