# SPDX-License-Identifier: Apache-2.0
"""Which labels count: the roles of tokens on which a source is trained."""

from typing import Any, Dict, List, Optional, Sequence, Tuple

from .._data.dataset import Dataset, FIRST_COUNTED_ROLE, FIRST_NAMED_ROLE

_OWN_ROLES = 255  # in place of the role of all spans of a dataset: each has its own
USUAL = bytes(FIRST_COUNTED_ROLE) + b"\1" * (_OWN_ROLES - FIRST_COUNTED_ROLE) + b"\0"  # for each role: whether its labels count


def as_names(name: str, value: Any) -> Tuple[str, ...]:
    """The names of an argument train_roles."""
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(one, str) for one in value):
        raise TypeError(f"{name} is {value!r:.80}: must be a tuple of names of roles, such as ('assistant', 'think')")
    for one in value:
        if one in ("prompt", "redacted"):
            raise ValueError(f"{name} has {one!r}: labels of prompts and of redacted documents never count")
    return tuple(value)


def _names_in(datasets: List[Dataset]) -> Tuple[str, ...]:
    """The names of the roles of a source. A name must stand for the same number in all of its datasets."""
    found: Dict[Tuple[str, ...], str] = {}
    for one in (one for dataset in datasets for one in dataset.shards):
        info = one._shards()[0].info
        if one.roles or info.n_spans and FIRST_NAMED_ROLE <= info.spans_role < _OWN_ROLES:
            found.setdefault(one.roles, one.paths[0])
    if len(found) > 1:
        (names, path), (others, other) = list(found.items())[:2]
        raise ValueError(f"{other}: its roles are {', '.join(others) or 'not named'}, but those of {path} are "
                         f"{', '.join(names) or 'not named'}: to choose by name, they must be in sources of their own")
    return next(iter(found), ())


def choose_roles(sources: Sequence[Any], of_all: Optional[Sequence[str]]) -> None:
    """Sets the roles of each source whose labels count. of_all: the train_roles of the Loader, which a source may replace."""
    given = [s.train_roles if s.train_roles is not None else of_all for s in sources]
    known = [() if wanted is None else _names_in(s.datasets) for s, wanted in zip(sources, given)]
    everywhere = sorted({name for some in known for name in some})
    for s, wanted, names in zip(sources, given, known):
        among = names if s.train_roles is not None else everywhere
        for one in wanted or ():
            if one not in among:
                raise ValueError(f"train_roles has {one!r}, but the roles of the data are {', '.join(among) or 'not named'}: name them "
                                 "with tokmap pack --roles")
        table = bytearray(s._roles)
        for i, name in enumerate(names):
            table[FIRST_NAMED_ROLE + i] = table[FIRST_COUNTED_ROLE + i] = name in (wanted or ())
        s._roles = bytes(table)


def _name_of(names: Sequence[str], role: int) -> str:
    i = role - (FIRST_COUNTED_ROLE if role >= FIRST_COUNTED_ROLE else FIRST_NAMED_ROLE)
    return names[i] if i < len(names) else "unnamed"


def _counted(source: Any) -> Dict[int, str]:
    """The name of each role whose labels count."""
    names = _names_in(source.datasets)
    return {role: _name_of(names, role) for role, counts in enumerate(source._roles) if counts}


def names_of_roles(source: Any) -> List[str]:
    """The names of the roles whose labels count, if its tokens may have such roles."""
    has_roles = any(shard.info.n_spans > 0 and shard.info.spans_role >= FIRST_NAMED_ROLE
                    for dataset in source.datasets for shard in dataset._shards())
    return list(dict.fromkeys(_counted(source).values())) if has_roles else []


def only_roles(source: Any, names: Sequence[str]) -> bytes:
    """Its roles without those that have another name."""
    counted = _counted(source)
    return bytes(counted.get(role) in names for role in range(256))


def may_mask(source: Any) -> bool:
    """Whether labels of a source may not count because of the roles of its tokens."""
    spans = [(shard.info.n_spans, shard.info.spans_role) for dataset in source.datasets for shard in dataset._shards()]
    return any(n > 0 and (role == _OWN_ROLES or not source._roles[role]) for n, role in spans)
