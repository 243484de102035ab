/* SPDX-License-Identifier: Apache-2.0 */
/* test_input_list.c - files, folders, patterns, lists: which names, in which order. */
#include "input/input_list.h"

#include <errno.h>
#include <sys/stat.h>

#include "support/bad_days.h"
#include "support/check.h"

static char said[1024];

static void report(void *context, const char *text)
{
    (void)context;
    snprintf(said + strlen(said), sizeof said - strlen(said), "%s|", text);
}

static void make_file(const char *name)
{
    CHECK(file_store(check_path(name), "", 0));
}

static void make_file_in(const char *folder, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    make_file(path);
}

static void make_folder(const char *name)
{
    CHECK(mkdir(check_path(name), 0755) == 0);
}

/* The names that the arguments stand for, without the test's folder, each followed by a space. */
static const char *expand(const char *const *args, size_t n_args)
{
    static char names[2048];
    input_list list = {.report = report};
    failure err;
    size_t n_dir = strlen(check_dir());
    names[0] = said[0] = 0;
    for (size_t i = 0; i < n_args; i++) {
        if (!input_list_expand(&list, args[i], NULL, &err))
            CHECK_FAIL("%s", err.text);
    }
    for (size_t i = 0; i < list.n_names; i++) {
        bool here = strncmp(list.names[i], check_dir(), n_dir) == 0;
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s ",
                 list.names[i] + (here ? n_dir + 1 : 0));
    }
    input_list_free(&list);
    return names;
}

static const char *expand_one(const char *name)
{
    const char *path = check_path(name);
    return expand(&path, 1);
}

/* The error; the list must be empty afterwards. */
static const char *refuse(const char *arg, int sys_errno)
{
    static failure err;
    input_list list = {0};
    CHECK(!input_list_expand(&list, arg, NULL, &err));
    CHECK_INT(err.status, sys_errno);
    CHECK_EQ(list.n_names, 0);
    input_list_free(&list);
    return err.text;
}

TEST(natural_order_compares_numbers_by_value)
{
    static const char *const ordered[] = {"",
                                          "0",
                                          "00",
                                          "01",
                                          "1",
                                          "2",
                                          "010",
                                          "10",
                                          "a",
                                          "a/b",
                                          "a/b/c",
                                          "a-1/b",
                                          "a0",
                                          "a1",
                                          "a1b2",
                                          "a1b10",
                                          "a2",
                                          "a10",
                                          "a99999999999999999999999",
                                          "a100000000000000000000000",
                                          "b",
                                          "shard-2.gz",
                                          "shard-10.gz",
                                          "\xc3\xa4"};
    size_t n = sizeof ordered / sizeof *ordered;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++) {
            int order = input_list_compare(ordered[i], ordered[k]);
            if ((order < 0) != (i < k) || (order > 0) != (i > k))
                CHECK_FAIL("%s, %s: %d", ordered[i], ordered[k], order);
        }
    }
}

TEST(a_folder_is_all_its_files_in_natural_order)
{
    static const char *const files[] = {"d/shard-10", "d/shard-2", "d/a",   "d/b/2",
                                        "d/b/10",     "d/b/c/x",   "d/b-1", "d/.hidden",
                                        "d/.git/x",   "d/e/.y"};
    make_folder("d");
    make_folder("d/b");
    make_folder("d/b/c");
    make_folder("d/e");
    make_folder("d/.git");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        make_file(files[i]);
    CHECK_STR(expand_one("d"), "d/a d/b/2 d/b/10 d/b/c/x d/b-1 d/shard-2 d/shard-10 ");
    CHECK_SAYS(said, "/d: left out 3 hidden names (ones that begin with a dot)|");
    CHECK_STR(expand_one("d/b/"), "d/b/2 d/b/10 d/b/c/x ");
    CHECK_STR(said, "");
    CHECK_STR(refuse(check_path("d/e"), 0) + strlen(check_dir()),
              "/d/e: the folder contains no files to pack");
}

