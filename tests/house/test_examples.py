#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every example is run: the blocks of code in the documents, the examples of --help, which the pages of the manual
repeat, and those of these pages and of the headers. A block that another test runs, or that cannot be run, says so in a
comment on the line before it, or above the first heading for all other blocks of a document:
<!-- run by tests/frameworks/check_tutorial.py --> or <!-- not run: why -->. Any other block fails."""

import base64
import functools
import gzip
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/frameworks"), str(ROOT / "tests/pack")]
BUILD = pathlib.Path(os.environ.get("TOKMAP_BUILD", ROOT / "build"))
if "TOKMAP_INSTALLED" not in os.environ:
    os.environ["TOKMAP_LIBRARY"] = str(BUILD / "libtokmap.so")

import documents  # noqa: E402
import pack_corpus  # noqa: E402
from ref_protocol import Skip, call, expect, expect_equal, run_tests  # noqa: E402

DOCUMENTS = sorted(path for glob in ("*.md", ".github/**/*.md", "docs/**/*.md", "bench/**/*.md", "tests/**/*.md", "python/**/*.md")
                   for path in ROOT.glob(glob))
HERE = ("run by", "tests/house/test_examples.py")  # where another test runs the other blocks of the document
# Examples of --help that take minutes: another test runs them with little data.
ELSEWHERE = {"tokbench all --json results.json": "tests/bench/test_tokbench.py"}
# The commands in Python, whose examples have inputs of other sizes and packages: tests that run them.
IN_PYTHON = {"import": "tests/python/test_python_import.py", "preprocess": "tests/python/test_python_preprocess.py",
             "render": "tests/frameworks/check_render.py", "report": "tests/python/test_python_answers.py",
             "trace": "tests/python/test_python_answers.py", "try": "tests/python/test_python_try.py"}
# What the test adds, so that an example measures little.
LESS = {"tokbench load ": "--rounds 1", "tokbench loader": "--steps 9", "tokbench tokenize": "--rounds 1"}


# ---- What the examples read ----

def zstd_frame(data):
    """Not compressed, so that no package is needed; as it is if this build does not read zstd."""
    if not pack_corpus.has_zstd():
        return data
    header = b"\x28\xb5\x2f\xfd\xa0" + len(data).to_bytes(4, "little")
    return header + (1 | len(data) << 3).to_bytes(3, "little") + data


def ranks(n):
    """A file of ranks: all single bytes, then pairs of bytes, then a byte more."""
    tokens = itertools.chain(*(itertools.product(range(256), repeat=length) for length in (1, 2, 3)))
    return b"".join(b"%s %d\n" % (base64.b64encode(bytes(token)), i) for i, token in enumerate(itertools.islice(tokens, n)))


def write_inputs(folder):
    """Files and datasets of the names that examples use."""
    texts = ["This is text %d, and it is not long." % i for i in range(200)]
    lines = "".join('{"text": "%s"}\n' % text for text in texts).encode()
    for name in ("corpus", "data", "shards"):
        (folder / name).mkdir()
    for i in range(3):
        (folder / f"corpus/{i}.jsonl.zst").write_bytes(zstd_frame(lines))
    (folder / "texts.jsonl").write_bytes(lines)
    (folder / "corpus.jsonl").write_bytes(lines)
    (folder / "forum.jsonl").write_text('{"text": "a", "lang": "de"}\n{"text": "b", "lang": "en"}\n')
    (folder / "my_training.py").write_text("def make_loader():\n    return [[1]] * 20\n")
    (folder / "gone.txt").write_text("0\n")
    (folder / "book.txt").write_text("\n".join(texts))
    (folder / "notes.txt.zst").write_bytes(zstd_frame(texts[0].encode()))
    (folder / "corpus.gz").write_bytes(gzip.compress("\n".join(texts).encode()))
    (folder / "tokenizer.json").write_text(pack_corpus.small_vocabulary())
    (folder / "long.jsonl").write_text("".join('{"text": "%s", "id": %d}\n' % (text, i) for i, text in enumerate(texts * 150)))
    scores = ['{"quality": %d.5, "dup": %s, "lang": "%s", "cluster": %d}\n' % (i % 5, "true" if i % 7 else "false", ("de", "en")[i % 2], i // 2)
              for i in range(30000)]
    (folder / "scores.parquet").write_text("".join(scores))  # JSON lines are read whatever their name is
    (folder / "mmlu.jsonl").write_text('{"question": "%s"}\n' % (texts[3] + " " + texts[4]))
    (folder / "topics.jsonl").write_text("".join('{"id": %d, "topic": "%d"}\n' % (i, i % 9) for i in reversed(range(30000))))
    (folder / "clusters.jsonl").write_text("".join('{"id": %d, "cluster": "%d"}\n' % (i, i % 99) for i in range(30000)))

    def tokmap(*arguments):
        call("tokmap", *map(str, arguments), "-q")

    with documents.changed_folder(folder):
        for name in ("data/train", "data/scored"):
            tokmap("pack", "long.jsonl", "--meta", "id", "-o", name)
        tokmap("columns", "add", "data/scored", "scores.parquet")
        for name in ("data/a", "data/b", "data/c", "data/web", "data/code", "P"):
            tokmap("pack", "book.txt", "book.txt", "book.txt", "book.txt", "-o", name)
        tokmap("pack", "forum.jsonl", "--meta", "lang", "-o", "data/forum")
        tokmap("pack", "book.txt", "--tokenizer", "tokenizer.json", "-o", "data/gpt2")
        tokmap("export", "--to", "megatron", "data/a", "-o", "corpus_text_document")
        for i in range(2):
            tokmap("export", "--to", "llmc", "data/a", "-o", f"fineweb_train_{i}")
            tokmap("export", "--to", "raw", "data/a", "-o", f"shards/{i}")
            tokmap("index", "--dtype", "u16", "--eod", 256, f"shards/{i}.bin")
        tokmap("export", "--to", "raw", "data/a", "-o", "train")
        tokmap("plan", "corpus", "--tokenizer", "tokenizer.json", "--cells", "cells", "-o", "run.plan")
        tokmap("plan", "corpus", "--cells", "joined-cells", "-o", "joined.plan")
        tokmap("pack", "--plan", "joined.plan")
        tokmap("join", "joined.plan", "-o", "data/joined")
    os.mkdir(folder / "bin")
    for name in ("jq", "less"):  # at the end of a pipe
        if not shutil.which(name):
            (folder / "bin" / name).write_text("#!/bin/sh\nexec cat\n")
            (folder / "bin" / name).chmod(0o755)


@functools.lru_cache(None)
def inputs():
    folder = tempfile.TemporaryDirectory()
    write_inputs(pathlib.Path(folder.name))
    return folder


def in_folder(function):
    """Runs it in a folder that has the inputs."""
    with tempfile.TemporaryDirectory() as name:
        shutil.copytree(inputs().name, name, copy_function=os.link, dirs_exist_ok=True)
        return function(pathlib.Path(name))


# ---- How they are run ----

def make_room(line, folder):
    """Removes the outputs of a call, unless it reads them too."""
    for name in re.findall(r'(?: -o |Writer\(")([\w./]+)', line):
        if len(re.findall(rf"(?<![\w./]){re.escape(name)}(?![\w./])", line)) == 1:
            for path in (name, f"{name}.bin", f"{name}.tmi"):
                (folder / path).unlink(missing_ok=True)


def run_shell(text, folder):
    path = f"{folder}/bin:{BUILD}:{os.environ['PATH']}"
    for n, pattern in ((199998, "o200k"), (100256, "cl100k")):
        for name in re.findall(rf"\S*{pattern}\S*\.tiktoken", text):
            (folder / name).write_bytes(ranks(n))
    for line in re.sub(r"([\\|])\n +", lambda m: m[1].strip("\\"), text).splitlines():
        make_room(line, folder)
        for start, more in LESS.items():
            line += " " + more if line.startswith(start) else ""
        done = subprocess.run(["bash", "-eo", "pipefail", "-c", line], cwd=folder, env={**os.environ, "PATH": path},
                              stdin=subprocess.DEVNULL, capture_output=True)
        expect(done.returncode == 0, f"{line}: exit status {done.returncode}: {done.stderr.decode()[:300]}")


def run_python(text, folder):
    make_room(text, folder)
    try:
        documents.run_python(text, folder)
    except ImportError as error:
        raise Skip(f"{error}; make test-frameworks runs it") from None


def run_c(source, folder, *arguments, **environment):
    """Compiles and runs a program. Returns what it prints."""
    (folder / "program.c").write_text(source)
    command = [os.environ.get("CC", "cc"), "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/include", "program.c", "-o",
               "program", f"-L{BUILD}", f"-Wl,-rpath,{BUILD}", "-ltokmap", "-ltokmap_tokenizer"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    expect(done.returncode == 0, f"{' '.join(command)}: {done.stderr[:500]}")
    done = subprocess.run(["./program", *arguments], cwd=folder, capture_output=True, text=True,
                          env={**os.environ, **environment})
    expect(done.returncode == 0, f"exit status {done.returncode}: {done.stderr[:300]}")
    return done.stdout


# ---- Examples of --help and of the pages of the manual ----

def run_help(*command):
    if command[-1] in IN_PYTHON:
        other = IN_PYTHON[command[-1]]
        expect(f'"{command[-1]}"' in (ROOT / other).read_text(), f"{other} does not run it")
        return f"run by {other}"
    text = call(*command, "--help")[1].decode().partition("\nExamples:\n")[2].partition("\n\n")[0] + "\n"
    lines = [line for line in re.sub(r"^  ", "", text, flags=re.MULTILINE).splitlines(True)]
    for line in lines:
        other = ELSEWHERE.get(line.strip())
        expect(not other or f'"{line.split()[1]}"' in (ROOT / other).read_text(), f"{other} does not run {line}")
    text = "".join(line for line in lines if line.strip() not in ELSEWHERE)
    expect(text, f"{command} has no examples")
    in_folder(lambda folder: run_shell(text, folder))


def manual(page):
    """The text of a page, and what stands between .nf and .fi."""
    text = (ROOT / "docs/man" / page).read_text().replace("\\(rs", "\\").replace("\\-", "-")
    return re.findall(r"^\.nf\n(.*?)^\.fi\n", text, re.DOTALL | re.MULTILINE)


def program_of_libtokmap():
    program = manual("libtokmap.3")[-1]
    said = in_folder(lambda folder: run_c(program, folder, "data/a"))
    expect(re.fullmatch(r"\d+ tokens in 4 documents\n", said), said)


def numpy_line_of_tokmap_format():
    line = manual("tokmap-format.5")[0].strip()
    in_folder(lambda folder: run_python(f"import numpy\nassert {line}.max() == 256", folder))


# ---- Examples of the headers ----

DATASET = """
int main(void)
{
    tokmap_dataset *ds;
    if (tokmap_dataset_open(&ds, "data/train", NULL))
        return 1;
"""
LOADER = DATASET + """
    const tokmap_loader_source source = {.datasets = (tokmap_dataset *const[]){ds}, .n_datasets = 1};
    const tokmap_loader_options options = {
        .struct_size = sizeof options, .sources = &source, .n_sources = 1, .source_stride = sizeof source,
        .row_stride = sizeof(tokmap_row), .sequence_length = 64, .batch_rows = 8};
    tokmap_loader *loader;
    if (tokmap_loader_open(&loader, &options, NULL))
        return 1;
"""
# What calls the function of the example, and what is printed.
CALLERS = {
    "tokmap": ("int main(void) { return print_document(\"data/a\", 3); }", r"(\d+\n){8}"),
    "tokmap_loader": ("""static int n_rows_seen;
static void step(const tokmap_row *rows, uint32_t n_rows) { n_rows_seen += rows ? (int)n_rows : 0; }
""" + DATASET + """    const int status = train(ds, step);
    printf("%d\\n", n_rows_seen / 8);
    return status == TOKMAP_END ? 0 : 1;
}""", r"\d\d+\n"),
    "tokmap_stage": ("""static void step(const tokmap_stage_batch *batch, void *stream)
{
    printf("%d rows\\n", stream ? 0 : (int)batch->n_rows);
}
""" + LOADER + "return train(loader, NULL, 3, step); }", r"(8 rows\n){3}"),
    "tokmap_writer": ("""int main(void)
{
    const uint32_t ids[] = {1, 2, 50256};
    return write_document("one", ids, 3, NULL);
}""", ""),
    "tokmap_tokenizer": ("int main(void) { return print_ids(\"bytes\", \"hi\", 2); }", "104\n105\n"),
}


def run_header(path):
    """With the stand-in for the driver of a GPU, which make check builds."""
    example = re.search(r"^ \* Example: .*?^ \*\n(.*?)^ \* [A-Z]", path.read_text(), re.DOTALL | re.MULTILINE)[1]
    example = re.sub(r"^ \* {0,5}", "", example, flags=re.MULTILINE)
    caller, wanted = CALLERS[path.stem]
    if path.stem == "tokmap_stage" and not (BUILD / "stand_in").exists():
        raise Skip("the stand-in for the driver is not built: make check does it")
    said = in_folder(lambda folder: run_c(f"#include <stdio.h>\n#include \"{path.name}\"\n{example}{caller}\n", folder,
                                          LD_LIBRARY_PATH=f"{BUILD}/stand_in"))
    expect(re.fullmatch(wanted, said), said)


# ---- Blocks of the documents ----

RUNNERS = {"sh": run_shell, "python": run_python}
COMMAND = re.compile(r"^(tokmap(?! \w+:)|tokbench|make|python3?|pip3?|cd|git|bash|sh|sudo|apt-get|apt|cmake|cc|gcc|docker|podman|conda|"
                     r"curl|tar) ", re.MULTILINE)


def is_signature(path, block):
    """The first block below the name of a function in the reference of the package."""
    return path.name == "python.md" and block.is_first and block.heading.startswith("`")


def blocks_to_run():
    """(name, path, block) of those that this test runs."""
    for path in DOCUMENTS:
        for block in documents.read_blocks(path):
            if block.language in RUNNERS and block.mark in (None, HERE) and not is_signature(path, block):
                yield f"{path.relative_to(ROOT)}:{block.line}", path, block


def every_block_is_run_or_says_why_not():
    counts = {"run by": 0, "not run:": 0}
    for path in DOCUMENTS:
        for block in documents.read_blocks(path):
            place = f"{path.relative_to(ROOT)}:{block.line}"
            if block.mark and block.mark != HERE:
                kind, text = block.mark
                counts[kind] += 1
                expect(kind != "run by" or path.name in (ROOT / text).read_text(), f"{place}: {text} does not name it")
            elif block.language in ("", "rooms"):
                expect(not COMMAND.search(block.text), f"{place}: commands in a block that is not 'sh'")
            else:
                expect(block.language in RUNNERS, f"{place}: nothing runs this block, and nothing says why")
    n_run = sum(1 for _ in blocks_to_run())
    return f"{n_run} here, {counts['run by']} in other tests, {counts['not run:']} not"


def every_file_that_is_an_example_is_run():
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("*.[ps][yh]"))
    for path in [*ROOT.glob("docs/examples/*"), *ROOT.glob("docs/recipes/*")]:
        expect(path.name in tests or f"$build/{path.stem}" in tests, f"no test runs {path.name}")


def every_header_has_an_example():
    expect_equal({path.stem for path in ROOT.glob("include/*.h")}, set(CALLERS), "headers with an example")


def tests_of_blocks():
    for name, path, block in blocks_to_run():
        run = functools.partial(RUNNERS[block.language], block.text)
        yield name, block.language, functools.partial(in_folder, run)


def main():
    tests = [(test.__name__, test) for test in (every_block_is_run_or_says_why_not, every_file_that_is_an_example_is_run,
                                                every_header_has_an_example)]
    tests += [(name, test) for name, _, test in tests_of_blocks()]
    commands = re.findall(r"^  ([a-z]+) ", call("tokmap", "--help")[1].decode().partition("\nExamples")[0], re.MULTILINE)
    for command in [("tokmap",), ("tokbench",), *(("tokmap", command) for command in commands)]:
        tests.append((f"help of {' '.join(command)}", functools.partial(run_help, *command)))
    for path in sorted(ROOT.glob("include/*.h")):
        tests.append((path.name, functools.partial(run_header, path)))
    tests += [("libtokmap.3", program_of_libtokmap), ("tokmap-format.5", numpy_line_of_tokmap_format)]
    return run_tests(tests)


if __name__ == "__main__":
    if os.environ.get("TOKMAP_SANITIZED"):
        print("skip examples: Python and C cannot load sanitized libraries; the commands have other tests")
        sys.exit(77)
    sys.exit(main())
