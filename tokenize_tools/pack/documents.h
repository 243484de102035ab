/* documents.h - the documents of the jobs, in order, into the outputs: which output a document
 * belongs to, which are left out, and where a limit ends it all. */
#ifndef TOKMAP_PACK_DOCUMENTS_H
#define TOKMAP_PACK_DOCUMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "pack/error.h"
#include "pack/inputs.h"
#include "pack/options.h"
#include "pack/output.h"
#include "pack/pipeline.h"

/* Text that decides to which split a document belongs: so much of its beginning. */
#define PACK_SPLIT_TEXT_BYTES ((size_t)64 * 1024)

/* All that there is to know between two jobs, but for what is held back. */
typedef struct pack_position {
    uint64_t documents, tokens; /* in all outputs */
    uint64_t specials_seen;     /* in the texts */
    uint64_t special_documents; /* left out for a special token, */
    uint64_t special_tokens;    /* and the ids that they had */
    uint64_t text_bytes;        /* of all documents that have ended, those left out included */
    uint64_t input;             /* inputs ended */
    uint64_t input_documents;   /* of the input at hand, those left out here included */
    uint64_t file_bytes;        /* stored, of the files among the inputs that ended */
    uint64_t open;              /* a document goes on in the next job ... */
    uint64_t output;            /* ... to this output, when open */
    uint64_t dropped;           /* ... or is left out */
} pack_position;

typedef struct pack_documents pack_documents;

/* told: a line about something that should be known. */
typedef struct pack_documents_options {
    const pack_options *options;
    const tokenizer *tokenizer;
    pack_outputs *outputs;
    const pack_inputs *inputs;
    void (*report)(void *context, const char *text);
    void *context;
} pack_documents_options;

/* NULL: out of memory. */
pack_documents *pack_documents_new(const pack_documents_options *options);
void pack_documents_free(pack_documents *d);

/* Writes what is in the job. Sets *n_ends to how many of its ends count where a limit is reached:
 * nothing behind them does; else to 0. */
int pack_documents_take(pack_documents *d, const pack_job *job, size_t *n_ends, pack_error *err);

/* NULL while the position alone does not say everything: a document is held back, or goes on and
 * the tokenizer needs the state behind its first part. */
const pack_position *pack_documents_position(const pack_documents *d);
/* n_before: bytes of text of the document that goes on. */
void pack_documents_set_position(pack_documents *d, const pack_position *position,
                                 uint64_t n_before);
/* The counts in it are right at any time between two jobs. */
const pack_position *pack_documents_counts(const pack_documents *d);

#endif /* TOKMAP_PACK_DOCUMENTS_H */
