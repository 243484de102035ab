/* SPDX-License-Identifier: Apache-2.0 */
/* adoption.c - recognises a foreign file, decodes its header and tables, and passes the documents
 * and every token to the writer. Documents come first: a bad table is reported before terabytes are
 * read. */
#include "foreign/adoption.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "cli/cli.h"
#include "cli/result.h"
#include "cli/paths.h"
#include "input/window.h"
#include "system/files.h"
#include "system/platform.h"
#include "system/protected.h"
#include "tokmap_writer.h"

#define MAX_LINE_BYTES ((size_t)64 << 20) /* of a line of a table */

/* ---- Files ---- */

/* A regular file as foreign_bytes: it is read and not mapped, so errors are returned and raise no
 * signals. */
typedef struct regular_file {
    char path[4096];
    int fd; /* -1: not open */
    file_facts opened;
    foreign_bytes bytes;
} regular_file;

static bool read_file(void *user, uint64_t offset, void *dst, size_t n_bytes)
{
    const regular_file *file = user;
    size_t n_read;
    errno = tokmap_i_file_read(file->fd, dst, n_bytes, offset, &n_read);
    return n_read == n_bytes;
}

/* Writes path without its last n_drop bytes, plus suffix, to `out`. Returns an exit code, and
 * prints the error, if it is too long. */
static int change_path(char out[4096], const char *path, size_t n_drop, const char *suffix)
{
    const size_t n = strlen(path) - n_drop;
    const int n_out = snprintf(out, 4096, "%.*s%s", (int)n, path, suffix);
    return n_out >= 0 && n_out < 4096
               ? CLI_OK
               : cli_error(CLI_INPUT, "%.200s...: the path is too long", path);
}

/* Opens file->path. Returns an exit code, and prints the error. The struct must not be moved
 * afterwards. */
static int regular_file_open(regular_file *file)
{
    const int error = file_open(file->path, &file->fd, &file->opened);
    if (error)
        return cli_fail_errno(file->path, "open", error);
    if (file->opened.kind != FILE_REGULAR)
        return cli_error(CLI_INPUT, "%s: is %s, not a file of tokens", file->path,
                         file->opened.kind == FILE_FOLDER ? "a folder" : "not a regular file");
    file->bytes = (foreign_bytes){file->opened.n_bytes, read_file, file};
    return CLI_OK;
}

/* Checks that the file was not modified since it was opened. Returns an exit code, and prints the
 * error. Accepts a file that is not open. */
static int regular_file_check(const regular_file *file)
{
    file_facts now;
    if (file->fd < 0)
        return CLI_OK;
    if (file_describe_open(file->fd, &now) == 0 && now.n_bytes == file->opened.n_bytes &&
        now.mtime_ns == file->opened.mtime_ns)
        return CLI_OK;
    return cli_error(CLI_INPUT, "%s: was modified while it was read; nothing is published",
                     file->path);
}

static void regular_file_close(regular_file *file)
{
    tokmap_i_file_close(file->fd);
    file->fd = -1;
}

typedef struct file_head {
    uint8_t bytes[FOREIGN_HEAD_BYTES];
    size_t n_bytes;
} file_head;

typedef struct adoption {
    const adopt_request *request;
    regular_file tokens;
    file_head head; /* the first bytes of the file that the user has named */
    regular_file table, metadata;
    char csv_path[4096]; /* OLMo's table; empty: not used */
    const foreign_reader *reader;
    foreign_layout layout;
    bool boundary_begins; /* layout.boundary_id begins documents instead of ending them */
    tokmap_writer *writer;
    uint64_t n_documents;
    tokmap_error writer_error; /* why the writer refused a document */
} adoption;

static size_t suffix_length(const char *path)
{
    const char *dot = strrchr(path_last_part(path), '.');
    return dot ? strlen(dot) : 0;
}

/* Prints why a decoder refused the file. Returns the exit code, which tells a system error from
 * wrong contents. */
static int print_refusal(const char *path, const failure *err)
{
    return cli_error(cli_failure_exit_code(err), "%s: %s", path, err->text);
}

/* Prints an error of the writer. Once it is open, the only arguments that can be wrong are
 * documents and ids, which come from the file. */
static int print_writer_error(const tokmap_error *err)
{
    int code = cli_fail(err);
    return err->status == TOKMAP_ERR_ARGUMENT ? CLI_INPUT : code;
}

/* ---- Recognising the format ---- */

