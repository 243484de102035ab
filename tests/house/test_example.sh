#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The examples compile against the public headers alone. What write_dataset writes is what
# `tokmap pack` writes, read_dataset prints it, a training loop that was interrupted goes on
# exactly where it stopped, in C and in Python, and tokenize_lines prints the ids of `tokmap encode`.

. "$(dirname "$0")/../support/report.sh"

# ---- Write and read ----

printf 'first\n\nthe third line\n' >"$work/lines.txt"
said=$("$build/write_dataset" "$work/lines" <"$work/lines.txt" 2>&1)
verdict writes_a_dataset "$([ $? = 0 ] || echo "$said")"
said=$("$build/tokmap" verify "$work/lines" 2>&1)
verdict what_is_written_is_sound "$([ $? = 0 ] || echo "$said")"
"$build/tokmap" pack --lines "$work/lines.txt" -o "$work/packed" >/dev/null 2>"$work/err" ||
    verdict packs_the_same_lines "$(cat "$work/err")"
for p in lines packed; do
    "$build/tokmap" cat "$work/$p" >"$work/$p.cat" || echo "$p: exit status $?" >>"$work/$p.cat"
done
verdict writes_the_documents_that_pack_writes "$(diff "$work/lines.cat" "$work/packed.cat")"
verdict writes_the_token_file_that_pack_writes "$(cmp "$work/lines.bin" "$work/packed.bin" 2>&1)"
said=$(printf 'cut' | "$build/write_dataset" "$work/cut" 2>&1)
verdict refuses_a_cut_line "$([ $? = 1 ] && [[ $said == *"does not end with a newline"* ]] || echo "$said")"
verdict leaves_nothing_behind "$(find "$work" -name 'cut*')"
said=$("$build/write_dataset" "$work/lines" <"$work/lines.txt" 2>&1)
verdict refuses_to_replace "$([ $? = 1 ] && [[ $said == *exist* ]] || echo "$said")"

cat >"$work/expected" <<'END'
22 tokens of 2 bytes in 3 documents
document 0: 6 tokens: 102 105 114 115 116 256
22 tokens of 2 bytes in 3 documents
document 1: 1 tokens: 256
22 tokens of 2 bytes in 3 documents
document 2: 15 tokens: 116 104 101 32 116 104 105 114 ...
END
for token in '' 6 7; do
    "$build/read_dataset" "$work/lines" $token
done >"$work/read" 2>&1
verdict reads_a_dataset "$(diff "$work/expected" "$work/read" | head -n 3)"
said=$("$build/read_dataset" "$work/lines" 22 2>&1)
verdict refuses_a_token_behind_the_end "$([ $? = 1 ] && [[ $said == *"no document"* ]] || echo "$said")"
said=$("$build/read_dataset" "$work/nothing" 2>&1)
verdict names_what_is_missing "$([ $? = 1 ] && [[ $said == *"$work/nothing"* ]] || echo "$said")"

# ---- Tokenize ----

"$build/tokenize_lines" bytes <"$work/lines.txt" >"$work/ids" 2>&1
sed 's/.*/"&"/' "$work/lines.txt" | "$build/tokmap" encode --tokenizer bytes 2>&1 | tr -d '[]' | tr ',' ' ' \
    >"$work/expected"
verdict prints_the_ids_that_encode_prints "$(diff "$work/expected" "$work/ids" | head -n 3)"
said=$("$build/tokenize_lines" "$work/lines.txt" </dev/null 2>&1)
verdict names_the_file_that_is_no_tokenizer "$([ $? = 1 ] && [[ $said == *"$work/lines.txt: "* ]] || echo "$said")"

# ---- Train ----

