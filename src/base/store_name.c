/* SPDX-License-Identifier: Apache-2.0 */
#include "base/store_name.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* The prefix has small letters. */
static bool begins_with(const char *name, const char *prefix)
{
    for (; *prefix; prefix++, name++) {
        const bool is_capital = *name >= 'A' && *name <= 'Z';
        if ((is_capital ? *name - 'A' + 'a' : *name) != *prefix)
            return false;
    }
    return true;
}

/* Returns how many bytes the scheme and "://" have; 0: the name has none of these schemes. */
static size_t find_scheme(const char *name)
{
    static const char *const schemes[] = {"s3://", "gs://", "az://", "https://", "http://"};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (begins_with(name, schemes[i]))
            return strlen(schemes[i]);
    return 0;
}

bool store_name_is(const char *name)
{
    return find_scheme(name) > 0;
}

void store_name_refuse(const char *name, char text[STORE_NAME_TEXT_BYTES])
{
    const int n_scheme = (int)find_scheme(name);
    const char *host = name + n_scheme, *end = name + strcspn(name, "?#");
    for (const char *at = host; at < end && *at != '/'; at++)
        host = *at == '@' ? at + 1 : host;
    const ptrdiff_t n_rest = end > host ? end - host : 0;
    snprintf(text, STORE_NAME_TEXT_BYTES,
             "%.*s%.*s: commands read and write files, not objects in a store: copy them with "
             "s5cmd, rclone or 'hf download' (docs/recipes.md); a training in Python takes rows "
             "from a store: tokmap.Loader(\"s3://...\")",
             n_scheme, name, (int)(n_rest < 300 ? n_rest : 300), host);
}
