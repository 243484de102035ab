/* SPDX-License-Identifier: Apache-2.0 */
/* megatron.c - the index of a Megatron .bin: which bytes are which sequence, and which sequences
 * are which document.
 *
 * 0  magic "MMIDIDX\0\0"        34            S int32 sequence lengths in tokens 9  u64 version = 1
 * 34 + 4S       S int64 sequence starts in bytes of the .bin 17  u8 dtype code              34 +
 * 12S      D int64 document starts in sequences, S at the end 18  u64 S                      34 +
 * 12S + 8D S int8 modes, only in multimodal files 26  u64 D = documents + 1
 *
 * The header does not say "multimodal": only the size of the file does. */
#include "foreign/foreign.h"

#include <inttypes.h>
#include <string.h>

static const char magic[] = "MMIDIDX\0"; /* including the terminating zero */

enum {
    N_MAGIC = sizeof magic,
    HEADER_BYTES = 34
};

static bool decode_dtype(foreign_layout *out, uint8_t code, failure *err)
{
    static const char *const names[] = {"uint8", "int8",    "int16",   "int32",
                                        "int64", "float64", "float32", "uint16"};
    if (code < 1 || code > 8)
        return fail(err, "is damaged: there is no Megatron dtype %u", code);
    if (code != 8 && code != 4)
        return fail(err,
                    "%s tokens cannot be adopted in place: tokmap reads uint16 and int32 "
                    "from Megatron files",
                    names[code - 1]);
    out->token_bytes = code == 8 ? 2 : 4;
    out->is_signed = code == 4;
    return true;
}

/* Computes the size of an index without modes; false if it exceeds 2^64. */
static bool index_size(uint64_t n_sequences, uint64_t n_items, uint64_t *size)
{
    uint64_t sequences_bytes, items_bytes;
    return !__builtin_mul_overflow(n_sequences, 12, &sequences_bytes) &&
           !__builtin_mul_overflow(n_items, 8, &items_bytes) &&
           !__builtin_add_overflow(sequences_bytes, items_bytes, size) &&
           !__builtin_add_overflow(*size, HEADER_BYTES, size);
}

static bool recognise_megatron(const uint8_t *head, size_t n_head, uint64_t file_bytes)
{
    (void)file_bytes;
    return n_head >= N_MAGIC && memcmp(head, magic, N_MAGIC) == 0;
}

static bool decode_megatron(foreign_layout *out, const foreign_files *files, failure *err)
{
    const foreign_bytes *idx = files->table;
    const uint64_t bin_bytes = files->tokens->size;
    *out = (foreign_layout){.boundaries = FOREIGN_BOUNDARIES_LISTED};
    uint8_t header[HEADER_BYTES];
    if (!foreign_read(idx, 0, header, sizeof header, err))
        return false;
    if (memcmp(header, magic, N_MAGIC) != 0)
        return fail(err, "is not a Megatron index");
    uint64_t version = le_get64(header + 9);
    if (version != 1)
        return fail(err, "is a Megatron index of version %" PRIu64 "; only version 1 is supported",
                    version);
    if (!decode_dtype(out, header[17], err))
        return false;
    out->n_sequences = le_get64(header + 18);
    out->n_table_items = le_get64(header + 26);
    uint64_t expected, with_modes;
    bool fits = index_size(out->n_sequences, out->n_table_items, &expected);
    if (!fits || expected != idx->size) {
        if (fits && !__builtin_add_overflow(expected, out->n_sequences, &with_modes) &&
            with_modes == idx->size) {
            return fail(err, "is a multimodal Megatron index (a mode byte for each "
                             "sequence), which is not supported");
        }
        return fail(err,
                    "is damaged: %" PRIu64 " bytes do not fit %" PRIu64 " sequences and %" PRIu64
                    " document indices",
                    idx->size, out->n_sequences, out->n_table_items);
    }
    if (out->n_table_items == 0)
        return fail(err, "is damaged: it has no document indices, not even the first");
    if (bin_bytes % out->token_bytes != 0)
        return fail(err, "does not fit its .bin: %" PRIu64 " bytes are not a whole number of %s",
                    bin_bytes, out->is_signed ? "int32" : "uint16");
    out->n_tokens = bin_bytes / out->token_bytes;
    return true;
}

