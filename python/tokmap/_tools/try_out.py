# SPDX-License-Identifier: Apache-2.0
"""tokmap try: ids beside those of the reference package, and a pack and a training that are killed and resumed."""

import contextlib
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from .._c.errors import Error
from .._c.find import find_program
from .._data.dataset import Dataset
from .._data.dataset import open as open_dataset
from .._data.pack import run_pack
from .hub import find_tokenizer
from .terminal import Given, Refused, WrongUse, ends_as_program

_MOST_BYTES = 64_000_000
_REFERENCE_SECONDS = 10.0  # encoding by the package ends after so long
_BATCH_BYTES = 2_000_000   # of texts that are given to it at once
_TRIES = 5
_LEAST_SECONDS, _LEAST_BYTES = 0.05, 1_000_000  # for a rate
_STEPS, _KILLED_AT, _SAVED_EACH = 200, 100, 10


class _Differs(Exception):
    """Something is not what it should be: the exit status is 1."""


class _NotCompared(Exception):
    """There is nothing to compare the ids with."""


# ---- The reference ----


class _Reference(NamedTuple):
    name: str  # with its version
    specials: str  # what tokmap does with special tokens, to be like it
    encode: Callable[[List[str]], Sequence[Sequence[int]]]


def _tokenizers(path: str) -> _Reference:
    package = importlib.import_module("tokenizers")
    model = package.Tokenizer.from_file(path)
    return _Reference(f"tokenizers {package.__version__}", "match",
                      lambda texts: [one.ids for one in model.encode_batch(texts, add_special_tokens=False)])


def _sentencepiece(path: str) -> _Reference:
    package = importlib.import_module("sentencepiece")
    model = package.SentencePieceProcessor(model_file=path)
    return _Reference(f"sentencepiece {package.__version__}", "text",
                      lambda texts: model.encode(texts, num_threads=os.cpu_count() or 1))


def _tiktoken(path: str, pattern: Optional[str]) -> _Reference:
    """pattern: a regular expression, or a name for which tiktoken has one."""
    package, load = importlib.import_module("tiktoken"), importlib.import_module("tiktoken.load")
    public: Any = importlib.import_module("tiktoken_ext.openai_public")
    ranks = load.load_tiktoken_bpe(path)
    named = {"gpt2": "r50k_base", "r50k": "r50k_base", "p50k": "p50k_base", "cl100k": "cl100k_base", "o200k": "o200k_base"}
    expression = pattern or ""
    if expression in named:
        kept, public.load_tiktoken_bpe = public.load_tiktoken_bpe, lambda *_, **__: ranks  # else it uses the network
        try:
            expression = getattr(public, named[expression])()["pat_str"]
        finally:
            public.load_tiktoken_bpe = kept
    elif expression.replace("-", "").isalnum():
        raise _NotCompared(f"tiktoken has no pattern {expression}, but takes a regular expression")
    model = package.Encoding("tokmap-try", pat_str=expression, mergeable_ranks=ranks, special_tokens={})
    return _Reference(f"tiktoken {package.__version__}", "text",
                      lambda texts: model.encode_ordinary_batch(texts, num_threads=os.cpu_count() or 1))


def _reference(path: str, pattern: Optional[str]) -> Tuple[Optional[_Reference], str]:
    """The package that has the ids of this file; None: and why there is none."""
    name = os.path.basename(path)
    try:
        if name.endswith(".model") and pattern is None:
            return _sentencepiece(path), ""
        if name.endswith((".tiktoken", ".model")):
            return _tiktoken(path, pattern), ""
        if name.endswith(".json") and name not in ("tekken.json", "vocab.json"):
            return _tokenizers(path), ""
    except ModuleNotFoundError as error:
        return None, f"no package {error.name} here"
    except _NotCompared as error:
        return None, str(error)
    except Exception as error:  # of the package
        return None, f"the package cannot read it: {error}"
    return None, f"no package is known for {name}"


# ---- Ids ----


