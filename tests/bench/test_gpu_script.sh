#!/usr/bin/env bash
# bench/gpu.sh where there is no device: it ends well, every step is skipped with the reason,
# and its result file says that it holds no figures. A device that is there is hidden.

cd "$(dirname "$0")/../.." || exit 1
build=${TOKMAP_BUILD:-build}
python=${PYTHON:-python3}
if ! command -v "$python" >/dev/null; then
    echo "skip gpu_script: $python not found"
    exit 77
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/tokmap_gpu_XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
export CUDA_VISIBLE_DEVICES='' PYTHONDONTWRITEBYTECODE=1
unset TOKMAP_DEPS BUILD
status=0
steps="machine test python sanitize copies first steps"

verdict() # name, what is wrong
{
    if [ -n "$2" ]; then
        echo "FAIL $1: $(tr '\n' ' ' <<<"$2" | tail -c 600)"
        status=1
    else
        echo "ok $1"
    fi
}

gpu() # options: runs it in a build folder of its own; leaves `said` and `code`
{
    said=$(bash bench/gpu.sh --build "$work/build" --out "$work/result.json" "$@" 2>&1)
    code=$?
}

check_result() # prints what is wrong with the result file; $1: the reason that it has to give
{
    "$python" - "$work/result.json" "$1" <<'END'
import json
import sys

result = json.load(open(sys.argv[1]))
states = {e["id"]: e for e in result["experiments"]}
for name in "data machine test python sanitize copies first steps".split():
    e = states.get(name)
    if not e or e["state"] != "skipped" or sys.argv[2] not in (e["reason"] or ""):
        print(f"{name} is {e}")
if result["schema"] != 1 or result["figures"] is not False or not result["no_figures"]:
    print("it does not say that there are no figures")
if not result["rows"] or any("values" in row or not row["left_out"] for row in result["rows"]):
    print("a row is no reason why something was left out")
if "gpu" in result["machine"]:
    print("it names a GPU")
END
}

gpu --no-build
verdict logs_and_rows_are_in_one_file_beside_the_result "$(tar -tzf "$work/result.tar.gz" |
    grep -q '^logs/device.log$' || ls "$work")"
verdict ends_well_without_a_device "$([ $code = 0 ] || echo "exit status $code: $said")"
table=$(sed -n '/^Steps$/,$p' <<<"$said")
verdict the_last_table_lists_every_step_as_skipped "$(for step in $steps; do
    grep -qE "^ *$step +.* skipped +0.0$" <<<"$table" || echo "$step is not in: $table"
done)"
verdict the_reason_is_given "$(grep -qE '^ .*steps.*: no device: .' <<<"$table" || echo "$table")"
verdict the_result_file_says_that_there_are_no_figures "$(check_result 'no device: ' 2>&1)"
report=$("$python" bench/report.py "$work/result.json" -o "$work/page.html" 2>&1)
made=$?
verdict the_report_takes_the_result_file "$([ $made = 0 ] || echo "$report")"

# With a driver that stands in for a device, what needs no framework is done.
if [ -x "$build/test_gpu" ] && [ -x "$build/tokbench" ] && [ -z "${TOKMAP_SANITIZED-}" ]; then
    mkdir "$work/stand_in"
    for name in libtokmap.so tokmap tokbench test_gpu; do
        ln -s "$(cd "$build" && pwd)/$name" "$work/stand_in/$name"
    done
    said=$(LD_LIBRARY_PATH="$(cd "$build" && pwd)/stand_in" bash bench/gpu.sh --build "$work/stand_in" \
        --no-build --out "$work/done.json" --only machine,test,python,first 2>&1)
    verdict steps_are_done_on_a_stand_in "$(for step in data machine test python first; do
        grep -qE "^==== $step: done" <<<"$said" || echo "$step is not done: $said"
    done
    grep -q '"time to first batch, kernel compiled anew"' "$work/done.json" || echo "no first batch")"
else
    echo "skip steps_are_done_on_a_stand_in: not built, or sanitized"
fi

gpu --help
verdict help_lists_the_steps "$(for step in $steps; do
    grep -qE "^  $step +[a-z]" <<<"$said" || echo "no $step in: $said"
done)"
gpu --only warp
verdict unknown_steps_are_refused "$([ $code = 2 ] && [[ $said == *warp* ]] || echo "$said")"

# A compiler for which xxhash.h does not exist.
printf '#!/bin/sh\ncase " $* " in *xxhash.h*) exit 1 ;; esac\nexec cc "$@"\n' >"$work/cc"
chmod +x "$work/cc"
rm "$work/result.json"
CC="$work/cc" gpu
verdict says_what_to_carry_where_xxhash_is_missing \
    "$([ $code = 0 ] && [[ $said == *"build: failed (xxhash.h not found"*TOKMAP_DEPS=* ]] ||
        echo "$said")"
verdict goes_on_without_a_build "$(check_result 'no device: ' 2>&1)"

# A build that does not come back, broken off from outside.
printf '#!/bin/sh\necho begun >"%s"\nexec sleep 60\n' "$work/begun" >"$work/make"
chmod +x "$work/make"
rm "$work/result.json"
MAKE="$work/make" bash bench/gpu.sh --build "$work/build" --out "$work/result.json" \
    >"$work/out" 2>&1 &
for _ in {1..200}; do
    [ ! -e "$work/begun" ] || break
    sleep 0.05
done
kill -TERM $!
wait $!
code=$?
verdict tables_and_result_also_when_interrupted "$([ $code = 130 ] || echo "exit status $code: "
    grep -q '^Steps$' "$work/out" || cat "$work/out"
    check_result interrupted 2>&1)"

verdict its_python_is_python "$(for file in bench/gpu/*.py; do
    "$python" -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$file" 2>&1
done)"
exit $status
