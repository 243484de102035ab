#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares tokmap with the reference packages on the files of make_families.py.

usage: check_families.py NAME [N] [SEED]     compares N texts (50000): ids, with special tokens as text
                                             and matched, and decoded ids; a packed corpus, whose long
                                             documents tokmap cuts; --eod auto and --bos auto
       check_families.py --all [N] [JOBS]    every family, JOBS at a time: fails if any differs, if one is
                                             refused that REFUSED does not list, or the other way round
       check_families.py --refusals [NAME...]  tokmap's messages for the families that it refuses
Environment: TOKMAP_BUILD; FAMILIES and TOKMAP_SHARED as for make_families.py.
"""
import os

os.environ.setdefault("RAYON_NUM_THREADS", "1")
os.environ["TOKENIZERS_PARALLELISM"] = "false"
import json
import multiprocessing
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import oracle_reference
import oracle_sections
import oracle_texts
from make_families import FILES, PLAIN
from oracle_reference import first_difference, shrink
from ref_protocol import call, program

# The families that tokmap refuses, and which part of the file its message names. Also with .pairs.
REFUSED = {
    "nougat_regex": "Split: a back-reference at byte 57 in the regex [\\(\\)\\[",
    "seamless": "Replace: the regex [\\n\\r\\t] is not supported",
}
# Those whose documents have no place to cut, or few.
UNCUT = ("prefix_digits", "prefix_whole", "single_word", "single_word_nfc", "spm_word", "spm_word_flags",
         "spm_word_suffix", "superbpe_2")


def reference_of(folder, family):
    """Of oracle_reference."""
    path = folder / family["file"]
    if family["reference"] == "hf":
        return oracle_sections.hf_file(path)[2]
    if family["reference"] == "spm":
        return oracle_sections.spm_reference(path.read_bytes(), ["<s>", "</s>", "<unk>", "<sep>", "ab"])
    import oracle_tiktoken
    encoding = oracle_tiktoken.encoding(folder.name, family["regex"], oracle_tiktoken.read_ranks(path), {})
    return oracle_sections.tiktoken_reference(encoding, oracle_sections.nfc() if family["nfc"] else None)


# ---- tokmap ----

class Refused(Exception):
    pass


def tokmap(command, folder, family, lines, *options):
    rows, why = oracle_reference.tokmap(command, folder / family["file"], lines, *family.get("options", []), *options)
    if rows is None:
        raise Refused(why)
    return rows


def pack(folder, family, path, out, *options):
    """The ids of each document, as text."""
    done = subprocess.run([program("tokmap"), "pack", "-q", "-f", "--tokenizer", str(folder / family["file"]),
                           *family.get("options", []), *options, str(path), "-o", out], capture_output=True)
    if done.returncode:
        raise Refused(done.stderr.decode("utf-8", "replace").strip())
    return call("tokmap", "cat", out)[1].decode().split("\n")[:-1]


# ---- Texts ----

HAN = [0x2E80, 0x2E99, 0x2F00, 0x3005, 0x3007, 0x3021, 0x3029, 0x3038, 0x303B, 0x3400, 0x4DBF, 0x4E00, 0x9FA5, 0x9FA6,
       0x9FFF, 0xF900, 0xFA6D, 0xFA70, 0xFAD9, 0x16FE2, 0x16FE3, 0x16FF0, 0x20000, 0x2A6DF, 0x2A6E0, 0x2A700, 0x2B739,
       0x2B73F, 0x2B740, 0x2B81D, 0x2B820, 0x2B91F, 0x2B920, 0x2CEA1, 0x2CEB0, 0x2EBE0, 0x2EBF0, 0x2F800, 0x2FA1D, 0x30000,
       0x3134A, 0x31350, 0x323AF, 0x3006, 0x30FB, 0x30FC, 0x3099, 0x3031, 0xAC00, 0xD7A3, 0xD7A4, 0xD7FF, 0x0800, 0x3130, 0x318E]
BLOOM = list("(|.,!?…。，、।۔،[])") + [" "]
EXTRA = ["``", "''", "##", "##a", "[UNK]", "</w>", "<unk>", "<!dummy-prefix!>", "SPL1T-TH1S-Pl3A5E", "IMGIMGABZ", "<sentinel:12>",
         "\u0130", "\u0131", "\u03a3", "\u03c3", "\u03c2", "ΟΔΟΣ", "ΣΑΣ", "ß", "\u1e9e", "ŉ", "ǰ", "ﬀ", "ﬃ", "\u1f88", "\u2160",
         "\u24b6", "\u10a0", "\u13a0", "\uab70", "\u1c90", "\u10d0", "e\u0301", "é", "\u00c5", "\u212b", "\u0345", "\u0390", "\ufb1d", "\u05d0\u05b7",
         "\u0e33", "\u0eb3", "\u1100\u1161\u11a8", "\uac01", "\u3131", "\uffa1", "_", "a_b", "\u203f", "\u2040", "\uff3f",
         "\u200c", "\u200d", "क\u094d\u200dष", "\u0cb0\u0ccd\u200c", "\u00ad", "\u0600", "\u06dd", "\u180e", "\u2028", "\u2029", "\x0b", "\x0c", "\x1c",
         "\u00b2", "\u00bd", "\u2460", "\u3007", "\u4e00", "\u0661\u0662\u0663\u0664", "\U0001d7ce\U0001d7cf", "\u0bf0", "\u3021", "\u2488",
         "1234567", "12345678", "1,234,567.89", "a123456b", "123456\u0661", "1234\u0301", "12_345", "\u00b2345678", "2024-01-02",
         "\u24b6\u24d0", "\u0345a", "\u2071", "\u2c7c", "\U0001f130", "\u1cd0", "\u20dd", "\u0488", "\ufe0f", "\U000e0101",
         "i\u0307", "\u1e9b\u0323", "\u2581", "\u2581\u2581", " \u2581", "a\u2581b", "n't", " n't", " do not", " 's", " ' ", " .", " ?", "' re"]


class More(oracle_texts.Texts):
    def __init__(self, seed, marks):
        super().__init__(seed, marks, PLAIN)
        self.makers += [(2, self.han), (2, self.extra), (1, self.numbers), (1, self.bloom), (1, self.cased), (1, self.long_word), (1, self.spaced)]
        self.weights = [w for w, _ in self.makers]

    def han(self):
        return "".join(chr(self.rng.choice(HAN) + self.rng.choice((0, 0, 1))) for _ in range(self.rng.randint(1, 5)))

    def extra(self):
        return self.rng.choice(EXTRA)

    def numbers(self):
        rng = self.rng
        n = "".join(rng.choice("0123456789") for _ in range(rng.randint(1, 14)))
        return rng.choice(("", " ", "a", "_", "$", "-", "é", "\u4e00", ".")) + n + rng.choice(("", " ", "a", "_", "\u0301", "\u0661", "\u00b2", ".", "\u2460", "\n", "%"))

    def bloom(self):
        return "".join(self.rng.choice(BLOOM) for _ in range(self.rng.randint(1, 4)))

    def cased(self):
        word = self.rng.choice(oracle_texts.WORDS + EXTRA)
        return self.rng.choice((word.upper(), word.lower(), word.title(), word.swapcase()))

    def long_word(self):
        n = self.rng.choice((98, 99, 100, 101, 102, 150))
        return "".join(self.rng.choice("abcé\u0301\u4e00") for _ in range(n)) if self.rng.random() < .5 else self.rng.choice("aé\u0301x") * n

    def spaced(self):
        return " ".join(self.rng.choice(EXTRA) for _ in range(3))


def sweep(rng, n):
    """Code points of every category among neighbours of every kind."""
    out = []
    codes = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    low = codes[:0x32400 - 0x800]
    for c in rng.sample(low, min(n, len(low))) + rng.sample(codes, n // 10):
        c = chr(c)
        out.append(rng.choice((f"a{c}b 1{c}2\n{c} {c}{c}'{c}s  {c}\r\n.{c}A{c}", f"{c}e\u0301{c}!{c}{c}_{c} {c}1{c} \u4e00{c}\u4e00",
                               f"A{c}a{c}A 12{c}345 {c}\t{c}", c, c + c, " " + c, c + " ")))
    return out


def texts_for(name, n, seed, marks):
    rng = random.Random("%s %s" % (name, seed))
    makers = More("%s %s" % (name, seed), marks)
    n_sweep = n * 3 // 10
    texts = ["", " ", "\n", "a", "  "] + sweep(rng, n_sweep)
    texts += makers.many(n - len(texts))
    return [t.encode("utf-8", "replace").decode() for t in texts[:n]]


# ---- Comparing ----

def check_ids(name, folder, family, reference, texts, out):
    bad = 0
    for policy, encode_all in reference.encode.items():
        some = texts if policy == "text" else texts[: max(1000, len(texts) // 4)]
        def encode(texts):
            return tokmap("encode", folder, family, texts, "--specials", policy)

        got, wanted = encode(some), encode_all(some)
        wrong = [i for i in range(len(some)) if got[i] != wanted[i]]
        bad += len(wrong)
        out("%s, specials %s: %d of %d differ" % (name, policy, len(wrong), len(some)))
        for i in wrong[:2]:
            text = shrink(some[i], lambda shorter: first_difference(shorter, encode(shorter), encode_all(shorter)))
            out("  %s: tokmap %s, reference %s" % (ascii(text), encode([text])[0], encode_all([text])[0]))
    rows = wanted[: max(1000, len(texts) // 4)]
    back = tokmap("decode", folder, family, rows)
    want = reference.decode(rows)
    wrong = [i for i in range(len(rows)) if back[i] != want[i] and "\ufffd" not in want[i]]
    out("%s, decode: %d of %d differ" % (name, len(wrong), len(rows)))
    for i in wrong[:3]:
        out("  %s: tokmap %s, reference %s" % (rows[i][:20], ascii(back[i])[:100], ascii(want[i])[:100]))
    return bad + len(wrong)


# ---- A corpus ----

def corpus():
    """Real text; the last document is longer than what tokmap encodes at once."""
    rng = random.Random("corpus")
    slices = []
    while sum(map(len, slices)) < 700000:
        text = rng.choice(PLAIN)
        at = rng.randrange(len(text))
        slices.append(text[at: at + rng.choice((30, 300, 3000, 30000))])
        if rng.random() < .3:
            slices.append(rng.choice(oracle_texts.CODE + oracle_texts.COMPOSED + EXTRA) * rng.choice((1, 1, 20)))
    novel = (oracle_texts.SHARED / "text/mobydick_1MB.txt").read_text("utf-8")
    return [t for t in [*PLAIN, novel, "".join(slices)] if t]


def check_corpus(name, folder, family, reference, out):
    """Packed with the usual memory, and with so little that documents are cut every 128 KB."""
    documents = corpus()
    wanted = reference.encode["text"](documents)
    bad = 0
    with tempfile.TemporaryDirectory() as d:
        path = pathlib.Path(d) / "corpus.jsonl"
        path.write_text("".join(json.dumps({"text": t}, ensure_ascii=False) + "\n" for t in documents), "utf-8")
        for memory in ("64M",) if name.removesuffix(".pairs") in UNCUT else ("64M", "8M"):
            got = pack(folder, family, path, d + "/o", "--eod", "none", "--memory", memory)
            assert len(got) == len(documents), (len(got), len(documents))
            wrong = [i for i in range(len(documents)) if got[i] != " ".join(map(str, wanted[i]))]
            bad += len(wrong)
            out("%s, corpus of %d bytes, --memory %s: %d of %d documents differ"
                % (name, path.stat().st_size, memory, len(wrong), len(documents)))
            for i in wrong[:3]:
                ids = list(map(int, got[i].split()))
                at = next((k for k, pair in enumerate(zip(ids, wanted[i])) if pair[0] != pair[1]), 0)
                out("  document %d of %d characters, from id %s: tokmap %s, reference %s"
                    % (i, len(documents[i]), at, ids[at:][:8], wanted[i][at:][:8]))
    return bad


# ---- --eod auto and --bos auto ----

def check_ends(name, folder, family, out):
    bad = 0
    for role, option in (("eod", "--eod"), ("bos", "--bos")):
        wanted, others = family["expected"][role], ["--eod", "none"] if role == "bos" else []
        with tempfile.TemporaryDirectory() as d:
            path = pathlib.Path(d) / "a.txt"
            path.write_text("a")
            try:
                ids = pack(folder, family, path, d + "/o", *others, option, "auto")[0].split()
                got = int(ids[-1 if role == "eod" else 0])
            except Refused as e:  # it asks
                got = None if "choose" in str(e) else str(e)
        bad += got != wanted
        out("%s, %s auto: %s%s" % (name, option, got, "" if got == wanted else ", but expected %s" % wanted))
    return bad


# ---- Families ----

def family_of(name):
    return FILES / name, json.loads((FILES / name / "family.json").read_text())


def compare(name, n, seed=1, out=print):
    folder, family = family_of(name)
    began = time.monotonic()
    reference = reference_of(folder, family)
    try:
        bad = check_ids(name, folder, family, reference, texts_for(name, n, seed, reference.marks), out)
        bad += check_corpus(name, folder, family, reference, out) + check_ends(name, folder, family, out)
    except Refused as e:
        out("%s: refused: %s" % (name, e))
        bad = 1
    out("%s: %.1f s" % (name, time.monotonic() - began))
    return bad


def refusal(name):
    """What tokmap says of the family, or None."""
    folder, family = family_of(name)
    try:
        tokmap("encode", folder, family, [])
    except Refused as e:
        return str(e).replace(str(folder) + "/", "").partition("tokmap encode: tokenizer: ")[2]
    return None


def check_one(job):
    """Whether the family is as it should be, and what to print."""
    name, n = job
    expected, lines = REFUSED.get(name.removesuffix(".pairs")), []
    if not expected:
        good = compare(name, n, out=lines.append) == 0
    else:
        message = refusal(name)
        good = message is not None and expected in message
        lines.append("%s: %s" % (name, "refused: " + message[:160] if message else "taken, but REFUSED lists it"))
    return name, good, lines


def check_all(names, n, jobs):
    if not names:
        sys.exit("%s has no families: run make_families.py first" % FILES)
    bad = []
    with multiprocessing.Pool(jobs) as pool:
        for name, good, lines in pool.imap(check_one, [(name, n) for name in names]):
            print("\n".join(lines), flush=True)
            if not good:
                bad.append(name)
    print("%d families, %d of them refused on purpose; wrong: %s"
          % (len(names), sum(name.removesuffix(".pairs") in REFUSED for name in names), " ".join(bad) or "none"))
    return 1 if bad else 0


def main():
    words = sys.argv[1:]
    every = sorted(p.parent.name for p in FILES.glob("*/family.json"))
    if not words:
        print(__doc__)
        return 2
    if words[0] == "--refusals":
        for name in words[1:] or every:
            message = refusal(name)
            if message:
                print("%-24s %s" % (name, message[:260]))
        return 0
    n = int(words[1]) if len(words) > 1 else 50000
    if words[0] == "--all":
        return check_all(every, n, int(words[2]) if len(words) > 2 else 2)
    return 1 if compare(words[0], n, words[2] if len(words) > 2 else 1) else 0


if __name__ == "__main__":
    sys.exit(main())
