#!/usr/bin/env python3
"""lint_rules.py [FOLDER] - the house rules that no compiler checks, on the tree at FOLDER.

The layers of docs/ARCHITECTURE.md, lengths, what the library must not do, forgotten notes. Prints
each breach as `file:line: text`; exit status 1 when there is one."""

import pathlib
import re
import sys

MAX_COLUMNS = 100
MAX_FILE_LINES = {"tests": 1000, "": 600}
MAX_FUNCTION_LINES = {"tests": 100, "": 60}
MAX_NESTING = 3
MAX_ARGUMENTS = {"tests": 6, "": 5}

TOOLS = ["tokenize_tools", "tokenize_tools/tokenizer", "tokenize_tools/corpus"]
C_FOLDERS = ["include", "src", *TOOLS, "bench", "tests", "tests/fuzz"]
TEXT_SUFFIXES = {".c", ".h", ".py", ".sh", ".map", ".bash", ".md", ".in"}
FORGOTTEN = re.compile("|".join(["FIX" + "ME", "TO" + "DO", "XX" + "X:"]))

# docs/ARCHITECTURE.md says why.
KNOWS_SRC = {("bench/sparse_dataset.c", "index_writer"), ("bench/sparse_dataset.c", "hash")}

# The system belongs to platform*.c, and what the library says belongs to its caller.
SYSTEM_HEADER = re.compile(
    r"(sys|linux|arpa|netinet)/.*"
    r"|(unistd|fcntl|pthread|dirent|ftw|signal|poll|sched|dlfcn|time|spawn)\.h"
)
FORBIDDEN_CALL = re.compile(
    r"\b(v?f?printf|v?dprintf|f?puts|f?putc|putchar|perror|_?exit|_Exit|quick_exit|abort|assert"
    r"|errx?|warnx?|v?syslog|system|popen)\s*\("
)
STANDARD_STREAM = re.compile(r"\b(stdout|stderr|stdin)\b")
CUDA = re.compile(r"\b[Cc][Uu][Dd][Aa]|\bcu[A-Z]\w*\s*\(|__CUDA")
CUDA_FILES = re.compile(r"(staging_cuda|driver)")


class Breaches:
    def __init__(self):
        self.errors, self.warnings = [], []

    def error(self, path, line, text):
        self.errors.append(f"{path}:{line}: {text}")

    def warn(self, path, line, text):
        self.warnings.append(f"{path}:{line}: warning: {text}")


def blank(match):
    """Comments and strings become spaces; line breaks stay, so line numbers do too."""
    return re.sub(r"[^\n]", " ", match.group())


def code_only(text):
    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    includes = r"^[ \t]*#[ \t]*include[^\n]*"
    return re.sub(
        f"{includes}|{pattern}",
        lambda m: m.group() if m.group().lstrip().startswith("#") else blank(m),
        text,
        flags=re.DOTALL | re.MULTILINE,
    )


