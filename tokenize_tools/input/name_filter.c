/* SPDX-License-Identifier: Apache-2.0 */
#include "input/name_filter.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"

#define PART_BYTES 256 /* of a pattern or a path, with the NUL */

/* ---- Patterns ---- */

/* The end of the set that begins here, or NULL. */
static const char *set_end(const char *at)
{
    at += at[1] == '!' || at[1] == '^' ? 2 : 1;
    for (const char *first = at; *at && *at != '/' && (*at != ']' || at == first); at++) {
        const bool is_class = at[0] == '[' && at[1] == ':';
        const char *end = is_class ? strstr(at + 2, ":]") : NULL;
        if (end)
            at = end + 1;
        else if (*at == '\\' && at[1])
            at++;
    }
    return *at == ']' ? at : NULL;
}

static bool check_part(const char *part, size_t n, failure *err)
{
    const char *stars = memmem(part, n, "**", 2);
    if (n >= PART_BYTES)
        return fail(err, "a part of it is longer than %d bytes", PART_BYTES - 1);
    if (stars && n > 2)
        return fail(err, "** must stand alone between slashes");
    for (const char *at = part; at < part + n; at++) {
        const char *set = at;
        if (*at == '[' && !(at = set_end(at)))
            return fail(err, "a [ has no ]");
        /* Collation: fnmatch(3) has it, git has not. */
        if (memmem(set, (size_t)(at - set), "[=", 2) || memmem(set, (size_t)(at - set), "[.", 2))
            return fail(err, "[= and [. have no meaning in a set");
        if (*at == '\\' && ++at >= part + n)
            return fail(err, "nothing follows its last backslash");
    }
    return true;
}

static bool check_pattern(const char *pattern, failure *err)
{
    if (!*pattern)
        return fail(err, "is empty");
    if (*pattern == '!')
        return fail(err, "! has no meaning here; use --include and --exclude");
    for (const char *at = pattern; *at;) {
        const size_t n = strcspn(at, "/");
        if (!check_part(at, n, err))
            return false;
        at += n + (at[n] == '/');
    }
    return true;
}

bool name_patterns_add(name_patterns *patterns, const char *pattern, failure *err)
{
    if (!check_pattern(pattern, err))
        return false;
    if (!array_grow(&patterns->list, patterns->n, sizeof *patterns->list) ||
        !array_grow(&patterns->has_matched, patterns->n, sizeof *patterns->has_matched))
        return fail_memory(err);
    patterns->has_matched[patterns->n] = false;
    patterns->list[patterns->n++] = pattern;
    return true;
}

/* ---- Matches ---- */

/* Whether the first part of the path matches that of the pattern. */
static bool part_matches(const char *pattern, size_t n_pattern, const char *path, size_t n_path)
{
    char of_pattern[PART_BYTES], of_path[PART_BYTES];
    if (n_pattern >= PART_BYTES || n_path >= PART_BYTES)
        return false;
    snprintf(of_pattern, sizeof of_pattern, "%.*s", (int)n_pattern, pattern);
    snprintf(of_path, sizeof of_path, "%.*s", (int)n_path, path);
    return fnmatch(of_pattern, of_path, 0) == 0;
}

/* Whether the pattern before `end` matches the whole path. Where a part does not match, only the
 * last ** is tried again, with one part of the path more. */
static bool path_matches(const char *pattern, const char *end, const char *path)
{
    const char *behind_stars = NULL, *from = NULL; /* and where the path goes on there */
    for (;;) {
        const char *slash = memchr(pattern, '/', (size_t)(end - pattern));
        const size_t n = (size_t)((slash ? slash : end) - pattern), n_path = strcspn(path, "/");
        if (n == 2 && memcmp(pattern, "**", 2) == 0) {
            if (!slash)
                return *path != '\0';
            pattern = behind_stars = slash + 1;
            from = path;
            continue;
        }
        const bool fits = *path && part_matches(pattern, n, path, n_path);
        if (fits && !slash && !path[n_path])
            return true;
        if (fits && slash && path[n_path]) {
            pattern = slash + 1;
            path += n_path + 1;
            continue;
        }
        const size_t n_from = behind_stars ? strcspn(from, "/") : 0;
        if (!behind_stars || !from[n_from])
            return false;
        path = from = from + n_from + 1;
        pattern = behind_stars;
    }
}

static bool pattern_matches(const char *pattern, const char *path, bool is_folder)
{
    const size_t n = strlen(pattern), n_plain = n - (pattern[n - 1] == '/');
    const char *end = pattern + n_plain, *last = strrchr(path, '/');
    if (n_plain < n && !is_folder)
        return false;
    if (!memchr(pattern, '/', n_plain)) {
        last = last ? last + 1 : path;
        return part_matches(pattern, n_plain, last, strlen(last));
    }
    return path_matches(pattern + (*pattern == '/'), end, path);
}

bool name_patterns_match(const name_patterns *patterns, const char *path, bool is_folder)
{
    bool found = false;
    for (size_t i = 0; i < patterns->n; i++) {
        const bool need = !found || !patterns->has_matched[i];
        if (need && pattern_matches(patterns->list[i], path, is_folder))
            found = patterns->has_matched[i] = true;
    }
    return found;
}

static uint64_t add_bit(uint64_t sum, bool bit)
{
    const uint64_t pair[] = {sum, bit};
    return tokmap_i_checksum(pair, sizeof pair);
}

/* What a pattern matches below a folder follows from which of its beginnings match the folder. */
static uint64_t add_beginnings(const name_patterns *patterns, const char *folder, uint64_t sum)
{
    for (size_t i = 0; i < patterns->n; i++) {
        const char *pattern = patterns->list[i] + (*patterns->list[i] == '/');
        for (const char *end = pattern; (end = strchr(end, '/')); end++)
            sum = add_bit(sum, path_matches(pattern, end, folder));
    }
    return sum;
}

uint64_t name_filter_below(const name_filter *filter, const char *folder)
{
    /* A pattern that begins with a slash, and has no other, matches only in the first folder. */
    const uint64_t sum = add_beginnings(&filter->include, folder, add_bit(0, *folder == '\0'));
    return add_beginnings(&filter->exclude, folder, sum);
}
