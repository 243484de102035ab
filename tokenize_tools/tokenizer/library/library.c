/* SPDX-License-Identifier: Apache-2.0 */
/* library.c - a tokenizer of libtokmap_tokenizer: open, what it is, decode; the memory of what
 * calls return. */
#include "tokenizer/library/library.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/base.h"
#include "base/error.h"
#include "base/options.h"
#include "system/platform_memory.h"
#include "tokenizer/model/bytes_tokenizer.h"
#include "tokenizer/file/stated_tokens.h"

_Static_assert(TOKMAP_NO_ID == MODEL_NO_ID, "one value for both");

const char *tokmap_tokenizer_version(void)
{
    return TOKMAP_VERSION_TEXT;
}

/* ---- The memory of results ---- */

/* glibc keeps smaller blocks, so that the next call gets the same pages. */
#define LARGE_BYTES ((size_t)32 << 20)

/* The header before the memory. */
typedef struct result_header {
    _Alignas(max_align_t) size_t mapped_bytes; /* 0: malloced */
} result_header;

void *result_memory_new(size_t n_bytes)
{
    if (n_bytes > SIZE_MAX / 2)
        return NULL;
    const size_t all_bytes = sizeof(result_header) + n_bytes;
    const bool large = all_bytes >= LARGE_BYTES;
    result_header *header = large ? tokmap_i_big_memory_new(all_bytes) : malloc(all_bytes);
    if (!header)
        return NULL;
    header->mapped_bytes = large ? all_bytes : 0;
    return header + 1;
}

void *result_memory_shrink(void *memory, size_t n_bytes)
{
    result_header *header = (result_header *)memory - 1;
    const size_t all_bytes = sizeof *header + n_bytes;
    if (header->mapped_bytes == 0) {
        result_header *smaller = realloc(header, all_bytes);
        return (smaller ? smaller : header) + 1; /* cppcheck-suppress memleak */
    }
    const size_t kept_bytes = round_up(all_bytes, TOKMAP_I_HUGE_PAGE_BYTES);
    if (kept_bytes < header->mapped_bytes) {
        tokmap_i_big_memory_free((uint8_t *)header + kept_bytes, header->mapped_bytes - kept_bytes);
        header->mapped_bytes = kept_bytes;
    }
    return memory;
}

void tokmap_memory_free(const void *memory)
{
    if (!memory)
        return;
    result_header *header = (result_header *)(uintptr_t)memory - 1;
    if (header->mapped_bytes > 0)
        tokmap_i_big_memory_free(header, header->mapped_bytes);
    else
        free(header);
}

void tokmap_encoding_free(tokmap_encoding *e)
{
    if (!e)
        return;
    tokmap_memory_free(e->ids);
    tokmap_memory_free(e->offsets);
    e->ids = NULL;
    e->n_ids = 0;
    e->offsets = NULL;
    if (e->struct_size < SIZE_UP_TO(tokmap_encoding, token_offsets))
        return; /* the caller's header is older */
    tokmap_memory_free(e->token_offsets);
    e->token_offsets = NULL;
}

/* ---- Structs of callers without macros ---- */

void tokmap_tokenizer_struct_init(void *out, size_t size)
{
    tokmap_i_init_struct(out, size, NULL, 0);
}

void tokmap_encode_options_init(tokmap_encode_options *out, size_t size)
{
    static const tokmap_encode_options full = TOKMAP_ENCODE_OPTIONS_INIT;
    tokmap_i_init_struct(out, size, &full, sizeof full);
}

/* ---- Errors ---- */

/* Renames the options of the command line, which the loaders name: in the library they have no
 * dashes. */
