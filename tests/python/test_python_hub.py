#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names hf://... of inputs and tokenizers: the real huggingface_hub against a server on the loopback, then without one."""

import http.server
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.parse

from hub_server import N_BYTES, serve
from package import BUILD
from ref_protocol import need, run_in_folders

import tokmap

TEXTS = {"data/a-2.jsonl": ["two", "three"], "data/a-10.jsonl": ["four"], "other/b.jsonl": ["five"], "c.jsonl": ["six"]}


def lines(texts):
    return "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()


def environment(folder, hub=None):
    port = hub.server.server_port if hub else 9  # the port that nothing listens on
    return {**os.environ, "HF_ENDPOINT": f"http://127.0.0.1:{port}", "HF_HOME": str(folder / "hf"), "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_ETAG_TIMEOUT": "5", "HF_HUB_DOWNLOAD_TIMEOUT": "60", "HF_TOKEN": "", "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",
            "HF_HUB_DISABLE_XET": "1"}


def run(folder, hub, *arguments, program=BUILD / "tokmap", **more):
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, cwd=folder,
                          env={**environment(folder, hub), **more})


def succeed(*arguments, **more):
    done = run(*arguments, **more)
    assert done.returncode == 0, done
    return done


def refuse(status, *words, of):
    assert of.returncode == status and all(word in of.stderr for word in words), of


def texts_of(path):
    tokenizer = tokmap.Tokenizer("bytes")
    return [tokenizer.decode(one.tolist()[:-1]) for one in tokmap.open(path)]


def data_files(change=b""):
    return {**{name: lines(texts) + change for name, texts in TEXTS.items()}, "README.md": b"# text", ".gitattributes": b""}


def files_are_found_and_downloaded(folder):
    name = "hf://datasets/some-one/a.b"
    with serve() as hub:
        commit = hub.set_branch("datasets", "some-one/a.b", data_files())
        refuse(3, "some-one/a.b", "main", str(folder / "hf/hub/datasets--some-one--a.b"), "--download",
               of=run(folder, hub, "pack", name, "-o", "p"))
        assert hub.n_requests == 0, hub.n_requests
        done = succeed(folder, hub, "pack", f"{name}/data/*.jsonl", "-o", "p", "--download")
        assert "2 files of commit " + commit in done.stderr, done.stderr
        assert texts_of(folder / "p") == ["two", "three", "four"]
        snapshot = folder / "hf/hub/datasets--some-one--a.b/snapshots" / commit
        assert [one.name for one in tokmap.open(folder / "p").inputs] == [f"{snapshot}/data/a-2.jsonl", f"{snapshot}/data/a-10.jsonl"]
        assert sorted(path.name for path in snapshot.rglob("*.*")) == ["a-10.jsonl", "a-2.jsonl"]  # and no others
        n_before = hub.n_requests
        succeed(folder, hub, "pack", f"{name}/data/a-?.jsonl", "-o", "q")  # without another request
        assert hub.n_requests == n_before and texts_of(folder / "q") == ["two", "three"]
        refuse(3, "other/b.jsonl", "some-one/a.b", str(folder / "hf/hub"), of=run(folder, hub, "pack", f"{name}/**/*.jsonl", "-o", "r"))
        refuse(3, "no file", "*.csv", of=run(folder, hub, "pack", f"{name}/*.csv", "-o", "r"))
        assert not (folder / "r.tmi").exists() and hub.n_requests == n_before
        (folder / "list").write_text(f"{name}/**/a-*.jsonl\n{name}@{commit}/c.jsonl\n")
        succeed(folder, hub, "pack", "@list", "-o", "r", "--download", "-q")
        assert texts_of(folder / "r") == ["two", "three", "four", "six"]
        succeed(folder, hub, "pack", name, "-o", "all", "--download")
    assert texts_of(folder / "all") == ["six", "two", "three", "four", "five"]
    succeed(folder, None, "pack", name, "-o", "again")  # without the server
    assert texts_of(folder / "again") == texts_of(folder / "all")
    refuse(3, name, of=run(folder, None, "pack", name, "-o", "no", "--download"))
    for wrong in ("hf://datasets/one", "hf://some-one/a.b", "hf://datasets/a/b@"):
        refuse(3, "must be hf://datasets/OWNER/NAME", of=run(folder, None, "pack", wrong, "-o", "no"))
    assert [path.name for path in folder.glob("*no*")] == []


