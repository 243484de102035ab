# SPDX-License-Identifier: Apache-2.0
"""tokmap.measure: how long a training waits for its batches, whatever gives them."""

import copy
import glob
import json
import math
import numbers
import os
import time
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple, Union

from .._c import html
from .._c.structs import lib
from .._loader.batch import Batch

FED = 0.99  # the least utilisation of a training that does not wait, as in `tokbench fit`
_TOKENS = ("inputs", "input_ids", "input", "tokens", "text")  # where a batch has them
_TICK = os.sysconf("SC_CLK_TCK")
_now, _sleep = time.perf_counter, time.sleep


class Waits(NamedTuple):
    """Seconds that steps waited for their batches: p50, p99, p999 are the smallest that 50, 99 and 99.9 % of all steps
    do not exceed."""

    p50: float
    p99: float
    p999: float
    max: float


@dataclass(frozen=True)
class Measurement:
    """What measure() has found. print(m) is a table, m.to_json() what `tokbench compare` takes.

    n_steps: the steps that count, which are those after the first warm_up ones. n_tokens: of their batches; None if they
    could not be counted. waits: seconds that each step waited, in their order. step_s: seconds of a step without its
    wait, on average. first_batch_s: seconds from iter(loader) to the first batch. cpu_s: processor seconds of this
    process in the steps that count, a model's too, and cpu_children_s: those of its descendants. memory_bytes: of this
    process and its descendants, without pages of files. ended: whether the loader ended before the steps that were
    asked for. simulated: whether the steps were. replay: what the same steps found with batches that were kept; None
    if none were."""

    n_steps: int
    n_tokens: Optional[int]
    waits: Tuple[float, ...] = field(repr=False)
    step_s: float
    first_batch_s: float
    cpu_s: float
    cpu_children_s: float
    memory_bytes: int
    ended: bool = False
    simulated: bool = True
    replay: Optional["Measurement"] = field(default=None, repr=False)

    @property
    def wait(self) -> Waits:
        """Seconds that steps waited: p50, p99, p999 and max."""
        ordered = sorted(self.waits)
        return Waits(*(ordered[max(math.ceil(self.n_steps * part / 1000), 1) - 1] for part in (500, 990, 999, 1000)))

    @property
    def utilisation(self) -> float:
        """Of the accelerator: the share of the time that steps computed. 0 if steps take no time."""
        computed = self.n_steps * self.step_s
        return computed / (computed + sum(self.waits)) if computed else 0.0

    @property
    def tokens_per_second(self) -> Optional[float]:
        """Tokens of a second of steps with their waits; None if tokens could not be counted."""
        seconds = self.n_steps * self.step_s + sum(self.waits)
        return None if self.n_tokens is None else self.n_tokens / seconds

    @property
    def verdict(self) -> str:
        """One sentence: "fed", or how much of the time is lost."""
        if not self.step_s:
            return f"a batch in {_time(sum(self.waits) / self.n_steps)}, without steps between them"
        if self.utilisation >= FED:
            return f"fed: waits are {100 * (1 - self.utilisation):.2f} % of the time"
        lost = f"waits: {100 * (1 - self.utilisation):.1f} % of the time"
        if self.replay is None:
            return lost
        of_loader = max(sum(self.waits) / self.n_steps - sum(self.replay.waits) / self.replay.n_steps, 0)
        return (f"{lost}; of each step of {_time(self.step_s + sum(self.waits) / self.n_steps)} the loader costs "
                f"{_time(of_loader)}, and with kept batches a step takes "
                f"{_time(self.replay.step_s + sum(self.replay.waits) / self.replay.n_steps)}")

    def to_json(self) -> str:
        """This measurement as JSON, with the keys of `tokbench fit --json` where they mean the same."""
        return json.dumps({"schema_version": 1, "kind": "measure", "tokmap": lib.tokmap_version().decode(),
                           "verdict": None if not self.step_s else "fed" if self.utilisation >= FED else "waits", "text": self.verdict, **self._numbers()}, indent=2)

    def _numbers(self) -> Dict[str, Any]:
        tokens = self.n_tokens
        return {"n_steps": self.n_steps, "step_ms": round(self.step_s * 1e3, 9), "n_tokens": tokens,
                "tokens_per_second": self.tokens_per_second, "utilisation": self.utilisation,
                **{f"wait_{name}_us": value * 1e6 for name, value in self.wait._asdict().items()},
                "wait_mean_us": sum(self.waits) / self.n_steps * 1e6, "first_batch_ms": self.first_batch_s * 1e3,
                "cpu_us_per_million_tokens": (self.cpu_s + self.cpu_children_s) / tokens * 1e12 if tokens else None,
                "cpu_s": self.cpu_s, "cpu_children_s": self.cpu_children_s, "memory_bytes": self.memory_bytes,
                "replay": None if self.replay is None else self.replay._numbers()}

    def rows(self) -> List[Tuple[str, str]]:
        """The table that print() shows: names, and values with their units."""
        wait, tokens = self.wait, self.n_tokens
        given = [(self, "")] + ([] if self.replay is None else [(self.replay, " of replay")])
        return [
            ("steps", f"{self.n_steps:,} of {_time(self.step_s)}" + ", simulated" * self.simulated +
             ", then the loader ended" * self.ended),
            ("wait, p50", _time(wait.p50)), ("wait, p99", _time(wait.p99)), ("wait, p99.9", _time(wait.p999)),
            ("wait, longest", _time(wait.max)),
            *((f"utilisation (AU){name}", f"{one.utilisation:.4f}") for one, name in given if one.step_s),
            ("first batch", _time(self.first_batch_s)),
            ("tokens/s", "not counted: see tokens=" if tokens is None else _short(self.tokens_per_second or 0)),
            ("processor, 10^6 tokens" if tokens else "processor, a step",
             f"{_time(self.cpu_s * 1e6 / tokens if tokens else self.cpu_s / self.n_steps)}, and of other processes "
             f"{_time(self.cpu_children_s * 1e6 / tokens if tokens else self.cpu_children_s / self.n_steps)}"),
            ("memory", f"{_short(self.memory_bytes)}B")]

    def __str__(self) -> str:
        return "".join(f"  {name:<28}{value}\n" for name, value in self.rows()) + self.verdict

    def _repr_html_(self) -> str:
        return html.shown("of_measurement", self)