static int read_head(const regular_file *file, file_head *head)
{
    failure err;
    const uint64_t size = file->bytes.size;
    head->n_bytes = size < FOREIGN_HEAD_BYTES ? (size_t)size : FOREIGN_HEAD_BYTES;
    return foreign_read(&file->bytes, 0, head->bytes, head->n_bytes, &err)
               ? CLI_OK
               : print_refusal(file->path, &err);
}

static bool is_recognised(const foreign_reader *r, const regular_file *file, const file_head *head)
{
    return r->recognise && r->recognise(head->bytes, head->n_bytes, file->bytes.size);
}

/* Looks for a table of the format beside the tokens. */
static int find_table(adoption *a, const foreign_reader *r, bool *out)
{
    const char *path = a->tokens.path, *suffix = r->tokens_suffix ? r->tokens_suffix : "";
    regular_file *table = &a->table;
    file_head head;
    *out = false;
    if (!r->table_suffix || !path_ends_with(path, suffix))
        return CLI_OK;
    int code = change_path(table->path, path, strlen(suffix), r->table_suffix);
    *out = code == CLI_OK && file_exists(table->path);
    if (!*out || !r->recognise)
        return code;
    code = regular_file_open(table);
    if (code == CLI_OK)
        code = read_head(table, &head);
    if (code != CLI_OK)
        return code;
    *out = is_recognised(r, table, &head);
    const char *kind = foreign_other_kind(head.bytes, head.n_bytes, table->bytes.size);
    regular_file_close(table);
    if (!*out && kind)
        return cli_error(CLI_INPUT, "%s: %s beside it, where %s is expected: %s", path, kind,
                         r->kind, table->path);
    return CLI_OK;
}

/* Finds the format of a->tokens, the open file that the user has named. */
static int find_reader(adoption *a)
{
    int code = CLI_OK;
    for (size_t i = 0; code == CLI_OK && foreign_readers[i]; i++) {
        bool found = is_recognised(foreign_readers[i], &a->tokens, &a->head);
        if (!found)
            code = find_table(a, foreign_readers[i], &found);
        if (found) {
            a->reader = foreign_readers[i];
            return code;
        }
    }
    a->reader = &foreign_raw;
    return code;
}

/* ---- Decode ---- */

static int open_beside(regular_file *file, const char *named, size_t n_drop, const char *suffix)
{
    const int code = change_path(file->path, named, n_drop, suffix);
    return code == CLI_OK ? regular_file_open(file) : code;
}

/* Opens the files of the format; the user has named the tokens or the table. */
static int open_files(adoption *a)
{
    const foreign_reader *r = a->reader;
    const char *suffix = r->tokens_suffix ? r->tokens_suffix : "";
    char named[sizeof a->tokens.path];
    int code = CLI_OK;
    memcpy(named, a->tokens.path, sizeof named);
    if (!path_ends_with(named, suffix)) {
        if (!path_ends_with(named, r->table_suffix))
            return cli_error(CLI_INPUT, "%s: a %s dataset consists of the two files X%s and X%s",
                             named, r->name, suffix, r->table_suffix);
        suffix = r->table_suffix;
        regular_file_close(&a->tokens);
        code = open_beside(&a->tokens, named, strlen(suffix), r->tokens_suffix);
    }
    if (code == CLI_OK && r->table_suffix)
        code = open_beside(&a->table, named, strlen(suffix), r->table_suffix);
    if (code == CLI_OK && r->metadata_suffix)
        code = change_path(a->metadata.path, named, strlen(suffix), r->metadata_suffix);
    if (code == CLI_OK && r->metadata_suffix && file_exists(a->metadata.path))
        code = regular_file_open(&a->metadata);
    return code;
}

/* Refuses files that are certainly not raw tokens, since tokens without a header could be any
 * file. */
static int check_raw(const adoption *a)
{
    const char *kind = foreign_other_kind(a->head.bytes, a->head.n_bytes, a->tokens.bytes.size);
    if (kind)
        return cli_error(CLI_INPUT, "%s: is %s, %s", a->tokens.path, kind,
                         a->request->reader ? "not raw tokens"
                                            : "which cannot be adopted in place");
    if (a->request->token_bytes == 0)
        return cli_usage(
            "%s: has no header that tokmap knows; if it holds raw tokens, give --dtype "
            "u16 or u32, and --eod ID (a document ends after it), --bos ID (begins at "
            "it) or --eod none (no boundaries)",
            a->tokens.path);
    return CLI_OK;
}

