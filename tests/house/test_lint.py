#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lint_rules.py finds a planted breach of each of its rules, at its place. `make lint` runs it over the tree."""

import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lint_rules  # noqa: E402
from ref_protocol import expect, expect_equal, run_tests  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
HASH, CORPUS, PAGE = "src/base/hash.c", "tokenize_tools/corpus/corpus.c", "docs/ARCHITECTURE.md"


def function_with(line, times=1):
    return "static int planted(int x)\n{\n" + f"    {line}\n" * times + "    return x;\n}\n"


# Name of the test, the file to whose end a text is added, the text, and what is said of which of its lines.
PLANTED = [
    ("an_upward_include", HASH, '#include "dataset/dataset.h"\n', 1,
     "includes dataset/dataset.h: src/base may not use src/dataset"),
    ("a_private_header_in_a_command", "tokenize_tools/main.c", '#include "order/skips.h"\n', 1,
     "includes order/skips.h: tokenize_tools may not use src/order"),
    ("a_private_header_by_its_path", "bench/main.c", '#include "../src/order/skips.h"\n', 1,
     "includes ../src/order/skips.h: bench may not use src/order"),
    ("a_cycle_of_includes", "src/base/base.h", '#include "base/hash.h"\n#include "base/base.h"\n', -1,
     "a circle of includes: src/base/base -> src/base/hash -> src/base/base"),
    ("a_circle_of_calls", "src/order/skips.c", "void planted_above(void)\n{\n    planted_below();\n}\n", -1,
     "a circle of calls: src/order/permute -> src/order/skips -> src/order/permute"),
    ("a_call_in_a_circle", "src/order/permute.c", "void planted_below(void)\n{\n    planted_above();\n}\n", -1,
     "a circle of calls: src/order/permute -> src/order/skips -> src/order/permute"),
    ("a_circle_that_is_no_more", "tests/house/lint_rules.py", "", -1, "there is no circle in src/base/nobody src/base/none"),
    ("a_system_header", HASH, "#include <unistd.h>\n", 1, "includes <unistd.h>"),
    ("a_thread", "src/dataset/verify.c", "static pthread_mutex_t planted;\n", 1,
     "pthread_mutex_t: the system belongs to src/system"),
    ("a_system_call", CORPUS, 'static int planted(void) { return open("", 0); }\n', 1,
     "open: the system belongs to tokenize_tools/system"),
    ("a_second_opener", "src/views/view.c", function_with("x = tokmap_i_file_open(path, &fd);"), 3,
     "tokmap_i_file_open: src/dataset/side_file.h opens files beside a dataset"),
    ("a_printing_library", HASH, function_with('printf("x");'), 3, "printf: the library neither prints"),
    ("an_exiting_library", HASH, function_with("exit(x);"), 3, "exit: the library neither prints"),
    ("a_double_by_the_locale", CORPUS, function_with("x = strtod(s, 0);"), 3, "strtod: follows the locale of the process"),
    ("a_locale_in_a_command", "bench/main.c", function_with('setlocale(LC_ALL, "");'), 3, "setlocale: follows the locale"),
    ("a_letter_by_the_locale", HASH, function_with("x = isalpha(x);"), 3, "isalpha: follows the locale of the process"),
    ("a_double_printed_by_the_locale", HASH, function_with('snprintf(s, n, "%d%% of "\n        "%s %.17g", x, s, y);'), 3,
     "a double is printed by real_print"),
    ("a_locale_in_python", "python/tokmap/_c/output.py", "import locale\n", 1, "import locale: follows the locale"),
    ("a_choice_by_the_text_of_an_error", "python/tokmap/_c/output.py",
     "def planted(error):\n    return 'exists' in str(error)\n", 2, "decides by the text of an error"),
    ("a_search_in_the_text_of_an_error", "python/tokmap/_c/output.py",
     "def planted(detail):\n    return detail.text.startswith(b'x')\n", 2, "decides by the text of an error"),
    ("a_search_in_what_a_command_says", "python/tokmap/_c/output.py",
     "def planted(done):\n    return done.stderr.decode().split('x')\n", 2, "decides by the text of an error"),
    ("a_number_of_the_locale_in_python", "python/tokmap/_c/output.py", "planted = f'{1.5:n}'\n", 1, "follows the locale"),
    ("cuda_in_a_common_file", HASH, function_with("cuInit(0);"), 3, "CUDA"),
    ("a_long_function", HASH, function_with("x++;", 57), 1, "planted has 61 lines"),
    ("many_arguments", HASH, "int planted(int a, int b, int c, int d,\n            int e, int (*f)(int, int))\n{\n}\n", 1,
     "planted has 6 arguments"),
    ("a_long_file", "src/base/error.c", "/* more */\n" * 600, -1, " lines, more than 600"),
    ("deep_nesting", HASH, "int planted(int x)\n{\n    if (x) {\n        for (;;) {\n            do {\n"
     "                switch (x) {\n                }\n            } while (x);\n        }\n    }\n}\n", 6,
     "planted nests blocks deeper than 3"),
    ("a_word_beside_the_call_that_sets_its_bits", "tokenize_tools/tokenizer/model/vocabulary.c",
     "static void planted(vocabulary *v, uint64_t hash)\n{\n    uint64_t bits;\n"
     "    *filter_word(v, hash, &bits) |= bits;\n}\n", 4, "bits is used beside a call of filter_word, which may write it"),
    ("a_comparison_beside_the_call_that_sets_its_bits", "tokenize_tools/tokenizer/model/vocabulary.c",
     "static bool planted_too(vocabulary *v, uint64_t hash)\n{\n    uint64_t bits;\n"
     "    if ((*filter_word(v, hash, &bits) & bits) != bits)\n        return false;\n    return true;\n}\n", 4,
     "bits is used beside a call of filter_word, which may write it"),
    ("a_member_added_to_the_call_that_writes_it", "src/order/mixture.c",
     "static int planted_next(struct s *s);\nvoid planted(struct s *s)\n{\n    s->n += planted_next(s);\n}\n", 4,
     "s is used beside a call of planted_next"),
    ("an_element_of_an_array_that_the_call_replaces", "src/order/mixture.c",
     "static int grow_of(struct s *s);\nvoid planted(struct s *s)\n{\n    s->all[s->n] = grow_of(s);\n}\n", 4,
     "s is used beside a call of grow_of"),
    ("two_arguments_that_read_on", "src/order/mixture.c",
     "static int read_of(struct s *s);\nvoid planted(struct s *s)\n{\n    use(read_of(s), read_of(s));\n}\n", 4,
     "s is used beside a call of read_of"),
    ("a_value_beside_a_call_without_a_prototype", "src/order/mixture.c",
     "#define PLANTED(n) \\\n    n + strtol(s, &n, 10)\n", 2, "n is used beside a call of strtol"),
    ("a_macro_over_a_constant", "tokenize_tools/tokenizer/merge/merge.h", "#define MERGE_NONE 0\n", 1,
     "MERGE_NONE is a constant of tokenize_tools/tokenizer/model/model.h too"),
    ("a_comment_without_a_subject", HASH, "/* Of the columns. */\n", 1, 'a comment with "Of": say it in plain words'),
    ("a_comment_on_the_comment_before", HASH, "/* The same for\n * columns. */\n", 1, 'a comment with "The same"'),
    ("a_comment_that_begins_with_a_pronoun", HASH, "int x; /* Those of it. */\n", 1, 'a comment with "Those of"'),
    ("what_a_thing_is_not", HASH, "int x; /* a byte that is\n * no digit */\n", 1, 'a comment with "is no digit"'),
    ("an_exception_in_old_words", HASH, "/* Adds all bytes but\n * for these. */\n", 1, 'a comment with "but for"'),
    ("a_pronoun_after_as", HASH, "/* Adds it, as there. */\n", 1, 'a comment with "as there"'),
    ("a_private_word", "include/tokmap_writer.h", "/* The scalar twin. */\n", 1, 'a comment with "twin"'),
    ("a_file_that_speaks", HASH, "/* Adds what the header says. */\n", 1, 'a comment with "header says"'),
    ("a_long_line", HASH, "/* %095d */\n" % 0, 1, "101 columns"),
    ("a_forgotten_note", HASH, "/* FIX" "ME later */\n", 1, "a note left for later"),
    ("a_function_that_does_not_exist", PAGE, "Then `tokmap_i_planted`.\n", 1, "there is no tokmap_i_planted"),
    ("a_file_that_does_not_exist", PAGE, "Then `planted.c`.\n", 1, "there is no planted.c"),
    ("a_file_without_its_licence", "src/newcomer/new.c", "int new;\n", 1, "the first line must be SPDX"),
    ("a_room_without_a_row", "src/newcomer/new.c", "", -1, "is no room of docs/ARCHITECTURE.md"),
    ("a_row_without_its_room", "docs/ARCHITECTURE.md", "| `src/nobody/` | x | `src/base/` | `tests/nobody/` |\n", -1,
     "there is no room src/nobody"),
    ("a_room_that_scripts_need_not_test", "tests/house/lint_rules.py", "", -1,
     "RUN_BY_SCRIPTS: programs reach all of src/views"),
    ("a_folder_of_tests_that_is_not_there", "docs/ARCHITECTURE.md", "", -1, "src/nobody has no folder of tests"),
    ("a_file_that_no_test_reaches", "src/order/newcomer.c", "int planted_unreached;\n", -1,
     "src/order/newcomer.c:1: is not reached by a test program of tests/order"),
    ("an_arrow_that_is_not_there", "docs/ARCHITECTURE.md", "", -1, "src/nobody does not use src/base"),
    ("a_module_of_a_layer_above", "python/tokmap/_data/values.py", "from .._loader.steps import Pairs\n", 1,
     "imports _loader/steps: _data may not use _loader"),
    ("a_late_import_of_a_layer_above", "python/tokmap/_c/locks.py", "def planted():\n    from .._data import row\n", 2,
     "imports _data/row: _c may not use _data"),
    ("an_import_by_the_whole_name", "python/tokmap/_c/output.py", "import tokmap._tools.terminal\n", 1,
     "imports _tools/terminal: _c may not use _tools"),
    ("a_circle_of_modules", "python/tokmap/_c/find.py", "if TYPE_CHECKING:\n    from .errors import Error\n", -1,
     "a circle of imports: _c/errors -> _c/structs -> _c/find -> _c/errors"),
    ("a_folder_without_a_layer", "python/tokmap/_new/new.py", f"# {lint_rules.LICENCE}\n", -1, "is no layer"),
    ("a_cycle_of_rooms", "docs/ARCHITECTURE.md", "| `src/base/` | x | `src/system/` | `tests/base/` |\n", -1,
     "a circle of rooms: "),
]
# What looks like a breach and is none.
HARMLESS = {HASH: '    /* printf("x"); */ x = \'"\'; /* exit(1) */ x = snprintf("printf(%d)");'
                  ' /* of it: is no longer there, as there is no limit */ x = f("is no /* Of "); /* The same as hash_it */'
                  ' x = snprintf(s, n, "%d%%e %zu", x); real_print(s, n, "%g", y);',
            "tokenize_tools/main.c": 'x = fprintf(stderr, "");',
            "bench/main.c": "if (read_of(&x) && x > 0)\n        x = 2 * read_of(&x);\n    int y = read_of(&x), z = x;\n"
                            "    y = x > 0 ? use(read_of(&x), &x, sizeof x) : x;\n    s->n = s->all->read_of(&s);"}


