/* process.h - the surroundings of a process: descriptors, limits, signals, processors, terminal. */
#ifndef TOKMAP_PROCESS_H
#define TOKMAP_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* First of all in main: descriptors 0, 1 and 2 are open, many files may be open, and a write beyond
 * the limit of file sizes is an error like others. False: /dev/null cannot be opened. */
bool process_begin(void);

/* From here on SIGINT, SIGTERM and SIGHUP make process_is_interrupted true. A second signal
 * of the same kind ends the process at once. Ignored signals (nohup) stay ignored. */
void process_catch_interrupts(void);
bool process_is_interrupted(void);

/* That this process may use; at least 1. */
unsigned process_processors(void);
/* The most memory that the process has had. */
uint64_t process_peak_bytes(void);
bool process_is_terminal(FILE *file);
/* Columns of the terminal that `out` is; 0: it is none, or has no size. */
unsigned process_terminal_columns(FILE *out);

#endif /* TOKMAP_PROCESS_H */
