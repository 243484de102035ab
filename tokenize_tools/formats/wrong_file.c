/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/wrong_file.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "codec/decoder.h"
#include "formats/tar_header.h"
#include "base/base.h"
#include "base/utf8.h"

/* ---- Magic numbers ---- */

typedef enum wrong_kind {
    ARCHIVE,
    COMPRESSED,
    UTF_16_OR_32,
    BINARY,
    OWN,     /* files of tokmap */
    RECORDS, /* which their readers did not choose: of another --format, or not a regular file */
    MISSING, /* what stands for data that are elsewhere */
    WEB      /* pages of a crawl */
} wrong_kind;

typedef struct known_file {
    const char *name;
    wrong_kind kind;
    size_t n_bytes;
    const char *magic;
    bool in_text; /* text may begin like this: only with a control character is it this kind */
} known_file;

#define MAGIC(text) sizeof(text) - 1, text, false
#define MAGIC_WORD(text) sizeof(text) - 1, text, true

/* Files that a corpus may have in it by mistake; other binary files have a NUL. If one begins with
 * another, the longer one comes first. */
static const known_file known_files[] = {
    {"a zip archive", ARCHIVE, MAGIC("PK\x03\x04")},
    {"a zip archive", ARCHIVE, MAGIC("PK\x05\x06")},
    {"a zip archive", ARCHIVE, MAGIC("PK\x07\x08")},
    {"a 7-zip archive", ARCHIVE, MAGIC("7z\xBC\xAF\x27\x1C")},
    {"a RAR archive", ARCHIVE, MAGIC("Rar!\x1A\x07")},
    {"an ar archive", ARCHIVE, MAGIC("!<arch>\n")},
    {"a cabinet archive", ARCHIVE, MAGIC("MSCF\0\0\0\0")},
    {"an xar archive", ARCHIVE, MAGIC("xar!\0")},
    {"a squashfs image", ARCHIVE, MAGIC_WORD("hsqs")},
    {"an xz file", COMPRESSED, MAGIC("\xFD\x37zXZ\0")},
    {"an lz4 file", COMPRESSED, MAGIC("\x04\x22\x4D\x18")},
    {"an lz4 file", COMPRESSED, MAGIC("\x02\x21\x4C\x18")},
    {"an lzip file", COMPRESSED, MAGIC("LZIP\x01")},
    {"an lzma file", COMPRESSED, MAGIC("\x5D\0\0")},
    {"an lzop file", COMPRESSED, MAGIC("\x89LZO\0")},
    {"a compress file", COMPRESSED, MAGIC("\x1F\x9D")},
    {"a snappy file", COMPRESSED, MAGIC("\xFF\x06\0\0sNaPpY")},
    {"UTF-32 text", UTF_16_OR_32, MAGIC("\xFF\xFE\0\0")},
    {"UTF-32 text", UTF_16_OR_32, MAGIC("\0\0\xFE\xFF")},
    {"UTF-16 text", UTF_16_OR_32, MAGIC("\xFF\xFE")},
    {"UTF-16 text", UTF_16_OR_32, MAGIC("\xFE\xFF")},
    {"a Parquet file", RECORDS, MAGIC_WORD("PAR1")},
    {"an encrypted Parquet file", BINARY, MAGIC_WORD("PARE")},
    {"an Arrow file", RECORDS, MAGIC("ARROW1\0\0")},
    {"an Arrow stream", RECORDS, MAGIC("\xFF\xFF\xFF\xFF")},
    {"a Feather file", BINARY, MAGIC_WORD("FEA1")},
    {"an ORC file", BINARY, MAGIC_WORD("ORC")},
    {"an Avro file", BINARY, MAGIC("Obj\x01")},
    {"a WARC file", WEB, MAGIC("WARC/1.")},
    {"a PDF document", BINARY, MAGIC("%PDF-1.")},
    {"a PDF document", BINARY, MAGIC("%PDF-2.")},
    {"a PNG image", BINARY, MAGIC("\x89PNG\r\n\x1A\n")},
    {"a JPEG image", BINARY, MAGIC("\xFF\xD8\xFF")},
    {"a GIF image", BINARY, MAGIC_WORD("GIF8")},
    {"an RTF document", BINARY, MAGIC("{\\rtf1")},
    {"a tokmap index", OWN, MAGIC("\x89TMI\r\n\x1A\n")},
    {"a tokmap journal", OWN, MAGIC("\x89TMJ\r\n\x1A\n")},
    {"a late column of tokmap", OWN, MAGIC("\x89TMC\r\n\x1A\n")},
    {"a view of tokmap", OWN, MAGIC("\x89TMW\r\n\x1A\n")},
    {"a rows file of tokmap", OWN, MAGIC("\x89TMR\r\n\x1A\n")},
    {"a values file of an unfinished tokmap dataset", OWN, MAGIC("\x89TMV\r\n\x1A\n")},
    {"the state of a tokmap loader", OWN, MAGIC("\x89TMS\r\n\x1A\n")},
    {"a plan of tokmap", OWN, MAGIC("tokmap plan 1\nfolder /")},
    {"a plan of tokmap", OWN, MAGIC("tokmap plan 2\nfolder /")},
    {"a ledger of tokmap", OWN, MAGIC("{\"ledger\":1,\"event\":\"opened\",\"time\":\"")},
    {"a Git LFS pointer ('git lfs pull' fetches its file)", MISSING,
     MAGIC("version https://git-lfs.github.com/spec/v1\n")},
};