def plant_all(copy):
    """Where each text of PLANTED begins."""
    for name in ("include", "src", "tokenize_tools", "bench", "docs", "python/tokmap", "Makefile", "README.md", "tests/house"):
        place = copy / name
        place.parent.mkdir(exist_ok=True, parents=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, place)
    (copy / "src/newcomer").mkdir()
    (copy / "src/newcomer/new.c").touch()
    (copy / "src/order/newcomer.c").touch()
    for path in (ROOT / "tests").glob("[!h]*/*.[ch]"):  # what reaches the other files
        (copy / path.relative_to(ROOT)).parent.mkdir(exist_ok=True)
        shutil.copy(path, copy / path.relative_to(ROOT))
    (copy / "python/tokmap/_new").mkdir()
    (copy / "python/tokmap/_new/new.py").touch()
    for name, line in HARMLESS.items():
        (copy / name).open("a").write(function_with(line))
    lines = []
    for _, name, text, _, _ in PLANTED:
        lines.append((copy / name).read_text().count("\n"))
        with (copy / name).open("a") as file:
            file.write(text)
    (copy / "src/base/hash.h").open("a").write('#include "base/base.h"\n')
    return lines


def main():
    lint_rules.KNOWN_CIRCLES.add("src/base/nobody src/base/none")
    lint_rules.RUN_BY_SCRIPTS.append("src/views")
    with tempfile.TemporaryDirectory() as folder:
        lines = plant_all(pathlib.Path(folder))
        found = lint_rules.check(pathlib.Path(folder))
    said = found.errors + found.advice

    def is_found(number):
        _, file, _, line, text = PLANTED[number]
        where = f"{file}:{lines[number] + line}: " if line > 0 else ""
        expect(any(where in one and text in one for one in said), f"nothing says {where}{text}: {said}")

    def nothing_else_is():
        first = min(line for line, test in zip(lines, PLANTED) if test[1] == HASH)
        words = [one for one in found.errors if "a comment with" in one and
                 (not one.startswith(HASH) or int(one.split(":")[1]) <= first) and "tokmap_writer.h" not in one]
        expect_equal(words, [], "errors")
        missed = [one.split(":")[0] for one in found.errors if "is not reached by" in one]
        expect_equal(missed, ["src/order/newcomer.c"], "files that no test reaches")
        wrong = [one for one in found.errors if "fprintf" in one or "snprintf" in one or ", more than" in one or
                 "bench/main.c" in one and "beside a call" in one]
        expect_equal([one for one in wrong if "columns" not in one], [], "errors")
        expect_equal(sum("a double is printed" in one for one in found.errors), 1, "errors")

    return run_tests([(f"{test[0]}_is_found", lambda number=number: is_found(number))
                      for number, test in enumerate(PLANTED)] + [("harmless_lines_and_lengths_are_no_errors", nothing_else_is)])


sys.exit(main())
