/* SPDX-License-Identifier: Apache-2.0 */
/* tool_release - prints what a program sees of datasets and of the states of loaders in the folder
 * it runs in, so that files of old releases can be compared with what they held. Lines of stdin:
 *
 *     dataset NAME              the tokens are read unless there are many
 *     loader NAME WORD...       restores states/NAME, and prints the steps after it for every rank
 *     save NAME WORD...         writes states/NAME
 *
 * A WORD is KEY=NUMBER for a key of read_number; source=NAME[+NAME...]:WEIGHT:MAX_EPOCHS:MASKED; or
 * phase=FIRST_SAMPLE:WEIGHT[,WEIGHT...]. A NAME of a source may be followed by @VIEW, or by
 * @VIEW@FIRST-END, where VIEW may be missing. Of the last source, list=N:STEP:KEEPS_REST is the
 * order of the documents of its last dataset, and order=N:STEP:BELOW that of its windows: see
 * make_numbers. tests/oracles/ref_release.py prints the same. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "tokmap_loader.h"

enum {
    MAX_SOURCES = 4,
    MAX_SHARDS = 4,
    MAX_PHASES = 4,
    MAX_TOKENS_READ = 1 << 24,
    STEPS = 3
};

static void require(int condition, const char *what, const tokmap_error *err)
{
    if (condition)
        return;
    fprintf(stderr, "tool_release: %s%s%s\n", what, err ? ": " : "", err ? err->text : "");
    exit(1);
}

static tokmap_dataset *open_dataset(const char *name)
{
    tokmap_dataset *ds;
    tokmap_error err;
    require(!tokmap_dataset_open(&ds, name, &err), name, &err);
    return ds;
}

/* Of n ids as u32, whatever their width. */
static uint64_t hash_ids(const void *tokens, uint64_t n, uint32_t token_bytes)
{
    uint32_t *ids = malloc(4 * n + 1);
    require(ids != NULL, "no memory", NULL);
    for (uint64_t i = 0; i < n; i++)
        ids[i] = token_bytes == 2 ? ((const uint16_t *)tokens)[i] : ((const uint32_t *)tokens)[i];
    const uint64_t hash = XXH3_64bits(ids, 4 * n);
    free(ids);
    return hash;
}

/* ---- Datasets ---- */

static void show_tokens(const tokmap_dataset *ds, const tokmap_dataset_info *info)
{
    tokmap_error err;
    if (info->n_tokens > MAX_TOKENS_READ)
        return;
    void *tokens = malloc(info->n_tokens * info->token_bytes + 1);
    require(tokens && !tokmap_dataset_read(ds, 0, info->n_tokens, tokens, &err), "read", &err);
    printf(" tokens_xxh3 %016" PRIx64 "\n", hash_ids(tokens, info->n_tokens, info->token_bytes));
    free(tokens);
}

static void show_documents(const tokmap_dataset *ds, const tokmap_dataset_info *info)
{
    uint64_t *ends = malloc(8 * info->n_documents + 1);
    const uint64_t tokens[] = {0, info->n_tokens / 3, info->n_tokens / 2, info->n_tokens - 1};
    tokmap_document d;
    require(ends != NULL, "no memory", NULL);
    for (uint64_t i = 0; i < info->n_documents; i++) {
        require(!tokmap_dataset_document(ds, i, &d) && d.index == i, "document", NULL);
        ends[i] = d.first_token + d.n_tokens;
    }
    printf(" documents %" PRIu64 ", ends_xxh3 %016" PRIx64 "\n", info->n_documents,
           (uint64_t)XXH3_64bits(ends, 8 * info->n_documents));
    for (int i = 0; info->n_documents && info->n_tokens && i < 4; i++) {
        require(!tokmap_dataset_find_document(ds, tokens[i], &d), "find_document", NULL);
        printf(" token %" PRIu64 " is in document %" PRIu64 ": %" PRIu64 " tokens from %" PRIu64
               "\n",
               tokens[i], d.index, d.n_tokens, d.first_token);
    }
    free(ends);
}

