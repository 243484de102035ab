/* data.c - memory for a report, and machines. */
#include "report/data.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

typedef struct report_block {
    struct report_block *next;
    max_align_t bytes[];
} report_block;

void *report_alloc(report_memory *memory, size_t n_bytes)
{
    report_block *block = calloc(1, sizeof *block + n_bytes);
    if (!block) {
        cli_warn("out of memory");
        exit(1);
    }
    block->next = memory->blocks;
    memory->blocks = block;
    return block->bytes;
}

char *report_text(report_memory *memory, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = report_alloc(memory, (size_t)length + 1);
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}

void report_memory_free(report_memory *memory)
{
    for (report_block *block = memory->blocks; block;) {
        report_block *next = block->next;
        free(block);
        block = next;
    }
    memory->blocks = NULL;
}

bool report_same_machine(const report_machine *a, const report_machine *b)
{
    const bool same_gpu = !a->gpu || !b->gpu || strcmp(a->gpu, b->gpu) == 0;
    return same_gpu && strcmp(a->cpu, b->cpu) == 0 && strcmp(a->kernel, b->kernel) == 0 &&
           strcmp(a->architecture, b->architecture) == 0 && a->processors == b->processors &&
           a->memory_gib == b->memory_gib;
}

char *report_machine_text(report_memory *memory, const report_machine *m)
{
    return report_text(memory, "%s, %g processor%s, %g GiB, Linux %s (%s)%s%s", m->cpu,
                       m->processors, m->processors == 1 ? "" : "s", m->memory_gib, m->kernel,
                       m->architecture, m->gpu ? ", " : "", m->gpu ? m->gpu : "");
}
