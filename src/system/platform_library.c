/* SPDX-License-Identifier: Apache-2.0 */
#include "system/platform_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

void *tokmap_i_library_open(const char *name, char *why, size_t why_bytes)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    const char *words = library ? NULL : dlerror();
    snprintf(why, why_bytes, "%s", words ? words : "");
    return library;
}

bool tokmap_i_library_find(void *library, const char *name, void *function)
{
    void *address = dlsym(library, name);
    memcpy(function, &address,
           sizeof address); /* C cannot cast data pointers to function pointers */
    return address != NULL;
}