/* Kinds that no fixed string identifies. */
static const known_file tar = {.name = "a tar archive", .kind = ARCHIVE};
static const known_file cpio = {.name = "a cpio archive", .kind = ARCHIVE};
static const known_file bzip2 = {.name = "a bzip2 file", .kind = COMPRESSED};
static const known_file gzip_or_zstd = {.name = "gzip or zstd data", .kind = COMPRESSED};

static bool is_one_of(uint8_t byte, const char *bytes)
{
    return byte != 0 && strchr(bytes, byte) != NULL;
}

/* The two forms with a header of digits. */
static bool is_cpio(const uint8_t *b, size_t n)
{
    const size_t header_bytes = 76;
    if (n < header_bytes || memcmp(b, "07070", 5) != 0 || !is_one_of(b[5], "127"))
        return false;
    size_t i = 6;
    while (i < header_bytes && is_one_of(b[i], "0123456789abcdefABCDEF"))
        i++;
    return i == header_bytes;
}

static bool is_bzip2(const uint8_t *b, size_t n)
{
    return n >= 10 && memcmp(b, "BZh", 3) == 0 && b[3] >= '1' && b[3] <= '9' &&
           (memcmp(b + 4, "1AY&SY", 6) == 0 || memcmp(b + 4, "\x17\x72\x45\x38\x50\x90", 6) == 0);
}

static bool has_control(const uint8_t *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (b[i] < ' ' && !is_one_of(b[i], "\t\n\v\f\r\x1B"))
            return true;
    }
    return false;
}

static const known_file *find_known(const uint8_t *b, size_t n)
{
    for (size_t i = 0; i < sizeof known_files / sizeof *known_files; i++) {
        const known_file *k = &known_files[i];
        if (n >= k->n_bytes && memcmp(b, k->magic, k->n_bytes) == 0 &&
            (!k->in_text || has_control(b, n)))
            return k;
    }
    if (n >= TAR_BLOCK_BYTES && tar_is_header(b))
        return &tar;
    if (is_cpio(b, n))
        return &cpio;
    if (is_bzip2(b, n))
        return &bzip2;
    return decoder_recognize(b, n) ? &gzip_or_zstd : NULL;
}

const char *wrong_file_name(const uint8_t *bytes, size_t n_bytes)
{
    const known_file *known = find_known(bytes, n_bytes);
    return known ? known->name : NULL;
}

const char *wrong_file_own_name(const uint8_t *bytes, size_t n_bytes)
{
    const known_file *known = find_known(bytes, n_bytes);
    return known && known->kind == OWN ? known->name : NULL;
}

/* ---- Text that is not UTF-8 ---- */

/* Whether all units of this size are characters, without a byte order mark or control characters.
 * Single bytes with NULs in between may look like that; but then NULs are in every byte of a unit,
 * and hardly ever next to a blank. */
