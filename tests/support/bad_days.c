/* SPDX-License-Identifier: Apache-2.0 */
#include "support/bad_days.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Whole files ---- */

file_bytes file_load(const char *path)
{
    file_bytes f = {0};
    struct stat st;
    FILE *in = fopen(path, "rb");
    if (in && fstat(fileno(in), &st) == 0 && (f.data = calloc(1, (size_t)st.st_size + 1)))
        f.n_bytes = fread(f.data, 1, (size_t)st.st_size, in);
    if (in)
        fclose(in);
    return f;
}

bool file_store(const char *path, const void *data, size_t n_bytes)
{
    FILE *out = fopen(path, "wb");
    const bool written = out && fwrite(data, 1, n_bytes, out) == n_bytes;
    return out && fclose(out) == 0 && written;
}

bool file_is_there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

bool file_holds(const char *path, const file_bytes *bytes)
{
    const file_bytes is = file_load(path);
    const bool same = is.data && bytes->data && is.n_bytes == bytes->n_bytes &&
                      memcmp(is.data, bytes->data, is.n_bytes) == 0;
    free(is.data);
    return same;
}

file_bytes file_cut(const char *path, size_t n_left)
{
    const file_bytes whole = file_load(path);
    if (!whole.data || truncate(path, (off_t)n_left))
        abort();
    return whole;
}

bool files_are_equal(const char *a, const char *b)
{
    const file_bytes in_a = file_load(a);
    const bool same = file_holds(b, &in_a);
    free(in_a.data);
    return same;
}

/* ---- Datasets whose content follows from their shape ---- */

const shape SHAPE_TINY = {
    .name = "tiny", .vocab_size = 300, .n_tokens = 37, .n_documents = 7, .metadata = "{}"};
const shape SHAPE_WIDE_IDS = {.name = "u32",
                              .vocab_size = 100000,
                              .n_tokens = 130,
                              .n_documents = 70,
                              .n_inputs = 3,
                              .metadata = "{\"created_by\": \"bad days\"}"};
const shape SHAPE_NO_DOCUMENTS = {
    .name = "no documents", .vocab_size = 65536, .n_tokens = 50, .n_inputs = 2, .metadata = "{}"};
const shape SHAPE_EMPTY = {.name = "empty", .vocab_size = 9, .metadata = "{}"};
const shape SHAPE_ADOPTED = {.name = "adopted",
                             .vocab_size = 500,
                             .n_tokens = 90,
                             .n_documents = 66,
                             .n_inputs = 1,
                             .metadata = "{\"adopted_from\": {\"format\": \"none\"}}",
                             .token_offset = 24,
                             .adopted_suffix = ".ds"};

const shape SHAPE_VALUES = {.name = "values",
                            .vocab_size = 300,
                            .n_tokens = 70,
                            .n_documents = 67,
                            .metadata = "{}",
                            .n_columns = SHAPE_MAX_COLUMNS};

const shape SHAPE_OLD = {.name = "old",
                         .vocab_size = 700,
                         .n_tokens = 77,
                         .n_documents = 5,
                         .seed = 5,
                         .metadata = "{\"old\": true}"};

const shape *const SMALL_SHAPES[N_SMALL_SHAPES] = {
    &SHAPE_TINY, &SHAPE_WIDE_IDS, &SHAPE_NO_DOCUMENTS, &SHAPE_EMPTY, &SHAPE_ADOPTED, &SHAPE_VALUES};

uint32_t shape_id(const shape *s, uint64_t token)
{
    return (uint32_t)((((token + s->seed + 1) * UINT64_C(0x9E3779B97F4A7C15)) >> 32) %
                      s->vocab_size);
}

uint64_t shape_document_end(const shape *s, uint32_t document)
{
    const uint32_t d = document % 5 == 3 && document + 1 < s->n_documents ? document - 1 : document;
    return (uint64_t)s->n_tokens * (d + 1) / s->n_documents;
}

uint32_t shape_input_end(const shape *s, uint32_t input) /* document */
{
    return (uint32_t)((uint64_t)s->n_documents * (input + 1) / s->n_inputs);
}

