#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scanner of JSON lines, and all that reads them, against Python's json, gzip and UTF-8."""

import gzip
import json
import os
import random
import shutil
import struct
import subprocess
import sys

from ref_fields import Object, read_line, text_bytes
from ref_protocol import Skip, call, expect, expect_equal, run_in_folders, run_program, split_texts

LONG = os.environ.get("TOKMAP_LONG") == "all"
SHARED = os.environ.get("TOKMAP_SHARED", "../shared")
OK, MALFORMED, NO_FIELD, NULL, NO_OBJECT = range(5)
MAX_DEPTH = 128
MISSING = object()
# What test suites for JSON readers try, beside what the C tests have.
LINES = [
    b"[]", b"{}", b'{"text":"x"}', b'{"text":"x"}\n', b'\t{"text" : "x" }\r', b"", b" ", b"\xef\xbb\xbf{}",
    b'{"text":"\\u0000\\u001f\\u007f\\u0080\\u07ff\\u0800\\uffff"}', b'{"text":"\x7f"}',
    b'{"text":"\\uD834\\uDD1E \\ud834\\udd1e \\uD834 \\uDD1E\\uD834 \\uD834\\uD834\\uDD1E"}',
    b'{"text":"\\uDBFF\\uDFFE\\uDADA"}', b'{"text":"\\uD800\\n\\uDC00\\t"}', b'{"text":"\\uD83d\\u"}',
    b'{"text":"\\uD83d\\uDE0"}', b'{"text":"\\u00A"}', b'{"text":"\\u 041"}', b'{"text":"\\u+041"}',
    b'{"text":"\\u0_41"}', b'{"text":"\\ux041"}', b'{"text":"\\a"}', b'{"text":"\\0"}', b'{"text":"\\',
    b'{"text":"\\"}', b'{"text":"\\\\"}', b'{"text":"\\\\\\"}', b'{"text":"\\/\\b\\f"}', b'{"text":"a\tb"}',
    b'{"text":"a\nb"}', b'{"text":"a\x00b"}', b'{"text":"a\x1fb"}', b"{'text':'x'}", b'{text:"x"}',
    b'{"text":"x",}', b'{"text":"x",,"a":1}', b'{,"text":"x"}', b'{"text" "x"}', b'{"text"::"x"}',
    b'{"text":}', b'{"text"}', b'{"text":"x"', b'{"text":"x"]', b'{"text":"x"}}', b'{"text":"x"} x',
    b'{"text":"x"}#', b'{"text":"x"} // c', b'{"text":"x"/**/}', b'{"a":[1,],"text":"x"}',
    b'{"a":[,1],"text":"x"}', b'{"a":[1 2],"text":"x"}', b'{"a":[1}', b'{"a":{"text":"no"},"text":"x"}',
    b'{"text":"x","text":"y"}', b'{"text":"x","text":1}', b'{"text":1,"text":"y"}', b'{"text":["x"]}',
    b'{"te\\u0078t":"x"}', b'{"\\u0074\\u0065\\u0078\\u0074":"x"}', b'{"text\\u0000":"x"}',
    b'{"text ":"x"}', b'{"tex":"x","textt":"y"}', b'{"":"x"}', b'"text"', b"null", b"true", b"1", b"1.5e-3",
    b'{"a":-0,"text":"x"}', b'{"a":-,"text":"x"}', b'{"a":+1,"text":"x"}', b'{"a":01,"text":"x"}',
    b'{"a":1.,"text":"x"}', b'{"a":.1,"text":"x"}', b'{"a":1.0e,"text":"x"}', b'{"a":1e+,"text":"x"}',
    b'{"a":1E400,"text":"x"}', b'{"a":-1e-999,"text":"x"}', b'{"a":0e1,"text":"x"}', b'{"a":00,"text":"x"}',
    b'{"a":0x1,"text":"x"}', b'{"a":1_0,"text":"x"}', b'{"a":NaN,"text":"x"}', b'{"a":Infinity,"text":"x"}',
    b'{"a":-Infinity,"text":"x"}', b'{"a":nan,"text":"x"}', b'{"a":TRUE,"text":"x"}', b'{"a":nul,"text":"x"}',
    b'{"a":truex,"text":"x"}', b'{"a":"\xff","text":"\xc3\xa4\xff\xe2\x82"}', b'{"\xff":1,"text":"\xf0\x9f\x98\x80"}',
    b'{"text":"\xe2\x80\xa8"}', b'{"text":"x"}\x0b', b'{"text":"x"}\x0c', b'\xa0{"text":"x"}', b'{"text":"x"}\x00',
    b'{"a":' + b"9" * 5000 + b',"text":"x"}', b'{"text":"' + b"long " * 300 + b'\\n"}',
    b"[" * 100000, b'{"text":' * 500, b"[" * 128 + b"]" * 128, b"[" * 129 + b"]" * 129,
    b'{"a":' + b"[" * 127 + b"]" * 127 + b',"text":"x"}', b'{"a":' + b"[" * 128 + b"]" * 128 + b',"text":"x"}',
    b'{"a":{"b":"x"}}', b'{"a":{"b":"x"},"a":{"b":"y\\n"}}', b'{"a":{"b":"x"},"a":{}}', b'{"a":[{"b":"x"}]}',
    b'{"text":null}', b'{"text":null,"text":"x"}', b'{"text":"x","text":null}', b'{"a":{"b":null}}', b'{"a":null}',
    b'{"a":{"b":"x"},"a":null}', b'{"a":{"b":null},"a":{}}',
    b'{"a":{"b":{"b":"x"}}}', b'{"\\u0061":{"\\u0062":"x\\ud800"}}', b'{"a.b":"x"}', b'{"b":"x","a":{"c":1}}',
]

