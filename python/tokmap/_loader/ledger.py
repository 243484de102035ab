# SPDX-License-Identifier: Apache-2.0
"""The ledger of a run: a line for each change, in docs/FORMAT.md, section 12."""

import contextlib
import ctypes
import datetime
import fcntl
import itertools
import json
import os
import re
import warnings
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Tuple

from .._c import structs as _lib
from .._c.errors import DamagedError, Error, Handle, MismatchError, call, check
from .._c.output import check_own
from .._c.structs import lib
from .._data.store import is_url
from .mixture import Mixture
from .place import Now, Place

if TYPE_CHECKING:
    from .._data.dataset import Path

# What the order depends on.
_ORDER = ("sequence_length", "seed", "shuffle", "windows", "random_offset", "weigh_tokens", "align", "max_documents", "whole_documents",
          "block_windows", "group_blocks")
_STEPS = ("ranks", "batch_rows", "micro_batches")


def order_ids(source: Dict[str, Any]) -> List[Any]:
    """What the order of a source of a line depends on: the ids of its datasets, which of their documents it has, and lists."""
    return [(dataset.get("order_of", dataset["id"]), dataset.get("documents"), dataset.get("view", {}).get("set"),
             dataset.get("document_list"), source.get("window_list")) for dataset in source["datasets"]]


def views_of(source: Dict[str, Any]) -> List[Optional[Tuple[int, str]]]:
    """For each dataset of a source of a line the set_hash of its view, and the expression that it was made from."""
    views = [dataset.get("view") for dataset in source["datasets"]]
    return [view and (int(view["set"], 16), os.fsdecode(_bytes_of(view["where"]))) for view in views]


def _bytes_of(text: str) -> bytes:
    """The bytes of a text in which bytes that are not printable ASCII are written as \\xHH."""
    return re.sub(rb"\\x([0-9a-f]{2})", lambda found: bytes([int(found[1], 16)]), text.encode())


class Line:
    """One line: fields has the whole object."""

    def __init__(self, text: bytes, place: str) -> None:
        self.text, self.place = text, place
        self.fields: Dict[str, Any] = json.loads(text)
        if self.fields["windows"] == "within-document":  # an older spelling
            self.fields["windows"] = "within_document"
        self.event: str = self.fields["event"]
        self.begin, self.sample = int(self.fields["from"]), int(self.fields["sample"])
        self.rows: int = self.fields["ranks"] * self.fields["batch_rows"]
        self.skips = [(int(a), int(b)) for a, b in self.fields["skips"]]
        self.ways: Dict[int, Dict[str, Any]] = {}  # how views are opened, where a Loader knows it
        self.sources: List[Any] = []  # of that Loader, which has their lists

    def mixture(self) -> Mixture:
        phases = [(int(phase["sample"]), phase["weights"]) for phase in self.fields["phases"]]
        return Mixture(phases, [int(source["max_epochs"]) for source in self.fields["sources"]], self.skips)

    def order(self) -> Any:
        fields = self.fields
        return [fields.get(name) for name in _ORDER], [
            (source["max_epochs"], order_ids(source)) for source in fields["sources"]], [
            (phase["sample"], phase["quotas"]) for phase in fields["phases"]]

    def phases_before(self, sample: int) -> List[Any]:
        """Without the sources that have no samples there."""
        return [(phase["sample"], {k: n for k, n in enumerate(phase["quotas"]) if n}) for phase in self.fields["phases"]
                if int(phase["sample"]) < sample]

    def paths(self) -> List[List[str]]:
        """The paths of the datasets of each source."""
        folder = _bytes_of(self.fields["folder"])
        found = [[os.fsdecode(_bytes_of(d["index"])) for d in source["datasets"]] for source in self.fields["sources"]]
        return [[path if is_url(path) else os.path.join(os.fsdecode(folder), path) for path in paths] for paths in found]

    def check_same_run(self, other: "Line") -> None:
        """No amend changes what is compared here. self: the first line."""
        for name in _ORDER:
            if self.fields.get(name) != other.fields.get(name):
                raise MismatchError(f"{self.place}: is the ledger of another run: {name} is {self.fields[name]} there, and "
                                    f"{other.fields[name]} here", -7, file=self.place)
        for k, (old, new) in enumerate(itertools.zip_longest(self.fields["sources"], other.fields["sources"])):
            if old and (not new or order_ids(old) != order_ids(new)):
                found = changed_views(old, other.paths()[k], views_of(new)) if new else []
                raise MismatchError(f"{self.place}: is the ledger of another run: "
                                    f"{'; '.join(found) or f'source {k} has other datasets there'}", -7, file=self.place)

    def is_like(self, other: "Line") -> bool:
        """Whether both say the same; not when, where and after which line. "closed" is like no other."""
        ignored = dict.fromkeys(("event", "time", "host", "folder", "after", "checksum"))
        return {**self.fields, **ignored} == {**other.fields, **ignored} and \
            (self.event == "closed") == (other.event == "closed")


