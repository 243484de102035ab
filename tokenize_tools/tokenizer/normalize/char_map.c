/* SPDX-License-Identifier: Apache-2.0 */
/* char_map.c - the steps are applied to every code point once, when the table is made.
 *
 * Canonical order is rarely missing in a text: while combining classes do not fall, the table is
 * right. Where they do, the characters since the last one of class 0, up to the next one, are
 * mapped again by the steps themselves. */
#include "tokenizer/normalize/char_map.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/utf8.h"

enum {
    PAGE = 128,
    N_PAGES = 0x110000 / PAGE,
    LONGEST = 3 * NFKD_LONGEST, /* code points of one image: each with a blank on both sides */
    CHUNK_BYTES = 4096,
    BLOCK_BYTES = 32,
    NO_BYTE = 0x80
};

typedef enum entry_kind {
    ENTRY_TEXT,   /* n_bytes at offset of the texts */
    ENTRY_ABSENT, /* the same, but there was nothing before CHAR_ORDER */
    ENTRY_SAME,   /* the character itself */
    ENTRY_BLANKS  /* the character with a blank on both sides */
} entry_kind;

typedef struct map_entry {
    uint32_t offset;
    uint8_t n_bytes, kind;
    /* Combining classes of the first and last code point, before CHAR_ORDER. */
    uint8_t lead, trail;
} map_entry;

struct char_map {
    char_step before[CHAR_MAP_STEPS], after[CHAR_MAP_STEPS]; /* CHAR_ORDER */
    size_t n_before, n_after;
    bool ordered;
    uint16_t index[N_PAGES];
    map_entry (*pages)[PAGE];
    size_t n_pages, pages_capacity;
    text_buffer texts;
    size_t growth;      /* bytes out for each byte in, at most */
    uint8_t ascii[128]; /* the byte, or NO_BYTE */
    bool fold;          /* ASCII letters become lower case */
    bool regular;       /* otherwise U+0020 to U+007E stay as they are */
};

/* ---- One step for one code point: returns how many come out ---- */

static bool is_ideograph(uint32_t c)
{
    /* As BertNormalizer has them: the fifth range begins at 2B920 there. */
    static const uint32_t ranges[][2] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF},
                                         {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF},
                                         {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (c - ranges[i][0] <= ranges[i][1] - ranges[i][0])
            return true;
    return false;
}

static bool nmt_removes(uint32_t c)
{
    return (c >= 1 && c <= 8) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F ||
           c == 0x9F;
}