static uint64_t shape_input_end_token(const shape *s, uint32_t input)
{
    const uint32_t document = shape_input_end(s, input);
    if (s->n_documents == 0)
        return (uint64_t)s->n_tokens * (input + 1) / s->n_inputs;
    return document == 0 ? 0 : shape_document_end(s, document - 1);
}

static void shape_input_name(uint32_t input, char name[32])
{
    name[0] = 0;
    if (input % 3 != 1)
        snprintf(name, 32, "input-%" PRIu32 ".txt", input);
}

const char *with_suffix(const char *prefix, const char *suffix)
{
    static char paths[8][2048];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s%s", prefix, suffix);
    return path;
}

const char *shape_token_path(const shape *s, const char *prefix)
{
    return with_suffix(prefix, s->adopted_suffix ? s->adopted_suffix : ".bin");
}

static uint32_t shape_token_bytes(const shape *s)
{
    return s->vocab_size <= 65536 ? 2 : 4;
}

tokmap_status shape_append(const shape *s, tokmap_writer *w, uint64_t first, uint64_t end,
                           tokmap_error *err)
{
    uint32_t ids[1009];
    tokmap_status status = TOKMAP_OK;
    while (!status && first < end) {
        size_t n = 0;
        while (n < sizeof ids / sizeof ids[0] && first < end)
            ids[n++] = shape_id(s, first++);
        status = tokmap_writer_append(w, ids, n, err);
    }
    return status;
}

static tokmap_status shape_end_input(tokmap_writer *w, uint32_t input, tokmap_error *err)
{
    char name[32];
    shape_input_name(input, name);
    return tokmap_writer_end_input(w, name, input + 10, input * UINT64_C(77777777777), err);
}

/* An int64, a float64, a dictionary, strings and nothing; some of them with nulls. */
static void make_values(uint32_t d, tokmap_value v[SHAPE_MAX_COLUMNS], char text[16])
{
    const tokmap_value values[SHAPE_MAX_COLUMNS] = {
        {.type = TOKMAP_VALUE_INT64, .integer = -(int64_t)d},
        {.type = d % 3 ? TOKMAP_VALUE_FLOAT64 : TOKMAP_VALUE_NULL, .real = d / 2.0},
        {.type = d % 4 ? TOKMAP_VALUE_STRING : TOKMAP_VALUE_NULL,
         .text = d % 2 ? "odd" : "even",
         .text_bytes = d % 2 ? 3 : 4},
        {.type = TOKMAP_VALUE_STRING,
         .text = text,
         .text_bytes = (size_t)snprintf(text, 16, "%u", d * 7919)},
        {.type = TOKMAP_VALUE_NULL}};
    memcpy(v, values, sizeof values);
}

static tokmap_status add_values(const shape *s, tokmap_writer *w, uint32_t d, tokmap_error *err)
{
    char text[16];
    tokmap_value v[SHAPE_MAX_COLUMNS];
    make_values(d, v, text);
    return s->n_columns == 0 ? TOKMAP_OK : tokmap_writer_add_meta(w, v, s->n_columns, err);
}

/* Whether the values of a document are those. */
static bool values_match(const shape *s, const tokmap_dataset *ds, uint32_t d)
{
    char text[16];
    tokmap_value v[SHAPE_MAX_COLUMNS], is;
    make_values(d, v, text);
    for (uint32_t i = 0; i < s->n_columns; i++) {
        if (tokmap_dataset_get_meta(ds, i, d, &is) || is.type != v[i].type)
            return false;
        if (is.type == TOKMAP_VALUE_INT64 && is.integer != v[i].integer)
            return false;
        if (is.type == TOKMAP_VALUE_FLOAT64 && is.real != v[i].real)
            return false;
        if (is.type == TOKMAP_VALUE_STRING &&
            (is.text_bytes != v[i].text_bytes || memcmp(is.text, v[i].text, is.text_bytes) != 0))
            return false;
    }
    return true;
}

