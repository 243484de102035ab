/* SPDX-License-Identifier: Apache-2.0 */
/* beside.h - the files beside a dataset: late columns, views, lanes, redacted tokens. Functions
 * that return int return CLI_OK, or an exit code with a message. */
#pragma once

#include <stdbool.h>

#include "cli/paths.h"
#include "input/input_list.h"
#include "tokmap.h"

/* Files P.NAME.SUFFIX beside a dataset: of late columns, views, lanes, and redacted tokens. The
 * lanes of a joined dataset are also those beside its first token file. */
#define BESIDE_COLUMNS ".tmc"
#define BESIDE_VIEWS ".tmw"
#define BESIDE_LANES ".tml"
#define BESIDE_REDACTED ".redacted"
/* Lists each NAME, sorted; input_list_free frees the list, also after a failure. A file that the
 * command has written or removed since the first call for the folder may be missing or listed. */
int beside_list(const tokmap_dataset *ds, const char *suffix, input_list *names);
path_text beside_path(const tokmap_dataset *ds, const char *name, const char *suffix);
/* Opens each file, and with `verify` compares its checksums. Prints all errors, and returns the
 * first exit code that is not CLI_OK. */
int beside_check(const tokmap_dataset *ds, const char *suffix, bool verify);
/* What beside_visit_bad does with each file that cannot be opened or is damaged. */
typedef struct beside_visitor {
    const tokmap_verify_options *of_lanes; /* for tokmap_lane_verify; on_damage: each damage */
    void (*found)(void *context, const char *path, const tokmap_error *err);
    void *context;
} beside_visitor;
/* Compares the checksums of each file, and calls `found` with the first error of each that is
 * damaged. The path of a lane is that of the token file's lane, if it belongs to one token file. */
int beside_visit_bad(const tokmap_dataset *ds, const char *suffix, const beside_visitor *visitor);
/* Prints a message for each file beside the dataset that a redaction has written (P.*.redacted, and
 * lanes of such files) and that the dataset does not use. */
void beside_report_unused(const tokmap_dataset *ds);
/* Removes lanes of redacted tokens that no longer exist. */
int beside_remove_unused_lanes(const tokmap_dataset *ds);
/* Removes the file of a late column, if there is one. */
int beside_remove_column(const tokmap_dataset *ds, const char *name);
/* Prints a note if there are late columns or lanes, which the output will not have. */
void beside_note_left_out(const tokmap_dataset *ds, bool quiet);
/* Says how to go on when a dataset is complete, and files beside it could not be written. */
void beside_advise_again(const char *dataset);
/* Warns about late columns, views and lanes of another dataset, which this one has replaced. */
void beside_report_replaced(const char *dataset);
