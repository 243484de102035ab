#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# demo.sh - what `make demo` runs: packs text, looks at the dataset, shares it with another program, and
# damages it. TOKMAP is the path of the command; all files are created in a folder beside it.
set -u
texts=$(cd "$(dirname "$0")" && pwd)/demo
folder=$(dirname "$TOKMAP")/demo
rm -rf "$folder" && mkdir -p "$folder" && cd "$folder" && cp "$texts"/*.txt . || exit 1

tokmap() { "$TOKMAP" "$@"; }
say() { printf '\n# %s\n' "$*"; }
run() {
    printf '$ %s\n' "$*"
    "$@" || { printf 'demo: failed with status %s\n' $? >&2; exit 1; }
}

say "Pack two text files. fables.bin contains only the tokens; fables.tmi is the index."
run tokmap pack fox.txt crow.txt -o fables
say "Compressed input is detected by its first bytes. With --lines, each line is a document."
gzip -n proverbs.txt
run tokmap pack --lines proverbs.txt.gz -o proverbs
say "Merge datasets without tokenizing again. All checksums are verified during the copy."
run tokmap merge fables proverbs -o all
run tokmap info all
say "Print a document as ids and as text."
run tokmap cat all --documents 6
run tokmap cat all --documents 6 --text
say "Export a Megatron index for the same token file."
run tokmap export --to megatron all -o megatron
say "Index a Megatron dataset in place. The same tokens and documents give the same id."
run tokmap index megatron.bin
run tokmap verify all megatron
say "Damage is found and located. Here one byte was changed:"
cp all.bin damaged.bin && cp all.tmi damaged.tmi
printf X | dd of=damaged.bin bs=1 seek=1000 conv=notrunc 2>/dev/null
printf '$ tokmap verify damaged\n'
tokmap verify damaged 2>&1 && { echo "demo: the damage was not found" >&2; exit 1; }
printf '# exit status %s\n\nEverything is in %s\n' "$?" "$folder"
printf "The program is %s. 'make install' installs it with its manual.\n" "$TOKMAP"
