/* SPDX-License-Identifier: Apache-2.0 */
/* test_tar_header.c - headers of tar archives, built here field by field. */
#include "formats/tar_header.h"
#include "support/check.h"

static void seal(uint8_t *block)
{
    unsigned sum = 0;
    memset(block + 148, ' ', 8);
    for (int i = 0; i < TAR_BLOCK_BYTES; i++)
        sum += block[i];
    snprintf((char *)block + 148, 8, "%06o", sum);
}

static void make(uint8_t *block, const char *name, char type, uint64_t size)
{
    memset(block, 0, TAR_BLOCK_BYTES);
    memcpy(block, name, strlen(name));
    for (int i = 0; i < 11; i++)
        block[124 + i] = (uint8_t)('0' + (size >> 3 * (10 - i) & 7));
    block[156] = (uint8_t)type;
    seal(block);
}

static void make_ustar(uint8_t *block, const char *prefix, const char *name, uint64_t size)
{
    make(block, name, '0', size);
    memcpy(block + 257,
           "ustar\0"
           "00",
           8);
    memcpy(block + 345, prefix, strlen(prefix));
    seal(block);
}

static tar_member m;
static uint8_t block[TAR_BLOCK_BYTES];

static void check_file(const char *name, uint64_t size)
{
    CHECK(tar_read_header(&m, block) == NULL);
    CHECK_INT(m.kind, TAR_FILE);
    CHECK_STR(m.name, name);
    CHECK_EQ(m.data_bytes, size);
}

static void add(char type, const char *data, size_t n_bytes)
{
    make(block, "extra", type, n_bytes);
    CHECK(tar_read_header(&m, block) == NULL);
    CHECK_INT(m.kind, TAR_EXTRA);
    CHECK(tar_add_extra(&m, (const uint8_t *)data, n_bytes) == NULL);
}

TEST(old_and_ustar_headers_are_read)
{
    memset(&m, 0, sizeof m);
    make(block, "a.txt", 0, 17);
    check_file("a.txt", 17);
    make_ustar(block, "some/folder", "a.txt", 0777);
    check_file("some/folder/a.txt", 0777);
    make(block, "folder/", 0, 0);
    CHECK(tar_read_header(&m, block) == NULL);
    CHECK_INT(m.kind, TAR_OTHER);
    char name[101] = "";
    memset(name, 'n', 100);
    make(block, name, '7', 1);
    check_file(name, 1);
    CHECK_EQ(tar_padding(0), 0);
    CHECK_EQ(tar_padding(1), 511);
    CHECK_EQ(tar_padding(512), 0);
}

TEST(sizes_are_octal_or_binary)
{
    static const uint8_t large[] = {0x80, 0, 0, 0, 0, 0x12, 0x34, 0x56, 0x78, 0x9A, 0xBC, 0xDE};
    memset(&m, 0, sizeof m);
    make(block, "a", '0', 0);
    memcpy(block + 124, large, sizeof large);
    seal(block);
    check_file("a", 0x123456789ABCDE);
    memcpy(block + 124, "    644     ", 12);
    seal(block);
    check_file("a", 0644);
    memset(block + 124, 0, 12);
    seal(block);
    check_file("a", 0);
    static const char *const wrong[] = {"00000000008", "-1", "x", "\x80\1\1\1\1\1\1\1\1\1\1\1",
                                        "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memset(block + 124, 0, 12);
        memcpy(block + 124, wrong[i], strnlen(wrong[i], 12));
        seal(block);
        CHECK_STR(tar_read_header(&m, block), "the size of a member is damaged");
    }
}

TEST(a_wrong_checksum_is_no_header)
{
    memset(&m, 0, sizeof m);
    make(block, "a", '0', 5);
    CHECK(tar_is_header(block));
    for (int i = 0; i < TAR_BLOCK_BYTES; i++) {
        bool in_sum_padding = i >= 155 && i < 156;
        block[i] ^= 1;
        CHECK(in_sum_padding || !tar_is_header(block));
        block[i] ^= 1;
    }
    /* A sum of signed bytes, as some old writers made it. */
    make(block, "\xE4.txt", '0', 5);
    unsigned sum = 0;
    memset(block + 148, ' ', 8);
    for (int i = 0; i < TAR_BLOCK_BYTES; i++)
        sum += (unsigned)(int8_t)block[i];
    snprintf((char *)block + 148, 8, "%06o", sum);
    CHECK(tar_is_header(block));
}

