#!/usr/bin/env python3
"""man_options.py [--write] - the options in the man pages, made from what `--help` prints: compares what
stands between .\\" tokmap pack --help and .\\" end, or writes it. The programs are found in PATH."""

import pathlib
import re
import subprocess
import sys
import textwrap

PAGES = sorted((pathlib.Path(__file__).resolve().parents[2] / "docs/man").glob("*.1"))
OPTION = re.compile(r"  (?:-(\w), |    )--([a-z0-9-]+)(?: (\S+))?(?:  +(.*))?$")
BLOCK = re.compile(r'(\.\\" ([a-z ]+ --help)\n)(.*?)(\.\\" end\n)', re.S)


def read_help(text):
    """[section, [(letter, name, value, [text, words])]]; words: [[word, text]] or [[text]]"""
    column = re.search(r"^  -h, --help +", text, re.M).end() - text.index("  -h, --help")
    sections, said = [], None
    for line in text.split("\n"):
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
            said[0] += " " + line.strip()
        elif indent == column + 2 and not (said[1] and len(said[1][-1]) == 1):
            said[1].append(re.split(r"  +", line.strip(), maxsplit=1))
        else:
            said[1][-1][-1] += " " + line.strip()
    return [(title, options) for title, options in sections if options]


def roff(text):
    text = text.replace("\\", "\\e")
    text = re.sub(r"--[a-z][a-z0-9-]*", lambda m: "\\fB" + m[0].replace("-", "\\-") + "\\fR", text)
    lines = textwrap.wrap(text, 100, break_long_words=False, break_on_hyphens=False)
    return "".join("\\&" * line.startswith((".", "'")) + line + "\n" for line in lines)


def sentence(text):
    text = re.sub(r" \[default\]$", ". This is the default", text)
    text = re.sub(r" \[(.*)\]$", r". Default: \1", text)
    return roff(text[0].upper() + text[1:] + ".")


def make_option(letter, name, value, said):
    long = "\\-\\-" + name.replace("-", "\\-") + (f" \\fI{value}\\fR" if value else "")
    out = ".TP\n" + (f'.BR \\-{letter} ", " "{long}"\n' if letter else f'.B "{long}"\n') + sentence(said[0])
    if said[1]:
        out += ".RS\n"
        for words in said[1]:
            out += f".TP\n.B {words[0]}\n{roff(words[1])}" if len(words) == 2 else ".PP\n" + roff(words[0])
        out += ".RE\n"
    return out


def make_block(command):
    text = subprocess.run(command.split(), check=True, capture_output=True, text=True).stdout
    sections = read_help(text)
    out = ""
    for title, options in sections:
        out += f".PP\n{title}:\n" if len(sections) > 1 else ""
        out += "".join(make_option(*option) for option in options if option[1] != "help")
    return out


def main():
    wrong = []
    for page in PAGES:
        old = page.read_text()
        new = BLOCK.sub(lambda m: m[1] + make_block(m[2]) + m[4], old)
        if new != old and "--write" in sys.argv:
            page.write_text(new)
        elif new != old:
            wrong.append(page.name)
    if wrong:
        sys.exit(f"{', '.join(wrong)}: not what --help says: write it with tests/house/man_options.py --write")


main()
