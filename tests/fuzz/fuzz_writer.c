/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_writer.c - any bytes as calls of the writer, in a folder of its own: each call answers
 * as a naive model says, and a finished dataset holds what the model holds. */
#include "fuzz/fuzz.h"

#include <inttypes.h>

#include "support/bad_days.h"

enum {
    MAX_TOKENS = 1200000, /* more than two blocks of 1 MiB, even of u16 */
    MAX_DOCUMENTS = 5000,
    MAX_INPUTS = 64,
    MAX_LARGE = 2 /* appends of half a block and more in one input */
};

typedef struct model_input {
    uint64_t end_document, end_token, input_bytes, input_checksum;
    size_t name_bytes;
    char name[256];
} model_input;

/* A value: the number itself, a quarter of it as a double, or its digits. */
typedef struct model_cell {
    tokmap_value_type type;
    int64_t number;
} model_cell;

/* What the values of a column have been. */
typedef struct model_column {
    bool strings, integers, reals, inexact;
} model_column;

/* What a dataset should hold. */
typedef struct model {
    uint64_t vocab_size;
    uint32_t ids[MAX_TOKENS];
    uint64_t n_tokens;
    uint64_t ends[MAX_DOCUMENTS];
    uint64_t n_documents;
    model_input inputs[MAX_INPUTS];
    uint64_t n_inputs;
    uint32_t columns;      /* bit 0: there is a column "a", bit 1: "b" */
    bool columns_are_said; /* by a call */
    model_column state[2];
    model_cell cells[MAX_DOCUMENTS][2];
    char metadata[64];
    size_t metadata_bytes;
    bool borderless_input;
} model;

typedef struct play {
    const uint8_t *at, *end; /* of the input */
    tokmap_writer *w;
    tokmap_status failed; /* what every call but close repeats */
    int n_large;
    bool has_previous; /* a finished dataset, for append_dataset and join */
    bool joins;        /* the writer makes a joined dataset */
    bool has_row;      /* values for the next document */
    model_cell row[2];
} play;

static model now, previous;
static char folder[64], prefix[80], previous_prefix[80];

static uint8_t next_byte(play *p)
{
    return p->at < p->end ? *p->at++ : 0;
}

static uint32_t token_bytes(const model *m)
{
    return m->vocab_size <= 65536 ? 2 : 4;
}

static uint64_t last_end(const model *m)
{
    return m->n_documents == 0 ? 0 : m->ends[m->n_documents - 1];
}

static uint64_t covered_documents(const model *m)
{
    return m->n_inputs == 0 ? 0 : m->inputs[m->n_inputs - 1].end_document;
}

/* ---- Folder ---- */

static void remove_folder(void)
{
    remove_dataset(prefix);
    remove_dataset(previous_prefix);
    rmdir(folder);
}

static void begin_folder(void)
{
    if (folder[0])
        return;
    make_folder(folder);
    snprintf(prefix, sizeof prefix, "%s/p", folder);
    snprintf(previous_prefix, sizeof previous_prefix, "%s/previous", folder);
    atexit(remove_folder);
}

/* ---- Values ---- */

/* 2^53 + 1 and more are not exact as doubles. */
static tokmap_value value_of(const model_cell *c, char text[24])
{
    const int n = snprintf(text, 24, "%" PRId64, c->number);
    return (tokmap_value){.type = c->type,
                          .integer = c->number,
                          .real = (double)c->number / 4,
                          .text = text,
                          .text_bytes = c->number == 0 ? 0 : (size_t)n};
}

static model_cell next_cell(play *p)
{
    const uint8_t byte = next_byte(p), sort = byte & 7;
    const tokmap_value_type type = sort < 2    ? TOKMAP_VALUE_NULL
                                   : sort < 5  ? TOKMAP_VALUE_INT64
                                   : sort == 5 ? TOKMAP_VALUE_FLOAT64
                                               : TOKMAP_VALUE_STRING;
    const int64_t number = byte >> 3 == 31 ? (INT64_C(1) << 53) + 1 : (byte >> 3) - 10;
    return (model_cell){type, number};
}

/* False if the column does not take the value. */
static bool take_cell(model_column *c, const model_cell *cell)
{
    c->strings |= cell->type == TOKMAP_VALUE_STRING;
    c->integers |= cell->type == TOKMAP_VALUE_INT64;
    c->reals |= cell->type == TOKMAP_VALUE_FLOAT64;
    c->inexact |= cell->type == TOKMAP_VALUE_INT64 && cell->number > INT64_C(1) << 53;
    return !(c->strings && (c->integers || c->reals)) && !(c->reals && c->inexact);
}