def branch_moves(folder):
    name = "hf://datasets/o/n/**/*l"
    with serve() as hub:
        old = hub.set_branch("datasets", "o/n", data_files())
        succeed(folder, hub, "pack", name, "--download", "-o", "p", "--format", "jsonl")
        succeed(folder, hub, "plan", name, "--format", "jsonl", "--cells", "cells", "-o", "plan", "--download")
        new = hub.set_branch("datasets", "o/n", data_files(b'{"text": "new"}\n'))
        succeed(folder, hub, "pack", name, "-o", "same", "--format", "jsonl")
        assert texts_of(folder / "same") == texts_of(folder / "p") and "new" not in texts_of(folder / "p")
        succeed(folder, hub, "pack", name, "-o", "moved", "--download", "--format", "jsonl")
        assert texts_of(folder / "moved").count("new") == len(TEXTS)
        succeed(folder, hub, "pack", f"{name[:17]}@{old}/**/*.jsonl", "-o", "pinned", "--format", "jsonl")
        assert texts_of(folder / "pinned") == texts_of(folder / "p")
    plan = (folder / "plan").read_text()
    assert old in plan and new not in plan and "hf://" not in plan and "download" not in plan
    succeed(folder, None, "pack", "--plan", "plan")  # with the old commit, and without the server
    succeed(folder, None, "join", "plan", "-o", "joined")
    assert texts_of(folder / "joined") == texts_of(folder / "p")


