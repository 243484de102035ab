#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# try_installed.sh PART ... - uses the tokmap that is installed as a newcomer would, from the examples of this
# source and the datasets of its oldest release. The parts: commands; library (a C compiler and pkg-config); python; manuals.
# PYTHON is the interpreter [python3]. Works in a temporary folder; prints a line for each part.

set -Eeuo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'echo "FAIL $part: line $LINENO" >&2' ERR
cd "$work"
python=${PYTHON:-python3}
version=$(sed -n 's/.*TOKMAP_VERSION_TEXT "\(.*\)"/\1/p' "$root/include/tokmap.h")
old=$(cd "$root/tests/release" && ls -d [0-9]* | head -n 1)
part=prepare

same() # expected, found: files
{
    diff "$1" "$2" >differs || { head -n 5 differs >&2; false; }
}

# A command runs twice for 5 steps, and once for 10: the same sums or losses, and the same state.
train() # name, command ...
{
    local name=$1
    shift
    rm -f halves.npz whole.npz
    "$@" data halves.npz 5 >"$name.1"
    "$@" data halves.npz 5 >>"$name.1"
    "$@" data whole.npz 10 >"$name.2"
    same "$name.2" "$name.1"
    cmp whole.npz halves.npz
}

try_commands()
{
    tokmap --version | grep "^tokmap $version" >/dev/null
    cp "$(command -v tokmap)" . # the demo writes beside it
    TOKMAP=$work/tokmap sh "$root/docs/demo.sh" >/dev/null
    tokmap info data | grep '^format: *version 1' >/dev/null
    tokmap cat data --documents 0 --text | same "$(ls "$root"/docs/*.md | head -n 1)" /dev/stdin
    tokmap verify data
    (cd "$old" && tokmap verify $(ls *.tmi | sed 's/\.tmi$//' | grep -v huge) | tail -n 1)
    tokbench --help >/dev/null
}

try_library()
{
    local flags program
    flags=$(pkg-config --cflags --libs tokmap)
    [ "$(pkg-config --modversion tokmap)" = "$version" ]
    for program in docs/examples/train_loop tests/support/tool_release; do
        ${CC:-cc} -D_GNU_SOURCE "$root/$program.c" -o "$(basename $program)" $flags -lxxhash
    done
    ${CC:-cc} "$root/docs/examples/tokenize_lines.c" -o tokenize_lines $(pkg-config --cflags --libs tokmap_tokenizer)
    [ "$(echo ab | ./tokenize_lines bytes)" = "97 98" ]
    train c ./train_loop
    (cd "$old" && ../tool_release <contents.txt) >seen
    same "$old/expected.txt" seen
}

try_python()
{
    tokmap report data --sequence-length 16 --until 100 | tail -n 1
    train numpy "$python" "$root/docs/examples/train_loop.py"
    tail -n 1 numpy.1
    "$python" - "$old" <<'END'
import sys
import tokmap
folder = sys.argv[1]
loader = tokmap.Loader(f"{folder}/texts", sequence_length=16, batch_rows=3, seed=2, shuffle="none", max_epochs=2)
with open(f"{folder}/states/none", "rb") as state:
    loader.restore(state.read())
inputs = next(iter(loader)).inputs
assert (inputs.ravel() == tokmap.open(f"{folder}/texts").tokens(12 * 16, 3 * 16)).all(), inputs
print("restored a state of", folder)
print(*tokmap.Tokenizer("bytes").encode("ab"))
END
}

try_manuals()
{
    local page
    for page in tokmap.1 tokmap-pack.1 tokbench.1 libtokmap.3 tokmap-format.5 tokmap-tokenizers.7; do
        man -E UTF-8 "${page##*.}" "${page%.*}" 2>"$page.warnings" | grep "$version" >/dev/null
        [ ! -s "$page.warnings" ]
    done
    source "$(dirname "$(command -v tokmap)")/../share/bash-completion/completions/tokmap"
    COMP_WORDS=(tokmap in) COMP_CWORD=1
    _tokmap
    [ "${COMPREPLY[*]}" = "index info" ]
}

cp -r "$root/tests/release/$old" .
truncate -s 8589934996 "$old/huge.bin"
tokmap pack "$root"/docs/*.md -o data
for part; do
    "try_$part"
    echo "ok $part"
done
