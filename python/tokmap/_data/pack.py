# SPDX-License-Identifier: Apache-2.0
"""tokmap.pack - the command `tokmap pack` from Python."""

from __future__ import annotations  # help(pack) shows names of types and not what they stand for

import difflib
import functools
import inspect
import json
import operator
import os
import re
import sys
import tempfile
from typing import Any, Callable, Dict, List, Literal, Mapping, NamedTuple, Optional, Sequence, TypeVar, Union, get_args

from .._c import arguments
from .._c.arguments import flag, real
from .._c.command import run
from .dataset import Dataset, Path, open as open_dataset

Format = Literal["auto", "text", "lines", "jsonl", "csv", "tsv", "arrow", "parquet"]
Utf8 = Literal["replace", "error", "raw"]
OnError = Literal["fail", "skip"]
Specials = Literal["text", "match", "error", "drop"]
Also = Literal["megatron"]
Names = Union[str, Sequence[str]]
Size = Union[int, str]
F = TypeVar("F", bound=Callable[..., Any])


class PackProgress(NamedTuple):
    """How far `pack` is: what a function that is given as `progress` is called with.

    n_bytes     of the inputs, as they are stored, that were packed
    total_bytes     of all inputs; None: not known, as for a pipe
    seconds     since the run began
    text        the line that the command would draw"""

    n_bytes: int
    total_bytes: Optional[int]
    seconds: float
    text: str


class PackReport:
    """What `pack` did, as its report has it.

    values      what the command writes with --report, or prints with --dry-run --json: tokmap-pack(1) names the keys"""

    def __init__(self, values: Dict[str, Any]) -> None:
        self.values = values

    @property
    def datasets(self) -> List[str]:
        """The paths of the datasets: the output, and one for each split."""
        return [one["index_file"][:-4] for one in self.values.get("datasets", ())]

    @property
    def n_documents(self) -> int:
        """In the output and its splits."""
        return int(self.values.get("n_documents", 0))

    @property
    def n_tokens(self) -> int:
        """In the output and its splits."""
        return int(self.values.get("n_tokens", 0))

    @property
    def n_bad_documents(self) -> int:
        """Documents that on_error="skip" left out."""
        return int(self.values.get("bad_documents", 0))

    @property
    def estimated_tokens(self) -> Optional[int]:
        """With dry_run; None: the inputs do not say it."""
        found = self.values.get("estimated_tokens")
        return None if found is None else int(found)

    @property
    def refused(self) -> Dict[str, str]:
        """With dry_run: the inputs that cannot be packed, and why. If there are none and values has "error", the inputs need
        several runs, whose commands were printed."""
        return {one["name"]: _translate(one["why"]) for one in self.values.get("inputs", ()) if "why" in one}

    @property
    def seconds(self) -> float:
        """How long this run took; an interrupted run before it does not count."""
        return float(self.values.get("seconds", 0))

    def open(self) -> Dataset:
        """The dataset of the output, without its splits."""
        if not self.datasets:
            raise ValueError("a dry run writes no dataset")
        return open_dataset(self.datasets[0])

    def __repr__(self) -> str:
        if "estimated_tokens" in self.values:
            size = f"about {self.estimated_tokens or 0:,} tokens" if "error" not in self.values else self.values["error"]
            return f"<tokmap.PackReport: {len(self.values['inputs']):,} inputs, {size}>"
        return (f"<tokmap.PackReport {self.datasets[0]}: {self.n_documents:,} documents, {self.n_tokens:,} tokens, "
                f"{self.seconds:.1f} s>")


# ---- Values of options ----


def _name(option: str) -> str:
    return "replace" if option == "force" else option.replace("-", "_")


def _escape(text: str) -> str:
    """As the command takes a separator."""
    return re.sub("[\\\\\n\r\t\0]", lambda found: "\\" + dict(zip("\\\n\r\t\0", "\\nrt0"))[found[0]], text)


def _given(name: str, value: Any, what: str) -> str:
    """Text without a zero byte, or a number as text."""
    if isinstance(value, bool) or not isinstance(value, str) and not hasattr(value, "__index__"):
        raise TypeError(f"{name} is {value!r:.80}: must be {what}")
    found = value if isinstance(value, str) else str(operator.index(value))
    arguments.text(name, found, what)
    return found


def _word(name: str, value: Any, words: Sequence[str]) -> str:
    if value not in words:
        raise ValueError(f"{name} is {value!r:.80}: must be one of {', '.join(map(repr, words))}")
    return str(value)


def _list_of(name: str, value: Any) -> List[str]:
    given = [value] if isinstance(value, (str, os.PathLike)) else value
    if isinstance(given, (bytes, type)) or not hasattr(given, "__iter__"):
        raise TypeError(f"{name} is {value!r:.80}: must be a text, or a list of them")
    return [arguments.path(name, one) for one in given]


def _split(name: str, value: Any) -> List[str]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} is {value!r:.80}: must be a dict, such as {{'valid': 0.01}}")
    return [f"{key}={real(f'{name}[{key!r}]', fraction):.17f}".rstrip("0") for key, fraction in value.items()]


