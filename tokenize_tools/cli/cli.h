/* SPDX-License-Identifier: Apache-2.0 */
/* cli.h - what the tokmap commands share: exit codes, messages, numbers, progress. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "tokmap.h"
#include "tokmap_writer.h"

/* Exit codes are an interface for schedulers; docs/man/tokmap.1 explains them. */
enum {
    CLI_OK = 0,
    CLI_INTERNAL = 1,
    CLI_USAGE = 2,   /* the command line is wrong */
    CLI_INPUT = 3,   /* a file cannot be read or made, or is not what it should be */
    CLI_DATASET = 4, /* a dataset is damaged or does not fit */
    CLI_EXISTS = 5,  /* the output exists, or another process is writing it */
    CLI_AGAIN = 75   /* disk full and the like: the same call may work later */
};

/* All messages go to stderr as "PROGRAM COMMAND: text", by default "tokmap: text"; command may be
 * NULL. */
void cli_begin(const char *program, const char *command);
/* Prints a library error, and a hint if there is one; returns its exit code. */
int cli_fail(const tokmap_error *err);
tokmap_dataset_info cli_dataset_info(const tokmap_dataset *ds);
/* Returns the options of a writer whose tokens are like those of the dataset. */
tokmap_writer_options cli_writer_options_like(const tokmap_dataset *ds);
/* Whether it is a joined dataset, whose tokens are in other files. */
bool cli_is_joined(const tokmap_dataset_info *info);
/* Names the tokens in messages: the token file, or the index of a joined dataset. */
const char *cli_tokens_name(const tokmap_dataset_info *info);
/* Returns a sentence that says what to do, or NULL. */
const char *cli_hint(const tokmap_error *err);
/* Prints that sentence, if there is one. */
void cli_print_hint(const tokmap_error *err);
int cli_exit_code(const tokmap_error *err);
/* Returns the exit code for a failed system call. */
int cli_errno_exit_code(int sys_errno);
/* Prints "PATH: cannot WHAT: ", the text of the errno value, and a hint if there is one; returns
 * its exit code. */
int cli_fail_errno(const char *path, const char *what, int sys_errno);
/* Prints "PATH: WHY: " in place of "PATH: cannot WHAT: ". */
int cli_fail_because(const char *path, const char *why, int sys_errno);
/* Returns the exit code for a file that could not be accessed or has wrong contents. */
int cli_failure_exit_code(const failure *f);
/* Prints the failure, and a hint if there is one; returns its exit code. */
int cli_print_failure(const failure *f);
/* Prints a message and returns `code`. */
int cli_error(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints the text and returns `code`. sys_errno: of the system call that failed, or 0. file_bytes:
 * of the name of a file, with which the text begins, or 0. */
int cli_error_of_system(int code, int sys_errno, uint32_t file_bytes, const char *text);
/* Prints "out of memory"; returns CLI_AGAIN. */
int cli_no_memory(void);
/* Prints a message and "Try 'tokmap COMMAND --help'."; returns CLI_USAGE. */
int cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints the first error, if one was printed, as a JSON object to stdout. */
void cli_print_error(void);
void cli_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Flushes stdout. Returns CLI_OK, or CLI_AGAIN or CLI_INTERNAL if something could not be written;
 * the message is printed once. */
int cli_finish(void);
/* Returns `first` unless it is CLI_OK, else `second`. */
static inline int cli_first_failure(int first, int second)
{
    return first == CLI_OK ? second : first;
}

/* Parses a whole decimal number with an optional k, M, G, T, kB, MB, GB, TB (powers of 1000), KiB,
 * MiB, GiB or TiB (powers of 1024), in upper or lower case; false if the text is anything else.
 * "10B" is refused, because for tokens it would mean 10^10. */
bool cli_parse_u64(const char *text, uint64_t *out);
/* Parses "A:B", "A:", ":B" or "A" (= A:A+1) within [0, total); *end is exclusive. False if the text
 * is malformed. */
bool cli_parse_range(const char *text, uint64_t total, uint64_t *first, uint64_t *end);
/* Says why a range that cli_parse_range has refused is wrong. noun: "document". Returns the exit
 * code. */
int cli_refuse_range(const char *option, const char *range, const char *noun, uint64_t total);
/* Says which character of an option's text is wrong, or that memory is out. Returns the exit
 * code. */
int cli_refuse_text(const char *option, const failure *err);

typedef struct cli_text {
    char s[48];
} cli_text;
cli_text cli_count(uint64_t n); /* 1,234,567 */
/* "1 document", "2 documents" */
cli_text cli_count_of(uint64_t n, const char *noun);
cli_text cli_bytes(uint64_t bytes); /* 12.3 MiB (bytes below 1 KiB as they are) */
cli_text cli_hex(const uint8_t id[16]);

/* Prints s with each byte that is not plain text (plain_text.h) as \x1b. */
void cli_print_plain(FILE *out, const char *s, size_t n_bytes);
/* Prints `before`, and a word of a command with this ending: in quotes, if a shell would change
 * it. */
void cli_print_word(FILE *out, const char *before, const char *word, const char *ending);

/* Progress on stderr: one line redrawn on a terminal, otherwise a plain line every ten seconds.
 * TOKMAP_PROGRESS=json in the environment: objects, for a program that has started this one. */
typedef struct cli_progress {
    const char *verb; /* "verify" */
    bool enabled, on_terminal, as_json, has_ended;
    uint64_t started_ns, last_ns;
    uint64_t bytes_done, bytes_total; /* of the last update; a total of 0 is not known */
    /* The caller may set these after begin: */
    uint64_t bytes_before; /* done before it began */
    double seconds_left;   /* below 0: not known; 0: as the bytes say */
    cli_text rates;        /* printed in place of the rate of bytes */
    const char
        *left_for;  /* printed after the time that is left, such as " for the task"; or NULL */
    char notes[64]; /* printed after that */
} cli_progress;
void cli_progress_begin(cli_progress *p, const char *verb, bool quiet);
uint64_t cli_progress_ns(const cli_progress *p); /* ns since it began */
void cli_progress_update(cli_progress *p, uint64_t bytes_done, uint64_t bytes_total);
/* If a line was drawn on a terminal, replaces it with the time that the work took. */
void cli_progress_end(cli_progress *p, uint64_t bytes_done);
/* Removes the line on a terminal, so that messages can be printed; the next update draws it
 * again. */
void cli_progress_clear(cli_progress *p);

/* Whether a line is due, for lines with other contents. */
bool cli_progress_is_due(cli_progress *p);
/* Draws a line with other contents, cut at the width of the terminal. */
void cli_progress_draw(const cli_progress *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
