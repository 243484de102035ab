#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh TEST... - runs test programs and scripts, and counts what they say.
#
# A test prints a line for each thing it tests: `ok NAME`, `FAIL NAME: why` or `skip NAME: reason`.
# One that crashes, takes too long, says nothing or leaves files behind is a failure too. A line
# `note TEXT` is shown and not counted. Shows failures and skips; the last line is `N passed, N
# failed, N skipped`, after the reasons of the skips and how many there are of each. One more runs at
# a time than there are processors, because some wait. Environment: TOKMAP_BUILD (folder of the
# programs [build]), TOKMAP_TIMEOUT (seconds for one TEST), PYTHON [that of `make test`, if there is
# one], JOBS, ONLY (a part of the name: scripts in Python run only these tests), TOKMAP_SECONDS (a file
# that gets a line for each TEST: its name, its seconds, and the seconds of processors that it used).

root=$(cd "$(dirname "$0")/.." && pwd)
export LC_ALL=C PYTHONDONTWRITEBYTECODE=1 TOKMAP_BUILD=${TOKMAP_BUILD:-$root/build}
export PYTHON=${PYTHON:-$(sh "$root/.ci/python" -n "$TOKMAP_BUILD")}
export PYTHONPATH=$root/tests/oracles:$root/tests/support
case $PYTHON in */*) PATH=$(dirname "$PYTHON"):$PATH ;; esac # where build/tokmap-python finds its interpreter
export OPENBLAS_NUM_THREADS=1 # NumPy starts no threads then, a quarter of its import
unset MAKEFLAGS MFLAGS MAKELEVEL

interpreter() # of the test $1, nothing for a program
{
    case $1 in
    *.py) echo "$PYTHON" ;;
    *.sh) if head -n 1 "$1" | grep -q bash; then echo bash; else echo sh; fi ;;
    esac
}

run_one() # test $1, everything about it in the folder $RUN_DIR
{
    local name log status say runner seconds
    name=$(basename "$1")
    log=$RUN_DIR/$name.log
    runner=$(interpreter "$1")
    mkdir "$RUN_DIR/$name.tmp"
    if [ -n "$runner" ] && ! command -v "$runner" >/dev/null; then
        echo "skip $name: $runner not found" >"$log"
        status=77
    else
        TIMEFORMAT='%R %U %S'
        { time TOKMAP_SECONDS='' TMPDIR=$RUN_DIR/$name.tmp timeout -k 10 "$TIMEOUT" $runner "$1" </dev/null >"$log" 2>&1; } \
            2>"$RUN_DIR/$name.time"
        status=$?
    fi
    seconds=$(cat "$RUN_DIR/$name.time" 2>/dev/null | awk 'END { printf "%.0f %.0f", $1, $2 + $3 }')
    say=$(explain "$status" "$log" "$RUN_DIR/$name.tmp")
    [ -z "$say" ] || {
        echo "    the end of its output:"
        tail -n 25 "$log" | sed 's/^/    | /'
    } >"$RUN_DIR/$name.tail"
    [ -z "$say" ] || echo "FAIL $name: $say" >>"$log"
    {
        printf '%-28s %s' "$name" "$(counts "$log")"
        [ "${seconds%% *}" -lt 5 ] || printf ' (%d s, %d s of processors)' $seconds
        echo
        grep -aE '^(FAIL|skip|note) ' "$log" | sed 's/^/    /'
        cat "$RUN_DIR/$name.tail" 2>/dev/null
    } >"$RUN_DIR/$name.report"
    cat "$RUN_DIR/$name.report"
    [ -z "$TOKMAP_SECONDS" ] || echo "$name $seconds" >>"$TOKMAP_SECONDS"
}

explain() # exit status $1, log $2, temporary folder $3: what is wrong besides the FAIL lines
{
    local n_failed
    n_failed=$(grep -acE '^FAIL ' "$2")
    rm -f "$3"/tsan.rodata.* # of ThreadSanitizer, in a process that was killed while it started
    rm -rf "$3"/pymp-*        # of Python's multiprocessing, in workers of torch, which end without its cleaning
    if [ "$1" = 124 ] || [ "$1" = 137 ]; then
        echo "stopped after $TIMEOUT seconds"
    elif [ "$1" != 0 ] && [ "$1" != 77 ] && { [ "$1" != 1 ] || [ "$n_failed" = 0 ]; }; then
        echo "exit status $1"
    elif ! grep -qaE '^(ok|FAIL|skip) ' "$2"; then
        echo "printed no result"
    elif [ "$1" = 0 ] && [ -n "$(ls -A "$3")" ]; then
        echo "left behind in its temporary folder: $(ls -A "$3" | head -n 3 | tr '\n' ' ')"
    fi
}

counts() # of a log
{
    awk '/^ok / { ok++ } /^FAIL / { failed++ } /^skip / { skipped++ }
        END { printf "%d ok%s%s", ok, failed ? ", " failed " FAILED" : "",
              skipped ? ", " skipped " skipped" : "" }' "$1"
}

if [ "$1" = --one ]; then
    run_one "$2"
    exit
fi

cd "$(dirname "$0")/.." || exit 1
export RUN_DIR TIMEOUT=${TOKMAP_TIMEOUT:-300}
vocabularies=$(cd "${TOKMAP_BUILD:-build}" 2>/dev/null && pwd)/vocabularies # of make vocabularies
if [ -z "${TOKMAP_SHARED-}" ] && [ ! -e ../shared ] && [ -d "$vocabularies" ]; then
    export TOKMAP_SHARED=$vocabularies
fi
[ -z "$TOKMAP_LONG" ] || TIMEOUT=${TOKMAP_TIMEOUT:-1200}
if [ -n "$TOKMAP_SANITIZED" ]; then
    TIMEOUT=$((TIMEOUT * 3))
    # Other statuses than the programs' own, so that no test takes a finding for a refusal.
    export ASAN_OPTIONS="detect_leaks=1:exitcode=99:allocator_may_return_null=1:$ASAN_OPTIONS"
    export UBSAN_OPTIONS="print_stacktrace=1:exitcode=99:$UBSAN_OPTIONS"
    export TSAN_OPTIONS="exitcode=99:$TSAN_OPTIONS"
fi

RUN_DIR=$(mktemp -d "${TMPDIR:-/tmp}/tokmap_run_XXXXXX") || exit 1
trap 'chmod -R u+rwx "$RUN_DIR"; rm -rf "$RUN_DIR"' EXIT
trap 'exit 1' INT TERM

# Compiles the modules once, not in each of a thousand processes. They are checked by content: a changed file counts at once.
"$PYTHON" -m compileall -q --invalidation-mode checked-hash python/tokmap tests/oracles tests/support >/dev/null 2>&1

[ $# = 0 ] || printf '%s\0' "$@" | xargs -0 -n 1 -P "${JOBS:-$(($(nproc) + 1))}" bash "$0" --one

reasons=$(cat /dev/null "$RUN_DIR"/*.log | sed -nE 's/^skip [^:]*(:[^ :]+)?: //p' | sort | uniq -c | sort -rn)
[ -z "$reasons" ] || printf 'Skipped, because:\n%s\n' "$reasons"
awk '
    /no device|CUDA/ { n["is no GPU: make gpu-test where there is an NVIDIA driver"] += $1; next }
    /\/(vocab|golden|text|unicode)|[.][.]\/shared|TOKMAP_SHARED|unicodedata2/ { n["are no real vocabularies and texts: make vocabularies"] += $1; next }
    /torch|jax|transformers|No module named .megatron/ { n["are no frameworks: make test-frameworks"] += $1; next }
    /matplotlib|megatron/ { n["are no packages of the benchmarks: make bench"] += $1 }
    END { for (why in n) printf "Left out: %d tests, because there %s\n", n[why], why }' <<<"$reasons" | sort
cat /dev/null "$RUN_DIR"/*.log | awk '
    /^ok / { ok++ } /^FAIL / { failed++ } /^skip / { skipped++ }
    END { printf "%d passed, %d failed, %d skipped\n", ok, failed, skipped
          exit failed > 0 || ok == 0 }'