typedef struct sequence_walk {
    foreign_cursor lengths, starts;
    uint64_t done;      /* sequences */
    uint64_t at_byte;   /* of the .bin */
    uint64_t bin_bytes; /* its size */
    uint32_t token_bytes;
} sequence_walk;

static bool next_sequence(sequence_walk *walk, uint64_t *n_tokens, failure *err)
{
    const uint8_t *length_bytes = foreign_cursor_next(&walk->lengths, 4, err);
    const uint8_t *start_bytes = foreign_cursor_next(&walk->starts, 8, err);
    if (!length_bytes || !start_bytes)
        return false;
    uint64_t length = le_get32(length_bytes), start = le_get64(start_bytes);
    if (length > INT32_MAX)
        return fail(err, "is damaged: sequence %" PRIu64 " has the length %" PRId64, walk->done,
                    (int64_t)length - (INT64_C(1) << 32));
    if (start != walk->at_byte)
        return fail(err,
                    "sequence %" PRIu64 " starts at byte %" PRIu64
                    " and the one before it ends at %" PRIu64
                    ": only sequences in order and without gaps can be adopted in place",
                    walk->done, start, walk->at_byte);
    /* The product is below 2^31 times 4, so it does not overflow, and at_byte <= bin_bytes always
     * holds. */
    if (length * walk->token_bytes > walk->bin_bytes - walk->at_byte)
        return fail(err,
                    "sequence %" PRIu64 " extends beyond the .bin, which has %" PRIu64 " bytes",
                    walk->done, walk->bin_bytes);
    walk->at_byte += length * walk->token_bytes;
    walk->done++;
    *n_tokens = length;
    return true;
}

/* Walks the documents: each has the sequences from one index to the next, [begin, end). */
static bool walk_documents(const foreign_layout *layout, foreign_cursor *indices,
                           sequence_walk *walk, const foreign_sink *sink, failure *err)
{
    uint64_t begin = 0;
    for (uint64_t item = 0; item < layout->n_table_items; item++) {
        uint64_t document_tokens = 0;
        const uint8_t *p = foreign_cursor_next(indices, 8, err);
        if (!p)
            return false;
        const uint64_t end = le_get64(p);
        if (end < begin || end > layout->n_sequences || (item == 0 && end > 0))
            return fail(err,
                        "is damaged: document index %" PRIu64 " is %" PRIu64 ", after %" PRIu64
                        ", of %" PRIu64 " sequences",
                        item, end, begin, layout->n_sequences);
        for (uint64_t s = begin; s < end; s++) {
            uint64_t n_tokens = 0;
            if (!next_sequence(walk, &n_tokens, err))
                return false;
            document_tokens += n_tokens;
        }
        if (item > 0 && !sink->document(sink->user, document_tokens))
            return false;
        begin = end;
    }
    return true;
}

static bool list_documents(const foreign_layout *layout, const foreign_bytes *idx,
                           const foreign_sink *sink, failure *err)
{
    uint64_t starts_offset = HEADER_BYTES + 4 * layout->n_sequences;
    uint64_t indices_offset = starts_offset + 8 * layout->n_sequences;
    sequence_walk walk = {.lengths = {idx, HEADER_BYTES, starts_offset},
                          .starts = {idx, starts_offset, indices_offset},
                          .bin_bytes = layout->n_tokens * layout->token_bytes,
                          .token_bytes = layout->token_bytes};
    foreign_cursor indices = {idx, indices_offset, idx->size};
    if (!walk_documents(layout, &indices, &walk, sink, err))
        return false;
    if (walk.done != layout->n_sequences)
        return fail(err, "is damaged: its documents hold %" PRIu64 " of %" PRIu64 " sequences",
                    walk.done, layout->n_sequences);
    if (walk.at_byte != walk.bin_bytes)
        return fail(err, "does not fit its .bin: the sequences end at byte %" PRIu64 " of %" PRIu64,
                    walk.at_byte, walk.bin_bytes);
    return true;
}

const foreign_reader foreign_megatron = {
    .name = "megatron",
    .help = "X.bin and X.idx (uint16, int32); FILE is either of them",
    .kind = "a Megatron index",
    .tokens_suffix = ".bin",
    .table_suffix = ".idx",
    .table_is_refused = true,
    .recognise = recognise_megatron,
    .decode = decode_megatron,
    .documents = list_documents,
};
