#!/bin/sh
# demo.sh - what `make demo` runs: text becomes a dataset, is looked at, shared with another program, and
# damaged. TOKMAP names the command; everything is made in a folder beside it.
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

say "Text becomes a dataset: fables.bin holds the tokens and nothing else, fables.tmi is the index."
run tokmap pack fox.txt crow.txt -o fables
say "Compressed input is known by its first bytes. Here every line is a document."
gzip -n proverbs.txt
run tokmap pack --lines proverbs.txt.gz -o proverbs
say "Datasets are put together without tokenizing again; all checksums are checked on the way."
run tokmap merge fables proverbs -o all
run tokmap info all
say "A document as ids and as text."
run tokmap cat all --documents 6
run tokmap cat all --documents 6 --text
say "Other programs read the same tokens: Megatron's index, beside the very same file."
run tokmap export --to megatron all -o megatron
say "And their files are adopted as they are. Same tokens, same documents: same id."
run tokmap index megatron.bin
run tokmap verify all megatron
say "Damage does not go unnoticed. One byte:"
cp all.bin damaged.bin && cp all.tmi damaged.tmi
printf X | dd of=damaged.bin bs=1 seek=1000 conv=notrunc 2>/dev/null
printf '$ tokmap verify damaged\n'
tokmap verify damaged 2>&1 && { echo "demo: the damage was not found" >&2; exit 1; }
printf '# exit status %s\n\nEverything is in %s\n' "$?" "$folder"
printf "The program is %s; 'make install' puts it, with its manual, where the shell finds it.\n" "$TOKMAP"
