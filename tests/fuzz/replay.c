/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - runs a fuzz target over the files of its corpus, without a fuzzing engine.
 *
 * `replay_NAME` replays tests/fuzz/corpus/NAME below the current folder, `replay_NAME FILE...`
 * these files. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

/* The input lies in memory of exactly its size, so that a sanitizer sees a step over its end. */
static int replay_file(const char *path)
{
    struct stat st;
    FILE *f = fopen(path, "rb");
    uint8_t *data = NULL;
    int ok = 0;
    fprintf(stderr, "replaying %s\n", path); /* after a crash, the last one is it */
    if (f && fstat(fileno(f), &st) == 0) {
        data = malloc((size_t)st.st_size);
        ok = st.st_size == 0 || (data && fread(data, (size_t)st.st_size, 1, f) == 1);
    }
    if (ok)
        LLVMFuzzerTestOneInput(data, (size_t)st.st_size);
    free(data);
    if (f)
        fclose(f);
    return ok;
}

static int replay_folder(const char *folder)
{
    struct dirent **entries;
    int n_files = 0;
    int n_entries = scandir(folder, &entries, NULL, alphasort);
    for (int i = 0; i < n_entries; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            n_files += replay_file(path);
        free(entries[i]);
    }
    if (n_entries >= 0)
        free(entries);
    return n_files;
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    const char *name = slash ? slash + 1 : argv[0];
    const char *target = strncmp(name, "replay_", 7) == 0 ? name + 7 : name;
    char folder[512];
    int n_files = 0;
    for (int i = 1; i < argc; i++)
        n_files += replay_file(argv[i]);
    snprintf(folder, sizeof folder, "tests/fuzz/corpus/%s", target);
    if (argc == 1)
        n_files = replay_folder(folder);
    if (n_files == 0) {
        printf("FAIL %s: no file to replay in %s\n", name, folder);
        return 1;
    }
    printf("ok %s %d files\n", name, n_files);
    return 0;
}
