/* SPDX-License-Identifier: Apache-2.0 */
/* redact.c - tokmap redact: a dataset without the contents of some documents. */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/result.h"
#include "cli/options.h"
#include "cli/paths.h"
#include "commands/dataset/dataset_commands.h"
#include "datasets/each.h"
#include "datasets/lines.h"
#include "datasets/beside.h"
#include "datasets/lanes.h"
#include "datasets/values.h"
#include "system/output_file.h"
#include "system/platform.h"
#include "system/protected.h"
#include "base/array.h"
#include "base/json_parts.h"
#include "base/json_text.h"
#include "tokmap_writer.h"

typedef struct redact_command_options {
    const char *documents, *where, *output;
    bool force, json, quiet;
} redact_command_options;

/* Chosen documents of a dataset, in order. */
typedef struct selection {
    const tokmap_dataset *ds;
    tokmap_dataset_info info;
    uint64_t *documents;
    uint64_t n;
} selection;

static int select_document(selection *s, uint64_t document)
{
    if (!array_grow(&s->documents, s->n, sizeof *s->documents))
        return cli_no_memory();
    s->documents[s->n++] = document;
    return CLI_OK;
}

/* ---- --documents ---- */

static int select_listed(selection *s, const char *path)
{
    line_reader r;
    text_line line;
    bool more = true;
    int code = line_reader_open(&r, path);
    while (code == CLI_OK && more) {
        const uint64_t lowest = s->n > 0 ? s->documents[s->n - 1] + 1 : 0;
        uint64_t document = 0;
        code = line_reader_next(&r, &line, &more);
        if (code != CLI_OK || !more)
            break;
        const uint8_t *at = text_line_skip_blanks(&line, line.text), *begin = at;
        while (*at >= '0' && *at <= '9' && document < s->info.n_documents)
            document = 10 * document + (*at++ - '0');
        if (at > begin && text_line_skip_blanks(&line, at) == line.text + line.n_bytes &&
            document >= lowest && document < s->info.n_documents)
            code = select_document(s, document);
        else
            code = cli_error(CLI_INPUT,
                             "%s: line %" PRIu64 ": must be the number of a document from %" PRIu64
                             " on and below %" PRIu64 ": each once, in ascending order",
                             r.name, r.number, lowest, s->info.n_documents);
    }
    line_reader_close(&r);
    return code;
}

static int select_range(selection *s, const char *range)
{
    uint64_t first, end;
    int code = CLI_OK;
    if (!cli_parse_range(range, s->info.n_documents, &first, &end))
        return cli_refuse_range("--documents", range, "document", s->info.n_documents);
    for (uint64_t d = first; d < end && code == CLI_OK; d++)
        code = select_document(s, d);
    return code;
}

/* ---- --where ---- */

/* Adds the documents for which the expression holds to the selected ones. */
static int select_where(selection *s, const char *text)
{
    const selection listed = *s;
    uint64_t *kept;
    int code = values_select(s->ds, text, &kept);
    s->documents = NULL;
    s->n = 0;
    for (uint64_t d = 0, at = 0; d < s->info.n_documents && code == CLI_OK; d++) {
        const bool is_listed = at < listed.n && listed.documents[at] == d;
        at += is_listed;
        if (is_listed || values_is_kept(kept, d))
            code = select_document(s, d);
    }
    free(listed.documents);
    free(kept);
    return code;
}

/* ---- Output ---- */

/* Makes the metadata, with the id of the dataset at the end of redacted_from. */
static int make_metadata(const selection *s, char **out, int *n_bytes)
{
    json_text_span all = dataset_metadata(s->ds), list;
    const bool is_object = json_text_check_object(all, NULL);
    const bool has_list = is_object && json_text_find(all, "redacted_from", &list);
    if (!is_object || (has_list && (*list.text != '[' || list.n_bytes < 32)))
        return cli_error(CLI_DATASET,
                         "%s: its metadata is not JSON, or redacted_from is not a list",
                         s->info.index_path);
    const char *at =
        has_list ? list.text + list.n_bytes - 1 : all.text + strcspn(all.text, "{") + 1;
    const char *next = at;
    while (json_is_space(*next))
        next++;
    *n_bytes = asprintf(out, "%.*s%s\"%s\"%s%.*s", (int)(at - all.text), all.text,
                        has_list ? ", " : "\"redacted_from\": [", cli_hex(s->info.dataset_id).s,
                        has_list       ? ""
                        : *next == '}' ? "]"
                                       : "], ",
                        (int)(all.text + all.n_bytes - at), at);
    if (*n_bytes >= 0)
        return CLI_OK;
    *out = NULL;
    return cli_no_memory();
}

