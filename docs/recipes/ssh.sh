#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Packs a corpus on the machines that are its arguments, with ssh and xargs:
#
#     tokmap plan corpus/ --tokenizer tokenizer.json --cells cells -o run.plan
#     sh ssh.sh node1 node2 node3
#
# The current folder is on a file system that all machines see, and tokmap has the same path on all of them: in a
# virtual environment on that file system, or where it is installed. There are four tasks for each machine, and a
# machine that has finished one takes the next. If some failed, or you interrupted it, the same command packs what
# is missing, with the same machines or with others.

n=$((4 * $#))
TOKMAP=$(command -v tokmap)
export TOKMAP
seq 0 $((n - 1)) | xargs -P $# -I TASK --process-slot-var=machine sh -c '
    shift "$machine"
    ssh -o BatchMode=yes "$1" "cd \"$PWD\" && \"$TOKMAP\" pack --plan run.plan --task TASK/'$n'" </dev/null || exit 1
    ' sh "$@" && tokmap join run.plan -o train
