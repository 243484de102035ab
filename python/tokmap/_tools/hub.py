# SPDX-License-Identifier: Apache-2.0
"""Files of the Hugging Face Hub for the program `tokmap`, which names them hf://...: finds them in the Hub's cache, and
downloads them if it is asked to. Prints lines for tokenize_tools/input/hub.c."""

import concurrent.futures
import ctypes
import errno
import json
import os
import re
import signal
import sys
import urllib.parse
from typing import Dict, List

from .._data import hub_cache
from .._data.hub_cache import COMMIT, NAME, find_cache
from .terminal import Refused, describe, plain, show_count

_DATA = re.compile(r"(.*/)?[^/]*\.(parquet|(jsonl|ndjson|json)(\.gz|\.zst)?)", re.IGNORECASE | re.DOTALL)
_DESCRIPTIONS = ("dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json")  # as in input_list.c
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "tekken.json", "vocab.json")  # the first one is taken
_BESIDE = ("merges.txt", "tokenizer_config.json", "generation_config.json")


def _expression(pattern: str) -> str:
    """A pattern as a regular expression: * and ? do not match /, ** is any number of folders."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[[^]/]+\])", pattern)
    words = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(words.get(part) or (part.replace("[!", "[^") if part[:1] == "[" else re.escape(part)) for part in parts)


class _Repository(hub_cache.Repository):
    """A repository in the cache. Which files a commit has, with their sizes, is kept there in .tokmap/COMMIT.json.
    commits: what earlier names of the same command meant, KIND/OWNER/NAME@REVISION=COMMIT;..."""

    def __init__(self, kind: str, name: str, commits: str) -> None:
        found = NAME.fullmatch(name)
        if found is None or bool(found[1]) != (kind == "dataset") or found[4] and kind != "dataset":
            raise Refused(f"{name}: must be hf://" + ("datasets/OWNER/NAME[@REVISION][/PATTERN]" if kind == "dataset" else
                                                      "OWNER/NAME[@REVISION]"))
        self.name, self.pattern = name, found[4]
        try:
            super().__init__("dataset" if kind == "dataset" else "model", found[2], found[3])
        except ValueError as error:
            raise Refused(f"{name}: {error}") from None
        self.key = f"{self.kind}/{self.id}@{urllib.parse.quote(self.revision)}"  # without = and ;
        known = dict(one.split("=") for one in commits.split(";") if one)
        self.known = self.revision if COMMIT.fullmatch(self.revision) else known.get(self.key)

    def _missing(self, what: str) -> Refused:
        return Refused(f"{self.name}: {what} of the repository {self.id} is not in {self.folder}; --download fetches it where "
                       "there is a network")

    def commit(self) -> str:
        if self.known is not None:
            return self.known
        try:
            commit = super().commit()
        except ValueError as error:
            raise Refused(str(error)) from None
        if commit is None:
            raise self._missing(f"revision {self.revision}")
        return commit

    def files(self, commit: str) -> Dict[str, int]:
        try:
            with open(os.path.join(self.folder, ".tokmap", commit + ".json"), encoding="utf-8") as f:
                sizes: Dict[str, int] = json.load(f)
        except FileNotFoundError:
            raise self._missing(f"the list of the files at {commit}") from None
        return sizes

    def wanted(self, files: Dict[str, int]) -> List[str]:
        if self.kind == "model":
            found = [name for name in (*_TOKENIZERS, *_BESIDE) if name in files]
            if not found or found[0] not in _TOKENIZERS:
                raise Refused(f"{self.name}: the repository has none of {', '.join(_TOKENIZERS)}")
            return found
        matches = (re.compile(_expression(self.pattern), re.DOTALL) if self.pattern else _DATA).fullmatch
        hides = not re.search(r"(^|/)\.", self.pattern or "")  # names that begin with a dot
        found = [name for name in files if matches(name) and not (hides and re.search(r"(^|/)\.", name)) and
                 (self.pattern or os.path.basename(name) not in _DESCRIPTIONS)]
        if not found:
            raise Refused(f"{self.name}: no file of the repository matches {self.pattern or 'Parquet or JSON lines'}")
        for name in found:
            if not name.isprintable():  # a line break would be another line for the program
                raise Refused(f"{self.name}: the name of the file {name!r} has characters that cannot be printed")
        return found

    def find(self) -> List[str]:
        """The paths of what is wanted. All of it must be there, and as long as the Hub says."""
        commit = self.commit()
        files = self.files(commit)
        wanted = self.wanted(files)
        for name in wanted:
            if not os.path.exists(path := self.path(commit, name)) or os.path.getsize(path) != files[name]:
                raise self._missing(f"the file {name} at {commit}")
        size = sum(files[name] for name in wanted)
        left_out = "" if self.kind == "model" or self.pattern else f", and leaves out {len(files) - len(wanted)} others"
        print(plain(f"N {self.name}: takes {len(wanted)} file{'s' * (len(wanted) != 1)} of commit {commit}, "
                    f"{size / 1e6:,.1f} MB{left_out}"))
        print(f"R {self.key}={commit}")
        return [self.path(commit, name) for name in (wanted[:1] if self.kind == "model" else wanted)]

    def download(self, quiet: bool) -> None:
        """The revision means another commit only when all files of that commit are here."""
        try:
            from huggingface_hub import HfApi, hf_hub_download
            from huggingface_hub.hf_api import RepoFile
            from huggingface_hub.utils.tqdm import disable_progress_bars
        except ImportError as error:
            raise Refused(f"{self.name}: {error}. Install it: pip install huggingface_hub") from None
        disable_progress_bars()
        api = HfApi()
        commit = str(api.repo_info(self.id, repo_type=self.kind, revision=self.known or self.revision).sha)
        if not COMMIT.fullmatch(commit):
            raise Refused(f"{self.name}: the server says that its commit is {commit}")
        files = {one.path: one.size for one in api.list_repo_tree(self.id, repo_type=self.kind, revision=commit, recursive=True)
                 if isinstance(one, RepoFile)}

        def fetch(name: str) -> str:
            return hf_hub_download(self.id, name, repo_type=self.kind, revision=commit, cache_dir=find_cache())

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            try:
                for _ in show_count(pool.map(fetch, self.wanted(files)), "download", "files", quiet):
                    pass
            except KeyboardInterrupt:
                os._exit(130)  # without waiting for the files under way, which huggingface_hub resumes
        self._write(".tokmap", commit + ".json", json.dumps(files))
        if self.known is None:
            self._write("refs", self.revision, commit)
        self.known = commit

    def _write(self, folder: str, name: str, text: str) -> None:
        path = os.path.join(self.folder, folder, name)
        for one in (path, temporary := os.path.join(self.folder, ".tokmap", f"{os.getpid()}.partial")):
            os.makedirs(os.path.dirname(one), exist_ok=True)
        with open(temporary, "w", encoding="utf-8") as f:
            f.write(text)
        os.replace(f.name, path)


def find_tokenizer(name: str) -> str:
    """The file that the cache has for hf://OWNER/NAME, without the messages for the program."""
    repository = _Repository("model", name, "")
    commit = repository.commit()
    return repository.path(commit, repository.wanted(repository.files(commit))[0])


def _status(error: Exception) -> int:
    """An errno value for the exit status of the program; 0: it will not work later either."""
    answer = getattr(getattr(error, "response", None), "status_code", 0)
    return errno.EAGAIN if answer == 429 or answer >= 500 else getattr(error, "errno", None) or 0


def _fetch(repository: _Repository, quiet: bool) -> List[str]:
    if repository.known is not None:
        try:
            return repository.find()
        except (Refused, OSError):
            pass
    repository.download(quiet)
    return repository.find()


def main(arguments: List[str]) -> None:
    kind, name, how, quiet, commits = arguments
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: when the program ends
    try:
        repository = _Repository(kind, name, commits)
        for path in _fetch(repository, bool(quiet)) if how == "download" else repository.find():
            print("F", path)
    except Exception as error:  # huggingface_hub has its own
        text = describe(error) if isinstance(error, (Refused, OSError)) else str(error)
        print("E", _status(error), plain(text if name in text else f"{name}: {text}"))
    sys.stdout.flush()
