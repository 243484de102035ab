/* SPDX-License-Identifier: Apache-2.0 */
/* lane_writer.h - the end of a lane file, whose values have been written. */
#pragma once

#include "dataset/side_file.h"
#include "format/lane_file.h"

/* Computes the hashes, writes what comes before the values, and gives the file its name. about: has
 * room for TOKMAP_I_LANE_ABOUT_ROOM, and ends with zeros. checksums: with the zeros that follow. */
tokmap_status tokmap_i_lane_finish(tokmap_i_side_file *f, tokmap_i_lane_header *h,
                                   const char *about, const uint8_t *checksums, tokmap_error *err);
