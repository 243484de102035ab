#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_large_pages.sh - tests of loader, fetch and stage with pages of 64 KiB (tests/support/stand_in_pages.c): those that
# map, cut or read files by pages. With TOKMAP_LONG=all whole programs run, and more of them.

build=${TOKMAP_BUILD:-$(dirname "$0")/../../build}
if [ -n "${TOKMAP_SANITIZED-}" ] || [ ! -e "$build/libpages.so" ]; then
    echo "skip large_pages: it takes a build without sanitizers, and libpages.so"
    exit 77
fi
status=0
declare -A chosen=( # tests of a program; without a line all of them
    [loader]="opening_and_closing_leaves_nothing the_way_that_is_asked_for_is_taken_or_the_next_one
        advice_to_the_page_cache_outlives_another_batch_and_ends_with_the_loader"
    [loader_joined]="rows_of_one_file_are_in_its_map the_number_of_files_decides_how_they_are_read
        data_in_memory_are_used_where_they_are rows_that_were_cut_off_are_an_error_before_they_are_accessed
        a_token_file_that_is_cut_while_in_use_is_named"
    [stage]="hands_out_what_the_loader_says_in_every_variant fills_memory_of_the_callers
        a_file_that_is_cut_is_an_error_of_its_step_and_no_signal"
)
tests="dataset fetch loader loader_joined stage"
if [ "${TOKMAP_LONG-}" = all ]; then
    tests+=" gather loader_many loader_threads slice stage_driver"
    chosen=()
fi
for test in $tests; do
    read -r -d '' -a names <<<"${chosen[$test]-}"
    out=$(LD_PRELOAD=$build/libpages.so "$build/test_$test" "${names[@]}" 2>&1)
    code=$?
    # A name that the program lacks is a test that is not run.
    if [ $code = 0 ] && [ "$(grep -cE '^(ok|skip) ' <<<"$out")" -ge "$((${#names[@]} > 0 ? ${#names[@]} : 1))" ]; then
        echo "ok large_pages_$test"
    else
        echo "FAIL large_pages_$test: status $code: $(grep -m 3 -v '^ok ' <<<"$out" | tr '\n' ' ')"
        status=1
    fi
done
exit $status
