#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD SECONDS NAME... - fuzzes each target for SECONDS, then the canary, to be found.
#
# New inputs go to BUILD/corpus/NAME and findings to BUILD/findings: the tree stays as it is.
# As many targets run at a time as there are processors.

cd "$(dirname "$0")/../.." || exit 1

fuzz_one() # target $1
{
    local log=$BUILD/fuzz_$1.log status=ok
    mkdir -p "$BUILD/corpus/$1"
    "$BUILD/fuzz_$1" -max_total_time="$SECONDS_EACH" -timeout=25 -rss_limit_mb=2048 \
        -print_final_stats=1 -artifact_prefix="$BUILD/findings/$1-" \
        "$BUILD/corpus/$1" "tests/fuzz/corpus/$1" >"$log" 2>&1 || status=FAIL
    printf '%-4s fuzz_%s: %s runs in %s s\n' "$status" "$1" \
        "$(awk '/number_of_executed_units/ { print $2 }' "$log")" "$SECONDS_EACH"
    [ $status = ok ] || {
        grep -aE 'ERROR|runtime error|Test unit written' "$log" || tail -n 20 "$log"
        return 1
    }
}

if [ "$1" = --one ]; then
    fuzz_one "$2"
    exit
fi

export BUILD=$1 SECONDS_EACH=$2
shift 2
[ $# -gt 0 ] || {
    echo "FAIL fuzz: there are no targets"
    exit 1
}
mkdir -p "$BUILD/findings"
status=0
printf '%s\0' "$@" | xargs -0 -n 1 -P "$(nproc)" bash "$0" --one || status=1

"$BUILD/canary" -max_total_time=60 -artifact_prefix="$BUILD/canary-" >"$BUILD/canary.log" 2>&1
if grep -q 'AddressSanitizer: heap-buffer-overflow' "$BUILD/canary.log"; then
    echo "ok   canary: its bug was found"
else
    echo "FAIL canary: its bug was not found, so this run proves nothing"
    status=1
fi
exit $status