static int decode_files(adoption *a)
{
    const foreign_reader *r = a->reader;
    const bool is_raw = r == &foreign_raw;
    failure err;
    int code = open_files(a);
    if (code == CLI_OK && is_raw)
        code = check_raw(a);
    if (code != CLI_OK)
        return code;
    const foreign_files files = {.tokens = &a->tokens.bytes,
                                 .table = &a->table.bytes,
                                 .metadata = a->metadata.fd >= 0 ? &a->metadata.bytes : NULL,
                                 .token_bytes = a->request->token_bytes};
    if (!r->decode(&a->layout, &files, &err))
        return print_refusal(r->table_is_refused ? a->table.path : a->tokens.path, &err);
    const char *suffix = a->reader->loss_suffix;
    if (suffix && file_suffix_exists(a->tokens.path, suffix)) /* with --quiet too: data are lost */
        cli_warn("%s%s: is not read: all tokens of the dataset count as labels; 'tokmap import %s' "
                 "copies the tokens, and reads it",
                 a->tokens.path, suffix, a->reader->name);
    if (!is_raw)
        return CLI_OK;
    code = change_path(a->csv_path, a->tokens.path, suffix_length(a->tokens.path), ".csv.gz");
    if (code == CLI_OK && !a->request->eod.is_given && !a->request->bos.is_given &&
        file_exists(a->csv_path))
        a->layout.boundaries = FOREIGN_BOUNDARIES_LISTED;
    else
        a->csv_path[0] = 0;
    return code;
}

/* ---- What the user says ---- */

static int apply_request(adoption *a)
{
    const adopt_request *request = a->request;
    foreign_layout *layout = &a->layout;
    if (request->token_bytes != 0 && request->token_bytes != layout->token_bytes)
        return cli_error(CLI_INPUT,
                         "%s: is a %s file of u%u tokens, which is not the given --dtype",
                         a->tokens.path, a->reader->name, 8 * layout->token_bytes);
    bool is_eod = request->eod.id != TOKMAP_NO_ID;
    bool is_bos = request->bos.id != TOKMAP_NO_ID;
    bool is_listed = layout->boundaries == FOREIGN_BOUNDARIES_LISTED;
    if (is_eod || is_bos) {
        layout->boundary_id = is_eod ? request->eod.id : request->bos.id;
        a->boundary_begins = is_bos;
        if (!is_listed)
            layout->boundaries = is_eod ? FOREIGN_BOUNDARIES_END : FOREIGN_BOUNDARIES_BEGIN;
    } else if (is_listed) {
        layout->boundary_id = TOKMAP_NO_ID;
    } else if (request->eod.is_given || request->bos.is_given) {
        layout->boundaries = FOREIGN_BOUNDARIES_NONE;
        layout->boundary_id = TOKMAP_NO_ID;
    }
    a->boundary_begins |= layout->boundaries == FOREIGN_BOUNDARIES_BEGIN;
    if (layout->boundaries == FOREIGN_BOUNDARIES_UNKNOWN)
        return cli_usage(
            "%s: the file does not state where documents end; give --eod ID (a document ends after "
            "it), --bos ID (begins at it) or --eod none (no boundaries)",
            a->tokens.path);
    uint64_t limit = layout->token_bytes == 2 ? UINT64_C(1) << 16 : UINT32_MAX;
    if (request->vocab_size != 0 && request->vocab_size < limit)
        limit = request->vocab_size;
    if (layout->boundary_id != TOKMAP_NO_ID && layout->boundary_id >= limit)
        return cli_usage(
            "%s: the document boundary %u cannot be an id of this file; the largest is %" PRIu64,
            a->tokens.path, layout->boundary_id, limit - 1);
    return CLI_OK;
}

/* ---- Write the index ---- */

static bool take_document(void *user, uint64_t n_tokens)
{
    adoption *a = user;
    a->n_documents++;
    return tokmap_writer_add_document(a->writer, n_tokens, &a->writer_error) == TOKMAP_OK;
}

/* Prints why a walk over documents stopped: an error of the writer or of the decoder. */
static int print_walk_error(const adoption *a, const char *path, const failure *err)
{
    if (a->writer_error.status != TOKMAP_OK)
        return print_writer_error(&a->writer_error);
    return print_refusal(path, err);
}