TEST(files_of_a_folder_that_only_describe_data_are_left_out)
{
    static const char *const described[] = {"README",
                                            "readme.md",
                                            "README.txt.gz",
                                            "LICENSE",
                                            "License.txt",
                                            "a.jsonl.md5",
                                            "a.jsonl.sha1",
                                            "a.sha256",
                                            "A.SHA512",
                                            "part-0.crc",
                                            "SHA256SUMS",
                                            "md5sums.txt",
                                            "sha1sum",
                                            "SHA512SUM",
                                            "checksums.txt",
                                            "_SUCCESS",
                                            "_metadata",
                                            "_common_metadata",
                                            "dataset_info.json",
                                            "dataset_infos.json",
                                            "dataset_dict.json",
                                            "state.json"};
    static const char *const data[] = {"README2.md",       "__init__.py", "_x.txt",
                                       "ipsum.txt",        "licenses",    "my-state.json",
                                       "readme_data.jsonl"};
    const size_t n_described = sizeof described / sizeof *described;
    make_folder("d");
    make_folder("d/_f");
    make_file("d/_f/1");
    make_folder("e");
    for (size_t i = 0; i < sizeof data / sizeof *data; i++)
        make_file_in("d", data[i]);
    CHECK_STR(expand_one("d"), "d/README2.md d/__init__.py d/_f/1 d/_x.txt d/ipsum.txt "
                               "d/licenses d/my-state.json d/readme_data.jsonl ");
    CHECK_STR(said, "");
    for (size_t i = 0; i < n_described; i++)
        make_file_in("e", described[i]);
    CHECK_STR(refuse(check_path("e"), 0) + strlen(check_dir()),
              "/e: the folder contains no files to pack");
    for (size_t i = 0; i < n_described; i++)
        make_file_in("d/_f", described[i]);
    CHECK_STR(expand_one("d"), "d/README2.md d/__init__.py d/_f/1 d/_x.txt d/ipsum.txt "
                               "d/licenses d/my-state.json d/readme_data.jsonl ");
    CHECK_STR(said + strlen(check_dir()),
              "/d: left out _f/A.SHA512, _f/LICENSE, _f/License.txt and 19 more, which only "
              "describe data|");
    /* What is named itself is packed. */
    CHECK_STR(expand_one("e/_SUCCESS"), "e/_SUCCESS ");
    CHECK_STR(expand_one("e/README*"), "e/README e/README.txt.gz ");
    CHECK_STR(said, "");
}

TEST(links_are_followed_and_no_folder_is_read_twice)
{
    make_folder("d");
    make_folder("d/sub");
    make_folder("far");
    make_file("d/sub/1");
    make_file("far/away");
    make_file("d/zz");
    CHECK(symlink("..", check_path("d/sub/up")) == 0);
    CHECK(symlink("sub", check_path("d/again")) == 0);
    CHECK(symlink("../far", check_path("d/far")) == 0);
    CHECK(symlink("zz", check_path("d/link")) == 0);
    CHECK(symlink(".", check_path("d/self")) == 0);
    CHECK(mkfifo(check_path("d/fifo"), 0644) == 0);
    CHECK_STR(expand_one("d"), "d/again/1 d/far/away d/link d/zz ");
    CHECK_SAYS(said, "left out 1 name that is neither a file nor a folder|");
    CHECK(strstr(said, "left out 3 folders that were already listed through another link|") !=
          NULL);
    CHECK(symlink("nothing", check_path("d/broken")) == 0);
    CHECK_SAYS(refuse(check_path("d"), ENOENT),
               "/d/broken: is a symbolic link to nothing, which does not exist");
    CHECK_SAYS(refuse(check_path("d/broken"), ENOENT), "is a symbolic link to nothing");
}