def _parse(path: str, data: bytes) -> List[Line]:
    lines: List[Line] = []
    after = None
    for number, text in enumerate(data.split(b"\n")[:-1], 1):
        place = f"{path}:{number}"
        try:
            call(lib.tokmap_ledger_check, text, len(text), after)
        except Error as error:
            raise type(error)(f"{place}: {error}", error.status) from None
        try:
            lines.append(Line(text, place))
        except (ValueError, KeyError, TypeError):
            raise DamagedError(f"{place}: its checksum is right, but it does not say what a line must say", -6, file=place) from None
        after = text
    return lines


def _whole(path: str, data: bytes) -> bytes:
    """The data without a last line that was not written to its end."""
    end = data.rfind(b"\n") + 1
    if end < len(data):
        warnings.warn(f"{path}:{data.count(10) + 1}: this line was not written to its end, and is left out: "
                      f"{os.fsdecode(data[end:end + 60])}")
    return data[:end]


def read(path: "Path") -> List[Line]:
    """The lines of a ledger. DamagedError: one was changed, or is missing."""
    with open(path, "rb") as file:
        lines = _parse(os.fspath(path), _whole(os.fspath(path), file.read()))
    if not lines:
        raise DamagedError(f"{os.fspath(path)}: has no lines", -6, file=os.fspath(path))
    return lines


class Segment(NamedTuple):
    """The samples from `begin` up to `end` (None: not known) were used as this line says."""

    begin: int
    end: Optional[int]
    line: Line


def _attempts(lines: List[Line]) -> List[Segment]:
    """The attempts, each with its own end if the ledger has it."""
    found: List[Segment] = []
    for line in lines:
        if line.event in ("closed", "batch", "moved"):
            if not found:
                raise DamagedError(f"{line.place}: goes on with a run that was not opened", -6, file=line.place)
            if line.event != "moved":
                found[-1] = found[-1]._replace(end=line.begin)
        if line.event != "closed":
            found.append(Segment(line.begin, None, line))
    return found


def _may_lead_to(attempt: Segment, line: Line) -> bool:
    at = line.begin
    return attempt.begin < at <= (at if attempt.end is None else attempt.end) and (
        attempt.line.phases_before(at) == line.phases_before(at))


def _predecessors(attempts: List[Segment]) -> List[int]:
    """For each attempt the number of its predecessor: the attempt that was moved ahead to it; or the latest attempt
    before it whose samples may have led to it; or the latest attempt that began before it. -1: there is none."""
    found = []
    for i, (begin, _, line) in enumerate(attempts):
        before = range(i - 1, -1, -1)
        k = i - 1 if line.event == "moved" else next((k for k in before if _may_lead_to(attempts[k], line)), -1)
        found.append(k if k >= 0 else next((k for k in before if attempts[k].begin < begin), -1))
    return found


def _way_to(attempts: List[Segment], predecessors: List[int], last: int) -> List[Segment]:
    found = [attempts[last]]
    while predecessors[last] >= 0:
        last = predecessors[last]
        begin, end = found[0].begin, attempts[last].end
        found.insert(0, attempts[last]._replace(end=begin if end is None else min(begin, end)))
    return found


def history(lines: List[Line]) -> List[Segment]:
    """How the run came to its last line: from this line back, each time to the latest line whose samples may have led
    there. Samples that the run gave up when it went back are not among them. There are gaps where the run was moved
    ahead."""
    attempts = _attempts(lines)
    return _way_to(attempts, _predecessors(attempts), len(attempts) - 1)


class GivenUp(NamedTuple):
    """What a run did before it went back: the samples from `begin` up to `end` (None: not known, perhaps none), at the
    end of this history."""

    begin: int
    end: Optional[int]
    history: List[Segment]


def given_up(lines: List[Line]) -> List[GivenUp]:
    """Whatever is not in the history of the run."""
    attempts, found = _attempts(lines), []
    before = _predecessors(attempts)
    kept = {segment.line.place: segment.end for segment in _way_to(attempts, before, len(attempts) - 1)}
    for i, one in enumerate(attempts[:-1]):
        way, begin = _way_to(attempts, before, i), kept.get(one.line.place) or one.begin
        end = max([other.begin for other, k in zip(attempts, before) if k == i], default=begin) if one.end is None else one.end
        if begin < end:
            found.append(GivenUp(begin, end, [*way[:-1], one._replace(end=end)]))
        if one.end is None:
            found.append(GivenUp(max(begin, end), None, way))
    return found


def _describe(view: Optional[Tuple[int, str]]) -> str:
    return f"the view {repr(view[1]) if view[1] else 'of a mask or file'} with the set {view[0]:016x}" if view else "all documents"


def changed_views(then: Dict[str, Any], paths: List[str], now: List[Optional[Tuple[int, str]]]) -> List[str]:
    """What to say of the views of a source that have other documents than those of a line. paths: of its datasets."""
    return [f"{path}: the run had {_describe(a)}, and this loader has {_describe(b)}"
            for path, a, b in zip(paths, views_of(then), now) if (a and a[0]) != (b and b[0])]


def earlier_lines(path: "Path", sample: int) -> List[Line]:
    """The lines that a run may have had when it came to this sample, the likeliest first."""
    lines = read(path)
    return [line for line in [segment.line for segment in reversed(history(lines))] + lines[::-1] if line.begin <= sample]