def _compare(reference: _Reference, texts: List[str], found: Dataset) -> Dict[str, Any]:
    """As many documents as fit into the time, in their order."""
    n_documents = n_bytes = n_ids = 0
    seconds = 0.0
    while n_documents < len(texts) and seconds < _REFERENCE_SECONDS:
        end, size = n_documents, 0
        while end < len(texts) and size < _BATCH_BYTES:
            size += len(texts[end].encode())
            end += 1
        started = time.perf_counter()
        try:
            wanted = reference.encode(texts[n_documents:end])
        except Exception as error:  # of the package
            raise _NotCompared(f"{reference.name} failed: {error}") from None
        seconds += time.perf_counter() - started
        for i, ids in zip(range(n_documents, end), wanted):
            ours = found[i].tolist()
            if ours != list(ids):
                raise _Differs(_difference(reference.name, texts[i], ours, list(ids)))
            n_ids += len(ours)
        n_documents, n_bytes = end, n_bytes + size
    return {"package": reference.name, "n_documents": n_documents, "n_tokens": n_ids, "text_bytes": n_bytes, "seconds": seconds}


def _difference(name: str, text: str, ours: List[int], theirs: List[int]) -> str:
    at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
    begin = max(at - 3, 0)
    return (f"other ids than those of {name}, from token {at} of this text on: {text[:300]!r}\n"
            f"  tokmap: ...{ours[begin:at + 8]}, {len(ours)} ids\n  {name}: ...{theirs[begin:at + 8]}, {len(theirs)} ids\n"
            "Please report this with the tokenizer and the text.")


# ---- Kills ----


def _file_bytes(*names: str) -> List[bytes]:
    found = []
    for name in names:
        with open(name, "rb") as file:
            found.append(file.read())
    return found