static void rename_options(char *text)
{
    static const struct {
        const char *option, *field;
    } names[] = {{"--pattern", "pattern"}, {"--specials-file", "specials_file"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t n_old = strlen(names[i].option), n_new = strlen(names[i].field);
        for (char *p = text; (p = strstr(p, names[i].option)) != NULL; p += n_new) {
            memcpy(p, names[i].field, n_new);
            memmove(p + n_new, p + n_old, strlen(p + n_old) + 1);
        }
    }
}

static tokmap_status fail_open(tokmap_error *err, failure *from, const char *path)
{
    if (from->status == ENOMEM)
        return FAIL_MEMORY(err);
    const size_t n_path = strlen(path);
    if (strncmp(from->text, path, n_path) == 0)
        rename_options(from->text + n_path);
    const tokmap_status status = from->status > 0 ? TOKMAP_ERR_IO : TOKMAP_ERR_UNSUPPORTED;
    FAIL_AT(err, status, from->place, "%s", from->text);
    if (err) {
        err->sys_errno = from->status; /* its text is already there */
        err->file_bytes = strncmp(err->text, path, n_path) == 0 ? (uint32_t)n_path : 0;
    }
    return status;
}

/* ---- The tokens around documents ---- */

typedef struct stated_role {
    const char *name, *job;
    uint32_t *id;
    char **reason;
} stated_role;

/* The only token that is stated, or the reason why there is none. false: out of memory. */
static bool find_stated(tokmap_tokenizer *t, const stated_role *role)
{
    stated_tokens tokens;
    failure err;
    char list[STATED_TOKENS_LIST_BYTES], reason[sizeof err.text] = "";
    *role->id = TOKMAP_NO_ID;
    if (!stated_tokens_find(&tokens, role->name, &t->file, &err)) {
        if (err.status == ENOMEM)
            return false;
        memcpy(reason, err.text, sizeof reason);
    } else if (tokens.n == 1) {
        *role->id = tokens.list[0].id;
        t->eod_guessed = t->eod_guessed || tokens.guessed;
        return true;
    } else if (tokens.n == 0) {
        snprintf(reason, sizeof reason, "the tokenizer %s %s token %s a document", t->file.name,
                 tokens.none ? "says that no" : "does not say which", role->job);
    } else {
        stated_tokens_list(&tokens, &t->file, list);
        snprintf(reason, sizeof reason,
                 "%s: more than one token may be the one that %s a document: %s", t->file.name,
                 role->job, list);
    }
    *role->reason = strdup(reason);
    return *role->reason != NULL;
}

/* ---- Kits: handed out without a lock ---- */

static void free_state(worker_state *state)
{
    if (!state)
        return;
    encoder_free(state->encoder);
    id_buffer_free(&state->ids);
    free(state->ranges);
    free(state->text);
    free(state);
}

/* The states that were used last are at the beginning. */
worker_state *tokmap_i_take_state(tokmap_tokenizer *t)
{
    for (size_t i = 0; i < MAX_KEPT_STATES; i++) {
        worker_state *state = atomic_load_explicit(&t->states[i], memory_order_relaxed);
        if (state && (state = atomic_exchange(&t->states[i], NULL)) != NULL)
            return state;
    }
    static const encoder_options options;
    worker_state *state = calloc(1, sizeof *state);
    if (state && (state->encoder = encoder_new(t->file.tokenizer, &options)) != NULL)
        return state;
    free(state);
    return NULL;
}

void tokmap_i_return_state(tokmap_tokenizer *t, worker_state *state)
{
    array_free_large(&state->text, &state->capacity, 1);
    id_buffer_free_large(&state->ids);
    array_free_large(&state->ranges, &state->ranges_capacity, sizeof *state->ranges);
    for (size_t i = 0; i < MAX_KEPT_STATES && !state->broken; i++) {
        worker_state *none = NULL;
        if (atomic_compare_exchange_strong(&t->states[i], &none, state))
            return;
    }
    free_state(state);
}

/* ---- Open and close ---- */

static tokmap_status take_options(tokmap_tokenizer_options *o,
                                  const tokmap_tokenizer_options *options, const char *path,
                                  tokmap_error *err)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_tokenizer_options, specials_file)};
    *o = (tokmap_tokenizer_options)TOKMAP_INIT(tokmap_tokenizer_options);
    const tokmap_status status =
        options ? tokmap_i_take_options(o, options, &kind, err) : TOKMAP_OK;
    if (!status && (o->pattern || o->specials_file) && strcmp(path, BYTES_TOKENIZER_NAME) == 0)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s works only with a tokenizer file, not with %s",
                    o->pattern ? "pattern" : "specials_file", path);
    return status;
}