static int print_result(const char *prefix, const selection *s, const tokmap_redact_info *done,
                        const redact_command_options *o)
{
    char counts[320];
    snprintf(counts, sizeof counts,
             "\"n_redacted_documents\": %" PRIu64 ", \"n_redacted_tokens\": %" PRIu64
             ", \"n_linked_files\": %" PRIu64 ", \"bytes_shared\": %" PRIu64
             ", \"bytes_copied\": %" PRIu64 ", \"bytes_read\": %" PRIu64
             ", \"bytes_written\": %" PRIu64,
             s->n, done->n_tokens, done->n_linked, done->bytes_shared, done->bytes_copied,
             done->bytes_read, done->bytes_written);
    const int code = cli_print_result(prefix, NULL, counts, o->json, o->quiet);
    if (code != CLI_OK || o->json || o->quiet)
        return code;
    printf("redacted %s, %s; ", cli_count_of(s->n, "document").s,
           cli_count_of(done->n_tokens, "token").s);
    if (done->n_linked)
        printf("%s not copied, ", cli_count_of(done->n_linked, "token file").s);
    if (done->bytes_shared)
        printf("%s shared (reflink), ", cli_bytes(done->bytes_shared).s);
    if (done->bytes_copied)
        printf("%s copied, ", cli_bytes(done->bytes_copied).s);
    printf("%s read, %s written\n", cli_bytes(done->bytes_read).s,
           cli_bytes(done->bytes_written).s);
    const path_text p = path_prefix(s->info.index_path);
    cli_print_plain(stdout, p.s, strlen(p.s));
    puts(" still has these documents: remove it, and what was made from it (merged, joined, "
         "exported), when no run reads it any more.");
    return code;
}

/* Warns about a token file whose tokens stay when the file is removed or replaced. */
static void note_names(const char *path)
{
    file_facts facts;
    if (path && file_describe(path, &facts) == 0 && facts.n_names > 1)
        cli_warn("%s: has %" PRIu64
                 " names (hard links, as 'tokmap export' makes them): its tokens "
                 "stay until all of them are removed",
                 path, facts.n_names);
}

/* Opens the Megatron index beside P.bin, and names the output Q.idx: it becomes a copy, because all
 * lengths are the same. Without an index, the source stays closed. */
static int find_megatron_index(const selection *s, const char *prefix, bool replace,
                               output_source *source, output_file *idx)
{
    const path_text to = path_of(prefix, ".idx");
    file_facts facts;
    const int error =
        cli_is_joined(&s->info) ? ENOENT : file_open(source->path, &source->fd, &facts);
    if (error && error != ENOENT)
        return cli_fail_errno(source->path, "open", error);
    if (error && file_name_exists(to.s))
        return cli_error(CLI_EXISTS,
                         "%s: exists, and would be a Megatron index beside other tokens: remove it",
                         to.s);
    return error ? CLI_OK : output_name(idx, prefix, ".idx", replace);
}

/* Writes a late column of P for Q. */
static int redact_column(const selection *s, const tokmap_dataset *q, const char *name)
{
    const tokmap_column_options options = {
        .struct_size = sizeof options, .name = name, .replace = 1};
    tokmap_column *from = NULL;
    tokmap_column_writer *to = NULL;
    tokmap_error err;
    int code = CLI_OK;
    if (tokmap_column_open(&from, s->ds, name, &err) != TOKMAP_OK ||
        tokmap_column_verify(from, NULL, NULL, &err) != TOKMAP_OK ||
        tokmap_column_writer_open(&to, q, &options, &err) != TOKMAP_OK)
        code = cli_fail(&err);
    if (code == CLI_OK)
        code = values_copy(from, to, 0, s->info.n_documents, s->documents, s->n);
    if (code == CLI_OK && tokmap_column_writer_finish(to, &err) != TOKMAP_OK)
        code = cli_fail(&err);
    tokmap_column_writer_close(to);
    tokmap_column_close(from);
    return code;
}

/* Removes older late columns or lanes of Q, before Q gets its name: they may have values that are
 * redacted now, and would stay if the command ended before the new ones are complete. */
static int remove_older(const selection *s, const char *prefix, const char *suffix)
{
    input_list names;
    int code = beside_list(s->ds, suffix, &names);
    for (size_t i = 0; i < names.n_names && code == CLI_OK; i++)
        code = output_remove(path_of(path_of(prefix, ".").s, path_of(names.names[i], suffix).s).s);
    input_list_free(&names);
    return code;
}