static int add_csv_documents(adoption *a, const foreign_sink *sink)
{
    static const window_options options = {0};
    const input_source source = {.path = a->csv_path};
    foreign_csv csv = {.n_tokens = a->layout.n_tokens};
    failure err;
    window w;
    size_t n_bytes;
    int code = CLI_OK;
    if (!window_open(&w, &source, input_open(&source, -1, &err), &options, &err))
        code = cli_print_failure(&err);
    for (bool more = code == CLI_OK; more && code == CLI_OK;) {
        const bool found = window_find(&w, "\n", 1, &n_bytes);
        more = found || !w.at_end;
        if (more && !found && window_size(&w) > MAX_LINE_BYTES)
            code = cli_error(CLI_INPUT, "%s: has a line that is too long", a->csv_path);
        else if (more && !found && !window_fill(&w, &err))
            code = cli_print_failure(&err);
        if (more && !found)
            continue;
        if (!foreign_csv_line(&csv, (const char *)window_text(&w), n_bytes, sink, &err))
            code = print_walk_error(a, a->tokens.path, &err);
        window_consume(&w, n_bytes + found);
    }
    if (code == CLI_OK && !foreign_csv_end(&csv, &err))
        code = print_walk_error(a, a->tokens.path, &err);
    window_close(&w);
    return code;
}

static int add_listed_documents(adoption *a, const foreign_sink *sink)
{
    failure err;
    if (a->layout.boundaries != FOREIGN_BOUNDARIES_LISTED)
        return CLI_OK;
    if (!a->reader->documents)
        return add_csv_documents(a, sink);
    if (!a->reader->documents(&a->layout, &a->table.bytes, sink, &err))
        return print_walk_error(a, a->reader->table_is_refused ? a->table.path : a->tokens.path,
                                &err);
    return CLI_OK;
}

/* Finds a negative id. The writer checks ids against the vocabulary first and does not know about
 * signs, so an id that it calls too large may be negative. */
static void find_negative(adoption *a, failure *err)
{
    const foreign_layout *layout = &a->layout;
    uint64_t offset = a->writer_error.file_offset;
    uint8_t id[4];
    if (!layout->is_signed || a->writer_error.status != TOKMAP_ERR_ARGUMENT ||
        !foreign_read(&a->tokens.bytes, offset, id, sizeof id, err) || le_get32(id) <= INT32_MAX)
        return;
    foreign_refuse_negative(layout, (offset - layout->token_offset) / layout->token_bytes,
                            le_get32(id), err);
    a->writer_error.status = TOKMAP_OK;
}

static int scan_tokens(adoption *a, const foreign_sink *sink)
{
    const foreign_layout *layout = &a->layout;
    foreign_scan scan;
    failure err;
    cli_progress progress;
    const void *tokens;
    size_t n_tokens;
    tokmap_status status;
    foreign_scan_begin(&scan, layout);
    cli_progress_begin(&progress, "index", a->request->quiet);
    while ((status = tokmap_writer_scan(a->writer, &tokens, &n_tokens, &a->writer_error)) ==
           TOKMAP_OK) {
        if (!foreign_scan_feed(&scan, tokens, n_tokens, sink, &err))
            break;
        cli_progress_update(&progress, scan.done * layout->token_bytes,
                            layout->n_tokens * layout->token_bytes);
    }
    bool is_done = status == TOKMAP_END;
    if (is_done)
        a->writer_error.status = TOKMAP_OK;
    if (!is_done || !foreign_scan_end(&scan, sink)) {
        cli_progress_clear(&progress);
        find_negative(a, &err);
        return print_walk_error(a, a->tokens.path, &err);
    }
    cli_progress_end(&progress, layout->n_tokens * layout->token_bytes);
    return CLI_OK;
}

static int finish_index(adoption *a)
{
    const char *name = path_last_part(a->tokens.path);
    char metadata[192], begin[48] = "";
    if (a->boundary_begins)
        snprintf(begin, sizeof begin, ",\"documents_begin_with\":%" PRIu32, a->layout.boundary_id);
    int n_metadata =
        snprintf(metadata, sizeof metadata,
                 "{\"created_by\":\"tokmap %s\",\"adopted_from\":{\"format\":\"%s\"%s}}",
                 tokmap_version(), a->reader->name, begin);
    tokmap_error err;
    if (tokmap_writer_end_input(a->writer, name, a->tokens.bytes.size, 0, &err) != TOKMAP_OK ||
        tokmap_writer_set_metadata(a->writer, metadata, (size_t)n_metadata, &err) != TOKMAP_OK ||
        tokmap_writer_finish(a->writer, &err) != TOKMAP_OK)
        return print_writer_error(&err);
    return CLI_OK;
}

/* Refuses an index, or a temporary name of it, that is one of the files that are read. */
static int check_output_apart(const adoption *a)
{
    static const char *const suffixes[] = {".tmi", ".tmi.partial", ".tmi.replaced"};
    const char *const read[] = {a->tokens.path, a->table.path, a->metadata.path, a->csv_path};
    int code = CLI_OK;
    for (size_t i = 0; i < sizeof read / sizeof *read && code == CLI_OK; i++)
        code = path_protect_name(read[i], "an input");
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes && code == CLI_OK; i++) {
        char out[sizeof a->tokens.path];
        code = change_path(out, a->tokens.path, suffix_length(a->tokens.path), suffixes[i]);
        if (code == CLI_OK)
            code = path_check_output(out);
    }
    return code;
}

