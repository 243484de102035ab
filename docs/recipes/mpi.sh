#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Packs a corpus with the processes that mpirun starts. tokmap does not use MPI: mpirun starts it on each node, and
# tells it its rank and how many there are. The folder with the plan, the inputs and the cells is on a file system
# that all nodes see, and tokmap has the same path on all of them. Once before, in it:
#
#     tokmap plan corpus/ --tokenizer tokenizer.json --cells cells -o run.plan
#
# Open MPI starts a process on each core of this machine, or of the nodes that a scheduler or --hostfile names. It
# refuses to start more (-n 64) without --oversubscribe. MPICH needs -n. mpirun ends all processes when one of them
# fails. The next run packs what is missing.

for attempt in 1 2 3 4; do
    mpirun "$(command -v tokmap)" pack --plan run.plan --task auto -j 1 && break
done
tokmap join run.plan -o train
