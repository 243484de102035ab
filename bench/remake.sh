#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# remake.sh MACHINE - makes the results of docs/BENCHMARKS.md again, on this machine, one after the other: one to two hours.
# MACHINE is the end of their names, as in bench/results/pack-MACHINE.json. A result that is there is not made again,
# so delete what shall be. Needs the texts and vocabularies of ../shared (TOKMAP_SHARED), 20 GB in $TMPDIR, zstd, and
# for `preprocess` a checkout of Megatron-LM (MEGATRON) and a Python 3.12 or newer with torch, transformers, gigatoken
# and awkward (MEGATRON_PYTHON), without which that one is left out. Nothing else may run on the machine meanwhile.
set -eu
[ $# = 1 ] || { sed -n '3,7s/^# //p' "$0" >&2; exit 2; }
cd "$(dirname "$0")/.."
machine=$1
python=${PYTHON:-python3}
shared=$(realpath "${TOKMAP_SHARED:-../shared}")
gpt2=$shared/vocab/gpt2.tokenizer.json
folder=$(mktemp -d "${TMPDIR:-/tmp}/tokmap-remake-XXXXXX")
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM

# result NAME COMMAND...: the command writes the file $out
result() {
    name=$1
    shift
    kept=bench/results/$name$machine.json
    [ ! -e "$kept" ] || return 0
    out=$folder/out.json
    rm -f "$out"
    echo "== $kept ($(date +%H:%M))"
    "$@" > "$folder/log" 2>&1 || { tail -20 "$folder/log"; echo "remake.sh: $name failed" >&2; return 0; }
    mv "$out" "$kept"
}
tokbench() { build/tokbench "$@" --dir "$folder" --json "$out"; }
tokenize() { tokbench tokenize --tokenizer "$gpt2" --text "$@"; }
pack() { tokbench pack --tokenizer "$gpt2" --rounds 7 --text "$@"; }

# text KIND: 100 MB in one line
text() {
    [ -e "$folder/$1.txt" ] || "$python" -c '
import base64, random, sys
kind, n = sys.argv[1], 10**8
draw = random.Random(1)
if kind == "base64":
    sys.stdout.buffer.write(base64.b64encode(draw.randbytes(n * 3 // 4)))
elif kind == "digits":
    sys.stdout.write("".join(draw.choices("0123456789", k=n)))
elif kind == "cjk":
    sys.stdout.write("".join(map(chr, draw.choices(range(0x4E00, 0x9FA6), k=n // 3))))
else:
    sys.stdout.write({"blanks": " ", "one-letter": "a"}[kind] * n)
' "$1" > "$folder/$1.txt"
}
long_word() { text "$1"; tokenize "$folder/$1.txt" --rounds 5; rm "$folder/$1.txt"; }

# Corpora of the novels, several times over.
novels() {
    [ -e "$folder/novels.jsonl" ] || zstd -dcq "$shared/text/novels.jsonl.zst" > "$folder/novels.jsonl"
}
pack_lines() {
    novels
    for _ in 1 2 3 4 5 6 7 8; do cat "$folder/novels.jsonl"; done | zstd -q > "$folder/novels8.jsonl.zst"
    pack "$folder/novels8.jsonl.zst" "$@"
}
parquet() {
    novels
    [ -e "$folder/novels_$1.parquet" ] || build/peers-venv/bin/python -c '
import json, sys
import pyarrow, pyarrow.parquet
source, codec, out = sys.argv[1:]
texts = [json.loads(line)["text"] for line in open(source, encoding="utf-8")] * 10
pieces = [text[at:at + 3000] for text in texts for at in range(0, len(text), 3000)]
pyarrow.parquet.write_table(pyarrow.table({"text": pieces}), out, compression=codec, row_group_size=len(pieces))
' "$folder/novels.jsonl" "$1" "$folder/novels_$1.parquet"
}
pack_parquet() { parquet "$1"; codec=$1; shift; pack "$folder/novels_$codec.parquet" "$@"; }
beside_gigatoken() {
    parquet snappy; parquet zstd
    make bench-parquet ARGS="--tokenizer $gpt2 --parquet $folder/novels_snappy.parquet $folder/novels_zstd.parquet --out $out"
}
preprocess() {
    "$MEGATRON_PYTHON" bench/peers/preprocess.py --tokmap build/tokmap --megatron "$MEGATRON" \
        --commit "$(git -C "$MEGATRON" rev-parse HEAD)" --dir "$folder" --out "$out"
}

make all build/tokbench > "$folder/log" 2>&1 || { tail "$folder/log"; exit 1; }
"$python" bench/peers/install.py build/peers-venv
result "" tokbench all
result cold- tokbench cold --rounds 6
result views- tokbench views
result lists- tokbench lists
result scan- tokbench scan
for kind in one-letter blanks base64 digits cjk; do
    result long-$kind- long_word $kind
done
novels
result threads- tokenize "$folder/novels.jsonl" -j 2
for jobs in 1 2; do
    result pack-jsonl-zstd-j$jobs- pack_lines -j $jobs
    result pack-parquet-snappy-j$jobs- pack_parquet snappy -j $jobs
    result pack-parquet-zstd-j$jobs- pack_parquet zstd -j $jobs
done
result parquet- beside_gigatoken
result tokenize- make bench-tokenizers ARGS="--rounds 5 --slow-rounds 1 --out $folder/out.json"
result loaders- make bench-loaders LOADER_ARGS="--dir $folder --out $folder/out.json"
result packers- make bench-packers ARGS="--dir $folder --out $folder/out.json"
result blends- make bench-blends ARGS="--dir $folder --out $folder/out.json"
[ -z "${MEGATRON:-}" ] || result preprocess- preprocess
