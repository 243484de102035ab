/* SPDX-License-Identifier: Apache-2.0 */
#include "input/input_list.h"

#include <errno.h>
#include <fnmatch.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "system/each.h"
#include "system/files.h"
#include "system/input_file.h"
#include "base/array.h"
#include "base/store_name.h"

/* Reports that a name that should exist could not be described. */
static bool fail_missing(failure *err, const char *path, int sys_errno)
{
    char target[256];
    if (sys_errno != ENOENT || !file_link_target(path, target, sizeof target))
        return fail_file(err, sys_errno, path);
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

/* What input_describe_all hands to its threads. */
typedef struct naming {
    char *const *names;
    input_described *found;
} naming;

static void describe_one(void *context, size_t which)
{
    const naming *n = context;
    const char *name = n->names[which];
    file_facts of_name;
    input_described *d = &n->found[which];
    d->sys_errno = file_describe(name, &d->facts);
    d->name_errno = d->sys_errno ? file_describe_name(name, &of_name) : 0;
}

#define MOST_AT_ONCE 64

input_described *input_describe_all(char *const *names, size_t n)
{
    naming all = {names, calloc(n + 1, sizeof *all.found)};
    if (all.found)
        each_at_once(n, MOST_AT_ONCE, describe_one, &all);
    return all.found;
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
    free(list->commits);
    free(list->names);
    list->names = NULL;
}

/* ---- Folders ---- */

#define MAX_NAMED 3 /* files beside the data, in a message */

typedef struct walk {
    input_list *list;
    input_list *folders; /* collects the paths of folders, with a slash at the end; NULL: files */
    size_t root_bytes;   /* of the path of the folder */
    size_t cut_bytes;    /* are left out at the beginning of the path of a folder */
    void *seen;          /* a tree of seen_folder */
    const name_filter *filter; /* NULL: all is wanted */
    bool is_included;          /* the current folder matches, and so does what is in it */
    size_t n_hidden, n_special, n_unfinished, n_again, n_beside, n_excluded, n_others;
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

/* A folder whose files were taken, or are being taken; with `below` one in which none was taken: it
 * is walked again only where the filter may match other names below it. */
typedef struct seen_folder {
    file_id id;
    uint64_t below; /* 0, or what the filter and is_included say of it */
} seen_folder;

static int compare_seen(const void *a, const void *b)
{
    const seen_folder *x = a, *y = b;
    const int order = file_id_compare(&x->id, &y->id);
    return order ? order : (x->below > y->below) - (x->below < y->below);
}

static bool see_folder(walk *w, seen_folder folder, bool *again)
{
    seen_folder *copy = malloc(sizeof *copy);
    seen_folder **node = NULL;
    if (copy) {
        *copy = folder;
        node = tsearch(copy, &w->seen, compare_seen);
    }
    *again = node && *node != copy;
    if (!node || *again)
        free(copy);
    return node != NULL || fail_memory(w->err);
}

static bool walk_folder(walk *w, const char *path, file_id folder);

typedef struct folder_listing {
    walk *walk;
    const char *path;
    input_list names;
    bool ok;
} folder_listing;

static bool has_includes(const walk *w)
{
    return w->filter && w->filter->include.n > 0;
}

static bool append_entry(void *context, const char *name)
{
    folder_listing *l = context;
    const size_t n_path = strlen(l->path);
    const char *slash = n_path > 0 && l->path[n_path - 1] == '/' ? "" : "/";
    char *full = NULL;
    if (name[0] == '.' && !has_includes(l->walk)) {
        l->walk->n_hidden++;
        return true;
    }
    if (asprintf(&full, "%s%s%s", l->path, slash, name) < 0)
        full = NULL;
    l->ok = input_list_append(&l->names, full, l->walk->err);
    return l->ok;
}

/* glob(3) leaves out all that it cannot look at; only what does not exist does not match. */
static bool is_no_match(const char *path, int sys_errno)
{
    char target[2];
    return sys_errno == 0 || sys_errno == ENOTDIR ||
           (sys_errno == ENOENT && !file_link_target(path, target, sizeof target));
}

static const char *name_below_root(const walk *w, const char *path)
{
    return path + w->root_bytes + strspn(path + w->root_bytes, "/");
}

/* Whether the filter wants it, else counts it. */
static bool is_wanted(walk *w, const char *name, bool is_folder, bool *is_included)
{
    *is_included = w->is_included;
    if (!w->filter)
        return true;
    *is_included |= name_patterns_match(&w->filter->include, name, is_folder);
    if (name_patterns_match(&w->filter->exclude, name, is_folder)) {
        w->n_excluded++;
        return false;
    }
    const bool is_other = !is_folder && has_includes(w) && !*is_included;
    w->n_others += is_other;
    return !is_other;
}

static bool walk_entry(walk *w, const char *path, const input_described *known)
{
    const file_facts facts = known->facts;
    const char *name = name_below_root(w, path);
    bool is_included;
    const int sys_errno = known->sys_errno;
    if (w->folders && facts.kind != FILE_FOLDER)
        return is_no_match(path, sys_errno) || fail_missing(w->err, path, sys_errno);
    if (!is_wanted(w, name, facts.kind == FILE_FOLDER, &is_included))
        return true;
    if (sys_errno)
        return add_missing(w->list, path, sys_errno, w->err);
    if (facts.kind == FILE_FOLDER) {
        const bool was_included = w->is_included;
        w->is_included = is_included;
        const bool ok = walk_folder(w, path, facts.id);
        w->is_included = was_included;
        return ok;
    }
    if (facts.kind == FILE_REGULAR && fnmatch("*.partial", path, 0) == 0) {
        w->n_unfinished++;
        return true;
    }
    if (facts.kind == FILE_REGULAR && !has_includes(w) && is_beside_data(strrchr(path, '/') + 1)) {
        const size_t n = strlen(w->beside);
        if (w->n_beside++ < MAX_NAMED)
            snprintf(w->beside + n, sizeof w->beside - n, "%s%.80s", n ? ", " : "", name);
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
    if (sys_errno == EFBIG)
        return fail(w->err, "%.300s: does not name a snapshot", ref);
    if (sys_errno || !found.ok)
        return found.ok && fail_file(w->err, sys_errno, ref);
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

/* Takes the path of a folder, if those of folders are collected. */
static bool take_folder(walk *w, const char *path)
{
    const char *slash = path[strlen(path) - 1] == '/' ? "" : "/";
    char *name;
    if (!w->folders)
        return true;
    if (asprintf(&name, "%s%s", path + w->cut_bytes, slash) < 0)
        name = NULL;
    return input_list_append(w->folders, name, w->err);
}

static void forget_folder(walk *w, seen_folder folder)
{
    seen_folder **node = tfind(&folder, &w->seen, compare_seen);
    seen_folder *found = node ? *node : NULL;
    if (found)
        tdelete(&folder, &w->seen, compare_seen);
    free(found);
}

/* Under another name the files of a folder may match. */
static seen_folder folder_in_vain(const walk *w, const char *path, file_id folder)
{
    const uint64_t below = name_filter_below(w->filter, name_below_root(w, path));
    return (seen_folder){folder, below << 2 | (uint64_t)w->is_included << 1 | 1};
}

static bool walk_folder(walk *w, const char *path, file_id folder)
{
    const size_t n_before = w->list->n_names;
    folder_listing l = {.walk = w, .path = path, .ok = true};
    input_list *names = &l.names;
    bool again;
    const seen_folder here = {folder, 0};
    const seen_folder in_vain = w->filter ? folder_in_vain(w, path, folder) : here;
    if (w->filter && tfind(&in_vain, &w->seen, compare_seen))
        return true;
    if (!see_folder(w, here, &again))
        return false;
    w->n_again += again;
    if (again)
        return true;
    if (!take_folder(w, path))
        return false;
    bool ok = find_snapshot(w, &l);
    const int sys_errno = ok && names->n_names == 0 ? file_list_folder(path, append_entry, &l) : 0;
    ok = sys_errno ? fail_file(w->err, sys_errno, path) : ok && l.ok;
    input_list_sort(names, 0);
    input_described *known = input_describe_all(names->names, names->n_names);
    ok = ok && (known || fail_memory(w->err));
    for (size_t i = 0; known && i < names->n_names && ok; i++)
        ok = walk_entry(w, names->names[i], &known[i]);
    free(known);
    input_list_free(names);
    if (!w->filter || w->list->n_names > n_before)
        return ok;
    forget_folder(w, here);
    return ok && see_folder(w, in_vain, &again);
}

/* Reports what was left out of a folder or pattern. */
static void report_left_out(const walk *w, const char *name)
{
    char text[640], more[32] = "";
    const struct {
        size_t n;
        const char *one, *many;
    } left_out[] = {
        {w->n_hidden, "hidden name (one that begins with a dot)",
         "hidden names (ones that begin with a dot)"},
        {w->n_special, "name that is neither a file nor a folder",
         "names that are neither a file nor a folder"},
        {w->n_unfinished, "unfinished file (one whose name ends in .partial)",
         "unfinished files (ones whose names end in .partial)"},
        {w->n_again, "folder that was already listed through another link",
         "folders that were already listed through another link"},
        {w->n_excluded, "name that --exclude matches", "names that --exclude matches"},
        {w->n_others, "file that no --include matches", "files that no --include matches"}};
    if (!w->list->report)
        return;
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++) {
        snprintf(text, sizeof text, "%.400s: left out %zu %s", name, left_out[i].n,
                 left_out[i].n == 1 ? left_out[i].one : left_out[i].many);
        if (left_out[i].n > 0)
            w->list->report(w->list->context, text);
    }
    if (w->n_beside > MAX_NAMED)
        snprintf(more, sizeof more, " and %zu more", w->n_beside - MAX_NAMED);
    snprintf(text, sizeof text, "%.300s: left out %s%s, which only describe%s data", name,
             w->beside, more, w->n_beside == 1 ? "s" : "");
    if (w->n_beside > 0)
        w->list->report(w->list->context, text);
}

static void forget_folders(void **seen)
{
    tdestroy(*seen, free);
    *seen = NULL;
}

/* seen: folders that are left out, to which those of this one are added. */
static bool add_folder(input_list *list, const char *path, file_id folder, void **seen,
                       failure *err)
{
    walk w = {.list = list,
              .root_bytes = strlen(path),
              .seen = *seen,
              .filter = list->filter,
              .err = err};
    const size_t n_names = list->n_names;
    const bool is_first = !*seen, ok = walk_folder(&w, path, folder);
    *seen = w.seen;
    if (!ok || (!is_first && list->n_names == n_names && w.n_again > 0))
        return ok; /* its files were found below another one */
    report_left_out(&w, path);
    return list->n_names > n_names || list->filter ||
           fail(err, "%.400s: the folder contains no files to pack", path);
}

/* ---- Arguments ---- */

/* For a name that was found by a pattern, or that is not a pattern. */
static bool add_found(input_list *list, const char *path, const input_described *known, void **seen,
                      failure *err)
{
    if (known->sys_errno)
        return add_missing(list, path, known->sys_errno, err);
    if (known->facts.kind == FILE_FOLDER)
        return add_folder(list, path, known->facts.id, seen, err);
    return input_list_append(list, strdup(path), err);
}

/* A part of a pattern, without slashes, which is matched with the names in a folder. */
typedef struct matching {
    const char *folder, *slashes; /* before the part; "", "": the working folder */
    int n_slashes;
    char *part;
    bool is_name;     /* no special characters */
    bool is_last;     /* else only folders match */
    bool is_deep;     /* after a ** only files match the last part */
    size_t n_folders; /* that match the last part, if is_deep */
    input_list found;
    failure *err;
    bool ok;
} matching;

static bool match_name(void *context, const char *name)
{
    matching *m = context;
    file_facts facts = {.kind = FILE_FOLDER};
    char *path;
    if (fnmatch(m->part, name, FNM_PERIOD) != 0)
        return true;
    if (asprintf(&path, "%s%.*s%s", m->folder, m->n_slashes, m->slashes, name) < 0)
        return m->ok = fail_memory(m->err);
    const int sys_errno = !m->is_last || m->is_deep ? file_describe(path, &facts)
                          : m->is_name              ? file_describe_name(path, &facts)
                                                    : 0;
    const bool is_folder = facts.kind == FILE_FOLDER;
    m->n_folders += m->is_deep && m->is_last && is_folder;
    if (sys_errno == 0 && (m->is_last ? !(m->is_deep && is_folder) : is_folder))
        return m->ok = input_list_append(&m->found, path, m->err);
    m->ok = is_no_match(path, sys_errno) || fail_missing(m->err, path, sys_errno);
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

static bool walk_root(walk *w, char *root)
{
    input_described *known = input_describe_all(&root, 1);
    const bool ok = known ? walk_entry(w, root, known) : fail_memory(w->err);
    free(known);
    return ok;
}

/* Matches **: the folders found so far and all below them. At the end of a pattern the former are
 * enough, because they stand for all files in them. */
static bool match_folders(input_list *list, matching *m, input_list *found, const char *pattern)
{
    walk w = {.list = list, .folders = &m->found, .err = m->err};
    char name[402];
    bool ok = true;
    input_list_sort(found, 0);
    for (size_t i = 0; i < found->n_names && ok; i++) {
        const char *here = *found->names[i] || m->n_slashes > 0 ? "" : "./";
        char *root = NULL;
        w.cut_bytes = strlen(here);
        if (asprintf(&root, "%s%s%.*s", here, found->names[i], m->n_slashes, m->slashes) < 0)
            root = NULL;
        if (!root || m->is_last) {
            ok = input_list_append(&m->found, root, m->err);
        } else {
            const size_t n_folders = m->found.n_names, n_again = w.n_again;
            ok = walk_root(&w, root);
            if (m->found.n_names == n_folders) /* it was found below another one */
                w.n_again = n_again;
            free(root);
        }
    }
    snprintf(name, sizeof name, "%.*s**", (int)(m->slashes + m->n_slashes - pattern), pattern);
    if (ok)
        report_left_out(&w, name);
    forget_folders(&w.seen);
    return ok;
}

/* Reports the folders whose names match the last part of a pattern with **. */
static void report_folders(const input_list *list, const matching *m, const char *pattern)
{
    char text[1280];
    const bool one = m->n_folders == 1;
    snprintf(text, sizeof text,
             "%.400s: left out %zu folder%s with such a name; %.400s/** stands for the files in %s",
             pattern, m->n_folders, one ? "" : "s", pattern, one ? "it" : "them");
    if (list->report && m->n_folders > 0 && strcmp(m->part, "*") != 0)
        list->report(list->context, text);
}

static bool match_pattern(input_list *list, input_list *found, const char *pattern, bool *is_deep,
                          failure *err)
{
    const char *at = pattern + strcspn(pattern, "*?[\\");
    while (at > pattern && *at != '/')
        at--;
    while (at > pattern && at[-1] == '/')
        at--;
    bool ok = input_list_append(found, strndup(pattern, (size_t)(at - pattern)), err);
    while (*at && ok) {
        matching m = {.slashes = at, .is_deep = *is_deep, .err = err, .ok = true};
        m.n_slashes = (int)strspn(at, "/");
        const char *part = at + m.n_slashes;
        at = part + strcspn(part, "/");
        m.part = strndup(part, (size_t)(at - part));
        const bool any_depth = m.part && strcmp(m.part, "**") == 0;
        at += any_depth ? strspn(at, "/") : 0;
        m.is_last = *at == '\0';
        m.is_name = m.part && !strpbrk(m.part, "*?[\\");
        ok = m.part != NULL || fail_memory(err);
        if (ok && any_depth)
            ok = match_folders(list, &m, found, pattern);
        for (size_t i = 0; i < found->n_names && ok && !any_depth; i++) {
            m.folder = found->names[i];
            ok = match_part(&m, pattern);
        }
        if (ok && m.is_last)
            report_folders(list, &m, pattern);
        *is_deep = *is_deep || any_depth;
        free(m.part);
        input_list_free(found);
        *found = m.found;
    }
    return ok;
}

static bool add_pattern(input_list *list, const char *pattern, failure *err)
{
    input_list found = {0};
    void *seen = NULL; /* with **, each folder is taken once */
    bool is_deep = false, ok = match_pattern(list, &found, pattern, &is_deep, err);
    if (ok && found.n_names == 0) {
        fail(err, "%.400s: no file matches this pattern", pattern);
        ok = list->may_match_nothing;
    }
    input_list_sort(&found, 0);
    input_described *known = input_describe_all(found.names, found.n_names);
    ok = ok && (known || fail_memory(err));
    for (size_t i = 0; known && i < found.n_names && ok; i++) {
        ok = add_found(list, found.names[i], &known[i], &seen, err);
        if (!is_deep)
            forget_folders(&seen);
    }
    forget_folders(&seen);
    free(known);
    input_list_free(&found);
    return ok;
}

static bool add_argument(input_list *list, const char *arg, const input_described *known,
                         failure *err)
{
    void *seen = NULL;
    if (known->name_errno && store_name_is(arg)) {
        char text[STORE_NAME_TEXT_BYTES];
        store_name_refuse(arg, text);
        return fail(err, "%s", text);
    }
    if (strncmp(arg, "hf://", 5) == 0 && list->find_in_hub && known->name_errno)
        return list->find_in_hub(list, arg, err);
    if (known->name_errno == ENOENT && strpbrk(arg, "*?["))
        return add_pattern(list, arg, err);
    const bool ok = add_found(list, arg, known, &seen, err);
    forget_folders(&seen);
    return ok;
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

#define LINE_BYTES ((size_t)64 * 1024) /* of a list, with the newline and a NUL */

/* Reads a line with its newline; *n is 0 at the end, and LINE_BYTES if the line is too long. */
static void read_list_line(FILE *f, char *line, size_t *n)
{
    int c = 0;
    for (*n = 0; *n < LINE_BYTES && c != '\n' && (c = getc(f)) != EOF; ++*n)
        line[*n] = (char)c;
    line[*n < LINE_BYTES ? *n : *n - 1] = '\0';
}

/* Reads the lines of a list; empty ones are kept, for the numbers of the others. */
static bool read_lines(FILE *f, input_list *lines, failure *err)
{
    char *line = malloc(LINE_BYTES);
    size_t n;
    bool ok = line != NULL || fail_memory(err);
    while (ok && line && (read_list_line(f, line, &n), n > 0)) {
        const bool fits = n < LINE_BYTES;
        n = fits ? end_line(line, n) : n;
        if (!fits)
            ok = fail(err, "is longer than %zu bytes, so this is not a list of inputs", LINE_BYTES);
        else if (strlen(line) != n)
            ok = fail(err, "%.400s: is followed by a NUL", line);
        else /* a name that begins with - or @ is a name */
            ok = input_list_append(lines, strdup(strcmp(line, "-") == 0 ? "./-" : line), err);
    }
    free(line);
    return ok;
}

static bool fail_line(const char *name, size_t number, bool is_list, failure *err)
{
    const int status = err->status;
    fail(err, "%.150s:%zu: %s%s", name, number, err->text,
         is_list && status == ENOENT ? " (a list cannot name another list)" : "");
    err->status = status;
    return false;
}

static bool add_list(input_list *list, const char *name, failure *err)
{
    FILE *f = input_file_open_text(name);
    input_list lines = {0};
    failure of_line; /* comes after those of the lines before it */
    name = f == stdin ? "stdin" : name;
    if (!f)
        return fail_file(err, errno, name);
    const bool are_read = read_lines(f, &lines, &of_line);
    input_described *known = input_describe_all(lines.names, lines.n_names);
    bool ok = known != NULL || fail_memory(err);
    for (size_t i = 0; known && i < lines.n_names && ok; i++)
        ok = !*lines.names[i] || add_argument(list, lines.names[i], &known[i], err) ||
             fail_line(name, i + 1, lines.names[i][0] == '@', err);
    if (ok && !are_read) {
        *err = of_line;
        ok = fail_line(name, lines.n_names + 1, false, err);
    }
    if (ok && ferror(f))
        ok = fail_file(err, errno ? errno : EIO, name);
    free(known);
    input_list_free(&lines);
    input_file_close_text(f);
    return ok;
}

static bool take_argument(input_list *list, const char *arg, const input_described *known,
                          failure *err)
{
    char *const name = (char *)arg;
    input_described *own = known ? NULL : input_describe_all(&name, 1);
    const bool ok =
        known || own ? add_argument(list, arg, known ? known : own, err) : fail_memory(err);
    free(own);
    return ok;
}

bool input_list_expand(input_list *list, const char *arg, const input_described *known,
                       failure *err)
{
    size_t n_names = list->n_names;
    bool ok;
    if (strcmp(arg, "-") == 0)
        ok = input_list_append(list, strdup(arg), err);
    else if (arg[0] == '@')
        ok = add_list(list, arg + 1, err);
    else
        ok = take_argument(list, arg, known, err);
    if (!ok)
        shorten_list(list, n_names);
    return ok;
}
