/* SPDX-License-Identifier: Apache-2.0 */
#include "rows/best_fit.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/base.h"

#define NONE UINT32_MAX

static uint32_t n_words(uint32_t n_bits)
{
    return n_bits / 64 + 1;
}

bool tokmap_i_best_fit_open(tokmap_i_best_fit *b)
{
    const size_t n_rooms = (size_t)b->room + 2;
    b->tops = malloc(n_rooms * sizeof *b->tops);
    b->places = malloc(n_rooms * sizeof *b->places);
    b->below = malloc(b->n_rows * sizeof *b->below);
    b->n_pieces = malloc(b->n_rows * sizeof *b->n_pieces);
    b->filled = malloc(n_words(b->room) * sizeof *b->filled);
    b->filled_words = malloc(n_words(n_words(b->room)) * sizeof *b->filled_words);
    b->sorted = NULL;
    b->capacity = 0;
    return b->tops && b->places && b->below && b->n_pieces && b->filled && b->filled_words;
}

void tokmap_i_best_fit_close(tokmap_i_best_fit *b)
{
    free(b->tops);
    free(b->places);
    free(b->below);
    free(b->n_pieces);
    free(b->filled);
    free(b->filled_words);
    free(b->sorted);
}

uint32_t tokmap_i_best_fit_limit(const tokmap_i_best_fit *b, const tokmap_i_fit_piece *pieces,
                                 uint32_t n)
{
    uint64_t left = (uint64_t)b->n_rows * b->room;
    n = (uint32_t)MIN(n, (uint64_t)b->n_rows * b->most_pieces);
    for (uint32_t i = 0; i < n; i++) {
        if (pieces[i].size > left)
            return i;
        left -= pieces[i].size;
    }
    return n;
}

/* ---- Rows by the room that is left in them ---- */

static void push(tokmap_i_best_fit *b, uint32_t room, uint32_t row)
{
    const uint64_t bit = UINT64_C(1) << room % 64;
    b->below[row] = b->filled[room / 64] & bit ? b->tops[room] : NONE;
    b->tops[room] = row;
    b->filled[room / 64] |= bit;
    b->filled_words[room / 64 / 64] |= UINT64_C(1) << room / 64 % 64;
}

/* Returns the least room of a row that is at least `size`; NONE if there is none. */
static uint32_t find_room(const tokmap_i_best_fit *b, uint32_t size)
{
    uint32_t word = size / 64;
    uint64_t bits = b->filled[word] >> size % 64;
    if (bits)
        return size + (uint32_t)__builtin_ctzll(bits);
    const uint32_t n = n_words(n_words(b->room));
    uint32_t at = ++word / 64;
    if (at >= n)
        return NONE;
    bits = b->filled_words[at] >> word % 64 << word % 64;
    while (!bits && ++at < n)
        bits = b->filled_words[at];
    if (!bits)
        return NONE;
    word = at * 64 + (uint32_t)__builtin_ctzll(bits);
    return word * 64 + (uint32_t)__builtin_ctzll(b->filled[word]);
}

static uint32_t pop(tokmap_i_best_fit *b, uint32_t room)
{
    const uint32_t row = b->tops[room], word = room / 64;
    b->tops[room] = b->below[row];
    if (b->below[row] != NONE)
        return row;
    b->filled[word] &= ~(UINT64_C(1) << room % 64);
    if (!b->filled[word])
        b->filled_words[word / 64] &= ~(UINT64_C(1) << word % 64);
    return row;
}

/* ---- A chunk ---- */

/* Sorts the pieces, largest first, and pieces of one size by their number. */
static bool sort_pieces(tokmap_i_best_fit *b, const tokmap_i_fit_piece *pieces, uint32_t n)
{
    if (!array_reserve(&b->sorted, &b->capacity, n, sizeof *b->sorted))
        return false;
    memset(b->places, 0, ((size_t)b->room + 2) * sizeof *b->places);
    for (uint32_t i = 0; i < n; i++)
        b->places[b->room - pieces[i].size + 1]++;
    for (uint32_t k = 1; k <= b->room; k++)
        b->places[k] += b->places[k - 1];
    for (uint32_t i = 0; i < n; i++)
        b->sorted[b->places[b->room - pieces[i].size]++] = i;
    return true;
}

/* Packs the first n of the sorted pieces. Returns false if they need more rows. */
static bool pack(tokmap_i_best_fit *b, tokmap_i_fit_piece *pieces, uint32_t n_sorted, uint32_t n,
                 uint32_t *n_rows)
{
    uint32_t n_used = 0;
    memset(b->filled, 0, n_words(b->room) * sizeof *b->filled);
    memset(b->filled_words, 0, n_words(n_words(b->room)) * sizeof *b->filled_words);
    for (uint32_t i = 0; i < n_sorted; i++) {
        if (b->sorted[i] >= n)
            continue;
        tokmap_i_fit_piece *piece = &pieces[b->sorted[i]];
        const uint32_t size = piece->size;
        uint32_t room = find_room(b, size), row = n_used;
        if (room != NONE) {
            row = pop(b, room);
        } else if (n_used < b->n_rows) {
            b->n_pieces[n_used++] = 0;
            room = b->room;
        } else {
            return false;
        }
        piece->row = row;
        if (++b->n_pieces[row] < b->most_pieces && room > size)
            push(b, room - size, row);
    }
    *n_rows = n_used;
    return true;
}

/* Gives rows that are left to pieces that share a row, from the last piece on: best fit may need
 * fewer rows for some pieces, and too many for one more. */
static void fill_empty_rows(tokmap_i_best_fit *b, tokmap_i_fit_piece *pieces, uint32_t n,
                            uint32_t *n_rows)
{
    for (uint32_t i = n; *n_rows < b->n_rows && i-- > 0;)
        if (b->n_pieces[pieces[i].row] > 1) {
            b->n_pieces[pieces[i].row]--;
            pieces[i].row = *n_rows;
            b->n_pieces[(*n_rows)++] = 1;
        }
}

uint32_t tokmap_i_best_fit_pack(tokmap_i_best_fit *b, tokmap_i_fit_piece *pieces, uint32_t n,
                                bool last, uint32_t *n_rows)
{
    const uint32_t least = MIN(n, b->n_rows); /* they fit in any case */
    uint32_t fits = n, fails = n + 1, step = 1;
    if (!sort_pieces(b, pieces, n))
        return 0;
    bool packed = pack(b, pieces, n, n, n_rows);
    while (!packed) {
        fails = fits;
        fits = n - least > step ? n - step : least;
        step = 2 * step + 1;
        packed = pack(b, pieces, n, fits, n_rows);
    }
    while (fails - fits > 1) {
        const uint32_t middle = fits + (fails - fits) / 2;
        packed = pack(b, pieces, n, middle, n_rows);
        if (packed)
            fits = middle;
        else
            fails = middle;
    }
    if (!packed)
        pack(b, pieces, n, fits, n_rows);
    if (!last || fits < n)
        fill_empty_rows(b, pieces, fits, n_rows);
    return fits;
}
