#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rooms.py BUILD - which folder calls which, seen in the objects under BUILD/obj, against the table of
docs/ARCHITECTURE.md: prints each call of a room that is not below, and exits with 1.
rooms.py --draw - the folders in layers, each above those that it uses; docs/ARCHITECTURE.md shows it.
rooms.py --lines - lines of code in each folder: of C, Python and shell, without blanks, comments and docstrings.
rooms.py --sizes - the largest room and what the tests have for each line; exits with 1 if either is too much."""

import ast
import collections
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from lint_rules import KNOWS_SRC, read_rooms  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_LINES, MOST_TESTS = 5500, 1.05
COMMENT_OR_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.DOTALL)
WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
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


def lines_of_code(path):
    """Lines that hold something besides blanks and comments, and in Python docstrings."""
    text = path.read_text(errors="replace")
    if path.suffix in (".c", ".h", ".cu"):
        text = COMMENT_OR_STRING.sub(lambda m: m[0] if m[0][0] in "\"'" else "\n" * m[0].count("\n"), text)
        return sum(1 for line in text.split("\n") if line.strip())
    left_out = set()
    for node in ast.walk(ast.parse(text)) if path.suffix == ".py" else ():
        if isinstance(node, WITH_DOCSTRING) and ast.get_docstring(node) is not None:
            left_out.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return sum(1 for number, line in enumerate(text.split("\n"), 1)
               if line.strip() and not line.lstrip().startswith("#") and number not in left_out)


def count_lines():
    """{folder: lines}, without generated tables; and {suffix: lines outside tests}."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
    counts, kinds = collections.Counter(), collections.Counter()
    for name in tracked.stdout.split("\n"):
        path = pathlib.Path(name)
        if path.suffix in (".c", ".h", ".cu", ".py", ".sh") and not re.search(r"_tables\.[ch]$", name) and (ROOT / path).exists():
            n = lines_of_code(ROOT / path)
            counts[room_of(path)] += n
            if path.parts[0] != "tests" and (path.suffix != ".py" or path.parts[0] == "python"):
                kinds["Python" if path.suffix == ".py" else "C" if path.suffix != ".sh" else "shell"] += n
    return counts, kinds


def check_sizes():
    """No room of the table is too large for one head, and the tests no larger than what they test."""
    counts, kinds = count_lines()
    room, n = max(((room, counts[room]) for room in read_rooms(ROOT)), key=lambda one: one[1])
    tests = sum(n for room, n in counts.items() if room.split("/")[0] == "tests")
    ratio = tests / (kinds["C"] + kinds["Python"])
    print("the largest room: %s, %d lines of %d; tests: %.3f lines a line, of %.2f" % (room, n, MOST_LINES, ratio, MOST_TESTS))
    return 0 if n <= MOST_LINES and ratio <= MOST_TESTS else 1


def main():
    arguments = sys.argv[1:]
    if arguments == ["--lines"]:
        counts, kinds = count_lines()
        print("\n".join("%7d  %s" % (n, room) for room, n in sorted(counts.items())))
        print(", ".join("%s %d" % one for one in sorted(kinds.items())) + " outside tests; Python without bench")
    elif arguments == ["--sizes"]:
        try:
            return check_sizes()
        except (OSError, subprocess.CalledProcessError):
            print("no sizes: these files are not in git")
    elif arguments[:1] == ["--draw"]:
        print("\n".join(drawing()))
    elif len(arguments) == 1 and (pathlib.Path(arguments[0]) / "obj").is_dir():
        return check(pathlib.Path(arguments[0]).resolve())
    else:
        sys.exit(__doc__)
    return 0


if __name__ == "__main__":
    sys.exit(main())
