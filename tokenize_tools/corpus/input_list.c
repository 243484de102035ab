/* SPDX-License-Identifier: Apache-2.0 */
#include "corpus/input_list.h"

#include <errno.h>
#include <fnmatch.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "system/files.h"
#include "system/input_file.h"
#include "text/array.h"

/* Reports that a name that should exist could not be described. */
static bool fail_missing(failure *err, const char *path, int sys_errno)
{
    char target[256];
    if (sys_errno != ENOENT || !file_link_target(path, target, sizeof target))
        return fail_system(err, sys_errno, "%.400s", path);
    fail(err, "%.300s: is a symbolic link to %s, which does not exist", path, target);
    err->status = sys_errno;
    return false;
}

/* ---- Natural order ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int compare_numbers(const char **a, const char **b)
{
    size_t n_a = 0, n_b = 0;
    while (**a == '0')
        ++*a;
    while (**b == '0')
        ++*b;
    while (is_digit((*a)[n_a]))
        n_a++;
    while (is_digit((*b)[n_b]))
        n_b++;
    int order = n_a != n_b ? (n_a < n_b ? -1 : 1) : memcmp(*a, *b, n_a);
    *a += n_a;
    *b += n_b;
    return order;
}

/* Sorts / before all other characters. */
static int character_order(char c)
{
    return c == '/' ? 1 : c ? (unsigned char)c + 1 : 0;
}

int input_list_compare(const char *a, const char *b)
{
    const char *at_a = a, *at_b = b;
    int order = 0;
    while (order == 0 && (*at_a || *at_b)) {
        if (is_digit(*at_a) && is_digit(*at_b))
            order = compare_numbers(&at_a, &at_b);
        else
            order = character_order(*at_a++) - character_order(*at_b++);
    }
    return order ? order : strcmp(a, b);
}

static int compare_names(const void *a, const void *b)
{
    return input_list_compare(*(char *const *)a, *(char *const *)b);
}

void input_list_sort(input_list *list, size_t first)
{
    if (list->n_names > first)
        qsort(list->names + first, list->n_names - first, sizeof *list->names, compare_names);
}

/* ---- Lists ---- */

bool input_list_append(input_list *list, char *name, failure *err)
{
    if (!name || !array_grow(&list->names, list->n_names, sizeof *list->names)) {
        free(name);
        return fail_memory(err);
    }
    list->names[list->n_names++] = name;
    return true;
}

static bool add_missing(input_list *list, const char *path, int sys_errno, failure *err)
{
    return list->needs_no_file && list->needs_no_file(list->context, path)
               ? input_list_append(list, strdup(path), err)
               : fail_missing(err, path, sys_errno);
}

static void shorten_list(input_list *list, size_t n_names)
{
    while (list->n_names > n_names)
        free(list->names[--list->n_names]);
}

void input_list_free(input_list *list)
{
    shorten_list(list, 0);
    free(list->names);
    list->names = NULL;
}

/* ---- Folders ---- */

#define MAX_NAMED 3 /* files beside the data, in a message */

typedef struct walk {
    input_list *list;
    size_t root_bytes; /* of the path of the folder */
    void *seen;        /* a tree of file_id */
    size_t n_hidden, n_special, n_again, n_beside;
    char beside[256]; /* the first names, with commas between them */
    failure *err;
} walk;

/* Files that describe data, which corpora have beside it. */
static bool is_beside_data(const char *name)
{
    static const char *const patterns[] = {"README",
                                           "README.*",
                                           "LICENSE",
                                           "LICENSE.*",
                                           "*.md5",
                                           "*.sha1",
                                           "*.sha256",
                                           "*.sha512",
                                           "*.crc",
                                           "MD5SUM*",
                                           "SHA1SUM*",
                                           "SHA256SUM*",
                                           "SHA512SUM*",
                                           "CHECKSUM*",
                                           "dataset_info.json",
                                           "dataset_infos.json",
                                           "dataset_dict.json",
                                           "state.json"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        if (fnmatch(patterns[i], name, FNM_CASEFOLD) == 0)
            return true;
    }
    return name[0] == '_' && !strchr(name, '.');
}