def _meta(name: str, value: Any) -> List[str]:
    names = _list_of(name, value)
    if not isinstance(value, str) and any("," in one for one in names):
        raise ValueError(f"{name} is {value!r:.80}: a name with a comma cannot be kept")
    return [",".join(names)] if names else []


def _columns(name: str, value: Any) -> List[str]:
    """A row of CSV, so that a name may have a comma."""
    def quoted(one: str) -> str:
        return '"' + one.replace('"', '""') + '"' if re.search('[",\n\r]', one) else one

    return [",".join(map(quoted, names))] if (names := _list_of(name, value)) else []


def _separator(name: str, value: Any) -> List[str]:
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r:.80}: must be a text")
    return [_escape(value)]


# How the value of an option is written for the command, by the type of the argument: one text for each time it is given.
_KINDS: Dict[str, Callable[[str, Any], List[str]]] = {
    "Optional[Names]": _list_of,
    "Optional[Path]": lambda name, value: [arguments.path(name, value)],
    "Optional[str]": lambda name, value: [_given(name, value, "a text")],
    "Optional[Size]": lambda name, value: [_given(name, value, 'a number, such as 1000 or "64M"')],
    "Optional[Mapping[str, float]]": _split}
_OWN: Dict[str, Callable[[str, Any], List[str]]] = {
    "separator": _separator, "columns": _columns, "meta": _meta, "roles": _meta}


def _words_of(kind: str) -> Sequence[str]:
    """The words of an argument that is a Literal, else none."""
    found = re.search(r"Format|Utf8|OnError|Specials|Also", kind)
    return get_args(globals()[found[0]]) if found else ()


def _as_option(name: str, value: Any, kind: str) -> List[str]:
    option = "--" + ("force" if name == "replace" else name.replace("_", "-"))
    if kind == "bool":
        return [option] if flag(name, value) else []
    if value is None:
        return []
    words = _words_of(kind)
    texts = [_word(name, value, words)] if words else _OWN.get(name, _KINDS[kind])(name, value)
    return [f"{option}={text}" for text in texts]


def _translate(text: str) -> str:
    """Options in a message, as arguments of this function."""
    def as_argument(found: re.Match[str]) -> str:
        name, value = _name(found[1]), found[2]
        if name not in _TYPES:
            return found[0]
        if _TYPES[name] == "bool":
            return f"{name}=True{f' {value}' if value else ''}"
        if value and (value in _words_of(_TYPES[name]) or re.fullmatch("[0-9]+[A-Za-z]*|none", value)):
            return f'{name}="{value}"' if not value.isdigit() else f"{name}={value}"
        follows = value and (value.isupper() or value.startswith("'"))
        ends = text[found.end():found.end() + 1] == ":"  # what follows is said of the argument
        if value and (follows or ends):
            return f"{name}={value}"
        sign = "" if ends or found.start() == 0 else "="
        return f"{name}{sign}{f' {value}' if value else ''}"

    text = text.replace("run the same command again", "call it again with the same arguments")
    return re.sub(r"--([a-z][a-z0-9-]*[a-z0-9])(?: ([A-Za-z0-9_.]+|'[^']*'))?", as_argument, text)


# ---- Progress ----


def _line_on(out: Any) -> Optional[Callable[[str, bool], None]]:
    """Draws a line on a terminal or in a notebook; None: there is neither."""
    on_terminal = out.isatty() and os.environ.get("TERM", "dumb") != "dumb" if hasattr(out, "isatty") else False
    if not on_terminal and "ipykernel" not in sys.modules:
        return None
    width = 0

    def draw(text: str, ends: bool) -> None:
        nonlocal width
        shown = f"\r\033[?7l{text}\033[?7h\033[K" if on_terminal else f"\r{text:<{width}}"
        width = max(width, len(text))
        print(shown, end="\n" if ends else "", file=out, flush=True)

    return draw


def _reporter(progress: Any) -> Callable[[Dict[str, Any]], None]:
    """What is done with each progress of the command."""
    if callable(progress):
        return lambda found: progress(PackProgress(found["n_bytes"], found["total_bytes"], found["seconds"], found["text"]))
    if progress is not None:
        flag("progress", progress)
    draw = _line_on(sys.stderr) if progress is None or progress else None
    return (lambda found: draw(found["text"], found["ended"])) if draw else lambda found: None


# ---- All ----


def _says_what_was_meant(function: F) -> F:
    """With a message for an argument that does not exist."""
    names = [name for name in inspect.signature(function).parameters]
    elsewhere = {"quiet": "progress=False", "lines": 'format="lines"', "json": "the report that is returned",
                 "force": "replace=True", "overwrite": "replace=True", "n_threads": "threads", "num_proc": "threads", "j": "threads",
                 "text_column": "field", "column": "field", "seed": None, "plan": None, "task": None, "verify": None}

    @functools.wraps(function)
    def checked(*given: Any, **options: Any) -> Any:
        for name in options:
            if name in names:
                continue
            near = elsewhere.get(name) or next(iter(difflib.get_close_matches(name, names, 1, 0.6)), None)
            if name in ("plan", "task", "verify"):
                raise TypeError(f"pack has no argument {name}: plans are for the command, tokmap pack --plan")
            raise TypeError(f"pack has no argument {name}: {f'did you mean {near}?' if near else 'help(tokmap.pack) lists them'}")
        return function(*given, **options)

    return checked  # type: ignore[return-value]


