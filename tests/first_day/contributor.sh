#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The first day of a contributor: a clone, a build, one file, one test, mistakes of all kinds, and what then is said. It
# compiles everything once.

. "$(dirname "$0")/typed.sh"

copy_checkout tokmap
cd tokmap || exit 1
git init -q && git add -A && git -c user.name=new -c user.email=new@example.org commit -qm 'As it is'
export PYTHON=$python
unset TOKMAP_BUILD TOKMAP_LIBRARY PYTHONPATH RUN_DIR TIMEOUT TOKMAP_LONG

changed() # what sed does, the file; what was changed last is put back first
{
    git checkout -q .
    sed -i "$1" "$2"
    ! git diff --quiet || verdict "${day}_$2" "sed '$1' changes nothing: write this test anew"
}

typed make_says_what_is_in 0 'make -j2' <<'END'
xxHash
zstd
END
typed make_help_has_a_line_for_each_target 0 'make help' <<'END'
make test
make lint
make first-day
END
typed one_test_program 0 'make build/test_writer && build/test_writer' <<'END'
ok
END
typed one_script 0 'bash tests/run.sh tests/foreign/test_foreign.py' <<'END'
0 failed
END
typed some_tests_of_a_script 0 'ONLY=llmc bash tests/run.sh tests/foreign/test_foreign.py' <<'END'
0 failed
END
typed a_name_without_a_test_is_said 1 'ONLY=nothing_of_the_kind bash tests/run.sh tests/foreign/test_foreign.py' <<'END'
no test has nothing_of_the_kind in its name
! printed no result
END

# ---- Mistakes in C ----

changed '$a int x = ;' src/order/shuffle.c
typed a_syntax_error_has_its_place 2 'make' <<'END'
src/order/shuffle.c:
error: expected expression
END
changed 's/const uint64_t w = block \* s->block_windows +/const uint64_t w = 1 + block * s->block_windows +/' src/order/shuffle.c
typed an_error_by_one_is_found_where_it_is 1 'make build/test_shuffle && bash tests/run.sh build/test_shuffle' <<'END'
FAIL block_mode
: test_shuffle.c:
END
changed 's/"a PDF document"/"a PDF paper"/' tokenize_tools/formats/wrong_file.c
typed a_changed_word_is_shown_first 1 'make && bash tests/run.sh tests/formats/test_wrong_files.py' <<'END'
PDF
! Traceback
! FAIL wrong_files_: Traceback
END

# ---- Mistakes against the rules ----

changed '/^#include/i #include "pack/session.h"' tokenize_tools/corpus/corpus.c
typed an_include_upward_is_refused 2 'make lint-rules' <<'END'
may not use tokenize_tools/pack
! advice
END
changed '$a /* TO''DO: later */' src/order/shuffle.c
typed a_note_for_later_is_refused 2 'make lint-rules' <<'END'
src/order/shuffle.c:
a note left for later
END
git checkout -q .
typed a_good_run_of_the_rules_is_silent 0 'make lint-rules' <<'END'
! advice
END
if command -v clang-format >/dev/null; then
    changed 's/^    const uint64_t most = s->block_windows \* s->group_blocks;/  const uint64_t most=s->block_windows*s->group_blocks;/' src/order/shuffle.c
    typed a_wrong_layout_says_what_mends_it 2 'make lint-format' <<'END'
make fmt mends this
src/order/shuffle.c
END
else
    echo "skip ${day}_a_wrong_layout_says_what_mends_it: there is no clang-format"
fi
git checkout -q .

# ---- The guide for a kind of input, against what a new one has to touch ----

typed the_guide_names_every_place 0 "sed -n '/^## Add a kind of input/,/^## /p' CONTRIBUTING.md" <<'END'
formats/options.h
choose_kind
pack_formats
record_of
pack_corpus.py
reread.c
random_input.c
corpus_model.c
END
typed no_test_counts_the_formats_by_hand 1 "grep -nE '(% 4|random_below\(4\)|& 3)' tests/fuzz/reread.c tests/fuzz/fuzz_corpus.c tests/corpus/test_corpus.c | grep -i format" </dev/null
typed the_files_that_strangers_look_for_are_there 0 'ls AGENTS.md CODE_OF_CONDUCT.md CITATION.cff .github/workflows .github/ISSUE_TEMPLATE .github/pull_request_template.md' </dev/null
exit $status
