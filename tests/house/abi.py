#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""abi.py [--write] - what programs that were compiled with our headers rely on, compared with abi.txt
beside this file: names, prototypes, symbol versions, sizes and offsets, values. Differences are
printed with what to do about them, and the exit status is 1. --write writes abi.txt anew, unless a
difference breaks programs and ABI in the Makefile is still the same. docs/VERSIONS.md has the rules.
CC: the compiler. TOKMAP_ROOT: the tree to look at."""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.environ.get("TOKMAP_ROOT", pathlib.Path(__file__).resolve().parents[2]))
KEPT = ROOT / "tests/house/abi.txt"
MAPS = ("src/libtokmap.map", "tokenize_tools/tokenizer/library/libtokmap_tokenizer.map")
EXPERIMENTAL = re.compile(r"tokmap_stage|TOKMAP_STAGE")
# They grow as elements of arrays that have a stride, the others because of their struct_size.
STRIDES = ("tokmap_loader_source", "tokmap_loader_phase", "tokmap_row", "tokmap_text")
# Macros that are no number, and the version.
NOT_FROZEN = re.compile(r"TOKMAP_(INIT|API|VERSION_.*|[A-Z_]*_INIT|[A-Z]*_?H)$")

BREAKS = """These break programs that were built with a release. Undo them; or, if it must be, raise ABI in the
Makefile as docs/VERSIONS.md says, and then run: python3 tests/house/abi.py --write"""
TRIES = """tokmap_stage.h is experimental and may change, if its node in src/libtokmap.map gets another name, so that
older programs do not start. Rename it, and then run: python3 tests/house/abi.py --write"""
ADDS = "These break nothing. Run: python3 tests/house/abi.py --write"


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


def plain(text):
    return re.sub(r" (?=[,)\[])|(?<=[*(]) ", "", " ".join(text.split()))


def fields(body):
    """(name, type) of each field of a struct."""
    for declaration in map(plain, body.split(";")):
        match = (re.fullmatch(r"(.*\(\*)(\w+)(\)\(.*)", declaration) or
                 re.fullmatch(r"([^,]*?)(\w+)((?:\[[^\]]*\])?)", declaration))
        if match:
            yield match[2], plain(match[1] + match[3])
        elif declaration:
            sys.exit("abi.py: cannot read a field: " + declaration)


def without_names(parameters):
    """Of a prototype, the types."""
    types = [re.sub(r"(?<=[ *])\w+(?=(\[.*)?$)", "", p.strip()) for p in parameters.split(",")]
    return ", ".join(plain(t) for t in types) if parameters != "void" else "void"


def symbol_versions():
    """{name: node} of what the libraries export."""
    found = {}
    for path in MAPS:
        text = without_comments((ROOT / path).read_text())
        for node, body in re.findall(r"(\w[\w.]*) \{(.*?)\}", text, re.DOTALL):
            names = body.split("local:")[0].replace("global:", "")
            found.update({name.strip(): node for name in names.split(";") if name.strip()})
    return found


def program(headers):
    """C that prints `KEY TEXT` for each struct, field, enum, value and call."""
    out = ["#include <stddef.h>", "#include <stdio.h>", *('#include "%s"' % h.name for h in headers),
           "int main(void)", "{"]
    nodes = symbol_versions()
    for header in headers:
        text = without_comments(header.read_text())
        for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\} \1;", text, re.DOTALL):
            grows = name in STRIDES or "size_t struct_size" in body
            out.append('printf("%s %%zu bytes%s\\n", sizeof(%s));' % (name, ", may grow" if grows else "", name))
            for field, kind in fields(body):
                out.append('printf("%s.%s at %%zu, %%zu bytes: %s\\n", offsetof(%s, %s), sizeof((%s *)0)->%s);' %
                           (name, field, kind, name, field, name, field))
        for name, body in re.findall(r"enum( \w+)? \{(.*?)\}", text, re.DOTALL):
            if name:
                out.append('printf("%s %%zu bytes\\n", sizeof(%s));' % (name.strip(), name))
            out += ['printf("%s = %%lld\\n", (long long)%s);' % (value, value)
                    for value in re.findall(r"\b(TOKMAP_\w+)", body)]
        for name in re.findall(r"^# *define (TOKMAP_\w+)", text, re.MULTILINE):
            if not NOT_FROZEN.match(name):
                out.append('printf("%s = %%lld\\n", (long long)%s);' % (name, name))
        for kind, name, parameters in re.findall(
                r"^TOKMAP_API (.*?)\b(tokmap_\w+)\((.*?)\);", text, re.MULTILINE | re.DOTALL):
            out.append('puts("%s() %s: %s(%s)");' % (name, nodes.get(name, "not exported"), plain(kind),
                                                     without_names(plain(parameters))))
    return "\n".join(out + ["return 0;", "}", ""])


def measure():
    include = ROOT / "include"
    with tempfile.TemporaryDirectory() as folder:
        source, built = os.path.join(folder, "abi.c"), os.path.join(folder, "abi")
        with open(source, "w") as f:
            f.write(program(sorted(include.glob("*.h"))))
        subprocess.run([*shlex.split(os.environ.get("CC", "cc")), "-std=c11", "-I", str(include),
                        source, "-o", built], check=True)
        lines = subprocess.run([built], check=True, capture_output=True, text=True).stdout.splitlines()
    return table(["ABI " + number(ROOT / "Makefile", r"^ABI := (\d+)$"), *lines])


def number(path, pattern):
    return re.search(pattern, path.read_text(), re.MULTILINE)[1]


def table(lines):
    return dict(line.split(" ", 1) for line in lines if line)


def size(text):
    return int(text.split(" ")[0])


def is_addition(name, old, new):
    """Whether programs that know only `old` still work."""
    if name in old:
        return ("may grow" in old[name] and "may grow" in new.get(name, "") and
                size(new[name]) > size(old[name]))
    if name.endswith("()"):
        minor = number(ROOT / "include/tokmap.h", r'TOKMAP_VERSION_TEXT "(\d+\.\d+)')
        return new[name].split(":")[0].endswith("_" + minor)
    struct = name.split(".")[0]
    return struct not in old or (
        "may grow" in old[struct] and int(re.match(r"at (\d+)", new[name])[1]) >= size(old[struct]))


def differences(old, new):
    """Of each kind, lines that say what differs."""
    found = {BREAKS: [], TRIES: [], ADDS: []}
    stage_nodes = [{v.split(":")[0] for k, v in t.items() if EXPERIMENTAL.match(k) and k.endswith("()")}
                   for t in (old, new)]
    renamed = not stage_nodes[0] & stage_nodes[1]
    for name in sorted(set(old) | set(new)):
        was, now = old.get(name), new.get(name)
        if was == now or name == "ABI":
            continue
        line = "%s: was %s, now %s" % (name, was or "not there", now or "not there")
        if is_addition(name, old, new) or (EXPERIMENTAL.match(name) and renamed):
            found[ADDS].append(line)
        else:
            found[TRIES if EXPERIMENTAL.match(name) else BREAKS].append(line)
    return found


def main():
    old, new = table(KEPT.read_text().splitlines()), measure()
    found = differences(old, new)
    if int(new["ABI"]) > int(old["ABI"]):
        found = {ADDS: sum(found.values(), []) + ["ABI: was %(ABI)s" % old + ", now %(ABI)s" % new]}
    if sys.argv[1:] == ["--write"] and not (found.get(BREAKS) or found.get(TRIES)):
        KEPT.write_text("".join("%s %s\n" % line for line in sorted(new.items())))
        return 0
    for advice, lines in found.items():
        if lines:
            print("\n".join([*lines, advice]))
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