static void show_inputs(const tokmap_dataset *ds, const tokmap_dataset_info *info)
{
    tokmap_input_info input = TOKMAP_INIT(tokmap_input_info);
    for (uint64_t i = 0; i < info->n_inputs; i++) {
        require(!tokmap_dataset_get_input(ds, i, &input), "input", NULL);
        printf(" input %.*s: documents %" PRIu64 " to %" PRIu64 ", tokens %" PRIu64 " to %" PRIu64
               ", %" PRIu64 " bytes, checksum %016" PRIx64 "\n",
               (int)input.name_bytes, input.name, input.first_document,
               input.first_document + input.n_documents, input.first_token,
               input.first_token + input.n_tokens, input.input_bytes, input.input_checksum);
    }
}

/* A value as text, doubles by their bits. */
static void print_value(FILE *out, const tokmap_value *v)
{
    uint64_t bits;
    memcpy(&bits, &v->real, sizeof bits);
    if (v->type == TOKMAP_VALUE_NULL)
        fputs("null\n", out);
    else if (v->type == TOKMAP_VALUE_INT64)
        fprintf(out, "int %" PRId64 "\n", v->integer);
    else if (v->type == TOKMAP_VALUE_FLOAT64)
        fprintf(out, "float %016" PRIx64 "\n", bits);
    else
        fprintf(out, "text %.*s\n", (int)v->text_bytes, v->text);
}

static void show_columns(const tokmap_dataset *ds, const tokmap_dataset_info *info)
{
    static const char *const types[] = {"null", "int64", "float64", "string"};
    for (uint32_t c = 0; c < info->n_meta_columns; c++) {
        tokmap_meta_column column = TOKMAP_INIT(tokmap_meta_column);
        char *text;
        size_t n_bytes;
        FILE *out = open_memstream(&text, &n_bytes);
        require(out && !tokmap_dataset_get_meta_column(ds, c, &column), "column", NULL);
        printf(" column %.*s: %s, %" PRIu64 " nulls\n", (int)column.name_bytes, column.name,
               column.code_bytes ? "dictionary" : types[column.type], column.n_nulls);
        for (uint64_t d = 0; d < info->n_documents; d++) {
            tokmap_value value;
            require(!tokmap_dataset_get_meta(ds, c, d, &value), "value", NULL);
            if (d < 3) {
                fputs("  ", stdout);
                print_value(stdout, &value);
            }
            print_value(out, &value);
        }
        fclose(out);
        printf("  all xxh3 %016" PRIx64 "\n", (uint64_t)XXH3_64bits(text, n_bytes));
        free(text);
    }
}

static void show_segments(const tokmap_dataset *ds, const tokmap_dataset_info *info)
{
    tokmap_segment_info s = TOKMAP_INIT(tokmap_segment_info);
    for (uint64_t i = 0; i < info->n_segments; i++) {
        require(!tokmap_dataset_get_segment(ds, i, &s), "segment", NULL);
        printf(" segment %s: tokens %" PRIu64 " to %" PRIu64 ", at %" PRIu64 "\n", s.path,
               s.first_token, s.first_token + s.n_tokens, s.token_offset);
    }
}

