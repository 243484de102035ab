#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# nfs.sh [N] - kills N packs [200] on an NFS 4.1 file system of this machine, resumes them and compares their bytes, and
# reads them with io="auto". HAS NOT BEEN RUN: the machines of this project have no NFS in their kernels.
#
# Needs root, nfs-kernel-server, nfs-common and a kernel with nfsd and nfs.
set -eu
[ "$(id -u)" = 0 ] || { echo "skip nfs: not root"; exit 77; }
grep -q nfsd /proc/filesystems || modprobe nfsd 2> /dev/null || { echo "skip nfs: no nfsd in this kernel"; exit 77; }
cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
export_dir=$folder/exported mount=$folder/mount
mkdir "$export_dir" "$mount"
cleanup() {
    umount -l "$mount" 2> /dev/null || true
    exportfs -u 127.0.0.1:"$export_dir" 2> /dev/null || true
    rm -rf "$folder"
}
trap cleanup EXIT
rpc.nfsd 8
exportfs -o rw,no_root_squash,fsid=1,insecure 127.0.0.1:"$export_dir"
mount -t nfs -o vers=4.1 127.0.0.1:"$export_dir" "$mount"
seq -f '{"text":"document %g of a test on NFS"}' 1 200000 > "$folder/corpus.jsonl"
build/tokmap pack -q "$folder/corpus.jsonl" -o "$folder/local"
n_wrong=0
for i in $(seq "${1:-200}"); do
    rm -f "$mount"/P*
    build/tokmap pack -q "$folder/corpus.jsonl" -o "$mount/P" &
    sleep "0.$((RANDOM % 1000))"
    kill -9 $! 2> /dev/null || true
    wait $! 2> /dev/null || true
    [ -e "$mount/P.tmi" ] || build/tokmap pack -q "$folder/corpus.jsonl" -o "$mount/P"
    cmp -s "$mount/P.bin" "$folder/local.bin" && cmp -s "$mount/P.tmi" "$folder/local.tmi" || n_wrong=$((n_wrong + 1))
done
echo "wrong: $n_wrong of ${1:-200}"
PYTHONPATH=python python3 -c 'import sys, tokmap
with tokmap.Loader(sys.argv[1], 512, 8, max_epochs=1) as loader:
    print(loader, sum(batch.inputs.shape[0] for batch in loader), "rows")' "$mount/P"
[ "$n_wrong" = 0 ]
