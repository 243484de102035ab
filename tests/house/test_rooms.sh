#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Calls go down between folders, as includes do, and the drawing in docs/ARCHITECTURE.md is current.

. "$(dirname "$0")/../support/report.sh"
[ -z "$TOKMAP_SANITIZED" ] || skip_all rooms "a sanitizer adds calls; make test runs it"
command -v "$python" >/dev/null || skip_all rooms "$python not found"
said=$("$python" tests/house/rooms.py "$build" 2>&1)
outcome calls_between_rooms_go_down $? "$(head -n 3 <<<"$said")"

# What tests share comes before the product when they are linked, and would replace it silently.
twice=$(nm --defined-only -g "$build"/lib{tests,tools,tokmap}.a | awk 'NF == 3 { print $3 }' | sort | uniq -d)
verdict no_name_of_the_tests_hides_one_of_the_product "$(head -n 3 <<<"$twice")"

# A planted call: the order of samples opens a dataset.
mkdir -p "$work/obj/src/order" "$work/obj/src/dataset"
cp "$build/obj/src/dataset/token_files.o" "$work/obj/src/dataset/"
echo 'int tokmap_i_token_piece_read(void); int planted(void); int planted(void) { return tokmap_i_token_piece_read(); }' |
    ${CC:-cc} -c -x c - -o "$work/obj/src/order/permute.o"
"$python" tests/house/rooms.py "$work" |
    grep -q '^src/order/permute.c calls tokmap_i_token_piece_read: src/dataset is not below'
outcome a_planted_call_upward_is_found $? "nothing says so"
exit $status
