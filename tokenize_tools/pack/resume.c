/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/resume.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "pack/planner.h"
#include "system/files.h"
#include "base/le.h"

#define N_VALUES (sizeof(pack_note) / sizeof(uint64_t))
#define N_VALUES_BEFORE (N_VALUES - 3) /* of notes without fields_found */

_Static_assert(sizeof(pack_note) % sizeof(uint64_t) == 0, "a note is an array of u64");

/* ---- Notes ---- */

size_t pack_note_encode(const pack_note *note, const pack_fingerprint *fingerprint,
                        uint8_t bytes[TOKMAP_MAX_NOTE_BYTES])
{
    uint64_t values[N_VALUES];
    memcpy(values, note, sizeof values);
    values[0] = N_VALUES;
    for (size_t i = 0; i < N_VALUES; i++)
        le_put(bytes + 8 * i, values[i], 8);
    if (!fingerprint)
        return sizeof values;
    size_t n = TOKMAP_MAX_NOTE_BYTES - sizeof values;
    if (fingerprint->n_bytes < n)
        n = fingerprint->n_bytes;
    while (n > 0 && fingerprint->text[n - 1] != '\n')
        n--;
    memcpy(bytes + sizeof values, fingerprint->text, n);
    return sizeof values + n;
}

static bool decode_note(pack_note *note, const uint8_t *bytes, size_t n_bytes)
{
    uint64_t values[N_VALUES] = {0};
    const size_t n =
        n_bytes >= 8 && le_get64(bytes) == N_VALUES_BEFORE ? N_VALUES_BEFORE : N_VALUES;
    if (n_bytes < 8 * n)
        return false;
    for (size_t i = 0; i < n; i++)
        values[i] = le_get64(bytes + 8 * i);
    memcpy(note, values, sizeof values);
    if (n == N_VALUES_BEFORE) /* it is not known which fields the inputs had */
        note->fields_found = UINT64_MAX;
    return note->n_values == n;
}

/* ---- Finding unfinished work ---- */

typedef struct resume_search {
    const pack_outputs *outputs;
    const pack_options *options;
    const pack_fingerprint *fingerprint;
    uint64_t n_checkpoints;      /* of P */
    tokmap_checkpoint_info info; /* the one that was read last, */
    uint8_t *note;               /* and its note */
} resume_search;

/* Reads checkpoint `number` of the output, 0: the last one. */
static int read_checkpoint(resume_search *s, size_t output, uint64_t number)
{
    tokmap_error err;
    s->info = (tokmap_checkpoint_info){.struct_size = sizeof s->info};
    const char *path = s->outputs->list[output].index_path;
    if (tokmap_writer_get_checkpoint(path, number, &s->info, s->note, &err) == TOKMAP_OK)
        return CLI_OK;
    int code = cli_fail(&err);
    fputs("Use --restart to start over.\n", stderr);
    return code;
}

/* `too_early`: an input that it had begun has changed, but there is no checkpoint before it. */
static int refuse_run(const resume_search *s, const char *why, bool too_early)
{
    int code = cli_error(
        CLI_EXISTS, "%s: an unfinished run already exists, and this one differs: %s%s",
        s->options->prefix, why, too_early ? ", and there is no checkpoint before it" : "");
    fputs(too_early ? "Use --restart to start over.\n"
                    : "Run the original command to finish it, or use --restart to discard it.\n",
          stderr);
    return code;
}

/* The first note of that run has its fingerprint. */
static int refuse_other_fingerprint(resume_search *s, bool too_early)
{
    char difference[PACK_DIFFERENCE_BYTES] = "it was not made by tokmap pack";
    int code = read_checkpoint(s, 0, 1);
    if (code != CLI_OK)
        return code;
    if (s->info.note_bytes > sizeof(pack_note))
        pack_fingerprint_difference(s->fingerprint, (const char *)s->note + sizeof(pack_note),
                                    s->info.note_bytes - sizeof(pack_note), difference);
    return refuse_run(s, difference, too_early);
}

/* --on-error may change as long as no document was left out because of it. So may --max-document,
 * and it may only grow: what was packed may be as long as it was. */
