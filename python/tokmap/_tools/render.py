# SPDX-License-Identifier: Apache-2.0
"""python -m tokmap render: chats to parts of text, by the template of a tokenizer, for `tokmap pack --parts`."""

import argparse
import contextlib
import gzip
import io
import json
import os
import sys
from typing import IO, Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

from .._c.errors import ExistsError, LockedError
from .importers import _load_tokenizer, _need, _Refused
from .._c.output import complete_file


def _open(path: str, mode: str, name: str) -> Any:
    """name: what the file is called when it is complete."""
    if name.endswith(".zst"):
        pyarrow = _need("pyarrow")
        stream = (pyarrow.input_stream if mode == "rb" else pyarrow.output_stream)(path, compression="zstd")
        return io.BufferedReader(stream) if mode == "rb" else stream
    return gzip.open(path, mode) if name.endswith(".gz") else open(path, mode)


@contextlib.contextmanager
def _complete(path: Optional[str]) -> Iterator[IO[bytes]]:
    """A file that is there when it is complete; None: the standard output."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with complete_file(path) as (temporary, file):
        with _open(temporary, "wb", path) as out:
            yield out
        os.fsync(file)


class _Chats:
    """What renders the chats of one tokenizer."""

    def __init__(self, tokenizer: str, template: Optional[str]) -> None:
        self._tokenizer = _load_tokenizer(tokenizer)
        transformers, utils = _need("transformers"), _need("transformers.utils.chat_template_utils")
        if not hasattr(utils, "render_jinja_template"):
            raise _Refused(f"transformers {transformers.__version__} is too old: pip install -U transformers")
        self._render: Callable[..., Tuple[List[str], List[List[Tuple[int, int]]]]] = utils.render_jinja_template
        self._compile: Callable[[str], Any] = utils._compile_jinja_template
        self._name, self._template, self._checked = tokenizer, None, set()  # type: str, Optional[str], Set[str]
        if template is not None:
            with open(template, encoding="utf-8") as file:
                self._name, self._template = template, file.read()

    def _check(self, template: str) -> None:
        nodes = _need("jinja2.nodes")

        def blocks(node: Any) -> List[Any]:
            return [one for one in node.find_all(nodes.CallBlock) if isinstance(one.call.node, nodes.ExtensionAttribute)]

        tree = self._compile(template).environment.parse(template)
        if not blocks(tree):
            raise _Refused(f"{self._name}: the chat template has no {{% generation %}} blocks, which say what the "
                           "assistant wrote: give one that has them by --chat-template FILE; "
                           "trl.chat_template_utils.get_training_chat_template(tokenizer) has those of many models")
        if any(map(blocks, tree.find_all((nodes.Macro, nodes.AssignBlock, nodes.FilterBlock, nodes.CallBlock)))):
            raise _Refused(f"{self._name}: the chat template has a {{% generation %}} block in a macro or in a set, "
                           "filter, call or other generation block: transformers finds a wrong place for it in the text")
        self._checked.add(template)

    def parts(self, messages: Any, tools: Any, values: Dict[str, Any]) -> List[Dict[str, Any]]:
        """Of a chat. What is in {% generation %} blocks is trained on."""
        if not isinstance(messages, list) or not messages or not all(isinstance(one, dict) for one in messages):
            raise ValueError("messages are no list of objects, or an empty one")
        tools = json.loads(tools) if isinstance(tools, str) else tools
        template = self._tokenizer.get_chat_template(self._template, tools)
        if template not in self._checked:
            self._check(template)
        chat = [{key: value for key, value in one.items() if value is not None} for one in messages]
        (text,), (blocks,) = self._render([chat], tools=tools, chat_template=template, return_assistant_tokens_mask=True,
                                          **{**self._tokenizer.special_tokens_map, **values})
        found, at = [], 0
        for first, end in blocks:  # those that follow each other stay two parts, as they are two in transformers
            if not at <= first <= end <= len(text):
                raise ValueError(f"the template has a generation block at {first}:{end} of a text of {len(text)}")
            found += [{"text": text[at:first], "train": False}, {"text": text[first:end], "train": True}]
            at = end
        found.append({"text": text[at:], "train": False})
        return [part for part in found if part["text"]]


def _parse(arguments: Optional[List[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tokmap render", description="Makes parts of text of chats, by the chat template of a tokenizer. "
        "Each line becomes {\"parts\": [{\"text\": ..., \"train\": true or false}, ...]} and its other fields, for "
        "'tokmap pack --parts parts'. What the template has in {% generation %} blocks is trained on. Nothing is "
        "loaded from the network.".replace("%", "%%"),
        epilog="Example: python -m tokmap render chats.jsonl --tokenizer models/llama -o parts.jsonl")
    parser.add_argument("input", metavar="FILE", help="JSON lines, also as .gz or .zst")
    parser.add_argument("--tokenizer", required=True, metavar="NAME", help="folder of a tokenizer of transformers, or "
                        "the name of one that was downloaded before")
    parser.add_argument("--field", default="messages", metavar="NAME", help="field of the messages, objects with role "
                        "and content [%(default)s]")
    parser.add_argument("--chat-template", metavar="FILE", help="template in place of the tokenizer's, such as one for "
                        "training of TRL")
    parser.add_argument("--tools", default="tools", metavar="NAME", help="field of the tools, which lines may lack: a "
                        "list of schemas, or such a list as text [%(default)s]")
    parser.add_argument("-o", "--output", metavar="FILE", help="complete or absent [standard output]")
    parser.add_argument("--replace", action="store_true", help="replace the output")
    parser.add_argument("-q", "--quiet", action="store_true", help="print only errors")
    return parser.parse_args(arguments)


def _render_line(chats: _Chats, line: bytes, o: argparse.Namespace) -> Dict[str, Any]:
    row = json.loads(line.decode())
    if not isinstance(row, dict) or o.field not in row:
        raise ValueError(f"has no field {o.field!r}: name the field of the messages by --field")
    if "parts" in row:
        raise ValueError("has a field 'parts' already")
    messages, tools = row.pop(o.field), row.pop(o.tools, None)
    row["parts"] = chats.parts(messages, tools, row.get("chat_template_kwargs") or {})
    return row


def main(arguments: Optional[List[str]] = None) -> None:
    """Runs the command `render`. Exit statuses are those of the program."""
    o = _parse(arguments)
    n_chats = n_idle = 0
    try:
        if o.output and not o.replace and os.path.lexists(o.output):
            raise ExistsError(f"{o.output}: already exists: use --replace to replace it", 0)
        chats = _Chats(o.tokenizer, o.chat_template)
        with _open(o.input, "rb", o.input) as lines, _complete(o.output) as out:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    row = _render_line(chats, line, o)
                    text = json.dumps(row, ensure_ascii=False).encode()
                except _Refused:
                    raise
                except Exception as error:  # each template has its own
                    raise _Refused(f"{o.input}: line {number}: {error}") from None
                out.write(text + b"\n")
                n_chats += 1
                n_idle += not any(part["train"] for part in row["parts"])
    except Exception as error:
        writing = isinstance(error, OSError) and error.errno is not None and error.filename is None
        is_taken = isinstance(error, (ExistsError, LockedError))
        named = is_taken or isinstance(error, _Refused) or getattr(error, "filename", None) is not None
        place = "" if named else f"{(o.output or 'standard output') if writing else o.input}: "
        print(f"tokmap render: {place}{error}", file=sys.stderr)
        sys.exit(5 if is_taken else 1 if writing else 3)
    if not o.quiet:
        idle = f", of which {n_idle:,} have nothing that is trained on" if n_idle else ""
        print(f"{o.output or o.input}: {n_chats:,} chats{idle}", file=sys.stdout if o.output else sys.stderr)
