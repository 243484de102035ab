#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# reproducible.sh - builds the last commit twice, in folders of other names and lengths, with other times, masks,
# languages and zones, and compares libraries, programs, source archive and wheel. About ten minutes of
# processor time for each; `make reproducible` runs it.

cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d "${TMPDIR:-/tmp}/tokmap_reproducible_XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
python=${PYTHON:-python3}
export CCACHE_DISABLE=1
unset SOURCE_DATE_EPOCH
status=0

if ! commit=$(git rev-parse -q --verify HEAD); then
    echo "skip reproducible: this is no git checkout"
    exit 77
fi
command -v faketime >/dev/null || echo "note both builds are of one day: faketime not found"
[ -z "$(git status --porcelain)" ] || echo "note what is not committed is not built"

build() # folder, seconds from now, log
{
    git clone -q . "$1" && cd "$1" && git checkout -q "$commit" || return
    # The day is changed after the downloads, whose certificates have their days.
    PYTHONPATH=python "$python" -c 'import make_wheel; make_wheel.prepare_compiler()' || return
    find . -name '*.[ch]' -exec touch -d "@$((1000000000 + $2))" {} +
    at_that_time=
    ! command -v faketime >/dev/null || at_that_time="env NO_FAKE_STAT=1 faketime -f +$2s"
    $at_that_time make -j"$(nproc)" && $at_that_time make dist PYTHON="$python"
}

one=$work/one two=$work/another/place/of/the/source
mkdir -p "${two%/*}"
(umask 022; TZ=UTC LC_ALL=C build "$one" 0) >"$work/log" 2>&1 &&
    (umask 077; TZ=Pacific/Apia LC_ALL=C.UTF-8 LANG=tr_TR.UTF-8 build "$two" 34567890) >>"$work/log" 2>&1 || {
    echo "FAIL two_builds: $(tail -n 5 "$work/log" | tr '\n' ' ')"
    exit 1
}
for file in build/{libtokmap.so,libtokmap.a,libtokmap_tokenizer.so,libtokmap_tokenizer.a,tokmap,tokbench} \
    $(cd "$one" && echo build/dist-*/*); do
    if cmp "$one/$file" "$two/$file" >"$work/why" 2>&1; then
        echo "ok same_bytes_of_$(basename "$file")"
    else
        echo "FAIL same_bytes_of_$(basename "$file"): $(cat "$work/why")"
        status=1
    fi
done
exit $status
