#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench/gpu/run.py where there is no device: every step is skipped with the reason, and the result file
# holds no figure. With a driver that stands in for a device, what needs no framework is done. A device
# of this machine is hidden.

. "$(dirname "$0")/../support/report.sh"
"$python" -c 'import numpy' 2>/dev/null || skip_all gpu_bench "there is no NumPy for $python"
for program in test_gpu tokbench; do
    [ -x "$build/$program" ] || skip_all gpu_bench "$program is not built: make build/$program"
done
[ -z "${TOKMAP_SANITIZED-}" ] || skip_all gpu_bench "a sanitized library"
export CUDA_VISIBLE_DEVICES='' PYTHONDONTWRITEBYTECODE=1
steps="stress h2d first pipeline"

gpu() # options; leaves `said` and `code`
{
    said=$("$python" bench/gpu/run.py --build "$work/build" --out "$work/result.json" "$@" 2>&1)
    code=$?
}

check_result() # prints what is wrong with the result file; $1: the reason that all steps have to give
{
    "$python" - "$work/result.json" "$1" <<'END'
import json
import sys

result = json.load(open(sys.argv[1]))
states = {step["step"]: step for step in result["steps"]}
for name in "stress h2d first pipeline".split():
    step = states.get(name)
    if not step or step["state"] not in ("skipped", "stopped") or sys.argv[2] not in step["reason"]:
        print(f"{name} is {step}")
if not result["rows"] or any("values" in row or not row["left_out"] for row in result["rows"]):
    print("a row is not a reason why something was left out")
if "gpu" in result["machine"]:
    print("it names a GPU")
END
}

gpu --seconds 20
verdict what_is_not_built_is_named "$([ $code = 2 ] && [[ $said == *"test_gpu: not built"* ]] || echo "$said")"
mkdir "$work/build"
for name in libtokmap.so tokmap tokbench test_gpu; do
    ln -s "$build/$name" "$work/build/$name"
done

gpu
verdict ends_well_without_a_device "$([ $code = 0 ] || echo "exit status $code: $said")"
verdict every_step_is_skipped_with_the_reason "$(for step in $steps; do
    grep -qE "^$step: skipped \(no device: ." <<<"$said" || echo "$step is not in: $said"
done)"
verdict the_result_file_holds_no_figures "$(check_result 'no device: ' 2>&1)"
verdict logs_are_beside_the_result "$(tar -tzf "$work/result.tar.gz" 2>&1 | grep -q '^logs$\|^logs/$' || ls "$work")"
verdict its_rows_are_shown "$(grep -q 'left out: no device' <<<"$said" || echo "$said")"

export LD_LIBRARY_PATH=$build/stand_in
gpu --only stress,first,pipeline
verdict steps_are_done_on_a_stand_in "$(for step in stress first; do
    grep -qE "^$step: done" <<<"$said" || echo "$step is not done: $said"
done
grep -q '"time to first batch, kernel compiled"' "$work/result.json" || echo "no first batch: $said"
grep -qE "^pipeline: skipped \((No module|PyTorch)" <<<"$said" || echo "pipeline: $said")"

# Interrupted in the middle of a step.
printf '#!/bin/sh\necho begun >"%s"\nexec sleep 60\n' "$work/begun" >"$work/slow"
chmod +x "$work/slow"
ln -sf "$work/slow" "$work/build/test_gpu"
"$python" bench/gpu/run.py --build "$work/build" --out "$work/result.json" >"$work/out" 2>&1 &
SECONDS=0
while [ ! -e "$work/begun" ] && kill -0 $! 2>/dev/null && [ $SECONDS -lt 240 ]; do
    sleep 0.05
done
kill -TERM $!
wait $!
code=$?
said=$(cat "$work/out")
verdict an_interrupted_run_leaves_a_result "$([ $code = 130 ] || echo "exit status $code: $said"
    "$python" -c 'import json, sys; print(*{s["reason"] for s in json.load(open(sys.argv[1]))["steps"]})' \
        "$work/result.json" 2>&1 | grep -v '^interrupted$')"
verdict nothing_is_left_in_the_build_folder "$(find "$work/build" -name 'gpu_*')"
unset LD_LIBRARY_PATH

gpu --help
verdict help_lists_the_steps "$(for step in $steps; do
    grep -qE "^  $step +[a-z]" <<<"$said" || echo "no $step in: $said"
done)"
gpu --only warp
verdict unknown_steps_are_refused "$([ $code = 2 ] && [[ $said == *warp* ]] || echo "$said")"
exit $status
