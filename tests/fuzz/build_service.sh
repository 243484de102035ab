#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build_service.sh - builds the fuzz targets for a continuous fuzzing service, in the way of OSS-Fuzz: with
# $CC, $CXX, $CFLAGS, $CXXFLAGS and $LIB_FUZZING_ENGINE, into $OUT: fuzz_NAME and fuzz_NAME_seed_corpus.zip.
# Objects go to $WORK. The targets need no other library than those of C and C++ on the machine that runs them.

set -eu
cd "$(dirname "$0")/../.."
: "${CC:?}" "${CXX:?}" "${LIB_FUZZING_ENGINE:?}"
export OUT=${OUT:?}
build=${WORK:-build}/service
make=${MAKE:-make}

$make -j"$(nproc)" fuzz-programs BUILD="$build" CC="$CC" CFLAGS="${CFLAGS:-}" ISAL=no \
    LIBS='-Wl,-Bstatic -lxxhash -lzstd -lz -Wl,-Bdynamic -ldl -lm' \
    FUZZ_LINKER="$CXX ${CXXFLAGS:-}" FUZZ_ENGINE="$LIB_FUZZING_ENGINE"
names=$($make -s --no-print-directory fuzz-names)
for name in $names; do
    cp "$build/fuzz_$name" "$OUT/"
done
cd tests/fuzz/corpus
python3 - $names <<'EOF'
import os, sys, zipfile
for name in sys.argv[1:]:
    with zipfile.ZipFile(f"{os.environ['OUT']}/fuzz_{name}_seed_corpus.zip", "w", zipfile.ZIP_DEFLATED) as seeds:
        for file in sorted(os.listdir(name)):
            seeds.write(f"{name}/{file}", file)
EOF