static bool see_folder(walk *w, file_id folder, bool *again)
{
    file_id *id = malloc(sizeof *id);
    file_id **node = NULL;
    if (id) {
        *id = folder;
        node = tsearch(id, &w->seen, file_id_compare);
    }
    *again = node && *node != id;
    if (!node || *again)
        free(id);
    return node != NULL || fail_memory(w->err);
}

static bool walk_folder(walk *w, const char *path, file_id folder);

typedef struct folder_listing {
    walk *walk;
    const char *path;
    input_list names;
    bool ok;
} folder_listing;

static bool append_entry(void *context, const char *name)
{
    folder_listing *l = context;
    const size_t n_path = strlen(l->path);
    const char *slash = n_path > 0 && l->path[n_path - 1] == '/' ? "" : "/";
    char *full = NULL;
    if (name[0] == '.') {
        l->walk->n_hidden++;
        return true;
    }
    if (asprintf(&full, "%s%s%s", l->path, slash, name) < 0)
        full = NULL;
    l->ok = input_list_append(&l->names, full, l->walk->err);
    return l->ok;
}

static bool walk_entry(walk *w, const char *path)
{
    file_facts facts;
    const int sys_errno = file_describe(path, &facts);
    if (sys_errno)
        return add_missing(w->list, path, sys_errno, w->err);
    if (facts.kind == FILE_FOLDER)
        return walk_folder(w, path, facts.id);
    if (facts.kind == FILE_REGULAR && is_beside_data(strrchr(path, '/') + 1)) {
        const char *name = path + w->root_bytes;
        const size_t n = strlen(w->beside);
        if (w->n_beside++ < MAX_NAMED)
            snprintf(w->beside + n, sizeof w->beside - n, "%s%.80s", n ? ", " : "",
                     name + strspn(name, "/"));
        return true;
    }
    if (facts.kind == FILE_REGULAR)
        return input_list_append(w->list, strdup(path), w->err);
    w->n_special++;
    return true;
}

/* In the cache of the Hugging Face Hub, a dataset is a folder with blobs/, refs/ and snapshots/; a
 * folder in the latter has links to blobs for each revision. Of such a folder, and of its
 * snapshots/, the only entry is the snapshot that refs/main names, or else the only one. */
static bool find_snapshot(walk *w, folder_listing *l)
{
    const int n_all = (int)strlen(l->path), n = n_all - (n_all > 1 && l->path[n_all - 1] == '/');
    const bool is_inner = n >= 9 && memcmp(l->path + n - 9, "snapshots", 9) == 0;
    static char folder[4096], ref[4096], text[640]; /* not in a frame of each level */
    snprintf(ref, sizeof ref, "%.*s%s/blobs/../snapshots/.", n, l->path, is_inner ? "/.." : "");
    if (!file_exists(ref))
        return true;
    snprintf(folder, sizeof folder, "%.*s%s", n, l->path, is_inner ? "" : "/snapshots");
    snprintf(ref, sizeof ref, "%.*s%s/refs/main", n, l->path, is_inner ? "/.." : "");
    folder_listing found = {.walk = w, .path = folder, .ok = true};
    whole_file revision;
    int sys_errno = file_read_whole(ref, 100, &revision);
    if (sys_errno == ENOENT)
        sys_errno = file_list_folder(folder, append_entry, &found);
    if (revision.data) {
        revision.data[strcspn((char *)revision.data, "\r\n")] = '\0';
        append_entry(&found, (char *)revision.data);
    }
    free(revision.data);
    l->names = found.names;
    if (sys_errno || !found.ok)
        return found.ok && fail_system(w->err, sys_errno, "%.400s", ref);
    input_list_sort(&l->names, 0);
    if (l->names.n_names == 0)
        return fail(w->err, "%.300s: has no snapshot", l->path);
    if (l->names.n_names > 1)
        return fail(
            w->err,
            "%.200s: has %zu snapshots, and no refs/main names one: give the folder of one, "
            "such as %.200s",
            l->path, l->names.n_names, l->names.names[0]);
    snprintf(text, sizeof text, "%.300s: takes %.300s", l->path, l->names.names[0]);
    if (w->list->report)
        w->list->report(w->list->context, text);
    return true;
}

