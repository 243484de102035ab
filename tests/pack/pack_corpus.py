# SPDX-License-Identifier: Apache-2.0
"""What the tests that run tokmap pack share: a small tokenizer, inputs of several formats, what this build can read,
and how to wait for a run to get somewhere."""

import glob
import gzip
import importlib.util
import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import time

import ref_protocol
from oracle_patterns import byte_letters


def small_vocabulary(merges=(("o", "r"), ("w", "or"), ("wor", "d"), ("\u0120", "word"), ("1", "2")), specials=("<|endoftext|>",)):
    """A tokenizer.json of GPT-2's kind: 256 bytes, a few merges, and what ends a document."""
    tokens = [*byte_letters(), *("".join(pair) for pair in merges), *specials]
    vocab = {token: i for i, token in enumerate(tokens)}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    return json.dumps({
        "added_tokens": [{"id": vocab.pop(token), "content": token, "special": True, "single_word": False, "lstrip": False,
                          "rstrip": False, "normalized": False} for token in specials],
        "normalizer": None, "post_processor": None, "decoder": byte_level, "pre_tokenizer": byte_level,
        "model": {"type": "BPE", "vocab": vocab, "merges": merges}})


def lang_of(i):
    return "l%d" % (i * i % 7)


def write_inputs(folder, rng, scale, text_files=False):
    """A vocabulary.json, and inputs whose names are returned: lines of JSON with some bad ones, gzip where this build
    reads it, a tar archive, an Arrow, a Parquet and a CSV file; or text, some of it not UTF-8, which no run packs beside
    these."""
    words = ["word%d" % i for i in range(300)] + ["Wort", "слово", "語", "<|endoftext|>", "\\n", "\\u00e9", "  "]

    def text(n):
        return " ".join(rng.choices(words, k=n))

    def lines(n, bad):
        for i in range(n):
            if i % bad == 5:
                yield '{"id": %d}' % i
            elif i % bad == 6:
                yield "not JSON: " + text(3)
            else:
                yield '{"id": %d, "lang": "%s", "text": "%s"}' % (i, lang_of(i), text(rng.choice([0, 1, 20, 200, 900])))

    (folder / "vocabulary.json").write_text(small_vocabulary())
    (folder / "a.jsonl").write_text("\n".join(lines(250 * scale, 40)) + "\n")
    (folder / "b.txt").write_text(text(60000 * scale))
    (folder / "d.jsonl").write_text("\n".join(lines(200 * scale, 1000)))
    (folder / "e.txt").write_bytes(b"caf\xe9 " + text(2000).encode())
    names = ["a.jsonl", "d.jsonl"]
    if has_zlib():
        with gzip.GzipFile(folder / "c.gz", "wb", mtime=0) as out:
            out.write("\n".join(lines(150 * scale, 70)).encode())
        names.insert(1, "c.gz")
    write_tar(folder / "f.tar", lines, text, scale)
    write_arrow(folder / "g.arrow", [text(rng.choice([0, 1, 20, 900])) for _ in range(200 * scale)])
    write_parquet(folder / "h.parquet", [text(rng.choice([0, 1, 20, 900])) for _ in range(200 * scale)])
    write_csv(folder / "i.csv", [text(rng.choice([0, 1, 20, 900])) for _ in range(200 * scale)])
    return ["b.txt", "e.txt"] if text_files else names + ["f.tar", "g.arrow", "h.parquet", "i.csv"]


def with_fields(names):
    """The inputs whose records have an id."""
    columns = (".arrow", ".parquet") if has_pyarrow() else ()
    return [name for name in names if name.endswith((".jsonl", ".gz", ".tar", ".csv", *columns))]


def write_tar(path, lines, text, scale):
    """Lines of JSON, some of them bad, single records over several lines, and members that are left out."""
    with tarfile.open(path, "w") as tar:
        for i in range(30 * scale):
            record = json.dumps({"id": i, "text": text(200)}, indent=1)
            for name, data in (("%d.jsonl" % i, "\n".join(lines(10, 40))), ("%d.json" % i, record), ("%d.txt" % i, "no")):
                member = tarfile.TarInfo(name)
                member.size = len(data.encode())
                tar.addfile(member, io.BytesIO(data.encode()))


def write_arrow(path, texts):
    """Without pyarrow, a small file that it wrote before."""
    if not has_pyarrow():
        seed = pathlib.Path(__file__).resolve().parents[1] / "fuzz" / "corpus" / "arrow" / "file"
        path.write_bytes(seed.read_bytes()[4:])
        return
    pa, ipc = ref_protocol.need("pyarrow"), ref_protocol.need("pyarrow.ipc")
    table = pa.table({"text": texts, "id": list(range(len(texts))), "lang": [lang_of(i) for i in range(len(texts))]})
    with ipc.new_file(path, table.schema, options=ipc.IpcWriteOptions(compression="zstd" if has_zstd() else None)) as out:
        out.write_table(table, max_chunksize=70)