def _kill_after_checkpoints(command: List[str], journal: str, n_checkpoints: int) -> bool:
    """Whether it was killed after so many checkpoints, and not at its end."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          env={**os.environ, "TOKMAP_CHECKPOINT_MS": "10"}) as child:
        try:
            sizes: Set[int] = set()
            while child.poll() is None and len(sizes) < n_checkpoints:
                with contextlib.suppress(OSError):
                    sizes.add(os.path.getsize(journal))
                time.sleep(0.0005)
            return child.returncode is None
        finally:
            child.kill()


def _kill_a_pack(folder: str, text: str, options: List[str], wanted: str) -> int:
    """How many documents a killed run had kept; 0: each run had kept none, or all."""
    output, n_documents = os.path.join(folder, "killed"), 0
    options = [*options, f"--output={output}", "--memory=8M", "--force", "--quiet"]  # little memory: many checkpoints
    for i in range(_TRIES):
        command = [find_program("tokmap"), "pack", text, *options, "--threads=1", "--restart"]
        if not _kill_after_checkpoints(command, output + ".tmj.partial", max(3 - i, 1)):
            continue
        report = run_pack(options, [text])
        if _file_bytes(output + ".bin", output + ".tmi") != _file_bytes(wanted + ".bin", wanted + ".tmi"):
            raise _Differs("a pack that was killed and resumed wrote other bytes")
        n_documents = int(report["n_resumed_documents"])
        if 0 < n_documents < report["n_documents"]:
            return n_documents
    return 0


def train(arguments: Sequence[str]) -> None:
    """A process that trains: it notes each step, and saves a state now and then. Killed in the middle if it is told so."""
    from .._loader.loader import Loader
    from .._loader.options import Order

    data, length, log, checkpoint, killed_at = arguments
    with Loader(data, int(length), 4, seed=1, order=Order(drop_last=True)) as loader, open(log, "a", encoding="utf-8") as out:
        step = 0
        if os.path.exists(checkpoint):
            with open(checkpoint, "rb") as file:
                saved = file.read()
            step = int.from_bytes(saved[:8], "little")
            loader.restore(saved[8:])
        started = time.perf_counter()
        for batch in loader:
            if step == 0:
                print(f"first {time.perf_counter() - started:.6f}", file=out)
            print(f"step {step} {batch.sample_ids.tolist()} {zlib.crc32(batch['inputs'].tobytes())}", file=out, flush=True)
            step += 1
            if step == int(killed_at):
                os.kill(os.getpid(), signal.SIGKILL)
            if step == _STEPS:
                return
            if step % _SAVED_EACH == 5:
                with open(checkpoint + ".new", "wb") as file:
                    file.write(step.to_bytes(8, "little") + batch.state)
                os.replace(checkpoint + ".new", checkpoint)


def _run_training(folder: str, name: str, data: str, length: int, killed_at: int) -> List[str]:
    """The lines of the log."""
    log, checkpoint = os.path.join(folder, name + ".log"), os.path.join(folder, name + ".state")
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    code = f"import sys; sys.path.insert(0, {package!r}); from tokmap._tools.try_out import train; train(sys.argv[1:])"
    done = subprocess.run([sys.executable, "-c", code, data, str(length), log, checkpoint, str(killed_at)],
                          stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode != (-signal.SIGKILL if killed_at else 0):
        raise Refused(f"the training ended with {done.returncode}: {done.stderr.decode(errors='replace').strip()}")
    with open(log, encoding="utf-8") as file:
        return file.read().splitlines()


def _kill_a_training(folder: str, data: str, n_tokens: int) -> Optional[Dict[str, Any]]:
    """None: there is too little text."""
    if n_tokens < 8:
        return None
    length = next(n for n in (1024, 256, 64, 16, 1) if n == 1 or n * 4 * _STEPS < n_tokens)
    whole = _run_training(folder, "whole", data, length, 0)
    before = _run_training(folder, "killed", data, length, _KILLED_AT)
    steps = [line for line in _run_training(folder, "killed", data, length, 0) if line.startswith("step ")]
    wanted = [line for line in whole if line.startswith("step ")]
    resumed = steps[_KILLED_AT:]
    begun_at = int(resumed[0].split()[1])
    if steps[:_KILLED_AT] != wanted[:_KILLED_AT] or resumed != wanted[begun_at:]:
        raise _Differs("a training that was killed and resumed had other samples or tokens")
    return {"sequence_length": length, "first_batch_s": float(before[0].split()[1]), "killed_at": _KILLED_AT, "resumed_at": begun_at,
            "steps": _STEPS}


# ---- All ----


def _take_texts(given: Given, folder: str) -> List[str]:
    """The documents of a part of the text: packed as bytes, so that every format is read as pack reads it. Long ones are
    cut, because packages take long for them."""
    if "-" in given.operands[1:]:
        raise WrongUse("-: give files: the text is read more than once")
    place = os.path.join(folder, "bytes")
    options = [f"--output={place}", "--tokenizer=bytes", "--eod=none", f"--limit-tokens={_MOST_BYTES}", "--quiet"]
    options += [f"--field={given.field}"] if given.field is not None else []
    try:
        run_pack([*options, *(["--download"] if given.download else [])], given.operands[1:])
    except Error as error:
        error.__notes__ = []  # commands that name a folder of which nothing stays
        raise
    with open_dataset(place) as ds:
        texts: List[str] = []
        n_bytes = 0
        for i in range(len(ds)):
            text = bytes(ds[i][:_MOST_BYTES - n_bytes].astype("u1")).decode(errors="ignore")
            n_bytes += len(text.encode())
            texts += [text[at:at + _BATCH_BYTES] for at in range(0, len(text), _BATCH_BYTES)] or [""]
    os.remove(place + ".bin")
    os.remove(place + ".tmi")
    return texts


@contextlib.contextmanager
def _folder(name: Optional[str]) -> Iterator[str]:
    """The folder of the user, or one of which nothing stays, also after a signal that asks to end."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda got, _: sys.exit(128 + got))
    if name is not None:
        os.makedirs(name, exist_ok=True)
        if os.listdir(name):
            raise Refused(f"{name}: is not empty")
        yield name
        return
    folder = tempfile.mkdtemp(prefix="tokmap-try-")
    try:
        yield folder
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # all that is left to do takes a moment
        shutil.rmtree(folder, ignore_errors=True)


def _file_of(tokenizer: str) -> str:
    """The file of a tokenizer that pack has opened."""
    if os.path.isdir(tokenizer):
        names = ("tokenizer.json", "tokenizer.model", "tekken.json", "vocab.json")
        return next(path for path in (os.path.join(tokenizer, name) for name in names) if os.path.exists(path))
    return tokenizer if os.path.exists(tokenizer) else find_tokenizer(tokenizer)