static int check_left_out(const resume_search *s, const pack_note *note)
{
    const uint64_t n_long = note->place.counts.long_documents;
    uint64_t n_bad = pack_note_n_bad(note);
    char why[160];
    if (n_bad > 0 && s->options->input.on_error == ON_ERROR_FAIL) {
        snprintf(why, sizeof why, "--on-error was skip, and %s already left out",
                 cli_count_of(n_bad, "document").s);
        return refuse_run(s, why, false);
    }
    if (n_long > 0 && s->options->max_document != note->max_document) {
        snprintf(why, sizeof why, "--max-document was %s, and %s already left out",
                 cli_count(note->max_document).s, cli_count_of(n_long, "longer document").s);
        return refuse_run(s, why, false);
    }
    if (s->options->max_document < note->max_document) {
        snprintf(why, sizeof why, "--max-document was %s and is now %s; it may only grow",
                 cli_count(note->max_document).s, cli_count(s->options->max_document).s);
        return refuse_run(s, why, false);
    }
    return CLI_OK;
}

static const char missing[] = "its partial files are missing, but other outputs have theirs";

static int fail_damaged(const resume_search *s, size_t output, const char *why)
{
    int code = cli_error(CLI_DATASET, "%s: the unfinished run cannot be resumed: %s",
                         s->outputs->list[output].prefix, why);
    fputs("Use --restart to start over.\n", stderr);
    return code;
}

/* Finds the last checkpoint that all outputs have. If P says that everything was packed, outputs
 * that have their names already count as having all checkpoints; *some_named: there are some. P,
 * whose checkpoints come first, is at most one ahead of the others. */
static int find_common(resume_search *s, bool finishing, uint64_t *common, bool *some_named)
{
    *common = s->n_checkpoints;
    uint64_t fewest = s->n_checkpoints, fewest_unfinished = s->n_checkpoints;
    for (size_t i = 1; i < s->outputs->n; i++) {
        int code = read_checkpoint(s, i, 0);
        const uint64_t n = s->info.n_checkpoints;
        if (code != CLI_OK)
            return code;
        if (n == 0 && s->n_checkpoints > 1 && !finishing)
            return fail_damaged(s, i, missing);
        fewest = n < fewest ? n : fewest;
        if (n > 0 && n < fewest_unfinished)
            fewest_unfinished = n;
    }
    *some_named = finishing && fewest == 0;
    *common = finishing ? fewest_unfinished : fewest;
    return CLI_OK;
}

/* Checks that the output's journal and P's note describe the same place. */
static int check_output(resume_search *s, size_t output, uint64_t checkpoint, const pack_note *note)
{
    pack_note own;
    int code = read_checkpoint(s, output, 0);
    if (code != CLI_OK || s->info.n_checkpoints == 0) /* the output has its name already */
        return code;
    code = read_checkpoint(s, output, checkpoint);
    if (code != CLI_OK)
        return code;
    if (!decode_note(&own, s->note, s->info.note_bytes) || memcmp(&own, note, sizeof own) != 0)
        return fail_damaged(s, output, "its checkpoints are not those of the other outputs");
    if (s->info.n_tokens != note->tokens[output] || s->info.n_documents != note->documents[output])
        return fail_damaged(s, output, "its journal and the note in it give different places");
    return CLI_OK;
}

/* Takes checkpoint `common` of P. */
static int take_note(pack_resume *from, resume_search *s, uint64_t common, bool some_named)
{
    int code = read_checkpoint(s, 0, common);
    if (code != CLI_OK)
        return code;
    if (!decode_note(&from->note, s->note, s->info.note_bytes))
        return refuse_other_fingerprint(s, false);
    if (some_named && !from->note.finishing)
        return fail_damaged(s, 0, "one output has its name, but others lost their last checkpoint");
    for (size_t i = 0; i < s->outputs->n && code == CLI_OK; i++)
        code = check_output(s, i, common, &from->note);
    return code == CLI_OK ? check_left_out(s, &from->note) : code;
}

/* ---- Inputs that have changed ---- */

