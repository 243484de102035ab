/* writer.h - what writer.c (a new token file), adopt.c (an old one), merging and checkpoints
 * share. */
#ifndef TOKMAP_WRITER_INTERNAL_H
#define TOKMAP_WRITER_INTERNAL_H

#include <stdbool.h>

#include "base/hash.h"
#include "writer/index_writer.h"
#include "writer/journal.h"
#include "writer/publish.h"
#include "tokmap_writer.h"

struct tokmap_writer {
    tokmap_i_names names;
    tokmap_i_index_writer *index;
    int token_fd;
    tokmap_i_header header;
    bool finished;
    bool borderless_source; /* a source ended after tokens and before any document did */
    uint8_t *buffer;        /* TOKMAP_I_WRITE_BYTES: tokens not yet written, or just read */
    size_t buffer_used;
    tokmap_i_hasher *hasher; /* of the block at hand */
    size_t hashed;           /* bytes of it so far */
    uint64_t n_tokens;       /* appended or scanned so far */
    uint64_t n_sources, source_end_document, source_end_token;
    char *metadata;
    size_t metadata_bytes;
    bool resumable;
    tokmap_unfinished unfinished; /* what to do with it */
    uint64_t resume_checkpoint;
    tokmap_i_journal journal; /* open from the first checkpoint on */
    uint8_t *note;            /* of the checkpoint resumed from, or NULL */
    size_t note_bytes;
    tokmap_error failure; /* what every call after a failed one repeats */
};

/* The id that ends documents, or TOKMAP_NO_ID. */
tokmap_status tokmap_i_take_eod(int32_t has_eod, uint32_t eod_id, uint32_t *out, tokmap_error *err);
/* Zeroed, and ready for close. NULL when out of memory. */
tokmap_writer *tokmap_i_writer_new(void);
/* Makes the names and takes the lock; what already exists is refused, and so is what is
 * unfinished, unless w->unfinished says otherwise. What is resumed has its token file open.
 * suffix: of the token file. TOKMAP_END when what was to be resumed is complete. */
tokmap_status tokmap_i_writer_begin(tokmap_writer *w, const char *prefix, size_t prefix_bytes,
                                    const char *suffix, tokmap_error *err);
/* Each public call goes through these: repeat an old failure; remember a new one. */
tokmap_status tokmap_i_writer_enter(tokmap_writer *w, tokmap_error *err);
tokmap_status tokmap_i_writer_leave(tokmap_writer *w, tokmap_status status, tokmap_error *err);
/* Adds token bytes to the checksums of their blocks. */
tokmap_status tokmap_i_writer_hash(tokmap_writer *w, const void *data, size_t n_bytes,
                                   tokmap_error *err);
/* Writes what is buffered to the token file. */
tokmap_status tokmap_i_writer_flush(tokmap_writer *w, tokmap_error *err);
tokmap_status tokmap_i_writer_source(tokmap_writer *w, const tokmap_i_new_source *source,
                                     tokmap_error *err);

/* With the lock: looks for something unfinished and resumes it at the checkpoint asked for.
 * *resumed stays false where there is nothing that can be. */
tokmap_status tokmap_i_writer_resume(tokmap_writer *w, bool *resumed, tokmap_error *err);
/* With the lock: TOKMAP_ERR_EXISTS when there is something that can be resumed. */
tokmap_status tokmap_i_writer_refuse_unfinished(const tokmap_writer *w, tokmap_error *err);

#endif /* TOKMAP_WRITER_INTERNAL_H */
