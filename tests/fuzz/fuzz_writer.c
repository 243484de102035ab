/* fuzz_writer.c - any bytes as calls of the writer, in a folder of its own: each call answers
 * as a naive model says, and a finished dataset holds what the model holds. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tokmap_writer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

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

/* What a dataset should hold. */
typedef struct model {
    uint64_t vocab_size;
    uint32_t ids[MAX_TOKENS];
    uint64_t n_tokens;
    uint64_t ends[MAX_DOCUMENTS];
    uint64_t n_documents;
    model_input inputs[MAX_INPUTS];
    uint64_t n_inputs;
    char metadata[64];
    size_t metadata_bytes;
    bool borderless_input;
} model;

typedef struct play {
    const uint8_t *at, *end; /* of the input */
    tokmap_writer *w;
    tokmap_status failed; /* what every call but close repeats */
    int n_large;
    bool has_previous; /* a finished dataset, for append_dataset */
} play;

static model now, previous;
static char folder[64], prefix[80], previous_prefix[80];

static void require(bool condition)
{
    if (!condition)
        abort();
}

static uint8_t next_byte(play *p)
{
    return p->at < p->end ? *p->at++ : 0;
}

static const char *path_of(const char *of, const char *suffix)
{
    static char paths[4][128];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s%s", of, suffix);
    return path;
}

static bool there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
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
    static const char *const suffixes[] = {".bin",         ".tmi",          ".bin.partial",
                                           ".tmi.partial", ".bin.replaced", ".tmi.replaced"};
    for (int i = 0; i < 6; i++) {
        unlink(path_of(prefix, suffixes[i]));
        unlink(path_of(previous_prefix, suffixes[i]));
    }
    rmdir(folder);
}

static void make_folder(void)
{
    if (folder[0])
        return;
    snprintf(folder, sizeof folder, "%s/tokmap_fuzz_XXXXXX",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    require(mkdtemp(folder) != NULL);
    snprintf(prefix, sizeof prefix, "%s/p", folder);
    snprintf(previous_prefix, sizeof previous_prefix, "%s/previous", folder);
    atexit(remove_folder);
}

/* ---- Reading back ---- */

static void compare_tokens(const tokmap_dataset *ds, const model *m)
{
    const void *tokens;
    require(tokmap_dataset_tokens(ds, 0, m->n_tokens, &tokens) == TOKMAP_OK);
    for (uint64_t i = 0; i < m->n_tokens; i++)
        require(token_bytes(m) == 2 ? ((const uint16_t *)tokens)[i] == m->ids[i]
                                    : ((const uint32_t *)tokens)[i] == m->ids[i]);
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
    now.vocab_size = vocabularies[next_byte(p) % 5];
    now.n_tokens = now.n_documents = now.n_inputs = 0;
    now.borderless_input = false;
    now.metadata_bytes = 2;
    strcpy(now.metadata, "{}");
    const tokmap_writer_options options = {
        .struct_size = sizeof options, .vocab_size = now.vocab_size, .eod_id = TOKMAP_NO_ID};
    p->failed = TOKMAP_OK;
    require(tokmap_writer_open(&p->w, prefix, &options, NULL) == TOKMAP_OK);
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
    if (agreed(p, tokmap_writer_append(p->w, ids, n, &err), bad ? TOKMAP_ERR_ARGUMENT : TOKMAP_OK,
               &err))
        now.n_tokens += n;
}

static void end_documents(play *p, int n)
{
    tokmap_error err;
    for (int i = 0; i < n && now.n_documents < MAX_DOCUMENTS; i++)
        if (agreed(p, tokmap_writer_end_document(p->w, &err), TOKMAP_OK, &err))
            now.ends[now.n_documents++] = now.n_tokens;
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
                within ? TOKMAP_ERR_ARGUMENT : TOKMAP_OK, &err))
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

static tokmap_status append_refusal(void)
{
    uint32_t largest = 0;
    for (uint64_t i = 0; i < previous.n_tokens; i++)
        largest = previous.ids[i] > largest ? previous.ids[i] : largest;
    if (token_bytes(&now) != token_bytes(&previous) ||
        (previous.n_tokens > 0 && (largest >= now.vocab_size || previous.n_documents == 0)))
        return TOKMAP_ERR_MISMATCH;
    return last_end(&now) == now.n_tokens ? TOKMAP_OK : TOKMAP_ERR_ARGUMENT;
}

/* An entry for documents that have no input, so that those appended keep their own. */
static void model_unnamed_input(uint64_t end_document, uint64_t end_token)
{
    now.inputs[now.n_inputs++] =
        (model_input){.end_document = end_document, .end_token = end_token};
}

static void model_append(void)
{
    const uint64_t first_document = now.n_documents, first_token = now.n_tokens;
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
    if (previous.n_inputs == 0)
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
    require(tokmap_dataset_open(&ds, previous_prefix, NULL) == TOKMAP_OK);
    if (agreed(p, tokmap_writer_append_dataset(p->w, ds, &err), append_refusal(), &err))
        model_append();
    tokmap_dataset_close(ds);
}

static tokmap_status finish_refusal(void)
{
    const model_input *last = now.n_inputs ? &now.inputs[now.n_inputs - 1] : NULL;
    if (now.n_documents > 0 && (last_end(&now) != now.n_tokens || now.borderless_input))
        return TOKMAP_ERR_ARGUMENT;
    if (last && (last->end_document != now.n_documents || last->end_token != now.n_tokens))
        return TOKMAP_ERR_ARGUMENT;
    return TOKMAP_OK;
}

static void close_writer(play *p)
{
    tokmap_writer_close(p->w);
    p->w = NULL;
    require(!there(path_of(prefix, ".bin.partial")) && !there(path_of(prefix, ".tmi.partial")));
}

static void finish(play *p)
{
    tokmap_error err;
    const bool finished = agreed(p, tokmap_writer_finish(p->w, &err), finish_refusal(), &err);
    close_writer(p);
    require(there(path_of(prefix, ".bin")) == finished);
    require(there(path_of(prefix, ".tmi")) == finished);
    if (finished) {
        read_back(prefix, &now);
        require(rename(path_of(prefix, ".bin"), path_of(previous_prefix, ".bin")) == 0);
        require(rename(path_of(prefix, ".tmi"), path_of(previous_prefix, ".tmi")) == 0);
        memcpy(&previous, &now, offsetof(model, ids) + now.n_tokens * sizeof now.ids[0]);
        memcpy(&previous.n_tokens, &now.n_tokens, sizeof now - offsetof(model, n_tokens));
        p->has_previous = true;
    }
}

static void act(play *p)
{
    switch (next_byte(p) % 10) {
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
        require(!there(path_of(prefix, ".bin")) && !there(path_of(prefix, ".tmi")));
        open_writer(p);
        break;
    case 7:
        append(p, next_byte(p), next_byte(p) < 16);
        break;
    case 8:
        end_documents(p, next_byte(p));
        break;
    default:
        if (next_byte(p) >= 250 && p->n_large++ < MAX_LARGE) /* seldom: it takes its time */
            append(p, 262000 + 700 * (uint64_t)next_byte(p), false);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    play p = {.at = data, .end = data + n_bytes};
    make_folder();
    open_writer(&p);
    while (p.at < p.end)
        act(&p);
    finish(&p);
    unlink(path_of(previous_prefix, ".bin"));
    unlink(path_of(previous_prefix, ".tmi"));
    return 0;
}
