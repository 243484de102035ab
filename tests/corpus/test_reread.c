/* SPDX-License-Identifier: Apache-2.0 */
/* test_reread.c - Arrow files, tar archives and CSV, the seeds of their fuzz targets: resuming
 * after every batch, and changed bytes. */
#include <dirent.h>

#include "fuzz/reread.h"
#include "support/check.h"

#define MAX_SEED ((size_t)1 << 16)

typedef struct seed {
    uint8_t bytes[MAX_SEED];
    size_t n;
} seed;

static bool read_seed(const char *folder, const char *name, seed *s)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = *name == '.' ? NULL : fopen(path, "rb");
    if (!f)
        return false;
    s->n = fread(s->bytes, 1, MAX_SEED, f);
    fclose(f);
    return s->n > REREAD_BYTES;
}

/* CSV has no bytes of its own: the first byte of a seed says that it is that, or TSV. */
static void name_format(seed *s)
{
    const corpus_format format = s->bytes[0] & 1 ? CORPUS_TSV : CORPUS_CSV;
    s->bytes[0] = (uint8_t)(s->bytes[0] / CORPUS_N_FORMATS * CORPUS_N_FORMATS + format);
}

/* Calls a function for each seed in a folder. */
static void for_seeds(const char *folder, size_t n_expected, void (*call)(const seed *s))
{
    static seed s;
    size_t n = 0;
    DIR *d = opendir(folder);
    if (!d)
        SKIP("%s is not below this folder", folder);
    for (const struct dirent *entry; (entry = readdir(d)) != NULL;) {
        if (read_seed(folder, entry->d_name, &s)) {
            if (strstr(folder, "/csv"))
                name_format(&s);
            call(&s);
            n++;
        }
    }
    closedir(d);
    CHECK(n >= n_expected);
}

/* The fourth byte chooses the place. */
static void resume_everywhere(const seed *s)
{
    uint8_t choice[REREAD_BYTES];
    memcpy(choice, s->bytes, sizeof choice);
    for (int size = 0; size < 8; size++) {
        choice[2] = (uint8_t)(size << 4 | size);
        for (int place = 0; place < 64; place++) {
            choice[3] = (uint8_t)(place + 64);
            reread_input(choice, s->bytes + REREAD_BYTES, s->n - REREAD_BYTES);
        }
    }
}

static void change_bytes(const seed *s)
{
    static uint8_t changed[MAX_SEED];
    const int n_mutants = 300;
    for (int i = 0; i < n_mutants; i++) {
        size_t n = s->n - REREAD_BYTES;
        memcpy(changed, s->bytes + REREAD_BYTES, n);
        /* Half of the changes are near the beginning, where the metadata is. */
        for (uint32_t k = check_below(4); k < 4; k++) {
            const uint32_t below = check_below(2) ? (uint32_t)n : (uint32_t)(n < 700 ? n : 700);
            static const uint8_t values[] = {0, 1, 0x7F, 0x80, 0xFF};
            changed[check_below(below)] =
                check_below(2) ? values[check_below(5)] : (uint8_t)check_below(256);
        }
        if (check_one_in(8))
            n = check_below((uint32_t)n);
        reread_input(s->bytes, changed, n);
    }
}

TEST(arrow_resumes_after_every_batch)
{
    for_seeds("tests/fuzz/corpus/arrow", 12, resume_everywhere);
}

TEST(tar_resumes_after_every_batch)
{
    for_seeds("tests/fuzz/corpus/tar", 5, resume_everywhere);
}

TEST(csv_resumes_after_every_batch)
{
    for_seeds("tests/fuzz/corpus/csv", 9, resume_everywhere);
}

TEST(changed_csv_is_read_or_refused)
{
    for (int i = 0; i < 4; i++)
        for_seeds("tests/fuzz/corpus/csv", 9, change_bytes);
}

TEST(changed_arrow_is_read_or_refused)
{
    for_seeds("tests/fuzz/corpus/arrow", 12, change_bytes);
}

TEST(changed_tar_is_read_or_refused)
{
    for (int i = 0; i < 2; i++)
        for_seeds("tests/fuzz/corpus/tar", 5, change_bytes);
}
