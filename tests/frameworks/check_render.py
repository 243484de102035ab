#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap render, with templates for training of TRL: what is trained on is what transformers' masks say."""

import contextlib
import functools
import gzip
import importlib.util
import io
import json
import math
import os
import pathlib
import random
import re
import subprocess
import sys
import time
import unicodedata

from frameworks import need, run_checks

if __name__ == "__main__":
    need("render", "numpy", "transformers", "tokenizers", "jinja2")
import transformers  # noqa: E402

import tokmap._tools.render  # noqa: E402
from documents import environment  # noqa: E402
from oracle_families import make  # noqa: E402
from oracle_texts import BLANKS, EMOJI, Texts, plain_texts  # noqa: E402
from ref_protocol import Skip, hand_over  # noqa: E402
from ref_protocol import need as need_module  # noqa: E402

# name: whether chats may have a system message, and calls of tools
TEMPLATES = {"llama3": (True, False), "qwen3": (True, True), "gemma": (False, False), "phi3": (True, False),
             "deepseekv3": (True, True)}
FAMILIES = ("llama3", "phi3", "deepseek3", "qwen2", "gemma")
N_CHATS = 10000
MARKS = ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|im_start|>", "<|im_end|>",
         "<start_of_turn>", "<end_of_turn>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>", "<\uff5cUser\uff5c>",
         "<\uff5cAssistant\uff5c>", "<\uff5cend\u2581of\u2581sentence\uff5c>", "<bos>", "<eos>"]
