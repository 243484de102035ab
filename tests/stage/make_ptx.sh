#!/usr/bin/env bash
# make_ptx.sh SOURCE - the kernel in SOURCE as PTX text, on stdout, in the form that the repository
# keeps.
#
# The text names the oldest version of the language that has what the kernel uses, so that drivers
# which are older than the compiler take it too, and sums of the files it was made from, by which a
# test knows whether it is current without the compiler. What the compiler says of itself is left
# out, but for its version, and so are its hints of which bytes of a load are used: they need a
# newer language.

set -eu -o pipefail
source=$1
folder=$(dirname "$source")
nvcc=$(PATH="$PATH:/usr/local/cuda/bin" command -v nvcc) || {
    echo "make_ptx.sh: nvcc not found: it comes with the CUDA toolkit" >&2
    exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$nvcc" -ptx -O3 -arch=compute_75 "$source" -o "$work/kernel.ptx"
version=$("$nvcc" --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
echo "// $(basename "$source") by nvcc $version; made by make ptx."
for file in "$source" "$folder/../expand_job.h"; do
    echo "// $(basename "$file") $(cksum <"$file")"
done
sed -e '/^\/\//d' -e '/\.pragma "used_bytes_mask/d' -e 's/^\.version .*/.version 6.3/' -e 's/[ \t]*\/\/.*//' -e '/^[ \t]*$/d' \
    "$work/kernel.ptx"
