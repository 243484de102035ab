# SPDX-License-Identifier: Apache-2.0
"""The cache of the Hugging Face Hub on this disk: what names hf://... mean there. Uses no network."""

import ctypes
import errno
import os
import re
import shlex
import urllib.parse
from typing import List, Optional

from .._c import structs as _lib
from .._c.errors import Error, Handle, call, make_error
from .._c.structs import lib

NAME = re.compile(r"(?:hf://)?(datasets/)?([\w.-]+/[\w.-]+)(?:@(refs/(?:convert|pr)/[^/]+|[^/]+))?(?:/(.*))?")
COMMIT = re.compile("[0-9a-f]{40}")


def find_cache() -> str:
    """Where huggingface_hub keeps what it downloads."""
    home = os.environ.get("HF_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    cache = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE") or os.path.join(home, "hub")
    return os.path.abspath(os.path.expandvars(os.path.expanduser(cache)))


class Repository:
    """A revision of a repository in the cache. kind: "dataset" or "model". revision: as in a name, None: main."""

    def __init__(self, kind: str, id: str, revision: Optional[str]) -> None:
        self.kind, self.id = kind, id
        self.revision = urllib.parse.unquote(revision or "main")
        if not {"", ".", ".."}.isdisjoint(self.revision.split("/")):
            raise ValueError(f"there can be no revision {self.revision}")
        self.folder = os.path.join(find_cache(), f"{kind}s--{id.replace('/', '--')}")

    def commit(self) -> Optional[str]:
        """The commit that the revision means in the cache; None: the cache does not have it."""
        if COMMIT.fullmatch(self.revision):
            return self.revision
        path = os.path.join(self.folder, "refs", self.revision)
        try:
            with open(path, encoding="utf-8") as f:
                commit = f.read().strip()
        except FileNotFoundError:
            return None
        if not COMMIT.fullmatch(commit):
            raise ValueError(f"{path}: is damaged: it does not have the name of a commit")
        return commit

    def path(self, commit: str, name: str) -> str:
        return os.path.join(self.folder, "snapshots", commit, name)


# ---- Datasets of tokmap ----

_MOST_NAMED = 8  # files in a message


def is_name(path: str) -> bool:
    return path.startswith("hf://") and not os.path.exists(path) and not os.path.exists(path + ".tmi")


class Place:
    """What hf://datasets/OWNER/NAME[@REVISION]/PATH names: a path in the snapshot of the revision."""

    def __init__(self, name: str) -> None:
        found = NAME.fullmatch(name)
        if found is None or not found[1] or not found[4] or ".." in found[4].split("/"):
            raise ValueError(f"{name}: must be hf://datasets/OWNER/NAME[@REVISION]/PATH, where PATH is a dataset of tokmap")
        self.name, self.inside, self._revision = name, found[4], found[3]
        try:
            self.repository = Repository("dataset", found[2], found[3])
            commit = self.repository.commit()
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        if commit is None:
            raise self.missing(f"the revision {self.repository.revision}", self._include())
        self.root = self.repository.path(commit, "")
        self.path = self.root + self.inside

    def _include(self) -> List[str]:
        """Options for all files of the dataset; the folders of token files are not known before its index is there."""
        return ["--include", re.sub(r"\.(tmi|bin)$", "", self.inside) + ".*"]

    def missing(self, what: str, words: List[str]) -> Error:
        revision = ["--revision", self.repository.revision] if self._revision else []
        command = ["hf", "download", self.repository.id, *words, "--repo-type", "dataset", *revision]
        return make_error(f"{self.name}: the Hub's cache {self.repository.folder} does not have {what}. Run: {shlex.join(command)}",
                          -3, errno.ENOENT, 0, file=self.name)

    def no_match(self) -> Error:
        return self.missing("a dataset that matches this pattern", self._include())

    def check(self, path: str) -> None:
        """Raises an error that names what is missing of a dataset in the snapshot."""
        prefix = re.sub(r"\.(tmi|bin)$", "", path)
        if not os.path.exists(prefix + ".tmi"):
            raise self.missing("the index", self._include())
        lost = [file[len(self.root):] for file in _token_files(prefix) if not os.path.exists(file)]
        if len(lost) > _MOST_NAMED:
            folders = sorted({os.path.dirname(file) for file in lost})
            words = [word for folder in folders for word in ("--include", os.path.join(folder, "*"))]
            raise self.missing(f"{len(lost):,} of its token files", words)
        if lost:
            raise self.missing(", ".join(lost), lost)


def find_file(name: str) -> str:
    """The path of a file in the cache, such as a view."""
    if not is_name(name):
        return name
    place = Place(name)
    if not os.path.exists(place.path):
        raise place.missing("the file", [place.inside])
    return place.path


def _token_files(prefix: str) -> List[str]:
    handle, info = Handle(lib.tokmap_dataset_close), _lib.Info()
    call(lib.tokmap_dataset_open_index, ctypes.byref(handle.pointer), os.fsencode(prefix))
    lib.tokmap_dataset_get_info(handle.pointer, ctypes.byref(info))
    if info.token_path is not None:
        return [os.fsdecode(info.token_path)]
    found, one = [], _lib.Segment()
    for i in range(info.n_segments):
        lib.tokmap_dataset_get_segment(handle.pointer, i, ctypes.byref(one))
        found.append(os.path.join(os.path.dirname(prefix), os.fsdecode(one.path)))
    return found
