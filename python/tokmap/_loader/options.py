# SPDX-License-Identifier: Apache-2.0
"""The arguments of a Loader: literal types, groups of options, and errors for names that do not exist."""

from __future__ import annotations  # help(Loader) shows names of types and not what they stand for

import functools
import os
from dataclasses import FrozenInstanceError, dataclass, fields
from typing import (TYPE_CHECKING, Any, Callable, ClassVar, Container, Dict, Iterable, Literal, Mapping, Optional, Sequence,
                    Tuple, Type, TypeVar, Union, get_origin, get_type_hints)

from .._c.arguments import flag, number, path, real, state_bytes, text
from .._data.dataset import Path
from .._data.store import DEADLINE_SECONDS, opening
from .roles import as_names
from .sources import Source, Sources, as_sources
from .steps import as_skip

if TYPE_CHECKING:
    import numpy as np
    import torch
    from typing_extensions import TypedDict, dataclass_transform

T = TypeVar("T")

Shuffle = Literal["full", "none", "block"]
Windows = Literal["concat", "within_document", "best_fit"]
Io = Literal["auto", "map", "direct", "populate", "read", "copy"]
CpMode = Literal["contiguous", "zigzag", "documents"]
WholeDocuments = Literal["split", "drop", "truncate"]
Weights = Literal["samples", "tokens"]
OnMismatch = Literal["error", "amend"]
Framework = Literal["numpy", "torch"]
Output = Literal["inputs", "labels", "position_ids", "document_ids", "loss_mask", "cu_seqlens", "loss_weight"]
Outputs = Sequence[Union[Output, str]]  # also "lane:NAME"
if TYPE_CHECKING:
    Dtype = Union[Literal["int32", "int64", "uint16", "uint32"], type, np.dtype[Any], torch.dtype]
    Device = Union[int, str, torch.device]
else:
    Dtype = Device = Any


def choose(name: str, word: Any, kind: Any) -> int:
    """The number that the library has for a word of a Literal type."""
    words: Tuple[str, ...] = kind.__args__
    if not isinstance(word, str) or word not in words:
        raise ValueError(f"{name} is {word!r:.80}: must be one of {', '.join(map(repr, words))}")
    return words.index(word)


# ---- Groups ----


if TYPE_CHECKING:
    @dataclass_transform(frozen_default=True, kw_only_default=True)
    def _group(kind: Type[T]) -> Type[T]:
        """A frozen dataclass with the methods of _Group: those of a dataclass are compiled at each import."""
else:
    _group = dataclass(init=False, repr=False, eq=False)


class _Signature:
    def __get__(self, _: Any, kind: Any) -> Any:
        if not hasattr(kind, "__dataclass_fields__"):
            raise AttributeError("__signature__")
        import inspect

        types = get_type_hints(kind)
        return inspect.Signature([inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=types[f.name])
                                  for f in fields(kind)])


class _Values:
    """An object that is equal to another one of its type if their attributes are."""

    def _with(self: T, **values: Any) -> T:
        """Returns a copy with other values, which are not checked again."""
        found = type(self).__new__(type(self))
        vars(found).update(vars(self), **values)
        return found

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)