# What is a value and what is none, for each place of a line.
VALUES = (
    rb'{}|[]|""|0|-0|-1|10|1.5|1e9|1E+09|1.25e-3|0e0|-0.0|1e999|123456789012345678901234567890|true|false|null| { } '
    rb'|{"a":1,"b":[{"c":null}]}|{"a":1,"a":2}|[[],[[]],{}]|{"":0}|"\"\\\/\b\f\n\r\t\u00e4\uD83D\ude00"|"\ud800"'
    rb'|"\udc00\ud800"|"\uDBFF\uDFFF"|"\u0000"|[1,"a",true,{"k":[null]}]|{"text":{"text":"no"}}|1.0E-1'
    rb'|| |{|}|[|]|[1|[1,|[1,]|[,1]|[1 2]|[}|{]|{"a"}|{"a":}|{"a":1,}|{,}|{a:1}|{1:2}|{"a":1 "b":2}|{"a"::1}|{"a":1]|[1}'
    rb'|01|-01|00|-|--1|+1|1.|.5|1.e1|1e|1e+|1e+-1|1ee1|1.1.1|0x10|1_0|NaN|nan|Infinity|-Infinity|-inf|tru|True|nul|nullx'
    rb'|truefalse|t|1 2|{} {}|[] ,|,|:|"|"a|"\"|"\x41"|"\u12"|"\u12g4"|"\u"|"\uD83D\u"|"\uD83D\u12"|"\uD83D\x"|"\U0041"'
    rb'|/* */ 1|1 // x|undefined|{"a":1}x|"a"b|[1,,2]|{"a":1,,"b":2}|{"a" 1}|{"a":1;"b":2}|(1)'
    rb'|["a":1]|{"a",1}|"\|"\u|"\u0|-a|1a').split(b"|") + [
    b"\t[\n1 ,\r2 ] ", b'"\xc3\xa4"', b'"\xf0\x9f\x98\x80"', b'"\xff\x80"', b'"\x7f"', b'"\\\n"', b'"a\nb"', b'"a\tb"',
    b'"\x1f"', b'"\\\'"', b"'a'", b"{'a':1}", b"// x\n1", b"\xef\xbb\xbf{}", b"\v1", b"\f1", b"\xa0"]