/* Finds the last checkpoint before the first change, at most from->checkpoint; 0: none. */
static int step_back(pack_resume *from, resume_search *s)
{
    uint64_t before = 0, after = from->checkpoint + 1;
    for (uint64_t at = from->checkpoint; before + 1 < after; at = before + (after - before) / 2) {
        pack_note note;
        int code = read_checkpoint(s, 0, at);
        if (code != CLI_OK)
            return code;
        if (!decode_note(&note, s->note, s->info.note_bytes))
            return refuse_other_fingerprint(s, false);
        const uint64_t n_begun = note.place.input + corpus_place_is_begun(&note.place);
        const bool none_changed = note.fingerprint_hash == s->fingerprint->hash ||
                                  note.begun_hash == pack_fingerprint_hash(s->fingerprint, n_begun);
        *(none_changed ? &before : &after) = at;
    }
    from->checkpoint = before;
    return before ? CLI_OK : refuse_other_fingerprint(s, true);
}

/* Says what has changed, after the inputs that were packed. */
static int describe_change(pack_resume *from, resume_search *s)
{
    const size_t same = pack_fingerprint_before(s->fingerprint, from->note.place.input);
    const pack_fingerprint now = {.text = s->fingerprint->text + same,
                                  .n_bytes = s->fingerprint->n_bytes - same};
    const int code = read_checkpoint(s, 0, 1);
    if (code != CLI_OK)
        return code;
    const size_t then = s->info.note_bytes - sizeof(pack_note);
    pack_fingerprint_difference(&now, (const char *)s->note + sizeof(pack_note) + same,
                                then > same ? then - same : 0, from->difference);
    return CLI_OK;
}

static int find_checkpoint(pack_resume *from, resume_search *s)
{
    bool some_named = false;
    int code = read_checkpoint(s, 0, 0);
    s->n_checkpoints = s->info.n_checkpoints;
    if (code != CLI_OK)
        return code;
    for (size_t i = 1; i < s->outputs->n && s->n_checkpoints == 0; i++) {
        code = read_checkpoint(s, i, 0);
        if (code != CLI_OK)
            return code;
        if (s->info.n_checkpoints > 1) /* then a file of P is missing */
            return fail_damaged(s, 0, missing);
        /* Else the run was killed while it started over, and nothing was packed. */
        from->discard |= s->info.n_checkpoints == 1;
    }
    if (s->n_checkpoints == 0)
        return CLI_OK;
    const pack_note *note = &from->note;
    if (!decode_note(&from->note, s->note, s->info.note_bytes))
        return refuse_other_fingerprint(s, false);
    const bool changed = note->fingerprint_hash != s->fingerprint->hash;
    /* The options must be the same, and all inputs that were packed completely. */
    if (changed && (note->finishing ||
                    note->done_hash != pack_fingerprint_hash(s->fingerprint, note->place.input)))
        return refuse_other_fingerprint(s, false);
    from->discard = true;
    code = find_common(s, from->note.finishing, &from->checkpoint, &some_named);
    if (code != CLI_OK || from->checkpoint == 0)
        return code;
    if (changed)
        code = step_back(from, s);
    if (code == CLI_OK)
        code = take_note(from, s, from->checkpoint, some_named);
    return code == CLI_OK && changed ? describe_change(from, s) : code;
}

/* A split of the run that --restart discards may have its name already. If it was not replaced, it
 * would be beside P as if it belonged to it. */
static int check_discarded(const resume_search *s)
{
    tokmap_checkpoint_info info = {.struct_size = sizeof info};
    const char *index_path = s->outputs->list[0].index_path;
    const char *line = "\n--split ";
    pack_note last;
    char name[33];
    if (tokmap_writer_get_checkpoint(index_path, 0, &info, s->note, NULL) != TOKMAP_OK ||
        info.n_checkpoints == 0 || !decode_note(&last, s->note, info.note_bytes) ||
        !last.finishing ||
        tokmap_writer_get_checkpoint(index_path, 1, &info, s->note, NULL) != TOKMAP_OK)
        return CLI_OK;
    s->note[info.note_bytes] = '\0';
    const char *at = strstr((const char *)s->note + sizeof last, line);
    at = at ? at + strlen(line) : "";
    for (int n = 0; sscanf(at, " %32[^= \n]=%*s%n", name, &n) == 1 && n > 0; at += n, n = 0) {
        bool replaced = false;
        const path_text path = plan_split_path(s->options->prefix, name, ".tmi");
        for (size_t i = 1; i < s->outputs->n; i++)
            replaced = replaced || strcmp(path.s, s->outputs->list[i].index_path) == 0;
        if (file_name_exists(path.s) && !(replaced && s->options->force))
            return cli_error(CLI_EXISTS, "%s: was written by the run that --restart discards; %s",
                             path.s,
                             replaced ? "replace it with --force" : "remove it, or move it away");
    }
    return CLI_OK;
}