TEST(folders_that_link_to_each_other_do_not_multiply)
{
    enum {
        N = 12
    };
    make_folder("d");
    for (int i = 0; i < N; i++) {
        char name[32], target[32];
        snprintf(name, sizeof name, "d/%d", i);
        make_folder(name);
        for (int k = 0; k < N; k++) {
            snprintf(name, sizeof name, "d/%d/%d", i, k);
            snprintf(target, sizeof target, "../%d", k);
            CHECK(symlink(target, check_path(name)) == 0);
        }
    }
    make_file("d/x");
    CHECK_STR(expand_one("d"), "d/x ");
}

TEST(patterns_are_expanded_where_no_file_has_that_name)
{
    make_folder("p");
    make_folder("p/sub");
    make_file("p/part-10");
    make_file("p/part-9");
    make_file("p/other");
    make_file("p/sub/part");
    make_file("p/sub/.part");
    CHECK_STR(expand_one("p/part-*"), "p/part-9 p/part-10 ");
    CHECK_STR(expand_one("p/part-?"), "p/part-9 ");
    CHECK_STR(expand_one("p/[os]*"), "p/other p/sub/part ");
    CHECK_STR(expand_one("*/part*"), "p/part-9 p/part-10 ");
    make_file("p/part-*");
    CHECK_STR(expand_one("p/part-*"), "p/part-* ");
    CHECK_SAYS(refuse(check_path("p/none*"), 0), "no file matches this pattern");
    CHECK_SAYS(refuse(check_path("p/none"), ENOENT), "No such file");
}

TEST(two_asterisks_are_any_number_of_folders)
{
    make_folder("p");
    make_folder("p/a");
    make_folder("p/a/b");
    make_folder("p/.h");
    make_file("p/x");
    make_file("p/a/x");
    make_file("p/a/b/x");
    make_file("p/a/b/README");
    make_file("p/.h/x");
    make_file("p/y.partial");
    CHECK(symlink("..", check_path("p/a/b/up")) == 0);
    CHECK_STR(expand_one("p/**/x"), "p/a/b/x p/a/x p/x ");
    CHECK_SAYS(said, "/p/**: left out 1 hidden name (one that begins with a dot)|");
    CHECK_SAYS(said, "/p/**: left out 1 folder that was already listed through another link|");
    CHECK_STR(expand_one("p//**///[x]"), "p//a/b/x p//a/x p//x ");
    CHECK_STR(expand_one("p/**/b/**/*"), "p/a/b/README p/a/b/up/x p/a/b/x ");
    CHECK_STR(expand_one("p/**/"), "p/a/b/x p/a/x p/x ");
    CHECK_SAYS(said, "/p/: left out 1 unfinished file (one whose name ends in .partial)|");
    CHECK_SAYS(said, "left out a/b/README, which only describes data|");
    CHECK_STR(expand_one("p/**/a/**"), "p/a/b/x p/a/x ");
    CHECK_SAYS(refuse(check_path("p/**/[b]"), 0), "no file matches this pattern");
    CHECK_SAYS(refuse(check_path("p/**/none"), 0), "no file matches this pattern");
    CHECK(symlink("nothing", check_path("p/lost")) == 0);
    CHECK_SAYS(refuse(check_path("p/**/x"), ENOENT), "/p/lost: is a symbolic link to nothing");
}