PLACES = (b"%s", b'{"id":%s,"text":"t"}', b'{"text":"t","x":[%s]}', b'{"text":"t", "x" : %s }', b'{"text":%s}',
          b'{"x":{"y":[[%s],1]},"text":"\\n"}')


def depth_of(line):
    """The deepest nesting outside strings, as far as the line can be parsed."""
    depth = deepest = 0
    inside = escaped = False
    for c in line:
        if inside:
            inside, escaped = (c != 0x22 or escaped), (c == 0x5C and not escaped)
        elif c == 0x22:
            inside, escaped = True, False
        elif c in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif c in b"]}":
            depth -= 1
    return deepest


def has_string(value, keys):
    """Whether the path leads to a string, by any of the keys that appear more than once."""
    if not keys:
        return isinstance(value, str)
    return isinstance(value, Object) and any(has_string(v, keys[1:]) for k, v in value if k == keys[0])


def python_answer(line, path):
    try:
        whole = read_line(line) if depth_of(line) <= MAX_DEPTH else MISSING
    except ValueError:
        whole = MISSING
    if not isinstance(whole, Object):
        return (MALFORMED if whole is MISSING else NO_OBJECT), 0, b""
    value = whole
    for key in path.split("."):
        value = dict(value).get(key, MISSING) if isinstance(value, Object) else (None if value is None else MISSING)
    if value is None and not has_string(whole, path.split(".")):
        return NULL, 0, b""
    if not isinstance(value, str):
        return NO_FIELD, 0, b""
    out, lone = text_bytes(value)
    return OK, lone, out


def tool_answers(lines, path, engine):
    stdin = b"".join(struct.pack("<I", len(line)) + line for line in lines)
    status, out = call("tool_json_line", path, engine, stdin=stdin, check=False)
    if status == 77:
        return None
    expect_equal(status, 0, "exit status")
    answers, at = [], 0
    for _ in lines:
        kind, lone, n = struct.unpack_from("<BII", out, at)
        answers.append((kind, lone, out[at + 9 : at + 9 + n]))
        at += 9 + n
    expect_equal(at, len(out), "bytes of output")
    return answers


def compare(lines):
    """All lines by all engines, for two paths. Returns how many were OK."""
    n_ok = n_runs = 0
    for path in ("text", "a.b"):
        wanted = [python_answer(line, path) for line in lines]
        n_ok += sum(w[0] == OK for w in wanted)
        for engine in ("scalar", "avx2"):
            answers = tool_answers(lines, path, engine)
            if answers is None:
                continue
            n_runs += 1
            for line, got, want in zip(lines, answers, wanted):
                if got != want:
                    expect_equal(got, want, "%s, %s: %.200r" % (path, engine, line))
    expect(n_runs >= 2, "only %d runs" % n_runs)
    return n_ok


def known_lines_are_taken_and_refused_as_by_python(folder):
    lines = LINES + [place.replace(b"%s", value) for value in VALUES for place in PLACES]
    return "%d lines, %d ok" % (len(lines), compare(lines))


ALPHABET = [
    b'"', b"\\", b"{", b"}", b"[", b"]", b":", b",", b"0", b"1", b"-", b".", b"e", b"E", b"+", b" ", b"\t",
    b"\r", b"\n", b"\0", b"\x1f", b"\x80", b"\xc3\xa4", b"\\u", b"\\ud83d", b"\\ude00", b"\\u0041", b"\\n",
    b"true", b"null", b'"text":', b'"text":"x"', b'"a":{', b'"b":"', b"\xff", b"a" * 70,
]


def mutate(rng, line):
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        at = rng.randrange(len(line) + 1)
        what = rng.random()
        if what < 0.4:
            line = line[:at] + rng.choice(ALPHABET) + line[at:]
        elif what < 0.7:
            line = line[:at] + line[at + rng.choice((1, 1, 3)) :]
        else:
            line = line[:at] + rng.choice(ALPHABET) + line[at + 1 :]
    return line


