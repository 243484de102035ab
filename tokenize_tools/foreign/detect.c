/* detect.c - what the first bytes of a file give away, and raw tokens, which give away
 * nothing. */
#include "foreign/foreign.h"

#include <string.h>

static const char *const format_names[] = {NULL, "megatron", "numpy", "llmc", "datatrove", "raw"};

const char *foreign_format_name(foreign_format format)
{
    return format_names[format];
}

static bool starts_with(const uint8_t *head, size_t n_head, const void *magic, size_t n_magic)
{
    return n_head >= n_magic && memcmp(head, magic, n_magic) == 0;
}

/* Four bytes of magic could be two u16 tokens; with a small version after them it is no accident.
 * The evaluation files are recognised too, so that they can be refused by name. */
static bool is_llmc(const uint8_t *head, size_t n_head, uint64_t file_bytes)
{
    if (n_head < 12 || file_bytes < 1024 || le_get32(head + 4) > 255)
        return false;
    uint32_t magic = le_get32(head);
    return magic == 20240520 || magic == 20240522 || magic == 20240801;
}

foreign_format foreign_recognise(const uint8_t *head, size_t n_head, uint64_t file_bytes)
{
    if (starts_with(head, n_head, "MMIDIDX\0\0", 9))
        return FOREIGN_MEGATRON;
    if (starts_with(head, n_head, "\x93NUMPY", 6))
        return FOREIGN_NUMPY;
    return is_llmc(head, n_head, file_bytes) ? FOREIGN_LLMC : FOREIGN_NONE;
}

const char *foreign_other_kind(const uint8_t *head, size_t n_head, uint64_t file_bytes)
{
    static const struct {
        const char *magic;
        size_t n_magic;
        const char *kind;
    } kinds[] = {
        {"\x28\xb5\x2f\xfd", 4, "a zstd file"},     {"PAR1", 4, "a Parquet file"},
        {"ARROW1\0\0", 8, "an Arrow file"},         {"PK\3\4", 4, "a zip or .npz file"},
        {"\x89TMI\r\n\x1a\n", 8, "a tokmap index"}, {"TNTIDX\0\0", 8, "a fairseq index"},
        {"LITPKDS", 7, "a lit-gpt packed file"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (starts_with(head, n_head, kinds[i].magic, kinds[i].n_magic))
            return kinds[i].kind;
    /* Two bytes would be one token: method deflate and no reserved flags make it a gzip header. */
    if (n_head >= 4 && head[0] == 0x1f && head[1] == 0x8b && head[2] == 8 && head[3] < 32)
        return "a gzip file";
    switch (foreign_recognise(head, n_head, file_bytes)) {
    case FOREIGN_MEGATRON:
        return "a Megatron index";
    case FOREIGN_NUMPY:
        return "a NumPy .npy file with its header";
    case FOREIGN_LLMC:
        return "an llm.c file with its header";
    default:
        return NULL;
    }
}

bool foreign_raw_decode(foreign_layout *out, uint64_t file_bytes, uint32_t token_bytes,
                        foreign_error *err)
{
    *out = (foreign_layout){.format = FOREIGN_RAW,
                            .borders = FOREIGN_BORDERS_UNKNOWN,
                            .token_bytes = token_bytes,
                            .n_tokens = file_bytes / token_bytes};
    if (file_bytes % token_bytes != 0) {
        return foreign_refuse(err, "is no raw token file of u%u: %llu bytes are no multiple of %u",
                              8 * token_bytes, (unsigned long long)file_bytes, token_bytes);
    }
    return true;
}