static tokmap_value_type type_of(const model_column *c)
{
    return c->strings    ? TOKMAP_VALUE_STRING
           : c->reals    ? TOKMAP_VALUE_FLOAT64
           : c->integers ? TOKMAP_VALUE_INT64
                         : TOKMAP_VALUE_NULL;
}

/* ---- Reading back ---- */

static void compare_tokens(const tokmap_dataset *ds, const model *m)
{
    enum {
        PIECE = 10007
    };
    static uint32_t piece[PIECE];
    for (uint64_t at = 0; at < m->n_tokens; at += PIECE) {
        const uint64_t n = m->n_tokens - at < PIECE ? m->n_tokens - at : PIECE;
        require(tokmap_dataset_read(ds, at, n, piece, NULL) == TOKMAP_OK);
        for (uint64_t i = 0; i < n; i++)
            require((token_bytes(m) == 2 ? ((const uint16_t *)piece)[i] : piece[i]) ==
                    m->ids[at + i]);
    }
}

static void compare_documents(const tokmap_dataset *ds, const model *m)
{
    uint64_t first = 0;
    for (uint64_t i = 0; i < m->n_documents; i++) {
        tokmap_document d;
        require(tokmap_dataset_document(ds, i, &d) == TOKMAP_OK);
        require(d.index == i && d.first_token == first && first + d.n_tokens == m->ends[i]);
        if (d.n_tokens > 0) {
            require(tokmap_dataset_find_document(ds, m->ends[i] - 1, &d) == TOKMAP_OK);
            require(d.index == i && d.first_token == first);
        }
        first = m->ends[i];
    }
}

static void compare_inputs(const tokmap_dataset *ds, const model *m)
{
    for (uint64_t i = 0; i < m->n_inputs; i++) {
        const model_input *wanted = &m->inputs[i];
        tokmap_input_info input = TOKMAP_INIT(tokmap_input_info);
        require(tokmap_dataset_get_input(ds, i, &input) == TOKMAP_OK);
        require(input.first_document + input.n_documents == wanted->end_document &&
                input.first_token + input.n_tokens == wanted->end_token &&
                input.input_bytes == wanted->input_bytes &&
                input.input_checksum == wanted->input_checksum);
        require(input.name_bytes == wanted->name_bytes &&
                memcmp(input.name, wanted->name, input.name_bytes) == 0);
    }
}

static void compare_column(const tokmap_dataset *ds, const model *m, uint32_t in_ds, int column)
{
    tokmap_meta_column info = {.struct_size = sizeof info};
    require(tokmap_dataset_get_meta_column(ds, in_ds, &info) == TOKMAP_OK);
    require(info.name_bytes == 1 && info.name[0] == 'a' + column);
    require(info.type == type_of(&m->state[column]));
    for (uint64_t d = 0; d < m->n_documents; d++) {
        const model_cell *c = &m->cells[d][column];
        char text[24];
        const tokmap_value wanted = value_of(c, text);
        tokmap_value is;
        require(tokmap_dataset_get_meta(ds, in_ds, d, &is) == TOKMAP_OK);
        require(is.type == (c->type == TOKMAP_VALUE_NULL ? c->type : info.type));
        if (is.type == TOKMAP_VALUE_INT64)
            require(is.integer == wanted.integer);
        if (is.type == TOKMAP_VALUE_FLOAT64)
            require(is.real ==
                    (c->type == TOKMAP_VALUE_INT64 ? (double)wanted.integer : wanted.real));
        if (is.type == TOKMAP_VALUE_STRING)
            require(is.text_bytes == wanted.text_bytes &&
                    memcmp(is.text, wanted.text, is.text_bytes) == 0);
    }
}

static void compare_values(const tokmap_dataset *ds, const model *m)
{
    uint32_t n = 0;
    for (int column = 0; column < 2; column++)
        if (m->columns >> column & 1)
            compare_column(ds, m, n++, column);
    tokmap_meta_column info = {.struct_size = sizeof info};
    require(tokmap_dataset_get_meta_column(ds, n, &info) == TOKMAP_ERR_ARGUMENT);
}

