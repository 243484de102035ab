#!/usr/bin/env bash
# The example of a training loop compiles against the installed face alone, and a run that was
# broken off goes on exactly where it stood.

cd "$(dirname "$0")/../.." || exit 1
build=${TOKMAP_BUILD:-build}
work=$(mktemp -d "${TMPDIR:-/tmp}/tokmap_example_XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
status=0

verdict() # name, what is wrong
{
    if [ -n "$2" ]; then
        echo "FAIL $1: $2"
        status=1
    else
        echo "ok $1"
    fi
}

"$build/tokmap" pack docs/demo/*.txt docs/*.md --tokenizer bytes -o "$work/data" \
    >/dev/null 2>"$work/err" || verdict packs_a_corpus "$(cat "$work/err")"

loop() # state, steps, output
{
    "$build/train_loop" "$work/data" "$work/$1" "$2" host >>"$work/$3" 2>>"$work/err" ||
        echo "exit status $?: $(tail -n 1 "$work/err")"
}

verdict trains_in_one_run "$(loop whole 12 whole.out)"
verdict trains_in_three_runs "$(loop parts 5 parts.out; loop parts 1 parts.out
    loop parts 6 parts.out)"
verdict three_runs_see_what_one_sees "$(diff "$work/whole.out" "$work/parts.out" | head -n 3)"
verdict every_batch_is_another_one \
    "$([ "$(cut -d, -f1 "$work/whole.out" | cut -d: -f2 | sort -u | wc -l)" = 12 ] || cat "$work/whole.out")"
cmp -s "$work/whole" "$work/parts"
verdict both_end_with_the_same_state "$([ $? = 0 ] || echo "they differ")"
head -c 60 "$work/whole" >"$work/short"
said=$("$build/train_loop" "$work/data" "$work/short" 1 2>&1)
verdict a_short_state_is_refused "$([[ $said == *"too short"* ]] || echo "$said")"
if ! said=$("$build/train_loop" "$work/data" "$work/whole" 1 0 2>&1); then
    verdict says_what_is_missing_without_a_device \
        "$([[ $said == *"CUDA driver"* ]] || echo "$said")"
else
    echo "ok trains_on_a_device"
fi

if echo 'int x;' | "${CXX:-c++}" -std=c++20 -x c++ -fsyntax-only - 2>/dev/null; then
    "${CXX:-c++}" -std=c++20 -D_GNU_SOURCE -Wall -Werror -Iinclude -fsyntax-only -x c++ \
        docs/examples/train_loop.c 2>"$work/err"
    verdict compiles_as_cxx20 "$(head -n 3 "$work/err")"
else
    echo "skip compiles_as_cxx20: no compiler for C++20"
fi

cuda=${CUDA_HOME:-/usr/local/cuda}/include
if [ -e "$cuda/cuda_runtime.h" ] && command -v "${CC:-cc}" >/dev/null; then
    "${CC:-cc}" -std=c11 -D_GNU_SOURCE -Wall -Werror -DWITH_CUDA -Iinclude -isystem "$cuda" -c \
        docs/examples/train_loop.c -o "$work/with_cuda.o" 2>"$work/err"
    verdict compiles_with_the_toolkit "$(head -n 3 "$work/err")"
else
    echo "skip compiles_with_the_toolkit: cuda_runtime.h not found"
fi
exit $status