def measure(loader: Iterable[Any], *, step_ms: Optional[float] = None, model_step: Optional[Callable[[Any], Any]] = None,
            steps: int = 200, warm_up: int = 8, tokens: Union[None, int, Callable[[Any], int]] = None,
            replay: int = 0) -> Measurement:
    """Takes batches from any loader as a training does, and returns how long it waited for them.

        loader = tokmap.Loader("data/train", sequence_length=64, batch_rows=8)  # or any other
        print(tokmap.measure(loader, step_ms=20))

    loader: an iterable of batches of any framework. step_ms: the time of a simulated step, which sleeps; 0: no pause.
    model_step: a function of a batch that is the step instead; one that only gives work to a GPU has to wait for it.
    steps: how many steps count. warm_up: steps before them that do not. tokens: of a batch, or a function of a batch
    that counts them; by default the ids of "inputs", "input_ids", "tokens" or "text", or of the first array. replay:
    this many batches are kept, and the steps are taken again with them: what is lost then is not lost by the loader. They
    are copied in the first steps, so warm_up should be at least as large.

    An iterable that ends earlier is measured as far as it goes."""
    if (step_ms is None) == (model_step is None):
        raise ValueError("give one of step_ms=, the time of a simulated step, and model_step=, a function of a batch")
    if steps < 1 or warm_up < 0 or replay < 0 or (step_ms or 0) < 0:
        raise ValueError("steps must be at least 1, and warm_up, replay and step_ms at least 0")
    kept: List[Any] = []
    is_replay = False

    def step(batch: Any) -> float:
        begun = _now()
        if not is_replay and len(kept) < replay:
            kept.append(_copied(batch))
        if model_step is not None:
            begun = _now()
            model_step(batch)
            return _now() - begun
        assert step_ms is not None
        if step_ms:
            _sleep(max(begun + step_ms / 1e3 - _now(), 0))
        return step_ms / 1e3

    found = _take(loader, step, steps, warm_up, tokens, model_step is None)
    if not replay:
        return found
    is_replay = True
    replayed = _take(_again(kept), step, steps, warm_up, tokens, model_step is None)
    return replace(found, replay=replayed)


