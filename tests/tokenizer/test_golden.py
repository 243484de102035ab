#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real tokenizers give the ids that their reference implementations gave: each case of
../shared/golden by `tokmap encode`, and back by `tokmap decode`; whole corpora by `tokmap pack`, by
the SHA-256 of all their ids. A vocabulary that the reference refuses is refused.

Environment: TOKMAP_SHARED, where that folder is."""

import array
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unicodedata

from ref_protocol import Skip, call, expect, expect_equal, program, run_tests

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("TOKMAP_SHARED", ROOT.parent / "shared"))
# Instrumented, tokmap is too slow for the large ones in the time of a check.
LARGE_ONES = not os.environ.get("TOKMAP_SANITIZED") or bool(os.environ.get("TOKMAP_LONG"))
LARGE_BYTES = 4 << 20
EXIT_INPUT = 3

PATTERNS = {
    "cl100k_base.tiktoken": "cl100k",
    "o200k_base.tiktoken": "o200k",
    "llama3.tokenizer.model": "llama3",
    "qwen3.derived.tiktoken": "qwen2",
    "deepseek_v3.derived.tiktoken": "deepseek3",
    "tekken.derived.tiktoken": "tekken",
}
SPECIALS_FILES = {
    "deepseek_v3.derived.tiktoken": "deepseek_v3.derived.special.json",
    "tekken.derived.tiktoken": "tekken.derived.special.json",
}
# golden file: vocabulary, what is done with specials in the text, whether ids give the text back.
# Falcon's do not: it has no tokens for some bytes, and its reference drops these.
GOLDEN = {
    "gpt2": ("gpt2.tokenizer.json", "text", True),
    "gpt2.hf": ("gpt2.tokenizer.json", "match", True),
    "cl100k_base": ("cl100k_base.tiktoken", "text", True),
    "o200k_base": ("o200k_base.tiktoken", "text", True),
    "llama3": ("llama3.tokenizer.model", "text", True),
    "qwen3": ("qwen3.derived.tiktoken", "text", True),
    "deepseek_v3": ("deepseek_v3.derived.tiktoken", "match", True),
    "tekken": ("tekken.derived.tiktoken", "text", True),
    "gpt-neox-20b": ("gpt-neox-20b.tokenizer.json", "match", True),
    "falcon": ("falcon.tokenizer.json", "match", False),
    "phi2": ("phi2.tokenizer.json", "match", True),
    "phi3-mini": ("phi3-mini.tokenizer.json", "match", False),
    "t5-small": ("t5-small.tokenizer.json", "match", False),
    "mistral_v1": ("mistral_v1.model", "text", False),
    "mistral_v3": ("mistral_v3.model", "text", False),
    "spm_unigram_en": ("spm_test_unigram_en.model", "text", False),
    "spm_ja": ("spm_test_ja.model", "text", False),
}
NFC = {"qwen3", "gpt-neox-20b"}
# corpora.json was made with sentencepiece 0.1.97, which compares a sum of scores as a double with
# the best one as a float; in 0.2.3 both are floats, and where two ways are almost equal another one
# may win: in 3 and 8 of the 19,202 documents. These are the digests of 0.2.3.
SENTENCEPIECE_0_2 = {
    "spm_test_unigram_en.model": "380a0614b5b6bfa30ccd21218af462ba5172d097f8e86bcea65e5f9a610cd767",
    "spm_test_ja.model": "66ce8d90b4899eda86cb2f603055a36281213ff25bd61770c4a07ae0e550bb2a",
}


def needed(path):
    path = SHARED / path
    if not path.exists():
        raise Skip("%s is not there" % path)
    return path


def json_lines(path):
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


def tokenizer(vocab):
    options = ["--tokenizer", str(needed("vocab/" + vocab))]
    if vocab in PATTERNS:
        options += ["--pattern", PATTERNS[vocab]]
    if vocab in SPECIALS_FILES:
        options += ["--specials-file", str(needed("vocab/" + SPECIALS_FILES[vocab]))]
    return options


def run_lines(command, options, rows):
    """Each row as a line of JSON, each line of the output as a row."""
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    _, out = call("tokmap", command, *options, stdin=lines)
    out = out.split(b"\n")
    expect_equal((len(out) - 1, out[-1]), (len(rows), b""), "lines from tokmap " + command)
    return [json.loads(line) for line in out[:-1]]


def golden(name):
    wanted = {row["case"]: row["ids"] for row in json_lines(needed("golden/%s.jsonl" % name))}
    cases = [row for row in json_lines(needed("golden/cases.jsonl")) if row["case"] in wanted]
    expect_equal(len(cases), len(wanted), "cases")
    vocab, specials, lossless = GOLDEN[name]
    options = tokenizer(vocab)
    got = run_lines("encode", [*options, "--specials", specials], cases)
    different = [i for i, ids in enumerate(got) if ids != wanted[cases[i]["case"]]]
    if different:
        case = cases[different[0]]
        raise AssertionError(
            "%d of %d cases differ, first case %d, text %s: %s, expected %s"
            % (
                len(different),
                len(cases),
                case["case"],
                ascii(case["text"])[:200],
                *first_difference(got[different[0]], wanted[case["case"]]),
            )
        )
    if lossless:
        decode(name, options, cases, wanted)
    return "%d cases%s" % (len(cases), ", and back" if lossless else "")


def decode(name, options, cases, wanted):
    rows = run_lines("decode", options, [wanted[case["case"]] for case in cases])
    for case, text in zip(cases, rows):
        text = text["text"] if isinstance(text, dict) else text
        before = unicodedata.normalize("NFC", case["text"]) if name in NFC else case["text"]
        if text != before:
            raise AssertionError(
                "case %d decodes to %s, expected %s"
                % (case["case"], ascii(text)[:300], ascii(before)[:300])
            )


def first_difference(got, wanted):
    """The ids around the first place where they differ."""
    at = next(
        (i for i, (a, b) in enumerate(zip(got, wanted)) if a != b), min(len(got), len(wanted))
    )
    first = max(0, at - 3)
    return ("ids [%d..] %s" % (first, got[first : at + 5]), wanted[first : at + 5])


def corpus(entry):
    path = needed(entry["file"])
    if path.stat().st_size > LARGE_BYTES and not LARGE_ONES:
        raise Skip("too slow with sanitizers: TOKMAP_LONG=1 runs it")
    eod = "none" if entry["eod"] is None else str(entry["eod"])
    with tempfile.TemporaryDirectory() as folder:
        prefix = os.path.join(folder, "p")
        call(
            "tokmap",
            "pack",
            "-q",
            *tokenizer(entry["vocab"]),
            "--specials",
            entry["special"],
            "--eod",
            eod,
            "-o",
            prefix,
            str(path),
        )
        n_bytes = os.path.getsize(prefix + ".bin")
        width = n_bytes // entry["tokens"]
        expect(
            n_bytes % entry["tokens"] == 0 and width in (2, 4),
            "%d bytes for %d tokens" % (n_bytes, entry["tokens"]),
        )
        tokens = array.array("H" if width == 2 else "I")
        with open(prefix + ".bin", "rb") as f:
            tokens.frombytes(f.read())
    wanted_width = 2 if entry["dtype"] == "u16" else 4
    if width != wanted_width:
        tokens = array.array("H" if wanted_width == 2 else "I", tokens)
    if sys.byteorder == "big":
        tokens.byteswap()
    digest = hashlib.sha256(tokens.tobytes()).hexdigest()
    if digest != entry["sha256"] and digest == SENTENCEPIECE_0_2.get(entry["vocab"]):
        return "%d tokens, as by sentencepiece 0.2" % len(tokens)
    expect_equal(digest, entry["sha256"], "SHA-256 of %d tokens" % len(tokens))
    return "%d tokens" % len(tokens)


def corpus_name(entry):
    stem = entry["file"].split("/")[-1].split(".json")[0].replace(".txt", "")
    name = "corpus_%s_%s" % (stem, entry["vocab"].split(".")[0])
    return name + ("_match" if entry["special"] == "match" else "")


def refuses(path):
    done = subprocess.run(
        [program("tokmap"), "encode", "--tokenizer", str(needed(path))],
        input=b'"a"\n',
        capture_output=True,
        timeout=300,
    )
    says = done.stderr.decode("utf-8", "replace").strip()
    expect_equal((done.returncode, done.stdout), (EXIT_INPUT, b""), "exit code, output")
    expect(pathlib.Path(path).name in says, "it says %r, which does not name the file" % says)
    return says


def every_golden_file_is_compared():
    needed("golden/cases.jsonl")
    found = {path.stem for path in (SHARED / "golden").glob("*.jsonl")} - {"cases"}
    wanted = {name for name, (file, _, _) in GOLDEN.items() if (SHARED / "vocab" / file).exists()}
    expect_equal(found, wanted, "golden files")


def main():
    if not SHARED.is_dir():
        print("skip golden: the folder %s is not there" % SHARED)
        return 77
    tests = [("golden_" + name, lambda name=name: golden(name)) for name in GOLDEN]
    tests.append(("golden_files_are_all_compared", every_golden_file_is_compared))
    listed = SHARED / "golden/corpora.json"
    for entry in json.loads(listed.read_bytes()) if listed.exists() else []:
        tests.append((corpus_name(entry), lambda entry=entry: corpus(entry)))
    for path in sorted((SHARED / "vocab/negative").glob("*")):
        name = "vocab/negative/" + path.name
        tests.append(("refused_" + path.name.split(".")[0], lambda name=name: refuses(name)))
    return run_tests(tests)


if __name__ == "__main__":
    sys.exit(main())
