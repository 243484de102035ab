#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# docs/commands.md shows what `make demo` prints, and docs/from-c.md C that compiles.

. "$(dirname "$0")/../support/report.sh"

# The first fenced block after the comment that names the test.
awk '/output of make demo/ { seen = 1; next }
     seen && /^```/ { if (inside) exit; inside = 1; next }
     inside { print }' docs/commands.md >"$work/shown"
mkdir "$work/build"
ln -s "$build/tokmap" "$work/build/tokmap"
TOKMAP=$work/build/tokmap sh docs/demo.sh 2>&1 |
    sed -e 's|^Everything is in .*|Everything is in build/demo|' -e "s|^The program is [^ ]*tokmap\.|The program is build/tokmap.|" -e 1d >"$work/printed"
verdict the_commands_are_what_the_demo_prints "$(diff "$work/shown" "$work/printed")"

# Its pieces of C, one after another in one function, are C11 and C++20.
awk '/^```c$/ { inside = 1; next } /^```/ { inside = 0 } inside { print }' docs/from-c.md >"$work/pieces"
{
    grep '^#include' "$work/pieces"
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
    grep -v '^#include' "$work/pieces"
    echo 'return 0; }'
} >"$work/example.c"
cp "$work/example.c" "$work/example.cc"
${CC:-cc} -std=c11 -Iinclude -fsyntax-only "$work/example.c" 2>"$work/log"
outcome the_page_shows_c11 $? "$(head -n 3 "$work/log")"
if echo 'int x;' | "${CXX:-c++}" -std=c++20 -x c++ -fsyntax-only - 2>"$work/log"; then
    "${CXX:-c++}" -std=c++20 -Iinclude -fsyntax-only "$work/example.cc" 2>"$work/log"
    outcome the_page_shows_cxx20 $? "$(head -n 3 "$work/log")"
else
    echo "skip the_page_shows_cxx20: no compiler for C++20"
fi
exit $status
