/* wrong_file.h - refuses files that nobody means to pack as text, by their first bytes; pure.
 *
 * With CORPUS_AUTO: files with a known magic number, a JSON array, UTF-16 and UTF-32, NUL bytes,
 * and what is not UTF-8. Where the user named the format, only what still has to be unpacked is
 * refused: archives, and data that was compressed twice. */
#ifndef TOKMAP_WRONG_FILE_H
#define TOKMAP_WRONG_FILE_H

#include "corpus/corpus.h"

#define WRONG_FILE_HEAD_BYTES ((size_t)64 * 1024)
/* Enough to recognize archives, which is all that is looked for where the format is given. */
#define WRONG_FILE_ARCHIVE_BYTES ((size_t)512)

typedef struct wrong_file_head { /* of an input, decompressed */
    const uint8_t *bytes;
    size_t n_bytes;    /* WRONG_FILE_HEAD_BYTES, fewer if memory does not allow more */
    bool whole;        /* the input has no more */
    bool decompressed; /* it was stored with a compression that is read here */
} wrong_file_head;

/* Whether the input is refused; then text is why, and what to do: without the input's name. */
bool wrong_file_find(const wrong_file_head *head, const corpus_options *options, char *text,
                     size_t text_bytes);
/* What a file that begins with these bytes is, such as "a tar archive"; NULL: not known. */
const char *wrong_file_name(const uint8_t *bytes, size_t n_bytes);

#endif /* TOKMAP_WRONG_FILE_H */