tokmap_status shape_fill(const shape *s, tokmap_writer *w, tokmap_error *err)
{
    static const char *const names[] = {"number", "real", "word", "text", "none"};
    tokmap_status status = tokmap_writer_set_meta_columns(w, names, s->n_columns, err);
    uint32_t input = 0;
    uint64_t first = 0;
    for (uint32_t d = 0; !status && d < s->n_documents; d++) {
        status = add_values(s, w, d, err);
        if (status)
            break;
        const uint64_t end = shape_document_end(s, d);
        if (s->adopted_suffix)
            status = tokmap_writer_add_document(w, end - first, err);
        else
            status = shape_append(s, w, first, end, err);
        if (!status && !s->adopted_suffix)
            status = tokmap_writer_end_document(w, err);
        first = end;
        while (!status && input < s->n_inputs && shape_input_end(s, input) == d + 1)
            status = shape_end_input(w, input++, err);
    }
    for (; !status && s->n_documents == 0 && input < s->n_inputs; input++) {
        status = shape_append(s, w, first, shape_input_end_token(s, input), err);
        first = shape_input_end_token(s, input);
        if (!status)
            status = shape_end_input(w, input, err);
    }
    if (!status && s->n_documents == 0)
        status = shape_append(s, w, first, s->n_tokens, err);
    return status ? status : tokmap_writer_set_metadata(w, s->metadata, strlen(s->metadata), err);
}

file_bytes shape_token_file(const shape *s)
{
    const uint32_t width = shape_token_bytes(s);
    file_bytes f = {0};
    f.n_bytes = s->token_offset + (size_t)s->n_tokens * width;
    f.data = malloc(f.n_bytes + 1);
    if (!f.data)
        abort();
    memset(f.data, 0xee, s->token_offset);
    for (size_t i = 0; i < s->n_tokens; i++)
        for (uint32_t k = 0; k < width; k++)
            f.data[s->token_offset + i * width + k] = (uint8_t)(shape_id(s, i) >> (8 * k));
    return f;
}

bool shape_store_tokens(const shape *s, const char *prefix)
{
    file_bytes f = shape_token_file(s);
    const bool stored = file_store(shape_token_path(s, prefix), f.data, f.n_bytes);
    free(f.data);
    return stored;
}

tokmap_status shape_open(const shape *s, const char *prefix, bool replace, tokmap_writer **out,
                         tokmap_error *err)
{
    const tokmap_writer_options options = {.struct_size = sizeof options,
                                           .vocab_size = s->vocab_size,
                                           .eod_id = TOKMAP_NO_ID,
                                           .replace = replace};
    const tokmap_adopt_options adopt = {.struct_size = sizeof adopt,
                                        .token_offset = s->token_offset,
                                        .n_tokens = s->n_tokens,
                                        .vocab_size = s->vocab_size,
                                        .token_bytes = shape_token_bytes(s),
                                        .eod_id = TOKMAP_NO_ID,
                                        .replace = replace};
    if (!s->adopted_suffix)
        return tokmap_writer_open(out, prefix, &options, err);
    tokmap_status status = tokmap_writer_adopt(out, shape_token_path(s, prefix), &adopt, err);
    while (!status) {
        const void *tokens;
        size_t n_tokens;
        status = tokmap_writer_scan(*out, &tokens, &n_tokens, err);
    }
    return status == TOKMAP_END ? TOKMAP_OK : status;
}

tokmap_status shape_write(const shape *s, const char *prefix, bool replace, tokmap_error *err)
{
    tokmap_writer *w = NULL;
    tokmap_status status = shape_open(s, prefix, replace, &w, err);
    if (!status)
        status = shape_fill(s, w, err);
    if (!status)
        status = tokmap_writer_finish(w, err);
    tokmap_writer_close(w);
    return status;
}

/* ---- Invariants of every dataset that opens ---- */

static volatile uint64_t touched; /* so that reading each byte is not optimised away */

static void touch(const void *data, uint64_t n_bytes)
{
    const uint8_t *p = data;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n_bytes; i++)
        sum += p[i];
    touched += sum;
}

static bool document_inside(const tokmap_dataset_info *info, const tokmap_document *d)
{
    return d->index < info->n_documents && d->first_token <= info->n_tokens &&
           d->n_tokens <= info->n_tokens - d->first_token;
}

/* At most about `n` of `total`, the first and the last among them. */
static uint64_t stride_for(uint64_t total, uint64_t n)
{
    return total > n ? total / n : 1;
}

