#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Missing parts make a smaller build that says so, or one line that names the package.

. "$(dirname "$0")/../support/report.sh"
[ -n "$TOKMAP_LONG" ] && [ -z "$TOKMAP_SANITIZED" ] ||
    skip_all build_without_parts "builds again and again; make test runs it"
unset CC CPPFLAGS LDFLAGS ZSTD ZLIB ISAL XXHASH
# What the calling make was given: warnings as errors are for the optimised build, whose warnings are right.
unset MAKEFLAGS MFLAGS WERROR
export CFLAGS=-O0

says() # text, pattern ...: all in the text
{
    local text=$1 pattern
    shift
    for pattern; do grep -qE "$pattern" <<<"$text" || return 1; done
}

# A compiler for which some headers and libraries do not exist.
compiler_without() # words in a command line that make it fail
{
    cat >"$work/cc" <<END
#!/bin/sh
case " \$* " in *$1*) exit 1 ;; esac
exec cc "\$@"
END
    chmod +x "$work/cc"
}

said=$(make -j2 BUILD="$work/small" ZSTD=no ZLIB=no ISAL=no 2>&1)
says "$said" '^ *zstd +no +disabled by ZSTD=no' '^ *zlib +no +disabled by ZLIB=no' '^ *xxHash +yes'
outcome parts_left_out_are_named $? "$said"
said=$("$work/small/tokmap" --version 2>&1)
says "$said" '^zstd +not in this build' '^zlib +not in this build'
outcome tokmap_works_without_the_optional_parts $? "$said"
said=$(ldd "$work/small/tokmap" "$work/small/libtokmap.so")
! says "$said" 'libzstd|libz\.|libisal'
outcome it_is_linked_to_none_of_them $? "$said"

probe()
{
    make BUILD="$work/probe" CC="$work/cc" "$work/probe/config.h" 2>&1
    cat "$work/probe/config.h"
}

compiler_without zstd.h
said=$(probe)
says "$said" 'HAVE_ZSTD 0' && ! says "$said" 'HAVE_ZSTD 1'
outcome the_probe_sees_that_a_header_is_missing $? "$said"
printf '#!/bin/sh\nexec cc "$@"\n' >"$work/cc"
if echo 'int main(void) { return 0; }' |
    cc -include zstd.h -x c - -o "$work/with_zstd" -lzstd 2>/dev/null; then
    said=$(probe)
    says "$said" 'HAVE_ZSTD 1'
    outcome a_package_installed_later_is_found $? "$said"
else
    echo "skip a_package_installed_later_is_found: libzstd-dev is not here"
fi

for missing in XXHASH=no CC="$work/cc"; do
    compiler_without xxhash.h
    said=$(make BUILD="$work/none" "$missing" 2>&1)
    made=$?
    [ $made != 0 ] && [ "$(wc -l <<<"$said")" = 1 ] &&
        says "$said" 'install the package libxxhash-dev'
    outcome "xxhash_missing_by_${missing%%=*}_is_one_line_with_the_package" $? "$said"
done

said=$(CC="$work/cc" sh .ci/need -n build 2>&1)
[ $? = 1 ] && says "$said" 'apt-get install -y --no-install-recommends libxxhash-dev'
outcome need_prints_the_line_that_installs_what_is_required $? "$said"
compiler_without zlib.h
said=$(CC="$work/cc" sh .ci/need -n build 2>&1)
[ $? = 0 ] && says "$said" 'Optional and missing: .*zlib1g-dev'
outcome need_goes_on_without_an_optional_part $? "$said"

refused() # name, the reason, options of the compiler
{
    local name=$1 reason=$2
    shift 2
    said=$(cc -Isrc -Iinclude -fsyntax-only -Wno-builtin-macro-redefined "$@" src/base/le.h 2>&1)
    [ $? != 0 ] && says "$said" "#error .*$reason"
    outcome "$name" $? "$said"
}

refused big_endian_processors_are_refused_by_name 'needs a little-endian processor' \
    -U__BYTE_ORDER__ -D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__
refused processors_of_32_bits_are_refused_by_name 'needs a 64-bit processor' \
    -U__SIZEOF_POINTER__ -D__SIZEOF_POINTER__=4
said=$(cc -Isrc -Iinclude -fsyntax-only src/base/le.h 2>&1)
outcome this_processor_is_not_refused $? "$said"

exit $status
