# SPDX-License-Identifier: Apache-2.0
"""tokmap render: chats to parts of text, by the template of a tokenizer, for `tokmap pack --parts`."""

import contextlib
import gzip
import io
import json
import os
import re
import sys
from typing import IO, Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from .._c.errors import Error, ExistsError
from .._c.output import complete_file
from .importers import _load_tokenizer, _need
from .terminal import Given, Refused, WrongUse, ends_as_program, plain, print_json, show_count


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


class _Mark(NamedTuple):
    """What stands from `begin` to `end` has the role `name`."""

    name: str
    begin: str
    end: str


_NAME = re.compile("[A-Za-z0-9_-]{1,64}")


def _mark_of(text: str) -> _Mark:
    name, is_given, rest = text.partition("=")
    begin, dots, end = rest.partition("...")
    if not is_given or not dots or not begin.strip() or not end.strip() or not _NAME.fullmatch(name) or name in ("prompt", "redacted"):
        raise WrongUse(f"--mark {text}: must be NAME=BEGIN...END, such as 'think=<think>...</think>'; NAME has 1 to 64 of the "
                       "characters A-Z, a-z, 0-9, _ and -, and is not prompt or redacted")
    return _Mark(name, begin, end)


def split_by_marks(marks: Sequence[_Mark], before: str, text: str) -> Iterator[Tuple[str, str]]:
    """(role, text) of the pieces of what an assistant wrote. before: what the template has before it, which may end with the
    beginning of a mark, as templates that make a model think do."""
    at = 0
    open_mark = next((mark for mark in marks if before.rstrip().endswith(mark.begin.rstrip())), None)
    while at < len(text):
        if open_mark is None:
            first, _, found = min(((place, -len(mark.begin), mark) for mark in marks
                                   if (place := text.find(mark.begin, at)) >= 0), default=(len(text), 0, None))
            if first > at:
                yield "assistant", text[at:first]
            at, end, open_mark = first, first + (len(found.begin) if found else 0), found
        else:
            end = at
        if open_mark is not None:
            place = text.find(open_mark.end, end)
            end = len(text) if place < 0 else place + len(open_mark.end)
            yield open_mark.name, text[at:end]
            at, open_mark = end, None


def _joined(blocks: Sequence[Tuple[int, int]]) -> List[Tuple[int, int]]:
    """Blocks that follow each other as one, because a mark may go on from one to the next."""
    found: List[Tuple[int, int]] = []
    for first, end in blocks:
        if found and found[-1][1] == first:
            first = found.pop()[0]
        found.append((first, end))
    return found


class _Chats:
    """What renders the chats of one tokenizer."""

    def __init__(self, tokenizer: str, template: Optional[str], marks: Sequence[_Mark] = ()) -> None:
        self._marks = marks
        self._tokenizer = _load_tokenizer(tokenizer)
        transformers, utils = _need("transformers"), _need("transformers.utils.chat_template_utils")
        if not hasattr(utils, "render_jinja_template"):
            raise Refused(f"transformers {transformers.__version__} is too old: pip install -U transformers")
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
            raise Refused(f"{self._name}: the chat template has no {{% generation %}} blocks, which say what the "
                           "assistant wrote: give one that has them by --chat-template FILE; "
                           "trl.chat_template_utils.get_training_chat_template(tokenizer) has those of many models")
        if any(map(blocks, tree.find_all((nodes.Macro, nodes.AssignBlock, nodes.FilterBlock, nodes.CallBlock)))):
            raise Refused(f"{self._name}: the chat template has a {{% generation %}} block in a macro or in a set, "
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
        found: List[Dict[str, Any]] = []
        at = 0
        for first, end in _joined(blocks) if self._marks else blocks:  # those that follow each other stay two parts, as they are two in transformers
            if not at <= first <= end <= len(text):
                raise ValueError(f"the template has a generation block at {first}:{end} of a text of {len(text)}")
            found.append({"text": text[at:first], "train": False})
            found += [{"text": piece, "train": True, "role": role}
                      for role, piece in split_by_marks(self._marks, text[:first], text[first:end])] if self._marks else [
                          {"text": text[first:end], "train": True}]
            at = end
        found.append({"text": text[at:], "train": False})
        return [part for part in found if part["text"]]


def _render_line(chats: _Chats, line: bytes, o: Given) -> Dict[str, Any]:
    row = json.loads(line.decode())
    field = o.field or "messages"
    if not isinstance(row, dict) or field not in row:
        raise ValueError(f"has no field {field!r}: name the field of the messages by --field")
    if "parts" in row:
        raise ValueError("has a field 'parts' already")
    messages, tools = row.pop(field), row.pop(o.tools or "tools", None)
    row["parts"] = chats.parts(messages, tools, row.get("chat_template_kwargs") or {})
    return row


def _write(o: Given) -> Tuple[int, int]:
    """Returns how many chats there were, and how many of them have nothing that is trained on."""
    n_chats = n_idle = 0
    path, marks = o.operands[0], [_mark_of(text) for text in o.mark or ()]
    if o.output and not o.force and os.path.lexists(o.output):
        raise ExistsError(f"{o.output}: already exists", 0, file=o.output)
    os.stat(path)  # whose error names the file
    try:
        chats = _Chats(o.tokenizer, o.chat_template, marks)
        with _open(path, "rb", path) as lines, _complete(o.output) as out:
            for number, line in enumerate(show_count(lines, "render", "chats", o.quiet), 1):
                if not line.strip():
                    continue
                try:
                    row = _render_line(chats, line, o)
                    text = json.dumps(row, ensure_ascii=False).encode()
                except Refused:
                    raise
                except Exception as error:  # each template has its own
                    raise Refused(f"{path}: line {number}: {error}") from None
                out.write(text + b"\n")
                n_chats += 1
                n_idle += not any(part["train"] for part in row["parts"])
    except Exception as error:  # each library has its own
        if isinstance(error, (Refused, Error, MemoryError)) or isinstance(error, OSError) and error.errno is not None:
            raise
        raise Refused(f"{path}: {error}") from None
    return n_chats, n_idle


def main(arguments: List[str]) -> None:
    o = Given(arguments)
    with ends_as_program("render", o.json):
        if o.json and not o.output:
            raise WrongUse("--json needs --output")
        n_chats, n_idle = _write(o)
        if o.json:
            print_json(output_file=o.output, n_chats=n_chats, n_chats_without_training=n_idle)
        elif not o.quiet:
            idle = f", of which {n_idle:,} have nothing that is trained on" if n_idle else ""
            print(plain(f"{o.output or o.operands[0]}: {n_chats:,} chats{idle}"), file=sys.stdout if o.output else sys.stderr)
