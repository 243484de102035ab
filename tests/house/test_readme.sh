#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The README shows what `make demo` prints, and C that compiles.
cd "$(dirname "$0")/../.." || exit 1
: "${TOKMAP_BUILD:=$PWD/build}"
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
status=0

say() { # outcome of the last command, name, why
    if [ "$1" = 0 ]; then
        echo "ok $2"
    else
        echo "FAIL $2: $3"
        status=1
    fi
}

# The first fenced block after the comment that names the test.
awk '/output of make demo/ { seen = 1; next }
     seen && /^```/ { if (inside) exit; inside = 1; next }
     inside { print }' README.md >"$folder/shown"
mkdir "$folder/build"
ln -s "$TOKMAP_BUILD/tokmap" "$folder/build/tokmap"
TOKMAP=$folder/build/tokmap sh docs/demo.sh 2>&1 |
    sed -e 's|^Everything is in .*|Everything is in build/demo|' -e "s|^The program is [^ ]*tokmap\.|The program is build/tokmap.|" -e 1d >"$folder/printed"
if diff "$folder/shown" "$folder/printed" >"$folder/diff"; then
    say 0 the_readme_shows_what_the_demo_prints
else
    say 1 the_readme_shows_what_the_demo_prints "$(tr '\n' '|' <"$folder/diff")"
fi

# Its pieces of C, one after another in one function, are C11 and C++20.
awk '/^```c$/ { inside = 1; next } /^```/ { inside = 0 } inside { print }' README.md >"$folder/pieces"
{
    grep '^#include' "$folder/pieces"
    cat <<'END'
#ifdef __cplusplus
template <class... T> void train(T...);
#else
void train();
#endif
int fail(const char *text);
int example(uint32_t rank, void *stream)
{
    tokmap_status status;
END
    grep -v '^#include' "$folder/pieces"
    echo 'return 0; }'
} >"$folder/example.c"
cp "$folder/example.c" "$folder/example.cc"
${CC:-cc} -std=c11 -Iinclude -fsyntax-only "$folder/example.c" 2>"$folder/log"
say $? the_readme_shows_c11 "$(head -n 3 "$folder/log" | tr '\n' '|')"
if echo 'int x;' | "${CXX:-c++}" -std=c++20 -x c++ -fsyntax-only - 2>"$folder/log"; then
    "${CXX:-c++}" -std=c++20 -Iinclude -fsyntax-only "$folder/example.cc" 2>"$folder/log"
    say $? the_readme_shows_cxx20 "$(head -n 3 "$folder/log" | tr '\n' '|')"
else
    echo "skip the_readme_shows_cxx20: no compiler for C++20"
fi
exit $status