static bool nmt_blanks(uint32_t c)
{
    return c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
           (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
           c == 0xFEFF || c == 0xFFFD;
}

static size_t put_one(uint32_t c, uint32_t *out)
{
    *out = c;
    return 1;
}

static size_t put_compatible(uint32_t c, uint32_t *out)
{
    uint32_t canonical[4];
    const size_t n = unicode_nfkd(c, out), n_canonical = unicode_nfd(c, canonical);
    const bool same = n == n_canonical && memcmp(out, canonical, n * sizeof *out) == 0;
    return same ? put_one(c, out) : n;
}

static size_t put_spaced(uint32_t c, uint32_t *out)
{
    if (!is_ideograph(c))
        return put_one(c, out);
    out[0] = out[2] = ' ';
    out[1] = c;
    return 3;
}

static size_t put_step(char_step step, uint32_t c, uint32_t *out)
{
    switch (step) {
    case CHAR_NFD:
        return unicode_nfd(c, out);
    case CHAR_NFKD:
        return unicode_nfkd(c, out);
    case CHAR_COMPATIBLE:
        return put_compatible(c, out);
    case CHAR_STRIP_MARKS:
        return unicode_hf_is(HF_MARK, c) ? 0 : put_one(c, out);
    case CHAR_STRIP_NONSPACING:
        return unicode_hf_is(HF_NONSPACING, c) ? 0 : put_one(c, out);
    case CHAR_LOWERCASE:
        return unicode_lowercase(c, out);
    case CHAR_NMT:
        return nmt_removes(c) ? 0 : put_one(nmt_blanks(c) ? ' ' : c, out);
    case CHAR_CLEAN:
        return unicode_hf_is(HF_CONTROL, c)
                   ? 0
                   : put_one(unicode_class_of(c) == CLASS_SPACE ? ' ' : c, out);
    case CHAR_IDEOGRAPHS:
        return put_spaced(c, out);
    case CHAR_ORDER:
        break;
    }
    return put_one(c, out);
}

/* A code point becomes at most NFKD_LONGEST by a decomposition and three by a blank on both sides.
 * Whatever the steps, no more are made of one: what was decomposed stays as it is. */
typedef struct char_image {
    uint32_t c[LONGEST];
    size_t n;
} char_image;

static void apply(const char_step *steps, size_t n_steps, char_image *image)
{
    for (size_t i = 0; i < n_steps; i++) {
        uint32_t from[LONGEST];
        const size_t n = image->n;
        memcpy(from, image->c, n * sizeof *from);
        image->n = 0;
        for (size_t k = 0; k < n; k++) {
            uint32_t parts[NFKD_LONGEST];
            const size_t n_parts = put_step(steps[i], from[k], parts);
            for (size_t p = 0; p < n_parts && image->n < LONGEST; p++)
                image->c[image->n++] = parts[p];
        }
    }
}

/* Writes the text of the steps after CHAR_ORDER. */
static size_t finish_image(const char_map *m, char_image *image, uint8_t text[LONGEST * 4])
{
    size_t n = 0;
    apply(m->after, m->n_after, image);
    for (size_t i = 0; i < image->n; i++)
        n += utf8_encode(image->c[i], text + n);
    return n;
}

/* ---- New ---- */

static bool make_entry(char_map *m, uint32_t c, map_entry *e)
{
    uint8_t text[LONGEST * 4], own[4];
    char_image image = {{c}, 1};
    *e = (map_entry){0};
    apply(m->before, m->n_before, &image);
    nfc_workspace workspace = {image.c, LONGEST}; /* no run of marks needs more */
    if (m->ordered && !nfc_order(&workspace, image.n))
        return false;
    if (image.n == 0)
        e->kind = ENTRY_ABSENT;
    if (image.n > 0 && m->ordered) {
        e->lead = unicode_combining_class(image.c[0]);
        e->trail = unicode_combining_class(image.c[image.n - 1]);
    }
    const size_t n = finish_image(m, &image, text);
    const size_t n_own = utf8_encode(c, own);
    if (c < 128)
        m->ascii[c] = n == 1 ? text[0] : NO_BYTE;
    if (m->growth * n_own < n)
        m->growth = (n + n_own - 1) / n_own;
    if (image.n == 1 && image.c[0] == c) {
        e->kind = ENTRY_SAME;
        return true;
    }
    if (image.n == 3 && image.c[0] == ' ' && image.c[1] == c && image.c[2] == ' ') {
        e->kind = ENTRY_BLANKS;
        return true;
    }
    e->n_bytes = (uint8_t)n;
    e->offset = n > 0 ? (uint32_t)m->texts.n_bytes : 0;
    return text_buffer_append(&m->texts, text, n);
}

/* A page that equals the last one is not kept. */
static bool make_page(char_map *m, uint32_t number)
{
    if (!array_reserve(&m->pages, &m->pages_capacity, m->n_pages + 1, sizeof *m->pages))
        return false;
    map_entry *page = m->pages[m->n_pages];
    for (uint32_t i = 0; i < PAGE; i++) {
        const uint32_t c = number * PAGE + i;
        page[i] = (map_entry){.kind = ENTRY_SAME};
        if (c - 0xD800 >= 0x800 && !make_entry(m, c, &page[i]))
            return false;
    }
    if (m->n_pages == 0 || memcmp(page, m->pages[m->n_pages - 1], sizeof *m->pages) != 0)
        m->n_pages++;
    m->index[number] = (uint16_t)(m->n_pages - 1);
    return true;
}

/* Nothing is left to be ordered if all characters of a class other than 0 are removed later. */
static bool needs_order(const char_map *m)
{
    for (uint32_t c = 0; c < 0x110000; c++) {
        char_image image = {{c}, 1};
        if (unicode_combining_class(c) == 0)
            continue;
        apply(m->after, m->n_after, &image);
        if (image.n > 0)
            return true;
    }
    return false;
}

static void find_regular(char_map *m)
{
    m->fold = m->ascii['A'] == 'a';
    m->regular = m->ascii['\n'] != NO_BYTE;
    for (unsigned c = 0x20; c < 0x7F; c++) {
        const bool upper = c >= 'A' && c <= 'Z';
        m->regular &= m->ascii[c] == (upper && m->fold ? c + 0x20 : c);
    }
}

char_map *char_map_new(const char_step *steps, size_t n_steps)
{
    char_map *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    for (size_t i = 0; i < n_steps; i++) {
        if (steps[i] == CHAR_ORDER)
            m->ordered = true;
        else if (m->ordered)
            m->after[m->n_after++] = steps[i];
        else
            m->before[m->n_before++] = steps[i];
    }
    m->ordered = m->ordered && needs_order(m);
    m->growth = 3; /* ENTRY_BLANKS */
    bool made = true;
    for (uint32_t page = 0; page < N_PAGES && made; page++)
        made = make_page(m, page);
    if (made)
        made = text_buffer_reserve(&m->texts, 0); /* the padding is read */
    if (made) {
        text_buffer_span(&m->texts);
        find_regular(m);
        return m;
    }
    char_map_free(m);
    return NULL;
}

void char_map_free(char_map *m)
{
    if (!m)
        return;
    free(m->pages);
    text_buffer_free(&m->texts);
    free(m);
}

static const map_entry *entry_of(const char_map *m, uint32_t c)
{
    return &m->pages[m->index[c / PAGE]][c % PAGE];
}

/* ---- Run ---- */

typedef struct map_run {
    const char_map *m;
    nfc_workspace *workspace;
    text_span text;
    size_t at;
    text_buffer *out;
    /* The last character of class 0 in the text and what it became, and the class now. */
    size_t starter_at, starter_out;
    uint8_t class;
} map_run;

/* One block at a time, which is written whole, and counts only if nothing in it is irregular. */
static void run_blocks(map_run *r, size_t end)
{
    const uint8_t *in = r->text.bytes + r->at, fold = r->m->fold ? 0x20 : 0;
    const uint8_t newline = r->m->ascii['\n'];
    uint8_t *out = r->out->bytes + r->out->n_bytes;
    size_t n = 0;
    for (; end - r->at - n >= BLOCK_BYTES; n += BLOCK_BYTES) {
        uint8_t irregular = 0;
        for (size_t i = 0; i < BLOCK_BYTES; i++) {
            const uint8_t c = in[n + i];
            const uint8_t folded = (uint8_t)(c + ((uint8_t)(c - 'A') < 26 ? fold : 0));
            irregular |= (uint8_t)((uint8_t)(c - 0x20) > 0x5E && c != '\n');
            out[n + i] = c == '\n' ? newline : folded;
        }
        if (irregular)
            break;
    }
    r->at += n;
    r->out->n_bytes += n;
}

/* ASCII characters, up to `end`, that become one byte. */
static void run_ascii(map_run *r, size_t end)
{
    const size_t start = r->at;
    if (r->m->regular && r->text.bytes[r->at] < 0x80)
        run_blocks(r, end);
    uint8_t *out = r->out->bytes + r->out->n_bytes;
    const uint8_t *in = r->text.bytes + r->at;
    size_t n = 0;
    while (r->at + n < end && in[n] < 0x80 && r->m->ascii[in[n]] != NO_BYTE) {
        out[n] = r->m->ascii[in[n]];
        n++;
    }
    r->at += n;
    r->out->n_bytes += n;
    if (r->at > start) {
        r->starter_at = r->at - 1;
        r->starter_out = r->out->n_bytes - 1;
        r->class = 0;
    }
}

static void put_entry(map_run *r, const map_entry *e, size_t length)
{
    uint8_t *out = r->out->bytes + r->out->n_bytes;
    const uint8_t *in = r->text.bytes + r->at;
    if (e->kind < ENTRY_SAME) {
        if (e->n_bytes <= 8)
            memcpy(out, r->m->texts.bytes + e->offset, 8);
        else
            memcpy(out, r->m->texts.bytes + e->offset, e->n_bytes);
        r->out->n_bytes += e->n_bytes;
    } else {
        const size_t blank = e->kind == ENTRY_BLANKS;
        out[0] = ' ';
        memcpy(out + blank, in, 4);
        out[blank + length] = ' ';
        r->out->n_bytes += length + 2 * blank;
    }
}

/* Maps from the last starter to the next one again, with canonical order. */
static bool run_unordered(map_run *r)
{
    size_t at = r->starter_at, n = 0;
    bool done = true;
    while (done && at < r->text.n_bytes) {
        uint32_t c;
        const size_t length = utf8_decode(r->text.bytes + at, r->text.n_bytes - at, &c);
        const map_entry *e = entry_of(r->m, c);
        if (at > r->at && e->kind != ENTRY_ABSENT && e->lead == 0)
            break;
        char_image image = {{c}, 1};
        apply(r->m->before, r->m->n_before, &image);
        done = nfc_reserve(r->workspace, n + LONGEST);
        if (done)
            memcpy(r->workspace->code_points + n, image.c, image.n * sizeof *image.c);
        n += image.n;
        at += length;
    }
    r->out->n_bytes = r->starter_out;
    done = done && nfc_order(r->workspace, n);
    for (size_t i = 0; i < n && done; i++) {
        uint8_t text[LONGEST * 4];
        char_image image = {{r->workspace->code_points[i]}, 1};
        done = text_buffer_append(r->out, text, finish_image(r->m, &image, text));
    }
    r->at = r->starter_at = at;
    r->starter_out = r->out->n_bytes;
    r->class = 0;
    return done;
}

static bool run_character(map_run *r)
{
    uint32_t c;
    const size_t length = utf8_decode(r->text.bytes + r->at, r->text.n_bytes - r->at, &c);
    const map_entry *e = entry_of(r->m, c);
    if (e->lead > 0 && e->lead < r->class)
        return run_unordered(r);
    if (e->kind != ENTRY_ABSENT) {
        if (e->lead == 0) {
            r->starter_at = r->at;
            r->starter_out = r->out->n_bytes;
        }
        r->class = e->trail;
    }
    put_entry(r, e, length);
    r->at += length;
    return true;
}

bool char_map_run(const char_map *m, nfc_workspace *workspace, text_span text, text_buffer *out)
{
    map_run r = {.m = m, .workspace = workspace, .text = text, .out = out};
    r.starter_out = out->n_bytes;
    while (r.at < text.n_bytes) {
        const size_t left = text.n_bytes - r.at;
        const size_t end = r.at + (left < CHUNK_BYTES ? left : CHUNK_BYTES);
        if (!text_buffer_reserve(out, (end - r.at + 4) * m->growth))
            return false;
        while (r.at < end) {
            run_ascii(&r, end);
            if (r.at < end && !run_character(&r))
                return false;
        }
    }
    return true;
}
