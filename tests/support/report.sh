# SPDX-License-Identifier: Apache-2.0
# report.sh - what tests in bash share: `. "$(dirname "$0")/../support/report.sh"` goes to the root of
# the tree and makes a folder, $work, that is removed at the end. A test ends with `exit $status`.

root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${TOKMAP_BUILD:-$root/build}" && pwd) || exit 1
python=${PYTHON:-python3}
work=$(mktemp -d "${TMPDIR:-/tmp}/tokmap_test_XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$root" || exit 1
status=0

verdict() # name, what is wrong: nothing if it passed
{
    if [ -z "$2" ]; then
        echo "ok $1"
    else
        echo "FAIL $1: $(tr '\n\t' '  ' <<<"$2" | tail -c 600)"
        status=1
    fi
}

outcome() # name, exit status of what was tested, what it said
{
    verdict "$1" "$([ "$2" = 0 ] || echo "status $2: $3")"
}

skip_all() # name, reason
{
    echo "skip $1: $2"
    exit 77
}