static void show_dataset(char *name)
{
    tokmap_dataset *ds = open_dataset(name);
    tokmap_dataset_info info = TOKMAP_INIT(tokmap_dataset_info);
    size_t n_bytes;
    require(!tokmap_dataset_get_info(ds, &info), "info", NULL);
    printf("dataset %s\n id ", name);
    for (int i = 0; i < 16; i++)
        printf("%02x", info.dataset_id[i]);
    printf("\n format %" PRIu32 " for readers of %" PRIu32 "\n", info.format_version,
           info.lowest_reader);
    printf(" tokens %" PRIu64 " of %" PRIu32 " bytes at %" PRIu64 ", files of %" PRIu64 " bytes\n",
           info.n_tokens, info.token_bytes, info.token_offset, info.token_file_bytes);
    printf(" ids to %" PRIu32 ", vocabulary %" PRIu64 ", end of document %" PRId64 "\n",
           info.largest_id, info.vocab_size,
           info.eod_id == TOKMAP_NO_ID ? (int64_t)-1 : (int64_t)info.eod_id);
    show_tokens(ds, &info);
    show_documents(ds, &info);
    show_inputs(ds, &info);
    show_columns(ds, &info);
    show_segments(ds, &info);
    const char *metadata = tokmap_dataset_metadata(ds, &n_bytes);
    printf(" metadata %.*s\n", (int)n_bytes, metadata);
    tokmap_dataset_close(ds);
}

/* ---- Loaders ---- */

typedef struct setup {
    tokmap_loader_options o;
    uint64_t next_sample; /* of the state */
    tokmap_loader_source sources[MAX_SOURCES];
    tokmap_dataset *datasets[MAX_SOURCES][MAX_SHARDS];
    tokmap_view *views[MAX_SOURCES][MAX_SHARDS];
    uint64_t documents[MAX_SOURCES][2 * MAX_SHARDS];
    tokmap_document_list lists[MAX_SOURCES][MAX_SHARDS];
    tokmap_loader_phase phases[MAX_PHASES];
    double weights[MAX_PHASES][MAX_SOURCES];
    tokmap_loader_skip skips[MAX_PHASES];
} setup;

static tokmap_view *open_view(const tokmap_dataset *ds, const char *path)
{
    const tokmap_view_options options = {.struct_size = sizeof options, .path = path};
    tokmap_view *view;
    tokmap_error err;
    require(!tokmap_view_open(&view, ds, &options, &err), path, &err);
    return view;
}

/* A dataset of the last source, with its view and its range of documents. */
static void read_shard(setup *s, uint32_t shard, char *name)
{
    const uint32_t source = s->o.n_sources - 1;
    uint64_t *documents = &s->documents[source][2 * (size_t)shard];
    char *view = name, *range;
    tokmap_dataset *ds = open_dataset(strsep(&view, "@"));
    range = view;
    strsep(&range, "@");
    s->datasets[source][shard] = ds;
    if (view && *view)
        s->views[source][shard] = open_view(ds, view);
    documents[0] = range ? strtoull(range, &range, 10) : 0;
    documents[1] = range ? strtoull(range + 1, NULL, 10) : UINT64_MAX;
}

static void read_source(setup *s, char *value)
{
    require(s->o.n_sources < MAX_SOURCES, "too many sources", NULL);
    tokmap_loader_source *source = &s->sources[s->o.n_sources];
    source->datasets = s->datasets[s->o.n_sources];
    source->views = s->views[s->o.n_sources];
    source->documents = s->documents[s->o.n_sources++];
    char *rest, *names = strtok_r(value, ":", &rest);
    source->weight = strtod(rest, &rest);
    source->max_epochs = strtoull(rest + 1, &rest, 10);
    source->masked = (int32_t)strtol(rest + 1, &rest, 10);
    for (char *name; (name = strsep(&names, "+"));) {
        require(source->n_datasets < MAX_SHARDS, "too many datasets", NULL);
        read_shard(s, source->n_datasets++, name);
    }
}

/* Makes the N numbers 0, STEP, 2 STEP, ... modulo `below`, which N:STEP begins. */
static uint64_t *make_numbers(char **value, uint64_t *n, uint64_t below)
{
    *n = strtoull(*value, value, 10);
    const uint64_t step = strtoull(*value + 1, value, 10);
    uint64_t *numbers = calloc(*n, sizeof *numbers);
    require(numbers && (below > 0 || **value == ':'), "numbers", NULL);
    below = below ? below : strtoull(*value + 1, value, 10);
    for (uint64_t i = 0; i < *n; i++)
        numbers[i] = i * step % below;
    return numbers;
}