static const char *probe_documents(const tokmap_dataset *ds, const tokmap_dataset_info *info)
{
    tokmap_document d;
    tokmap_status status;
    const uint64_t stride = stride_for(info->n_documents, 2000);
    for (uint64_t i = 0; i < info->n_documents; i += stride) {
        status = tokmap_dataset_document(ds, i, &d);
        if (status != TOKMAP_ERR_CORRUPT && status != TOKMAP_OK)
            return "tokmap_dataset_document gave an odd status";
        if (!status && (d.index != i || !document_inside(info, &d)))
            return "a document leaves the dataset";
    }
    const uint64_t token_stride = stride_for(info->n_tokens, 2000);
    for (uint64_t t = 0; t < info->n_tokens; t += token_stride) {
        status = tokmap_dataset_find_document(ds, t, &d);
        if (status != TOKMAP_ERR_CORRUPT && status != (info->n_documents ? 0 : TOKMAP_ERR_ARGUMENT))
            return "tokmap_dataset_find_document gave an odd status";
        if (!status &&
            (!document_inside(info, &d) || t < d.first_token || t - d.first_token >= d.n_tokens))
            return "a document was found that does not hold the token";
    }
    if (tokmap_dataset_document(ds, info->n_documents, &d) != TOKMAP_ERR_ARGUMENT ||
        tokmap_dataset_find_document(ds, info->n_tokens, &d) != TOKMAP_ERR_ARGUMENT ||
        tokmap_dataset_document(ds, UINT64_MAX, &d) != TOKMAP_ERR_ARGUMENT)
        return "a document behind the end was not refused";
    return NULL;
}

static const char *probe_inputs(const tokmap_dataset *ds, const tokmap_dataset_info *info)
{
    tokmap_input_info input = TOKMAP_INIT(tokmap_input_info);
    for (uint64_t i = 0; i < info->n_inputs; i++) {
        const tokmap_status status = tokmap_dataset_get_input(ds, i, &input);
        if (status == TOKMAP_ERR_CORRUPT)
            continue;
        if (status)
            return "tokmap_dataset_get_input gave an odd status";
        if (input.first_document > info->n_documents ||
            input.n_documents > info->n_documents - input.first_document ||
            input.first_token > info->n_tokens ||
            input.n_tokens > info->n_tokens - input.first_token)
            return "an input leaves the dataset";
        touch(input.name, input.name_bytes);
    }
    if (tokmap_dataset_get_input(ds, info->n_inputs, &input) != TOKMAP_ERR_ARGUMENT)
        return "an input behind the end was not refused";
    return NULL;
}

/* Whether this may be a token file of a joined dataset, which open did not look at. */
static bool is_bad_file(const tokmap_dataset_info *info, tokmap_status status)
{
    return info->n_segments > 0 && (status == TOKMAP_ERR_IO || status == TOKMAP_ERR_CORRUPT);
}

static const char *probe_tokens(const tokmap_dataset *ds, const tokmap_dataset_info *info)
{
    const void *tokens = NULL;
    uint8_t copy[64];
    const uint64_t n = info->n_tokens < 4096 ? info->n_tokens : 4096;
    const uint64_t n_copied = n < 16 ? n : 16;
    const tokmap_status status = tokmap_dataset_tokens(ds, info->n_tokens - n, n, &tokens);
    if (status && !(status == TOKMAP_IN_PIECES && info->n_segments > 1) &&
        !is_bad_file(info, status))
        return "the last tokens are refused";
    touch(tokens, status ? 0 : n * info->token_bytes);
    const tokmap_status of_read = tokmap_dataset_read(ds, 0, n_copied, copy, NULL);
    if (of_read && !is_bad_file(info, of_read))
        return "the first tokens cannot be read";
    if (tokmap_dataset_tokens(ds, info->n_tokens, 1, &tokens) != TOKMAP_ERR_ARGUMENT ||
        tokmap_dataset_tokens(ds, 1, UINT64_MAX, &tokens) != TOKMAP_ERR_ARGUMENT ||
        tokmap_dataset_read(ds, UINT64_MAX, 2, copy, NULL) != TOKMAP_ERR_ARGUMENT)
        return "tokens behind the end were not refused";
    return NULL;
}