def includes_of(code):
    for number, line in enumerate(code.split("\n"), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if match:
            yield number, match.group(2)


# ---- Layers ----


def read_layers(root):
    """{file of src without its suffix: (height of its layer above the ground, its name)}"""
    text = (root / "docs/ARCHITECTURE.md").read_text()
    block = re.search(r"```layers\n(.*?)```", text, re.DOTALL)
    rows = [row.split() for row in block.group(1).strip().split("\n")]
    layers = {}
    for height, (layer, *stems) in enumerate(reversed(rows)):
        for stem in stems:
            if stem in layers:
                sys.exit(f"docs/ARCHITECTURE.md: {stem} stands in two layers")
            layers[stem] = (height, layer)
    return layers


def check_layers(root, sources, breaches):
    layers = read_layers(root)
    public = {path.name for path in (root / "include").glob("*.h")}
    stems = {path.stem for path in sources if path.parent.name == "src"}
    for stem in sorted(stems - layers.keys()):
        breaches.error(f"src/{stem}", 1, "stands in no layer of docs/ARCHITECTURE.md")
    for stem in sorted(s for s in layers.keys() - stems if "/" not in s):
        breaches.error("docs/ARCHITECTURE.md", 1, f"layer table: there is no src/{stem}.c or .h")
    uses = {stem: {} for stem in stems}
    for path, code in sources.items():
        folder = path.parts[0]
        for line, target in includes_of(code):
            stem = pathlib.Path(target).stem
            check_room(root, path, (line, target), breaches)
            if folder in ("tokenize_tools", "bench", "include") and stem in stems:
                own = ".." not in target and (root / path.parent / target).exists()
                allowed = (f"{folder}/{path.name}", stem) in KNOWS_SRC
                if target not in public and not own and not allowed:
                    breaches.error(path, line, f"{folder} includes {target}, which is src/'s own")
            if folder != "src" or target in public:
                continue
            if (root / "tokenize_tools" / target).exists() or (root / "bench" / target).exists():
                breaches.error(path, line, f"includes {target}: upward, src never uses a command")
            if stem in stems and stem != path.stem:
                uses[path.stem].setdefault(stem, (path, line))
                check_include(path, line, target, layers, breaches)
    check_circles(uses, breaches)


def check_room(root, path, include, breaches):
    """The rooms of tokenize_tools know nothing of the commands, nor of each other; the tokenizers
    are pure."""
    line, target = include
    if path.parts[0] != "tokenize_tools" or len(path.parts) < 3:
        return
    room = path.parts[1]
    ours = (root / "tokenize_tools" / target).exists()
    if ours and not (root / path.parent / target).exists():
        breaches.error(path, line, f"includes {target}: {room} knows nothing outside its room")
    if room == "tokenizer" and path.stem != "big_memory" and SYSTEM_HEADER.fullmatch(target):
        breaches.error(path, line, f"includes <{target}>: the tokenizers are pure")


def check_include(path, line, target, layers, breaches):
    height, layer = layers.get(path.stem, (None, None))
    target_height, target_layer = layers.get(pathlib.Path(target).stem, (None, None))
    if height is None or target_height is None:
        return
    if target_height > height:
        breaches.error(path, line, f"includes {target}: upward, from {layer} to {target_layer}")
    elif layer == "pure" and target_layer == "system":
        breaches.error(path, line, f"includes {target}: pure files make no system calls")


def check_circles(uses, breaches):
    done = set()

    def visit(stem, trail):
        if stem in trail:
            circle = trail[trail.index(stem):] + [stem]
            path, line = uses[circle[0]][circle[1]]
            breaches.error(path, line, "a circle of includes: " + " -> ".join(circle))
        elif stem not in done:
            for other in sorted(uses.get(stem, {})):
                visit(other, trail + [stem])
            done.add(stem)

    for stem in sorted(uses):
        visit(stem, [])


# ---- Lengths ----


def limit(limits, path):
    return limits["tests" if path.parts[0] == "tests" else ""]


def check_lengths(path, text, code, breaches):
    lines = text.split("\n")
    if len(lines) - 1 > limit(MAX_FILE_LINES, path):
        breaches.error(path, 1, f"{len(lines) - 1} lines; a file has at most "
                                f"{limit(MAX_FILE_LINES, path)}")
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_COLUMNS:
            breaches.error(path, number, f"{len(line)} columns, more than {MAX_COLUMNS}")
        if "\t" in line or line != line.rstrip():
            breaches.error(path, number, "a tab, or white space at the end of the line")
    code_lines = code.split("\n")
    for first, brace, last in functions_of(code_lines):
        check_function(path, code_lines, (first, brace, last), breaches)


def functions_of(lines):
    """(line of the signature, of its brace, of the closing brace), counted from 0. The brace of a
    function, and of nothing else, stands alone in column 0: clang-format sees to it."""
    start = None
    for i, line in enumerate(lines):
        if line == "{" and re.search(r"\)\s*$", lines[i - 1]):
            first = i - 1
            while lines[first].startswith(" "):  # the signature goes on
                first -= 1
            start = (first, i)
        elif line.startswith("}") and start:
            yield (*start, i)
            start = None


def check_function(path, lines, where, breaches):
    first, brace, last = where
    signature = " ".join(lines[first:brace])
    name = (re.search(r"(\w+)\s*\(", signature) or [None, "?"])[1]
    n_lines = last - first + 1
    if n_lines > limit(MAX_FUNCTION_LINES, path):
        breaches.error(path, first + 1, f"{name} has {n_lines} lines, more than "
                                        f"{limit(MAX_FUNCTION_LINES, path)}")
    n_arguments = count_arguments(signature)
    # A driver's calls have the arguments that they have.
    if n_arguments > limit(MAX_ARGUMENTS, path) and "driver" not in path.stem:
        breaches.error(path, first + 1, f"{name} has {n_arguments} arguments, more than "
                                        f"{limit(MAX_ARGUMENTS, path)}")
    check_nesting(path, name, lines, (brace, last), breaches)


def count_arguments(signature):
    depth = n_commas = 0
    opened = signature[signature.index("("):] if "(" in signature else ""
    for c in opened:
        depth += (c == "(") - (c == ")")
        n_commas += c == "," and depth == 1
        if depth == 0:
            break
    return n_commas + 1


def check_nesting(path, name, lines, body, breaches):
    """Counts the braces that open a block; clang-format puts those of initialisers elsewhere."""
    stack = []
    for number in range(body[0] + 1, body[1]):
        line = lines[number]
        for i, c in enumerate(line):
            if c == "{":
                stack.append(bool(re.search(r"(\) |\belse |\bdo |: )$|^ *$", line[:i])))
                if stack[-1] and sum(stack) == MAX_NESTING + 1:
                    breaches.error(path, number + 1,
                                   f"{name} nests blocks deeper than {MAX_NESTING}")
            elif c == "}" and stack:
                stack.pop()


# ---- What the library must not do ----


def check_library(path, code, breaches):
    may_call_system = path.name.startswith("platform")
    for number, target in includes_of(code):
        if SYSTEM_HEADER.fullmatch(target) and not may_call_system:
            breaches.error(path, number, f"includes <{target}>: the system belongs to platform*.c")
    for number, line in enumerate(code.split("\n"), 1):
        call = FORBIDDEN_CALL.search(line)
        if call or STANDARD_STREAM.search(line):
            what = call.group(1) if call else STANDARD_STREAM.search(line).group()
            breaches.error(path, number, f"{what}: the library neither prints nor ends its process")


def check_cuda(path, code, breaches):
    if path.parts[0] in ("src", "tokenize_tools") and not CUDA_FILES.search(path.stem):
        for number, line in enumerate(code.split("\n"), 1):
            if CUDA.search(line):
                breaches.error(path, number, "CUDA outside its own files")


def check_notes(root, breaches):
    folders = ["include", "src", "tokenize_tools", "bench", "tests", "docs", "python", ".ci"]
    files = [path for folder in folders for path in sorted((root / folder).rglob("*"))]
    for path in files + [root / "Makefile", root / "README.md"]:
        named = path.suffix in TEXT_SUFFIXES or path.name in ("Makefile", "run", "need")
        if not path.is_file() or not named:
            continue
        for number, line in enumerate(path.read_text(errors="replace").split("\n"), 1):
            if FORGOTTEN.search(line):
                breaches.error(path.relative_to(root), number, "a note left for later")


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    breaches = Breaches()
    sources = {}
    for folder in C_FOLDERS:
        for file in sorted((root / folder).glob("*.[ch]")):
            path, text = file.relative_to(root), file.read_text()
            sources[path] = code_only(text)
            check_lengths(path, text, sources[path], breaches)
            check_cuda(path, sources[path], breaches)
            if folder == "src":
                check_library(path, sources[path], breaches)
    check_layers(root, sources, breaches)
    check_notes(root, breaches)
    print("\n".join(breaches.warnings + breaches.errors), end="\n" if breaches.errors else "")
    return 1 if breaches.errors else 0


if __name__ == "__main__":
    sys.exit(main())