static bool is_wide(const uint8_t *b, size_t n, size_t unit_bytes, bool big_endian)
{
    bool after_high = false;
    size_t n_latin = 0, n_blank = 0, n_low_nul = 0;
    for (size_t i = 0; i + unit_bytes <= n; i += unit_bytes) {
        uint32_t c = 0;
        for (size_t k = 0; k < unit_bytes; k++)
            c |= (uint32_t)b[i + k] << 8 * (big_endian ? unit_bytes - 1 - k : k);
        bool high = c >= 0xD800 && c < 0xDC00, low = c >= 0xDC00 && c < 0xE000;
        if (low != after_high || (unit_bytes == 4 && high) || c > 0x10FFFF ||
            (c & 0xFFFE) == 0xFFFE || (c < ' ' && !is_one_of((uint8_t)c, "\t\n\v\f\r")))
            return false;
        after_high = high;
        n_latin += c < 0x100;
        n_blank += c == ' ' || c == '\n';
        n_low_nul += (c & 0xFF) == 0;
    }
    /* Two ASCII bytes look like one CJK character, and a NUL beside a blank like a blank. */
    return n >= unit_bytes && (unit_bytes == 4 || (n_blank > 0 && n_latin > 3 * n_low_nul &&
                                                   n_latin * 8 > n / unit_bytes));
}

static size_t count_malformed(const wrong_file_head *head)
{
    size_t n_bad = 0;
    for (size_t at = 0;;) {
        at += utf8_valid_prefix(head->bytes + at, head->n_bytes - at);
        if (at == head->n_bytes)
            return n_bad;
        size_t n = utf8_bad_bytes(head->bytes + at, head->n_bytes - at);
        if (n == 0) /* undecided without more bytes */
            return n_bad + (head->whole ? head->n_bytes - at : 0);
        n_bad += n;
        at += n;
    }
}

/* ---- JSON ---- */

/* Returns the next byte that is not white space, or 0; *at: the offset after it. */
static uint8_t next_nonblank(const wrong_file_head *head, size_t *at)
{
    while (*at < head->n_bytes && is_one_of(head->bytes[*at], " \t\r\n"))
        ++*at;
    return *at < head->n_bytes ? head->bytes[(*at)++] : 0;
}