static const char *probe_column(const tokmap_dataset *ds, const tokmap_dataset_info *info,
                                uint32_t i)
{
    tokmap_meta_column column = TOKMAP_INIT(tokmap_meta_column);
    if (tokmap_dataset_get_meta_column(ds, i, &column))
        return "a column is refused";
    touch(column.name, column.name_bytes);
    touch(column.validity, column.validity ? (info->n_documents + 7) / 8 : 0);
    touch(column.values, column.values ? 8 * info->n_documents : 0);
    touch(column.codes, column.codes ? column.code_bytes * info->n_documents : 0);
    touch(column.offsets, column.offsets ? 8 * (column.n_strings + 1) : 0);
    touch(column.text, column.text_bytes);
    for (uint64_t d = 0; d < info->n_documents; d += stride_for(info->n_documents, 2000)) {
        tokmap_value value;
        const tokmap_status status = tokmap_dataset_get_meta(ds, i, d, &value);
        if (status != TOKMAP_ERR_CORRUPT && status != TOKMAP_OK)
            return "tokmap_dataset_get_meta gave an odd status";
        if (!status && value.type != TOKMAP_VALUE_NULL && value.type != column.type)
            return "a value has another type than its column";
        if (!status && value.type == TOKMAP_VALUE_STRING)
            touch(value.text, value.text_bytes);
    }
    return NULL;
}

static const char *probe_values(const tokmap_dataset *ds, const tokmap_dataset_info *info)
{
    tokmap_meta_column column = TOKMAP_INIT(tokmap_meta_column);
    tokmap_value value;
    const char *problem = NULL;
    for (uint32_t i = 0; !problem && i < info->n_meta_columns; i++)
        problem = probe_column(ds, info, i);
    if (!problem &&
        (tokmap_dataset_get_meta_column(ds, info->n_meta_columns, &column) != TOKMAP_ERR_ARGUMENT ||
         tokmap_dataset_get_meta(ds, 0, info->n_documents, &value) != TOKMAP_ERR_ARGUMENT ||
         tokmap_dataset_get_meta(ds, info->n_meta_columns, 0, &value) != TOKMAP_ERR_ARGUMENT))
        return "a value behind the end was not refused";
    return problem;
}

const char *probe(const tokmap_dataset *ds)
{
    tokmap_dataset_info info = {.struct_size = sizeof info};
    tokmap_dataset_get_info(ds, &info);
    const char *json = NULL;
    size_t n_bytes = 0;
    json = tokmap_dataset_metadata(ds, &n_bytes);
    touch(json, n_bytes);
    const char *problem = probe_documents(ds, &info);
    if (!problem)
        problem = probe_inputs(ds, &info);
    if (!problem)
        problem = probe_values(ds, &info);
    return problem ? problem : probe_tokens(ds, &info);
}

const char *probe_sound(const tokmap_dataset *ds)
{
    tokmap_dataset_info info = {.struct_size = sizeof info};
    tokmap_dataset_get_info(ds, &info);
    uint64_t end = 0;
    for (uint64_t i = 0; i < info.n_documents; i++) {
        tokmap_document d;
        if (tokmap_dataset_document(ds, i, &d) || d.first_token != end)
            return "verify passed documents with gaps";
        end += d.n_tokens;
    }
    if (info.n_documents > 0 && end != info.n_tokens)
        return "verify passed documents that do not cover the tokens";
    uint64_t end_document = 0;
    end = 0;
    for (uint64_t i = 0; i < info.n_inputs; i++) {
        tokmap_input_info input = TOKMAP_INIT(tokmap_input_info);
        if (tokmap_dataset_get_input(ds, i, &input) || input.first_token != end ||
            input.first_document != end_document)
            return "verify passed inputs with gaps";
        end += input.n_tokens;
        end_document += input.n_documents;
    }
    if (info.n_inputs > 0 && (end != info.n_tokens || end_document != info.n_documents))
        return "verify passed inputs that do not cover the dataset";
    return NULL;
}

tokmap_status verify_one_thread(const tokmap_dataset *ds, tokmap_error *err)
{
    const tokmap_verify_options options = {.struct_size = sizeof options, .n_threads = 1};
    return tokmap_dataset_verify(ds, &options, NULL, err);
}