/* The order of the documents of the last dataset of the last source: N:STEP:KEEPS_REST. */
static void read_list(setup *s, char *value)
{
    const uint32_t k = s->o.n_sources - 1, shard = s->sources[k].n_datasets - 1;
    tokmap_dataset_info info = TOKMAP_INIT(tokmap_dataset_info);
    tokmap_document_list *list = &s->lists[k][shard];
    require(!tokmap_dataset_get_info(s->datasets[k][shard], &info), "info", NULL);
    list->documents = make_numbers(&value, &list->n_documents, info.n_documents);
    list->document_bytes = 8;
    list->keeps_rest = strtol(value + 1, NULL, 10);
    s->sources[k].document_lists = s->lists[k];
}

/* The windows of the last source: N:STEP:BELOW. */
static void read_order(setup *s, char *value)
{
    tokmap_loader_source *source = &s->sources[s->o.n_sources - 1];
    source->window_list = make_numbers(&value, &source->n_window_list, 0);
    source->window_list_bytes = 8;
}

static void read_phase(setup *s, char *value)
{
    require(s->o.n_phases < MAX_PHASES, "too many phases", NULL);
    double *weights = s->weights[s->o.n_phases];
    tokmap_loader_phase *phase = &s->phases[s->o.n_phases++];
    phase->first_sample = strtoull(value, &value, 10);
    phase->weights = weights;
    while (*value)
        *weights++ = strtod(value + 1, &value);
}

static void read_skip(setup *s, char *value)
{
    require(s->o.n_skips < MAX_PHASES, "too many skips", NULL);
    tokmap_loader_skip *skip = &s->skips[s->o.n_skips++];
    skip->first_sample = strtoull(value, &value, 10);
    skip->end_sample = strtoull(value + 1, NULL, 10);
}

static void read_number(setup *s, const char *key, uint64_t n)
{
    if (strcmp(key, "next") == 0)
        s->next_sample = n;
    else if (strcmp(key, "seed") == 0)
        s->o.seed = n;
    else if (strcmp(key, "length") == 0)
        s->o.sequence_length = (uint32_t)n;
    else if (strcmp(key, "rows") == 0)
        s->o.batch_rows = (uint32_t)n;
    else if (strcmp(key, "ranks") == 0)
        s->o.n_ranks = (uint32_t)n;
    else if (strcmp(key, "parts") == 0)
        s->o.row_parts = (uint32_t)n;
    else if (strcmp(key, "shuffle") == 0)
        s->o.shuffle = (tokmap_shuffle)n;
    else if (strcmp(key, "windows") == 0)
        s->o.windows = (tokmap_windows)n;
    else if (strcmp(key, "random_offset") == 0)
        s->o.random_offset = (int32_t)n;
    else if (strcmp(key, "block_windows") == 0)
        s->o.block_windows = n;
    else if (strcmp(key, "group_blocks") == 0)
        s->o.group_blocks = n;
    else if (strcmp(key, "align") == 0)
        s->o.align = (uint32_t)n;
    else if (strcmp(key, "max_documents") == 0)
        s->o.max_documents = (uint32_t)n;
    else if (strcmp(key, "whole_documents") == 0)
        s->o.whole_documents = (tokmap_whole_documents)n;
    else
        require(0, key, NULL);
}

