/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/file/tokenizer_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "base/array.h"
#include "base/base.h"
#include "base/json_text.h"
#include "tokenizer/model/bytes_tokenizer.h"
#include "tokenizer/load/model_load.h"

/* The largest vocabularies in use have 40 MB. */
#define MAX_FILE_BYTES ((size_t)1 << 30)

/* ---- Reading ---- */

static bool read_whole(const char *path, whole_file *file, failure *err)
{
    const int error = file_read_whole(path, MAX_FILE_BYTES, file);
    if (error == ENOMEM)
        return fail_memory(err);
    if (error == EFBIG)
        fail(err, "%s: is larger than 1 GiB, so it cannot be a tokenizer file", path);
    else if (error)
        fail_system(err, error, "%s", path);
    err->status = error;
    return !error;
}

bool tokenizer_file_read_beside(const char *path, name_pair names, whole_file *file, failure *err)
{
    char beside[4096];
    const size_t n = strlen(path), n_own = strlen(names.own);
    *file = (whole_file){0};
    if (n < n_own || strcmp(path + n - n_own, names.own) != 0)
        return true;
    const int n_beside =
        snprintf(beside, sizeof beside, "%.*s%s", (int)(n - n_own), path, names.other);
    if (n_beside < 0 || (size_t)n_beside >= sizeof beside || !file_exists(beside))
        return true;
    return read_whole(beside, file, err);
}

/* ---- Loading ---- */

static bool make_tokenizer(tokenizer_file *file, const model_source *source, const char *specials,
                           failure *err)
{
    model m;
    model_init(&m);
    bool loaded = model_load(&m, source, err);
    if (loaded)
        file->tokenizer = tokenizer_new(&m, err);
    model_free(&m);
    if (file->tokenizer)
        return true;
    if (err->status == ENOMEM)
        return false;
    const char *path = err->status == FAILURE_BESIDE ? specials : file->path;
    err->status = FAILURE_CONTENT;
    return err->place ? fail_at(err, "%s: byte %" PRIu64 ": ", path, err->place)
                      : fail_at(err, "%s: ", path);
}

static uint64_t take_file(tokenizer_file *file, const whole_file *from)
{
    if (!from->data)
        return 0;
    file->read[file->n_read++] = from->facts;
    return XXH3_64bits(from->data, from->n_bytes);
}

static bool open_file(tokenizer_file *file, const tokenizer_choice *choice, failure *err)
{
    snprintf(file->name, sizeof file->name, "%s", name_in_path(choice->name));
    file->from_file = true;
    whole_file vocab = {0}, merges = {0}, specials = {0};
    bool opened = read_whole(choice->name, &vocab, err) &&
                  tokenizer_file_read_beside(choice->name, (name_pair){"vocab.json", "merges.txt"},
                                             &merges, err) &&
                  (!choice->specials || read_whole(choice->specials, &specials, err));
    if (opened) {
        file->file_xxh3 = take_file(file, &vocab);
        file->merges_xxh3 = take_file(file, &merges);
        file->specials_xxh3 = take_file(file, &specials);
        opened = make_tokenizer(file,
                                &(model_source){
                                    .data = vocab.data,
                                    .n_bytes = vocab.n_bytes,
                                    .merges = merges.data,
                                    .merges_bytes = merges.n_bytes,
                                    .specials = specials.data,
                                    .specials_bytes = specials.n_bytes,
                                    .pattern = choice->pattern,
                                },
                                choice->specials, err);
    }
    free(vocab.data);
    free(merges.data);
    free(specials.data);
    return opened;
}

/* Finds the file in a folder that save_pretrained has written: the one that is also taken of a
 * repository of the Hub, as _TOKENIZERS in python/tokmap/_tools/hub.py. */
static bool find_in_folder(tokenizer_file *file, const char *folder, failure *err)
{
    static const char *const names[] = {"tokenizer.json", "tokenizer.model", "tekken.json",
                                        "vocab.json"};
    const size_t n_bytes = strlen(folder) + sizeof "/tokenizer.model";
    char *path = malloc(n_bytes);
    if (!path)
        return fail_memory(err);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const bool has_slash = folder[strlen(folder) - 1] == '/';
        snprintf(path, n_bytes, "%s%s%s", folder, has_slash ? "" : "/", names[i]);
        if (file_exists(path)) {
            file->path = file->found_path = path;
            return true;
        }
    }
    free(path);
    fail(
        err,
        "%s: is a folder without tokenizer.json, tokenizer.model, tekken.json and vocab.json; name "
        "the file of the tokenizer",
        folder);
    err->status = EISDIR;
    return false;
}

