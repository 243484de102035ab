#!/usr/bin/env python3
"""abi.py [--write] - the names that the headers export and the layouts of their structs, compared
with abi.txt beside this file. A difference is printed, and the exit status is 1: a change there is a
decision. --write writes abi.txt anew. CC: the compiler."""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = pathlib.Path(os.environ.get("TOKMAP_INCLUDE", HERE.parents[1] / "include"))


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


def fields(body):
    """The names of a struct's fields, with what is before them left out."""
    for declaration in body.split(";"):
        declaration = declaration.strip()
        pointer = re.search(r"\(\*(\w+)\)\s*\(", declaration)
        if pointer:
            yield pointer.group(1)
        elif declaration:
            for part in declaration.split(","):
                yield re.search(r"(\w+)\s*(\[[^\]]*\])?$", part.strip()).group(1)


def program(headers):
    """C that prints a line for each field, enumerator and struct."""
    lines = ["#include <stddef.h>", "#include <stdio.h>"]
    lines += ['#include "%s"' % header.name for header in headers]
    lines += ["int main(void)", "{"]
    for header in headers:
        text = without_comments(header.read_text())
        for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\} \1;", text, re.DOTALL):
            for field in fields(body):
                lines.append('printf("%s.%s %%zu %%zu\\n", offsetof(%s, %s), sizeof((%s *)0)->%s);' %
                             (name, field, name, field, name, field))
            lines.append('printf("%s %%zu\\n", sizeof(%s));' % (name, name))
        for body in re.findall(r"enum(?: \w+)? \{(.*?)\}", text, re.DOTALL):
            for name in re.findall(r"\b(TOKMAP_\w+)", body):
                lines.append('printf("%s %%lld\\n", (long long)%s);' % (name, name))
        for name in re.findall(r"^TOKMAP_API.*?\b(tokmap_\w+)\(", text, re.MULTILINE | re.DOTALL):
            lines.append('puts("%s()");' % name)
    return "\n".join(lines + ["return 0;", "}", ""])


def measure():
    headers = sorted(INCLUDE.glob("*.h"))
    with tempfile.TemporaryDirectory() as folder:
        source, built = os.path.join(folder, "abi.c"), os.path.join(folder, "abi")
        with open(source, "w") as f:
            f.write(program(headers))
        subprocess.run([*shlex.split(os.environ.get("CC", "cc")), "-std=c11", "-I", str(INCLUDE),
                        source, "-o", built], check=True)
        return subprocess.run([built], check=True, capture_output=True, text=True).stdout.split("\n")


def main():
    kept = HERE / "abi.txt"
    found = sorted(set(measure()) - {""})
    if sys.argv[1:] == ["--write"]:
        kept.write_text("\n".join(found) + "\n")
        return 0
    expected = kept.read_text().split("\n")[:-1]
    for line in sorted(set(found) - set(expected)):
        print("not in abi.txt: " + line)
    for line in sorted(set(expected) - set(found)):
        print("only in abi.txt: " + line)
    return 0 if found == expected else 1


if __name__ == "__main__":
    sys.exit(main())
