#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap pack of folders that hold anything: what --skip-unsuitable leaves out and what stays an error, how much of a screen
a refusal takes, JSON arrays, tables, and texts that begin with a brace."""

import gzip
import importlib
import io
import json
import os
import random
import re
import shlex
import subprocess
import sys
import tarfile
import zipfile

from ref_protocol import expect, expect_equal, need, run_in_folders, run_program

TEXT = "It was a dark and stormy night.\n"


def run(*arguments, status=0, environment=None, **more):
    """stdout and stderr."""
    done = run_program("tokmap", *arguments, text=True, env={**os.environ, **(environment or {})}, **more)
    expect_equal(done.returncode, status, f"{arguments}: {done.stderr}")
    return done.stdout, done.stderr


def dataset_id(folder, name):
    return json.loads(run("info", "--json", name, cwd=folder)[0])["dataset_id"]


def make_tar_of(members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def make_tar(names):
    return make_tar_of([(name, TEXT.encode()) for name in names])


def make_zip():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.txt", TEXT)
    return out.getvalue()


# Name, bytes, kind.
OTHERS = [("a.pdf", b"%PDF-1.4\n1 0 obj\n", "PDF document"), ("b.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "PNG image"),
          ("c.zip", make_zip(), "zip archive"), ("d.txt", TEXT.encode("utf-16"), "UTF-16 text"),
          ("e.html", ("\u00e4\u00f6\u00fc" * 40).encode("latin-1"), "data that is not UTF-8"),
          ("f.tar", make_tar(["x.jpg"]), "tar archive without text"), ("g.tar.gz", gzip.compress(make_tar(["x.jpg"])), None),
          ("h.csv", b"name,n\na,1\n", "table without the column of the text"), ("i.tsv.gz", gzip.compress(b"text,n\na,1\n"), None),
          ("j.json", b'{\n "name": "x"\n}\n', "JSON without the field of the text"), ("k.map", b'{"version":3,"names":[]}', None),
          ("l.json", b'["a", "b"]', "JSON array"), ("m.warc.gz", gzip.compress(b"WARC/1.0\r\nWARC-Type: warcinfo\r\n"), "WARC file"),
          ("n.xz", b"\xfd7zXZ\0\0\4", "xz file"), ("o.gz", gzip.compress(gzip.compress(b"x")), "file that is compressed twice")]
OTHERS += [(name, data, "JSON without the field of the text") for name, data in (
    ("p.json", b'[\n {"a": 1}\n]\n'), ("q.json.gz", gzip.compress(b'[{"a": 1}, {"b": [{"text": "x"}]}]')),
    ("tsconfig.json", b'{\n  // "text": "a" /* */\n  "paths": ["a//b", "/*", "\\"/*",], /* b */\n}\n'),
    ("s.jsonc", b'{\n "a": 1, // end\n}\n'))]
KINDS = {"g.tar.gz": "tar archive without text", "i.tsv.gz": "table without the column of the text", "k.map": "JSON without the field of the text"}
TEXTS = [("1.txt", TEXT), ("2.md", "# " + TEXT), ("3.pas", "{ a comment }\nbegin end.\n"), ("4.css", "{\n}\n"), ("5.xml", "<a/>\n")]
# Damaged or incomplete, so never left out.
DAMAGED = [("a.txt.gz", gzip.compress(TEXT.encode() * 99)[:-9]), ("b.parquet", TEXT.encode()), ("c.jsonl", b'ext": "a"}\n{"text": "b"}\n'),
           ("d.bin", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"), ("e.jsonl", b'{"text": "a\n'),
           ("f.json", b'[{"text": "a"}, {"text": "b"}'), ("g.json", b'[{"text": "a"}] more'), ("h.txt", b'{"a": "b"}\n{"a": "c"}\n'),
           ("i.txt.zst", TEXT.encode("latin-1") + b"\xff\xfe\xfd" * 99), ("j.json", b'{"tex\n{"text": "b"}\n'), ("k.txt", bytes(4096)), ("l.jsonl", bytes(99)), ("m.parquet", b"%PDF-1.4\n"),
           ("p.json", b'{"text": "a long story that was cut in the midd'), ("q.json", b'{"id":1}{"text":"b"}'),
           ("r.json", b'{\n "text": "the field is there"\n}\n'), ("s.json", b'{\n "name": "x",\n'), ("t.00001", b'{"text": "cut in the midd'),
           ("u.jsonl~", b'{"text": "cut'), ("v.tar", make_tar_of([("a.txt", b"%PDF-1.4\n"), ("b.txt", TEXT.encode())])),
           ("z.json", b'[{"a": 1}, {"b": 1}'), ("a.jsonc", b'{\n "a": 1, // cut\n'),
           ("b.jsonc", b'{\n "a": 1 /* cut\n}\n'), ("w.json", b'[{"text": "a"},,{"text": "b"}]'), ("x.json", b'[{"text": "a"},]'),
           ("n.md.gz", b"\x1f\x8c" + bytes(99)), ("o.parquet.gz", gzip.compress(b"PAR1\x15\0\x15"))]


def fill(folder, files):
    folder.mkdir(exist_ok=True)
    for name, data, *_ in files:
        (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())


def others_are_left_out_and_counted(folder):
    fill(folder / "in", OTHERS + TEXTS)
    out, said = run("pack", "in", "--skip-unsuitable", "--json", "--report", "report.json", "-o", "out", cwd=folder)
    kinds = [kind or KINDS[name] for name, _, kind in OTHERS]
    counts = {kind: kinds.count(kind) for kind in kinds}
    report = json.loads((folder / "report.json").read_text())
    expect_equal(json.loads(out)["unsuitable"], counts, "counts of --json")
    expect_equal(report["unsuitable"], counts, "counts of --report")
    listed = {one["name"]: one["kind"] for one in report["unsuitable_inputs"]}
    expect_equal(listed, {f"in/{name}": kind or KINDS[name] for name, _, kind in OTHERS}, "paths of --report")
    expect_equal(report["options"]["skip_unsuitable"], True, "the recorded option")
    dry, _ = run("pack", "in", "--skip-unsuitable", "--json", "--dry-run", "-o", "none", cwd=folder)
    expect_equal(json.loads(dry)["unsuitable"], counts, "counts of --dry-run")
    expect(f"left out {len(OTHERS)} inputs that are not text" in said and "       1  PDF document: in/a.pdf\n" in said, said)
    run("pack", *(f"in/{name}" for name, *_ in TEXTS), "-o", "alone", "-q", cwd=folder)
    expect_equal(dataset_id(folder, "out"), dataset_id(folder, "alone"), "the texts alone")
    run("verify", "-q", "out", cwd=folder)
    expect_equal({path.name for path in folder.iterdir()}, {"in", "out.bin", "out.tmi", "alone.bin", "alone.tmi", "report.json"}, "files")


def a_plan_leaves_them_out_too(folder):
    fill(folder / "in", OTHERS + TEXTS)
    out, _ = run("plan", "in", "--skip-unsuitable", "--exclude", "*.md", "--json", "--cells", "cells", "-o", "run.plan", cwd=folder)
    expect_equal(json.loads(out)["n_inputs"], len(TEXTS) - 1, "inputs of the plan")
    expect_equal(sum(json.loads(out)["unsuitable"].values()), len(OTHERS), "what is left out")
    plan = (folder / "run.plan").read_text()
    expect("skip-unsuitable" in plan and "exclude" in plan, plan)
    run("pack", "--plan", "run.plan", "-q", cwd=folder)
    run("join", "run.plan", "-o", "joined", "-q", cwd=folder)
    run("pack", "in", "--skip-unsuitable", "--exclude", "*.md", "-o", "plain", "-q", cwd=folder)
    expect_equal(dataset_id(folder, "joined"), dataset_id(folder, "plain"), "joined and plain")


def damaged_files_stay_errors(folder):
    for name, data in DAMAGED:
        fill(folder / name.replace(".", "_"), [(name, data), *TEXTS, OTHERS[0]])
        _, said = run("pack", name.replace(".", "_"), "--skip-unsuitable", "-o", "out", status=3, cwd=folder)
        expect(f"/{name}: " in said, said)
        expect(not list(folder.glob("out*")), list(folder.glob("out*")))


def a_named_format_leaves_out_what_is_not_text(folder):
    """JSON and tables are text for who names the format; damaged files stay errors."""
    fill(folder / "in", OTHERS + TEXTS)
    out, _ = run("pack", "in", "--skip-unsuitable", "--json", "-o", "auto", cwd=folder)
    wanted = {kind: n for kind, n in json.loads(out)["unsuitable"].items() if not kind.startswith(("JSON", "table"))}
    for option in (["--format", "text"], ["--lines"]):
        out, _ = run("pack", "in", *option, "--skip-unsuitable", "--json", "-o", "out", "-f", cwd=folder)
        expect_equal(json.loads(out)["unsuitable"], wanted, option)
        run("plan", "in", *option, "--skip-unsuitable", "--cells", "cells", "-o", "plan", "-f", "-q", cwd=folder)
        run("pack", "--plan", "plan", "-q", "-f", cwd=folder)
        run("join", "plan", "-o", "joined", "-q", "-f", cwd=folder)
        expect_equal(dataset_id(folder, "joined"), dataset_id(folder, "out"), option)
        for name in ("d.bin", "k.txt", "m.parquet", "n.md.gz", "o.parquet.gz"):
            fill(folder / name.replace(".", "_"), [(name, dict(DAMAGED)[name]), *TEXTS])
            _, said = run("pack", name.replace(".", "_"), *option, "--skip-unsuitable", "-o", "none", status=3, cwd=folder)
            expect(f"/{name}: " in said and "--format text" not in said and "--utf8 raw" not in said, said)


def nothing_left_is_an_error(folder):
    fill(folder / "in", OTHERS)
    _, said = run("pack", "in", "--skip-unsuitable", "-o", "out", status=3, cwd=folder)
    expect(said.endswith("no files are left to pack\n"), said)
    fill(folder / "texts", TEXTS)
    _, said = run("pack", "texts", "--include", "*.rst", "-o", "out", status=3, cwd=folder)
    expect("left out 5 files that no --include matches" in said and said.endswith("no files are left to pack\n"), said)
    _, said = run("pack", "texts", "--exclude", "!a", "-o", "out", status=2, cwd=folder)
    expect("--exclude '!a': ! has no meaning" in said, said)
    expect_equal({path.name for path in folder.iterdir()}, {"in", "texts"}, "files")


def a_refusal_is_one_screen(folder):
    files = [(f"{i}-{name}", data) for i in range(20) for name, data, *_ in OTHERS]
    fill(folder / "in", files + TEXTS)
    _, said = run("pack", "in", "-o", "out", status=3, cwd=folder)
    expect(len(said.splitlines()) < 24, said)
    for words in (f"{len(files)} inputs cannot be packed", "     120  JSON without the field", "      20  zip archive: in/0-c.zip, in/1-c.zip, ",
                  "--skip-unsuitable", "--exclude", "--format text"):
        expect(words in said, (words, said))
    _, said = run("pack", "in/0-a.pdf", "in/0-h.csv", "-o", "out", status=3, cwd=folder)
    expect("in/0-a.pdf: is a PDF document" in said and 'in/0-h.csv: it has no column "text"; use --field with one of name, n' in said, said)
    expect("--skip-unsuitable" not in said, said)  # nothing else would be left
    _, said = run("pack", "in/0-a.pdf", "in/1.txt", "-o", "out", status=3, cwd=folder)
    expect(said.endswith("\nUse --skip-unsuitable to leave out files that are not text, or that lack the column.\n"), said)


def text_and_records_are_not_packed_together(folder):
    fill(folder, [("a.txt", TEXT), ("b.md", TEXT), ("c.jsonl", '{"text": "c"}\n')])
    _, said = run("pack", "a.txt", "b.md", "c.jsonl", "-o", "out", status=3, cwd=folder)
    expect("a.txt: is text, but c.jsonl has records, and --format auto does not pack both in one run "
           "(2 inputs of text, 1 input of records)\n" in said, said)
    expect("  tokmap pack --format text a.txt b.md -o out-text\n  tokmap pack c.jsonl -o out-records\n" in said, said)


def run_commands(said, folder):
    """Runs the commands that a refusal proposes, as a shell takes them."""
    for line in said.splitlines():
        if line.startswith("  tokmap "):
            words = shlex.split(line)
            run(*words[1:], cwd=folder)


def a_mixed_folder_is_packed_by_the_commands_that_are_proposed(folder):
    """With the other options, and patterns only where they mean the same files; a quote in the name of the folder."""
    record = '{"text": "a b", "n": 1}\n'
    mixed = [*((f"s/{i}.txt", TEXT) for i in range(6)), *((f"r/{i}.jsonl.gz", gzip.compress(record.encode())) for i in range(5)),
             ("x.pdf", b"%PDF-1.4\n1 0 obj\n")]
    options = ["--eod", "256", "--split", "v=0.5", "--skip-unsuitable", "-q"]
    for extra, text in (((), "--include '*.txt'"), ((("s/.hidden.txt", TEXT),), "@out-text.list"),
                        ((("s/broken.txt.gz", b"\x1f\x8b\x08\0 not gzip"),), None)):
        here = folder / f"it's {len(extra)}{text is None}"
        for part in "rs":
            (here / "in" / part).mkdir(parents=True)
        fill(here / "in", [*mixed, *extra])
        _, said = run("pack", "in", *options, "-o", "out", status=3, cwd=here)
        if text is None:  # what cannot be packed is named in the same refusal
            expect("in/s/broken.txt.gz: " in said and "--include '*.txt'" in said, said)
            continue
        expect(f"  tokmap pack --format text {'in ' if text[0] == '-' else ''}{text} --eod 256 --split v=0.5 --skip-unsuitable "
               "--quiet -o out-text\n" in said, said)
        expect("  tokmap pack in --include '*.jsonl.gz' --eod 256" in said, said)
        expect_equal([path.name for path in here.iterdir()], ["in"], "what is written without --write-lists")
        _, said = run("pack", "in", *options, "-o", "out", "--write-lists", status=3, cwd=here)
        expect_equal((here / "out-text.list").exists(), text[0] == "@", "the list")
        run_commands(said, here)
        documents = [json.loads(run("info", "--json", name, cwd=here)[0])["n_documents"] for name in ("out", "out-v")]
        expect_equal(sum(documents), 11, documents)


def commands_that_are_proposed_can_be_pasted(folder):
    """Also with names that begin as options or that no terminal shows, and with options that text does not have."""
    fill(folder, [("-a.txt", TEXT), ("-b.jsonl", '{"text": "b", "n": 1}\n')])
    _, said = run("pack", "-o", "out", "--", "-a.txt", "-b.jsonl", status=3, cwd=folder)
    run_commands(said, folder)
    expect_equal(dataset_documents(folder, "out"), 2, said)
    fill(folder / "in", [("x\tz.txt", TEXT), ("y.csv", "n,body\n1,b\n")])
    for _ in range(2):  # the list is there already
        _, said = run("pack", "in/x\tz.txt", "in/y.csv", "--field", "body", "-o", "two", "--write-lists", status=3, cwd=folder)
    run_commands(said, folder)
    expect_equal(dataset_documents(folder, "two"), 2, said)


def a_list_beside_the_output_is_not_packed(folder):
    fill(folder / "in", [*((f"text{i}", TEXT) for i in range(6)), ("r.jsonl", '{"text": "b"}\n')])
    _, said = run("pack", "in", "-o", "in/out", "--write-lists", status=3, cwd=folder)
    expect("(6 inputs of text, 1 input of records)" in said and (folder / "in/out-text.list").exists(), said)
    run("pack", "in", "-o", "new/out", status=3, cwd=folder)
    expect(not (folder / "new").exists(), "a folder for the output of a run that was refused")
    for output in ("in/out", "in/out-text"):
        _, said = run("pack", "in", "-o", output, status=3, cwd=folder)
        expect("left out 1 file of the output" in said and "(6 inputs of text, 1 input of records)" in said, said)


def dataset_documents(folder, name):
    return json.loads(run("info", "--json", name, cwd=folder)[0])["n_documents"]


def what_is_not_text_is_named(folder):
    """Token files by what is beside them; the files whose bytes are replaced."""
    fill(folder / "in", TEXTS)
    run("pack", "in/1.txt", "-o", "in/P", cwd=folder)
    out, _ = run("pack", "in", "--dry-run", "--skip-unsuitable", "--include", "P.*", "--include", "1.txt", cwd=folder)
    expect("in/P.bin, left out: a token file of tokmap" in out and "in/P.tmi, left out: a tokmap index" in out, out)
    fill(folder / "in2", [(f"{i}.txt", TEXT.encode() * 9 + b"\xff" * (i > 0)) for i in range(6)])
    _, said = run("pack", "in2", "-o", "out", cwd=folder)
    expect("not UTF-8: 5 places in 5 documents, replaced by U+FFFD: in2/1.txt, in2/2.txt, in2/3.txt and 2 more" in said, said)


def a_dry_run_says_what_each_input_is(folder):
    pyarrow = need("pyarrow")
    fill(folder / "in", [*TEXTS, ("x.pdf", b"%PDF-1.4\n1 0 obj\n"), ("y.jsonl", '{"text": "a"}\n'), ("z.jsonl", "{\"text\": \n")])
    importlib.import_module("pyarrow.parquet").write_table(pyarrow.table({"body": ["a"]}), folder / "in/p.parquet")
    out, said = run("pack", "in", "--dry-run", status=3, cwd=folder)
    for line in ("in/x.pdf, unsuitable: is a PDF document", 'in/p.parquet, unsuitable: it has no column "text"; use --field with one of',
                 "in/y.jsonl, packed as jsonl, ", "in/z.jsonl, needs a change: "):
        expect(line in out, out)
    expect(said.endswith("  tokmap merge P-text P-records -o P\n") and "  tokmap pack --format text in --include '*.txt'" in said, said)
    out, said = run("pack", "in", "--dry-run", "--exclude", "z*", "--skip-unsuitable", "--include", "*.p[ad]*[ft]", "--include", "*.jsonl",
                    cwd=folder)
    expect("in/p.parquet, left out: a Parquet file without the column" in out and "estimate:" in out, out)
    expect_equal(sorted(path.name for path in folder.iterdir()), ["in"], "what is written")


def other_options_do_not_resume_a_run(folder):
    """Even if they choose the same files."""
    line = json.dumps({"text": "word " * 2000}) + "\n"
    fill(folder / "in", [*TEXTS, ("z.jsonl", line * 1000 + "damaged\n")])
    always = {"TOKMAP_CHECKPOINT_MS": "0"}
    for first, second, named in ((["--include", "*.jsonl"], ["--include", "z*"], "--include was *.jsonl and is now z*"),
                                 (["--include", "z*", "--exclude", "a"], ["--include", "z*", "--exclude", "b"], "--exclude was a"),
                                 (["--include", "z*", "--skip-unsuitable"], ["--include", "z*"], "--skip-unsuitable was yes")):
        _, said = run("pack", "in", *first, "-o", "out", "-q", "--memory", "8M", status=3, cwd=folder, environment=always)
        expect("Progress is saved" in said, said)
        _, said = run("pack", "in", *second, "-o", "out", "-q", "--memory", "8M", status=5, cwd=folder, environment=always)
        expect(named in said, said)
        for path in folder.glob("out*"):
            path.unlink()


# ---- JSON ----


def random_value(rng, depth=0):
    kind = rng.randrange(6 if depth < 3 else 3)
    if kind < 2:
        return "".join(rng.choice('ab"\\[]{},:\n \u00e4\u20ac') for _ in range(rng.randrange(9)))
    if kind == 2:
        return rng.choice([1, -2.5, True, None])
    if kind < 5:
        return [random_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {f"k{i}": random_value(rng, depth + 1) for i in range(rng.randrange(4))}


def arrays_are_the_lines_of_their_objects(folder):
    rng = random.Random(1)
    for n in (1, 2, 50, 400, 20000):
        rows = [{"before": random_value(rng), "text": "".join(rng.choice('ab"\\[]{},\n\u00e4') for _ in range(rng.randrange(60))),
                 "after": random_value(rng)} for _ in range(n)]
        text = json.dumps(rows, indent=rng.choice([None, 1, 4]), ensure_ascii=rng.random() < 0.5,
                          separators=rng.choice([(",", ":"), (", ", ": "), (" ,\n", " :\t")]))
        text = rng.choice(["", "\ufeff", " \n"]) + text + rng.choice(["", "\n", " \r\n"])
        (folder / "a.json").write_bytes(text.encode("utf-8", "surrogatepass"))
        (folder / "b.json.gz").write_bytes(gzip.compress(text.encode()))
        (folder / "c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        tokens = set()
        for name in ("a.json", "b.json.gz", "c.jsonl"):
            run("pack", name, "-o", "out", "-f", "-q", "--meta", "@row", cwd=folder)
            tokens.add((folder / "out.bin").read_bytes())
        run("pack", "a.json", "-o", "out", "-f", "-q", "--format", "jsonl", cwd=folder)
        expect_equal({(folder / "out.bin").read_bytes()}, tokens, f"{n} rows, the format given")
        out, said = run("plan", "a.json", "--cell-size", "100", "--cells", "cells", "-o", "p", "-f", "--json", cwd=folder)
        expect_equal(json.loads(out)["n_cells"], 1, "cells of an array")
        expect(n < 50 or "stay in one cell: it is a JSON array" in said, said)
    return "up to 20,000 rows"


def broken_arrays_are_refused_at_their_place(folder):
    good = '[{"text": "a"}, {"text": "b"}]'
    for text, word in (('[{"text": "a"}, 5]', "a.json:2: byte 16: not an object"),
                       ('[{"text": "a"}, "b, ]"]', "a.json:2: byte 16: not an object"),
                       ('[{"text": "a"} {"text": "b"}]', "trailing data"),
                       ('[{"text": "a"}}', "a comma or bracket is out of place"), (good + good, "something follows its end"),
                       ('[{"text": "a"},,{"text": "b"}]', "a comma or bracket is out of place"),
                       ('[{"text": "a"},]', "a comma or bracket is out of place"), ('[{"text": "a\\u0000b"},\n{"text": "\0"}]', "a.json:2:"),
                       (good[:-1], "is truncated: the JSON array has no end"), ('[{"text": "a"', "is truncated"),
                       ('[{"text": "a\nb"}]', "not JSON"), ('[{"text": "a"]', "is truncated"), ('[{"no": "a"}]', 'the field is missing: "text"')):
        (folder / "a.json").write_text(text)
        _, said = run("pack", "a.json", "-o", "out", status=3, cwd=folder)
        expect(word in said and not list(folder.glob("out*")), (text, said))
    (folder / "a.txt").write_text(good)
    _, said = run("pack", "a.txt", "-o", "out", status=3, cwd=folder)
    expect("is a JSON array" in said, said)
    (folder / "a.json").write_text('{\n  "text": "a"\n}\n')
    _, said = run("pack", "a.json", "-o", "out", status=3, cwd=folder)
    expect("a.json: is one JSON object over several lines, with the field" in said and "--field" not in said, said)
    (folder / "a.json").write_text('[{"no": "a"}]')
    (folder / "b.json").write_text('[{"no": "a"}, {"no": "b"}]')
    (folder / "c.jsonl").write_text('{"text": "c"}\n')
    for options in ([], ["--on-error", "skip"]):
        _, said = run("pack", "a.json", "c.jsonl", "b.json", *options, "-o", "out", status=3, cwd=folder)
        expect("a.json: byte 1: no object" in said and "b.json: byte 1: no object" in said, said)  # all at once
    (folder / "a.json").write_text('[{"no": "a"}, {"text": "b"}]')
    run("pack", "a.json", "c.jsonl", "--on-error", "skip", "-o", "out", "-q", cwd=folder)
    for path in folder.glob("out*"):
        path.unlink()
    (folder / "a.tar").write_bytes(make_tar_of([("a.json", good.encode())]))
    _, said = run("pack", "a.tar", "-o", "out", status=3, cwd=folder)
    expect("a JSON array, which is read only from a .json file of its own" in said, said)
    for text in ("[]", " [\n]\n"):
        (folder / "empty.json").write_text(text)
        (folder / "a.json").write_text(good)
        run("pack", "a.json", "empty.json", "-o", "out", "-f", "-q", cwd=folder)
        info = json.loads(run("info", "--json", "out", cwd=folder)[0])
        expect_equal((info["n_documents"], info["n_inputs"]), (2, 2), "an empty array")


def an_array_is_read_on_after_a_stop(folder):
    rows = [{"text": f"row {i} " * 50, "n": [i]} for i in range(4000)]
    (folder / "a.json").write_text(json.dumps(rows[:3000] + [{"bad": 1}] + rows[3000:]))
    for _ in range(2):
        _, said = run("pack", "a.json", "-o", "out", "--memory", "8M", status=3, cwd=folder,
                      environment={"TOKMAP_CHECKPOINT_MS": "0"})
        expect("a.json:3001: byte" in said and "Progress is saved" in said, said)
    run("pack", "a.json", "-o", "out", "--memory", "8M", "--on-error", "skip", "-q", cwd=folder)
    (folder / "b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run("pack", "b.jsonl", "-o", "wanted", "-q", cwd=folder)
    expect((folder / "out.bin").read_bytes() == (folder / "wanted.bin").read_bytes(), "tokens differ")


# ---- Web archives ----


def converter(folder, name):
    """What the message says, with this file."""
    _, said = run("pack", name, "-o", "out", status=3, cwd=folder)
    command = re.search(r'(python3 -c ".*") <FILE >FILE.jsonl', said)[1]
    words = shlex.split(command)
    expect_equal(words[:2], ["python3", "-c"], said)
    with open(folder / name, "rb") as source, open(folder / f"{name}.jsonl", "wb") as out:
        subprocess.run([sys.executable, *words[1:]], stdin=source, stdout=out, check=True)
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def web_archives_are_refused_with_a_converter(folder):
    need("warcio")
    record = "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: https://a/\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\n\u00e4 text\r\n\r\n"
    (folder / "a.wet").write_bytes(record.encode().replace(b"Length: 6", b"Length: 7"))
    expect_equal(converter(folder, "a.wet"), [{"text": "\u00e4 text", "url": "https://a/"}], "WET")


def texts_that_begin_with_a_brace_go_by_their_name(folder):
    brace = "{ not JSON }\nmore\n"
    for name in ("a.pas", "a.ipynb", "a.txt", "a.css.gz"):
        data = brace.encode()
        (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        run("pack", name, "-o", "out", "-f", "-q", cwd=folder)
        expect_equal(bytes((folder / "out.bin").read_bytes()[::2]), data + b"\0", name)
    for name in ("a.json", "a.jsonl", "a.ndjson.gz", "without", "a.b/without"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(gzip.compress(brace.encode()) if name.endswith(".gz") else brace.encode())
        _, said = run("pack", name, "-o", "out2", status=3, cwd=folder)
        expect("the first line begins with {" in said, said)
    (folder / "lines.txt").write_text('{"text": "a"}\n{"text": "b"}\n')
    run("pack", "lines.txt", "-o", "out3", "-q", cwd=folder)
    expect_equal(json.loads(run("info", "--json", "out3", cwd=folder)[0])["n_documents"], 2, "JSON lines of any name")


def fields_that_may_be_meant_are_named(folder):
    record = '{"title": "a", "n": 1, "meta": {"body": "b", "deep": {"c": "d"}}, "ids": [1]}'
    for name, data, options, wanted in (
            ("a.jsonl", record, [], "use --field with one of title, meta.body, meta.deep.c, or --format"),
            ("a.jsonl", record, ["--tokens", "x", "--vocab-size", "9"], "use --tokens with one of ids, or --format"),
            ("a.jsonl", '{"n": 1}', [], "use --field to name the field, or --format"),
            ("a.json", f"[{record},\n {record}]", [], "use --field with one of title, meta.body, meta.deep.c, or --format text")):
        (folder / name).write_text(data)
        _, said = run("pack", name, "-o", "out", *options, status=3, cwd=folder)
        expect(wanted in said, said)


if __name__ == "__main__":
    sys.exit(run_in_folders("any_folder_"))
