/* SPDX-License-Identifier: Apache-2.0 */
/* tool_unicode classes|numeric|punctuation - a character for each of the 0x110000 code points: its
 * class, or 0 or 1.
 * tool_unicode nfc|repair - reads lines of bytes in hexadecimal, lower case; writes them in NFC, or
 * with U+FFFD for each maximal subpart that is not UTF-8. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokenizer/unicode/unicode.h"
#include "base/utf8.h"
#include "support/pipes.h"

static size_t repair(const uint8_t *text, size_t n_bytes, uint8_t *out)
{
    size_t n_out = 0;
    for (size_t i = 0; i < n_bytes;) {
        const size_t prefix = utf8_valid_prefix(text + i, n_bytes - i);
        memcpy(out + n_out, text + i, prefix);
        n_out += prefix;
        i += prefix;
        if (i == n_bytes)
            break;
        const size_t n_bad = utf8_bad_bytes(text + i, n_bytes - i);
        n_out += utf8_encode(0xFFFD, out + n_out);
        i += n_bad > 0 ? n_bad : n_bytes - i;
    }
    return n_out;
}

static int filter(bool is_nfc)
{
    nfc_workspace workspace = {0};
    bool ok = true;
    size_t n_bytes;
    for (uint8_t *text; ok && (text = get_hex_line(&n_bytes, 0));) {
        uint8_t *out = malloc(n_bytes * 3 + 4);
        size_t n_out = 0;
        if (is_nfc)
            ok = nfc_normalize(&workspace, text, n_bytes, out, &n_out);
        else
            n_out = repair(text, n_bytes, out);
        put_hex(out, n_out);
        putchar('\n');
        free(text);
        free(out);
    }
    nfc_workspace_free(&workspace);
    return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
    const char *what = argc == 2 ? argv[1] : "";
    if (strcmp(what, "nfc") == 0 || strcmp(what, "repair") == 0)
        return filter(*what == 'n');
    for (uint32_t c = 0; c < 0x110000; c++) {
        if (strcmp(what, "classes") == 0)
            putchar('0' + (int)unicode_class_of(c));
        else if (strcmp(what, "numeric") == 0)
            putchar('0' + unicode_hf_is(HF_NUMBER, c));
        else if (strcmp(what, "punctuation") == 0)
            putchar('0' + unicode_hf_is(HF_PUNCTUATION, c));
        else
            return 2;
    }
    return 0;
}
