/* expand_case.h - a random batch: its shape, its outputs, and plain C that says what they must be.
 */
#ifndef EXPAND_CASE_H
#define EXPAND_CASE_H

#include "gpubench.h"

enum {
    N_OUTPUTS = 5,
    STEPS_OF_A_CASE = 3
};

typedef struct expand_case {
    tokmap_loader_options loader;
    tokmap_cuda_options stage;
    bool wide; /* 32-bit tokens */
} expand_case;

/* Number n of the series; only_safe: no direct delivery, whose registration may be refused. */
expand_case expand_case_make(uint64_t n, bool only_safe);
void expand_case_describe(const expand_case *c, char *text, size_t n_bytes);

/* Outputs of a batch on the host, as many bytes as the device writes. */
typedef struct expand_outputs {
    uint8_t *bytes[N_OUTPUTS]; /* NULL: not asked for */
    size_t n_bytes[N_OUTPUTS];
    uint32_t n_documents, max_seqlen;
} expand_outputs;

bool expand_outputs_open(expand_outputs *o, const expand_case *c);
void expand_outputs_close(expand_outputs *o);
/* What the rows of a loader's batch must become. */
void expand_outputs_make(expand_outputs *o, const expand_case *c, const tokmap_batch *batch);
extern const char *const expand_output_names[N_OUTPUTS];

#endif /* EXPAND_CASE_H */