def _take(loader: Iterable[Any], step: Callable[[Any], float], steps: int, warm_up: int, tokens: Any,
          simulated: bool) -> Measurement:
    waits: List[float] = []
    counted: List[Optional[int]] = []
    computed, first_batch_s, own, children = 0.0, 0.0, time.process_time(), _cpu_of_children()
    begun = asked = _now()
    batches = iter(loader)
    for number in range(warm_up + steps):
        try:
            batch = next(batches)
        except StopIteration:
            break
        now = _now()
        first_batch_s = first_batch_s if number else now - begun
        if number >= warm_up:
            waits.append(now - asked)
            counted.append(_tokens_of(batch, tokens))
        seconds = step(batch)
        computed += seconds if number >= warm_up else 0
        del batch  # a loader may use the memory again
        if number + 1 == warm_up:
            own, children = time.process_time(), _cpu_of_children()
        asked = _now()
    n = len(waits)
    if not n:
        raise ValueError(f"the loader ended within its first {warm_up} batches, which do not count: give a smaller warm_up")
    return Measurement(n, None if None in counted else sum(n or 0 for n in counted), tuple(waits), computed / n, first_batch_s,
                       time.process_time() - own, _cpu_of_children() - children, _memory(), n < steps, simulated)


def _again(kept: List[Any]) -> Iterator[Any]:
    while True:
        yield from kept


def _copied(batch: Any) -> Any:
    """A batch that stays what it is when the loader goes on."""
    if isinstance(batch, Batch):
        return batch  # its arrays are the caller's
    try:
        return copy.deepcopy(batch)
    except Exception as e:
        raise ValueError(f"replay: a {type(batch).__name__} of this loader cannot be copied: {e}") from e


# ---- What is counted ----


def _tokens_of(batch: Any, tokens: Any) -> Optional[int]:
    if tokens is not None:
        return int(tokens(batch) if callable(tokens) else tokens)
    if hasattr(batch, "keys"):
        named = [batch[name] for name in _TOKENS if name in batch.keys()]
        return _tokens_of((named or [batch[name] for name in batch.keys()] or [None])[0], None)
    if hasattr(batch, "shape"):
        return int(math.prod(batch.shape))
    if not isinstance(batch, (list, tuple)) or not batch:
        return None
    if isinstance(batch[0], numbers.Integral):
        return len(batch)
    if all(isinstance(one, (list, Mapping)) for one in batch):  # rows, or samples
        counted = [_tokens_of(one, None) for one in batch]
        return None if None in counted else sum(n or 0 for n in counted)
    return _tokens_of(batch[0], None)  # inputs and labels


def _descendants() -> List[int]:
    found: List[int] = []
    left = [os.getpid()]
    while left:
        for task in glob.glob(f"/proc/{left.pop()}/task/*/children"):
            try:
                with open(task) as f:
                    children = [int(word) for word in f.read().split()]
            except OSError:
                continue  # it has ended
            found += children
            left += children
    return found


def _cpu_of_children() -> float:
    """Processor seconds of all descendants, living or waited for."""
    ended = os.times()
    seconds = ended.children_user + ended.children_system
    for pid in _descendants():
        try:
            with open(f"/proc/{pid}/stat") as f:
                words = f.read().rpartition(")")[2].split()
        except OSError:
            continue
        seconds += sum(map(int, words[11:15])) / _TICK  # its own, and of those that it has waited for
    return seconds


def _memory() -> int:
    kib = 0
    for pid in [os.getpid(), *_descendants()]:
        try:
            with open(f"/proc/{pid}/smaps_rollup") as f:
                kib += sum(int(line.split()[1]) for line in f if line.startswith(("Pss_Anon:", "Pss_Shmem:")))
        except OSError:
            continue
    return kib << 10


# ---- Words ----


def _time(seconds: float) -> str:
    for limit, factor, unit in ((999.5e-6, 1e6, "us"), (0.9995, 1e3, "ms")):
        if abs(seconds) < limit:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"


def _short(value: float) -> str:
    for letter in ("", "k", "M", "G"):
        if value < 999.5:
            return f"{value:.3g} {letter}"
        value /= 1000
    return f"{value:.3g} T"