def killed_download_is_not_packed(folder):
    name = "hf://datasets/o/n"
    files = {"a.jsonl": lines(["short"]), "z.jsonl": lines(["x" * 10_000] * (N_BYTES // 10_000))}
    with serve() as hub:
        hub.set_branch("datasets", "o/n", files)
        hub.stalls = True
        child = subprocess.Popen([BUILD / "tokmap", "pack", name, "-o", "p", "--download"], cwd=folder, env=environment(folder, hub),
                                 stderr=subprocess.PIPE, start_new_session=True)
        blobs = folder / "hf/hub/datasets--o--n/blobs"
        while not any(path.stat().st_size > N_BYTES // 4 for path in blobs.glob("*.incomplete*")):
            assert child.poll() is None, child.communicate()
            time.sleep(0.01)
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        hub.stalls = False
        refuse(3, "o/n", "--download", of=run(folder, hub, "pack", name, "-o", "p"))
        assert not list(folder.glob("p*")), list(folder.iterdir())
        succeed(folder, hub, "pack", name, "-o", "p", "--download")
    assert len(texts_of(folder / "p")) == 1 + N_BYTES // 10_000
    blob = max(blobs.iterdir(), key=lambda path: path.stat().st_size)
    os.truncate(blob, N_BYTES // 2)  # as on a file system that was full
    refuse(3, "z.jsonl", str(folder / "hf/hub"), of=run(folder, None, "pack", name, "-o", "q"))


def access_is_refused(folder):
    (folder / "text").write_text("a b")
    with serve() as hub:
        hub.status = 401
        for arguments in (["hf://datasets/o/n"], ["text", "--tokenizer", "hf://o/n"]):
            done = run(folder, hub, "pack", *arguments, "-o", "p", "--download")
            refuse(3, "o/n", "401", of=done)
            assert done.stderr.startswith("tokmap pack: ") and "Traceback" not in done.stderr, done.stderr
        assert not list(folder.glob("p*"))


def tokenizer_is_found(folder):
    tokenizer = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
                 "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
                 "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "a": 1, "</s>": 2}, "unk_token": "[UNK]"}}
    tokenizer.update(pre_tokenizer={"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
                     decoder={"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
                     model={"type": "BPE", "vocab": {chr(c): c - 33 for c in range(33, 127)} | {"Ġ": 94, "</s>": 95}, "merges": []})
    files = {"tokenizer.json": json.dumps(tokenizer).encode(), "tokenizer_config.json": b'{"eos_token": "</s>"}', "model.bin": b"x" * 999}
    (folder / "text").write_text("a b")
    with serve() as hub:
        commit = hub.set_branch("models", "o/n", files)
        refuse(3, "o/n", str(folder / "hf/hub/models--o--n"), "--download", of=run(folder, hub, "pack", "text", "--tokenizer", "o/n", "-o", "p"))
        succeed(folder, hub, "pack", "text", "--tokenizer", "hf://o/n", "-o", "p", "--download")
    snapshot = folder / "hf/hub/models--o--n/snapshots" / commit
    assert sorted(path.name for path in snapshot.iterdir()) == ["tokenizer.json", "tokenizer_config.json"]
    stored = tokmap.open(folder / "p").metadata["tokenizer"]
    assert (stored["name"], stored["repository"]) == ("tokenizer.json", f"o/n@{commit}")
    assert tokmap.open(folder / "p")[0].tolist() == [ord("a") - 33, 94, ord("b") - 33, 95]
    succeed(folder, None, "plan", "text", "--tokenizer", "o/n", "--cells", "cells", "-o", "plan")
    assert str(snapshot / "tokenizer.json") in (folder / "plan").read_text()
    (folder / "hf/hub/models--o--n/refs/main").write_text("0" * 40)
    succeed(folder, None, "pack", "--plan", "plan")
    (folder / "json").write_text('"a b"\n')
    encoded = succeed(folder, None, "encode", "--tokenizer", f"o/n@{commit}", "json").stdout
    assert encoded == f"[{ord('a') - 33},94,{ord('b') - 33}]\n", encoded
    refuse(3, "o/n", "0" * 40, of=run(folder, None, "encode", "--tokenizer", "o/n", "text"))
    refuse(3, "o/typo: no such file", of=run(folder, None, "encode", "--tokenizer", "o/typo", "text"))
    for path in ("o/tokenizer.json", "my folder/x", "~/x"):
        refuse(3, "No such file", of=run(folder, None, "encode", "--tokenizer", path, "text"))


def without_the_package(folder):
    (folder / "bin").mkdir()
    shutil.copy(BUILD / "tokmap", folder / "bin/tokmap")
    refuse(3, "hf://datasets/o/n", "finds files of the Hub", "the Python package is missing",
           of=run(folder, None, "pack", "hf://datasets/o/n", "-o", "p", program=folder / "bin/tokmap", PATH="/nowhere"))


def without_huggingface_hub(folder):
    (folder / "none").mkdir()
    (folder / "none/huggingface_hub.py").write_text("raise ImportError('not here')\n")
    refuse(3, "not here. Install it: pip install huggingface_hub\n", of=run(
        folder, None, "pack", "hf://datasets/o/n", "-o", "p", "--download", PYTHONPATH=folder / "none"))


def one_command_has_one_commit(folder):
    with serve() as hub:
        old = hub.set_branch("datasets", "o/n", data_files())
        hub.after_a_revision = lambda: hub.set_branch("datasets", "o/n", data_files(b'{"text": "new"}\n'))
        (folder / "list").write_text("hf://datasets/o/n/other/*\n")
        succeed(folder, hub, "pack", "hf://datasets/o/n/data/*", "@list", "hf://datasets/o/n@main/c.jsonl", "-o", "p", "--download")
        assert texts_of(folder / "p") == ["two", "three", "four", "five", "six"] and all(old in one.name for one in tokmap.open(folder / "p").inputs)


def a_revision_may_have_the_signs_between_revisions(folder):
    """One command has several processes, which tell each other what a revision means."""
    with serve() as hub:
        for branch in ("a=b", "a;c=d", "a%b"):
            hub.set_branch("datasets", "o/n", data_files())
            hub.repositories["datasets", "o/n"][branch] = hub.repositories["datasets", "o/n"].pop("main")
            name = f"hf://datasets/o/n@{urllib.parse.quote(branch)}"
            succeed(folder, hub, "pack", "-f", f"{name}/data/*", f"{name}/c.jsonl", "-o", "p", "--download")
            assert texts_of(folder / "p") == ["two", "three", "four", "six"], branch
            succeed(folder, None, "pack", "-f", f"{name}/data/*", f"{name}/c.jsonl", "-o", "p")


def names_that_could_be_lines_are_refused(folder):
    (folder / "secret.jsonl").write_bytes(lines(["SECRET"]))
    for name in ("a.jsonl\nF secret.jsonl", "d\ne/b.jsonl"):
        with serve() as hub:
            hub.set_branch("datasets", "o/n", {"a.jsonl": lines(["ok"]), name: lines(["no"])})
            refuse(3, "cannot be printed", of=run(folder, hub, "pack", "hf://datasets/o/n", "-o", "p", "--download"))
        assert not (folder / "p.tmi").exists()
    for wrong in ("..%2F..%2Fx", "..", "a%2F%2Fb"):
        refuse(3, "no revision", of=run(folder, None, "pack", f"hf://datasets/o/n@{wrong}", "-o", "p"))
    for option in ("--include", "--exclude"):
        refuse(3, "hf://datasets/o/n", "pattern", of=run(folder, None, "pack", "hf://datasets/o/n", option, "c*", "-o", "p"))


def what_may_work_later_ends_with_75(folder):
    with serve() as hub:
        hub.set_branch("datasets", "o/n", data_files())
        hub.status = 503
        refuse(75, "hf://datasets/o/n", "503", of=run(folder, hub, "pack", "hf://datasets/o/n", "-o", "p", "--download", HF_HUB_DOWNLOAD_TIMEOUT="1"))


def a_download_ends_with_the_program(folder):
    with serve() as hub:
        hub.set_branch("datasets", "o/n", {"z.jsonl": lines(["x" * 10_000] * (N_BYTES // 10_000))})
        hub.stalls = True
        child = subprocess.Popen([BUILD / "tokmap", "pack", "hf://datasets/o/n", "-o", "p", "--download"], cwd=folder, env=environment(folder, hub),
                                 stderr=subprocess.PIPE)
        blobs = folder / "hf/hub/datasets--o--n/blobs"
        while not any(path.stat().st_size > N_BYTES // 4 for path in blobs.glob("*.incomplete*")):
            assert child.poll() is None, child.communicate()
            time.sleep(0.01)
        child.terminate()
        child.communicate()  # whose end is that of the last process with the pipe
        assert not (folder / "hf/hub/datasets--o--n/refs/main").exists()


def what_the_script_does_not_say_is_an_error(folder):
    (folder / "bin").mkdir()
    shutil.copy(BUILD / "tokmap", folder / "bin/tokmap")
    for script, status in (("exit 0", 3), ("echo", 3), ("echo F a; exit 3", 3), ("echo E 28 full", 75)):
        (folder / "bin/tokmap-python").write_text(f"#!/bin/sh\n{script}\n")
        (folder / "bin/tokmap-python").chmod(0o755)
        for arguments in (["pack", "hf://datasets/o/n", "-o", "p"], ["encode", "--tokenizer", "o/n", "x"]):
            refuse(status, "o/n" if "28" not in script else "full", of=run(folder, None, *arguments, program=folder / "bin/tokmap"))


def prepare(folder):
    need("huggingface_hub")


sys.exit(run_in_folders("python_hub_", prepare=prepare))