/* Writes the late columns of Q. */
static int redact_columns(const selection *s, const tokmap_dataset *q)
{
    input_list names;
    int code = beside_list(s->ds, BESIDE_COLUMNS, &names);
    for (size_t i = 0; i < names.n_names && code == CLI_OK; i++)
        code = redact_column(s, q, names.names[i]);
    input_list_free(&names);
    return code;
}

/* Warns about late columns or lanes beside Q that are those of an earlier dataset, because P has
 * none of this name. */
static int warn_of_others(const selection *s, const tokmap_dataset *q, const char *suffix)
{
    input_list names, beside;
    int code = beside_list(s->ds, suffix, &names);
    code = cli_first_failure(code, beside_list(q, suffix, &beside));
    for (size_t i = 0; i < beside.n_names; i++) {
        bool is_new = false;
        for (size_t k = 0; k < names.n_names; k++)
            is_new |= strcmp(beside.names[i], names.names[k]) == 0;
        if (!is_new)
            cli_warn("%s: has the values of an earlier dataset, not redacted: remove it",
                     beside_path(q, beside.names[i], suffix).s);
    }
    input_list_free(&names);
    input_list_free(&beside);
    return code;
}

/* Writes Q.idx, the late columns and the lanes, and warns about unused files beside Q. */
static int finish_files(const selection *s, const char *prefix, output_source *source,
                        output_file *idx)
{
    tokmap_dataset *q;
    tokmap_error err;
    output_way way;
    int code = source->fd < 0 ? CLI_OK : output_share(idx, source, &way);
    if (source->fd >= 0 && code == CLI_OK)
        cli_warn("%s: cannot mark labels that never count: Megatron trains on the filler of "
                 "redacted documents",
                 idx->path);
    if (tokmap_dataset_open_index(&q, prefix, &err) != TOKMAP_OK)
        return cli_first_failure(code, cli_fail(&err));
    if (code == CLI_OK)
        code = redact_columns(s, q);
    if (code == CLI_OK)
        code = lanes_redact(s->ds, q, s->documents, s->n);
    /* Also after a failure: these lanes of an earlier Q may have what is redacted. */
    code = cli_first_failure(code, beside_remove_unused_lanes(q));
    beside_report_unused(q);
    code = cli_first_failure(code, warn_of_others(s, q, BESIDE_COLUMNS));
    code = cli_first_failure(code, warn_of_others(s, q, BESIDE_LANES));
    tokmap_dataset_close(q);
    note_names(s->info.token_path);
    return code;
}

static int write_redacted(const selection *s, const redact_command_options *o)
{
    tokmap_writer_options options = cli_writer_options_like(s->ds);
    tokmap_redact_info done = TOKMAP_INIT(tokmap_redact_info);
    char prefix[PATH_PREFIX_BYTES], *metadata = NULL;
    int metadata_bytes = 0;
    const path_text p_idx = path_of(path_prefix(cli_tokens_name(&s->info)).s, ".idx");
    cli_progress progress = {.enabled = false};
    output_source source = {.fd = -1, .path = p_idx.s, .progress = &progress};
    output_file idx = {.fd = -1};
    tokmap_writer *w = NULL;
    tokmap_error err;
    options.replace = o->force;
    int code = path_output_prefix(prefix, o->output, ".tmi");
    if (code == CLI_OK)
        code = path_protect_dataset(s->ds);
    if (code == CLI_OK)
        code = path_check_dataset(prefix);
    if (code == CLI_OK) /* before anything is written */
        code = beside_check(s->ds, BESIDE_COLUMNS, true);
    if (code == CLI_OK)
        code = beside_check(s->ds, BESIDE_LANES, true);
    if (code == CLI_OK)
        code = make_metadata(s, &metadata, &metadata_bytes);
    if (code == CLI_OK)
        code = output_make_folders(prefix);
    if (code == CLI_OK)
        code = find_megatron_index(s, prefix, o->force, &source, &idx);
    if (code == CLI_OK && o->force)
        note_names(path_of(prefix, ".bin").s);
    if (code == CLI_OK &&
        ((cli_is_joined(&s->info) ? tokmap_writer_open_joined
                                  : tokmap_writer_open)(&w, prefix, &options, &err) != TOKMAP_OK ||
         tokmap_writer_redact(w, s->ds, s->documents, s->n, &done, &err) != TOKMAP_OK ||
         tokmap_writer_set_metadata(w, metadata, (size_t)metadata_bytes, &err) != TOKMAP_OK))
        code = cli_fail(&err);
    if (code == CLI_OK)
        code = remove_older(s, prefix, BESIDE_COLUMNS);
    if (code == CLI_OK)
        code = remove_older(s, prefix, BESIDE_LANES);
    /* An index must never be beside other tokens, not even for a moment. */
    if (code == CLI_OK && source.fd >= 0 && o->force)
        code = output_remove(idx.path);
    if (code == CLI_OK && tokmap_writer_finish(w, &err) != TOKMAP_OK)
        code = cli_fail(&err);
    tokmap_writer_close(w);
    free(metadata);
    if (code == CLI_OK) {
        code = finish_files(s, prefix, &source, &idx);
        if (code != CLI_OK)
            beside_advise_again(path_of(prefix, ".tmi").s);
    }
    output_close(&idx);
    tokmap_i_file_close(source.fd);
    return code == CLI_OK ? print_result(prefix, s, &done, o) : code;
}