tokmap_status tokmap_tokenizer_open(tokmap_tokenizer **out, const char *path,
                                    const tokmap_tokenizer_options *options, tokmap_error *err)
{
    tokmap_i_error_clear(err);
    if (out)
        *out = NULL;
    if (!out || !path)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s is NULL", out ? "path" : "out");
    tokmap_tokenizer_options o;
    const tokmap_status status = take_options(&o, options, path, err);
    if (status)
        return status;
    tokmap_tokenizer *t = calloc(1, sizeof *t);
    if (!t || !(t->path = strdup(path))) {
        free(t);
        return FAIL_MEMORY(err);
    }
    failure why;
    const tokenizer_choice choice = {t->path, o.pattern, o.specials_file};
    bool opened = tokenizer_file_open(&t->file, &choice, &why);
    t->file.pattern = NULL; /* the caller's */
    const stated_role eod = {"eos", "ends", &t->eod_id, &t->eod_reason};
    const stated_role bos = {"bos", "begins", &t->bos_id, &t->bos_reason};
    if (opened)
        opened = (find_stated(t, &eod) && find_stated(t, &bos)) || fail_memory(&why);
    if (!opened) {
        tokmap_tokenizer_close(t);
        return fail_open(err, &why, path);
    }
    *out = t;
    return TOKMAP_OK;
}

void tokmap_tokenizer_close(tokmap_tokenizer *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < MAX_KEPT_STATES; i++)
        free_state(t->states[i]);
    tokenizer_file_close(&t->file);
    free(t->eod_reason);
    free(t->bos_reason);
    free(t->path);
    free(t);
}

/* ---- Info ---- */

tokmap_status tokmap_tokenizer_get_info(const tokmap_tokenizer *t, tokmap_tokenizer_info *info)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_tokenizer_info, bos_reason)};
    if (!t)
        return TOKMAP_ERR_ARGUMENT;
    const tokenizer_info *own = tokenizer_get_info(t->file.tokenizer);
    const tokmap_tokenizer_info full = {
        .vocab_size = own->vocab_size,
        .eod_id = t->eod_id,
        .bos_id = t->bos_id,
        .eod_is_guess = t->eod_guessed,
        .takes_bytes = own->takes_bytes,
        .decodes = own->decodes,
        .family = own->family,
        .unicode = own->unicode,
        .eod_reason = t->eod_reason,
        .bos_reason = t->bos_reason,
    };
    return tokmap_i_give_struct(info, &full, &kind, NULL);
}

tokmap_status tokmap_tokenizer_metadata(const tokmap_tokenizer *t, const char **json,
                                        size_t *n_bytes, tokmap_error *err)
{
    tokmap_i_error_clear(err);
    if (!t || !json || !n_bytes)
        return FAIL_NULL(err);
    *json = t->file.metadata;
    *n_bytes = t->file.metadata_bytes;
    return TOKMAP_OK;
}

tokmap_status tokmap_tokenizer_token(const tokmap_tokenizer *t, uint32_t id, tokmap_text *out)
{
    if (!t || !out)
        return TOKMAP_ERR_ARGUMENT;
    *out = (tokmap_text){0};
    out->bytes = (const char *)tokenizer_token_bytes(t->file.tokenizer, id, &out->n_bytes);
    return out->bytes ? TOKMAP_OK : TOKMAP_ERR_ARGUMENT;
}

uint32_t tokmap_tokenizer_find(const tokmap_tokenizer *t, const char *bytes, size_t n_bytes)
{
    return t && bytes ? tokenizer_find(t->file.tokenizer, bytes, n_bytes) : TOKMAP_NO_ID;
}

/* ---- Decode ---- */

tokmap_status tokmap_tokenizer_decode(const tokmap_tokenizer *t, const uint32_t *ids, size_t n_ids,
                                      tokmap_text *out, tokmap_error *err)
{
    tokmap_i_error_clear(err);
    if (out)
        *out = (tokmap_text){0};
    if (!t || !out || (!ids && n_ids > 0))
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "a pointer is NULL");
    if (!tokenizer_get_info(t->file.tokenizer)->decodes)
        return FAIL(err, TOKMAP_ERR_UNSUPPORTED, "%s: its decoder is not supported", t->path);
    model_text text = {0};
    size_t bad = SIZE_MAX;
    if (!tokenizer_decode(t->file.tokenizer, ids, n_ids, &text, &bad)) {
        if (bad >= n_ids)
            return FAIL_MEMORY(err);
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "id number %zu: the tokenizer %s has no token with the id %u", bad,
                    t->file.name, (unsigned)ids[bad]);
    }
    char *bytes = result_memory_new(text.n_bytes + 1);
    if (bytes) {
        if (text.n_bytes > 0)
            memcpy(bytes, text.s, text.n_bytes);
        bytes[text.n_bytes] = '\0';
        *out = (tokmap_text){bytes, text.n_bytes};
    }
    free(text.s);
    return bytes ? TOKMAP_OK : FAIL_MEMORY(err);
}
