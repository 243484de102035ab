#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_large_pages.sh - the tests of loader, fetch and stage with pages of 64 KiB (tests/support/stand_in_pages.c). The
# tests of threads, many sources, slices and the driver are slower and run with TOKMAP_LONG=all.

build=${TOKMAP_BUILD:-$(dirname "$0")/../../build}
if [ -n "${TOKMAP_SANITIZED-}" ] || [ ! -e "$build/libpages.so" ]; then
    echo "skip large_pages: it takes a build without sanitizers, and libpages.so"
    exit 77
fi
status=0
tests="dataset fetch gather loader loader_joined stage"
[ "${TOKMAP_LONG-}" != all ] || tests+=" loader_many loader_threads slice stage_driver"
for test in $tests; do
    out=$(LD_PRELOAD=$build/libpages.so "$build/test_$test" 2>&1)
    code=$?
    if [ $code = 0 ] && grep -q '^ok ' <<<"$out"; then
        echo "ok large_pages_$test"
    else
        echo "FAIL large_pages_$test: status $code: $(grep -m 3 -v '^ok ' <<<"$out" | tr '\n' ' ')"
        status=1
    fi
done
exit $status
