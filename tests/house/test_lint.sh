#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The rules of lint_rules.py bite: each breach, planted into a copy of the tree, is named.

root=$(cd "$(dirname "$0")/../.." && pwd)
python=${PYTHON:-python3}
copy=$(mktemp -d "${TMPDIR:-/tmp}/tokmap_lint_XXXXXX") || exit 1
trap 'rm -rf "$copy"' EXIT
status=0

[ -z "$TOKMAP_SANITIZED" ] || {
    echo "skip lint_rules: nothing here has a sanitizer; make test runs it"
    exit 77
}
command -v "$python" >/dev/null || {
    echo "skip lint_rules: $python not found"
    exit 77
}

fresh_copy()
{
    rm -rf "${copy:?}"/*
    cp -r "$root"/{include,src,tokenize_tools,bench,docs,tests,Makefile} "$copy"
    rm -rf "$copy/tests/fuzz/corpus" "$copy/tests/data"
}

# What is planted from here on is found in one run over the copy.
names=() texts=()
expect() # name of the test, what must be said
{
    names+=("$1") texts+=("$2")
}

check()
{
    local said i
    said=$("$python" "$root/tests/house/lint_rules.py" "$copy")
    [ $? = 1 ] || said=
    for i in "${!names[@]}"; do
        if grep -qF -- "${texts[i]}" <<<"$said"; then
            echo "ok ${names[i]}"
        else
            echo "FAIL ${names[i]}: nothing says '${texts[i]}', but: $(head -n 3 <<<"$said" | tr '\n' ' ')"
            status=1
        fi
    done
    names=() texts=()
    fresh_copy
}

next_line() # of a file of the copy
{
    echo $(($(wc -l <"$copy/$1") + 1))
}

said=$("$python" "$root/tests/house/lint_rules.py" "$root")
if [ $? = 0 ]; then
    echo "ok the_tree_keeps_the_rules"
else
    echo "FAIL the_tree_keeps_the_rules: $(grep -v warning: <<<"$said" | head -n 3 | tr '\n' ' ')"
    status=1
fi

fresh_copy
# Between any two rooms that are not an arrow of the table.
planted=$("$python" - "$copy" <<'END'
import pathlib, re, sys
copy, n = pathlib.Path(sys.argv[1]), 0
rows = re.findall(r"^\| `(\S+)/` \|[^|]*\|([^|]*)\|$", (copy / "docs/ARCHITECTURE.md").read_text(), re.M)
for room, uses in rows:
    file = sorted((copy / room).glob("*.[ch]"))[0]
    for other, _ in rows:
        headers = sorted((copy / other).glob("*.h"))
        if headers and other != room and f"`{other}/`" not in uses:
            header = headers[0].relative_to(copy / other.split("/")[0])
            file.write_text(f'{file.read_text()}#include "{header}"\n')
            n += 1
print(n)
END
)
found=$("$python" "$root/tests/house/lint_rules.py" "$copy" | grep -c 'may not use')
if [ "$planted" -gt 300 ] && [ "$planted" = "$found" ]; then
    echo "ok each_include_between_rooms_that_is_no_arrow_is_found"
else
    echo "FAIL each_include_between_rooms_that_is_no_arrow_is_found: $found of $planted"
    status=1
fi
fresh_copy

line=$(next_line src/base/hash.c)
echo '#include "dataset/dataset.h"' >>"$copy/src/base/hash.c"
expect an_upward_include_is_found "src/base/hash.c:$line: includes dataset/dataset.h: src/base may not use src/dataset"

echo '#include "base/hash.h"' >>"$copy/tokenize_tools/main.c"
expect a_private_header_in_a_command_is_found "includes base/hash.h: tokenize_tools may not use src/base"

echo '#include "../src/base/hash.h"' >>"$copy/bench/main.c"
expect a_private_header_by_its_path_is_found "includes ../src/base/hash.h: bench may not use src/base"

line=$(next_line src/base/hash.c)
echo '#include <unistd.h>' >>"$copy/src/base/hash.c"
expect a_system_header_is_found "src/base/hash.c:$line: includes <unistd.h>"

echo 'static pthread_mutex_t planted;' >>"$copy/src/dataset/verify.c"
expect a_thread_outside_the_system_rooms_is_found "pthread_mutex_t: the system belongs to src/system"

for call in 'open("", 0)' 'mmap(NULL, 1, 0, 0, 0, 0)' 'stat("", NULL)' 'fork()'; do
    echo "static int planted(void) { return $call; }" >>"$copy/tokenize_tools/corpus/corpus.c"
    expect "a_call_of_${call%%(*}_outside_the_system_rooms_is_found" "${call%%(*}: the system belongs to tokenize_tools/system"
done

echo '#include <pthread.h>' >>"$copy/tokenize_tools/pack/pipeline.c"
expect a_system_header_of_a_command_is_found "pipeline.c:$(($(wc -l <"$root/tokenize_tools/pack/pipeline.c") + 1)): includes <pthread.h>"

function_with() # a line that is repeated, how often
{
    printf 'static int planted(int x)\n{\n'
    for ((i = 0; i < $2; i++)); do echo "$1"; done
    printf '    return x;\n}\n'
}

line=$(next_line src/base/hash.c)
function_with '    printf("x");' 1 >>"$copy/src/base/hash.c"
expect a_printing_library_is_found "src/base/hash.c:$((line + 2)): printf"

line=$(next_line src/base/hash.c)
function_with '    exit(x);' 1 >>"$copy/src/base/hash.c"
expect an_exiting_library_is_found "src/base/hash.c:$((line + 2)): exit"

line=$(next_line src/base/hash.c)
function_with '    assert(x);' 1 >>"$copy/src/base/hash.c"
expect an_asserting_library_is_found "src/base/hash.c:$((line + 2)): assert"

function_with '    x = fprintf(stderr, "");' 1 >>"$copy/tokenize_tools/main.c"
function_with '    /* printf("x"); */ x = '"'\"'; /* exit(1) */" 1 >>"$copy/src/base/hash.c"
line=$(next_line src/base/hash.c)
function_with '    x = snprintf("printf(%d)");' 70 >>"$copy/src/base/hash.c"
expect a_long_function_is_found "src/base/hash.c:$line: planted has 74 lines"

function_with '    x++;' 57 >>"$copy/src/base/hash.c"
line=$(next_line src/base/hash.c)
function_with '    x++;' 56 >>"$copy/src/base/hash.c"
expect one_line_more_than_the_limit_is_found "src/base/hash.c:$((line - 61)): planted has 61 lines"

line=$(next_line src/base/hash.c)
cat >>"$copy/src/base/hash.c" <<'END'
int planted(int a, int b, int c, int d,
            int e, int (*f)(int, int))
{
}
END
expect too_many_arguments_are_found "src/base/hash.c:$line: planted has 6 arguments"

line=$(next_line src/base/hash.c)
cat >>"$copy/src/base/hash.c" <<'END'
int planted(int x)
{
    if (x) {
        for (;;) {
            do {
                switch (x) {
                case 1: {
                }
                }
            } while (x);
        }
    }
}
END
expect deep_nesting_is_found "src/base/hash.c:$((line + 5)): planted nests blocks deeper than 3"

line=$(next_line src/base/hash.c)
printf '/* %095d */\n' 0 >>"$copy/src/base/hash.c"
expect a_long_line_is_found "src/base/hash.c:$line: 101 columns"

line=$(next_line src/base/status.c)
for ((i = line; i < 602; i++)); do echo '/* more */'; done >>"$copy/src/base/status.c"
expect a_long_file_is_found "src/base/status.c:1: 601 lines"

line=$(next_line src/base/hash.c)
function_with '    cuInit(0);' 1 >>"$copy/src/base/hash.c"
expect cuda_in_a_common_file_is_found "src/base/hash.c:$((line + 2)): CUDA"

sed -i '1,/^1\. /s/`tokmap_i_mixture_at`/`tokmap_i_shuffle_window`/' "$copy/docs/READING.md"
expect a_step_of_a_walk_in_another_file_is_found "src/order/mixture.c does not define tokmap_i_shuffle_window"

echo 'Then `tokmap_i_planted` in `planted.c`.' >>"$copy/docs/READING.md"
line=$(next_line docs/READING.md)
expect a_function_that_does_not_exist_is_found "docs/READING.md:$((line - 1)): there is no tokmap_i_planted"

echo 'Then `tokmap_i_fail` in `planted.c`.' >>"$copy/docs/READING.md"
expect a_file_that_does_not_exist_is_found "docs/READING.md:$((line - 1)): there is no planted.c"

line=$(next_line src/base/hash.c)
echo "/* FIX""ME later */" >>"$copy/src/base/hash.c"
expect a_forgotten_note_is_found "src/base/hash.c:$line: a note left for later"

sed -i 1d "$copy/include/tokmap.h"
expect a_file_without_its_licence_is_found "include/tokmap.h:1: the first line must be SPDX-License-Identifier"

echo '#include "base/hash.h"' >>"$copy/src/base/base.h"
echo '#include "base/base.h"' >>"$copy/src/base/hash.h"
expect a_circle_is_found "a circle of includes: src/base/base -> src/base/hash -> src/base/base"

mkdir "$copy/src/newcomer"
echo >"$copy/src/newcomer/new.c"
expect a_room_without_a_row_is_found "src/newcomer:1: is no room"

sed -i 's/^| `src\/order\/` |.*/| `src\/order\/` | x | `src\/base\/` `src\/system\/` |/' "$copy/docs/ARCHITECTURE.md"
expect an_arrow_that_is_not_there_is_found "src/order does not use src/system"

check

rm -r "$copy/src/stage"
expect a_row_without_its_room_is_found "there is no room src/stage"

sed -i 's/^| `src\/base\/` |.*/| `src\/base\/` | x | `src\/system\/` |/' "$copy/docs/ARCHITECTURE.md"
echo '#include "system/platform.h"' >>"$copy/src/base/hash.c"
expect a_circle_of_rooms_is_found "a circle of rooms: src/system -> src/base -> src/system"

check
exit $status
