#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `make install` leaves: commands, man pages, a library that pkg-config and CMake find.

. "$(dirname "$0")/../support/report.sh"
[ -n "$TOKMAP_LONG" ] && [ -z "$TOKMAP_SANITIZED" ] || skip_all install "builds again; make test runs it"

version=$(sed -n 's/.*TOKMAP_VERSION_TEXT "\(.*\)"/\1/p' include/tokmap.h)
cat >"$work/program.c" <<'END'
#include <stdio.h>
#include <string.h>
#include <tokmap.h>
#include <tokmap_writer.h>
int main(void)
{
    tokmap_dataset *ds;
    tokmap_error err;
    tokmap_status status = tokmap_dataset_open(&ds, "/nonexistent/tokmap", &err);
    printf("%s\n", tokmap_version());
    tokmap_writer_close(NULL);
    return status == TOKMAP_ERR_IO && strcmp(tokmap_version(), TOKMAP_VERSION_TEXT) == 0 ? 0 : 1;
}
END

cat >"$work/tokenizer.c" <<'END'
#include <tokmap_tokenizer.h>
int main(void)
{
    tokmap_tokenizer *t;
    const tokmap_status status = tokmap_tokenizer_open(&t, "bytes", NULL, NULL);
    tokmap_tokenizer_close(t);
    return status;
}
END

# Uses both libraries, and has names of its own that are also names inside of them.
cat >"$work/both.c" <<'END'
#include <tokmap.h>
#include <tokmap_tokenizer.h>
int fail_at(void);
int fail_at(void) { return 0; }
int utf8_decode(void);
int utf8_decode(void) { return 0; }
int main(void)
{
    return tokmap_version()[0] != tokmap_tokenizer_version()[0] || fail_at() || utf8_decode();
}
END

# With the objects of this build, so that only the links are made again.
prefix=$work/prefix
mkdir "$work/build"
cp -a "$build"/obj "$build"/config.mk "$build"/*.h "$work/build"
said=$(make -j2 install BUILD="$work/build" PREFIX="$prefix" 2>&1)
outcome make_install_works $? "$said"
[ $status = 0 ] || exit 1

said=$("$prefix/bin/tokmap" --version 2>&1 && "$prefix/bin/tokbench" --help 2>&1)
[ $? = 0 ] && grep -q "^tokmap $version" <<<"$said"
outcome installed_commands_run $? "$said"

if command -v pkg-config >/dev/null; then
    export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
    said=$(cc "$work/program.c" -o "$work/program" $(pkg-config --cflags --libs tokmap) 2>&1 &&
        LD_LIBRARY_PATH=$prefix/lib "$work/program" && pkg-config --modversion tokmap)
    [ "$said" = "$version"$'\n'"$version" ]
    outcome a_program_builds_with_pkg_config $? "$said"
    said=$(cc "$work/tokenizer.c" -o "$work/tokenizer" \
        $(pkg-config --cflags --libs tokmap_tokenizer) 2>&1 && LD_LIBRARY_PATH=$prefix/lib "$work/tokenizer")
    outcome a_program_with_a_tokenizer_builds_with_pkg_config $? "$said"
    said=$(cc "$work/program.c" -o "$work/program" $(pkg-config --cflags tokmap) \
        "$prefix/lib/libtokmap.a" -pthread \
        $(pkg-config --static --libs-only-l tokmap | sed 's/-ltokmap//') 2>&1 && "$work/program")
    [ "$said" = "$version" ]
    outcome a_program_builds_with_the_static_library $? "$said"
    if echo 'int main(void) { return 0; }' | cc -static -x c - -lxxhash -o "$work/probe" 2>"$work/why"; then
        said=$(cc -static "$work/program.c" -o "$work/program" \
            $(pkg-config --static --cflags --libs tokmap) 2>"$work/why" && "$work/program")
        [ "$said" = "$version" ]
        outcome a_program_without_shared_libraries_builds_with_pkg_config $? "$said $(cat "$work/why")"
        said=$(cc -static "$work/tokenizer.c" -o "$work/tokenizer" \
            $(pkg-config --static --cflags --libs tokmap_tokenizer) 2>"$work/why" && "$work/tokenizer")
        outcome a_program_with_a_static_tokenizer_builds_with_pkg_config $? "$said $(cat "$work/why")"
        said=$(cc -static "$work/both.c" -o "$work/both" \
            $(pkg-config --static --cflags --libs tokmap_tokenizer tokmap) 2>"$work/why" && "$work/both")
        outcome both_static_libraries_link_into_one_program $? "$said $(cat "$work/why")"
    else
        echo "skip a_program_without_shared_libraries_builds_with_pkg_config: $(tail -n 1 "$work/why")"
    fi
else
    echo "skip programs_build_with_pkg_config: pkg-config not found"
fi

# The same files below DESTDIR, as a package is made; CMake finds them where they lie.
said=$(make install BUILD="$work/build" PREFIX=/usr DESTDIR="$work/stage" 2>&1)
outcome make_install_obeys_destdir $? "$said"
if command -v cmake >/dev/null; then
    mkdir "$work/cmake"
    cat >"$work/cmake/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.13)
project(user C)
find_package(tokmap ${version%.*} REQUIRED CONFIG)
add_executable(shared ../program.c)
target_link_libraries(shared tokmap::tokmap)
add_executable(static ../program.c)
target_link_libraries(static tokmap::static)
add_executable(tokenizer ../tokenizer.c)
target_link_libraries(tokenizer tokmap::tokenizer)
add_executable(tokenizer_static ../tokenizer.c)
target_link_libraries(tokenizer_static tokmap::tokenizer_static)
find_package(tokmap 9.9 CONFIG QUIET)
if(tokmap_FOUND)
    message(FATAL_ERROR "version 9.9 was found")
endif()
END
    made=$work/cmake/build
    said=$(cmake -S "$work/cmake" -B "$made" -DCMAKE_PREFIX_PATH="$work/stage/usr" 2>&1 &&
        cmake --build "$made" 2>&1 && "$made/shared" && "$made/static" &&
        "$made/tokenizer" && "$made/tokenizer_static")
    outcome a_program_builds_with_cmake $? "$said"
else
    echo "skip a_program_builds_with_cmake: cmake not found"
fi

verdict man_pages_are_installed "$(for page in docs/man/*.[1357]; do
    name=$(basename "$page")
    cmp "$page" "$work/stage/usr/share/man/man${name##*.}/$name" 2>&1
done)"

verdict each_call_has_a_page "$(sed -n 's/^\(tokmap_[a-z0-9_]*\)() .*/\1/p' tests/house/abi.txt | while read -r call; do
    page=$(sed -n 's|^\.so man3/||p' "$work/stage/usr/share/man/man3/$call.3" 2>&1)
    grep -q " call $call\$" "docs/man/$page" 2>/dev/null || echo "$call: $page"
