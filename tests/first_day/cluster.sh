#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The first day of an engineer of a cluster: a corpus packed by killed tasks, a run on two ranks with metrics, and the pages
# and messages that were looked at meanwhile.

. "$(dirname "$0")/typed.sh"

# ---- Help ----

typed help_has_groups 0 'tokmap --help' <<'END'
To make datasets:
To pack on many machines:
To look at datasets:
END
typed short_help_is_short 0 '[ $(tokmap pack -h | wc -l) -lt $(($(tokmap pack --help | wc -l) / 2)) ]' </dev/null
typed a_misspelt_option_is_corrected 2 'tokmap plan corpus --tokeniser tokenizer.json --cells cells -o run.plan' <<'END'
did you mean --tokenizer?
END
typed help_needs_no_numpy 0 "mkdir -p $work/no && echo 'raise ModuleNotFoundError(\"No module named numpy\", name=\"numpy\")' >$work/no/numpy.py &&
    PYTHONPATH=$work/no:\$PYTHONPATH tokmap help trace" <<'END'
Usage: tokmap trace
! No module
END
typed usage_lines_are_indented 0 'tokmap scan --help | sed -n 2p' <<'END'
       tokmap scan [OPTION]... --duplicates
END
typed the_page_of_tokbench_has_one_default_in_brackets 0 "cat $root/docs/man/tokbench.1" <<'END'
! ] and of views [
! No GPU has run
END
typed completion_is_a_command 0 'tokmap completion bash >c.bash && . ./c.bash && complete -p tokmap' <<'END'
tokmap
END

# ---- A corpus on many machines ----

mkdir corpus
for i in 1 2 3 4 5 6; do words 300 "file $i" | gzip >corpus/part-$i.jsonl.gz; done
typed plan_says_what_comes_next 0 'tokmap plan corpus --meta id,lang --cells cells --cell-size 20k -o run.plan' <<'END'
tokmap pack --plan run.plan --task I/N
tokmap join run.plan -o P
END
# sbatch --array=2,5
for task in 2 5; do
    typed "an_array_of_some_tasks_is_explained_to_task_$task" 2 "SLURM_ARRAY_TASK_ID=$task SLURM_ARRAY_TASK_COUNT=2 SLURM_ARRAY_TASK_MIN=2 \
        SLURM_ARRAY_TASK_MAX=5 SLURM_ARRAY_TASK_STEP=1 tokmap pack --plan run.plan --task auto" <<'END'
submit the whole array again
END
done
typed the_script_for_slurm_says_so_too 0 "cat $root/docs/recipes/slurm.sbatch" <<'END'
whole array
END
typed what_is_missing_is_named 3 'tokmap pack --plan run.plan --task 0/3 && tokmap join run.plan -o data/train' <<'END'
cells not packed
END
typed a_second_plan_does_not_take_the_cells_of_another 0 'tokmap plan corpus --meta id,lang --cells cells --cell-size 40k -o other.plan' <<'END'
use another folder for --cells
END
# Killed somewhere, and started again until it is done: what is kept is not packed again.
typed killed_tasks_go_on 0 'for task in 0/3 1/3 2/3; do
    for try in 1 2 3; do
        tokmap pack --plan run.plan --task $task & kill -9 $!; wait $! 2>/dev/null
    done
    tokmap pack --plan run.plan --task $task || exit
done' <<'END'
END
typed status_says_what_is_left 0 'tokmap status run.plan' <<'END'
left:       0 cells
END
typed joined_it_is_what_pack_makes 0 "tokmap join run.plan -o data/train --json >joined &&
    tokmap pack corpus --meta id,lang -o data/plain --json >plain &&
    grep -o '\"dataset_id\": \"[^\"]*\"' joined >a && grep -o '\"dataset_id\": \"[^\"]*\"' plain | cmp a - && [ -s a ]" <<'END'
END
typed verify_is_content 0 'tokmap verify data/train' <<'END'
data/train: OK
END
typed a_joined_dataset_is_not_replaced 5 'tokmap join run.plan -o data/train' <<'END'
Use --force to replace it
END
words 20 few | tokmap pack --format jsonl - -o data/bare -q
typed no_columns_says_so 0 'tokmap columns list data/bare' <<'END'
has no columns
END
typed a_redaction_says_what_still_has_them 0 'tokmap redact data/plain --documents 0:2 -o data/less' <<'END'
data/plain still has these documents
! not copied
END
typed json_has_ids_and_paths 0 'tokmap redact data/plain --documents 0:2 -o data/fewer --json; echo "{\"text\": \"Document 7 of file 3: whale0 iver 1\"}" >bench.jsonl;
    tokmap scan data/plain --against bench.jsonl --name bench -n 3 --json' <<'END'
"dataset_id"
"index_file": "data/plain.tmi"
"columns"
END

# ---- A run on two ranks, with metrics ----

cat >train.py <<'END'
import sys
import tokmap

windows, n_steps, amend = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
record = tokmap.Record(metrics_file="metrics/tokmap-{rank}.prom", metrics_seconds=1000)
loader = tokmap.Loader([("data/train", 0.75), ("data/plain", 0.25)], 64, 8, seed=1, windows=windows, ledger="run.ledger", record=record)
print(loader)
try:
    loader.restore(open("state", "rb").read())
except FileNotFoundError:
    pass
for _, batch in zip(range(n_steps), loader):
    pass
if loader.rank == 0:
    open("state", "wb").write(batch.state)
loader.close()
END
mkdir metrics
two='for rank in 0 1; do RANK=$rank WORLD_SIZE=2 python3 train.py'
typed two_ranks_train 0 "$two best_fit 50 || exit; done" <<'END'
rank 0 of 2
rank 1 of 2
all in memory
! 0.0 GiB
does not write the ledger
END
typed metrics_are_of_the_end 0 'cat metrics/tokmap-0.prom metrics/tokmap-1.prom' <<'END'
tokmap_run_position 800
tokmap_up{rank="0"} 0
tokmap_up{rank="1"} 0
END
typed the_totals_have_no_rank 0 'grep -c "^tokmap_run_" metrics/tokmap-0.prom; ! grep "^tokmap_run_" metrics/tokmap-1.prom' <<'END'
8
END
typed ranks_add_up 0 'grep -h "^tokmap_run_samples{" metrics/*.prom | awk "{ n += \$2 } END { print n }"' <<'END'
800
END
typed a_run_shows_itself 0 "python3 -c 'import tokmap; print(tokmap.Run(\"run.ledger\"))'; tokmap report --ledger run.ledger --json" <<'END'
<tokmap.Run: 50 steps, 2 ranks, up to sample 800>
"path"
"name"
END
typed trace_and_report_answer 0 'tokmap report --ledger run.ledger --by lang && tokmap trace --ledger run.ledger --step 3' <<'END'
en
tokens in all
sample
END
typed cuda_is_the_current_device 0 "python3 -c '
import tokmap
try:
    tokmap.Loader(\"data/train\", 64, device=\"cuda\")
except tokmap.Error as error:
    print(\"no GPU:\", error)'" <<'END'
! must be a number
END
# ---- tokbench ----

typed tokbench_answers_a_question 0 'tokbench --help' <<'END'
says whether a training would wait
END
typed tokbench_fit_is_one_screen 0 'tokbench fit data/plain --tokens-per-second 10k --seconds 2; [ $? -lt 7 ]' <<'END'
END
exit $status
