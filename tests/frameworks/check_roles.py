#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Roles of chats, chosen when they are loaded: labels of answers, of thinking and of tool calls count as a mask of characters
says that is made with transformers and the offsets of tokenizers alone."""

import itertools
import json
import random
import re
import sys

from frameworks import need, run_checks

if __name__ == "__main__":
    need("render", "numpy", "transformers", "tokenizers", "jinja2")
import transformers  # noqa: E402

import tokmap  # noqa: E402
from check_render import TEMPLATES, TOOLS, make_tokenizer, read_lines, run_command, template, write_lines  # noqa: E402

N_CHATS, LENGTH = 200, 4096
ROLES = ("assistant", "think", "tool-call")
MARKS = {"think": ("<think>", "</think>"), "tool-call": ("<tool_call>", "</tool_call>")}
WORDS = ["well", " let", " me", " see", "\n", " 17", " cafe", " caf\u00e9", "\U0001f600", ".", "?", " <", "> ", "thinking", " tool"]


def some_text(rng, n):
    return "".join(rng.choices(WORDS, k=rng.randint(1, n)))


def some_chats(rng, has_tools):
    """Answers think before they answer, in the middle, not at all, or without an end, and call tools."""
    found = []
    for _ in range(N_CHATS):
        chat, with_tools = [], rng.random() < 0.5
        for _ in range(rng.randint(1, 3)):
            thought = rng.choice(("", "<think>" + some_text(rng, 20) + "</think>"))
            answer = rng.choice((thought + some_text(rng, 9), some_text(rng, 5) + thought + some_text(rng, 5)))
            chat.append({"role": "user", "content": some_text(rng, 9).strip() or "go"})
            if with_tools and has_tools:
                call = {"name": "look_up", "arguments": {"word": some_text(rng, 3)}}
                chat.append({"role": "assistant", "content": answer, "tool_calls": [{"type": "function", "function": call}]})
                chat.append({"role": "tool", "name": "look_up", "content": some_text(rng, 9)})
            elif with_tools:
                answer += f"<tool_call>{some_text(rng, 9)}</tool_call>" + rng.choice(("", some_text(rng, 3)))
            chat.append({"role": "assistant", "content": answer + rng.choice(("", "", "<think>" + some_text(rng, 4)))})
        found.append({"messages": chat, **({"tools": TOOLS} if with_tools and has_tools else {})})
    return found


def roles_of_characters(text):
    """By plain search; a thought that has no end goes to the end of the text of its answer, which the caller cuts."""
    found = ["assistant"] * len(text)
    pattern = "|".join(f"(?P<_{i}>{re.escape(a)}.*?(?:{re.escape(b)}|\\Z))" for i, (a, b) in enumerate(MARKS.values()))
    for match in re.finditer(pattern, text, re.S):
        name = list(MARKS)[int(match.lastgroup[1:])]
        found[match.start():match.end()] = [name] * (match.end() - match.start())
    return found


def untrimmed(folder, family):
    """A tokenizer whose offsets have the blanks that its tokens have."""
    place = make_tokenizer(folder, family)
    content = json.loads((place / "tokenizer.json").read_text())
    content["post_processor"]["trim_offsets"] = False
    (place / "tokenizer.json").write_text(json.dumps(content))
    return place


def labels_count_as_a_mask_of_characters_says(folder):
    place = untrimmed(folder, "llama3")
    tokenizer, n, n_by_role = transformers.AutoTokenizer.from_pretrained(place), 0, dict.fromkeys(ROLES, 0)
    for t, (name, (_, has_tools)) in enumerate(TEMPLATES.items()):
        chats = some_chats(random.Random(t), has_tools)
        run_command("render", write_lines(folder / "chats.jsonl", chats), "--tokenizer", place, "--chat-template", template(name),
                    *[f"--mark={role}={a}...{b}" for role, (a, b) in MARKS.items()], "-o", folder / "parts.jsonl", "--force")
        run_command("pack", "-q", folder / "parts.jsonl", "--parts", "parts", "--roles", ",".join(ROLES), "--tokenizer",
                    place / "tokenizer.json", "-o", folder / "packed", "--force")
        packed = tokmap.open(folder / "packed")
        assert packed.roles == ROLES and len(packed) == len(chats)
        wanted = []
        for i, (chat, row) in enumerate(zip(chats, read_lines(folder / "parts.jsonl"))):
            said = dict(tools=chat.get("tools"), chat_template=template(name).read_text())
            text = tokenizer.apply_chat_template(chat["messages"], tokenize=False, **said)
            theirs = tokenizer.apply_chat_template(chat["messages"], return_assistant_tokens_mask=True, return_dict=True, **said)
            encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
            assert encoded["input_ids"] == theirs["input_ids"] == packed[i].tolist(), (name, chat)
            roles, at = [None] * len(text), 0  # of each character; None: it is in no answer
            for trained, parts in itertools.groupby(row["parts"], lambda part: part["train"]):
                answer = "".join(part["text"] for part in parts)
                if trained:
                    roles[at:at + len(answer)] = roles_of_characters(answer)
                at += len(answer)
            assert at == len(text)
            of_tokens = [next((role for role in roles[a:b] if role), None) for a, b in encoded["offset_mapping"]]
            assert [role is not None for role in of_tokens] == [bool(one) for one in theirs["assistant_masks"]], (name, chat)
            wanted.append(of_tokens)
            for role in of_tokens:
                if role:
                    n_by_role[role] += 1
        for chosen in [None] + [some for k in range(4) for some in itertools.combinations(ROLES, k)]:
            with tokmap.Loader(packed, LENGTH, 1, windows="within_document", shuffle="none", max_epochs=1,
                               outputs=("inputs", "labels", "loss_mask"), rows=tokmap.Rows(train_roles=chosen)) as loader:
                for of_tokens, batch in zip(wanted, loader):
                    counts = [bool(role) if chosen is None else role in chosen for role in of_tokens[1:]]
                    assert batch.loss_mask[0, :len(counts)].tolist() == counts, (name, chosen)
                    assert (batch.labels[0, :len(counts)] != -100).tolist() == counts
                    n += 1
    assert min(n_by_role.values()) > 5000, n_by_role
    return f"{n} rows; tokens by role: {n_by_role}"


if __name__ == "__main__":
    sys.exit(run_checks("roles_"))