static void read_back(const char *path, const model *m)
{
    tokmap_dataset *ds = NULL;
    const tokmap_verify_options one = {.struct_size = sizeof one, .n_threads = 1};
    require(tokmap_dataset_open(&ds, path, NULL) == TOKMAP_OK);
    tokmap_dataset_info info = {.struct_size = sizeof info};
    tokmap_dataset_get_info(ds, &info);
    uint32_t largest = 0;
    for (uint64_t i = 0; i < m->n_tokens; i++)
        largest = m->ids[i] > largest ? m->ids[i] : largest;
    require(info.n_tokens == m->n_tokens && info.n_documents == m->n_documents &&
            info.n_inputs == m->n_inputs && info.vocab_size == m->vocab_size &&
            info.token_bytes == token_bytes(m) && info.largest_id == largest);
    compare_tokens(ds, m);
    compare_documents(ds, m);
    compare_inputs(ds, m);
    compare_values(ds, m);
    const char *json;
    size_t n_bytes;
    json = tokmap_dataset_metadata(ds, &n_bytes);
    require(n_bytes == m->metadata_bytes && memcmp(json, m->metadata, n_bytes) == 0);
    require(tokmap_dataset_verify(ds, &one, NULL, NULL) == TOKMAP_OK);
    tokmap_dataset_close(ds);
}

/* ---- Calls ---- */

/* A call must have come to `wanted`, unless an earlier one failed. */
static bool agreed(play *p, tokmap_status is, tokmap_status wanted, const tokmap_error *err)
{
    require(is == (p->failed ? p->failed : wanted));
    require(is >= 0 || (err->status == is && err->text[0]));
    p->failed = is < 0 ? is : p->failed;
    return is == TOKMAP_OK;
}

static void open_writer(play *p)
{
    static const uint64_t vocabularies[] = {1, 300, 65536, 65537, 1ull << 31};
    memset(&now, 0, offsetof(model, ids));
    const uint8_t byte = next_byte(p);
    now.vocab_size = vocabularies[byte % 5];
    p->joins = byte >= 200;
    now.n_tokens = now.n_documents = now.n_inputs = 0;
    now.borderless_input = now.columns_are_said = p->has_row = false;
    now.columns = 0;
    memset(now.state, 0, sizeof now.state);
    now.metadata_bytes = 2;
    strcpy(now.metadata, "{}");
    const tokmap_writer_options options = {
        .struct_size = sizeof options, .vocab_size = now.vocab_size, .eod_id = TOKMAP_NO_ID};
    p->failed = TOKMAP_OK;
    require((p->joins ? tokmap_writer_open_joined(&p->w, prefix, &options, NULL)
                      : tokmap_writer_open(&p->w, prefix, &options, NULL)) == TOKMAP_OK);
}

static void append(play *p, uint64_t n, bool bad)
{
    tokmap_error err;
    if (n > MAX_TOKENS - now.n_tokens)
        return;
    uint32_t *ids = now.ids + now.n_tokens;
    const uint32_t mixer = next_byte(p) * 0x9E3779B1u + 1;
    for (uint64_t i = 0; i < n; i++)
        ids[i] = (uint32_t)((i + mixer) * mixer % now.vocab_size);
    bad = bad && n > 0;
    if (bad)
        ids[mixer % n] = (uint32_t)now.vocab_size + (mixer & 1 ? 0 : 1000);
    if (agreed(p, tokmap_writer_append(p->w, ids, n, &err),
               bad || p->joins ? TOKMAP_ERR_ARGUMENT : TOKMAP_OK, &err))
        now.n_tokens += n;
}

static void end_documents(play *p, int n)
{
    tokmap_error err;
    for (int i = 0; i < n && now.n_documents < MAX_DOCUMENTS; i++)
        if (agreed(p, tokmap_writer_end_document(p->w, &err),
                   p->joins ? TOKMAP_ERR_ARGUMENT : TOKMAP_OK, &err)) {
            for (int column = 0; column < 2; column++)
                now.cells[now.n_documents][column] =
                    p->has_row ? p->row[column] : (model_cell){TOKMAP_VALUE_NULL, 0};
            p->has_row = false;
            now.ends[now.n_documents++] = now.n_tokens;
        }
}

