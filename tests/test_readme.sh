#!/bin/sh
# The README shows what `make demo` prints, and its figures are those of a committed result.
cd "$(dirname "$0")/.." || exit 1
: "${TOKMAP_BUILD:=$PWD/build}"
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
status=0

say() { # outcome of the last command, name, why
    if [ "$1" = 0 ]; then
        echo "ok $2"
    else
        echo "FAIL $2: $3"
        status=1
    fi
}

# The first fenced block after the comment that names the test.
awk '/output of make demo/ { seen = 1; next }
     seen && /^```/ { if (inside) exit; inside = 1; next }
     inside { print }' README.md >"$folder/shown"
mkdir "$folder/build"
ln -s "$TOKMAP_BUILD/tokmap" "$folder/build/tokmap"
TOKMAP=$folder/build/tokmap sh docs/demo.sh 2>&1 |
    sed -e 's|^Everything is in .*|Everything is in build/demo|' -e "s|^The program is .*;|The program is build/tokmap;|" -e 1d >"$folder/printed"
if diff "$folder/shown" "$folder/printed" >"$folder/diff"; then
    say 0 the_readme_shows_what_the_demo_prints
else
    say 1 the_readme_shows_what_the_demo_prints "$(tr '\n' '|' <"$folder/diff")"
fi

# Every row of the README's table of figures stands in the JSON it names.
result=$(sed -n 's/.*(\(bench\/results\/[^)]*\.json\)).*/\1/p' README.md | head -n 1)
missing=
[ -s "${result:-/nonexistent}" ] || missing="README names no result that is there; "
rows=$(awk '/^## Measured/ { seen = 1 } /^## Read/ { seen = 0 } seen && /^\| [a-z0-9]/' README.md)
[ -n "$rows" ] || missing="${missing}there is no table; "
IFS='
'
for row in $rows; do
    name=$(printf '%s' "$row" | cut -d '|' -f 2 | sed 's/^ *//; s/ *$//')
    median=$(printf '%s' "$row" | cut -d '|' -f 3 | sed 's/^ *//; s/ .*//')
    exact=$(grep -F "\"name\": \"$name\"" "$result" | sed 's/.*"median": \([-0-9.e+]*\).*/\1/')
    [ -n "$exact" ] && awk "BEGIN { d = $median - $exact; if (d < 0) d = -d; exit !(d <= 0.006 * $exact) }" ||
        missing="$missing$name: $median against '$exact'; "
done
[ -z "$missing" ]
say $? the_readme_quotes_the_committed_figures "$missing"
exit $status