static const char *compare_documents(const shape *s, const tokmap_dataset *ds)
{
    uint64_t first = 0;
    for (uint32_t d = 0; d < s->n_documents; d++) {
        tokmap_document document;
        if (tokmap_dataset_document(ds, d, &document) || document.first_token != first ||
            document.first_token + document.n_tokens != shape_document_end(s, d))
            return "other documents";
        first = shape_document_end(s, d);
    }
    for (uint32_t i = 0; i < s->n_inputs; i++) {
        tokmap_input_info input = TOKMAP_INIT(tokmap_input_info);
        char name[32];
        shape_input_name(i, name);
        if (tokmap_dataset_get_input(ds, i, &input) || input.name_bytes != strlen(name) ||
            memcmp(input.name, name, strlen(name)) != 0 || input.input_bytes != i + 10 ||
            input.first_document + input.n_documents != shape_input_end(s, i) ||
            input.first_token + input.n_tokens != shape_input_end_token(s, i))
            return "other inputs";
    }
    return NULL;
}

/* In one piece, or copied from several. */
static bool same_tokens(const shape *s, const tokmap_dataset *ds, const tokmap_dataset_info *info)
{
    const size_t n_bytes = (size_t)s->n_tokens * info->token_bytes;
    file_bytes expected = shape_token_file(s);
    void *copy = malloc(n_bytes + 1);
    const void *tokens = copy;
    tokmap_status status = tokmap_dataset_tokens(ds, 0, s->n_tokens, &tokens);
    if (copy && status == TOKMAP_IN_PIECES)
        status = tokmap_dataset_read(ds, 0, s->n_tokens, copy, NULL);
    const bool same = !status && memcmp(tokens, expected.data + s->token_offset, n_bytes) == 0;
    free(copy);
    free(expected.data);
    return same;
}

const char *compare_content(const shape *s, const tokmap_dataset *ds)
{
    tokmap_dataset_info info = {.struct_size = sizeof info};
    tokmap_dataset_get_info(ds, &info);
    if (info.n_tokens != s->n_tokens || info.n_documents != s->n_documents ||
        info.n_inputs != s->n_inputs || info.vocab_size != s->vocab_size ||
        info.token_bytes != shape_token_bytes(s) ||
        info.token_offset != (info.n_segments ? 0 : s->token_offset))
        return "other counts or widths";
    if (!same_tokens(s, ds, &info))
        return "other tokens";
    const char *json;
    size_t n_bytes;
    json = tokmap_dataset_metadata(ds, &n_bytes);
    if (n_bytes != strlen(s->metadata) || memcmp(json, s->metadata, n_bytes) != 0)
        return "other metadata";
    return compare_documents(s, ds);
}

const char *shape_compare(const shape *s, const char *prefix)
{
    static char why[700];
    tokmap_dataset *ds = NULL;
    tokmap_error err;
    if (tokmap_dataset_open(&ds, prefix, &err)) {
        snprintf(why, sizeof why, "%s", err.text);
        return why;
    }
    const char *problem = compare_content(s, ds);
    for (uint32_t d = 0; !problem && d < s->n_documents; d++)
        problem = values_match(s, ds, d) ? NULL : "the values differ";
    if (!problem && verify_one_thread(ds, &err)) {
        snprintf(why, sizeof why, "%s", err.text);
        problem = why;
    }
    if (!problem)
        problem = probe(ds);
    tokmap_dataset_close(ds);
    return problem;
}

bool is_absent(const char *prefix)
{
    tokmap_dataset *ds = NULL;
    tokmap_error err;
    const tokmap_status status = tokmap_dataset_open(&ds, prefix, &err);
    tokmap_dataset_close(ds);
    return status == TOKMAP_ERR_IO && err.sys_errno == 2 /* ENOENT */ && ds == NULL;
}

bool has_partials(const char *prefix)
{
    return file_is_there(with_suffix(prefix, ".bin.partial")) ||
           file_is_there(with_suffix(prefix, ".tmi.partial")) ||
           file_is_there(with_suffix(prefix, ".tmv.partial"));
}

void remove_dataset(const char *prefix)
{
    static const char *const suffixes[] = {".bin",         ".tmi",          ".bin.partial",
                                           ".tmi.partial", ".bin.replaced", ".tmi.replaced",
                                           ".tmv.partial"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        unlink(with_suffix(prefix, suffixes[i]));
}
