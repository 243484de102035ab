/* SPDX-License-Identifier: Apache-2.0 */
/* random_input.h - random inputs of a corpus: text, lines, JSON lines, CSV and TSV, good and bad;
 * and how they are read. */
#pragma once

#include "corpus/corpus.h"

typedef struct input_bytes { /* start with {0}; free(bytes) frees it */
    uint8_t *bytes;
    size_t n_bytes, capacity;
} input_bytes;
void input_bytes_add(input_bytes *b, const void *bytes, size_t n);
void input_bytes_add_text(input_bytes *b, const char *text);

uint32_t random_input_below(uint64_t *random, uint32_t n);
/* CORPUS_AUTO: text or JSON lines. */
input_bytes random_input(uint64_t *random, corpus_format format);

/* How it is read: bad text, sizes, where it may be cut. */
corpus_options random_corpus_options(uint64_t *random);

/* A file without a folder, whose name may be opened any number of times, until the descriptor is
 * closed. */
int input_file(char name[64], const void *bytes, size_t n_bytes);
/* By this process, as the system counts them; 0: it does not. */
uint64_t bytes_read_so_far(void);