/* Whether the index was made from a token file, and nothing was added to it. */
static bool is_adopted(const tokmap_dataset *ds)
{
    tokmap_dataset_info info = {.struct_size = sizeof info};
    json_text_span from, metadata;
    metadata.text = tokmap_dataset_metadata(ds, &metadata.n_bytes);
    tokmap_dataset_get_info(ds, &info);
    return info.n_segments == 0 && info.n_meta_columns == 0 && info.n_spans == 0 &&
           (info.n_documents == 0 || (json_text_check_object(metadata, NULL) &&
                                      json_text_find(metadata, "adopted_from", &from)));
}

/* Refuses to replace an index that has what cannot be found in the token file again. */
static int check_replaced(const adoption *a)
{
    char path[sizeof a->tokens.path];
    tokmap_dataset *ds = NULL;
    int code = change_path(path, a->tokens.path, suffix_length(a->tokens.path), ".tmi");
    if (code != CLI_OK || !a->request->replace ||
        tokmap_dataset_open_index(&ds, path, NULL) != TOKMAP_OK)
        return code; /* a damaged one may be replaced */
    if (!is_adopted(ds))
        code = cli_error(CLI_EXISTS,
                         "%s: was not made by 'tokmap index': its documents, input files, values "
                         "and masks would be lost. If they are not wanted, remove it first",
                         path);
    tokmap_dataset_close(ds);
    return code;
}

static int write_index(adoption *a)
{
    const uint32_t eod_id = a->boundary_begins ? TOKMAP_NO_ID : a->layout.boundary_id;
    tokmap_adopt_options options = {.struct_size = sizeof options,
                                    .token_offset = a->layout.token_offset,
                                    .n_tokens = a->layout.n_tokens,
                                    .vocab_size = a->request->vocab_size,
                                    .token_bytes = a->layout.token_bytes,
                                    .has_eod = eod_id != TOKMAP_NO_ID,
                                    .eod_id = eod_id,
                                    .replace = a->request->replace};
    foreign_sink sink = {take_document, a};
    tokmap_error err;
    if (tokmap_writer_adopt(&a->writer, a->tokens.path, &options, &err) != TOKMAP_OK)
        return cli_fail(&err);
    int code = add_listed_documents(a, &sink);
    if (code == CLI_OK)
        code = scan_tokens(a, &sink);
    if (code == CLI_OK)
        code = regular_file_check(&a->table);
    if (code == CLI_OK)
        code = regular_file_check(&a->metadata);
    if (code == CLI_OK)
        code = finish_index(a);
    tokmap_writer_close(a->writer);
    const bool by_id = a->layout.boundaries == FOREIGN_BOUNDARIES_BEGIN ||
                       a->layout.boundaries == FOREIGN_BOUNDARIES_END;
    if (code == CLI_OK && by_id && a->n_documents == 1 && !a->request->quiet)
        cli_warn("%s: the whole file is one document; check that %" PRIu32
                 " is the id at document boundaries",
                 a->tokens.path, a->layout.boundary_id);
    return code;
}

int adopt_file(const char *path, const adopt_request *request)
{
    adoption *a = malloc(sizeof *a); /* its paths are too large for a small stack */
    if (!a)
        return cli_no_memory();
    *a = (adoption){.request = request,
                    .reader = request->reader,
                    .tokens.fd = -1,
                    .table.fd = -1,
                    .metadata.fd = -1};
    int code = open_beside(&a->tokens, path, 0, "");
    if (code == CLI_OK)
        code = read_head(&a->tokens, &a->head);
    if (code == CLI_OK && !a->reader)
        code = find_reader(a);
    if (code == CLI_OK)
        code = decode_files(a);
    if (code == CLI_OK)
        code = apply_request(a);
    if (code == CLI_OK)
        code = check_output_apart(a);
    if (code == CLI_OK)
        code = check_replaced(a);
    if (code == CLI_OK)
        code = write_index(a);
    if (code == CLI_OK) {
        a->tokens.path[strlen(a->tokens.path) - suffix_length(a->tokens.path)] = '\0';
        code =
            cli_print_result(a->tokens.path, a->reader->name, NULL, request->json, request->quiet);
    }
    regular_file_close(&a->tokens);
    regular_file_close(&a->table);
    regular_file_close(&a->metadata);
    free(a);
    return code;
}