static void read_setup(setup *s, char *words)
{
    *s = (setup){.o = TOKMAP_INIT(tokmap_loader_options)};
    for (char *word; (word = strsep(&words, " "));) {
        char *key = strsep(&word, "=");
        require(word != NULL, key, NULL);
        if (strcmp(key, "source") == 0)
            read_source(s, word);
        else if (strcmp(key, "list") == 0)
            read_list(s, word);
        else if (strcmp(key, "order") == 0)
            read_order(s, word);
        else if (strcmp(key, "phase") == 0)
            read_phase(s, word);
        else if (strcmp(key, "skip") == 0)
            read_skip(s, word);
        else
            read_number(s, key, strtoull(word, NULL, 10));
    }
    s->o.sources = s->sources;
    s->o.phases = s->phases;
    s->o.source_stride = sizeof *s->sources;
    s->o.phase_stride = sizeof *s->phases;
    s->o.row_stride = sizeof(tokmap_row);
    s->o.skips = s->skips;
    s->o.skip_stride = sizeof *s->skips;
}

static void close_setup(const setup *s)
{
    for (uint32_t k = 0; k < s->o.n_sources; k++) {
        free((void *)(uintptr_t)s->sources[k].window_list);
        for (uint32_t i = 0; i < s->sources[k].n_datasets; i++) {
            free((void *)(uintptr_t)s->lists[k][i].documents);
            tokmap_view_close(s->views[k][i]);
            tokmap_dataset_close(s->datasets[k][i]);
        }
    }
}

static tokmap_loader *open_loader(const setup *s, uint32_t rank)
{
    tokmap_loader_options o = s->o;
    tokmap_loader *l;
    tokmap_error err;
    o.rank = rank;
    require(!tokmap_loader_open(&l, &o, &err), "open", &err);
    return l;
}

static FILE *open_state(const char *name, const char *mode)
{
    char path[300];
    snprintf(path, sizeof path, "states/%s", name);
    FILE *file = fopen(path, mode);
    require(file != NULL, path, NULL);
    return file;
}

static uint64_t hash_parts(const tokmap_row *row, uint32_t length)
{
    XXH3_state_t *state = XXH3_createState();
    require(state && XXH3_64bits_reset(state) == XXH_OK, "no memory", NULL);
    XXH3_64bits_update(state, row->cu_seqlens, 4 * ((size_t)row->n_documents + 1));
    XXH3_64bits_update(state, row->position_ids, 4 * (size_t)length);
    XXH3_64bits_update(state, row->document_ids, 4 * (size_t)length);
    XXH3_64bits_update(state, row->loss_mask, length);
    const uint64_t hash = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return hash;
}

/* The ids of a row of pieces, with 0 between them. */
static uint64_t hash_pieces(const tokmap_row *row)
{
    uint8_t *ids = calloc(row->n_tokens, row->token_bytes);
    require(ids != NULL, "no memory", NULL);
    for (size_t k = 0; k < row->n_pieces; k++) {
        const tokmap_piece *p = &row->pieces[k];
        memcpy(ids + (size_t)p->place * row->token_bytes, p->tokens,
               (size_t)p->n_tokens * row->token_bytes);
    }
    const uint64_t hash = hash_ids(ids, row->n_tokens, row->token_bytes);
    free(ids);
    return hash;
}

static void show_row(const setup *s, const tokmap_row *row)
{
    printf(" row %" PRIu64 ": source %" PRIu32 " dataset %" PRIu32 " epoch %" PRIu64
           " window %" PRIu64 " first %" PRIu64 ", %" PRIu32 " tokens, xxh3 %016" PRIx64,
           row->sample, row->source, row->dataset, row->epoch, row->window, row->first_token,
           row->n_tokens,
           row->pieces ? hash_pieces(row) : hash_ids(row->tokens, row->n_tokens, row->token_bytes));
    if (s->o.row_parts)
        printf(", parts %016" PRIx64, hash_parts(row, s->o.sequence_length));
    putchar('\n');
}

