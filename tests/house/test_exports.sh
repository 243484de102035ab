#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each library exports the names of its headers and no other, with the versions of abi.txt; each header
# compiles alone, and so does the example at its top.

. "$(dirname "$0")/../support/report.sh"

header_names() # headers: what a program can call
{
    grep -hv '^ *#' "$@" | tr '\n' ' ' | grep -oE 'TOKMAP_API [^(]*\(' |
        grep -oE 'tokmap_[a-z0-9_]+\(' | tr -d '(' | sort
}

if [ -n "$TOKMAP_SANITIZED" ]; then
    echo "skip exports: a sanitizer adds names of its own"
elif ! command -v nm >/dev/null; then
    echo "skip exports: nm not found (package binutils)"
else
    header_names include/*.h >"$work/headers"
    n_names=$(wc -l <"$work/headers")
    verdict headers_are_understood "$([ "$n_names" -gt 20 ] || echo "only $n_names names")"

    while read -r name; do
        grep -qw "$name" docs/man/libtokmap.3 || echo "$name"
    done <"$work/headers" >"$work/log"
    verdict the_man_page_names_all_calls "$(head -n 5 "$work/log")"

    said=$("$python" tests/house/man_headers.py 2>&1)
    outcome the_man_pages_of_the_headers_are_what_these_say $? "$said"

    for library in libtokmap libtokmap_tokenizer; do
        case $library in
        libtokmap) header_names $(ls include/*.h | grep -v tokenizer) ;;
        *) header_names include/tokmap_tokenizer.h ;;
        esac >"$work/own"
        nm -D --defined-only "$build/$library.so" |
            awk '$2 != "A" { sub("@.*", "", $3); print $3 }' | sort >"$work/shared"
        diff "$work/own" "$work/shared" >"$work/diff"
        verdict "${library}_exports_the_header_names_only" "$(head -n 5 "$work/diff")"
        nm -D --defined-only --with-symbol-versions "$build/$library.so" |
            awk '$2 != "A" { sub("@@", "() ", $3); print $3 }' >>"$work/built"
        readelf -d "$build/$library.so" |
            sed -n "s/.*SONAME.*\[$library\.so\.\(.*\)\]/ABI \1/p" >>"$work/built"
    done
    sed -n 's/^\(tokmap_.*() [^:]*\):.*/\1/p; /^ABI/p' tests/house/abi.txt | sort >"$work/kept"
    sort -u "$work/built" | diff "$work/kept" - >"$work/diff"
    verdict soname_and_symbol_versions_are_those_of_abi_txt "$(head -n 5 "$work/diff")"
    readelf -d "$build/libtokmap_tokenizer.so" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' |
        grep -vE '^(libc|libxxhash|ld-linux.*)\.so' >"$work/needed"
    verdict libtokmap_tokenizer_needs_nothing_but_xxhash "$(head -n 5 "$work/needed")"

    archive_names() # archive: what a program can call
    {
        nm -g --defined-only "$1" | awk 'NF == 3 { print $3 }' | sort
    }
    header_names $(ls include/*.h | grep -v tokenizer) >"$work/own"
    diff "$work/own" <(archive_names "$build/libtokmap.a") >"$work/diff"
    verdict libtokmap_a_defines_the_header_names_only "$(head -n 5 "$work/diff")"
    header_names include/tokmap_tokenizer.h >"$work/own"
    diff "$work/own" <(archive_names "$build/libtokmap_tokenizer.a") >"$work/diff"
    verdict libtokmap_tokenizer_a_defines_the_header_names_only "$(head -n 5 "$work/diff")"
fi

strict='-Wall -Wextra -Wpedantic -Werror -Iinclude -fsyntax-only'
for header in include/*.h; do
    name=$(basename "$header" .h)
    printf '#include "%s"\n#include "%s"\n' "$name.h" "$name.h" >"$work/alone.c"
    echo 'size_t use(void); size_t use(void) { tokmap_dataset_info i = TOKMAP_INIT(tokmap_dataset_info); return i.struct_size; }' \
        >>"$work/alone.c"
    ${CC:-cc} -std=c11 $strict "$work/alone.c" 2>"$work/log"
    verdict "${name}_alone_in_c11" "$(head -n 5 "$work/log")"
    if command -v g++ >/dev/null; then
        cp "$work/alone.c" "$work/alone.cc"
        g++ -std=c++11 $strict "$work/alone.cc" 2>"$work/log"
        verdict "${name}_alone_in_cxx11" "$(head -n 5 "$work/log")"
    else
        echo "skip ${name}_alone_in_cxx11: g++ not found"
    fi

    sed -n '/^ \* Example: /,/^ \* The rules/s/^ \*     //p' "$header" >"$work/example"
    [ -s "$work/example" ] || echo '#error no example' >"$work/example"
    { printf '#include <stdio.h>\n#include "%s.h"\n' "$name"; cat "$work/example"; } >"$work/example.c"
    ${CC:-cc} -std=c11 -Wall -Wextra -Werror -Iinclude -fsyntax-only "$work/example.c" 2>"$work/log"
    verdict "${name}_example_in_c11" "$(head -n 5 "$work/log")"
    if echo 'int x;' | "${CXX:-c++}" -std=c++20 -x c++ -fsyntax-only - 2>/dev/null; then
        "${CXX:-c++}" -std=c++20 -Wall -Werror -Iinclude -fsyntax-only -x c++ \
            "$work/example.c" 2>"$work/log"
        verdict "${name}_example_in_cxx20" "$(head -n 5 "$work/log")"
    else
        echo "skip ${name}_example_in_cxx20: no compiler for C++20"
    fi
done

exit $status
