#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap try: ids beside a package, real or a stand-in with other ids; kills; what is left when it ends, in any way."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from package import BUILD, ROOT, raises
from ref_protocol import expect, expect_equal, need, run_in_folders

sys.path.insert(0, str(ROOT / "tests/pack"))
import pack_corpus  # noqa: E402

from tokmap._tools import try_out as module  # noqa: E402


def prepare(folder):
    (folder / "tmp").mkdir()
    (folder / "model").mkdir()
    (folder / "model/tokenizer.json").write_text(pack_corpus.small_vocabulary())
    with open(folder / "texts.jsonl", "w") as out:
        for i in range(400):
            print(json.dumps({"text": f"word {i} words <|endoftext|> \u00e9\n" * (i % 50)}), file=out)
    return folder


def environment_of(folder):
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder / "packages"), str(ROOT / "python"))), "TMPDIR": str(folder / "tmp"),
            "TOKMAP_LIBRARY": str(BUILD / "libtokmap.so"), "PATH": f"{os.path.dirname(sys.executable)}:{BUILD}:{os.environ['PATH']}"}


def start(folder, *arguments, packages=()):
    """packages: stand-ins for packages of Python, by their names."""
    for name, text in packages:
        (folder / "packages").mkdir(exist_ok=True)
        (folder / f"packages/{name}.py").write_text(text)
    return subprocess.Popen([BUILD / "tokmap", "try", *arguments], cwd=folder, env=environment_of(folder), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def run(folder, *arguments, status=0, packages=()):
    child = start(folder, *arguments, packages=packages)
    out, said = child.communicate()
    expect_equal(child.returncode, status, said + out)
    expect_equal(os.listdir(folder / "tmp"), [], "what is left")
    return out, said


def ids_and_resumes_are_proved(folder):
    need("tokenizers")
    for tokenizer in ("model/tokenizer.json", "model"):
        out, _ = run(folder, tokenizer, "texts.jsonl")
        expect("ids:           all equal to those of tokenizers " in out and "resumed at 95, same samples and tokens" in out, out)
        expect(len(out.splitlines()) <= 12 and max(map(len, out.splitlines())) <= 80 and "nothing is left" in out, out)
    out, _ = run(folder, "model", "texts.jsonl", "--json", "-o", "kept")
    found = json.loads(out)
    expect_equal((found["n_documents"], found["compared"]["n_documents"], found["training"]["resumed_at"]), (400, 400, 95), "JSON")
    expect({"packed.bin", "packed.tmi", "text.jsonl"} <= set(os.listdir(folder / "kept")), os.listdir(folder / "kept"))
    _, said = run(folder, "model", "texts.jsonl", "-o", "kept", status=3)
    expect("kept: is not empty" in said, said)


def a_report_of_wrong_ids_compares_the_same_ids(folder):
    """The lines of wrong-ids.md, with a tokenizer that adds tokens at both ends and a text that has one of them."""
    need("tokenizers")
    end = {"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}}
    vocabulary = json.loads((folder / "model/tokenizer.json").read_text())
    number = vocabulary["added_tokens"][0]["id"]
    vocabulary["post_processor"] = {"type": "TemplateProcessing", "single": [end, {"Sequence": {"id": "A", "type_id": 0}}, end], "pair": [
        end, {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {"<|endoftext|>": {"id": "<|endoftext|>", "ids": [number], "tokens": ["<|endoftext|>"]}}}
    (folder / "tokenizer.json").write_text(json.dumps(vocabulary))
    text = "word 1 <|endoftext|> words"
    (folder / "text.jsonl").write_text(json.dumps({"text": text}))
    block = (ROOT / ".github/ISSUE_TEMPLATE/wrong-ids.md").read_text().partition("```sh\n")[2].partition("```")[0]
    done = subprocess.run(["bash", "-ec", block.replace('"TEXT"', json.dumps(text))], cwd=folder, env=environment_of(folder), capture_output=True, text=True)
    expect_equal((done.returncode, done.stderr), (0, ""), done.stdout)
    ids = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    expect(len(ids) == 2 and ids[0] == ids[1] and ids[0].count(number) == 1, done.stdout)
    expect("all equal to those of tokenizers " in done.stdout, done.stdout)


def readme_shows_a_committed_result(folder):
    found = json.loads((ROOT / "bench/results/try-xeon-2core.json").read_text())["try"]
    expect("\n".join(module.lines_of(found, None)) + "\n```" in (ROOT / "README.md").read_text(), "README has another output")


OTHER = """
__version__ = "9"
class Tokenizer:
    @classmethod
    def from_file(cls, path): return cls()
    def no_truncation(self): pass
    def no_padding(self): pass
    def encode_batch(self, texts, add_special_tokens): return [type("E", (), {"ids": [1, 2, 3]}) for text in texts]
"""


def other_ids_are_status_1(folder):
    out, said = run(folder, "model", "texts.jsonl", "--json", status=1, packages=[("tokenizers", OTHER)])
    expect("other ids than those of tokenizers 9, from token 0 of this text on: ''" in said, said)
    expect("tokmap: ...[], 0 ids" in said and "tokenizers 9: ...[1, 2, 3], 3 ids" in said, said)
    expect_equal(json.loads(out)["error"]["status"], -7, out)


def without_a_package_nothing_is_compared(folder):
    out, _ = run(folder, "model", "texts.jsonl", packages=[("tokenizers", "raise ModuleNotFoundError(name='tokenizers')")])
    expect("ids:           not compared: no package tokenizers here" in out, out)
    out, _ = run(folder, "bytes", "texts.jsonl")
    expect("not compared: bytes are their own ids" in out, out)


def little_text_is_no_error(folder):
    for name, text in (("short.txt", "hello"), ("empty.txt", ""), ("one.jsonl", '{"text": ""}\n')):
        (folder / name).write_text(text)
        out, _ = run(folder, "model", name)
        expect("of a training: not tried: give more text" in out and "rates:         too little text" in out, out)
    _, said = run(folder, "model", "-", status=2)
    expect("-: give files" in said, said)
    _, said = run(folder, "model", "short.txt", "texts.jsonl", status=3)
    expect("short.txt: is text, but texts.jsonl has records" in said and str(folder / "tmp") not in said, said)
    fails = OTHER.replace("return [type(", "raise RuntimeError('no') or [type(")
    out, _ = run(folder, "model", "texts.jsonl", packages=[("tokenizers", fails)])
    expect("not compared: tokenizers 9 failed: no" in out, out)


def errors_are_those_of_pack(folder):
    _, said = run(folder, "gpt2", "texts.jsonl", status=3)
    expect("gpt2: No such file or directory; a repository of the Hub is OWNER/NAME" in said, said)
    _, said = run(folder, "model", "none.jsonl", status=3)
    expect("none.jsonl: No such file or directory" in said, said)
    _, said = run(folder, "model", "texts.jsonl", "--field", "body", status=3)
    expect("use --field with one of text" in said, said)
    _, said = run(folder, "model", status=2)


def signals_leave_nothing(folder):
    for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 128 + signal.SIGTERM)):
        child = start(folder, "model", "texts.jsonl", packages=[("tokenizers", OTHER.replace("[type(", "__import__('time').sleep(99) or [type("))])
        while not list((folder / "tmp").glob("*/packed.tmi")):
            expect(child.poll() is None, "it ended")
            time.sleep(0.01)
        time.sleep(0.3)
        child.send_signal(number)
        out, said = child.communicate()
        expect_equal((child.returncode, out, "Traceback" in said), (status, "", False), said)
        expect_equal(os.listdir(folder / "tmp"), [], "what is left")


def other_samples_after_a_kill_are_found(folder):
    """With a log that has another checksum, or another sample, in one step after the resume."""
    lines = [f"step {i} [{4 * i}] 7" for i in range(200)]
    for fault, found in ((None, True), (150, False), (97, False), (20, False)):
        logs = {"whole": ["first 0.1", *lines], "killed": ["first 0.1", *lines[:100]]}

        def log_of(folder, name, data, length, killed_at):
            if name == "killed" and not killed_at:
                logs["killed"] += [line if i != fault else line[:-1] + "8" for i, line in enumerate(lines) if i >= 95]
            if name == "killed" and killed_at and fault == 20:
                logs["killed"][21] = "step 20 [81] 7"
            return logs[name]

        before, module._run_training = module._run_training, log_of
        try:
            if found:
                expect_equal(module._kill_a_training(str(folder), "x", 10**6)["resumed_at"], 95, "the resume")
            else:
                raises(module._Differs, module._kill_a_training, str(folder), "x", 10**6)
        finally:
            module._run_training = before


def other_bytes_after_a_kill_are_found(folder):
    """With a pack that is said to be killed, and files that are not those of the whole one."""
    for name in ("whole", "killed"):
        for end in (".bin", ".tmi"):
            (folder / (name + end)).write_text(name)
    kept = module._kill_after_checkpoints, module.run_pack
    module._kill_after_checkpoints, module.run_pack = lambda *_: True, lambda *_: {"n_resumed_documents": 3, "n_documents": 9}
    try:
        raises(module._Differs, module._kill_a_pack, str(folder), "x", [], str(folder / "whole"))
        expect_equal(module._kill_a_pack(str(folder), "x", [], str(folder / "killed")), 3, "what was kept")
    finally:
        module._kill_after_checkpoints, module.run_pack = kept


expect(pathlib.Path(module.__file__).parts[-4] == "python", module.__file__)
sys.exit(run_in_folders("try_", prepare=prepare))