TEST(names_and_sizes_before_a_member_are_for_it_only)
{
    memset(&m, 0, sizeof m);
    add('L', "a long name.md", 15);
    add('K', "a target", 9);
    make(block, "short", '0', 1);
    check_file("a long name.md", 1);
    check_file("short", 1);
    add('x', "21 path=pax name.txt\n11 size=99\n", 32);
    make(block, "short", '0', 1);
    check_file("pax name.txt", 99);
}

TEST(a_name_has_at_most_4095_bytes)
{
    static char name[TAR_NAME_BYTES + 1];
    memset(name, 'n', sizeof name - 1);
    memset(&m, 0, sizeof m);
    make(block, "extra", 'L', sizeof name - 1);
    CHECK(tar_read_header(&m, block) == NULL);
    CHECK_STR(tar_add_extra(&m, (const uint8_t *)name, sizeof name - 1),
              "the name of a member has more than 4095 bytes");
    name[TAR_NAME_BYTES - 1] = 0;
    add('L', name, sizeof name);
    make(block, "short", '0', 1);
    check_file(name, 1);
}

TEST(pax_records_are_checked)
{
    static const char *const wrong[] = {"x",
                                        "5 a=\n ",
                                        "19 path=a\n",
                                        "8 path=a\n",
                                        "0 a=b\n",
                                        "6 abc\n",
                                        "99999999999999999999 a=b\n",
                                        "11 size=1x\n",
                                        " 6 a=b\n",
                                        "-6 a=b\n"};
    memset(&m, 0, sizeof m);
    add('x', "18 path=pax/n.txt\n13 size=1234\n", 31);
    make(block, "short", '0', 1);
    check_file("pax/n.txt", 1234);
    check_file("short", 1);
    add('g', "16 comment=some\n", 16);
    add('g', "10 size=7\n", 10);
    make(block, "short", '0', 1);
    check_file("short", 7);
    check_file("short", 7);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        make(block, "extra", 'x', strlen(wrong[i]));
        CHECK(tar_read_header(&m, block) == NULL);
        CHECK(tar_add_extra(&m, (const uint8_t *)wrong[i], strlen(wrong[i])) != NULL);
    }
    memset(&m, 0, sizeof m);
    add('x', "22 GNU.sparse.major=1\n", 22);
    make(block, "a.txt", '0', 1);
    CHECK(tar_read_header(&m, block) == NULL);
    CHECK_INT(m.kind, TAR_SPARSE);
    make(block, "extra", 'x', TAR_EXTRA_BYTES + 1);
    CHECK(tar_read_header(&m, block) != NULL);
}

TEST(members_that_are_no_files)
{
    static const char types[] = "123456DVNA";
    memset(&m, 0, sizeof m);
    for (const char *t = types; *t; t++) {
        make(block, "a.txt", *t, 100);
        CHECK(tar_read_header(&m, block) == NULL);
        CHECK_INT(m.kind, TAR_OTHER);
        CHECK_EQ(m.data_bytes, *t <= '6' ? 0 : 100);
    }
    make(block, "a.txt", 'S', 100);
    CHECK(tar_read_header(&m, block) == NULL);
    CHECK_INT(m.kind, TAR_SPARSE);
    make(block, "a.txt", 'M', 100);
    CHECK(tar_read_header(&m, block) != NULL);
    memset(block, 0, sizeof block);
    CHECK(tar_read_header(&m, block) == NULL);
    CHECK_INT(m.kind, TAR_ZEROS);
}

TEST(the_name_says_what_a_member_holds)
{
    static const struct {
        const char *name;
        tar_document kind;
    } names[] = {{"a.txt", TAR_TEXT},
                 {"b/a.text", TAR_TEXT},
                 {"a.md", TAR_TEXT},
                 {"a.json", TAR_JSON},
                 {"a.b.jsonl", TAR_JSON_LINES},
                 {"a.ndjson", TAR_JSON_LINES},
                 {"b/.txt", TAR_NO_DOCUMENT},
                 {"txt", TAR_NO_DOCUMENT},
                 {"a.txt.gz", TAR_NO_DOCUMENT},
                 {"b/._a.txt", TAR_NO_DOCUMENT},
                 {"._a.txt", TAR_NO_DOCUMENT},
                 {"._b/a.txt", TAR_TEXT},
                 {"a.cls", TAR_NO_DOCUMENT},
                 {"", TAR_NO_DOCUMENT}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK_INT(tar_document_kind(names[i].name), names[i].kind);
    memset(&m, 0, sizeof m);
    make(block, "a\nb\x1b.txt", '0', 0);
    check_file("a?b?.txt", 0);
}
