/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/role_names.h"

#include <string.h>

enum {
    MOST_NAMES = 125,
    MOST_NAME_BYTES = 64
};

bool role_names_next(const char **list, const char **name, size_t *n_bytes)
{
    if (!**list)
        return false;
    *name = *list;
    *n_bytes = strcspn(*list, ",");
    *list += *n_bytes + ((*list)[*n_bytes] == ',');
    return true;
}

int role_names_find(const char *list, const char *name, size_t n_bytes)
{
    const char *one;
    size_t n_one;
    for (int i = 0; role_names_next(&list, &one, &n_one); i++)
        if (n_one == n_bytes && memcmp(one, name, n_bytes) == 0)
            return i;
    return -1;
}

static bool is_name(const char *name, size_t n_bytes)
{
    static const char letters[] =
        "0123456789_-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return n_bytes > 0 && n_bytes <= MOST_NAME_BYTES && strspn(name, letters) >= n_bytes &&
           role_names_find("prompt,redacted", name, n_bytes) < 0;
}

bool role_names_check(const char *list, failure *err)
{
    const char *rest = list, *name;
    size_t n_bytes;
    int n = 0;
    for (; role_names_next(&rest, &name, &n_bytes); n++) {
        if (!is_name(name, n_bytes))
            return fail(err,
                        "'%.*s' cannot be the name of a role: use 1 to %d of the characters A-Z, "
                        "a-z, 0-9, _ and -, and not prompt or redacted",
                        (int)(n_bytes < 80 ? n_bytes : 80), name, MOST_NAME_BYTES);
        if (role_names_find(list, name, n_bytes) != n)
            return fail(err, "the name '%.*s' is given twice", (int)n_bytes, name);
    }
    if (n == 0 || rest[-1] == ',')
        return fail(err, "must be the names of roles, such as think,tool-call");
    return n <= MOST_NAMES || fail(err, "%d names: at most %d are allowed", n, MOST_NAMES);
}