static bool walk_folder(walk *w, const char *path, file_id folder)
{
    folder_listing l = {.walk = w, .path = path, .ok = true};
    input_list *names = &l.names;
    bool again;
    if (!see_folder(w, folder, &again))
        return false;
    w->n_again += again;
    if (again)
        return true;
    bool ok = find_snapshot(w, &l);
    const int sys_errno = ok && names->n_names == 0 ? file_list_folder(path, append_entry, &l) : 0;
    ok = sys_errno ? fail_system(w->err, sys_errno, "%.400s", path) : ok && l.ok;
    input_list_sort(names, 0);
    for (size_t i = 0; i < names->n_names && ok; i++)
        ok = walk_entry(w, names->names[i]);
    input_list_free(names);
    return ok;
}

static bool add_folder(input_list *list, const char *path, file_id folder, failure *err)
{
    walk w = {.list = list, .root_bytes = strlen(path), .err = err};
    const size_t n_names = list->n_names;
    char text[640], more[32] = "";
    const bool ok = walk_folder(&w, path, folder);
    tdestroy(w.seen, free);
    if (!ok)
        return false;
    const struct {
        size_t n;
        const char *one, *many;
    } left_out[] = {{w.n_hidden, "hidden name (one that begins with a dot)",
                     "hidden names (ones that begin with a dot)"},
                    {w.n_special, "name that is neither a file nor a folder",
                     "names that are neither a file nor a folder"},
                    {w.n_again, "folder that was already listed through another link",
                     "folders that were already listed through another link"}};
    for (size_t i = 0; list->report && i < sizeof left_out / sizeof *left_out; i++) {
        snprintf(text, sizeof text, "%.400s: left out %zu %s", path, left_out[i].n,
                 left_out[i].n == 1 ? left_out[i].one : left_out[i].many);
        if (left_out[i].n > 0)
            list->report(list->context, text);
    }
    if (w.n_beside > MAX_NAMED)
        snprintf(more, sizeof more, " and %zu more", w.n_beside - MAX_NAMED);
    snprintf(text, sizeof text, "%.300s: left out %s%s, which only describe%s data", path, w.beside,
             more, w.n_beside == 1 ? "s" : "");
    if (list->report && w.n_beside > 0)
        list->report(list->context, text);
    return list->n_names > n_names ||
           fail(err, "%.400s: the folder contains no files to pack", path);
}

/* ---- Arguments ---- */

/* For a name that was found by a pattern, or that is not a pattern. */
static bool add_found(input_list *list, const char *path, failure *err)
{
    file_facts facts;
    const int sys_errno = file_describe(path, &facts);
    if (sys_errno)
        return add_missing(list, path, sys_errno, err);
    if (facts.kind == FILE_FOLDER)
        return add_folder(list, path, facts.id, err);
    return input_list_append(list, strdup(path), err);
}

/* A part of a pattern, without slashes, which is matched with the names in a folder. */
typedef struct matching {
    const char *folder, *slashes; /* before the part; "", "": the working folder */
    int n_slashes;
    char *part;
    bool is_name; /* no special characters */
    bool is_last; /* else only folders match */
    input_list found;
    failure *err;
    bool ok;
} matching;

/* Only what does not exist is no match: glob(3) leaves out all that it cannot look at. */
static bool match_name(void *context, const char *name)
{
    matching *m = context;
    file_facts facts = {.kind = FILE_FOLDER};
    char *path, target[2];
    if (fnmatch(m->part, name, FNM_PERIOD) != 0)
        return true;
    if (asprintf(&path, "%s%.*s%s", m->folder, m->n_slashes, m->slashes, name) < 0)
        return m->ok = fail_memory(m->err);
    const int sys_errno = !m->is_last  ? file_describe(path, &facts)
                          : m->is_name ? file_describe_name(path, &facts)
                                       : 0;
    if (sys_errno == 0 && (m->is_last || facts.kind == FILE_FOLDER))
        return m->ok = input_list_append(&m->found, path, m->err);
    const bool is_missing = sys_errno == ENOENT && !file_link_target(path, target, sizeof target);
    m->ok = sys_errno == 0 || sys_errno == ENOTDIR || is_missing ||
            fail_missing(m->err, path, sys_errno);
    free(path);
    return m->ok;
}