/* Some documents at once, of which the first one may have begun. */
static void append_documents(play *p)
{
    tokmap_error err;
    uint64_t lengths[8], n_tokens = 0;
    uint16_t narrow[8 * 32];
    const uint32_t n = next_byte(p) % 9,
                   vocab = now.vocab_size > 999 ? 999 : (uint32_t)now.vocab_size;
    for (uint32_t i = 0; i < n; i++)
        n_tokens += lengths[i] = next_byte(p) % 32;
    if (n_tokens > MAX_TOKENS - now.n_tokens || n > MAX_DOCUMENTS - now.n_documents)
        return;
    uint32_t *ids = now.ids + now.n_tokens;
    for (uint64_t i = 0; i < n_tokens; i++)
        narrow[i] = (uint16_t)(ids[i] = (uint32_t)(now.n_tokens + i) * 7 % vocab);
    const bool bad = n > 0 && next_byte(p) < 16;
    if (!agreed(p,
                tokmap_writer_append_documents(p->w, token_bytes(&now) == 2 ? (void *)narrow : ids,
                                               n_tokens + bad, lengths, n, &err),
                bad || p->joins ? TOKMAP_ERR_ARGUMENT : TOKMAP_OK, &err))
        return;
    for (uint32_t i = 0; i < n; i++) {
        for (int column = 0; column < 2; column++)
            now.cells[now.n_documents][column] =
                p->has_row ? p->row[column] : (model_cell){TOKMAP_VALUE_NULL, 0};
        p->has_row = false;
        now.ends[now.n_documents++] = now.n_tokens += lengths[i];
    }
}

static void set_columns(play *p)
{
    tokmap_error err;
    const char *names[2];
    uint32_t n = 0;
    const uint32_t columns = next_byte(p) & 3;
    if (columns & 1)
        names[n++] = "a";
    if (columns & 2)
        names[n++] = "b";
    const bool bad = now.columns_are_said || (columns && now.n_documents > 0);
    if (agreed(p, tokmap_writer_set_meta_columns(p->w, names, n, &err),
               bad ? TOKMAP_ERR_ARGUMENT : TOKMAP_OK, &err)) {
        now.columns = columns;
        now.columns_are_said = true;
    }
}

static void add_values(play *p)
{
    tokmap_error err;
    tokmap_value values[3] = {{.type = TOKMAP_VALUE_NULL}};
    char texts[2][24];
    model_cell row[2] = {{TOKMAP_VALUE_NULL, 0}, {TOKMAP_VALUE_NULL, 0}};
    model_column state[2] = {now.state[0], now.state[1]};
    uint32_t n = 0;
    bool fits = true;
    for (int column = 0; column < 2; column++) {
        if (!(now.columns >> column & 1))
            continue;
        row[column] = next_cell(p);
        values[n++] = value_of(&row[column], texts[column]);
        fits = take_cell(&state[column], &row[column]) && fits;
    }
    const uint32_t given = next_byte(p) == 255 ? n + 1 : n;
    const bool bad = given != n || (n > 0 && (p->has_row || !fits));
    if (agreed(p, tokmap_writer_add_meta(p->w, values, given, &err),
               bad ? TOKMAP_ERR_ARGUMENT : TOKMAP_OK, &err) &&
        n > 0) {
        memcpy(p->row, row, sizeof row);
        memcpy(now.state, state, sizeof state);
        p->has_row = true;
    }
}

static void end_input(play *p)
{
    tokmap_error err;
    if (now.n_inputs == MAX_INPUTS)
        return;
    model_input *input = &now.inputs[now.n_inputs];
    input->name_bytes = next_byte(p);
    memset(input->name, 'a' + next_byte(p) % 26, input->name_bytes);
    input->name[input->name_bytes] = 0;
    input->end_document = now.n_documents;
    input->end_token = now.n_documents > 0 ? last_end(&now) : now.n_tokens;
    input->input_bytes = next_byte(p);
    input->input_checksum = input->input_bytes * UINT64_C(0x0101010101010101);
    const bool within = now.n_documents > 0 && last_end(&now) != now.n_tokens;
    if (!agreed(p,
                tokmap_writer_end_input(p->w, input->name, input->input_bytes,
                                        input->input_checksum, &err),
                within || p->joins ? TOKMAP_ERR_ARGUMENT : TOKMAP_OK, &err))
        return;
    now.n_inputs++;
    now.borderless_input |= now.n_documents == 0 && now.n_tokens > 0;
}