def _try(given: Given, folder: str) -> Dict[str, Any]:
    started = time.perf_counter()
    tokenizer = given.operands[0]
    texts = _take_texts(given, folder)
    text, output = os.path.join(folder, "text.jsonl"), os.path.join(folder, "packed")
    with open(text, "w", encoding="utf-8") as out:
        out.writelines(json.dumps({"text": one}, ensure_ascii=False) + "\n" for one in texts)
    options = [f"--tokenizer={tokenizer}", "--eod=none", "--format=jsonl", *(["--download"] if given.download else [])]
    options += [f"--pattern={given.pattern}"] if given.pattern is not None else []
    run_pack([*options, f"--output={output}", "--limit-documents=1", "--quiet"], [text])  # what is wrong with it, first
    reference, why_not = (None, "bytes are their own ids") if tokenizer == "bytes" else _reference(_file_of(tokenizer), given.pattern)
    options.append(f"--specials={reference.specials if reference else 'text'}")
    report = run_pack([*options, f"--output={output}", "--force", "--quiet"], [text])
    with open_dataset(output) as ds:
        try:
            compared = _compare(reference, texts, ds) if reference else None
        except _NotCompared as error:
            compared, why_not = None, str(error)
    return {"n_documents": report["n_documents"], "text_bytes": report["text_bytes"], "n_tokens": report["n_tokens"],
            "token_file_bytes": os.path.getsize(output + ".bin"), "pack_seconds": report["seconds"], "n_threads": report["n_threads"],
            "compared": compared, "not_compared": why_not or None, "n_kept_documents": _kill_a_pack(folder, text, options, output),
            "training": _kill_a_training(folder, output, report["n_tokens"]), "seconds": time.perf_counter() - started}


def _rows(found: Dict[str, Any], folder: Optional[str]) -> Iterator[Tuple[str, str]]:
    compared, training, seconds = found["compared"], found["training"], found["pack_seconds"]
    text_bytes, tokens = found["text_bytes"], found["n_tokens"]
    measured = seconds >= _LEAST_SECONDS and text_bytes >= _LEAST_BYTES
    plural = "s" * (found["n_documents"] != 1)
    yield "text", (f"{text_bytes / 1e6:.1f} MB in {found['n_documents']:,} document{plural}: {tokens:,} tokens of "
                   f"{text_bytes / max(tokens, 1):.2f} bytes")
    yield "on disk", f"{found['token_file_bytes'] / 1e6:.1f} MB"
    if compared:
        part = "" if compared["n_documents"] == found["n_documents"] else f", in {_REFERENCE_SECONDS:.0f} s"
        yield "ids", f"all equal to those of {compared['package']} ({compared['n_tokens']:,}{part})"
    else:
        yield "ids", f"not compared: {found['not_compared']}"
    if measured:
        yield "tokmap", (f"{text_bytes / seconds / 1e6:.1f} MB/s, {tokens / seconds / 1e6:.2f} M tokens/s "
                         f"({found['n_threads']} threads, also read and written)")
    else:
        yield "rates", "too little text to measure"
    if compared and compared["seconds"] >= _LEAST_SECONDS and measured:
        theirs = compared["text_bytes"] / compared["seconds"]
        yield compared["package"].split()[0], (f"{theirs / 1e6:.1f} MB/s, {compared['n_tokens'] / compared['seconds'] / 1e6:.2f} M "
                                               f"tokens/s (all threads); tokmap: {text_bytes / seconds / theirs:.0f} times")
    yield "kill -9", (f"of a pack: {found['n_kept_documents']:,} documents were kept; the end has the same bytes"
                      if found["n_kept_documents"] else "of a pack: none was killed in the middle: give more text")
    if training:
        yield "kill -9", (f"of a training at step {training['killed_at']}: resumed at {training['resumed_at']}, same samples "
                          "and tokens")
        yield "first batch", f"after {training['first_batch_s'] * 1e3:.1f} ms (4 rows of {training['sequence_length']:,} tokens)"
    else:
        yield "kill -9", "of a training: not tried: give more text"
    yield "took", f"{found['seconds']:.0f} s; " + (f"the files are in {folder}" if folder else "nothing is left (-o DIR keeps the files)")


def lines_of(found: Dict[str, Any], folder: Optional[str]) -> List[str]:
    return [f"{name + ':':15}{line}" for name, line in _rows(found, folder)]


def main(arguments: List[str]) -> None:
    given = Given(arguments)
    with ends_as_program("try", bool(given.json)):
        try:
            with _folder(given.output) as folder:
                found = _try(given, folder)
        except KeyboardInterrupt:
            sys.exit(130)
        except _Differs as error:
            print(f"tokmap try: {error}", file=sys.stderr)
            if given.json:
                print(json.dumps({"schema_version": 1, "error": {"status": -7, "errno": 0, "text": str(error), "file": None,
                                                                 "offset": 0, "reason": 0}}))
            sys.exit(1)
        if given.json:
            print(json.dumps({"schema_version": 1, **found}))
        else:
            print("\n".join(lines_of(found, given.output)))
