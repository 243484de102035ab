#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that are no text: tokmap pack refuses them by name and says what to do; tokmap encode too. And what only
looks like one is packed."""

import bz2
import gzip
import io
import json
import lzma
import pathlib
import re
import sys
import zipfile

from ref_protocol import Skip, expect, expect_equal, reads, run_in_folders, run_program

TEXT = "The quick brown fox jumps over the lazy dog.\nEs war einmal ein \u00c4pfelchen.\n" * 40
NULS = bytes(200)


def zip_archive():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.txt", TEXT)
    return out.getvalue()


def cpio():
    fields = [1, 0o100644, 0, 0, 1, 0, 4, 0, 0, 0, 0, 6, 0]
    return b"070701" + b"".join(b"%08x" % n for n in fields) + b"a.txt\0text"


ARCHIVES = {
    "zip archive": [zip_archive(), b"PK\x05\x06" + bytes(18)],
    "7-zip archive": [b"7z\xbc\xaf\x27\x1c\0\x04" + NULS],
    "RAR archive": [b"Rar!\x1a\x07\x01\0" + NULS],
    "ar archive": [b"!<arch>\na.txt/          0           0     0     644     4         `\ntext"],
    "cpio archive": [cpio()],
}
COMPRESSED = {
    "bzip2 file": [bz2.compress(TEXT.encode()), bz2.compress(b"")],
    "xz file": [lzma.compress(TEXT.encode())],
    "lzma file": [lzma.compress(TEXT.encode(), format=lzma.FORMAT_ALONE)],
    "lz4 file": [b"\x04\x22\x4d\x18\x64\x40\xa7" + NULS],
    "lzip file": [b"LZIP\x01\x0c" + NULS],
    "compress file": [b"\x1f\x9d\x90" + NULS],
    "snappy file": [b"\xff\x06\0\0sNaPpY" + NULS],
}
TEXTS = {
    "UTF-16 text": [TEXT.encode("utf-16"), b"\xfe\xff" + TEXT.encode("utf-16-be")],
    "UTF-32 text": [TEXT.encode("utf-32"), b"\0\0\xfe\xff" + TEXT.encode("utf-32-be")],
    "UTF-16 text without a byte order mark":
        [t.encode(c) for t in (TEXT, "\u0421\u043b\u043e\u0432\u043e \u0438 \u0434\u0435\u043b\u043e\n" * 9,
                               "\u4e8c \u8a9e\U0001f601\n", '{"text": "x"}\n')
         for c in ("utf-16-le", "utf-16-be")],
    "UTF-32 text without a byte order mark":
        [t.encode(c) for t in (TEXT, "\u4e00\u8a9e\U0001f600") for c in ("utf-32-le", "utf-32-be")],
}
BINARY = {
    "PNG image": [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + NULS], "JPEG image": [b"\xff\xd8\xff\xe0\0\x10JFIF" + NULS],
    "GIF image": [b"GIF89a\1\0\1\0" + NULS],
    "PDF document": [b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\n" + NULS, b"%PDF-1.7\n1 0 obj\n"],
    "RTF document": [b"{\\rtf1\\ansi\\deff0 text}"],
    "encrypted Parquet file": [b"PARE\x15\x04" + NULS],
    "ORC file": [b"ORC\x0a\x03\0\0\0" + NULS],
    "Avro file": [b"Obj\x01\x04\x16avro.schema" + NULS],
    "tokmap index": [b"\x89TMI\r\n\x1a\n" + NULS],
    "rows file of tokmap": [b"\x89TMR\r\n\x1a\n" + NULS],
    "plan of tokmap": [b"tokmap plan 1\nfolder /data\ncells /data/cells\n"],
}
WITHOUT_A_NAME = [  # but with a NUL
    pathlib.Path("/proc/self/exe").read_bytes()[:100000],
    b"\0\0\0\x18ftypisom" + NULS,
    b"\x93NUMPY\x01\0" + NULS, b"SQLite format 3\0" + NULS,
]
ARRAYS = ['[{"text": "a"}]', '[\n  {"text": "a"}\n]', '["a", "b"]', "[[1, 2], [3]]", '\n [ "a"]', "\ufeff[{}]"]
ALLOWED = [
    "[Chorus]\nOh\n", "[a link](https://example.org)\n", "[1] A footnote.\n", "[]", "[", "", "\n", " [x] done\n",
    "BZh is short for bzip2 with Huffman\n", "PK\n", "PAR1S is no city\n", "PARENTHESES\n", "MZ\n" + "x" * 200,
    "ORC and elf\n", "GIF89a is a format\n", "hsqs\n", "FEA1\n", "Rar!\n", "7z\n", "070701 is a number\n",
    "RIFF in A\n", "abcdftypewriter\n", "\u007f\n", "tab\tand\x0cform feed\x1b[1m\n", "\ufeffwith a mark\n",
    "%!PS-Adobe\n", "Obj 1\n", "LZIP\n", "\u0000".join([]) + "zero length\n", "ID3\n", "II*\n", "# [[link]]\n",
    "\u4e00\u8a9e\U0001f600\n" * 300, "caf\u00e9 " * 20000, "x" * 65535 + "\u00e9", "x" * 65533 + "\U0001f600" * 9,
]


def pack(folder, *options, data=None, name="a"):
    """Packs a file with this name and data or, without data, the existing file. Returns (exit code, message)."""
    if data is not None:
        (folder / name).write_bytes(data)
    done = run_program("tokmap", "pack", "-q", "--force", str(folder / name), "-o", folder / "out", *options)
    return done.returncode, done.stderr.decode()


def refused(result, *words, lines=1):
    code, message = result
    expect_equal(code, 3, "exit code (%s)" % message)
    for word in words:
        expect(word in message, "%r is missing in: %s" % (word, message))
    expect_equal(message.count("\n"), lines, "lines of the message")


def cases(*groups):
    for group in groups:
        for name, contents in group.items():
            for data in contents:
                yield name, data


def wrong_files_are_refused_by_name_and_the_option_that_packs_them_is_named(folder):
    for name, data in cases(COMPRESSED, TEXTS, BINARY):
        refused(pack(folder, data=data), name, "--format text")
        if name not in TEXTS or data[:1] in (b"\xff", b"\xfe"):
            refused(pack(folder, "--utf8", "raw", data=data), name)
        code, message = pack(folder, "--format", "text")
        expect_equal(code, 0, "%s with --format text: %s" % (name, message))


def other_binary_files_are_refused_by_their_nuls(folder):
    for data in WITHOUT_A_NAME:
        refused(pack(folder, data=data), ": a NUL, so this is not text", "--format text")


def archives_are_refused_whatever_the_format(folder):
    for name, data in cases(ARCHIVES):
        for options in ([], ["--format", "text"], ["--lines"], ["--format", "jsonl"], ["--utf8", "raw"]):
            refused(pack(folder, *options, data=data), name, "unpack it first")


def they_are_refused_after_decompression_too(folder):
    if not reads("zlib"):
        raise Skip("this build reads no gzip")
    for name, data in cases(ARCHIVES, TEXTS, BINARY):
        refused(pack(folder, data=gzip.compress(data)), name)
    for name, data in cases(ARCHIVES):
        refused(pack(folder, "--format", "text", data=gzip.compress(data)), name)


def what_is_compressed_twice_is_refused_whatever_the_format(folder):
    if not reads("zlib"):
        raise Skip("this build reads no gzip")
    inner = [data for _, data in cases(COMPRESSED)] + [gzip.compress(TEXT.encode()), b"\x28\xb5\x2f\xfd" + NULS]
    for data in inner:
        for options in ([], ["--format", "text"], ["--lines"]):
            refused(pack(folder, *options, data=gzip.compress(data)), "compressed twice")


def a_json_array_is_refused_and_text_in_brackets_is_not(folder):
    for text in ARRAYS:
        refused(pack(folder, data=text.encode()), "JSON array", "--format text")
        expect_equal(pack(folder, "--format", "text")[0], 0, "--format text")


def nuls_are_refused_unless_they_are_wanted(folder):
    data = b"one\0two \xc3\xa4\0three"
    refused(pack(folder, data=data), "byte 3: a NUL", "--separator", "--format text")
    for options in (["--separator", "\\0"], ["--utf8", "raw"], ["--format", "text"], ["--lines"]):
        expect_equal(pack(folder, *options), (0, ""), " ".join(options))
    refused(pack(folder, data=b"x" * 65000 + b"\0"), "byte 65000")
    refused(pack(folder, "--utf8", "replace", data=data), "byte 3: a NUL")
    lines = b'{"text": "a"}\n{"text": "b\0"}\n'
    refused(pack(folder, data=lines), ":2: byte", "--on-error skip")
    expect_equal(pack(folder, "--on-error", "skip"), (0, ""), "a bad line")


def one_nul_beside_a_blank_does_not_make_utf16(folder):
    for at in range(2):
        lines = [b'{"text": "document %d"}' % i for i in range(200)]
        lines[100] = b'{"text": "xy",%s\0 "k": 1}' % (b" " * at)
        refused(pack(folder, data=b"\n".join(lines) + b"\n"), ":101: byte")
        expect_equal(pack(folder, "--on-error", "skip"), (0, ""), "one bad line")
        refused(pack(folder, data=b"text, " * 900 + b" " * at + b"\0 more"), "a NUL, so this is not text")


def more_than_one_percent_that_is_not_utf8_is_refused_unless_a_policy_is_given(folder):
    for n_bad, ok in ((1, True), (2, False)):
        for data in (b"\xe9" * n_bad + b"x" * (100 - n_bad), b"x" * (100 - n_bad) + b"\xe9" * n_bad,
                     b'{"text": "' + b"\xe9" * n_bad + b"x" * (88 - n_bad) + b'"}'):
            expect_equal(len(data), 100, "length")
            result = pack(folder, data=data)
            if ok:
                expect_equal(result, (0, ""), "one byte of a hundred")
            else:
                refused(result, "2 of the first 100 bytes are not valid UTF-8", "--utf8 replace")
            for word in ("replace", "raw"):
                expect_equal(pack(folder, "--utf8", word), (0, ""), "--utf8 " + word)
            expect_equal(pack(folder, "--format", "text"), (0, ""), "--format text")


def a_name_of_compressed_data_may_have_text_but_not_half_a_magic_number(folder):
    for name, data in (("a.gz", b"\x1f"), ("a.zst", b"(")):
        refused(pack(folder, data=data, name=name), name + ": its name ends in " + name[1:])
    for data in (b"a", b"abcd", b"()"):
        expect_equal(pack(folder, data=data, name="a.zst"), (0, ""), "text")


def real_text_is_packed(folder):
    for text in ALLOWED:
        expect_equal(pack(folder, data=text.encode()), (0, ""), "%.40r" % text)
    for line in ALLOWED:
        data = json.dumps({"text": line}).encode() + b"\n"
        expect_equal(pack(folder, data=data), (0, ""), "%.40r" % line)
    shared = pathlib.Path(__file__).resolve().parents[3] / "shared" / "text"
    for path in sorted(shared.glob("*")):
        done = run_program("tokmap", "pack", "-q", "--force", "--limit-tokens", "300000", path, "-o", folder / "out")
        expect_equal((done.returncode, done.stderr), (0, b""), path.name)


def stdin_and_a_dry_run_refuse_the_same(folder):
    for name, data in cases(ARCHIVES, BINARY, TEXTS):
        done = run_program("tokmap", "pack", "-", "-o", folder / "out", input=data)
        refused((done.returncode, done.stderr.decode()), name)
    for i in range(40):
        (folder / ("n%d.txt" % i)).write_text("x")
    (folder / "n25.txt").write_bytes(b"%PDF-1.7\n")
    inputs = [str(folder / ("n%d.txt" % i)) for i in range(40)]
    for option in ("--json", "-q"):
        done = run_program("tokmap", "pack", "--dry-run", option, *inputs, "-o", folder / "out")
        refused((done.returncode, done.stderr.decode()), "n25.txt: is a PDF document", "Use --skip-unsuitable", lines=2)
        if option == "-q":
            expect(b"n25.txt, unsuitable: is a PDF document" in done.stdout, done.stdout)
            continue
        table, error = map(json.loads, done.stdout.splitlines())
        expect("is a PDF document" in error["error"]["text"], error)
        verdicts = [one["verdict"] for one in table["inputs"]]
        expect_equal((verdicts.count("packed"), verdicts[25], table["estimated_tokens"]), (39, "unsuitable", None), "the verdicts")


def a_refused_file_leaves_nothing(folder):
    (folder / "fresh").mkdir()
    for options in ([], ["--format", "text"]):
        pack(folder / "fresh", *options, data=zip_archive())
    expect_equal([p.name for p in (folder / "fresh").iterdir()], ["a"], "files")


def encode_and_decode_name_them_too(folder):
    for name, data in cases(ARCHIVES, BINARY, COMPRESSED):
        (folder / "a").write_bytes(data)
        for command in ("encode", "decode"):
            done = run_program("tokmap", command, "--tokenizer", "bytes", folder / "a")
            refused((done.returncode, done.stderr.decode()), name)


sys.exit(run_in_folders(""))
