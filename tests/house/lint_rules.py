#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lint_rules.py [--advice] [FOLDER] - the house rules that no compiler checks, on the tree at FOLDER.

The rooms of docs/ARCHITECTURE.md, the layers of the Python package, the names in that page, what the library must
not do, what depends on the order of evaluation, forgotten notes.
Prints each breach as `file:line: text`; exit status 1 when there is one. Lengths are advice, for code outside tests:
printed with --advice, and no breach."""

import functools
import os
import pathlib
import re
import sys

import error_texts
import python_layers
import unsequenced

MAX_COLUMNS = 100
MAX_NESTING = 3
MANY_FILE_LINES, MANY_FUNCTION_LINES, MANY_ARGUMENTS = 600, 60, 5

C_FOLDERS = ["include", "src", "tokenize_tools", "bench", "tests"]
TEXT_SUFFIXES = {".c", ".h", ".cu", ".ptx", ".py", ".sh", ".map", ".bash", ".fish", ".md", ".in", ".mk"}
LICENCE = "SPDX-License-Identifier: Apache-2.0"
FORGOTTEN = re.compile("|".join(["FIX" + "ME", "TO" + "DO", "XX" + "X:"]))

# docs/ARCHITECTURE.md says why.
KNOWS_SRC = {("bench/core/sparse_dataset.c", "src/writer/sections.h")}

# Modules that include or call each other in a circle; a smaller circle within one is allowed too.
KNOWN_CIRCLES = {
    "tokenize_tools/tokenizer/merge/merge tokenize_tools/tokenizer/merge/merge_long",
}

# Rooms of which only commands use some files: scripts test these, because scripts run the commands.
RUN_BY_SCRIPTS = """
    bench bench/core bench/fit bench/pages tokenize_tools tokenize_tools/cli tokenize_tools/commands/dataset
    tokenize_tools/commands/python tokenize_tools/commands/text tokenize_tools/completion tokenize_tools/datasets
    tokenize_tools/foreign tokenize_tools/input tokenize_tools/pack tokenize_tools/plan tokenize_tools/request
    tokenize_tools/scan tokenize_tools/system tokenize_tools/tokenizer/choice
    """.split()
# An object with a value that other files can name.
OBJECT = re.compile(r"^(?!static|typedef|extern|return|#)\w[\w ]*[ *](\w+)(?:\[[^=;\n]*\])* =", re.MULTILINE)

# The system belongs to the system rooms; cli asks it for the time and whether there is a terminal.
SYSTEM_ROOMS = ("src/system", "tokenize_tools/system")
SYSTEM_HEADER_ROOMS = SYSTEM_ROOMS + ("tokenize_tools/cli",)
SYSTEM_HEADER = re.compile(
    r"(sys|linux|arpa|netinet)/.*"
    r"|(unistd|fcntl|pthread|dirent|ftw|signal|poll|sched|dlfcn|time|spawn)\.h"
)
SYSTEM_CALLS = """
    open openat open64 creat fopen fdopen freopen close dup dup2 dup3 fcntl flock ioctl
    read pread readv preadv preadv2 write pwrite writev pwritev lseek copy_file_range
    truncate ftruncate fsync fdatasync posix_fadvise posix_fallocate fallocate
    stat fstat lstat fstatat statx statfs fstatfs access faccessat
    opendir fdopendir readdir closedir scandir ftw nftw mkdir mkdirat rmdir mkstemp mkdtemp
    link linkat symlink readlink unlink unlinkat remove rename renameat renameat2
    mmap munmap mremap madvise mprotect msync mlock mincore
    fork vfork execv execve execvp execl execlp posix_spawn posix_spawnp wait waitpid kill raise
    pipe pipe2 poll select signal sigaction sigprocmask getrlimit setrlimit syscall dlopen socket
    """.split()
# Not a member that has such a name.
SYSTEM_CALL = re.compile(r"\bpthread_\w+|(?<![\w.>])(%s)\s*\(" % "|".join(SYSTEM_CALLS))
# Rooms of files beside a dataset.
SIDE_ROOMS = ("src/columns/", "src/rows/", "src/views/")
SIDE_CALL = re.compile(r"\btokmap_i_(?:file_(?:open|read)|map|read_exactly)\b")
# Folders in whose files comments are checked for words that stop a reader.
PLAIN = ("bench/", "include/", "src/", "tokenize_tools/")
# At the beginning of a comment.
UNPLAIN_OPENING = re.compile(r"Of |Those of |That of |The same(?! as `?\w*[_A-Z])")
# English that is hard to read, and words that only this project uses.
UNPLAIN = re.compile(
    r"(?<!there )\b(?:is|are) no (?!longer|more)\w+|\bbut for\b|\bas there\b(?! (?:is|are|was|were))"
    r"|\b(?:lend|lends|lent|twins?|facts|black|spoiled|walkers?|kit|scratch|painted|second look)\b"
    r"|\b(?:header|index|journal|record|file|line|format|docs/\w+\.md) says\b",
    re.IGNORECASE)

# What the library says belongs to its caller.
FORBIDDEN_CALL = re.compile(
    r"\b(v?f?printf|v?dprintf|f?puts|f?putc|putchar|perror|_?exit|_Exit|quick_exit|abort|assert"
    r"|errx?|warnx?|v?syslog|system|popen)\s*\("
)
STANDARD_STREAM = re.compile(r"\b(stdout|stderr|stdin)\b")
# src/base/real.h is where doubles are read and written. The commands never set a locale, so they may print.
REAL = "src/base/real.c"
LOCALE_CALL = re.compile(r"\b(strto(?:f|d|ld)(?:_l)?|atof|(?:set|new|use)locale|localeconv|nl_langinfo)\s*\(")
LIBRARY_LOCALE_CALL = re.compile(
    r"\b(vsn?printf|vasprintf|is(?:alnum|alpha|blank|cntrl|digit|graph|lower|print|punct|space|upper|xdigit)|to(?:lower|upper)"
    r"|strn?casecmp|strcasestr|strcoll|strxfrm|strftime|v?s?scanf|mbr?towc|mbs(?:nr)?towcs|fnmatch|qsort_l)\s*\(")
PRINTED_REAL = re.compile(r'\bs(?:n|as)?printf\s*\((?:"(?:\\.|[^"\\])*"|[^;"])*?"(?:\\.|[^"\\%]|%[^aefgAEFG"])*?'
                          r"%[-+ #0-9.*]*l?L?[aefgAEFG]")
PYTHON_LOCALE = re.compile(r"""\b(import locale|locale\.|re\.LOCALE)|["'{][^"'{]*:n\}|strftime\([^)]*%[aAbBcpxX]""")
CUDA = re.compile(r"\b[Cc][Uu][Dd][Aa]|\bcu[A-Z]\w*\s*\(|__CUDA")


class Breaches:
    def __init__(self):
        self.errors, self.advice = [], []

    def error(self, path, line, text):
        self.errors.append(f"{path}:{line}: {text}")

    def advise(self, path, line, what, number, many):
        if number > many and path.parts[0] != "tests":
            self.advice.append(f"advice: {path}:{line}: {what}, more than {many}")


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
        match = "#" in line and re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if match:
            yield number, match.group(2)


# ---- Rooms ----


def read_rooms(root):
    """{folder: the folders that it may use}, from the table of docs/ARCHITECTURE.md."""
    return {row.group(1): re.findall(r"`(\S+)/`", row.group(2)) for row in rows_of_rooms(root)}


def rows_of_rooms(root):
    """Matches: the folder, the folders that it may use, the folder of its tests."""
    text = (root / "docs/ARCHITECTURE.md").read_text()
    return re.finditer(r"^\| `(\S+)/` \|[^|]*\|([^|]*)\| (?:`(\S+)/` )?\|$", text, re.MULTILINE)


def find_header(root, path, target):
    """The file that an include means: headers are named by folder and name, or stand beside."""
    return find_header_from(root, path.parent, target)


@functools.lru_cache(maxsize=None)
def find_header_from(root, beside, target):
    trees = [beside.parts[0], "src", "tokenize_tools", "bench", "tests"]
    for folder in ["include", beside, *trees]:
        if (root / folder / target).is_file():
            return pathlib.Path(os.path.normpath(folder / pathlib.Path(target)))
    return None


def is_allowed(path, room, target, rooms):
    other = str(target.parent)
    return (other in (room, "include") or other in rooms.get(room, []) or path.parts[0] == "tests" or
            (str(path), str(target)) in KNOWS_SRC)


def check_rooms(root, sources, breaches):
    rooms = read_rooms(root)
    folders = {str(path.parent) for path in sources if path.parts[0] not in ("include", "tests")}
    for folder in sorted(folders - rooms.keys()):
        breaches.error(folder, 1, "is no room of docs/ARCHITECTURE.md")
    for folder in sorted(rooms.keys() - folders):
        breaches.error("docs/ARCHITECTURE.md", 1, f"there is no room {folder}")
    uses, arrows = {path: {} for path in sources}, {room: set() for room in rooms}
    for path, code in sources.items():
        room = str(path.parent)
        for line, name in includes_of(code):
            target = find_header(root, path, name)
            if target is None:
                continue
            if not is_allowed(path, room, target, rooms):
                breaches.error(path, line, f"includes {name}: {room} may not use {target.parent}")
            arrows.setdefault(room, set()).add(str(target.parent))
            if path.parts[0] in ("src", "tokenize_tools", "bench"):
                uses[path].setdefault(target, line)
    for room, others in sorted(rooms.items()):
        for other in others:
            if other not in arrows[room]:
                breaches.error("docs/ARCHITECTURE.md", 1, f"{room} does not use {other}")
    product = {path: code for path, code in sources.items() if path.parts[0] in ("src", "tokenize_tools", "bench")}
    met = check_circles("rooms", {room: dict.fromkeys(others, 1) for room, others in rooms.items()}, breaches)
    met |= check_circles("includes", join_modules(uses), breaches)
    met |= check_circles("calls", calls_of(product), breaches)
    for circle in sorted(KNOWN_CIRCLES - met):
        breaches.error("tests/house/lint_rules.py", 1, f"KNOWN_CIRCLES: there is no circle in {circle}")


def join_modules(uses):
    """A file and its header are one module. What either uses, except each other."""
    joined = {}
    for path, targets in uses.items():
        module = joined.setdefault(path.with_suffix(""), {})
        for target, line in targets.items():
            if target.with_suffix("") != path.with_suffix(""):
                module.setdefault(target.with_suffix(""), line)
    return joined


def calls_of(sources):
    """For each module, the modules that define the functions that it calls."""
    defined, bodies = {}, {}
    for path, code in sources.items():
        lines = code.split("\n")
        own, called = set(), set()
        for first, brace, last in functions_of(lines):
            name = re.search(r"(\w+)\s*\(", " ".join(lines[first:brace]))[1]
            own.add(name)
            if "static" not in lines[first]:
                defined[name] = path
            called.update(re.findall(r"(?<![\w.>])(\w+)\s*\(", "\n".join(lines[brace:last])))
        bodies[path] = called - own
    return join_modules({path: {defined[name]: 1 for name in sorted(called) if name in defined}
                         for path, called in bodies.items()})


def reached_from(node, uses):
    """{a node that can be reached: the node before it on a shortest way}"""
    found, left = {}, [node]
    while left:
        here = left.pop(0)
        for other in sorted(uses.get(here, {})):
            if other not in found:
                found[other] = here
                left.append(other)
    return found


def check_circles(what, uses, breaches):
    """Reports each set of nodes that all reach each other. Returns those in KNOWN_CIRCLES that were met."""
    reached, done, met = {node: reached_from(node, uses) for node in uses}, set(), set()
    for node in sorted(uses):
        if node in done or node not in reached[node]:
            continue
        members = {other for other in reached[node] if node in reached.get(other, {})}
        done |= members
        known = [circle for circle in KNOWN_CIRCLES if {str(other) for other in members} <= set(circle.split())]
        met.update(known)
        if not known:
            trail = [node]
            while len(trail) == 1 or trail[-1] != node:
                trail.append(reached[node][trail[-1]])
            breaches.error(node, 1, f"a circle of {what}: " + " -> ".join(map(str, reversed(trail))))
    return met


# ---- Tests of rooms ----


def check_tests(root, sources, breaches):
    """Each C file of a room is reached by a test program of the folder that the table names, or by a fuzz target."""
    used = uses_of_names(root, sources)
    for row in rows_of_rooms(root):
        room, tests = row.group(1), row.group(3)
        if not tests or not any((root / tests).glob("test_*.*")):
            breaches.error("docs/ARCHITECTURE.md", 1, f"{room} has no folder of tests")
            continue
        programs = [path.with_suffix("") for path in sources if path.suffix == ".c" and
                    (str(path.parent) == tests and path.name.startswith("test_") or path.match("tests/fuzz/fuzz_*.c"))]
        found = reached_by(programs, used)
        missed = [path for path in sorted(sources) if str(path.parent) == room and path.suffix == ".c" and
                  path.with_suffix("") not in found]
        if room in RUN_BY_SCRIPTS and not missed:
            breaches.error("tests/house/lint_rules.py", 1, f"RUN_BY_SCRIPTS: programs reach all of {room}")
        for path in missed if room not in RUN_BY_SCRIPTS else ():
            breaches.error(path, 1, f"is not reached by a test program of {tests}")


def uses_of_names(root, sources):
    """For each module, the modules whose functions or objects it names. Of those that define nothing by name, because
    macros do, and for tests also those whose headers it includes."""
    defined, uses = names_defined(sources), {}
    named = set(defined.values())
    for path, code in sources.items():
        module = uses.setdefault(path.with_suffix(""), set())
        module.update(defined[word] for word in set(re.findall(r"\w+", code)) & defined.keys())
        for prefix in re.findall(r"\b(\w+_)##\w", code):  # a row of a table names what it lists
            module.update(owner for name, owner in defined.items() if name.startswith(prefix))
        if path.parts[0] != "tests":  # no file of the product uses a test, but both may use the name of a function of libc
            module -= {other for other in module if other.parts[0] == "tests"}
        for _, name in includes_of(code):
            target = find_header(root, path, name)
            if target and (path.parts[0] == "tests" or target.with_suffix("") not in named):
                module.add(target.with_suffix(""))
    return uses


def names_defined(sources):
    """{a function or an object that other files can name: its module}"""
    defined = {}
    for path, code in sources.items():
        if path.suffix == ".c" and not path.name.startswith(("test_", "fuzz_")):
            lines = code.split("\n")
            for first, brace, _ in functions_of(lines):
                if not re.search("static|INLINE", lines[first]):
                    name = re.search(r"(\w+)\s*\(", " ".join(lines[first:brace]))[1]
                    defined[name] = path.with_suffix("")
            for match in OBJECT.finditer(code):
                defined[match.group(1)] = path.with_suffix("")
    return defined


def reached_by(modules, uses):
    found, left = set(), list(modules)
    while left:
        for other in uses.get(left.pop(), set()) - found:
            found.add(other)
            left.append(other)
    return found


# ---- Lengths ----


def check_lengths(path, text, code, breaches):
    lines = text.split("\n")
    breaches.advise(path, 1, f"{len(lines) - 1} lines", len(lines) - 1, MANY_FILE_LINES)
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
    breaches.advise(path, first + 1, f"{name} has {n_lines} lines", n_lines, MANY_FUNCTION_LINES)
    n_arguments = count_arguments(signature)
    if "driver" not in path.stem:  # whose calls have the arguments that they have
        breaches.advise(path, first + 1, f"{name} has {n_arguments} arguments", n_arguments, MANY_ARGUMENTS)
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


def check_order(sources, breaches):
    prototypes = unsequenced.read_prototypes(sources)
    for path, code in sources.items():
        for line, used, function in unsequenced.find_unsequenced(code, prototypes, path.parts[0] == "tests"):
            breaches.error(path, line, f"{used} is used beside a call of {function}, which may write it: C does not say"
                                       " which comes first")


# ---- Words ----


def check_words(path, text, breaches):
    if not str(path).startswith(PLAIN):
        return
    pattern = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*(.*?)\*/'
    for match in re.finditer(pattern, text, re.DOTALL):
        words = re.sub(r"\n\s*\*", " ", match.group(1) or "")
        words = re.sub(r"\s+", " ", words).strip()
        found = UNPLAIN_OPENING.match(words) or UNPLAIN.search(words)
        if found:
            line = text.count("\n", 0, match.start()) + 1
            breaches.error(path, line, f'a comment with "{found.group().strip()}": say it in plain words')


# ---- Names ----


def check_names(sources, breaches):
    """A macro of a header hides, without a warning, a constant that another one gives the same name."""
    macros = {}
    for path, code in sources.items():
        for match in re.finditer(r"^#define (\w+)", code if path.suffix == ".h" else "", re.MULTILINE):
            macros[match.group(1)] = path, code.count("\n", 0, match.start()) + 1
    for path, code in sources.items():
        for constants in re.findall(r"\benum\b[^{;()]*\{([^}]*)\}", code if path.suffix == ".h" else ""):
            for name in macros.keys() & set(re.findall(r"(?:^|,)\s*(\w+)(?=\s*(?:[=,]|$))", constants)):
                breaches.error(*macros[name], f"{name} is a constant of {path} too")


# ---- What only some rooms may do ----


def check_system(path, code, breaches):
    room = path.parts[0] + "/system"
    for number, target in includes_of(code):
        if SYSTEM_HEADER.fullmatch(target) and str(path.parent) not in SYSTEM_HEADER_ROOMS:
            breaches.error(path, number, f"includes <{target}>: the system belongs to {room}")
    for number, line in enumerate(code.split("\n"), 1):
        call = SYSTEM_CALL.search(line)
        if call and str(path.parent) not in SYSTEM_ROOMS:
            breaches.error(path, number, f"{call.group(1) or call.group()}: the system belongs to {room}")


def check_side_files(path, code, breaches):
    """Only src/dataset/side_file.c opens, reads or maps a file beside a dataset."""
    for number, line in enumerate(code.split("\n"), 1):
        call = SIDE_CALL.search(line)
        if call and str(path).startswith(SIDE_ROOMS):
            breaches.error(path, number, f"{call[0]}: src/dataset/side_file.h opens files beside a dataset")


def is_of_a_library(path):
    """The tokenizers are in libtokmap_tokenizer, but not what they print on a command line."""
    return path.parts[0] == "src" or (path.parts[:2] == ("tokenize_tools", "tokenizer") and
                                      path.parts[2] != "choice")


def check_library(path, code, breaches):
    for number, line in enumerate(code.split("\n"), 1):
        call = FORBIDDEN_CALL.search(line)
        if call or STANDARD_STREAM.search(line):
            what = call.group(1) if call else STANDARD_STREAM.search(line).group()
            breaches.error(path, number, f"{what}: the library neither prints nor ends its process")


def check_locale(path, text, code, breaches):
    """No number depends on the locale of the process."""
    if str(path) == REAL or path.parts[0] not in ("src", "tokenize_tools", "bench"):
        return
    for number, line in enumerate(code.split("\n"), 1):
        call = LOCALE_CALL.search(line) or is_of_a_library(path) and LIBRARY_LOCALE_CALL.search(line)
        if call:
            breaches.error(path, number, f"{call.group(1)}: follows the locale of the process; use base/real.h")
    for match in PRINTED_REAL.finditer(text) if is_of_a_library(path) else ():
        breaches.error(path, text.count("\n", 0, match.start()) + 1, "a double is printed by real_print of base/real.h")


def check_python_locale(root, breaches):
    for path in sorted((root / "python/tokmap").rglob("*.py")):
        for number, line in enumerate(path.read_text().split("\n"), 1):
            match = PYTHON_LOCALE.search(line)
            if match:
                breaches.error(path.relative_to(root), number, f"{match.group()}: follows the locale of the process")


def check_cuda(path, code, breaches):
    if path.parts[0] in ("src", "tokenize_tools") and path.parts[1] != "stage":
        for number, line in enumerate(code.split("\n"), 1):
            if CUDA.search(line):
                breaches.error(path, number, "CUDA outside its own files")


def check_page(root, sources, breaches):
    """What docs/ARCHITECTURE.md names exists."""
    page = "docs/ARCHITECTURE.md"
    files = [f"/{path.relative_to(root)}" for folder in C_FOLDERS + ["python", "docs"]
             for path in (root / folder).rglob("*.*")]
    python = [path.read_text() for path in (root / "python").rglob("*.py")]
    words = set(re.findall(r"\w+", " ".join([*sources.values(), *python])))
    for number, line in enumerate((root / page).read_text().split("\n"), 1):
        for name in re.findall(r"`(?:struct )?([^`]+)`", line):
            is_file = re.fullmatch(r"[\w/]+\.(c|h|cu|py)", name)
            if (is_file and not any(file.endswith(f"/{name}") for file in files) or
                    re.fullmatch(r"\w+[^\W_]", name) and name not in words):
                breaches.error(page, number, f"there is no {name}")


def check_texts(root, breaches):
    folders = ["include", "src", "tokenize_tools", "bench", "tests", "docs", "python", ".ci"]
    files = [path for folder in folders for path in sorted((root / folder).rglob("*"))]
    for path in files + [root / "Makefile", root / "README.md"]:
        named = path.suffix in TEXT_SUFFIXES or path.name in ("Makefile", "run", "need", "python")
        if not path.is_file() or not named:
            continue
        lines = path.read_text(errors="replace").split("\n")
        if path.suffix != ".md" and not any(LICENCE in line for line in lines[:2]):
            breaches.error(path.relative_to(root), 1, f"the first line must be {LICENCE}")
        for number, line in enumerate(lines, 1):
            if FORGOTTEN.search(line):
                breaches.error(path.relative_to(root), number, "a note left for later")


def check(root):
    breaches = Breaches()
    sources = {}
    for folder in C_FOLDERS:
        for file in sorted((root / folder).rglob("*.[ch]")):
            path, text = file.relative_to(root), file.read_text()
            sources[path] = code_only(text)
            check_lengths(path, text, sources[path], breaches)
            check_cuda(path, sources[path], breaches)
            check_locale(path, text, sources[path], breaches)
            check_words(path, text, breaches)
            if is_of_a_library(path):
                check_library(path, sources[path], breaches)
            if folder in ("src", "tokenize_tools"):
                check_system(path, sources[path], breaches)
                check_side_files(path, sources[path], breaches)
    check_rooms(root, sources, breaches)
    check_tests(root, sources, breaches)
    check_order(sources, breaches)
    check_names(sources, breaches)
    check_page(root, sources, breaches)
    check_texts(root, breaches)
    check_python_locale(root, breaches)
    python_layers.check(root, breaches)
    error_texts.check(root, breaches)
    return breaches


def main():
    folders = [word for word in sys.argv[1:] if word != "--advice"]
    breaches = check(pathlib.Path(folders[0] if folders else pathlib.Path(__file__).parents[2]))
    for line in (breaches.advice if "--advice" in sys.argv else []) + breaches.errors:
        print(line)
    return 1 if breaches.errors else 0


if __name__ == "__main__":
    sys.exit(main())