"$build/tokmap" pack docs/demo/*.txt docs/*.md --tokenizer bytes -o "$work/data" \
    >/dev/null 2>"$work/err" || verdict packs_a_corpus "$(cat "$work/err")"

loop() # state, steps, output
{
    "$build/train_loop" "$work/data" "$work/$1" "$2" >>"$work/$3" 2>>"$work/err" ||
        echo "exit status $?: $(tail -n 1 "$work/err")"
}

verdict trains_in_one_run "$(loop whole 12 whole.out)"
verdict trains_in_three_runs "$(loop parts 5 parts.out; loop parts 1 parts.out
    loop parts 6 parts.out)"
verdict three_runs_see_what_one_sees "$(diff "$work/whole.out" "$work/parts.out" | head -n 3)"
verdict every_batch_is_another_one \
    "$([ "$(cut -d: -f2 "$work/whole.out" | sort -u | wc -l)" = 12 ] || cat "$work/whole.out")"
cmp -s "$work/whole" "$work/parts"
verdict both_end_with_the_same_state "$([ $? = 0 ] || echo "they differ")"
head -c 60 "$work/whole" >"$work/short"
said=$("$build/train_loop" "$work/data" "$work/short" 1 2>&1)
verdict a_short_state_is_refused "$([[ $said == *"too short"* ]] || echo "$said")"

python_loop() # checkpoint, steps, output
{
    TOKMAP_LIBRARY=$build/libtokmap.so PYTHONPATH=python "$python" docs/examples/train_loop.py \
        "$work/data" "$work/$1.npz" "$2" >>"$work/$3" 2>>"$work/err" || echo "exit status $?: $(tail -n 1 "$work/err")"
}

if [ -z "$TOKMAP_SANITIZED" ] && "$python" -c 'import numpy' 2>/dev/null; then
    verdict numpy_trains_in_one_run "$(python_loop model 9 numpy.whole)"
    verdict numpy_trains_in_two_runs "$(python_loop model_parts 4 numpy.parts; python_loop model_parts 5 numpy.parts)"
    verdict two_runs_of_numpy_print_what_one_prints "$(diff "$work/numpy.whole" "$work/numpy.parts" | head -n 3)"
    verdict its_loss_falls "$(awk '{ if (NR == 1) first = $4; last = $4 } END { if (!(last < first)) print first, last }' \
        "$work/numpy.whole")"
else
    echo "skip numpy_trains: no NumPy, or sanitized libraries, which Python cannot load"
fi

# ---- llm.c's DataLoader (llmc_dataloader.h), and C++ (tokmap.hpp) ----

mkdir "$work/shards"
said=$({ "$build/tool_llmc" write "$work/shards" && "$build/tokmap" index -q "$work"/shards/*.bin &&
    "$build/tool_llmc" compare "$work/shards"; } 2>&1 || echo "exit status $?")
verdict the_loader_of_llmc_gives_what_llmc_reads "$said"
if [ -z "$TOKMAP_SANITIZED" ]; then
    flags="-std=c++17 -pedantic -Wall -Wextra -Werror -Iinclude -Idocs/examples"
    libraries="-L$build -ltokmap -Wl,-rpath,$build"
    for compiler in g++ clang++; do
        if ! echo 'int x;' | "$compiler" -std=c++17 -x c++ -fsyntax-only - 2>/dev/null; then
            echo "skip tokmap_hpp_works_with_$compiler: it is not installed"
            continue
        fi
        said=$("$compiler" $flags tests/house/use_hpp.cpp -o "$work/hpp" $libraries 2>&1 &&
            "$work/hpp" "$work/data" "$work/nowhere" 2>&1)
        "$build/tokmap" cat --ids "$work/data" 2>"$work/err" | head -n 1 >"$work/first"
        verdict "tokmap_hpp_works_with_$compiler" "$([ "$said" = "$(cut -d' ' -f 1-5 "$work/first")
not there: -3" ] || echo "$said")"
    done
else
    echo "skip tokmap_hpp_works: sanitized libraries"
fi

if echo 'int x;' | "${CXX:-c++}" -std=c++20 -x c++ -fsyntax-only - 2>/dev/null; then
    "${CXX:-c++}" -std=c++20 -D_GNU_SOURCE -Wall -Werror -Iinclude -fsyntax-only -x c++ \
        docs/examples/*.c 2>"$work/err"
    verdict compile_as_cxx20 "$(head -n 3 "$work/err")"
else
    echo "skip compile_as_cxx20: no compiler for C++20"
fi
exit $status