static void set_metadata(play *p)
{
    tokmap_error err;
    char json[64];
    const int n = snprintf(json, sizeof json, "{\"a\": %d}", next_byte(p));
    if (agreed(p, tokmap_writer_set_metadata(p->w, json, (size_t)n, &err), TOKMAP_OK, &err)) {
        memcpy(now.metadata, json, (size_t)n);
        now.metadata_bytes = (size_t)n;
    }
}

/* Whether the values of the previous dataset can follow. */
static bool values_fit(model_column state[2])
{
    const bool takes = now.n_documents == 0 && !now.columns_are_said;
    if (now.columns != previous.columns && !takes)
        return false;
    for (int column = 0; column < 2; column++) {
        state[column] = now.state[column];
        for (uint64_t d = 0; d < previous.n_documents; d++)
            if (!take_cell(&state[column], &previous.cells[d][column]))
                return false;
    }
    return true;
}

static tokmap_status append_refusal(const play *p)
{
    model_column state[2];
    uint32_t largest = 0;
    for (uint64_t i = 0; i < previous.n_tokens; i++)
        largest = previous.ids[i] > largest ? previous.ids[i] : largest;
    if (token_bytes(&now) != token_bytes(&previous) ||
        (previous.n_tokens > 0 && (largest >= now.vocab_size || previous.n_documents == 0)))
        return TOKMAP_ERR_MISMATCH;
    if (last_end(&now) != now.n_tokens || p->has_row)
        return TOKMAP_ERR_ARGUMENT;
    return values_fit(state) ? TOKMAP_OK : TOKMAP_ERR_MISMATCH;
}

/* An entry for documents that have no input, so that those appended keep their own. */
static void model_unnamed_input(uint64_t end_document, uint64_t end_token)
{
    now.inputs[now.n_inputs++] =
        (model_input){.end_document = end_document, .end_token = end_token};
}

/* The first input of the previous dataset. */
static model_input first_input(void)
{
    const model_input unnamed = {.end_document = previous.n_documents,
                                 .end_token = previous.n_tokens};
    return previous.n_inputs ? previous.inputs[0] : unnamed;
}

static tokmap_status continue_refusal(void)
{
    const model_input first = first_input();
    if (now.n_inputs == 0)
        return TOKMAP_ERR_ARGUMENT;
    const model_input *last = &now.inputs[now.n_inputs - 1];
    return last->name_bytes == first.name_bytes &&
                   memcmp(last->name, first.name, first.name_bytes) == 0
               ? TOKMAP_OK
               : TOKMAP_ERR_MISMATCH;
}

/* The input after number `last` becomes part of it. */
static void model_continue(uint64_t last)
{
    model_input *a = &now.inputs[last], *b = a + 1;
    a->end_document = b->end_document;
    a->end_token = b->end_token;
    a->input_bytes = a->input_bytes > b->input_bytes ? a->input_bytes : b->input_bytes;
    a->input_checksum = 0;
    memmove(b, b + 1, (--now.n_inputs - last - 1) * sizeof *b);
}

static void model_append(void)
{
    const uint64_t first_document = now.n_documents, first_token = now.n_tokens;
    model_column state[2];
    require(values_fit(state));
    memcpy(now.state, state, sizeof state);
    memcpy(now.cells[first_document], previous.cells[0],
           previous.n_documents * sizeof now.cells[0]);
    now.columns = previous.columns;
    now.columns_are_said = true;
    if (covered_documents(&now) < first_document)
        model_unnamed_input(first_document, first_token);
    memcpy(now.ids + first_token, previous.ids, previous.n_tokens * sizeof previous.ids[0]);
    now.n_tokens += previous.n_tokens;
    for (uint64_t i = 0; i < previous.n_documents; i++)
        now.ends[now.n_documents++] = first_token + previous.ends[i];
    for (uint64_t i = 0; i < previous.n_inputs; i++) {
        model_input *input = &now.inputs[now.n_inputs++];
        *input = previous.inputs[i];
        input->end_document += first_document;
        input->end_token += first_token;
    }
    if (previous.n_inputs == 0 && previous.n_documents > 0)
        model_unnamed_input(now.n_documents, now.n_tokens);
}

