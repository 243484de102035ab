/* resume.h - what an earlier run left, and whether this one may go on with it. */
#ifndef TOKMAP_PACK_RESUME_H
#define TOKMAP_PACK_RESUME_H

#include "pack/bad_file.h"
#include "pack/documents.h"
#include "pack/output.h"
#include "pack/plan.h"

/* What a checkpoint says. Nothing but u64: it is stored as a row of them. */
typedef struct pack_note {
    uint64_t n_values; /* of this struct: another version has another number */
    uint64_t plan_hash;
    uint64_t on_error;       /* which is not part of the plan */
    uint64_t finishing;      /* all is packed; only the names are missing */
    uint64_t limited;        /* a limit ended it */
    uint64_t encoded_tokens; /* that the encoders made of the text */
    pack_bad_mark bad_file;  /* of --on-error collect */
    corpus_place place;
    pack_position position;
    uint64_t tokens[PACK_MAX_SPLITS + 1], documents[PACK_MAX_SPLITS + 1]; /* of each output */
} pack_note;

/* The note as it is stored, and behind it, in the first one, as many lines of the plan as there is
 * room for. */
size_t pack_note_encode(const pack_note *note, const pack_plan *plan,
                        uint8_t bytes[TOKMAP_MAX_NOTE_BYTES]);

typedef struct pack_resume {
    uint64_t checkpoint; /* to go on from; 0: begin */
    bool discard;        /* what is there is of this very run, or not wanted */
    pack_note note;      /* of the checkpoint */
} pack_resume;

/* Looks at what is there. Another run's work is refused, unless --restart. Returns an exit code,
 * with a message. */
int pack_resume_find(pack_resume *from, const pack_outputs *outputs, const pack_options *options,
                     const pack_plan *plan);

#endif /* TOKMAP_PACK_RESUME_H */
