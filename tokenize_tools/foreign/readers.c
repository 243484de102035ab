/* SPDX-License-Identifier: Apache-2.0 */
#include "foreign/readers.h"

#include <string.h>

#include "formats/wrong_file.h"

#define ROW(x) &foreign_##x,
const foreign_reader *const foreign_readers[] = {FOREIGN_READERS(ROW) NULL};

const char *foreign_other_kind(const uint8_t *head, size_t n_head, uint64_t file_bytes)
{
    static const struct {
        const char *magic;
        size_t n_magic;
        const char *kind;
    } kinds[] = {
        {"\x28\xb5\x2f\xfd", 4, "a zstd file"}, {"PAR1", 4, "a Parquet file"},
        {"ARROW1\0\0", 8, "an Arrow file"},     {"PK\3\4", 4, "a zip or .npz file"},
        {"TNTIDX\0\0", 8, "a fairseq index"},   {"LITPKDS", 7, "a lit-gpt packed file"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (n_head >= kinds[i].n_magic && memcmp(head, kinds[i].magic, kinds[i].n_magic) == 0)
            return kinds[i].kind;
    /* The two bytes of the magic could be one token; the method deflate and no reserved flags make
     * it a gzip header. */
    if (n_head >= 4 && head[0] == 0x1f && head[1] == 0x8b && head[2] == 8 && head[3] < 32)
        return "a gzip file";
    for (const foreign_reader *const *r = foreign_readers; *r; r++)
        if ((*r)->recognise && (*r)->recognise(head, n_head, file_bytes))
            return (*r)->kind;
    return wrong_file_own_name(head, n_head);
}
