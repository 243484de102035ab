#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rooms.py BUILD - which folder calls which, seen in the objects under BUILD/obj, against the table of
docs/ARCHITECTURE.md: prints each call of a room that is not below, and exits with 1.
rooms.py --draw - the folders in layers, each above those that it uses; docs/ARCHITECTURE.md shows it.
rooms.py --lines - lines of C, Python and shell in each folder; then of C alone: sources and headers outside tests."""

import collections
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from lint_rules import KNOWS_SRC, read_rooms  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
TREES = ("src", "tokenize_tools", "bench")


def room_of(path):
    return str(path.parent)


def symbols(build):
    """(file that defines it for each symbol, (file, symbol) for each use)"""
    objects = [path for tree in TREES for path in sorted((build / "obj" / tree).rglob("*.o"))
               if (ROOT / path.relative_to(build / "obj").with_suffix(".c")).exists()]
    said = subprocess.run(["nm", "-A", *map(str, objects)], check=True, capture_output=True, text=True)
    defined, used = {}, []
    for line in said.stdout.split("\n"):
        match = re.match(r"(.*)\.o:\s*[0-9a-f]*\s+(\w) (\S+)$", line)
        if match:
            path = pathlib.Path(match.group(1)).relative_to(build / "obj")
            if match.group(2) == "U":
                used.append((path, match.group(3)))
            elif match.group(2).isupper():
                defined[match.group(3)] = path
    return defined, used


def public_names():
    text = "".join(path.read_text() for path in (ROOT / "include").glob("*.h"))
    return set(re.findall(r"\b(tokmap_\w+)\(", text))


def arrows(build):
    """{(room, other room): [(file, symbol), ...]} without calls through the public headers"""
    defined, used = symbols(build)
    public = public_names()
    found = collections.defaultdict(list)
    for path, symbol in used:
        target = defined.get(symbol)
        tree = target and target.parts[0]
        if target and room_of(target) != room_of(path) and not (symbol in public and path.parts[0] != "src"):
            if not (path.parts[0] != "src" and tree == "src" and
                    any(str(path.with_suffix(".c")) == known for known, _ in KNOWS_SRC)):
                found[room_of(path), room_of(target)].append((path, symbol))
    return found


def reach(rooms, room):
    """The rooms below a room: what it may use, and what these may."""
    below = set()
    left = list(rooms.get(room, []))
    while left:
        other = left.pop()
        if other not in below:
            below.add(other)
            left += rooms.get(other, [])
    return below


def check(build):
    rooms, status = read_rooms(ROOT), 0
    found = arrows(build)
    for (room, other), uses in sorted(found.items()):
        if other not in reach(rooms, room):
            path, symbol = uses[0]
            print("%s.c calls %s: %s is not below %s (%d such calls)" %
                  (path, symbol, other, room, len(uses)))
            status = 1
    if drawing() != drawn_in_document():
        print("docs/ARCHITECTURE.md: the drawing is not that of rooms.py --draw")
        status = 1
    if not found:
        print("no calls: is %s built?" % build)
        status = 1
    return status


def drawing():
    """Lines: the rooms of each tree, those above first."""
    rooms = read_rooms(ROOT)
    height, lines = {}, []

    def height_of(room):
        if room not in height:
            height[room] = 1 + max([height_of(other) for other in rooms[room]], default=-1)
        return height[room]

    for tree in ("bench", "tokenize_tools", "src"):
        own = [room for room in rooms if room.split("/")[0] == tree]
        for layer in sorted({height_of(room) for room in own}, reverse=True):
            lines.append("%3d  %s" % (layer, "  ".join(sorted(r for r in own if height_of(r) == layer))))
        lines.append("")
    return lines[:-1]


def drawn_in_document():
    text = (ROOT / "docs/ARCHITECTURE.md").read_text()
    return re.search(r"```rooms\n(.*?)\n```", text, re.DOTALL).group(1).split("\n")


def count_lines():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
    counts, c_lines = collections.Counter(), 0
    for name in tracked.stdout.split("\n"):
        path = pathlib.Path(name)
        if path.suffix in (".c", ".h", ".cu", ".py", ".sh") and "tables.c" not in name:
            n = len((ROOT / path).read_text(errors="replace").split("\n")) - 1
            counts[room_of(path)] += n
            c_lines += n if path.suffix in (".c", ".h") and path.parts[0] != "tests" else 0
    production = sum(n for room, n in counts.items() if room.split("/")[0] != "tests" and room != "bench/peers")
    for room, n in sorted(counts.items()):
        print("%6d  %s" % (n, room))
    print("%6d  outside tests and bench/peers" % production)
    print("%6d  C outside tests" % c_lines)


def main():
    arguments = sys.argv[1:]
    if arguments == ["--lines"]:
        count_lines()
    elif arguments[:1] == ["--draw"]:
        print("\n".join(drawing()))
    elif len(arguments) == 1 and (pathlib.Path(arguments[0]) / "obj").is_dir():
        return check(pathlib.Path(arguments[0]).resolve())
    else:
        sys.exit(__doc__)
    return 0


if __name__ == "__main__":
    sys.exit(main())
