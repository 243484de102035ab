/* SPDX-License-Identifier: Apache-2.0 */
/* inputs.h - finds the inputs of tokmap pack, their sizes and times, and what they are. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "input/input_list.h"
#include "formats/reader.h"
#include "request/options.h"
#include "request/unsuitable.h"

/* What an input is, by its beginning. */
typedef struct pack_seen {
    corpus_format format; /* CORPUS_AUTO: it is empty, or can be read only once */
    reader_summary summary;
    char *why;          /* it cannot be packed, and what to do; owned; NULL: it can */
    bool is_unsuitable; /* because it is recognized as something else */
} pack_seen;

typedef struct pack_inputs {
    char *const *arguments; /* which stand for them; of a plain pack */
    size_t n_arguments;
    const char *const *names;
    input_version *versions; /* of each input; unknown if it can be read only once */
    size_t n;
    uint64_t total_bytes; /* 0: unknown */
    const char *once;     /* the first one that cannot be read again, or NULL */
    /* Where a cell begins in its first input, and ends in its last one; {0}: at its end. */
    corpus_cut begin, end;
    const corpus_format *formats; /* of each input, as corpus_options takes them; else NULL */
    input_list files;             /* owns the names of a plain pack */
    /* The inputs of each corpus_format, and as CORPUS_AUTO the empty ones; set by
     * pack_inputs_look, for a plain pack. */
    size_t kinds[CORPUS_N_FORMATS];
    pack_seen *seen;            /* of each input, for --dry-run; else NULL */
    size_t n_refused;           /* of them cannot be packed, for --dry-run */
    corpus_format *found;       /* of each input, by its beginning; NULL: not known */
    unsuitable_list unsuitable; /* what --skip-unsuitable has left out */
} pack_inputs;

/* Finds the files that the arguments stand for and checks each, so that a wrong name is reported
 * now and not after hours of work. Files that this run or an earlier one wrote are left out of
 * folders and patterns. Returns an exit code, and prints the error. */
int pack_inputs_find(pack_inputs *inputs, char **arguments, size_t n_arguments,
                     const pack_options *options);
/* The callback for notes about inputs: prints them. */
void pack_print_note(void *context, const char *text);
/* What an input is, as its folder says. */
typedef struct pack_described {
    int sys_errno;
    file_facts facts;
} pack_described;
pack_described pack_input_describe(const char *name);
/* Accepts and protects the input, which may be stdin. Returns an exit code, and prints the
 * error. */
int pack_input_accept(const char *name, const pack_described *d);

/* ---- All of them ---- */

/* What is done with each input. */
typedef struct pack_input_work {
    /* Finds out about the input, at the same time as about others, and prints nothing. */
    void (*find)(void *context, size_t which, void *result);
    /* Takes the result, in the order of the inputs. Returns an exit code, and prints the error. */
    int (*take)(void *context, size_t which, void *result);
    size_t result_bytes;
    size_t n_threads; /* of `find` */
    void *context;
} pack_input_work;
#define PACK_MOST_LOOKS 64
/* If an input cannot be packed (CLI_INPUT), it goes on with the others, so that all of these are
 * named at once. Returns the exit code of the last failure. */
int pack_inputs_each(const pack_inputs *inputs, const pack_input_work *work);
void pack_inputs_free(pack_inputs *inputs);
