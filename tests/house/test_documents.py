#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What people read first is true: figures of README, BENCHMARKS and SCALE are in committed results; links lead to
files and headings; files, make targets and options that a document, a page of the manual or a header names exist, and
so do the names that CONTRIBUTING.md tells a newcomer to change; what is experimental is marked."""

import json
import pathlib
import re
import sys

from ref_protocol import call, expect, expect_equal, run_in_folders

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = [str(path.relative_to(ROOT)) for glob in ("*.md", ".github/**/*.md", "docs/**/*.md", "bench/*/*.md")
             for path in ROOT.glob(glob)]
MANUALS = [str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("docs/man/*"))]
HEADERS = [str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("include/*.h"))]
MAKEFILES = [ROOT / name for name in ("Makefile", "bench/bench.mk", "docs/packaging/release.mk", "tests/sanitizers.mk")]

UNITS = {"ns": ("time", 1e-9), "us": ("time", 1e-6), "ms": ("time", 1e-3), "s": ("time", 1),
         "tokens/s": ("tokens", 1), "M tokens/s": ("tokens", 1e6), "G tokens/s": ("tokens", 1e9),
         "rows/s": ("rows", 1), "documents/s": ("documents", 1), "thousand documents/s": ("documents", 1e3),
         "M documents/s": ("documents", 1e6), "MB/s": ("bytes", 1e6), "GB/s": ("bytes", 1e9),
         "%": ("part", 1), "x": ("ratio", 1), "times": ("ratio", 1), "KiB": ("memory", 1024), "MiB": ("memory", 1 << 20)}
NUMBER = r"\d[\d,]*(?:\.\d+)?"
FIGURES = re.compile(rf"({NUMBER}(?:(?: to | and ){NUMBER})*) "
                     rf"({'|'.join(sorted(UNITS, key=len, reverse=True))})(?![\w/])")


def quantities(path):
    """(kind, value) of each median, smallest and largest value, and target."""
    for row in json.loads(path.read_text())["rows"]:
        for figure in (row, *(part for part in row.values() if isinstance(part, dict))):
            kind, factor = UNITS.get(figure.get("unit"), ("", 0))
            if kind:
                values = figure["median"], min(figure["values"]), max(figure["values"])
                yield from ((kind, value * factor) for value in values)
                yield from ((kind, value * factor) for key, value in figure.get("target", {}).items()
                            if key != "reached")


def count_figures(text, known, left_out=()):
    """How many figures there are, but of these kinds; each is a known (kind, value), as far as its digits go."""
    n_figures = 0
    for numbers, unit in FIGURES.findall(text):
        kind, factor = UNITS[unit]
        for number in re.findall(NUMBER, numbers) if kind not in left_out else ():
            n_figures += 1
            shown, room = float(number.replace(",", "")) * factor, 0.5001 * factor * 10**-len(number.partition(".")[2])
            expect(any(k == kind and abs(shown - value) <= room for k, value in known),
                   f"{number} {unit} is in no result that is linked beside it: {text[:60]} ...")
    return n_figures


def the_benchmarks_quote_the_committed_figures(folder):
    """Each figure is in a result that its section, or its line of a table, links to."""
    document = ROOT / "docs/BENCHMARKS.md"
    text = document.read_text()
    for name, target in re.findall(r"^\[(\w)\]: (\S+)$", text, re.MULTILINE):
        text = text.replace(f"][{name}]", f"]({target})")
    parts = re.findall(r"^\|.*\|$", text, re.MULTILINE)
    parts += re.split(r"^## ", re.sub(r"^\|.*\|$", "", text, flags=re.MULTILINE), flags=re.MULTILINE)
    n_figures = 0
    for part in (" ".join(part.split()) for part in parts):
        targets = re.findall(r"\]\(([^)]*\.json)\)", part)
        n_figures += count_figures(part, [one for target in targets for one in quantities(document.parent / target)])
    expect(n_figures > 80, f"only {n_figures} figures were found")


def scale_quotes_the_committed_figures(folder):
    """Times, memory and ratios, measured or computed. Sentences have the digits that a reader needs."""
    known = [one for name in ("scale-xeon-4core.json", "scale-computed.json", "scale-stores-computed.json",
                                       "look-back-xeon-2core.json")
             for one in quantities(ROOT / "bench/results" / name)]
    n_figures = count_figures(" ".join((ROOT / "bench/scale/README.md").read_text().split()), known, ("bytes", "part"))
    expect(n_figures > 20, f"only {n_figures} figures were found")


def shared_quotes_the_committed_figures(folder):
    text = (ROOT / "docs/SHARED.md").read_text()
    known = {row["name"]: row["median"] for row in json.loads((ROOT / "bench/results/file-systems-epyc-a-2core.json").read_text())["rows"]}
    head, _, *lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in
                       re.search(r"^\| \[measured\].*(?:\n\|.*)+", text, re.MULTILINE)[0].splitlines()]
    for name, *cells in lines:
        for column, cell in zip(head[1:], cells):
            value = known.get(f"{name}, {column}, concat, rate, new auto")
            wanted = "-" if value is None else f"{float(f'{value:.3g}'):,.0f}" if value >= 1000 else f"{value:.3g}"
            expect_equal(cell, wanted, f"{name}, {column}")
    expect(len(lines) > 5, f"{len(lines)} lines")


def the_readme_quotes_the_committed_figures(folder):
    """Its picture is what the script draws from the results, and its figures are in results that it links to."""
    sys.path.insert(0, str(ROOT / "docs/site"))
    import picture

    for path, drawn in picture.pictures().items():
        expect_equal(path.read_text(), drawn, f"{path.name}: draw it with docs/site/picture.py")
    text = (ROOT / "README.md").read_text()
    results = {ROOT / target for target in re.findall(r"\]\((bench/[^)]*\.json)\)", text)}
    expect({ROOT / "bench/results" / result for _, result, _, _ in picture.CHARTS["first"]} <= results, f"only {results}")
    count_figures(" ".join(text.split()), [one for path in results for one in quantities(path)])
    expect(len(text.splitlines()) <= 150, f"{len(text.splitlines())} lines")


def without_blocks(text):
    return re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)


def read_text(document):
    """Of a page of the manual, without its dashes and fonts."""
    text = (ROOT / document).read_text()
    return re.sub(r"\\f[BIR]|\\[&%]", "", text.replace("\\-", "-")) if document in MANUALS else text


def anchors_of(text):
    """As GitHub makes them of headings."""
    for heading in re.findall(r"^#+ (.*)$", without_blocks(text), re.MULTILINE):
        yield re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def links_lead_to_files_and_headings(folder):
    n_links = 0
    for document in DOCUMENTS:
        path = ROOT / document
        text = re.sub(r"`[^`\n]*`", "", without_blocks(path.read_text()))
        for target in re.findall(r"\]\(([^)\s]+)\)|^\[\w+\]: (\S+)$", text, re.MULTILINE):
            name, _, anchor = "".join(target).partition("#")
            if re.match(r"\w+:", name):
                continue
            n_links += 1
            found = path.parent / name if name else path
            expect(found.exists(), f"{document}: there is no {name}")
            expect(not anchor or anchor in anchors_of(found.read_text()), f"{document}: {name} has no heading #{anchor}")
    expect(n_links > 100, f"only {n_links} links were found")


def code_words(document):
    """What stands between backticks outside fenced blocks."""
    return re.findall(r"`([^`]+)`", without_blocks(read_text(document)))


def code_lines(document):
    """Words in backticks and commands in blocks, with the lines that a backslash continues."""
    text = read_text(document)
    blocks = re.findall(r"^ *```sh\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    return code_words(document) + "".join(blocks).replace("\\\n", " ").split("\n")


def files_that_texts_name_exist(folder):
    n_files = 0
    for document in DOCUMENTS + MANUALS + HEADERS:
        words = re.findall(r"(?<![\w/.@*-])(?:docs|tests|bench|python|src|include|tokenize_tools|\.ci)/[\w.*/-]*[\w*]",
                           read_text(document))
        if document in ("CONTRIBUTING.md", "SECURITY.md"):  # also the end of a path
            words += [word for word in code_words(document) if re.fullmatch(r"\.?[\w.-]+(/[\w.-]+)+/?", word)]
        for word in words:
            if re.search(r"^build/|NAME|VERSION|/(fuzz_|pattern_)?x(\.c$|/)|/x$", word):
                continue
            n_files += 1
            expect(any(any(ROOT.glob(room + word)) for room in
                       ("", "tokenize_tools/tokenizer/", "tokenize_tools/", "src/", "tests/")), f"{document}: there is no {word}")
    expect(n_files > 150, f"only {n_files} names of files were found")


def names_that_texts_name_exist(folder):
    """Of C calls, constants and environment variables, and of the Python package."""
    folders = ("include", "src", "tokenize_tools", "bench", "tests", "python", ".ci")
    sources = [path for folder in folders for path in (ROOT / folder).rglob("*")
               if path.suffix in (".c", ".h", ".py", ".sh", ".map", "") and path.is_file()]
    known = set(re.findall(r"\w+", "\n".join(path.read_text(errors="replace") for path in MAKEFILES + sources)))
    package = ROOT / "python/tokmap"
    in_python = set(re.findall(r"\w+", (package / "__init__.py").read_text())) | {path.stem for path in package.glob("*.py")}
    n_names = 0
    for document in [d for d in DOCUMENTS if d != "docs/DECISIONS.md"] + MANUALS:
        text = read_text(document)
        for name in re.findall(r"(?<![\w/.])(?:tokmap_[a-z_]+|TOKMAP_[A-Z_]+)\b(?![\w*-]|_?\.\.\.|\.pc|\.py|\.H )", text):
            n_names += 1
            expect(name in known or name.endswith("_") or "_noun_" in name, f"{document}: there is no {name}")
        for name in re.findall(r"(?<![\w./'-])tokmap\.([A-Za-z]\w*)", text):
            n_names += 1
            expect(name in in_python or name in ("h", "hpp", "pc", "exe"), f"{document}: the package has no {name}")
    expect(n_names > 200, f"only {n_names} names were found")


def make_targets_that_documents_name_exist(folder):
    text = "\n".join(path.read_text() for path in MAKEFILES)
    targets = {name for names in re.findall(r"^([a-z][a-z0-9 -]*):(?!=)", text, re.MULTILINE) for name in names.split()}
    n_targets = 0
    for document in DOCUMENTS:
        for line in code_lines(document):
            for words in re.findall(r"(?:^|&& |; )make((?: [a-z][a-z-]*)+)(?= |$|;)", line):
                for word in words.split():
                    n_targets += 1
                    expect(word in targets, f"{document}: there is no target {word}: {line}")
    expect(n_targets > 40, f"only {n_targets} targets were found")


def read_help(*command):
    return call(*command, "--help")[1].decode().partition("\nExamples:")[0]


def options_of(*command):
    return set(re.findall(r"^  (?:-\w, |    )(--[a-z0-9-]+)", read_help(*command), re.MULTILINE))


def options_that_texts_name_exist(folder):
    """In a call, those of its command; elsewhere, those of any command or script of this tree."""
    commands = re.findall(r"^  ([a-z]+) ", read_help("tokmap"), re.MULTILINE)
    in_python = ("import", "preprocess", "render", "report", "trace", "try")  # whose options are also in `everywhere`
    known = {f"tokmap {command}": options_of("tokmap", command) for command in commands
             if command not in in_python or call("tokmap", command, "--help", check=False)[0] == 0}
    known.update({"tokmap": options_of("tokmap"), "tokbench": options_of("tokbench"), **{f"tokbench {question}": options_of("tokbench", question) for question in ("fit", "loader", "file-system", "compare")}})
    scripts = [path.read_text() for folder in ("bench", "python", "tests") for path in (ROOT / folder).rglob("*.py")]
    everywhere = set.union(*known.values(), re.findall(r"[\"'](--[a-z0-9-]+)[\"']", "\n".join(scripts)))
    n_options = 0
    for document in DOCUMENTS + MANUALS + HEADERS:
        lines = code_lines(document) if document in DOCUMENTS else read_text(document).split("\n")
        for line in lines:
            calls = re.split(r"(?<![\w/.-])(tokmap [a-z]+|tokbench (?:fit|loader|file-system|compare)|tokbench)(?=[^\w.]|$)", line)
            if "pkg-config" in line:
                continue
            parts = [("", calls[0])] + [(calls[i], calls[i + 1]) for i in range(1, len(calls), 2)]
            for command, words in parts:
                if not command and document in DOCUMENTS and not words.startswith("--"):
                    continue  # another program
                for option in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", re.split(r"[|;&]| > ", words)[0]):
                    n_options += 1
                    names = known.get(command, everywhere) if document in DOCUMENTS else everywhere
                    expect(option in names, f"{document}: {command or 'no command'} has no option {option}: {line}")
    expect(n_options > 300, f"only {n_options} options were found")


def the_stage_is_marked_experimental(folder):
    """Wherever a reader meets it first."""
    n_texts = 0
    for document in DOCUMENTS + MANUALS + HEADERS:
        text = read_text(document)
        if re.search(r"tokmap_stage_open|Stage\(|\"cuda:\d", text):
            n_texts += 1
            expect("experimental" in text.lower(), f"{document}: does not say that the stage is experimental")
    expect(n_texts > 3, f"only {n_texts} texts mention it")
    readme = " ".join(read_text("README.md").split())
    expect_equal(len(re.findall(r"GPUs are experimental", readme)), 1, "sentences of the README")


def words_that_people_search_lead_to_recipes(folder):
    """Each is in the table of tasks, whose link leads to a section that has commands or a program."""
    text = (ROOT / "docs/recipes.md").read_text()
    tasks = dict(re.findall(r"^\| (.*?) \| \[.*?\]\(#(.*?)\) \|$", text, re.MULTILINE))
    sections = {next(anchors_of(part)): part for part in re.split(r"^(?=## )", text, flags=re.MULTILINE)[1:]}
    for word in ("decontaminate", "deduplicate", "curriculum", "anneal", "forget", "GDPR", "Slurm", "SFT", "loss spike"):
        found = [anchor for task, anchor in tasks.items() if word in task]
        expect(found, f"no task with the word {word}")
        for anchor in found:
            expect("```" in sections[anchor] or "(recipes/" in sections[anchor], f"#{anchor} has no commands")
    expect_equal(set(sections) - set(tasks.values()), set(), "sections without a task")


def no_text_takes_tokmap_from_an_index(folder):
    """Nobody of this project has put the name there, so a stranger may."""
    n_files = 0
    for path in [*ROOT.glob("*"), *(path for part in (".ci", ".github", "bench", "docs", "include", "python", "src", "tests", "tokenize_tools")
                 for path in (ROOT / part).rglob("*"))]:
        if path.is_file() and path.suffix not in (".json", ".pyc") and path.name not in ("pyproject.toml", "test_documents.py"):
            n_files += 1
            found = re.search(r"(?:pip|conda|mamba|brew|uv add|uvx)\b[^\n`|;&]* (?:install )?['\"]?tokmap(?=['\"`\s]|$)|\btokmap\[[a-z]",
                              path.read_text(errors="replace"), re.MULTILINE)
            expect(not found, f"{path.relative_to(ROOT)}: {found and found[0]}")
    expect(n_files > 500, f"only {n_files} files")


def names_that_contributing_names_exist(folder):
    folders = ("include", "src", "tokenize_tools", "bench", "tests")
    sources = [path for folder in folders for path in (ROOT / folder).rglob("*.*")
               if path.suffix in (".c", ".h", ".py", ".sh", ".bash")]
    text = "\n".join(path.read_text(errors="replace") for path in sources + MAKEFILES)
    known = set(re.findall(r"\w+", text)) | {path.stem for path in sources}
    names = [word for word in code_words("CONTRIBUTING.md")
             if re.fullmatch(r"[A-Za-z_]*_\w+|[A-Z]{3,}\w*", word)]
    expect(len(names) > 10, f"only {names} were found")
    for name in names:
        expect(name in known or re.search(r"_x(_|$)|_X$|^x_", name), f"there is no {name}")


def the_version_is_that_of_tokmap_h(folder):
    """Only these files have it, and the man pages, which man_options.py compares. Others take it from there."""
    header = (ROOT / "include/tokmap.h").read_text()
    version = re.search(r'^#define TOKMAP_VERSION_TEXT "(.*)"$', header, re.M)[1]
    numbers = re.findall(r"^#define TOKMAP_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", header, re.M)
    expect_equal(".".join(numbers), version, "TOKMAP_VERSION_MAJOR, _MINOR and _PATCH")
    sections = re.findall(r"^## (\S+) \((.*)\)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    is_next = sections[0][0] != version and sections[0][1] == "not released"
    expect_equal(sections[is_next][0], version, "CHANGELOG.md")
    having = {"include/tokmap.h", "CHANGELOG.md", "SECURITY.md", "docs/FORMAT.md", "docs/ORDER.md", "Makefile",
              "PKG-INFO", "sbom.cdx.json", "NOTICE"}  # these are made for source archives
    for path in [*ROOT.glob("*"), *ROOT.glob(".ci/*"), *(path for folder in ("bench", "docs", "include", "python", "src",
                 "tokenize_tools") for path in (ROOT / folder).rglob("*"))]:
        name = str(path.relative_to(ROOT))
        if path.is_file() and not re.match(r"docs/man/|bench/results/|.*\.symbols$", name) and name not in having:
            found = re.search(rf"(?<![\d.]){re.escape(version)}(?![\d.])", path.read_text(errors="replace"))
            expect(not found, f"{name}: the version is written there; take it from include/tokmap.h")


def tests_of_threats_exist(folder):
    """Each row names a fuzz target or a test, in a file that has it, or says that there is none."""
    rows = re.findall(r"^\| (.*?) \| .* \| (.*) \|$", (ROOT / "SECURITY.md").read_text().split("## Threats")[1],
                      re.MULTILINE)[2:]
    expect(len(rows) > 20, f"only {len(rows)} rows were found")
    for threat, cell in rows:
        names = []
        for word in re.findall(r"`([^`]+)`", cell):
            if "/" not in word:
                names.append(word)
                continue
            text = (ROOT / word).read_text()
            expect(names or "/fuzz_" in word, f"{threat}: no test of {word} is named")
            for name in names:
                expect(re.search(rf"TEST\({name}\)|^def {name}\(", text, re.MULTILINE), f"{word} has no test {name}")
            names = []
        expect(not names and ("`" in cell or cell == "not tested"), f"{threat}: {cell}")


def body_of(function, text):
    """The text of a function of C that is defined there, or nothing."""
    found = re.search(rf"^[_a-z][^;\n]*\b{function}\([^;]*?\)\n\{{\n(.*?)^\}}", text, re.MULTILINE | re.DOTALL)
    return found and found.group(1)


def the_walks_are_calls_in_the_code(folder):
    """Each arrow is a call, or with * the name of a function that is handed on; ^ begins a walk."""
    walks = re.findall(r"```\n(.*?)```", (ROOT / "docs/ARCHITECTURE.md").read_text().split("## Six walks")[1].split("\n## ")[0],
                       re.DOTALL)
    expect_equal(len(walks), 6, "walks")
    for walk in walks:
        bodies = {}
        for line in walk.splitlines():
            name, _, steps = line.partition(": ")
            text, caller = (ROOT / name).read_text(), None
            for step in steps.split(" > "):
                function = step.lstrip("*^")
                before = [bodies[caller]] if caller else list(bodies.values())
                called = any(re.search(rf"\b{function}\(", body) for body in before)
                handed_on = re.search(rf"(= &?|[,{{(] ?){function}\b[^(]", "".join([text, *before]))
                expect(handed_on if step[0] == "*" else called or step[0] == "^" or (name, function) in bodies,
                       f"{line}: nothing leads to {step}")
                caller = name, function
                bodies[caller] = body_of(function, text)
                expect(bodies[caller], f"{line}: {function} is not defined there")


sys.exit(run_in_folders(""))
