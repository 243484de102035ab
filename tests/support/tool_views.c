/* SPDX-License-Identifier: Apache-2.0 */
/* tool_views - writes the views and the rows files of test_view_files.py. Lines of stdin:
 *
 *     keep NAME PATH FILE     a view of the documents for which FILE has a byte 1
 *     where NAME PATH WHERE   a view of the documents for which an expression holds
 *     rows NAME VIEW PATH LENGTH ALIGN MAX_DOCUMENTS WHOLE_DOCUMENTS
 *
 * PATH is "-" for the usual one. For each line it prints the numbers of the info in their order. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokmap_loader.h"

enum {
    MAX_DOCUMENTS = 1 << 20
};

static void require(int condition, const char *what, const tokmap_error *err)
{
    if (condition)
        return;
    fprintf(stderr, "tool_views: %s%s%s\n", what, err ? ": " : "", err ? err->text : "");
    exit(1);
}

static void write_view(const tokmap_dataset *ds, const tokmap_view_options *options)
{
    tokmap_view_info info = TOKMAP_INIT(tokmap_view_info);
    tokmap_error err;
    require(!tokmap_view_write(ds, options, &info, &err), "view", &err);
    printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", info.n_documents,
           info.n_tokens, info.n_runs, info.set_hash, info.n_bytes);
}

static void write_kept(const tokmap_dataset *ds, const char *path, const char *mask)
{
    static uint8_t keep[MAX_DOCUMENTS];
    FILE *file = fopen(mask, "rb");
    require(file != NULL, mask, NULL);
    const size_t n = fread(keep, 1, sizeof keep, file);
    fclose(file);
    write_view(ds, &(tokmap_view_options){.struct_size = sizeof(tokmap_view_options),
                                          .keep = keep,
                                          .n_keep = n,
                                          .path = path});
}

static void write_where(const tokmap_dataset *ds, const char *path, const char *where)
{
    write_view(ds, &(tokmap_view_options){
                       .struct_size = sizeof(tokmap_view_options), .where = where, .path = path});
}

static void write_rows(const tokmap_dataset *ds, const char *path_of_view, char *words)
{
    const tokmap_view_options of_view = {.struct_size = sizeof of_view, .path = path_of_view};
    tokmap_rows_options o = TOKMAP_INIT(tokmap_rows_options);
    tokmap_rows_info info = TOKMAP_INIT(tokmap_rows_info);
    tokmap_view *view;
    tokmap_error err;
    require(!tokmap_view_open(&view, ds, &of_view, &err), "open", &err);
    const char *path = strsep(&words, " ");
    o.view = view;
    o.path = strcmp(path, "-") != 0 ? path : NULL;
    o.sequence_length = (uint32_t)strtoul(words, &words, 10);
    o.align = (uint32_t)strtoul(words, &words, 10);
    o.max_documents = (uint32_t)strtoul(words, &words, 10);
    o.whole_documents = (tokmap_whole_documents)strtoul(words, &words, 10);
    require(!tokmap_rows_write(ds, &o, &info, &err), "rows", &err);
    printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", info.n_rows, info.n_pieces,
           info.n_labels, info.n_bytes);
    tokmap_view_close(view);
}

int main(void)
{
    static char line[4096];
    while (fgets(line, sizeof line, stdin)) {
        char *rest = line;
        tokmap_dataset *ds;
        tokmap_error err;
        line[strcspn(line, "\n")] = '\0';
        const char *verb = strsep(&rest, " "), *name = strsep(&rest, " ");
        const char *path = strsep(&rest, " ");
        require(rest != NULL, "a line is a verb, a dataset, a path and words", NULL);
        require(!tokmap_dataset_open(&ds, name, &err), name, &err);
        if (strcmp(verb, "rows") == 0)
            write_rows(ds, path, rest);
        else if (strcmp(verb, "keep") == 0)
            write_kept(ds, strcmp(path, "-") != 0 ? path : NULL, rest);
        else
            write_where(ds, strcmp(path, "-") != 0 ? path : NULL, rest);
        tokmap_dataset_close(ds);
    }
    return 0;
}