@_says_what_was_meant
def pack(inputs: Union[Path, Sequence[Path]], tokenizer: Optional[Path], output: Optional[Path] = None, *,
         progress: Union[None, bool, Callable[[PackProgress], object]] = None,
         skip_input: Optional[Names] = None, include: Optional[Names] = None, exclude: Optional[Names] = None,
         skip_unsuitable: bool = False,
         format: Optional[Format] = None, field: Optional[str] = None,
         columns: Optional[Names] = None, tokens: Optional[str] = None, parts: Optional[str] = None,
         roles: Optional[Names] = None, labels: Optional[str] = None,
         loss_mask: Optional[str] = None, where: Optional[str] = None, meta: Optional[Names] = None,
         meta_text: Optional[Names] = None, separator: Optional[str] = None, utf8: Optional[Utf8] = None, strict_json: bool = False,
         max_document: Optional[Size] = None, on_error: Optional[OnError] = None,
         pattern: Optional[str] = None, specials_file: Optional[Path] = None, download: bool = False,
         specials: Optional[Specials] = None, vocab_size: Optional[Size] = None, eod: Optional[Size] = None,
         bos: Optional[Size] = None, also: Optional[Also] = None, split: Optional[Mapping[str, float]] = None,
         limit_documents: Optional[Size] = None, limit_tokens: Optional[Size] = None, replace: bool = False,
         restart: bool = False, dry_run: bool = False, write_lists: bool = False, report: Optional[Path] = None, no_lock: bool = False,
         threads: Optional[Size] = None, memory: Optional[Size] = None) -> PackReport:
    """Packs texts into a dataset, by the command `tokmap pack`, and returns its report.

        report = tokmap.pack("corpus.jsonl", "tokenizer.json", "data/new", split={"valid": 0.005})
        report.n_tokens, report.datasets
        loader = tokmap.Loader(report.datasets[0], 4096)

    inputs: a file, a folder, a pattern such as "c/**/*.jsonl", "@LIST", or a list of these. tokenizer: its file, the folder
    that has it, hf://OWNER/NAME, or "bytes"; None only with tokens and vocab_size. output: the path of the dataset; dry_run
    needs none.

    progress: None draws a line on a terminal and in a notebook, False draws none; a function is called with a PackProgress,
    about five times a second. What the command notes goes to sys.stderr. The other arguments are the options of the
    command, with underscores, and replace is --force: `tokmap pack --help` says what they mean. split is a dict of names and
    fractions; include, exclude, skip_input, columns, roles, meta and meta_text take a text or a list; sizes may be texts such
    as "64M".

    An interrupt (Ctrl-C) waits until what was done is kept, and raises KeyboardInterrupt; so does an exception of the
    function of progress. The same call again then goes on where it stopped. A signal that ends Python at once, such as SIGTERM,
    ends the command without a last checkpoint. Errors are those of the package, such as
    FileError and ExistsError. Wrong options, and inputs that cannot be packed, are an ArgumentError."""
    given = {name: value for name, value in locals().items() if name in _TYPES}
    operands = _list_of("inputs", inputs)
    if not operands:
        raise ValueError("inputs is empty: give at least one file, folder or pattern")
    if "-" in operands:
        raise ValueError("inputs has '-': the standard input is for the command, tokmap pack -")
    if tokenizer is None and tokens is None:
        raise ValueError('tokenizer is None: give its file, or "bytes" to make each byte a token')
    if output is None and not flag("dry_run", dry_run):
        raise ValueError("output is None: give the path of the dataset to write")
    options = ["--tokenizer=" + arguments.path("tokenizer", tokenizer)] if tokenizer is not None else []
    options += ["--output=" + arguments.path("output", output)] if output is not None else []
    for name, value in given.items():
        options += _as_option(name, value, _TYPES[name])
    reporter = _reporter(progress)
    if dry_run:
        return PackReport(run("pack", options, operands, _translate, reporter, keeps_result=True))
    return PackReport(run_pack(options, operands, _translate, reporter, None if report is None else arguments.path("report", report)))


def run_pack(options: Sequence[str], operands: Sequence[str], translate: Callable[[str], str] = str,
             on_progress: Callable[[Dict[str, Any]], None] = lambda _: None, report: Optional[str] = None) -> Dict[str, Any]:
    """The report of the command with these options. report: its file, which the options name; None: one of which nothing
    stays."""
    with tempfile.TemporaryDirectory(prefix="tokmap-pack-") as folder:
        file = report or os.path.join(folder, "report.json")
        run("pack", [*options, *([] if report else ["--report=" + file])], operands, translate, on_progress)
        with open(file, encoding="utf-8") as written:
            found: Dict[str, Any] = json.load(written)
            return found


_TYPES = {name: str(one.annotation) for name, one in inspect.signature(pack).parameters.items()
          if one.kind is one.KEYWORD_ONLY and name != "progress"}
