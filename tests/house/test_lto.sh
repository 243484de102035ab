#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# With -flto, gcc would leave every internal name in the archive. The archive must have the same names as without.

. "$(dirname "$0")/../support/report.sh"
[ -n "$TOKMAP_LONG" ] && [ -z "$TOKMAP_SANITIZED" ] || skip_all archive_of_lto "builds again; make test-builds runs it"
cc --version | grep -qi 'gcc\|Free Software' || skip_all archive_of_lto "cc is not gcc"

names() # archive: what a program can call; test_exports.sh compares those of the build with the headers
{
    nm -g --defined-only "$1" | awk 'NF == 3 { print $3 }' | sort
}

said=$(env -u MAKEFLAGS -u MFLAGS -u WERROR -u CC make -j2 BUILD="$work/lto" CFLAGS='-O0 -flto -ffat-lto-objects' \
    "$work/lto/libtokmap.a" 2>&1) &&
    said=$(diff <(names "$build/libtokmap.a") <(names "$work/lto/libtokmap.a"))
outcome an_archive_of_lto_defines_the_same_names $? "$said"
exit $status