def earlier_mixtures(path: "Path", sample: int) -> List[Mixture]:
    """Their mixtures, each once."""
    found: List[Mixture] = []
    for mixture in [line.mixture() for line in earlier_lines(path, sample)]:
        if mixture not in found:
            found.append(mixture)
    if not found:
        raise MismatchError(f"{os.fspath(path)}: has no line before sample {sample}, where the state is", -7, file=os.fspath(path))
    return found


def line_of(handle: Handle, micro_batches: int) -> Line:
    """What a ledger would say about a loader."""
    return _new_line("the Loader", handle, micro_batches, "opened", 0, None)


def _new_line(path: str, handle: Handle, micro_batches: int, event: str, sample: int, after: Optional[Line]) -> Line:
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    entry = _lib.LedgerEntry(
        event=event.encode(), time=now.encode(),
        host=os.uname().nodename.encode(), folder=os.fsencode(os.getcwd()), after=after.text if after else None,
        sample=sample, micro_batches=micro_batches)
    detail, room = _lib.ErrorDetail(), 1 << 16
    while True:
        memory, n_bytes = ctypes.create_string_buffer(room), ctypes.c_size_t(room)
        status = lib.tokmap_loader_ledger_line(handle.pointer, ctypes.byref(entry), memory, ctypes.byref(n_bytes), ctypes.byref(detail))
        if not status or n_bytes.value < room:  # else it needs more room
            check(status, detail)
            return Line(memory.raw[:n_bytes.value], path)
        room = n_bytes.value + 1


class Ledger:
    """Where a Loader writes its lines. It belongs to the process that made it. is_open: whether a batch was begun, so that
    the end is to be said, too."""

    def __init__(self, path: str, micro_batches: int, handle: Handle, place: Place) -> None:
        check_own(path, b'{"ledger":', "a ledger")
        self.path, self._micro_batches, self._process = path, micro_batches, os.getpid()
        self.handle, self._place = handle, place
        self.is_open = False
        self.due: Optional[int] = 0  # where the next batch begins, if that needs a line
        self._rows = 0  # of a step, as the last line says
        self._last: Optional[bytes] = None  # the line that says what this loader does
        self._tried: Optional[bytes] = None  # a line that is perhaps written, because something failed
        self._warned = False

    def begin(self, now: Now) -> None:
        """A batch begins here."""
        if self.due is None and now[1] != self._rows:
            self.due = now[0]
        if self.due is not None:
            self.is_open = True  # the line may be written, also if something fails then
            self.write(None, self.due, now[1])
            self.due, self._rows = None, now[1]

    def write(self, event: Optional[str], sample: int, rows: int) -> None:
        """Writes a line, unless the last line is of this loader and says the same. event None: the last line decides which event it is."""
        if self._process != os.getpid():
            return
        with contextlib.suppress(Error):  # a stage has the handle, so it has these rows
            self._place.set_rows(self.handle, rows)
        with open(self.path, "a+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
            except OSError as error:
                warnings.warn(f"{self.path}: cannot be locked ({error.strerror}): of processes that write at the same time, "
                              "one may make the ledger unreadable")
            file.seek(0)
            data = file.read()
            whole = _whole(self.path, data)
            lines = _parse(self.path, whole)
            last, own = lines[-1] if lines else None, (self._last, self._tried)
            line = self._line(event or "resumed", sample, last)
            if event is None:
                if lines:
                    lines[0].check_same_run(line)
                goes_on = any(one.text in own for one in lines[-2 if last and last.event == "closed" else -1:])
                line = self._line(_event_of(line, last, goes_on), sample, last)
                if not goes_on:
                    self._warn()
            elif last is None or last.text not in own:
                return self._warn()
            if last is not None and last.text in own and line.is_like(last):  # of another run it is written again: that one ended
                self._last = last.text
                return
            self._tried = line.text
            os.ftruncate(file.fileno(), len(whole))
            file.write(line.text + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self._last = line.text

    def _warn(self) -> None:
        if self._last is not None and not self._warned:
            self._warned = True  # also if the warning is an error
            warnings.warn(f"{self.path}: another run has gone on in this ledger since this one wrote to it, so the ledger does not "
                          "say where this one ended: end the other one, or give each a ledger of its own")

    def _line(self, event: str, sample: int, after: Optional[Line]) -> Line:
        return _new_line(self.path, self.handle, self._micro_batches, event, sample, after)

    def close(self) -> None:
        if self.is_open:
            self.write("closed", *self._place.now[:2])
            self.is_open = False


def _event_of(line: Line, last: Optional[Line], goes_on: bool) -> str:
    """goes_on: the last line is of the same loader."""
    if last is None:
        return "opened"
    if line.order() != last.order():
        return "amended"
    if line.skips != last.skips:
        return "skipped"
    if goes_on and last.event == "closed":
        return "moved" if line.begin > last.begin else "resumed"
    if goes_on and any(line.fields[name] != last.fields[name] for name in _STEPS):
        return "batch"
    return "resumed"
