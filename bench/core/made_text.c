/* SPDX-License-Identifier: Apache-2.0 */
#include "core/made_text.h"

#include <errno.h>
#include <string.h>

enum {
    N_COMMON = 127,
    N_OCTAVES = 17,           /* 131,071 words */
    WORDS_OF_A_DOCUMENT = 400 /* on average */
};

/* The words of the first ranks, of which there are N_COMMON. */
static const char common[] =
    "the of and to in a is that for it was on as with be by he this are at his not from "
    "or have an they which one you were all her she there would their we him been has "
    "when who will no more if out so what up said its about than into them can only other"
    " time new some could these two may first then do any like my now over such our man "
    "me even most made after also did many off before must well back through years much "
    "where your way down should because long each just state people those too how little "
    "work world good make very still see own men day get here old life both between under"
    " never";

/* Appends a common word. Returns its bytes. */
static size_t add_common(char *to, uint64_t rank)
{
    const char *word = common;
    for (; rank > 0; rank--)
        word += strcspn(word, " ") + 1;
    const size_t n = strcspn(word, " ");
    memcpy(to, word, n);
    return n;
}

/* Appends the word of a rank: the more common, the shorter. Returns its bytes. */
static size_t add_word(char *to, uint64_t rank, bool is_first)
{
    static const char *const begins[] = {"b",  "br", "c",  "d", "f",  "g", "h", "k",
                                         "l",  "m",  "n",  "p", "pr", "r", "s", "sh",
                                         "st", "t",  "th", "v", "w",  "",  "",  "y"};
    static const char *const ends[] = {"a",  "e",   "i",   "o",  "u",  "an", "er", "in", "on",
                                       "ed", "ing", "ion", "al", "ea", "ou", "ly", "es", "or"};
    const size_t n_begins = sizeof begins / sizeof *begins, n_ends = sizeof ends / sizeof *ends;
    size_t n = 0;
    if (rank < N_COMMON)
        n = add_common(to, rank);
    for (uint64_t left = n > 0 ? 0 : rank; left > 0; left /= n_begins * n_ends)
        n += (size_t)sprintf(to + n, "%s%s", begins[left % n_begins],
                             ends[left / n_begins % n_ends]);
    if (is_first && to[0] >= 'a')
        to[0] = (char)(to[0] - 'a' + 'A');
    return n;
}

/* Returns a rank. Each octave of ranks is as likely as another, so rank r occurs about as often as
 * 1 / r. */
static uint64_t choose_word(uint64_t *state)
{
    const uint64_t octave = (uint64_t)1 << bench_random(state) % N_OCTAVES;
    return octave + bench_random(state) % octave - 1;
}

/* Writes a document of a line. Returns its bytes. */
static size_t write_document(FILE *out, uint64_t *state)
{
    char word[64];
    size_t n_bytes = (size_t)fprintf(out, "{\"text\": \"");
    uint64_t left_in_sentence = 0, n = 1 + bench_random(state) % (2 * WORDS_OF_A_DOCUMENT);
    for (bool begins = true; n > 0; n--) {
        size_t length = add_word(word, choose_word(state), begins);
        begins = left_in_sentence == 0;
        left_in_sentence = begins ? 4 + bench_random(state) % 20 : left_in_sentence - 1;
        const char *after = begins ? ". " : bench_random(state) % 12 == 0 ? ", " : " ";
        if (bench_random(state) % 60 == 0)
            length = (size_t)sprintf(word, "%d", (int)(bench_random(state) % 3000));
        n_bytes += fwrite(word, 1, length, out) + strlen(after);
        fputs(after, out);
    }
    fputs("\"}\n", out);
    return n_bytes + 3;
}

void made_text_write(const char *path, uint64_t n_bytes)
{
    FILE *out = fopen(path, "w");
    uint64_t state = 1;
    bench_check_errno(out ? 0 : errno, path);
    for (uint64_t n = 0; n < n_bytes;)
        n += write_document(out, &state);
    bench_check_errno(fclose(out) ? errno : 0, path);
}
