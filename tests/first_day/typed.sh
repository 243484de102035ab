# SPDX-License-Identifier: Apache-2.0
# typed.sh - what the first days share: commands as a new user types them, and what they must say. `. "$(dirname "$0")/typed.sh"`
# goes into an empty folder, with the commands of the build and the Python of the tests.

. "$(dirname "${BASH_SOURCE[0]}")/../support/report.sh"
day=first_day_$(basename "$0" .sh)
export PATH=$build:$(dirname "$(command -v "$python")"):$PATH
export TOKMAP_LIBRARY=$build/libtokmap.so PYTHONPATH=$root/python PYTHONDONTWRITEBYTECODE=1
unset TOKMAP_IO RANK WORLD_SIZE SLURM_PROCID OMPI_COMM_WORLD_RANK PMI_RANK
mkdir "$work/home"
cd "$work/home" || exit 1

typed() # name, exit status, command; on standard input a text a line that it must say, or after "! " must not
{
    local got text wrong=
    bash -c "$3" </dev/null >"$work/said" 2>&1
    got=$?
    [ "$got" = "$2" ] || wrong="status $got, and not $2"
    while IFS= read -r text; do
        case $text in
        "! "*) ! grep -qF -e "${text#! }" "$work/said" || wrong="$wrong; it says: ${text#! }" ;;
        *) grep -qF -e "$text" "$work/said" || wrong="$wrong; it lacks: $text" ;;
        esac
    done
    verdict "${day}_$1" "${wrong:+\$ $3: ${wrong#; }. It said: $(head -c 150 "$work/said") ... $(tail -c 200 "$work/said")}"
}

copy_checkout() # folder: what a clone of this checkout would have, with what is not committed yet
{
    git -C "$root" rev-parse --is-inside-work-tree >/dev/null 2>&1 || skip_all "$day" "this is no checkout of git"
    mkdir -p "$1"
    (cd "$root" && git ls-files -z --cached --others --exclude-standard | xargs -0 sh -c 'for name; do [ ! -e "$name" ] || printf "%s\0" "$name"; done' - |
        tar --null -T - -c) | tar -C "$1" --no-same-owner -x
}

words() # how many documents: lines of JSON with id, lang, score and text, of $2, the name of a file
{
    awk -v n="$1" -v name="$2" 'BEGIN { for (i = 0; i < n; i++) {
        printf "{\"id\": %d, \"lang\": \"%s\", \"score\": %.1f, \"text\": \"Document %d of %s:", i, i % 3 ? "en" : "de", i % 10 / 10, i, name
        for (k = 0; k < 20 + i % 60; k++) printf " %s%d", substr("whale river stone cloud", 1 + (i * k) % 18, 5), k % 13
        print ".\"}" } }'
}