static uint8_t first_nonblank(const wrong_file_head *head, size_t *at)
{
    *at = head->n_bytes >= 3 && memcmp(head->bytes, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    return next_nonblank(head, at);
}

/* ---- Names ---- */

/* The length of the name without this ending; 0: it has another one. */
static size_t without_ending(const char *name, size_t n, const char *ending)
{
    const size_t n_ending = strlen(ending);
    return n > n_ending && strncasecmp(name + n - n_ending, ending, n_ending) == 0 ? n - n_ending
                                                                                   : 0;
}

static size_t without_codec(const char *name)
{
    const size_t n = strlen(name), n_gzip = without_ending(name, n, ".gz");
    return n_gzip ? n_gzip : without_ending(name, n, ".zst");
}

bool wrong_name_is_compressed(const char *name)
{
    return without_codec(name) > 0;
}

/* Whether the name ends like this before .gz and .zst. */
static bool name_ends(const char *name, const char *ending)
{
    const size_t n_plain = without_codec(name);
    return without_ending(name, n_plain ? n_plain : strlen(name), ending) > 0;
}

/* Returns the records that a file of this name holds, such as "a Parquet file"; NULL: any. */
static const char *promised_records(const char *name)
{
    static const struct {
        const char *ending, *kind;
    } named[] = {{".parquet", "a Parquet file"}, {".arrow", "an Arrow file"},
                 {".feather", "a Feather file"}, {".jsonl", "JSON lines"},
                 {".ndjson", "JSON lines"},      {".tar", "a tar archive"},
                 {".tgz", "a tar archive"}};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (name_ends(name, named[i].ending))
            return named[i].kind;
    return NULL;
}

bool wrong_name_promises_records(const char *name)
{
    return promised_records(name) != NULL;
}

#define BINARY_DATA "binary data"

/* Whether a file of this name was meant to be read: then one of another kind is damaged. */
static bool name_promises(const wrong_file_head *head, const char *kind)
{
    static const char *const texts[] = {".txt", ".text", ".md", ".json", ".csv", ".tsv"};
    if (promised_records(head->name) ||
        (wrong_name_is_compressed(head->name) && !head->decompressed))
        return true;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (name_ends(head->name, texts[i]))
            return strcmp(kind, BINARY_DATA) == 0;
    return false;
}

corpus_format wrong_name_table(const char *name)
{
    return name_ends(name, ".csv")   ? CORPUS_CSV
           : name_ends(name, ".tsv") ? CORPUS_TSV
                                     : CORPUS_AUTO;
}

bool wrong_name_is_whole_json(const char *name)
{
    return name_ends(name, ".json");
}

bool wrong_name_is_one_json(const char *name)
{
    return wrong_name_is_whole_json(name) || name_ends(name, ".jsonc");
}

bool wrong_name_may_be_json(const char *name)
{
    static const char *const endings[] = {".json", ".jsonl", ".ndjson", ".tar", ".tgz"};
    const char *last = name_in_path(name);
    const size_t n_plain = without_codec(last), n = n_plain ? n_plain : strlen(last);
    const char *dot = memrchr(last, '.', n), *end = last + n;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (name_ends(name, endings[i]))
            return true;
    /* "part.00001", "data.jsonl~" and the like have no ending that says text. */
    while (dot && ++dot < end && isalpha((unsigned char)*dot))
        continue;
    return !dot || dot < end || strcasestr(last, ".json");
}

/* ---- All of it ---- */

#define ANYWAY "use --format text to pack it as it is"

/* Adds the kind to a failure. Data that are damaged or incomplete have none. */
#define FAIL_KIND(err, kind, ...) (fail(err, __VA_ARGS__), fail_kind(err, kind))

/* Whether the named format is taken at its word. */
static bool is_trusted(const reader_options *options)
{
    return options->format != CORPUS_AUTO && !options->only_text;
}

size_t wrong_file_head_bytes(const reader_options *options)
{
    return is_trusted(options) ? WRONG_FILE_ARCHIVE_BYTES : WRONG_FILE_HEAD_BYTES;
}

static bool check_known(const wrong_file_head *head, const reader_options *options, failure *err)
{
    static const char *const what_to_do[] = {
        [ARCHIVE] = ", which tokmap does not read; unpack it first",
        [COMPRESSED] = ", which tokmap does not read; unpack it first, or " ANYWAY,
        [UTF_16_OR_32] = "; convert it to UTF-8, or " ANYWAY,
        [BINARY] = ", not text; " ANYWAY,
        [OWN] = ", not text; " ANYWAY,
        [MISSING] = ", not text; " ANYWAY,
        [WEB] = "; of a WET file, this makes JSON lines with the package warcio: python3 -c "
                "\"import json, sys; from warcio.archiveiterator import ArchiveIterator as A; "
                "[print(json.dumps({'text': r.content_stream().read().decode('utf-8', 'replace'), "
                "'url': r.rec_headers.get_header('WARC-Target-URI')})) for r in "
                "A(sys.stdin.buffer) if r.rec_type == 'conversion']\" <FILE >FILE.jsonl",
        [RECORDS] = ", which can be read only whole and from a file that is not compressed; copy "
                    "it to one, or use --format text --utf8 raw to pack its bytes as they are",
    };
    const bool given = options->format != CORPUS_AUTO, forced = options->utf8 == UTF8_RAW;
    const known_file *known = find_known(head->bytes, head->n_bytes);
    if (!known)
        return true;
    /* The input was decompressed once if it could be. */
    const bool twice = known == &gzip_or_zstd || (known->kind == COMPRESSED && head->decompressed);
    if (twice)
        return FAIL_KIND(err, "a file that is compressed twice",
                         "is compressed twice, with %s inside; decompress it once first",
                         known->name);
    if (is_trusted(options) && (forced || (known->kind != ARCHIVE && known->kind != RECORDS)))
        return true;
    if (known == &tar && (options->format == CORPUS_CSV || options->format == CORPUS_TSV))
        return FAIL_KIND(err, known->name,
                         "is a tar archive, and CSV and TSV are not read from archives; unpack it "
                         "first");
    if (known == &tar) /* tar_reader.c reads the outer one */
        return FAIL_KIND(err, known->name,
                         "is a tar archive inside another; unpack the outer one first");
    if (known->kind == RECORDS && given)
        return fail(err,
                    "is %s, not text; leave out --format and --lines to read its rows, or add "
                    "--utf8 raw to pack its bytes as they are",
                    known->name);
    fail(err, "is %s%s", known->name, what_to_do[known->kind]);
    return fail_kind(err, known->kind == RECORDS || known->kind == MISSING ? NULL : known->name);
}

/* In JSON lines a NUL makes only its document bad, which --on-error handles. */
static bool check_nul(const wrong_file_head *head, const reader_options *options, failure *err)
{
    const uint8_t *nul = memchr(head->bytes, 0, head->n_bytes);
    bool separates = options->separator && options->separator_bytes == 1 && !*options->separator;
    if (!nul || separates || options->utf8 == UTF8_RAW)
        return true;
    for (size_t unit_bytes = 4; unit_bytes >= 2; unit_bytes /= 2) {
        if (is_wide(head->bytes, head->n_bytes, unit_bytes, false) ||
            is_wide(head->bytes, head->n_bytes, unit_bytes, true))
            return FAIL_KIND(
                err, unit_bytes == 4 ? "UTF-32 text" : "UTF-16 text",
                "is UTF-%zu text without a byte order mark; convert it to UTF-8, or " ANYWAY,
                unit_bytes * 8);
    }
    size_t at;
    return first_nonblank(head, &at) == '{' || wrong_file_is_array(head) ||
           FAIL_KIND(err, BINARY_DATA,
                     "byte %zu: a NUL, so this is not text; if NULs end its documents, use "
                     "--separator '\\0'; " ANYWAY,
                     (size_t)(nul - head->bytes));
}

bool wrong_file_is_array(const wrong_file_head *head)
{
    size_t at;
    return wrong_name_is_whole_json(head->name) && first_nonblank(head, &at) == '[' &&
           is_one_of(next_nonblank(head, &at), "{]");
}

static bool check_content(const wrong_file_head *head, const reader_options *options, failure *err)
{
    if (!check_known(head, options, err))
        return false;
    if (is_trusted(options))
        return true;
    size_t at;
    const uint8_t first = first_nonblank(head, &at);
    /* A text may begin with "[Chorus]" or a link. */
    if (options->format == CORPUS_AUTO && first == '[' &&
        is_one_of(next_nonblank(head, &at), "{\"[") && !wrong_file_is_array(head))
        return FAIL_KIND(err, "a JSON array",
                         "is a JSON array; write its elements as JSON lines, one object per line, "
                         "or " ANYWAY);
    if (!check_nul(head, options, err))
        return false;
    const size_t n_bad = options->utf8_given ? 0 : count_malformed(head);
    return n_bad * 100 <= head->n_bytes ||
           FAIL_KIND(err, "data that is not UTF-8",
                     "%zu of the first %zu bytes are not valid UTF-8; convert it to UTF-8, or use "
                     "--utf8 replace to pack it with U+FFFD in their place",
                     n_bad, head->n_bytes);
}

wrong_file_head wrong_file_head_of(const window *w, const reader_options *options)
{
    const size_t n = wrong_file_head_bytes(options);
    return (wrong_file_head){
        .bytes = window_text(w),
        .n_bytes = window_size(w) < n ? window_size(w) : n,
        .whole = window_size(w) <= n && w->at_end,
        .decompressed = w->codec != NULL,
        .name = w->name,
    };
}

bool wrong_file_strip(const reader_options *options, failure *err)
{
    static const char *const advice[] = {"; if NULs", ", or use --", ", or add --", "; use --"};
    const bool advised =
        !options->fields_only && (options->format == CORPUS_AUTO || !options->only_text);
    for (size_t i = 0; !advised && i < sizeof advice / sizeof *advice; i++) {
        char *at = strstr(err->text, advice[i]);
        if (at)
            *at = 0;
    }
    return false;
}

bool wrong_file_check(const wrong_file_head *head, const reader_options *options, failure *err)
{
    if (check_content(head, options, err))
        return true;
    if (err->kind && name_promises(head, err->kind))
        err->kind = NULL;
    return false;
}

/* ---- Names and text ---- */

bool wrong_name_check(const wrong_file_head *head, failure *err)
{
    static const uint8_t magic[] = "\x28\xB5\x2F\xFD", gzip[sizeof magic] = "\x1F\x8B\x08";
    const size_t n_plain = without_codec(head->name), n = head->n_bytes;
    const char *promised = promised_records(head->name);
    if (promised)
        return fail(err,
                    "its name says %s, but its bytes are text; repair or remove it, or " ANYWAY,
                    promised);
    if (n_plain == 0 || head->decompressed)
        return true;
    const bool begun = n < sizeof magic &&
                       (memcmp(head->bytes, magic, n) == 0 || memcmp(head->bytes, gzip, n) == 0);
    return (!begun && count_malformed(head) * 100 <= n) ||
           fail(err,
                "its name ends in %s, but its bytes are neither compressed nor text; repair or "
                "remove it, or " ANYWAY,
                head->name + n_plain);
}