def write_parquet(path, texts):
    """One row group of many small pages; some texts are missing, and some are not UTF-8. Without pyarrow, a small file
    that it wrote before."""
    if not has_pyarrow():
        seed = pathlib.Path(__file__).resolve().parents[1] / "fuzz" / "corpus" / "parquet_file" / "text_mixed_v2.parquet"
        path.write_bytes(seed.read_bytes())
        return
    pa, pq = ref_protocol.need_parquet()
    stored = [None if i % 29 == 3 else text.encode() + b"\xff" * (i % 31 == 4) for i, text in enumerate(texts)]
    table = pa.table({"id": list(range(len(texts))), "text": pa.array(stored, pa.binary()),
                      "lang": [lang_of(i) for i in range(len(texts))]})
    pq.write_table(table, path, data_page_size=2000, write_batch_size=10, write_page_checksum=True,
                   compression="zstd" if has_zstd() else "snappy")


def write_csv(path, texts, bad=41):
    """Texts over several lines, some of them missing; one of `bad` rows is bad, or none."""
    rows = ["id,text,lang", *('%d,"%s",%s%s' % (i, text.replace('"', '""').replace(" word1", '\n"" word1'), lang_of(i), ",x" * (bad > 0 and i % bad == 7))
                              for i, text in enumerate(texts))]
    path.write_bytes("\r\n".join(rows).encode())


def descriptors_without_a_name(pid, folder):
    """The descriptors that the process has of files in the folder without a name; none if it has ended."""
    found = []
    for one in glob.glob("/proc/%d/fd/*" % pid):
        try:
            path = os.readlink(one)
        except OSError:
            continue
        if path.startswith(str(folder)) and path.endswith(" (deleted)"):
            found.append(one)
    return found


class Packing:
    """Runs of tokmap pack in a folder, and the files that they make."""

    environment = {}

    def __init__(self, folder, program=None):
        self.folder, self.program = folder, program or ref_protocol.program("tokmap")

    def command(self, out, *arguments):
        return [self.program, "pack", *arguments, "-o", out]

    def start(self, out, *arguments, pause_ms="0", **named):
        """With a checkpoint at every chance."""
        return subprocess.Popen(self.command(out, *arguments, **named), cwd=self.folder, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                                env={**os.environ, **self.environment, "TOKMAP_CHECKPOINT_MS": pause_ms})

    def pack(self, out, *arguments, code=0, **named):
        """What it says."""
        run = self.start(out, *arguments, **named)
        said = "".join(run.communicate(timeout=300))
        ref_protocol.expect(code in (None, run.returncode), "exit status %d; it said %s" % (run.returncode, said))
        return said

    def paths(self, out):
        return list(self.folder.glob(out + "[.-]*"))

    def outputs(self, out):
        """{the name after the prefix: the bytes}; the metadata is in them."""
        return {path.name[len(out):]: path.read_bytes() for path in self.paths(out)}

    def remove(self, out):
        for path in self.paths(out):
            path.unlink()

    def leave_unfinished(self, out, *arguments, journal_bytes=8000):
        """The files of a run that was killed after some checkpoints."""
        for _ in range(50):
            self.remove(out)
            run = self.start(out, *arguments)
            wait_for(run, lambda: n_bytes(self.folder / (out + ".tmj.partial")) > journal_bytes)
            run.kill()
            run.communicate()
            files = self.outputs(out)
            if ".tmj.partial" in files and all(name.endswith(".partial") for name in files):
                return files
        raise AssertionError("it was always faster")


def n_bytes(path):
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def wait_for(run, condition):
    """Until the condition holds, or the run has ended."""
    deadline = time.monotonic() + 60
    while run.poll() is None and not condition() and time.monotonic() < deadline:
        time.sleep(0.0003)


def needs_mount():
    """For `unshare -rm sh -c SCRIPT`."""
    probe = ["unshare", "-rm", "sh", "-c", "mount -t tmpfs -o size=1m none /mnt && umount /mnt"]
    if not shutil.which("unshare") or subprocess.run(probe, capture_output=True).returncode != 0:
        raise ref_protocol.Skip("no file system can be mounted here")


def has_pyarrow():
    return importlib.util.find_spec("pyarrow") is not None


def has_zlib():
    return ref_protocol.reads("zlib")


def has_zstd():
    return ref_protocol.reads("zstd")