static bool is_folder(const char *name)
{
    file_facts facts;
    return file_describe(name, &facts) == 0 && facts.kind == FILE_FOLDER;
}

/* ---- Metadata: docs/FORMAT.md, section 3.6 ---- */

static bool add_text(tokmap_i_bytes *out, const char *text)
{
    return tokmap_i_bytes_append(out, text, strlen(text));
}

/* Adds a value that is a string; null if it is NULL. */
static bool add_string(tokmap_i_bytes *out, const char *key, const char *s)
{
    size_t n_left = s ? strlen(s) : 0;
    bool added = add_text(out, key) && add_text(out, s ? "\"" : "null");
    while (added && n_left > 0) {
        char escaped[JSON_ESCAPED_BYTES];
        size_t n_escaped;
        const size_t n = json_text_escape(s, n_left, escaped, &n_escaped);
        added = tokmap_i_bytes_append(out, escaped, n_escaped);
        s += n;
        n_left -= n;
    }
    return added && (!s || add_text(out, "\""));
}

static bool add_hash(tokmap_i_bytes *out, const char *key, uint64_t hash)
{
    char text[17];
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    return add_string(out, key, text);
}

/* Makes OWNER/NAME@COMMIT from the path of a model's file in the cache of the Hub; "" from any
 * other path. */
static void find_revision(const char *path, char text[256])
{
    static const char snapshots[] = "/snapshots/";
    const char *owner = strstr(path, "/models--"), *name, *commit;
    owner = owner ? owner + strlen("/models--") : "";
    name = strstr(owner, "--");
    commit = name ? strstr(name, snapshots) : NULL;
    *text = '\0';
    if (!commit)
        return;
    const char *begin = commit + strlen(snapshots);
    snprintf(text, 256, "%.*s/%.*s@%.*s", (int)(name - owner), owner, (int)(commit - name - 2),
             name + 2, (int)strcspn(begin, "/"), begin);
}

static bool add_file(tokmap_i_bytes *out, const tokenizer_file *file)
{
    const tokenizer_info *info = tokenizer_get_info(file->tokenizer);
    char revision[256];
    find_revision(file->path, revision);
    return (!*revision || add_string(out, ", \"repository\": ", revision)) &&
           add_hash(out, ", \"file_xxh3\": ", file->file_xxh3) &&
           (!file->merges_xxh3 || add_hash(out, ", \"merges_xxh3\": ", file->merges_xxh3)) &&
           (!file->specials_xxh3 || add_hash(out, ", \"specials_xxh3\": ", file->specials_xxh3)) &&
           add_string(out, ", \"family\": ", info->family) &&
           add_string(out, ", \"pattern\": ", file->pattern) &&
           add_string(out, ", \"unicode\": ", info->unicode);
}

static bool add_metadata(tokmap_i_bytes *out, const tokenizer_file *file)
{
    return add_string(out, "{\"name\": ", file->name) &&
           (!file->from_file || add_file(out, file)) && add_text(out, "}");
}

static bool make_metadata(tokenizer_file *file, failure *err)
{
    tokmap_i_bytes json = {0};
    const bool made = add_metadata(&json, file) && tokmap_i_bytes_append(&json, "", 1);
    file->metadata = (char *)json.data;
    file->metadata_bytes = made ? json.n_bytes - 1 : 0;
    return made || fail_memory(err);
}

/* ---- Open and close ---- */

static bool open_tokenizer(tokenizer_file *file, const tokenizer_choice *choice, failure *err)
{
    *file = (tokenizer_file){.path = choice->name, .pattern = choice->pattern};
    if (strcmp(choice->name, BYTES_TOKENIZER_NAME) != 0) {
        tokenizer_choice in_folder = *choice;
        if (is_folder(choice->name) && !find_in_folder(file, choice->name, err))
            return false;
        in_folder.name = file->path;
        return open_file(file, &in_folder, err);
    }
    snprintf(file->name, sizeof file->name, "%s", BYTES_TOKENIZER_NAME);
    file->tokenizer = tokenizer_new_bytes();
    return file->tokenizer || fail_memory(err);
}

bool tokenizer_file_open(tokenizer_file *file, const tokenizer_choice *choice, failure *err)
{
    const bool opened = open_tokenizer(file, choice, err) && make_metadata(file, err);
    if (!opened)
        tokenizer_file_close(file);
    return opened;
}

void tokenizer_file_close(tokenizer_file *file)
{
    tokenizer_free(file->tokenizer);
    free(file->found_path);
    free(file->metadata);
    file->tokenizer = NULL;
    file->found_path = file->metadata = NULL;
}