/* Where samples far away come from. */
static void show_far(tokmap_loader *l, uint64_t n_samples)
{
    static const uint64_t far[] = {1000, 1000000, UINT64_C(1000000000000)};
    for (size_t i = 0; i < sizeof far / sizeof *far && far[i] < n_samples; i++) {
        tokmap_sample s = TOKMAP_INIT(tokmap_sample);
        tokmap_error err;
        require(!tokmap_loader_locate(l, far[i], &s, &err), "locate", &err);
        printf(" sample %" PRIu64 ": source %" PRIu32 " dataset %" PRIu32 " epoch %" PRIu64
               " window %" PRIu64 " first %" PRIu64 ", %" PRIu32 " tokens\n",
               far[i], s.source, s.dataset, s.epoch, s.window, s.first_token, s.n_tokens);
    }
}

static void show_steps(const setup *s, const uint8_t *state, uint32_t rank)
{
    tokmap_loader *l = open_loader(s, rank);
    tokmap_batch batch = TOKMAP_INIT(tokmap_batch);
    tokmap_loader_info info = TOKMAP_INIT(tokmap_loader_info);
    uint8_t after[TOKMAP_STATE_BYTES];
    tokmap_error err;
    require(!tokmap_loader_restore(l, state, &err), "restore", &err);
    require(!tokmap_loader_get_info(l, &info), "info", NULL);
    if (rank == 0)
        printf(" at %" PRIu64 " of %" PRIu64 "\n", tokmap_loader_position(l), info.n_samples);
    for (int step = 0; step < STEPS; step++) {
        require(!tokmap_loader_next(l, &batch, &err), "next", &err);
        for (uint32_t i = 0; i < batch.n_rows; i++)
            show_row(s, &batch.rows[i]);
    }
    require(!tokmap_loader_save(l, after, &err), "save", &err);
    fputs(" state", stdout);
    for (size_t i = 0; i < sizeof after; i++)
        printf("%s%02x", i % 32 ? "" : " ", after[i]);
    putchar('\n');
    if (rank == 0)
        show_far(l, info.n_samples);
    tokmap_loader_close(l);
}

static void show_loader(char *words)
{
    setup s;
    uint8_t state[TOKMAP_STATE_BYTES];
    const char *name = strsep(&words, " ");
    FILE *file = open_state(name, "rb");
    require(fread(state, 1, sizeof state, file) == sizeof state, "state", NULL);
    fclose(file);
    read_setup(&s, words);
    printf("loader %s\n", name);
    for (uint32_t rank = 0; rank < s.o.n_ranks; rank++)
        show_steps(&s, state, rank);
    close_setup(&s);
}

/* Steps to the sample at which the state is saved, as a training run does. */
static void save_state(char *words)
{
    setup s;
    uint8_t state[TOKMAP_STATE_BYTES];
    tokmap_error err;
    tokmap_batch batch = TOKMAP_INIT(tokmap_batch);
    const char *name = strsep(&words, " ");
    read_setup(&s, words);
    tokmap_loader *l = open_loader(&s, 0);
    while (tokmap_loader_position(l) < s.next_sample)
        require(!tokmap_loader_next(l, &batch, &err), "next", &err);
    require(tokmap_loader_position(l) == s.next_sample, "next is between two steps", NULL);
    require(!tokmap_loader_save(l, state, &err), "save", &err);
    FILE *file = open_state(name, "wb");
    require(fwrite(state, 1, sizeof state, file) == sizeof state && !fclose(file), name, NULL);
    tokmap_loader_close(l);
    close_setup(&s);
}

int main(void)
{
    static char line[4096];
    while (fgets(line, sizeof line, stdin)) {
        char *rest = line;
        line[strcspn(line, "\n")] = '\0';
        const char *verb = strsep(&rest, " ");
        require(rest != NULL, "a line is a verb, a name and words", NULL);
        if (strcmp(verb, "dataset") == 0)
            show_dataset(rest);
        else if (strcmp(verb, "loader") == 0)
            show_loader(rest);
        else if (strcmp(verb, "save") == 0)
            save_state(rest);
        else
            require(0, verb, NULL);
    }
    return 0;
}