TOOLS = [{"type": "function", "function": {"name": "look_up", "description": "Looks \u201cit\u201d up \U0001f50e", "parameters": {
    "type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}}}]


def template(name):
    found = importlib.util.find_spec("trl")
    if found is None:
        raise Skip("trl is not installed")
    return pathlib.Path(found.origin).parent / f"chat_templates/{name}_training.jinja"


def make_tokenizer(folder, family):
    """A folder of transformers."""
    content = make(family, 1, plain_texts(1 << 18), b"")
    known = {row["content"] for row in content["added_tokens"]}
    vocab = content["model"]["vocab"]
    next_id = max([*vocab.values(), *(row["id"] for row in content["added_tokens"])]) + 1
    for mark in MARKS:
        if mark not in known and mark not in vocab:
            content["added_tokens"].append({"id": next_id, "content": mark, "single_word": False, "lstrip": False,
                                            "rstrip": False, "normalized": False, "special": True})
            next_id += 1
    (folder / "plain.json").write_text(json.dumps(content))
    transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "plain.json"), bos_token="<bos>",
                                         eos_token="<eos>").save_pretrained(folder / family)
    return folder / family


def some_chats(seed, n, has_system, has_tools, change=str):
    """[{"messages": ..., "tools": ...}]. change: of each content."""
    texts, rng = Texts(seed, MARKS), random.Random(seed)

    def content():
        text = rng.choice((texts.one, texts.slice))() if rng.random() < 0.9 else ""
        blank = rng.choice(["", "", " ", "\n", "\n\n", "  ", rng.choice(BLANKS)])
        end = rng.choice(("", "", rng.choice(EMOJI))) + rng.choice(("", blank))
        return change(rng.choice(("", blank)) + text[:rng.choice((5, 50, 500))] + end)

    found = []
    for _ in range(n):
        chat, with_tools = [], has_tools and rng.random() < 0.3
        if has_system and rng.random() < 0.3:
            chat.append({"role": "system", "content": content()})
        for _ in range(rng.choice((1, 1, 2, 3))):
            chat.append({"role": "user", "content": content(), "tool_calls": None})
            if with_tools and rng.random() < 0.7:
                call = {"name": "look_up", "arguments": {"word": content()}}
                chat.append({"role": "assistant", "content": content(), "tool_calls": [{"type": "function", "function": call}]})
                chat.append({"role": "tool", "name": "look_up", "content": content()})
            chat.append({"role": "assistant", "content": content()})
        found.append({"messages": chat[:len(chat) - (rng.random() < 0.1)], "number": len(found),
                      **({"tools": rng.choice((TOOLS, json.dumps(TOOLS)))} if with_tools else {})})
    return found


def write_lines(path, rows):
    with (gzip.open if path.suffix == ".gz" else open)(path, "wb") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
    return path


def read_lines(path):
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def run_command(*arguments):
    """Its output."""
    done = subprocess.run([sys.executable, "-m", "tokmap", *map(str, arguments)], env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done)
    return done.stdout


def run_render(*arguments):
    return run_command("render", *arguments)


def refused(*arguments, status=3):
    """Its message, without the seconds that a process needs to import transformers."""
    done, handed_over = hand_over("render", *arguments)
    assert done.returncode == 0, done
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        try:
            tokmap._tools.render.main(handed_over)
        except SystemExit as error:
            assert error.code == status, (arguments, error.code, said.getvalue())
            return said.getvalue()
    raise AssertionError(arguments)


def pack_parts(folder, source, place, template, *options):
    """Its chats, rendered and packed."""
    run_command("render", source, "--tokenizer", place, "--chat-template", template, "-o", folder / "parts.jsonl", "--force")
    run_command("pack", "-q", folder / "parts.jsonl", "--parts", "parts", "--tokenizer", place / "tokenizer.json", "-o",
                folder / "packed", "--force", *options)
    return tokmap.open(folder / "packed")


def labels_are_the_masks_of_transformers(folder):
    n_each = N_CHATS if os.environ.get("TOKMAP_LONG") == "all" else N_CHATS // len(TEMPLATES) // len(FAMILIES)
    n = n_trained = 0
    nfc = functools.partial(unicodedata.normalize, "NFC")  # a text that Qwen's normalizer changes is a bad document
    for family in FAMILIES:
        place = make_tokenizer(folder, family)
        tokenizer = transformers.AutoTokenizer.from_pretrained(place)
        for t, (name, kinds) in enumerate(TEMPLATES.items()):
            chats = some_chats(100 * t + len(family), n_each, *kinds, nfc if family == "qwen2" else str)
            packed = pack_parts(folder, write_lines(folder / "chats.jsonl", chats), place, template(name))
            assert len(packed) == len(chats)
            text = template(name).read_text()
            for i, (chat, row) in enumerate(zip(chats, read_lines(folder / "parts.jsonl"))):
                assert list(row) == ["number", "parts"] and row["number"] == chat["number"]
                tools = chat.get("tools")
                said = dict(tools=json.loads(tools) if isinstance(tools, str) else tools, chat_template=text)
                wanted = tokenizer.apply_chat_template(chat["messages"], return_assistant_tokens_mask=True, return_dict=True, **said)
                assert "".join(part["text"] for part in row["parts"]) == tokenizer.apply_chat_template(
                    chat["messages"], tokenize=False, **said)
                assert packed[i].tolist() == wanted["input_ids"], (family, name, chat)
                mask, masks = packed.labels(i) != -100, wanted["assistant_masks"]
                assert mask.tolist() == [bool(m) for m in masks], (family, name, chat, tokenizer.convert_ids_to_tokens(packed[i]))
                n, n_trained = n + 1, n_trained + int(mask.sum())
    return f"{n} chats, {n_trained} tokens are trained on"


PLAIN = """{% for message in messages %}{% if message.role == 'assistant' %}{% generation %}{{ message.content }}{% endgeneration %}
{%- else %}{{ message.content }}{% endif %}{% endfor %}"""


def two_kinds_of_chats_differ_as_the_manual_says(folder):
    """A blank that is trained, of a tokenizer whose offsets leave out blanks; an empty answer inside a token."""
    place = make_tokenizer(folder, "llama3")
    assert json.loads((place / "tokenizer.json").read_text())["post_processor"]["trim_offsets"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(place)
    word = next(token for token in sorted(tokenizer.get_vocab()) if re.fullmatch("\u0120[a-z]{4}", token))[1:]
    (folder / "plain.jinja").write_text(PLAIN)
    for contents, ours, theirs in ((["x", " ", word], [False, True], [0, 0]), (["x " + word[:2], "", word[2:]], [False, False], [0, 1]),
                                   (["x ", word, ""], [False, True], [0, 1])):
        chat = [{"role": role, "content": content} for role, content in zip(("user", "assistant", "user"), contents)]
        packed = pack_parts(folder, write_lines(folder / "chats.jsonl", [{"messages": chat}]), place, folder / "plain.jinja")
        found = tokenizer.apply_chat_template(chat, chat_template=PLAIN, return_assistant_tokens_mask=True, return_dict=True)
        assert packed[0].tolist() == found["input_ids"] and len(packed[0]) == 2, contents
        assert ((packed.labels(0) != -100).tolist(), found["assistant_masks"]) == (ours, theirs), (contents, found)


CHATML = """{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' }}{% if message.role == 'assistant' %}
{% generation %}{{ message.content + '<|im_end|>' }}{% endgeneration %}
{% else %}{{ message.content + '<|im_end|>' }}{% endif %}{% endfor %}{{ more }}"""
CHAT = [{"role": "user", "content": "Hi "}, {"role": "assistant", "content": " caf\u00e9 \U0001f600"}]


def chatml_tokenizer(folder, text=CHATML):
    place = make_tokenizer(folder, "qwen2")
    (place / "chat_template.jinja").write_text(text)
    return place


def the_template_of_the_tokenizer_is_used(folder):
    import pyarrow

    place = chatml_tokenizer(folder)
    row = {"id": 7, "nested": {"a": [1.5, None, -math.inf]}, "messages": CHAT, "chat_template_kwargs": {"more": "!"}}
    wanted = [("<|im_start|>user\nHi <|im_end|><|im_start|>assistant\n", False),
              (" caf\u00e9 \U0001f600<|im_end|>", True), ("!", False)]
    plain = write_lines(folder / "chats.jsonl", [row, {"messages": CHAT[:1]}])
    plain.write_bytes(plain.read_bytes() + b"\n")
    packed = write_lines(folder / "chats.jsonl.gz", [row, {"messages": CHAT[:1]}])
    (folder / "chats.jsonl.zst").write_bytes(pyarrow.compress(plain.read_bytes(), "zstd", asbytes=True) * 2)
    said = run_render(plain, "--tokenizer", place, "-o", folder / "a.jsonl")
    assert said == f"{folder}/a.jsonl: 2 chats, of which 1 have nothing that is trained on\n", said
    first, second = read_lines(folder / "a.jsonl")
    assert list(first) == ["id", "nested", "chat_template_kwargs", "parts"] and first["nested"] == row["nested"], first
    assert [(part["text"], part["train"]) for part in first["parts"]] == wanted
    assert second == {"parts": [{"text": "<|im_start|>user\nHi <|im_end|>", "train": False}]}
    assert run_render(packed, "--tokenizer", place, "-q") == (folder / "a.jsonl").read_text()
    run_render(folder / "chats.jsonl.zst", "--tokenizer", place, "-q", "-o", folder / "b.jsonl.gz")
    assert gzip.decompress((folder / "b.jsonl.gz").read_bytes()) == 2 * (folder / "a.jsonl").read_bytes()
    assert "already exists" in refused(plain, "--tokenizer", place, "-o", folder / "a.jsonl", status=5)


def a_killed_run_leaves_nothing_that_is_packed(folder):
    """The hidden file of a running one is locked, and that of a killed one is taken over."""
    place, out = chatml_tokenizer(folder), folder / "out"
    out.mkdir()
    source = write_lines(folder / "chats.jsonl", [{"messages": CHAT}] * 3)
    write_lines(out / "others.jsonl", [{"parts": [{"text": "a", "train": True}]}])
    os.mkfifo(folder / "pipe")
    command = [sys.executable, "-m", "tokmap", "render", folder / "pipe", "--tokenizer", place, "-o", out / "c.jsonl"]
    with subprocess.Popen([*map(str, command)], env=environment(), stderr=subprocess.DEVNULL) as running:
        with open(folder / "pipe", "wb") as pipe:
            pipe.write(source.read_bytes())
            pipe.flush()
            while running.poll() is None and len(list(out.iterdir())) < 2:
                time.sleep(0.01)
            assert sorted(one.name for one in out.iterdir()) == [".c.jsonl.partial", "others.jsonl"], list(out.iterdir())
            said = refused(source, "--tokenizer", place, "-o", out / "c.jsonl", status=5)
            assert said == f"tokmap render: {out}/c.jsonl: another process is writing it\n", said
            running.kill()
            running.wait()
    assert (out / ".c.jsonl.partial").exists()
    assert "1 document" in run_command("pack", out, "--parts", "parts", "--tokenizer", "bytes", "-o", folder / "packed")
    run_render(source, "--tokenizer", place, "-o", out / "c.jsonl")
    assert sorted(one.name for one in out.iterdir()) == ["c.jsonl", "others.jsonl"] and len(read_lines(out / "c.jsonl")) == 3


def what_is_wrong_is_said(folder):
    place, good = chatml_tokenizer(folder), json.dumps({"messages": CHAT}).encode()
    source, out = folder / "chats.jsonl", folder / "out.jsonl"
    for line, why in ((b"{", "line 2: "), (b"[]", "line 2: has no field 'messages'"), (b'{"chat": []}', "--field"),
                      (b'{"messages": []}', "line 2: messages are"), (b'{"messages": [1]}', "line 2: messages are"),
                      (b'{"messages": "x", "parts": 1}', "line 2: has a field 'parts'"), (b'{"messages": [{}]}', "line 2: "),
                      (b'{"messages": [{"role": "user", "content": "\\ud800"}]}', "line 2: "), (b"\xff", "line 2: "),
                      (good[:-1] + b', "tools": "x"}', "line 2: ")):
        source.write_bytes(good + b"\n" + line + b"\n" + good + b"\n")
        text = refused(source, "--tokenizer", place, "-o", out)
        assert text.startswith(f"tokmap render: {source}: ") and why in text and len(text.splitlines()) == 1, (line, text)
        assert not list(folder.glob("out*")), line
    source.write_bytes(good + b"\n")
    (folder / "cut.jsonl.gz").write_bytes(gzip.compress(good * 2000)[:-20])
    for arguments, why in (([folder / "none.jsonl", "--tokenizer", place], "none.jsonl"),
                           ([folder / "cut.jsonl.gz", "--tokenizer", place], "cut.jsonl.gz: "),
                           ([source, "--tokenizer", "some/name"], "some/name: transformers cannot load"),
                           ([source, "--tokenizer", place, "--chat-template", folder / "none"], "/none: No such file")):
        text = refused(*arguments, "-o", out)
        assert why in text and len(text.splitlines()) == 1 and not list(folder.glob("out*")), text
    macro = "{% macro say(text) %}{% generation %}{{ text }}{% endgeneration %}{% endmacro %}"
    for text, why in (("{{ messages[0].content }}", "has no {% generation %} blocks"), ("", "has no {% generation %} blocks"),
                      (CHATML + "{{ raise_exception('No users') }}", "line 1: No users"), ("{% for %}{% generation %}", "line 1: "),
                      ("{% generation %}a{% generation %}b{% endgeneration %}{% endgeneration %}", "a wrong place"),
                      (macro + "{{ messages[0].content + say('a' * 9) }}", "a wrong place")):
        (folder / "t").write_text(text)
        said = refused(source, "--tokenizer", place, "--chat-template", folder / "t", "-o", out)
        assert why in said and not list(folder.glob("out*")), (text, said)


def rows_of_trl_come_and_go(folder):
    """What its SFTTrainer makes of chats becomes a dataset, also if it was packed, and a dataset becomes such rows."""
    need_module("trl")
    import datasets
    import trl

    place = chatml_tokenizer(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(place)
    tokenizer.pad_token = tokenizer.eos_token
    chats = [[{key: one[key] for key in ("role", "content")} for one in chat["messages"]] for chat in some_chats(5, 300, True, False)]
    rows = datasets.Dataset.from_dict({"messages": [chat for chat in chats if chat[-1]["role"] == "assistant"]})
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2))
    for packing in (False, True):
        arguments = trl.SFTConfig(str(folder / "run"), assistant_only_loss=True, max_length=256, packing=packing, report_to=[],
                                  use_cpu=True, bf16=False, disable_tqdm=True)
        made = trl.SFTTrainer(model, arguments, train_dataset=rows, processing_class=tokenizer).train_dataset
        assert ("seq_lengths" in made.column_names) == packing
        made.save_to_disk(str(folder / f"saved{packing}"))
        run_command("import", "datasets", folder / f"saved{packing}", "-o", folder / f"data{packing}", "--vocab-size", len(tokenizer))
        ds = tokmap.open(folder / f"data{packing}")
        back = datasets.Dataset.from_dict({"input_ids": list(ds), "labels": [ds.labels(i) for i in range(len(ds))]})
        assert len(back) == len(made) or packing and len(back) == len(sum(made["seq_lengths"], [])), (len(back), len(made))
        for name in ("input_ids", "labels"):
            assert sum(back[name], []) == sum(made[name], []) and (packing or list(back[name]) == list(made[name])), name
        if packing:
            assert [len(ids) for ids in back["input_ids"]] == sum(made["seq_lengths"], [])


if __name__ == "__main__":
    sys.exit(run_checks("render_"))
