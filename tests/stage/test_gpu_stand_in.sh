#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `make gpu-test` does on a GPU, with a driver that stands in for it: the driver is found by
# its name, each of its calls by its own, and the tests themselves say what they mean to.

. "$(dirname "$0")/../support/report.sh"
[ "${TOKMAP_SANITIZED-}" != tsan ] ||
    skip_all gpu_stand_in "two copies of the library in one process, under a sanitizer"

pass_on_the_stand_in() # name, least number of tests that pass, command
{
    local out code n name=$1 least=$2
    shift 2
    out=$(LD_LIBRARY_PATH=$build/stand_in "$@" 2>&1)
    code=$?
    grep -vE '^(ok|note) ' <<<"$out" | sed 's/^/    /'
    n=$(grep -c '^ok ' <<<"$out")
    verdict "$name" "$([ $code = 0 ] && [ "$n" -ge "$least" ] || echo "status $code, $n passed")"
}

# The tests leave streams and device memory to the end of their process.
ASAN_OPTIONS=detect_leaks=0 pass_on_the_stand_in the_tests_of_a_gpu_pass_on_the_stand_in 6 "$build/test_gpu"
# The frameworks would take the stand-in for a device that computes; what needs none of them runs.
if [ -n "${TOKMAP_SANITIZED-}" ] || ! "$python" -c 'import numpy' 2>/dev/null; then
    echo "skip the_tests_in_python_pass_on_the_stand_in: a sanitized library, or no NumPy for $python"
else
    pass_on_the_stand_in the_tests_in_python_pass_on_the_stand_in 3 "$python" tests/python/test_python_gpu.py --plain
fi
exit $status