def random_value(rng, depth=0):
    what = rng.random()
    if what < 0.45:
        alphabet = ["a", "\n", '"', "\\", "é", "中", "\U0001f600", "\ud800", "\udc00", "\0", " text "]
        return "".join(rng.choices(alphabet, k=rng.choice((0, 1, 3, 10, 40))))
    if what < 0.65 or depth > 3:
        return rng.choice((0, -1, 1.5e-7, 10**20, True, False, None))
    items = [random_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    if what < 0.75:
        return items
    return {rng.choice(("text", "a", "b", "", "é")): item for item in items}


def random_line(rng):
    if rng.random() < 0.4:
        short = rng.choice(LINES)
        return mutate(rng, short if len(short) < 2000 else b'{"text":"x"}')
    value = {rng.choice(("text", "a", "id")): random_value(rng) for _ in range(rng.randrange(1, 4))}
    if rng.random() < 0.6:
        value["a"] = {"b": random_value(rng, 4), "text": random_value(rng)}
    text = json.dumps(value, ensure_ascii=rng.random() < 0.5, indent=rng.choice((None, None, 1)))
    return mutate(rng, text.encode("utf-8", "surrogatepass"))


def random_lines_are_taken_and_refused_as_by_python(folder):
    rng = random.Random(5)
    lines = [random_line(rng) for _ in range(100000 if LONG else 8000)]
    n_ok = compare(lines)
    expect(n_ok > len(lines) / 15, "only %d of them are right" % n_ok)
    return "%d lines, %d ok" % (len(lines), n_ok)


def documents(form, *names):
    """Read as a whole and in parts."""
    return split_texts(call("tool_parts", "all", form, "text", "-", "1", *names)[1])


def gzip_written_by_python_is_read(folder):
    rng = random.Random(6)
    texts = ["".join(rng.choices("a b\né中\U0001f600\"\\", k=rng.randrange(3000))) for _ in range(400)]
    lines = [json.dumps({"id": i, "text": t}).encode() + b"\r\n"[i % 2 :] for i, t in enumerate(texts)]
    name = folder / "in"
    name.write_bytes(b"".join(gzip.compress(b"".join(lines[i : i + 150]), rng.randrange(10)) for i in range(0, 400, 150)))
    if not readable(name):
        raise Skip("this build has neither ISA-L nor zlib")
    expect_equal(documents("auto", name, name), [t.encode() for t in texts] * 2, "documents")


def readable(name):
    done = run_program("tool_parts", "all", "text", "text", "-", "1", name)
    return b"this build has no" not in done.stderr


def text_that_is_not_utf8_is_repaired_as_by_python(folder):
    rng = random.Random(7)
    for _ in range(60):
        pieces = (b"a", b" ", b"\xc3\xa4", b"\xe2\x82\xac", b"\xf0\x9f\x98\x80", bytes([rng.randrange(128, 256)]),
                  b"\xe2\x82", b"\xf0\x9f", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf")
        raw = b"".join(rng.choices(pieces, k=rng.randrange(4000)))
        (folder / "in").write_bytes(raw)
        expect_equal(documents("text", folder / "in"), [raw.decode("utf-8", "replace").encode()], "text")


def shared_texts_have_the_documents_that_python_reads(folder):
    texts = os.path.join(SHARED, "text")
    if not os.path.isdir(texts):
        raise Skip("%s is not there" % texts)
    if not shutil.which("zstd"):
        raise Skip("zstd not found")
    n = 0
    for name in sorted(os.listdir(texts)):
        path = os.path.join(texts, name)
        if not name.endswith((".jsonl", ".jsonl.zst")) or not readable(path):
            continue
        wanted = subprocess.run(["zstd", "-dcf", path], capture_output=True, check=True).stdout
        wanted = [json.loads(line)["text"].encode() for line in wanted.split(b"\n") if line]
        expect(documents("auto", path) == wanted, "%s: other documents" % name)
        n += len(wanted)
    return "%d documents" % n


if __name__ == "__main__":
    sys.exit(run_in_folders(""))
