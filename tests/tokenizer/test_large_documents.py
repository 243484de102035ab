#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Documents that are much longer than what an encoder takes at a time, in many scripts, by tokenizers
over characters: their ids are those of the packages that define them, and `tokmap pack` writes the
ids that `tokmap encode` gives.

Packages and vocabularies that are not there are skipped. Environment: TOKMAP_SHARED."""

import array
import base64
import json
import os
import pathlib
import random
import sys
import tempfile

from oracle_spm import NORMAL, UNKNOWN, small_model
from ref_protocol import Skip, expect, expect_equal, run_program, run_tests

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("TOKMAP_SHARED", ROOT.parent / "shared"))
DOCUMENT_BYTES = 1100000
LONG = os.environ.get("TOKMAP_LONG") == "all"
VOCABULARIES = ["mistral_v1.model", "spm_test_ja.model", "t5-small.tokenizer.json"]
if LONG:
    VOCABULARIES += ["mistral_v3.model", "spm_test_unigram_en.model", "phi3-mini.tokenizer.json"]
RNG = random.Random(5)


# ---- Texts ----


def letters(first, last, more=""):
    return [c for c in map(chr, range(first, last)) if c.isalpha()] + list(more)


SCRIPTS = {
    "russian": letters(0x430, 0x450),
    "greek": letters(0x3B1, 0x3CA),
    "arabic": letters(0x621, 0x64B),
    "hebrew": letters(0x5D0, 0x5EB),
    "hindi": letters(0x905, 0x93A, "\u093e\u093f\u0940\u094d\u0947\u093c"),
    "thai": letters(0xE01, 0xE2F, "\u0e31\u0e33\u0e34\u0e48\u0e49"),
    "chinese": letters(0x4E00, 0x9000),
    "japanese": letters(0x3041, 0x3097, letters(0x4E00, 0x4E80)) + ["\u3099"],
    "korean": letters(0xAC00, 0xD7A4),
}
EMOJI = [*map(chr, range(0x1F600, 0x1F640)), "\U0001f469\u200d\U0001f467", "\U0001f44d\U0001f3fd",
         "\U0001f1eb\U0001f1f7"]


def words(alphabet, separators):
    pool = ["".join(RNG.choices(alphabet, k=RNG.randint(1, 9))) for _ in range(2000)]
    unit = "".join(w + RNG.choice(separators) for w in RNG.choices(pool, k=4000))
    n_units = DOCUMENT_BYTES // len(unit.encode()) + 1
    return "".join(unit[RNG.randrange(99):] for _ in range(n_units + n_units // 50 + 1))


def texts_with_blanks():
    return {name: words(alphabet, [" "]) for name, alphabet in SCRIPTS.items()}


def texts_without_blanks():
    texts = {
        "chinese sentences": words(SCRIPTS["chinese"], ["", "，", "。"]),
        "japanese sentences": words(SCRIPTS["japanese"], ["", "、", "。"]),
        "emoji": "".join(RNG.choices(EMOJI, k=DOCUMENT_BYTES // 4)),
        "base64": base64.b64encode(RNG.randbytes(DOCUMENT_BYTES)).decode(),
        "hexadecimal": RNG.randbytes(DOCUMENT_BYTES // 2 + 1).hex(),
    }
    for name in ("thai", "chinese", "japanese", "korean"):
        texts[name + " without blanks"] = words(SCRIPTS[name], [""])
    return texts


# ---- Tokenizers ----


def make_model(path, is_bpe):
    """All letters but some, and pieces of up to four of them; scores as words have them."""
    pieces = {"\u2581": 0}
    for alphabet in SCRIPTS.values():
        some = RNG.sample(alphabet, min(len(alphabet) - 3, 60))
        pieces.update(dict.fromkeys(some, 0))
        for _ in range(150):
            longer = RNG.choice(["", "\u2581"]) + "".join(RNG.choices(some, k=RNG.randint(1, 4)))
            pieces.update({longer[:n]: 0 for n in range(1, len(longer) + 1)})
    scores = {text: -i / 7 if is_bpe else -2 * len(text) - RNG.randrange(90) / 10
              for i, text in enumerate(sorted(pieces, key=len))}
    rows = [("<unk>", 0, UNKNOWN), *((text, score, NORMAL) for text, score in scores.items())]
    path.write_bytes(small_model(rows, 2 if is_bpe else 1))


def reference_of(path):
    """A function from texts to ids, or None."""
    try:
        if path.suffix == ".json":
            import tokenizers

            os.environ["TOKENIZERS_PARALLELISM"] = "false"
            t = tokenizers.Tokenizer.from_file(str(path))
            return lambda text: t.encode(text, add_special_tokens=False).ids
        import sentencepiece

        version = tuple(map(int, sentencepiece.__version__.split(".")[:3]))
        if version < (0, 2, 2):
            return None
        return sentencepiece.SentencePieceProcessor(model_file=str(path)).encode
    except ImportError:
        return None


# ---- Comparing ----


def tokmap(*arguments, stdin=None):
    done = run_program("tokmap", *arguments, input=stdin)
    expect_equal((done.returncode, done.stderr.decode()), (0, ""), "tokmap %s" % (arguments,))
    return done.stdout.decode()


def encode(path, text):
    return json.loads(tokmap("encode", "--tokenizer", path, stdin=json.dumps(text).encode() + b"\n"))


def pack(path, folder, documents, *options):
    """The ids of the documents, as text."""
    source, out = folder / "lines.txt", folder / "out"
    source.write_text("".join(text + "\n" for text in documents), encoding="utf-8")
    tokmap("pack", "-q", "-f", "--lines", "--tokenizer", path, "--eod", "none", *options, source,
           "-o", out)
    return tokmap("cat", out).splitlines()


def takes_any_size(path, texts, folder, threads):
    reference = reference_of(path)
    want = {name: encode(path, text) for name, text in texts.items()}
    for name, text in texts.items() if reference else ():
        expect(reference(text) == want[name], "%s: other ids than the reference" % name)
    for n_threads in threads:
        got = pack(path, folder, texts.values(), "-j", n_threads)
        for name, line in zip(texts, got):
            expect(array.array("I", map(int, line.split())) == array.array("I", want[name]),
                   "%s: other ids with -j %s than from encode" % (name, n_threads))
    return None if reference else "no package to compare with"


def test_vocabulary(name):
    def test():
        path = SHARED / "vocab" / name
        if not path.exists():
            raise Skip("%s not found" % path)
        texts = texts_with_blanks()
        if name != "t5-small.tokenizer.json":  # its words are encoded each for itself
            texts.update(texts_without_blanks())
        with tempfile.TemporaryDirectory() as folder:
            return takes_any_size(path, texts, pathlib.Path(folder), ["1" if VOCABULARIES.index(name) % 2 else "3"])

    return test


def test_made(is_bpe):
    def test():
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "made.model"
            make_model(path, is_bpe)
            texts = {**texts_with_blanks(), **texts_without_blanks()}
            if is_bpe:  # unknown characters in a row are one id
                del texts["emoji"], texts["base64"], texts["hexadecimal"]
            return takes_any_size(path, texts, pathlib.Path(folder), ["1", "3"])

    return test


def main():
    tests = [("made_unigram", test_made(False)), ("made_bpe", test_made(True))]
    if not os.environ.get("TOKMAP_SANITIZED"):
        tests += [(name.split(".")[0], test_vocabulary(name)) for name in VOCABULARIES]
    return run_tests([(name + "_takes_documents_of_any_size", test) for name, test in tests])


if __name__ == "__main__":
    sys.exit(main())
