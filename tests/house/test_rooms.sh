#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Calls go down between folders, as includes do, and the drawing in docs/ARCHITECTURE.md is current.

cd "$(dirname "$0")/../.." || exit 1
build=${TOKMAP_BUILD:-build}
python=${PYTHON:-python3}
work=$(mktemp -d "${TMPDIR:-/tmp}/tokmap_rooms_XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

[ -z "$TOKMAP_SANITIZED" ] || {
    echo "skip rooms: a sanitizer adds calls; make test runs it"
    exit 77
}
command -v "$python" >/dev/null || {
    echo "skip rooms: $python not found"
    exit 77
}
if said=$("$python" tests/house/rooms.py "$build" 2>&1); then
    echo "ok calls_between_rooms_go_down"
else
    echo "FAIL calls_between_rooms_go_down: $(head -n 3 <<<"$said" | tr '\n' ' ')"
    failed=1
fi

# What tests share comes before the product when they are linked, and would replace it silently.
twice=$(nm --defined-only -g "$build"/lib{tests,tools,tokmap}.a | awk 'NF == 3 { print $3 }' | sort | uniq -d)
if [ -z "$twice" ]; then
    echo "ok no_name_of_the_tests_hides_one_of_the_product"
else
    echo "FAIL no_name_of_the_tests_hides_one_of_the_product: $(head -n 3 <<<"$twice" | tr '\n' ' ')"
    failed=1
fi

# A planted call: the order of samples opens a dataset.
mkdir -p "$work/obj/src/order" "$work/obj/src/dataset"
cp "$build/obj/src/dataset/token_files.o" "$work/obj/src/dataset/"
echo 'int tokmap_i_token_piece_read(void); int planted(void); int planted(void) { return tokmap_i_token_piece_read(); }' |
    ${CC:-cc} -c -x c - -o "$work/obj/src/order/permute.o"
if "$python" tests/house/rooms.py "$work" | grep -q '^src/order/permute.c calls tokmap_i_token_piece_read: src/dataset is not below'; then
    echo "ok a_planted_call_upward_is_found"
else
    echo "FAIL a_planted_call_upward_is_found: nothing says so"
    failed=1
fi
exit "${failed:-0}"
