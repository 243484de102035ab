/* SPDX-License-Identifier: Apache-2.0 */
#include "system/memory_file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/array.h"

static ssize_t append_bytes(void *cookie, const char *text, size_t n_bytes)
{
    memory_file *m = cookie;
    if (!array_reserve(&m->text, &m->capacity, m->n_bytes + n_bytes + 1, 1))
        return 0;
    memcpy(m->text + m->n_bytes, text, n_bytes);
    m->n_bytes += n_bytes;
    m->text[m->n_bytes] = '\0';
    return (ssize_t)n_bytes;
}

FILE *memory_file_open(memory_file *m)
{
    *m = (memory_file){0};
    append_bytes(m, "", 0); /* a file without bytes has a text too */
    FILE *f = m->text ? fopencookie(m, "w", (cookie_io_functions_t){.write = append_bytes}) : NULL;
    if (!f) {
        free(m->text);
        m->text = NULL;
    }
    return f;
}

bool memory_file_close(FILE *f, memory_file *m)
{
    bool ok = !ferror(f);
    ok = fclose(f) == 0 && ok;
    if (!ok) {
        free(m->text);
        m->text = NULL;
    }
    return ok;
}
