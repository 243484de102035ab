#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh counts rightly, and takes no crash, hang or silence for a success.

root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/tokmap_runner_XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
status=0

given() # name of a test script, its text
{
    printf '#!/usr/bin/env bash\n%s\n' "$2" >"$work/$1"
}

expect() # name, exit status, last line, scripts ...; seconds=N before it: their time limit
{
    local name=$1 want_status=$2 want=$3 got
    shift 3
    said=$(TMPDIR=$work TOKMAP_TIMEOUT=${seconds:-60} TOKMAP_LONG='' TOKMAP_SANITIZED='' \
        bash "$root/tests/run.sh" "${@/#/$work/}" 2>&1)
    got=$?
    if [ "$got" = "$want_status" ] && [ "$(tail -n 1 <<<"$said")" = "$want" ]; then
        echo "ok $name"
    else
        echo "FAIL $name: status $got: $(tr '\n' '/' <<<"$said")"
        status=1
    fi
}

given good.sh 'echo ok one; echo noise; echo ok two; echo "skip three: no luck"'
given bad.sh 'echo ok one; echo "FAIL two: so be it"; exit 1'
given skipped.sh 'echo "skip all: no luck"; exit 77'
given crash.sh 'echo ok one; kill -SEGV $$'
given status.sh 'echo ok one; exit 1'
given hang.sh 'echo ok one; sleep 60'
given silent.sh 'exit 0'
given silent_skip.sh 'exit 77'
given lies.sh 'echo ok one; echo "FAIL two: so be it"; exit 0'
given litter.sh 'echo ok one; touch "$TMPDIR/litter"'

expect passes_and_skips_are_counted 0 '2 passed, 0 failed, 2 skipped' good.sh skipped.sh
expect a_failure_is_counted_once 1 '3 passed, 1 failed, 1 skipped' good.sh bad.sh
expect a_crash_is_a_failure 1 '1 passed, 1 failed, 0 skipped' crash.sh
expect a_bad_exit_status_is_a_failure 1 '1 passed, 1 failed, 0 skipped' status.sh
seconds=2 expect a_hang_is_a_failure 1 '1 passed, 1 failed, 0 skipped' hang.sh
expect silence_is_a_failure 1 '0 passed, 2 failed, 0 skipped' silent.sh silent_skip.sh
expect a_failure_with_status_0_is_a_failure 1 '1 passed, 1 failed, 0 skipped' lies.sh
expect files_left_behind_are_a_failure 1 '1 passed, 1 failed, 0 skipped' litter.sh
expect a_missing_program_is_a_failure 1 '0 passed, 1 failed, 0 skipped' nothing
expect no_test_at_all_is_a_failure 1 '0 passed, 0 failed, 0 skipped'
expect nothing_but_skips_is_no_success 1 '0 passed, 0 failed, 1 skipped' skipped.sh

given places.sh 'echo ok one; echo "skip a.md:7: no torch: get it"; echo "skip b.md:9: no torch: get it"'
expect reasons_may_be_after_a_line_number 0 '3 passed, 0 failed, 3 skipped' good.sh places.sh
if [ "$(tail -n 5 <<<"$said" | head -n 4)" = "$(printf 'Skipped, because:\n%7d %s\n%7d %s\n%s' 2 'no torch: get it' \
    1 'no luck' 'Left out: 2 tests, because there are no frameworks: make test-frameworks')" ]; then
    echo "ok skips_are_grouped_by_reason"
else
    echo "FAIL skips_are_grouped_by_reason: $(tr '\n' '/' <<<"$said")"
    status=1
fi
given named.py 'import sys; from ref_protocol import run_tests; sys.exit(run_tests([("one", str), ("another", str)]))'
ONLY=other expect one_test_of_a_script_runs_alone 0 '1 passed, 0 failed, 0 skipped' named.py
ONLY=third expect a_script_without_the_test_that_is_wanted_says_so 1 '0 passed, 0 failed, 1 skipped' named.py
says() # name, what run.sh said
{
    if grep -q "$2" <<<"$said"; then
        echo "ok $1"
    else
        echo "FAIL $1: $(tr '\n' '/' <<<"$said")"
        status=1
    fi
}
says the_word_that_no_name_has_is_shown 'skip named.py: no test has third in its name$'
given failing.py 'import sys
from ref_protocol import expect, run_tests
def one():
    try: {}["key"]
    except KeyError: expect(False, "one is not two")
sys.exit(run_tests([("one", one)]))'
expect a_failure_in_python_is_counted 1 '0 passed, 1 failed, 0 skipped' failing.py
says a_failure_begins_with_its_assertion \
    "FAIL one: one is not two | failing.py:6: [^|]* | after KeyError: 'key' | failing.py:5: "
given folder.sh '[ -d "$TOKMAP_BUILD" ] && echo ok one'
TOKMAP_BUILD='' expect the_folder_of_the_programs_has_a_default 0 '1 passed, 0 failed, 0 skipped' folder.sh
exit $status
