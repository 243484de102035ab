#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap.Tokenizer: its ids are those of `tokmap encode`, in all forms of texts, with any number of threads and
processes; what is refused; what stays behind."""

import array
import ctypes
import gc
import json
import multiprocessing
import os
import pathlib
import pickle
import random
import re
import subprocess
import sys
import threading

from package import BUILD, ROOT, raises
from ref_protocol import Skip, run_in_folders

SHARED = pathlib.Path(os.environ.get("TOKMAP_SHARED", ROOT.parent / "shared"))

import numpy as np
SHARED = pathlib.Path(os.environ.get("TOKMAP_SHARED", ROOT.parent / "shared"))
import tokmap
from tokmap._data import tokenizer as _tokenizer

PARTS = ["the ", "a", " in", "\n", "1234 ", "\u00e9", "\u4e00\u3002", "\U0001f600", "<|endoftext|>", "e\u0301", "  ", "\t", ".",
         "Hello", "\u0915\u094d"]
BY_FAMILY = {
    "gpt2": ("gpt2.tokenizer.json", {}),
    "cl100k": ("cl100k_base.tiktoken", {"pattern": "cl100k"}),
    "deepseek": ("deepseek_v3.derived.tiktoken",
                 {"pattern": "deepseek3", "specials_file": "deepseek_v3.derived.special.json"}),
    "gpt-neox": ("gpt-neox-20b.tokenizer.json", {}),
    "t5": ("t5-small.tokenizer.json", {}),
    "mistral": ("mistral_v1.model", {}),
    "unigram": ("spm_test_unigram_en.model", {}),
}


def random_texts(n, longest=200):
    rng = random.Random(n)
    return ["".join(rng.choice(PARTS) for _ in range(rng.randrange(longest))) for _ in range(n)]


def write_words(place):
    """A tokenizer of words, which does not take bytes."""
    vocab = {"[U]": 0, "the": 1, "a": 2, "##a": 3, "\u4e00": 4, "</s>": 5}
    (place / "tokenizer.json").write_text(json.dumps({
        "added_tokens": [{"id": 5, "content": "</s>", "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": True}],
        "normalizer": None, "pre_tokenizer": {"type": "Whitespace"},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": False},
        "model": {"type": "WordPiece", "unk_token": "[U]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": vocab}}))
    return tokmap.Tokenizer(place / "tokenizer.json")


def parts_of(encoded):
    ids, offsets = encoded
    return [ids[a:b].tolist() for a, b in zip(offsets[:-1], offsets[1:])]


def encode_by_command(options, texts):
    lines = b"".join(json.dumps(text).encode() + b"\n" for text in texts)
    said = subprocess.run([BUILD / "tokmap", "encode", *options], input=lines, capture_output=True, check=True).stdout
    return [json.loads(line) for line in said.splitlines()]


def a_folder_stands_for_its_file(folder):
    """As of a repository of the Hub; metadata and the id of a dataset are those of the file."""
    model = folder / "model.v1"
    model.mkdir()
    (model / "config.json").write_text("{}")
    error = raises(IsADirectoryError, tokmap.Tokenizer, model)
    assert "model.v1: is a folder without tokenizer.json, tokenizer.model, tekken.json and vocab.json" in str(error), error
    wanted = write_words(model).encode("the a</s>")
    (model / "vocab.json").write_text("{}")
    assert (tokmap.Tokenizer(model).encode("the a</s>") == wanted).all()
    (folder / "a.txt").write_text("the a")
    metadata = []
    for name in ("model.v1", "model.v1/", "model.v1/tokenizer.json"):
        tokmap.pack(str(folder / "a.txt"), f"{folder}/{name}", folder / "P", eod="none", replace=True)
        metadata.append(tokmap.open(folder / "P").metadata["tokenizer"])
    assert metadata[0] == metadata[1] == metadata[2] and metadata[0]["name"] == "tokenizer.json", metadata
    said = subprocess.run([BUILD / "tokmap", "encode", "--tokenizer", "gpt2", "-"], input=b"", capture_output=True).stderr.decode()
    assert said.endswith("gpt2: No such file or directory; a repository of the Hub is OWNER/NAME, as in hf://openai-community/gpt2\n"), said


def ids_are_those_of_the_command(folder):
    n = 0
    texts = ["", "x", *random_texts(60), "".join(random_texts(40, 2000))]
    for name, (file, more) in BY_FAMILY.items():
        path = SHARED / "vocab" / file
        if not path.exists():
            continue
        more = {key: str(SHARED / "vocab" / value) if key == "specials_file" else value
                for key, value in more.items()}
        tokenizer = tokmap.Tokenizer(path, **more)
        options = ["--tokenizer", path]
        for key, value in more.items():
            options += ["--" + key.replace("_", "-"), value]
        for specials in ("text", "match"):
            wanted = encode_by_command([*options, "--specials", specials], texts)
            for n_threads in (0, 1, 3):
                found = parts_of(tokenizer.encode_batch(texts, specials=specials, threads=n_threads))
                assert found == wanted, f"{name}: {specials}, {n_threads} threads"
        n += 1
    if n == 0:
        raise Skip(f"there are no files in {SHARED / 'vocab'}")
    return f"{n} families"


def all_forms_of_texts_are_the_same(folder):
    tokenizer = write_words(folder)
    texts = ["the a", "", "aa \u4e00 the", "a" * 50]
    data = [text.encode() for text in texts]
    wanted = parts_of(tokenizer.encode_batch(texts))
    assert wanted == [tokenizer.encode(text).tolist() for text in texts] == [[1, 2], [], [2, 3, 4, 1], [2] + 49 * [3]]
    offsets = np.cumsum([0, *map(len, data)])
    joined = b"".join(data)
    forms = [tuple(texts), iter(texts), data, [data[0], *texts[1:]], [texts[0], *data[1:]], map(bytearray, data),
             np.array(texts), np.array(texts, object),
             [data[0], *map(memoryview, data[1:])]]
    for form in forms:
        assert parts_of(tokenizer.encode_batch(form)) == wanted, form
    wide = [memoryview(array.array("H", [0x6161, 0x6161]))]  # two items, four bytes
    assert parts_of(tokenizer.encode_batch([b"a", *wide])) == [[2], [2, 3, 3, 3]]
    buffers = [joined, bytearray(joined), memoryview(joined), np.frombuffer(joined, np.uint8)]
    for buffer in buffers:
        for kind in (np.int32, np.int64, np.uint32):
            assert parts_of(tokenizer.encode_batch(buffer, offsets=offsets.astype(kind))) == wanted
    assert parts_of(tokenizer.encode_batch(joined, offsets=[0, 3])) == [[1]]
    assert parts_of(tokenizer.encode_batch([])) == [] == parts_of(tokenizer.encode_batch(b"", offsets=[0]))
    assert parts_of(tokenizer.encode_batch(b"", offsets=[0, 0, 0])) == [[], []]


def arrays_are_of_the_library_and_live_alone(folder):
    tokenizer = write_words(folder)
    ids, offsets = tokenizer.encode_batch(["the a"] * 1000)
    assert (ids.dtype, offsets.dtype, ids.shape, offsets.shape) == (np.uint32, np.int64, (2000,), (1001,))
    assert ids.flags.writeable and not ids.flags.owndata
    part = ids[10:12]
    del ids, offsets, tokenizer
    gc.collect()
    assert part.tolist() == [1, 2]


def text_comes_back(folder):
    tokenizer = tokmap.Tokenizer("bytes")
    for text in ["", "x", *random_texts(50)]:
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text == tokenizer.decode(ids.tolist()) == tokenizer.decode(tuple(ids))
        assert tokenizer.decode_bytes(ids.astype(np.int64)) == text.encode()
    ids = tokenizer.encode("\u00e9")[:1]
    assert (tokenizer.decode(ids), tokenizer.decode_bytes(ids)) == ("\ufffd", b"\xc3")
    raises(UnicodeDecodeError, tokenizer.decode, ids, errors="strict")
    words = write_words(folder)
    assert words.decode([1, 2, 3]) == "the aa"
    assert (words.token(3), words.find("##a"), words.find(b"</s>"), words.find("x")) == (b"##a", 3, 5, None)
    for wrong in (6, -1, 2**32):
        raises(IndexError, words.token, wrong)


def offsets_of_tokens(folder):
    tokenizer = tokmap.Tokenizer("bytes")
    texts = ["", "x", *random_texts(50)]
    for text in texts:
        ids, offsets = tokenizer.encode(text, offsets=True)
        assert ids.tolist() == tokenizer.encode(text).tolist() == tokenizer.encode(text, offsets=False).tolist()
        assert offsets.shape == (len(ids), 2) and offsets.dtype == np.int64
        assert offsets.tolist() == [[i, i + 1] for i in range(len(text.encode()))]
    ids, offsets, ranges = tokenizer.encode_batch(texts, token_offsets=True)
    assert [part for text in texts for part in tokenizer.encode(text, offsets=True)[1].tolist()] == ranges.tolist()
    assert parts_of((ids, offsets)) == parts_of(tokenizer.encode_batch(texts))
    assert len(tokenizer.encode_batch([], token_offsets=True)[2]) == 0
    part = ranges[5:7]
    del ids, offsets, ranges
    gc.collect()
    assert (part[:, 1] - part[:, 0]).tolist() == [1, 1]
    why = raises(tokmap.UnsupportedError, write_words(folder).encode, "the a", offsets=True)
    assert str(why).endswith("tokenizer.json: cannot give offsets: its tokens are not written as in the text")


def facts_and_pickle(folder):
    words = write_words(folder)
    assert (words.vocab_size, words.eod_id, words.eod_is_guess, words.eod_reason, words.bos_id) == (6, 5, True, None, None)
    assert (words.family, words.takes_bytes, words.unicode_version) == ("WordPiece", False, "16.0.0")
    assert repr(words) == f"<tokmap.Tokenizer {str(folder / 'tokenizer.json')!r}: WordPiece, 6 ids, eod 5>"
    (folder / "generation_config.json").write_text('{"eos_token_id": [1, 2]}')
    rivals = write_words(folder)
    assert rivals.eod_id is None and '"the" (1, generation_config.json) and "a" (2, ' in rivals.eod_reason
    assert "no eod" in repr(rivals)
    before = os.getcwd()
    os.chdir(folder)
    try:
        copy = pickle.dumps(tokmap.Tokenizer("tokenizer.json"))
    finally:
        os.chdir(before)
    assert pickle.loads(copy).encode("the a").tolist() == [1, 2]
    assert pickle.loads(pickle.dumps(tokmap.Tokenizer("bytes"))).encode("a").tolist() == [97]


def what_is_wrong_is_named(folder):
    words = write_words(folder)
    error = raises(FileNotFoundError, tokmap.Tokenizer, folder / "none.json")
    assert "none.json" in str(error) and isinstance(error, tokmap.Error)
    (folder / "empty").mkdir()
    raises(IsADirectoryError, tokmap.Tokenizer, folder / "empty")
    (folder / "x.json").write_text("{}")
    assert "x.json: this is JSON, but not" in str(raises(tokmap.UnsupportedError, tokmap.Tokenizer, folder / "x.json"))
    assert "pattern works only" in str(raises(ValueError, tokmap.Tokenizer, "bytes", pattern="gpt2"))
    raises(ValueError, tokmap.Tokenizer, "a\0b")
    assert str(raises(ValueError, words.encode_batch, [b"a", b"a\xff"])) == "byte 1 of text number 1 is not valid UTF-8"
    assert "the special token </s>" in str(raises(ValueError, words.encode, "a </s>", specials="error"))
    assert words.encode("a </s>", specials="match").tolist() == [2, 5]
    assert words.encode("a </s>", specials="drop").tolist() == [2]
    raises(UnicodeEncodeError, words.encode, "\ud800")
    assert "'all' is not one of text, match" in str(raises(ValueError, words.encode, "a", specials="all"))
    assert "threads is -1" in str(raises(ValueError, words.encode_batch, ["a"], threads=-1))
    for wrong in (5, None, ["a", 5], [b"a", None]):
        raises(TypeError, words.encode_batch, wrong)
    raises(TypeError, words.encode, 5)
    raises(TypeError, words.encode_batch, "a text")
    raises(TypeError, words.encode_batch, b"a text")
    for offsets in ([], 5, [[0, 1]], [0.0, 1.0], [0, 2, 1], [-1, 2], [0, 4], ["a"]):
        raises(ValueError, words.encode_batch, b"abc", offsets=offsets)
    assert "id number 1: the tokenizer tokenizer.json has no token with the id 77" in str(
        raises(ValueError, words.decode, [1, 77]))
    raises(ValueError, words.decode, [-1])
    raises(ValueError, words.decode, [2**32])
    for wrong in ([1.5], [[1]], "abc"):
        raises(TypeError, words.decode, wrong)


def threads_use_one_tokenizer(folder):
    tokenizer = tokmap.Tokenizer("bytes")
    texts = random_texts(300)
    wanted, found = parts_of(tokenizer.encode_batch(texts)), []
    threads = [threading.Thread(target=lambda: found.append(parts_of(tokenizer.encode_batch(texts, threads=2)) == wanted))
               for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == 6 * [True]


def _encode_in_child(tokenizer, texts, out):
    out.put(parts_of(tokenizer.encode_batch(texts)))


def processes_use_a_tokenizer(folder):
    tokenizer, texts = tokmap.Tokenizer("bytes"), random_texts(300)
    wanted = parts_of(tokenizer.encode_batch(texts))
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        out = context.Queue()
        child = context.Process(target=_encode_in_child, args=(tokenizer, texts, out))
        child.start()
        assert out.get(timeout=60) == wanted, method
        child.join()


def results_are_freed(folder):
    tokenizer = tokmap.Tokenizer("bytes")
    text = "x" * (1 << 22)

    def resident():
        return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    for i in range(30):
        if i == 5:
            before = resident()
        tokenizer.decode(tokenizer.encode(text))
    assert resident() < before + (64 << 20), f"{(resident() - before) >> 20} MiB more"


def metadata_of(tokenizer):
    """What tokmap_tokenizer_metadata gives a packer in C."""
    text, n_bytes, error = ctypes.c_char_p(), ctypes.c_size_t(), _tokenizer.ErrorDetail()
    status = _tokenizer._library().tokmap_tokenizer_metadata(
        ctypes.c_void_p(tokenizer._handle.pointer.value), ctypes.byref(text), ctypes.byref(n_bytes), ctypes.byref(error))
    assert status == 0, error.text
    assert text.value == ctypes.string_at(text, n_bytes.value)  # with a NUL after it
    return text.value.decode()


def a_packer_of_its_own_states_the_tokenizer_as_pack_does(folder):
    (folder / "a.txt").write_text("the a")
    cache = folder / "models--owner--name/snapshots/0123abcd"
    cache.mkdir(parents=True)
    write_words(folder)
    for path in (folder / 'odd "\u00e9\u202e.json', cache / "tokenizer.json"):
        path.write_bytes((folder / "tokenizer.json").read_bytes())
    names = ["bytes", folder / "tokenizer.json", folder / 'odd "\u00e9\u202e.json', cache / "tokenizer.json"]
    for name in names:
        tokmap.pack(str(folder / "a.txt"), str(name), folder / "P", eod="none", replace=True)
        packed = tokmap.open(folder / "P")
        said = metadata_of(tokmap.Tokenizer(name))
        assert json.loads(said) == packed.metadata["tokenizer"], said
        assert f'"tokenizer": {said}'.encode() in (folder / "P.tmi").read_bytes(), said
        with tokmap.Writer(folder / "Q", packed.vocab_size, replace=True) as writer:
            writer.document(tokmap.Tokenizer(name).encode("the a"))
            writer.set_metadata({"tokenizer": json.loads(said)})
        tokmap.open([folder / "P", folder / "Q"])
        shown = [subprocess.run([BUILD / "tokmap", "info", folder / one], capture_output=True, check=True, text=True).stdout
                 for one in "PQ"]
        line = re.search("^tokenizer: .*$", shown[0], re.M)
        assert line and "not known" not in line[0], shown
        assert line[0] in shown[1] or "odd" in line[0], shown  # Python writes other escapes in the second
    with tokmap.Writer(folder / "other", packed.vocab_size) as writer:
        writer.document([1])
        writer.set_metadata({"tokenizer": json.loads(metadata_of(tokmap.Tokenizer("bytes")))})
    raises(tokmap.MismatchError, tokmap.open, [folder / "P", folder / "other"])


def structs_are_those_of_the_header(folder):
    """Offsets and sizes by abi.txt, which test_exports.sh compares with the header."""
    places = re.findall(r"^(\S+) at (\d+), (\d+) bytes", (ROOT / "tests/house/abi.txt").read_text(), re.M)
    known = {name: f"{offset} {size}" for name, offset, size in places}
    names = {"tokmap_tokenizer_options": "TokenizerOptions", "tokmap_text": "TokenText",
             "tokmap_encode_options": "EncodeOptions", "tokmap_encoding": "Encoding",
             "tokmap_tokenizer_info": "TokenizerInfo"}
    for c_name, name in names.items():
        struct = getattr(_tokenizer, name)
        fields = [key.partition(".")[2] for key in known if key.startswith(c_name + ".")]
        assert sorted(fields) == sorted(field for field, _ in struct._fields_), name
        for field, _ in struct._fields_:
            place = getattr(struct, field)
            assert known[f"{c_name}.{field}"] == f"{place.offset} {place.size}", f"{name}.{field}"
    header = (ROOT / "include/tokmap_tokenizer.h").read_text()
    declared = set(re.findall(r"\b(tokmap_\w+)\(", header))
    assert set(_tokenizer.TOKENIZER_SIGNATURES) <= declared, set(_tokenizer.TOKENIZER_SIGNATURES) - declared


if __name__ == "__main__":  # a spawned process imports this file
    sys.exit(run_in_folders("tokenizer_"))