static bool match_part(matching *m, const char *pattern)
{
    const char *folder = *m->folder ? m->folder : m->n_slashes > 0 ? "/" : ".";
    if (m->is_name)
        return match_name(m, m->part);
    const int sys_errno = file_list_folder(folder, match_name, m);
    if (sys_errno == 0)
        return m->ok;
    return fail_system(m->err, sys_errno, "%.200s: cannot read the folder %.200s", pattern, folder);
}

static bool match_pattern(input_list *found, const char *pattern, failure *err)
{
    const char *at = pattern + strcspn(pattern, "*?[\\");
    while (at > pattern && *at != '/')
        at--;
    while (at > pattern && at[-1] == '/')
        at--;
    bool ok = input_list_append(found, strndup(pattern, (size_t)(at - pattern)), err);
    while (*at && ok) {
        matching m = {.slashes = at, .n_slashes = (int)strspn(at, "/"), .err = err, .ok = true};
        const char *part = at + m.n_slashes;
        at = part + strcspn(part, "/");
        m.part = strndup(part, (size_t)(at - part));
        m.is_last = *at == '\0';
        m.is_name = m.part && !strpbrk(m.part, "*?[\\");
        ok = m.part != NULL || fail_memory(err);
        for (size_t i = 0; i < found->n_names && ok; i++) {
            m.folder = found->names[i];
            ok = match_part(&m, pattern);
        }
        free(m.part);
        input_list_free(found);
        *found = m.found;
    }
    return ok;
}

static bool add_pattern(input_list *list, const char *pattern, failure *err)
{
    input_list found = {0};
    bool ok = match_pattern(&found, pattern, err);
    if (ok && found.n_names == 0) {
        fail(err, "%.400s: no file matches this pattern", pattern);
        ok = list->may_match_nothing;
    }
    input_list_sort(&found, 0);
    for (size_t i = 0; i < found.n_names && ok; i++)
        ok = add_found(list, found.names[i], err);
    input_list_free(&found);
    return ok;
}

static bool add_argument(input_list *list, const char *arg, failure *err)
{
    file_facts facts;
    if (file_describe_name(arg, &facts) == ENOENT && strpbrk(arg, "*?["))
        return add_pattern(list, arg, err);
    return add_found(list, arg, err);
}

/* Removes the newline, and a carriage return unless a file with exactly that name exists. */
static size_t end_line(char *line, size_t n)
{
    if (n > 0 && line[n - 1] == '\n')
        line[--n] = '\0';
    if (n > 0 && line[n - 1] == '\r' && !file_name_exists(line))
        line[--n] = '\0';
    return n;
}

static bool add_list(input_list *list, const char *name, failure *err)
{
    FILE *f = input_file_open_text(name);
    char *line = NULL;
    size_t capacity = 0, number = 0;
    bool ok = true;
    name = f == stdin ? "stdin" : name;
    if (!f)
        return fail_system(err, errno, "%.400s", name);
    errno = 0;
    for (ssize_t n_read; ok && (n_read = getline(&line, &capacity, f)) >= 0; errno = 0) {
        size_t n = end_line(line, (size_t)n_read);
        number++;
        if (strlen(line) != n)
            ok = fail(err, "%.400s: is followed by a NUL", line);
        else if (n > 0) /* a name that begins with - or @ is a name */
            ok = add_argument(list, strcmp(line, "-") == 0 ? "./-" : line, err);
        if (!ok) {
            const int status = err->status;
            fail(err, "%.150s:%zu: %s%s", name, number, err->text,
                 line[0] == '@' && status == ENOENT ? " (a list cannot name another list)" : "");
            err->status = status;
        }
    }
    if (ok && !feof(f)) /* getline stops when out of memory, without setting ferror */
        ok = fail_system(err, errno ? errno : EIO, "%.400s", name);
    free(line);
    input_file_close_text(f);
    return ok;
}

bool input_list_expand(input_list *list, const char *arg, failure *err)
{
    size_t n_names = list->n_names;
    bool ok;
    if (strcmp(arg, "-") == 0)
        ok = input_list_append(list, strdup(arg), err);
    else if (arg[0] == '@')
        ok = add_list(list, arg + 1, err);
    else
        ok = add_argument(list, arg, err);
    if (!ok)
        shorten_list(list, n_names);
    return ok;
}