done)"

said=$(make install BUILD="$work/build" PREFIX=/usr DESTDIR="$work/stripped" STRIP=1 2>&1 &&
    "$work/stripped/usr/bin/tokmap" --version)
[ $? = 0 ] && grep -q 'were stripped' <<<"$said" && ! readelf -S "$work/stripped/usr/bin/tokmap" \
    "$work/stripped"/usr/lib/libtokmap*.so.* | grep -q debug_info
outcome what_is_installed_can_be_stripped $? "$said"

touch "$work/some.bin" "$work/some.tmi" "$work/some.txt"
said=$(PATH="$work/stage/usr/bin:$PATH" bash --norc -c '
    source "$1"
    complete_words() { COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _tokmap; echo "${COMPREPLY[*]}"; }
    complete_words tokmap in
    complete_words tokmap info --js
    complete_words tokmap export --to m
    complete_words tokmap info "$2/some"
    complete_words tokmap pack "$2/some.tx"
    complete_words tokbench load stal' \
    bash "$work/stage/usr/share/bash-completion/completions/tokbench" "$work" 2>&1)
[ "$(sed "s|$work/||g" <<<"$said")" = "index info
--json
megatron
some
some.txt
stall" ]
outcome completion_knows_commands_options_and_values $? "$said"

verdict scripts_of_all_shells_are_installed "$(cd "$work/stage/usr/share" && for file in \
    bash:bash-completion/completions/tokmap bash:bash-completion/completions/tokbench zsh:zsh/site-functions/_tokmap \
    fish:fish/vendor_completions.d/tokmap.fish fish:fish/vendor_completions.d/tokbench.fish; do
    "$work/stage/usr/bin/tokmap" completion "${file%%:*}" | cmp - "${file#*:}" 2>&1
done)"

said=$(make uninstall PREFIX=/usr DESTDIR="$work/stage" 2>&1; find "$work/stage" -not -type d)
! grep -q "^$work/stage" <<<"$said"
outcome uninstall_leaves_no_file $? "$said"

exit $status