static int redact_dataset(void *options, const char *path, const tokmap_dataset *ds)
{
    const redact_command_options *o = options;
    selection s = {.ds = ds, .info = cli_dataset_info(ds)};
    int code = CLI_OK;
    if (!o->documents && !o->where)
        return cli_usage("give --documents, --where EXPRESSION, or both");
    if (s.info.n_documents == 0 && s.info.n_tokens > 0)
        code =
            cli_error(CLI_DATASET, "%s: the document boundaries are not known", s.info.index_path);
    if (code == CLI_OK && o->documents)
        code = *o->documents == '@' ? select_listed(&s, o->documents + 1)
                                    : select_range(&s, o->documents);
    if (code == CLI_OK && o->where)
        code = select_where(&s, o->where);
    if (code == CLI_OK && s.n == 0)
        code = cli_error(CLI_INPUT, "%s: no document was chosen; nothing was written", path);
    if (code == CLI_OK)
        code = write_redacted(&s, o);
    free(s.documents);
    return code;
}

/* ---- Command ---- */

#define TARGET(field) offsetof(redact_command_options, field)
static const cli_option option_table[] = {
    {"output", 'o', CLI_TEXT, TARGET(output), "Q", .help = "the dataset to write",
     .is_required = true},
    {"documents", 0, CLI_TEXT, TARGET(documents), "RANGE",
     .help = "the documents FIRST:END, without END, as in 'tokmap cat'; or with @LIST those whose "
             "numbers, from 0, are the lines of the file LIST, in ascending order; - is stdin"},
    {"where", 0, CLI_TEXT, TARGET(where), "EXPRESSION",
     .help = "the documents for whose values EXPRESSION holds, as in 'tokmap pack --where'; late "
             "columns have values too. With --documents: these documents too"},
    {"force", 'f', CLI_FLAG, TARGET(force), .help = "replace Q if it already exists"},
    OUTPUT_NO_LOCK_ROW,
    {"json", 0, CLI_FLAG, TARGET(json), .help = "print the result as a JSON object"},
    {"quiet", 'q', CLI_FLAG, TARGET(quiet), .help = "print only errors"},
    {NULL},
};

static const cli_manual manual = {
    .usage = "tokmap redact [OPTION]... P -o Q",
    .about =
        "Makes a dataset Q that is P without the contents of some documents: a filler replaces "
        "their tokens, their labels never count in the loss, and their values are removed. All "
        "lengths stay, so a run that was trained on P continues with Q in the same order: set "
        "order_of of its source to the id of P. P does not change.\n\nQ.bin is a reflink of P.bin "
        "if the file system has reflinks, such as XFS and btrfs, and otherwise a copy; then only "
        "what changes is read, checked and written. If P is joined, only its token files that "
        "change become new files, Q.*.redacted; the others must stay where they are. Late columns "
        "of P ('tokmap columns') become late columns of Q, and lanes become lanes that have zeros "
        "for "
        "the redacted documents.",
    .options = option_table,
    .examples = "  tokmap redact data/train --documents 17 -o data/train2\n"
                "  tokmap redact data/train --documents @gone.txt -o data/train2\n"
                "  tokmap redact data/forum --where 'lang == \"de\"' -o data/forum2\n",
    .operand = "dataset",
    .n_least = 1,
    .n_most = 1,
};

int redact_command(int argc, char **argv)
{
    redact_command_options options = {0};
    const each_command command = {&manual, &options, dataset_names_take_one,
                                  .work = redact_dataset};
    return each_run(&command, argc, argv);
}
