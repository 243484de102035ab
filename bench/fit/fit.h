/* SPDX-License-Identifier: Apache-2.0 */
/* fit.h - whether a training will wait for its data on this machine: one process for each rank
 * takes batches with simulated steps between them. */
#pragma once

#include "cli/cli.h"
#include "core/steps.h"
#include "input/input_list.h"
#include "tokmap_loader.h"

enum {
    FIT_OK = 0,
    FIT_WAITS = 6,            /* the exit status if a training would wait */
    FIT_SKIPPED = 8,          /* steps at the beginning that are not counted */
    FIT_TIMES = 120,          /* parts of the time of a phase */
    FIT_MOST_WAITS = 1 << 16, /* of a rank in a phase */
    FIT_MOST_RANKS = 256
};

/* What a batch has beside inputs and labels: TOKMAP_ROW_... */
typedef struct fit_options {
    const char *dir, *where, *view, *html;
    uint64_t size; /* of the data that are made in `dir` */
    uint64_t n_gpus, n_ranks, length, batch_rows, seconds;
    double tokens_per_second, step_ms; /* one of them is given, the other follows */
    uint32_t shuffle, row_parts;
    bool has_inputs, has_labels, json;
} fit_options;

/* The data: the files of all datasets. */
typedef struct fit_data {
    input_list names; /* of datasets */
    const char *made; /* what is said in place of their names; NULL: nothing */
    input_list files; /* token files, then indexes */
    size_t n_token_files;
    uint64_t n_tokens, n_bytes; /* of tokens, and of all files */
    uint32_t token_bytes;       /* the widest */
    bool in_memory;             /* on a file system in memory */
    const char *largest;        /* token file */
} fit_data;

/* A part of the measurement: all ranks, for so long. */
typedef struct fit_phase {
    double step_ms, seconds; /* step_ms 0: without pauses */
    uint32_t shuffle;
    tokmap_io asked_io;
    bool is_cold;  /* the data are not in memory, so it ends after an epoch */
    bool was_run;  /* what follows is set */
    double *waits; /* us, sorted; of the steps that count */
    size_t n_waits;
    double waited, processor; /* us: of these; processor time of all waits over all waits */
    double utilisation;
    double first_batch_ms;        /* the longest of all ranks */
    double cpu_us_per_token;      /* of all threads, over inputs */
    double tokens_per_second;     /* of all ranks */
    uint64_t n_tokens, own_bytes; /* memory of a rank that is not of files, the largest */
    double longest[FIT_TIMES];    /* us: the longest wait of each part of the time */
    tokmap_io io;
    char io_reason[160];
} fit_phase;

typedef struct fit_result {
    union {
        struct {
            fit_phase cold, hot, most,
                block; /* most: cold, without pauses; block: likewise, block shuffle */
        };
        fit_phase phases[4];
    };
    double device_tokens_per_second; /* 0: not known */
    const char *no_cold, *no_hot;    /* why a phase was left out */
} fit_result;

/* ---- ranks.c ---- */

/* Runs a phase; its first fields are set. What fails ends the process (bench_fail). */
void fit_run_phase(const fit_options *o, const fit_data *data, fit_phase *phase);
/* Frees what phases own; any of them may not have been run. */
void fit_free(fit_phase *phases, size_t n_phases);
/* Returns the tokens that the run needs in a second, of all GPUs. */
double fit_needed(const fit_options *o);

/* ---- data.c ---- */

/* Makes a dataset of random tokens in a folder, and names it. */
void fit_data_make(fit_data *data, const char *folder, uint64_t n_bytes);
/* Opens each dataset once, and lists its files. Returns an exit code, with a message. */
int fit_data_find(fit_data *data);
void fit_data_free(fit_data *data);
/* Drops all files from the page cache. Returns false if they are still there. */
bool fit_data_drop(const fit_data *data);
/* Reads all files into the page cache. Returns false if that takes longer than `seconds`. */
bool fit_data_warm(const fit_data *data, double seconds);
/* Returns the tokens in a second of random reads of rows past the page cache; 0: that cannot be
 * measured. */
double fit_data_device_rate(const fit_data *data, uint64_t length);

/* ---- report.c ---- */

bool fit_is_fed(const fit_result *r);
cli_text fit_time(double us);
void fit_print(const fit_options *o, const fit_data *data, const fit_result *r, FILE *out);
void fit_print_json(const fit_options *o, const fit_data *data, const fit_result *r, FILE *out);
/* Writes the verdict, a sentence. */
void fit_describe(const fit_options *o, const fit_result *r, char *text, size_t n_bytes);

/* ---- html.c ---- */

void fit_print_html(const fit_options *o, const fit_data *data, const fit_result *r, FILE *out);
