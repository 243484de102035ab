#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make_ptx.sh SOURCE - the kernel in SOURCE as PTX text, on stdout, in the form that the repository
# keeps.
#
# The text declares the oldest PTX version that has what the kernel uses, so that drivers older than
# the compiler accept it. It has checksums of its sources, by which a test without the compiler sees
# whether it is current. The compiler's comments are removed, except its version, and so are its
# hints about used bytes of a load, which need a newer PTX version.

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
echo "// SPDX-License-Identifier: Apache-2.0"
echo "// $(basename "$source") by nvcc $version; made by make ptx."
for file in "$source" "$folder/../expand_job.h"; do
    echo "// $(basename "$file") $(cksum <"$file")"
done
sed -e '/^\/\//d' -e '/\.pragma "used_bytes_mask/d' -e 's/^\.version .*/.version 6.3/' -e 's/[ \t]*\/\/.*//' -e '/^[ \t]*$/d' \
    "$work/kernel.ptx"
