/* SPDX-License-Identifier: Apache-2.0 */
/* reread.h - for fuzz targets: reads bytes as an input of the corpus, in several ways that must not
 * make a difference. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "corpus/corpus.h"

#define REREAD_BYTES 4 /* that choose the options */

/* The documents, their values and the counts do not depend on the sizes of batches and pieces, nor
 * on the place where reading resumed. */
void reread_input(const uint8_t choice[REREAD_BYTES], const uint8_t *data, size_t size);