int pack_resume_find(pack_resume *from, const pack_outputs *outputs, const pack_options *options,
                     const pack_fingerprint *fingerprint)
{
    *from = (pack_resume){.discard = options->restart};
    resume_search s = {.outputs = outputs, .options = options, .fingerprint = fingerprint};
    s.note = malloc(TOKMAP_MAX_NOTE_BYTES + 1);
    if (!s.note)
        return cli_no_memory();
    int code = options->restart ? check_discarded(&s) : find_checkpoint(from, &s);
    free(s.note);
    return code;
}

/* ---- Cells ---- */

/* Reads the last checkpoint of an unfinished dataset, and counts the bytes of this text with which
 * the fingerprint of the run that made it begin. False: there is no checkpoint that can be read. */
static bool find_note(const char *index_path, const char *fingerprint, pack_note *note,
                      size_t *n_same)
{
    uint8_t *bytes = malloc(TOKMAP_MAX_NOTE_BYTES);
    tokmap_checkpoint_info info = {.struct_size = sizeof info};
    bool found = bytes &&
                 tokmap_writer_get_checkpoint(index_path, 0, &info, bytes, NULL) == TOKMAP_OK &&
                 info.n_checkpoints > 0;
    const bool is_note = found && decode_note(note, bytes, info.note_bytes);
    found = found && tokmap_writer_get_checkpoint(index_path, 1, &info, bytes, NULL) == TOKMAP_OK;
    size_t n = 0;
    while (found && is_note && fingerprint[n] && sizeof(pack_note) + n < info.note_bytes &&
           bytes[sizeof(pack_note) + n] == (uint8_t)fingerprint[n])
        n++;
    *n_same = n;
    free(bytes);
    return found;
}

void pack_resume_look(cell_work *work, const plan_file *plan, size_t cell, bool verify)
{
    const path_text prefix = plan_file_cell_path(plan, cell, "", "");
    const pack_cell of = {plan->cells[cell].hash, plan->origin, cell, NULL};
    char fingerprint[PACK_FINGERPRINT_CELL_BYTES];
    size_t n_same;
    *work = (cell_work){0};
    cell_check(plan, cell, verify, &work->report);
    if (work->report.state != CELL_UNFINISHED && work->report.state != CELL_OUTDATED)
        return;
    const size_t n_of_plan = pack_fingerprint_cell(&of, fingerprint);
    work->has_note = find_note(path_of(prefix.s, ".tmi").s, fingerprint, &work->note, &n_same);
    if (!work->has_note || n_same == strlen(fingerprint))
        return;
    work->has_note = false;
    work->discard = true;
    work->report.state = n_same < n_of_plan ? CELL_FOREIGN : CELL_OUTDATED;
    if (work->report.state == CELL_OUTDATED)
        return;
    work->report.exit_code = CLI_DATASET;
    snprintf(work->report.why, sizeof work->report.why,
             "%.400s: an unfinished run of another plan, or without one", prefix.s);
}

void pack_resume_compare(cell_report *report, const plan_file *plan, size_t cell)
{
    const plan_part part = plan_file_part(plan, cell);
    failure why;
    for (size_t i = part.first_input; i < part.end_input && report->state == CELL_DONE; i++) {
        if (pack_plan_input_look(&plan->inputs[i], &why) <= 0)
            continue;
        report->state = CELL_CHANGED;
        snprintf(report->why, sizeof report->why, "%.511s", why.text);
    }
}
