#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vocabularies.py FOLDER - what the tests of exactness read where there is no folder ../shared: the vocabularies that
packages carry or that caches of this machine have, texts of this repository, and the ids that the reference packages
give for them here and now. `make vocabularies` runs it."""

import base64
import importlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/oracles"))
# Each with the part of its files that is wanted, and the name that the tests know.
PACKAGES = {("mistral-common==1.13.1", "--only-binary=:all:"): {"tokenizer.model.v1": "mistral_v1.model", "240323.model.v3": "mistral_v3.model",
                                                                "tekken_240911.json": "tekken.json"},
            ("sentencepiece==0.2.3", "--no-binary=:all:"): {"test/botchan_en_unigram_1000.model": "spm_test_unigram_en.model",
                                                            "test/kyoto_ja_unigram_8000.model": "spm_test_ja.model"}}
# In the cache of the Hugging Face Hub.
REPOSITORIES = {"openai-community/gpt2": "gpt2", "EleutherAI/gpt-neox-20b": "gpt-neox-20b", "tiiuae/falcon-7b": "falcon",
                "microsoft/phi-2": "phi2", "microsoft/Phi-3-mini-4k-instruct": "phi3-mini", "google-t5/t5-small": "t5-small"}
TEKKEN_IDS = 131072 - 1000


def take_packages(folder):
    for (requirement, kind), files in PACKAGES.items():
        with tempfile.TemporaryDirectory() as work:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", kind, "-d", work]
            if subprocess.run([*pip, requirement]).returncode != 0:
                print(f"left out: {requirement} cannot be downloaded")
                continue
            path, = pathlib.Path(work).iterdir()
            archive = zipfile.ZipFile(path) if path.suffix == ".whl" else tarfile.open(path)
            names = archive.namelist() if path.suffix == ".whl" else archive.getnames()
            for part, name in files.items():
                source = next(one for one in names if one.endswith(part))
                data = archive.open(source) if path.suffix == ".whl" else archive.extractfile(source)
                (folder / name).write_bytes(data.read())


def take_caches(folder):
    home = os.environ.get("HF_HOME") or os.path.expanduser("~/.cache/huggingface")
    cache = pathlib.Path(os.environ.get("HF_HUB_CACHE") or os.path.join(home, "hub"))
    for repository, name in REPOSITORIES.items():
        found = sorted((cache / f"models--{repository.replace('/', '--')}").glob("snapshots/*/tokenizer.json"))
        if found:
            shutil.copy(found[-1], folder / f"{name}.tokenizer.json")


def divide_tekken(folder):
    """The ranks and the special tokens, as --pattern tekken takes them."""
    path = folder / "tekken.json"
    if path.exists():
        vocabulary = json.loads(path.read_bytes())["vocab"][:TEKKEN_IDS]
        lines = "".join(f"{one['token_bytes']} {1000 + one['rank']}\n" for one in vocabulary)
        (folder / "tekken.derived.tiktoken").write_text(lines)
        specials = {str(i): f"<SPECIAL_{i}>" for i in range(1000)}
        (folder / "tekken.derived.special.json").write_text(json.dumps({**specials, "0": "<unk>", "1": "<s>", "2": "</s>"}))
        path.unlink()


def write_texts(folder):
    folder.mkdir(exist_ok=True)
    for kind in ("md", "c", "py"):
        paths = sorted(path for room in ("docs", "src", "tests", "python") for path in (ROOT / room).rglob(f"*.{kind}"))
        (folder / f"{kind}.txt").write_bytes(b"\n".join(path.read_bytes() for path in paths)[:1 << 20])
    rows = [{"text": path.read_text(errors="ignore")} for path in sorted((ROOT / "docs").rglob("*.[15m]*")) if path.is_file()]
    (folder / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def cases():
    """Texts that are hard to split, and pieces of real ones."""
    import oracle_texts

    real = [text[at:at + 700] for text in oracle_texts.plain_texts() for at in range(0, min(len(text), 40_000), 4000)]
    return [*oracle_texts.EXTRA, *oracle_texts.BLOOM, *real]


def references(vocabularies):
    """{name of a golden file: a function from a text to its ids}, of the packages and files that are here."""
    from test_golden import GOLDEN

    found = {}
    for name, (file, _, _) in GOLDEN.items():
        path = vocabularies / file
        if not path.exists():
            continue
        if path.suffix == ".model":
            model = importlib.import_module("sentencepiece").SentencePieceProcessor(model_file=str(path))
            found[name] = lambda text, model=model: None if set(text) & set("\r\n\0") else model.encode(text)
        elif path.suffix == ".json" and name != "gpt2":
            model = importlib.import_module("tokenizers").Tokenizer.from_file(str(path))
            found[name] = lambda text, model=model: model.encode(text, add_special_tokens=False).ids
        elif name == "tekken":
            from oracle_patterns import TEKKEN

            lines = (line.split() for line in path.read_bytes().splitlines())
            ranks = {base64.b64decode(token): int(rank) - 1000 for token, rank in lines}
            model = importlib.import_module("tiktoken").Encoding("tekken", pat_str=TEKKEN, mergeable_ranks=ranks, special_tokens={})
            found[name] = lambda text, model=model: [1000 + i for i in model.encode_ordinary(text)]
    return found


def main(folder):
    vocabularies, golden = folder / "vocab", folder / "golden"
    for one in (vocabularies, golden):
        shutil.rmtree(one, ignore_errors=True)
        one.mkdir(parents=True)
    take_packages(vocabularies)
    take_caches(vocabularies)
    divide_tekken(vocabularies)
    write_texts(folder / "text")
    os.environ["TOKMAP_SHARED"] = str(folder)
    texts = cases()
    (golden / "cases.jsonl").write_text("".join(json.dumps({"case": i, "text": text}) + "\n" for i, text in enumerate(texts)))
    for name, ids_of in references(vocabularies).items():
        rows = [{"case": i, "ids": ids} for i, ids in enumerate(map(ids_of, texts)) if ids is not None]
        (golden / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        print(f"{name}: {len(rows)} texts")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests/tokenizer"))
    main(pathlib.Path(sys.argv[1]).resolve())
