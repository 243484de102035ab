#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""man_options.py [--write] - the parts of the man pages that are made from `--help`: the synopsis, the list of commands,
the options and the examples. Compares what stands between .\\" tokmap pack --help and .\\" end, or writes it. What stands
between .\\" more --NAME and .\\" end more is written by hand, and stays at its option. The options that choose a tokenizer
are explained in one page, between .\\" tokmap pack --tokenizer and .\\" end. The programs are found in PATH."""

import functools
import pathlib
import re
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs/man").glob("*.[1357]"))
OPTION = re.compile(r"  (?:-(\w), |    )--([a-z0-9-]+)(?: (\S+))?(?:  +(.*))?$")
BLOCK = re.compile(r'(\.\\" (tok[a-z -]+?) (--help|--tokenizer|usage|commands|examples)\n)(.*?)(\.\\" end\n)', re.S)
TOKENIZER_OPTIONS = ("tokenizer", "pattern", "specials-file", "download", "specials")
MORE = re.compile(r'\.\\" more --(\S+)\n.*?\.\\" end more\n', re.S)


@functools.lru_cache(None)
def read_help(command):
    return subprocess.run([*command.split(), "--help"], check=True, capture_output=True, text=True).stdout


def read_list(program):
    """[(command or page, what it does)]"""
    parts = re.findall(r"^(?:To [a-z ]+|Pages):\n(.*?\n)(?=\n)", read_help(program), re.M | re.S)
    return re.findall(r"^  (\S+) +(.*)$", re.sub(r"\n {5,}", " ", "".join(parts)), re.M)


def read_options(text):
    """[section, [(letter, name, value, [text, words])]]; words: [[word, text]] or [[text]]"""
    column = re.search(r"^  -h, --help +", text, re.M).end() - text.index("  -h, --help")
    sections, said = [], None
    for line in text.partition("\nExamples:\n")[0].split("\n"):
        option = OPTION.match(line)
        indent = len(line) - len(line.lstrip())
        if re.match(r"[A-Z][A-Za-z ]*:$", line):
            sections.append((line[:-1], []))
        elif option and sections:
            said = [option[4] or "", []]
            sections[-1][1].append((option[1], option[2], option[3], said))
        elif not line or not said or indent < column:
            said = None
        elif indent == column:
            said[0] = f"{said[0]} {line.strip()}".strip()
        elif indent == column + 2 and not (said[1] and len(said[1][-1]) == 1):
            said[1].append(re.split(r"  +", line.strip(), maxsplit=1))
        else:
            said[1][-1][-1] += " " + line.strip()
    return [(title, options) for title, options in sections if options]


def literal(text):
    """As it is typed: no other dashes and quotes in any output."""
    for plain, roff_name in (("\\", "\\e"), ("-", "\\-"), ("'", "\\(aq"), ("`", "\\(ga"), ("^", "\\(ha"), ("~", "\\(ti")):
        text = text.replace(plain, roff_name)
    return "\\&" * text.startswith(".") + text


def roff(text):
    text = text.replace("\\", "\\e")
    text = re.sub(r"(?<!\w)'([^']+)'(?!\w)", r"\\(aq\1\\(aq", text)
    text = re.sub(r"--[a-z][a-z0-9-]*", lambda m: "\\fB" + m[0].replace("-", "\\-") + "\\fR", text)
    lines = textwrap.wrap(text, 79, break_long_words=False, break_on_hyphens=False)
    return "".join("\\&" * line.startswith((".", "'")) + line + "\n" for line in lines)


def sentence(text):
    text = re.sub(r" \[default\]$", ". This is the default", text)
    text = re.sub(r" \[(.*)\]$", r". Default: \1", text)
    return roff(text[0].upper() + text[1:] + ".")


def make_name(letter, name, value):
    long = "\\-\\-" + name.replace("-", "\\-") + (f" \\fI{value}\\fR" if value else "")
    return f'.BR \\-{letter} ", " "{long}"\n' if letter else f'.B "{long}"\n'


def make_option(letter, name, value, said):
    out = ".TP\n" + make_name(letter, name, value) + sentence(said[0])
    if said[1]:
        out += ".RS\n"
        for words in said[1]:
            out += f".TP\n.B {words[0]}\n{roff(words[1])}" if len(words) == 2 else ".PP\n" + roff(words[0])
        out += ".RE\n"
    return out


def without_default(option):
    return option[3][0].partition(" [")[0]


@functools.lru_cache(None)
def tokenizer_options():
    """{(name, what it does)} of those that the commands share."""
    options = [option for _, options in read_options(read_help("tokmap pack")) for option in options]
    return {(option[1], without_default(option)) for option in options if option[1] in TOKENIZER_OPTIONS}


def make_pointer(options):
    """Options that tokmap-tokenizers(7) explains."""
    return ".TP\n" + ".TQ\n".join(make_name(*option[:3]) for option in options) + "See\n.BR tokmap\\-tokenizers (7).\n"


def make_options(command, old, in_full):
    """in_full: whether to write only the options of tokenizers, or a pointer to them."""
    more = {m[1]: m[0] for m in MORE.finditer(old)}
    sections = read_options(read_help(command))
    out = ""
    for title, options in sections:
        shared = [option for option in options if (option[1], without_default(option)) in tokenizer_options()]
        out += f".SS {title}\n" if len(sections) > 1 and not in_full else ""
        for option in options:
            name = option[1]
            if name == "help" or in_full and option not in shared:
                continue
            if in_full or option not in shared:
                out += make_option(*option)
            elif option == shared[0]:
                out += make_pointer(shared)
            out += more.pop(name, "")
    if more:
        sys.exit(f"{command} has no option --{', --'.join(more)}, which the man page explains")
    return out


def make_usage(command):
    lines = []
    usage = re.match(r"Usage: (.*?)\n\n", read_help(command), re.S)[1]
    for line in re.split(r"\n +", usage):
        line = re.sub(r"[A-Z]+(/[A-Z]+)?", r"\\fI\g<0>\\fR", literal(line))
        line = re.sub(r"(\\-)+[a-z]+", r"\\fB\g<0>\\fR", line)
        lines.append(re.sub(r"^[a-z]+( [a-z]+)?", r"\\fB\g<0>\\fR", line) + "\n")
    return ".nf\n" + "".join(lines) + ".fi\n"


def make_commands(program):
    return "".join(f".TP\n.BR {program}\\-{name} (1)\n{roff(text)}" for name, text in read_list(program))


def make_examples(command):
    text = textwrap.dedent(read_help(command).partition("\nExamples:\n")[2].partition("\n\n")[0])
    return ".nf\n" + "".join(literal(line) + "\n" for line in text.splitlines()) + ".fi\n"


def make_block(match):
    make = {"usage": make_usage, "commands": make_commands, "examples": make_examples}.get(match[3])
    made = make(match[2]) if make else make_options(match[2], match[4], match[3] == "--tokenizer")
    return match[1] + made + match[5]


def check_by_hand():
    """What is written by hand and could differ: names of commands, pages of tokbench, versions, exit codes."""
    text = {page.name: page.read_text() for page in PAGES}
    codes = re.search(r"enum \{\n(.*?)\};", (ROOT / "tokenize_tools/cli/cli.h").read_text(), re.S)[1]
    version = re.search(r'VERSION_TEXT "(.*)"', (ROOT / "include/tokmap.h").read_text())[1]
    status = text["tokmap.1"].partition(".SH EXIT STATUS")[2].partition(".TE")[0]
    pages = text["tokbench.1"].partition("is one of:")[2].partition(".SH OPTIONS")[0]
    for command, summary in read_list("tokmap"):
        page = text.get(f"tokmap-{command}.1", "")
        parts = re.findall(rf'^tokmap\\-{command} \\- (.*)$|^\.\\" (tokmap {command} (?:usage|--help|examples))$', page, re.M)
        wanted = [summary, *(f"tokmap {command} {part}" for part in ("usage", "--help", "examples"))]
        yield f"parts of tokmap-{command}.1", [one or other for one, other in parts], wanted
    yield "pages of tokbench", re.findall(r"^\.TP\n\.B (\w+)$", pages, re.M), [name for name, _ in read_list("tokbench")]
    yield "exit codes", re.findall(r"^(\d+)\t", status, re.M), re.findall(r"= (\d+)", codes)
    for name, folder in (("tokmap.1", "tokenize_tools"), ("tokbench.1", "bench"), ("libtokmap.3", "src")):
        sources = "".join(path.read_text() for path in (ROOT / folder).rglob("*.c"))
        wanted = set(re.findall(r'getenv\("(\w+)"\)|"((?:SLURM|OMPI|PMI)_\w+)"', sources))
        wanted = {one or other for one, other in wanted if not one.startswith("TOKMAP_TEST_")}
        named = "".join(page for other, page in text.items() if other.startswith(name.rpartition(".")[0]))
        yield f"variables that {name} does not name", wanted - set(re.findall(r"[A-Z_]{4,}", named)), set()
    for name, page in text.items():
        yield f"version in {name}", re.search(r'^\.TH .*"tokmap (\S+)"', page, re.M)[1], version
        listed = re.findall(r"^\.BR ([a-z\\-]+) \((\d)\)", page.partition(".SH SEE ALSO")[2], re.M)
        others = {f"{one.replace(chr(92), '')}.{section}" for one, section in listed}
        yield f"pages in SEE ALSO of {name}", others - set(text), set()


def main():
    wrong = [f"{what}: {found}, not {wanted}" for what, found, wanted in check_by_hand() if found != wanted]
    for page in PAGES:
        old = page.read_text()
        new = BLOCK.sub(make_block, old)
        if new != old and "--write" in sys.argv:
            page.write_text(new)
        elif new != old:
            wrong.append(f"{page.name}: not what --help says: write it with tests/house/man_options.py --write")
    if wrong:
        sys.exit("; ".join(wrong))


main()