TEST(what_may_match_a_pattern_and_cannot_be_looked_at_is_an_error)
{
    static const char *const patterns[] = {"p/?/x", "p/?/?", "p/?/sub/x"};
    make_folder("p");
    make_folder("p/a");
    make_folder("p/a/sub");
    make_file("p/a/x");
    make_file("p/a/sub/x");
    make_file("p/c");
    CHECK_STR(expand_one("p/?/x"), "p/a/x ");
    CHECK_STR(expand_one("p/?/sub/x"), "p/a/sub/x ");
    CHECK_STR(expand_one("p/*//?ub//x"), "p/a//sub//x ");
    CHECK_STR(expand_one("p/[a]/"), "p/a/sub/x p/a/x ");
    CHECK(symlink("b", check_path("p/b")) == 0);
    for (int i = 0; i < 3; i++)
        CHECK_SAYS(refuse(check_path(patterns[i]), ELOOP), "/p/b: Too many");
    CHECK_STR(expand_one("p/a/?"), "p/a/x ");
    CHECK(unlink(check_path("p/b")) == 0 && symlink("/not/there", check_path("p/b")) == 0);
    for (int i = 0; i < 3; i++)
        CHECK_SAYS(refuse(check_path(patterns[i]), ENOENT), "/p/b: is a symbolic link to /not/");
    CHECK(unlink(check_path("p/b")) == 0);
    make_folder("p/b");
    CHECK(symlink("/not/there", check_path("p/b/sub")) == 0);
    CHECK_SAYS(refuse(check_path("p/?/sub/x"), ENOENT), "/p/b/sub: is a symbolic link to");
    CHECK_STR(expand_one("p/?/x"), "p/a/x ");
    if (geteuid() != 0) {
        CHECK(chmod(check_path("p/b"), 0444) == 0);
        CHECK_SAYS(refuse(check_path("p/?/x"), EACCES), "/p/b/x: Permission denied");
        CHECK(chmod(check_path("p/b"), 0) == 0);
        CHECK_SAYS(refuse(check_path("p/?/?"), EACCES), "cannot read the folder");
        CHECK(chmod(check_path("p/b"), 0755) == 0);
    }
}

TEST(lists_name_one_argument_a_line)
{
    char argument[1100];
    make_folder("l");
    make_file("l/1");
    make_file("l/2 b");
    make_folder("l/sub");
    make_file("l/sub/x");
    FILE *f = fopen(check_path("list"), "w");
    fprintf(f, "\n%s\n\n%s\n%s\n%s", check_path("l/2 b"), check_path("l/sub"), check_path("l/?"),
            check_path("l/1"));
    fclose(f);
    snprintf(argument, sizeof argument, "@%s", check_path("list"));
    const char *args[] = {"-", argument, check_path("l/1")};
    CHECK_STR(expand(args, 3), "- l/2 b l/sub/x l/1 l/1 l/1 ");
    f = fopen(check_path("list"), "w");
    fprintf(f, "%s\n@%s\n", check_path("l/1"), check_path("list"));
    fclose(f);
    const char *said_of_it = refuse(argument, ENOENT);
    CHECK_SAYS(said_of_it, "/list:2: @/");
    CHECK_SAYS(said_of_it, "No such file or directory (a list cannot name another list)");
    CHECK(file_store(check_path("list"), "-\n", 2));
    CHECK_STR(refuse(argument, ENOENT) + strlen(check_dir()),
              "/list:1: ./-: No such file or directory");
    CHECK(file_store(check_path("list"), "a\0b\n", 4));
    CHECK_STR(refuse(argument, 0) + strlen(check_dir()), "/list:1: a: is followed by a NUL");
    /* Not read on to a newline that may never come. */
    CHECK_SAYS(refuse("@/dev/zero", 0), "/dev/zero:1: is longer than 65536 bytes");
    snprintf(argument, sizeof argument, "@%s", check_path("nothing"));
    CHECK_SAYS(refuse(argument, ENOENT), "nothing: No such file");
}

TEST(lines_of_a_list_may_end_in_a_carriage_return)
{
    char argument[1100];
    make_folder("r");
    make_file("r/1");
    make_file("r/2\r");
    FILE *f = fopen(check_path("list"), "w");
    fprintf(f, "%s\r\n\r\n%s\r\n%s\r\n", check_path("r/1"), check_path("r/2"), check_path("r/?"));
    fclose(f);
    snprintf(argument, sizeof argument, "@%s", check_path("list"));
    const char *args[] = {argument};
    CHECK_STR(expand(args, 1), "r/1 r/2\r r/1 ");
    f = fopen(check_path("list"), "w");
    fprintf(f, "%s\r\n\r\n%s\r\n", check_path("r/1"), check_path("r/3"));
    fclose(f);
    CHECK_SAYS(refuse(argument, ENOENT), "/r/3: No such file");
    CHECK_SAYS(refuse(argument, ENOENT), "/list:3: ");
}
