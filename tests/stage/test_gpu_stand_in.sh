#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `make gpu-test` does on a GPU, with a driver that stands in for it: the driver is found by
# its name, each of its calls by its own, and the tests themselves say what they mean to.

cd "$(dirname "$0")/../.." || exit 1
build=${TOKMAP_BUILD:-build}
if [ "${TOKMAP_SANITIZED-}" = tsan ]; then
    echo "skip gpu_stand_in: two copies of the library in one process, under a sanitizer"
    exit 77
fi
# The tests leave streams and device memory to the end of their process.
out=$(ASAN_OPTIONS=detect_leaks=0 LD_LIBRARY_PATH=$build/stand_in "$build/test_gpu" 2>&1)
status=$?
echo "$out" | grep -vE '^(ok|note) ' | sed 's/^/    /'
n=$(grep -c '^ok ' <<<"$out")
code=0
if [ $status = 0 ] && [ "$n" -ge 6 ]; then
    echo "ok the_tests_of_a_gpu_pass_on_the_stand_in"
else
    echo "FAIL the_tests_of_a_gpu_pass_on_the_stand_in: status $status, $n passed"
    code=1
fi
if [ -n "${TOKMAP_SANITIZED-}" ]; then
    echo "skip the_tests_in_python_pass_on_the_stand_in: a sanitized library"
    exit $code
fi
if ! command -v "${PYTHON:-python3}" >/dev/null; then
    echo "skip the_tests_in_python_pass_on_the_stand_in: ${PYTHON:-python3} not found"
    exit $code
fi
# The frameworks would take the stand-in for a device that computes; what needs none of them runs.
out=$(LD_LIBRARY_PATH=$build/stand_in "${PYTHON:-python3}" tests/python/test_python_gpu.py --plain 2>&1)
status=$?
echo "$out" | grep -vE '^ok ' | sed 's/^/    /'
n=$(grep -c '^ok ' <<<"$out")
if [ $status = 0 ] && [ "$n" -ge 3 ]; then
    echo "ok the_tests_in_python_pass_on_the_stand_in"
else
    echo "FAIL the_tests_in_python_pass_on_the_stand_in: status $status, $n passed"
    code=1
fi
exit $code