class _Group(_Values):
    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[Dict[str, Any]]
    else:
        __signature__ = _Signature()

        def __init__(self, **given):
            check_names(type(self).__name__, given, self.__dataclass_fields__)
            for name, field in self.__dataclass_fields__.items():  # fields() takes longer than all of this
                value = given.get(name, field.default)
                self.__dict__[name] = value if value is field.default else _checked(field, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise FrozenInstanceError(f"cannot assign to {name}: use dataclasses.replace")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete {name}")

    def __repr__(self) -> str:
        given = (f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if getattr(self, f.name) != f.default)
        return f"tokmap.{type(self).__name__}({', '.join(given)})"


def _checked(field: Any, value: Any) -> Any:
    """A value of a group, converted to the type of its field."""
    name: str = field.name
    if name in _RANGES:
        return number(name, value, *_RANGES[name])
    if field.type == "bool":  # types are text here
        return flag(name, value)
    if get_origin(words := globals().get(field.type)) is Literal:
        choose(name, value, words)
    return value if name not in _RULES or value is field.default is None else _RULES[name](name, value)


def _lane_name(name: str, value: Any) -> str:
    text(name, value, "the name of a lane")
    return str(value)


def _log(name: str, value: Any) -> Any:
    if not callable(value):
        raise TypeError(f"log is {value!r:.80}: must be a function that takes a line of text")
    return value


def _seconds(name: str, value: Any) -> float:
    if not (found := real(name, value)) >= 0:
        raise ValueError(f"{name} is {found}: must be at least 0")
    return found


def _deadline(name: str, value: Any) -> float:
    if not 0 < (found := real(name, value)) <= 86400:
        raise ValueError(f"{name} is {found}: must be above 0 and at most 86,400 seconds")
    return found


def _mixture_before(name: str, value: Any) -> Any:
    """A path as it is now, because the process may change its folder."""
    if not isinstance(value, (str, os.PathLike)):
        return value
    if not os.path.exists(found := os.path.abspath(value)):
        raise FileNotFoundError(f"amend_from is {found!r}: there is no such file")
    return found


# The largest and the smallest value.
_RANGES = {"block_windows": (2**42,), "group_blocks": (2**28,), "align": (2**24, 1), "max_documents": (2**32 - 1,),
           "pad_id": (2**32 - 1,), "cp_rank": (2**24,), "cp_size": (2**24, 1), "look_ahead": (1024,),
           "micro_batches": (2**32 - 1,), "n_slots": (2**32 - 1,), "max_boundaries": (2**31 - 2,)}
_RULES: Dict[str, Callable[[str, Any], Any]] = {
    "phases": lambda name, value: dict(value) if hasattr(value, "items") else value,
    "skip": lambda name, value: tuple(as_skip(value)), "metrics_seconds": _seconds, "deadline": _deadline, "metrics_file": path, "log": _log, "train_roles": as_names, "loss_weight": _lane_name,
    "writes_ledger": flag, "amend": lambda name, value: state_bytes(value, name), "amend_from": _mixture_before}


@_group
class Order(_Group):
    """Which samples a run has, and in which steps: the argument `order` of a Loader.

    weights     "samples": the weight of a source is its share of the samples. "tokens": it is its share of the labels,
                counted with the average number of labels in a row of the source
    phases      {first_sample: [weight of each source, ...]}: new weights from that sample on. The weights of sample 0
                replace the weights of the sources
    skip        [(first, end), ...]: samples that are left out, from `first` up to, but not including, `end`. They count
                as used, so all other samples stay what they are. A state records the skips that are still to come:
                to resume it with other skips, use `amend`. Skips that lie before the state need not be given again
    drop_last   what happens to samples at the end that do not fill a step of all ranks. True: they are left out.
                False: the last batch may be smaller, and ranks without a row end one batch earlier. If all are
                left out, a warning says so
    batch_schedule  [(sample, rows), ...]: from the first step that begins at this sample or later, a step of all ranks
                has this many rows, in place of n_ranks * batch_rows. The order of samples does not depend on it
    random_offset   whether the windows of each epoch begin at another token
    block_windows   with shuffle="block": how many windows are in a block. They lie one after another in the data.
                0: as many as fit into 1 MiB
    group_blocks    with shuffle="block": how many blocks have their rows shuffled together; 0: 64"""

    weights: Weights = "samples"
    phases: Optional[Mapping[int, Sequence[float]]] = None
    skip: Sequence[Tuple[int, int]] = ()
    drop_last: bool = True
    batch_schedule: Sequence[Tuple[int, int]] = ()
    random_offset: bool = False
    block_windows: int = 0
    group_blocks: int = 0


@_group
class Rows(_Group):
    """What a row has, and how it is written: the argument `rows` of a Loader.

    align, max_documents, whole_documents   with windows="best_fit". Documents begin at multiples of align. At most
                max_documents documents are in a row (0: any number). whole_documents says how to handle documents
                that are longer than a row: "split", "drop" or "truncate"
    mask_labels     whether all labels whose loss_mask is 0 become ignore_index. False: labels in spans still do, and
                labels between two documents of a "best_fit" row. If the data have spans and loss_mask is an output,
                this is always True
    ignore_index    the value of labels that do not count, and of labels after the end of a shorter row
    pad_id      the value of inputs after the end of a shorter row
    train_roles     names of roles, such as ("assistant", "think"): labels of tokens of these roles count, and those of tokens of all
                other named roles do not. Dataset.roles has the names, which `tokmap pack --roles` gave. None: what was
                packed as to be trained on counts. Labels of tokens without a role always count, labels of prompts never
    loss_weight     the name of a lane, for the output "loss_weight": float32, the number of this lane for each label that counts, and 0 for
                all others. A row of a source without this lane has the weight 1
    contiguous  False: inputs and labels are two views of one array of sequence_length + 1 columns, so one copy is made
                in place of two. This needs windows="concat", and excludes mask_labels"""

    align: int = 1
    max_documents: int = 0
    whole_documents: WholeDocuments = "split"
    mask_labels: bool = False
    ignore_index: int = -100
    pad_id: int = 0
    train_roles: Optional[Sequence[str]] = None
    loss_weight: Optional[str] = None
    contiguous: bool = True


@_group
class Ranks(_Group):
    """Which rows this process gets: the argument `ranks` of a Loader.

    rank, n_ranks   by default what torch.distributed says, or else the environment of torchrun, Open MPI,
                MPICH or Slurm. If torch.distributed is initialized later and says another rank, the first batch is a
                RuntimeError. Processes that must get the same data, as in tensor parallelism, must be given the
                same rank
    mesh, dims  in place of rank and n_ranks: a DeviceMesh, and its dimensions in which ranks get different rows. Ranks
                that differ only in other dimensions (tensor, context or pipeline parallelism) get the same rows
    cp_rank, cp_size, cp_mode   for context parallelism: the arrays have only the sequence_length / cp_size columns that
                this rank computes. "contiguous": part cp_rank of cp_size parts of a row. "zigzag": parts cp_rank and
                2 * cp_size - 1 - cp_rank of 2 * cp_size parts. "documents": as "zigzag", in each document; this needs
                "best_fit" and an align that is a multiple of 2 * cp_size. position_ids and cu_seqlens are always for
                the whole rows. Give all ranks that share rows the same rank"""

    rank: Optional[int] = None
    n_ranks: Optional[int] = None
    mesh: Any = None
    dims: Sequence[str] = ("dp",)
    cp_rank: int = 0
    cp_size: int = 1
    cp_mode: CpMode = "contiguous"


@_group
class Reading(_Group):
    """How the data are read: the argument `reading` of a Loader. No order and no state depends on it.

    io          "auto" chooses: "map" if the data are in memory and the file system can say so; "direct" if they are
                larger than memory; else "populate". "map": the memory map; nothing is read ahead. "populate": a thread
                brings the next rows into the map. "read": a thread copies them. "direct": a thread reads them past the
                page cache. "copy": each row is copied when it is asked for, without a thread. TOKMAP_IO in the
                environment overrides io. Loader.stats["io_reason"] says why a way was taken. See docs/SHARED.md
    look_ahead  steps to read ahead. 0: 256 rows, and after waits for batches up to 4,096 rows and 64 MiB
    drop_behind     whether used rows leave the page cache, with "populate" and "read"
    mixed_tokenizers    whether the datasets may be of different tokenizers, whose ids do not mean the same. False: such
                datasets are a MismatchError. A dataset that names no tokenizer goes with all others
    verify      for datasets in a store, and no others: whether whole blocks of a MiB are read and compared with their checksums.
                False: rows are not compared. For a row of 32 KiB that is 32 times the bytes
    deadline    seconds after which a read from a store that failed again and again is an error. Of loaders with one Dataset the
                last one counts"""

    io: Io = "auto"
    look_ahead: int = 0
    drop_behind: bool = False
    mixed_tokenizers: bool = False
    verify: bool = False
    deadline: float = DEADLINE_SECONDS


@_group
class Resume(_Group):
    """How a run that was changed goes on: the argument `resume` of a Loader.

    amend       a state of a run with other weights, phases, max_epochs or skip, or without the last sources. This
                loader continues the run, and what was trained on stays as it was. Its weights apply from the sample of
                the state on. A source with another view is another source: add it, and give the old one the weight 0. To
                restore later states, write Loader.phases into the script, as phases of Order
    amend_from  {"weights": [...], "phases": {...}, "max_epochs": [...], "skip": [...]} of that run, or the path of its
                ledger. None: the file of `ledger`. Without a ledger, the phases here must be all phases of the run, the
                first max_epochs must be the run's own, and the run must have had no other skip ahead
    on_mismatch     "error", or "amend": what restore and load_state_dict do with the state of such a run"""

    amend: Optional[bytes] = None
    amend_from: Union[None, Path, Mapping[str, Any]] = None
    on_mismatch: OnMismatch = "error"


@_group
class Record(_Group):
    """What is written of a run beside its ledger: the argument `record` of a Loader.

    micro_batches   for the ledger: batches in a step of the optimizer; 0: not known
    writes_ledger   whether this process writes the ledger. None: of the processes of rank 0, which get the same rows, the
                one that has the local rank 0 in all dimensions of the mesh that are not in dims. Without a mesh the one
                that torch.distributed or the launcher calls 0, so none if that one has another rank here; without a launcher
                each
    metrics_file    a file for a collector of Prometheus, written when a batch is taken, at the end of the data, and a last
                time, with "up" 0, when the loader is closed. Values of a rank have the label rank; totals of the run do not.
                The process that writes the ledger writes both; one process of each other rank writes the values of its rank.
                With a mesh this is exactly one. Without a mesh it is found by the number P that the launcher gives it: at least
                one of a rank if the rank is P // K % n_ranks for some K, and exactly one if K, n_ranks and the number of
                processes are also powers of two. {rank} in the name is replaced by the rank. Until the file is complete its
                name is .NAME.partial
    metrics_seconds     the least time between two batches at which the file is written"""

    micro_batches: int = 0
    writes_ledger: Optional[bool] = None
    metrics_file: Optional[Path] = None
    metrics_seconds: float = 15


@_group
class Slots(_Group):
    """Batches in the memory of a GPU: the argument `slots` of a Loader with a device. See Stage.

    n_slots     batches in device memory. One fewer may be held at a time; 0: 4
    max_boundaries  entries of cu_seqlens in a batch; 0: enough for any batch
    log         called with a line of text when memory cannot be pinned or the device fails, in any thread"""

    n_slots: int = 0
    max_boundaries: int = 0
    log: Optional[Callable[[str], None]] = None


_GROUPS = {kind.__name__.lower(): kind for kind in (Order, Rows, Ranks, Reading, Resume, Record, Slots)}


def group(kind: Type[T], given: Optional[T]) -> T:
    """Returns the group that is given, or one of this kind without arguments."""
    if given is not None and not isinstance(given, kind):
        raise TypeError(f"{kind.__name__.lower()} is {given!r:.80}: must be a tokmap.{kind.__name__}")
    return kind() if given is None else given


def given_ones(options: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns the options without groups that are None."""
    return {name: value for name, value in options.items() if value is not None or name not in _GROUPS}


# ---- All arguments ----


LANE = "lane:"  # of an output


def as_outputs(given: Any) -> Tuple[str, ...]:
    if isinstance(given, (str, set, frozenset, type)) or not hasattr(given, "__iter__"):
        raise TypeError(f"outputs is {given!r}: must be a list, such as ['inputs', 'labels']")
    for name in (outputs := tuple(given)):
        if not (isinstance(name, str) and name.startswith(LANE) and name != LANE):
            choose("outputs: an output", name, Output)
    return outputs


class Options(_Values):
    """All arguments of a Loader, checked: what another process needs to open it again."""

    def __init__(self, sources: Sources, sequence_length: int, batch_rows: int = 1, *, seed: int = 0, shuffle: Shuffle = "full",
                 windows: Windows = "concat", max_epochs: Optional[int] = None,
                 outputs: Outputs = ("inputs", "labels"), dtype: Dtype = "int64", framework: Framework = "numpy",
                 device: Optional[Device] = None, ledger: Optional[Path] = None, order: Optional[Order] = None,
                 rows: Optional[Rows] = None, ranks: Optional[Ranks] = None, reading: Optional[Reading] = None,
                 resume: Optional[Resume] = None, record: Optional[Record] = None, slots: Optional[Slots] = None,
                 store: Any = None) -> None:
        self.order, self.rows, self.resume = group(Order, order), group(Rows, rows), group(Resume, resume)
        choose("framework", framework, Framework)
        self.ranks, self.record = group(Ranks, ranks), group(Record, record)
        self.reading, self.slots = group(Reading, reading), group(Slots, slots)
        if self.record.metrics_file is not None:  # as it is now, because the process may change its folder
            self.record = self.record._with(metrics_file=os.path.abspath(self.record.metrics_file))
        with opening(self.reading.deadline):
            self.sources = as_sources(sources, max_epochs, store)
        self.sequence_length = number("sequence_length", sequence_length, 2**24, 1)
        self.batch_rows, self.seed = number("batch_rows", batch_rows, 2**24, 1), number("seed", seed, 2**64 - 1)
        self.shuffle, self.windows, self.max_epochs, self.outputs = shuffle, windows, max_epochs, as_outputs(outputs)
        self.dtype, self.framework, self.device = dtype, framework, device
        self.ledger = None if ledger is None else os.path.abspath(path("ledger", ledger))


# ---- Arguments that do not exist ----


# What other libraries call arguments of a Loader.
_ELSEWHERE = {"batch_size": "batch_rows", "micro_batch_size": "batch_rows", "seq_len": "sequence_length",
              "block_size": "sequence_length", "dp_rank": "rank", "world_size": "n_ranks", "dp_world_size": "n_ranks",
              "num_replicas": "n_ranks", "prefetch": "look_ahead", "prefetch_factor": "look_ahead", "epochs": "max_epochs"}


def _names(kind: Any) -> Tuple[str, ...]:
    """Returns the names of the arguments of a class."""
    code = kind.__init__.__code__
    names: Tuple[str, ...] = code.co_varnames[1:code.co_argcount + code.co_kwonlyargcount]
    return names


def _what_was_meant(owner: str, name: str) -> str:
    ways = {leaf: f"{leaf}, of a tokmap.Source" for leaf in _names(Source)[1:]}
    ways.update({leaf.name: f"{argument}=tokmap.{kind.__name__}({leaf.name}=...)" for argument, kind in _GROUPS.items()
                 for leaf in fields(kind)})
    where = "" if owner == "Loader" else ", of the Loader itself"
    ways.update((argument, argument + where) for argument in _names(Options))
    if name in ways:
        return f"it is {ways[name]}"
    if name in _ELSEWHERE:
        return f"did you mean {ways[_ELSEWHERE[name]]}?"
    import difflib  # takes longer than a Loader

    near = difflib.get_close_matches(name, ways, 1)
    return f"did you mean {ways[near[0]]}?" if near else "help(tokmap.Loader) lists them"


def check_names(owner: str, given: Iterable[str], names: Container[str]) -> None:
    """TypeError for an argument that does not exist, which says what was meant."""
    for name in given:
        if name not in names:
            raise TypeError(f"{owner} has no argument {name}: {_what_was_meant(owner, name)}")


def takes_options(init: Callable[[Any, Options], None]) -> Callable[..., None]:
    """Gives an __init__ the arguments of Options, and says what was meant by a keyword that they lack."""
    names = _names(Options)
    Options.__init__.__qualname__ = init.__qualname__  # which errors of Python name

    @functools.wraps(Options.__init__)
    def init_checked(self: Any, *arguments: Any, **options: Any) -> None:
        check_names("Loader", options, names)
        init(self, Options(*arguments, **options))

    return init_checked


if TYPE_CHECKING:
    class _SharedOptions(TypedDict, total=False):
        seed: int
        shuffle: Shuffle
        windows: Windows
        max_epochs: Optional[int]
        outputs: Outputs
        dtype: Dtype
        order: Optional[Order]
        rows: Optional[Rows]
        ranks: Optional[Ranks]
        reading: Optional[Reading]
        resume: Optional[Resume]
        store: Any

    class SampleOptions(_SharedOptions, total=False):
        """Arguments of a Loader whose samples are taken by their numbers."""

        framework: Framework

    class LoaderOptions(_SharedOptions, total=False):
        """Arguments of a Loader beside sources, sequence_length, batch_rows, and what its batches are made of."""

        ledger: Optional[Path]
        record: Optional[Record]