static void append_previous(play *p)
{
    tokmap_error err;
    if (!p->has_previous || now.n_tokens + previous.n_tokens > MAX_TOKENS ||
        now.n_documents + previous.n_documents > MAX_DOCUMENTS ||
        now.n_inputs + previous.n_inputs + 2 > MAX_INPUTS)
        return;
    tokmap_dataset *ds = NULL;
    tokmap_join_options options = {.struct_size = sizeof options};
    const tokmap_status refusal = append_refusal(p);
    const uint64_t n_inputs = now.n_inputs;
    options.continues_input = p->joins && next_byte(p) >= 128;
    const bool continues = options.continues_input && previous.n_inputs + previous.n_documents > 0;
    require((p->joins ? tokmap_dataset_open_index(&ds, previous_prefix, NULL)
                      : tokmap_dataset_open(&ds, previous_prefix, NULL)) == TOKMAP_OK);
    if (agreed(p,
               p->joins ? tokmap_writer_join(p->w, ds, &options, &err)
                        : tokmap_writer_append_dataset(p->w, ds, &err),
               refusal || !continues ? refusal : continue_refusal(), &err)) {
        model_append();
        if (continues)
            model_continue(n_inputs - 1);
    }
    tokmap_dataset_close(ds);
}

static tokmap_status finish_refusal(const play *p)
{
    const model_input *last = now.n_inputs ? &now.inputs[now.n_inputs - 1] : NULL;
    if (now.n_documents > 0 && (last_end(&now) != now.n_tokens || now.borderless_input))
        return TOKMAP_ERR_ARGUMENT;
    if (p->has_row)
        return TOKMAP_ERR_ARGUMENT;
    if (last && (last->end_document != now.n_documents || last->end_token != now.n_tokens))
        return TOKMAP_ERR_ARGUMENT;
    return TOKMAP_OK;
}

static void close_writer(play *p)
{
    tokmap_writer_close(p->w);
    p->w = NULL;
    require(!file_is_there(with_suffix(prefix, ".bin.partial")) &&
            !file_is_there(with_suffix(prefix, ".tmi.partial")) &&
            !file_is_there(with_suffix(prefix, ".tmv.partial")));
}

static void finish(play *p)
{
    tokmap_error err;
    const bool finished = agreed(p, tokmap_writer_finish(p->w, &err), finish_refusal(p), &err);
    close_writer(p);
    require(file_is_there(with_suffix(prefix, ".bin")) == (finished && !p->joins));
    require(file_is_there(with_suffix(prefix, ".tmi")) == finished);
    if (finished) {
        read_back(prefix, &now);
        /* A joined one goes on using the tokens of the previous. */
        require(p->joins ||
                rename(with_suffix(prefix, ".bin"), with_suffix(previous_prefix, ".bin")) == 0);
        require(rename(with_suffix(prefix, ".tmi"), with_suffix(previous_prefix, ".tmi")) == 0);
        memcpy(&previous, &now, offsetof(model, ids) + now.n_tokens * sizeof now.ids[0]);
        memcpy(&previous.n_tokens, &now.n_tokens, sizeof now - offsetof(model, n_tokens));
        p->has_previous = true;
    }
}

static void act(play *p)
{
    switch (next_byte(p) % 13) {
    case 0:
        append(p, next_byte(p), false);
        break;
    case 1:
        end_documents(p, 1);
        break;
    case 2:
        end_input(p);
        break;
    case 3:
        set_metadata(p);
        break;
    case 4:
        finish(p);
        open_writer(p);
        break;
    case 5:
        append_previous(p);
        break;
    case 6:
        close_writer(p);
        require(!file_is_there(with_suffix(prefix, ".bin")) &&
                !file_is_there(with_suffix(prefix, ".tmi")));
        open_writer(p);
        break;
    case 7: {
        const uint8_t n_ids = next_byte(p);
        append(p, n_ids, next_byte(p) < 16);
        break;
    }
    case 8:
        end_documents(p, next_byte(p));
        break;
    case 9:
        set_columns(p);
        break;
    case 10:
        add_values(p);
        break;
    case 11:
        append_documents(p);
        break;
    default:
        if (next_byte(p) >= 250 && p->n_large++ < MAX_LARGE) /* seldom: it takes its time */
            append(p, 262000 + 700 * (uint64_t)next_byte(p), false);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    play p = {.at = data, .end = data + n_bytes};
    begin_folder();
    open_writer(&p);
    while (p.at < p.end)
        act(&p);
    finish(&p);
    unlink(with_suffix(previous_prefix, ".bin"));
    unlink(with_suffix(previous_prefix, ".tmi"));
    return 0;
}
