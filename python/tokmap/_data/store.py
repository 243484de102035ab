# SPDX-License-Identifier: Apache-2.0
"""Gets ranges of objects from a store: by obstore, by fsspec, or by a function. Only the standard library is imported here,
because a short process (short_process.py) loads this file without the package."""

import contextlib
import os
import pickle
import re
import sys
import threading
import time
from typing import Any, Callable, Dict, Iterator, NamedTuple, Optional, Tuple

ERR_IO, ERR_MISMATCH, ERR_FORKED = -3, -7, -11  # tokmap_status
COUNTERS = ("requests", "bytes", "hedges", "retries", "failures")
SCHEMES = ("s3", "gs", "az", "https", "http")
_SIZE_SECONDS = 60  # after which a store without versions is asked for the size of an object again


class Read(NamedTuple):
    """A range of an object. version: the one that it must have; "": any. n_bytes 0: only version and size are asked for."""

    name: str
    version: str
    offset: int
    n_bytes: int


class Failed(Exception):
    """A read that no other try would help, as a tokmap_error says it. The text begins with the name of the object."""

    def __init__(self, status: int, sys_errno: int, read: Read, why: str) -> None:
        part = f"bytes {read.offset} to {read.offset + read.n_bytes}: " if read.n_bytes else ""
        super().__init__(f"{read.name}: {part}{why}")
        self.status, self.sys_errno, self.read, self.why = status, sys_errno, read, why


class WrongAnswer(Exception):
    """A store gave other bytes than it was asked for. Another request may get the right ones."""


class Replaced(Exception):
    """An object is not the one that was opened."""


class Answer(NamedTuple):
    """The bytes of a range, and what the store says of the object. version: "" if it has none; size: None if it is not known."""

    data: Any
    version: str
    size: Optional[int]


# ---- Names ----


class Url(NamedTuple):
    """The URL of a dataset. name: without user information, query and suffix, for messages; base: of the bucket or host."""

    name: str
    base: str
    user: str
    query: str


def is_url(path: Any) -> bool:
    return isinstance(path, str) and "://" in path and path.partition("://")[0] in SCHEMES


def without_suffix(name: str) -> str:
    return name[:-4] if name.endswith((".tmi", ".bin")) else name


def parse_url(url: str) -> Url:
    scheme, _, rest = url.partition("://")
    rest, _, query = rest.partition("?")
    user, _, rest = rest.rpartition("@") if "@" in rest.partition("/")[0] else ("", "", rest)
    host, _, path = rest.partition("/")
    name = without_suffix(f"{scheme}://{rest}")
    if not host or not path or path.endswith("/"):
        raise ValueError(f"{name}: must be the URL of a dataset, such as s3://bucket/folder/train")
    if set("*[") & set(path):
        raise ValueError(f"{name}: patterns match only local paths: name each dataset of a store")
    if (user or query) and not scheme.startswith("http"):
        raise ValueError(f"{name}: has user information or a query: give credentials in the environment, or a store by store=")
    return Url(name, f"{scheme}://{host}", user, query)


def path_of(name: str) -> str:
    """The path of an object in its bucket."""
    return name.partition("://")[2].partition("/")[2] if is_url(name) else name


# ---- Texts without credentials ----


_HIDDEN = (
    (re.compile(r"<(\?xml|error|html|!doctype).*", re.I | re.S), ""),  # the body of an answer, which may repeat a request
    (re.compile(r"(?<=://)[^/?#\s\"'<>]*@"), ""),
    (re.compile(r"\?[^\s\"'<>)]*"), ""),
    (re.compile(r"(?i)\b((?:x-(?:amz|goog|ms)-|proxy-)?[\w-]*(?:token|secret|password|signature|credential|authorization|sig|_key)"
                r"[\w-]*[\"']?\s*[:=]\s*)(?:\"[^\"]*\"|'[^']*'|(?:bearer |basic |aws4-\S+ )?[^\s,;&\"'<>]+)"), r"\1***"))
_SECRET_NAME = re.compile("KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL|SAS")


def describe(error: BaseException, secrets: Tuple[str, ...] = ()) -> str:
    """What an error of a transport says, in one line, without user information, queries, tokens, and the given secrets."""
    text = str(error)
    code = re.search(r"<Code>(\w+)</Code>", text)
    own = [value for name, value in os.environ.items() if len(value) > 5 and _SECRET_NAME.search(name)]
    for secret in sorted((*secrets, *own), key=len, reverse=True):
        text = text.replace(secret, "***") if secret else text
    text = text.partition("\n\n")[0]  # obstore adds the structs of Rust
    for pattern, instead in _HIDDEN:
        text = pattern.sub(instead, text)
    text = " ".join(text.split()).rstrip(": ")
    name = "" if isinstance(error, WrongAnswer) else type(error).__name__
    return ": ".join(filter(None, (name, text[:240], code[1] if code else "")))


# ---- Opening ----


DEADLINE_SECONDS = 60.0
_local = threading.local()


class Opening:
    """What datasets that are opened together share. seconds: the deadline of their reads; processes: the short process for each
    transport; sources: the first source of each store."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.processes: Dict[Any, Any] = {}
        self.sources: Dict[Any, Any] = {}


@contextlib.contextmanager
def opening(seconds: float = DEADLINE_SECONDS) -> Iterator[Opening]:
    """While datasets are opened. The outermost of these blocks counts; its short processes end with it."""
    outer: Optional[Opening] = getattr(_local, "opening", None)
    if outer is not None:
        yield outer
        return
    _local.opening = own = Opening(seconds)
    try:
        yield own
    finally:
        _local.opening = None
        for process in own.processes.values():
            process.close()


# ---- Transports ----


async def _in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a function that waits in a thread of its own. Not by an executor, for whose threads Python waits at its exit."""
    import asyncio  # takes longer to import than all that a process needs that only opens datasets

    loop = asyncio.get_running_loop()
    done: "asyncio.Future[Tuple[Any, Optional[Exception]]]" = loop.create_future()

    def finish(result: Any, error: Optional[Exception]) -> None:
        if not done.done():
            done.set_result((result, error))

    def run() -> None:
        result: Any = None
        failure: Optional[Exception] = None
        try:
            result = function(*arguments)
        except Exception as error:
            failure = error
        except BaseException as error:  # which would end the loop
            failure = RuntimeError(f"{type(error).__name__}: {error}")
        try:
            loop.call_soon_threadsafe(finish, result, failure)
        except RuntimeError:  # the loop is closed
            pass

    threading.Thread(target=run, name="tokmap-store", daemon=True).start()
    result, error = await done
    if error is not None:
        raise error
    return result


class Transport:
    """Sends one request for a range, and checks the answer. secrets: texts that no message may have."""

    uses_tokio = False
    secrets: Tuple[str, ...] = ()

    async def get(self, name: str, start: int, end: int, version: str) -> Answer:
        """Bytes from start to end, or to the end of the object. start = end: only version and size. version: the one that the object
        must have; "": any."""
        raise NotImplementedError

    def renew(self) -> None:
        """Reads credentials again, if they are not the user's."""


class Obstore(Transport):
    """An object store of obstore, or one that has the same `get_async`."""

    uses_tokio = True

    def __init__(self, store: Any) -> None:
        self._store = store

    def _open(self) -> Any:
        return self._store

    def _path(self, name: str) -> str:
        return path_of(name)

    async def get(self, name: str, start: int, end: int, version: str) -> Answer:
        options: Dict[str, Any] = {"range": (start, end)} if end > start else {"head": True}
        if version and not version.startswith("W/"):  # which no If-Match is equal to
            options["if_match"] = version
        result = await self._open().get_async(self._path(name), options=options)
        meta = result.meta
        size, found = int(meta["size"]), meta.get("e_tag") or ""
        if len(found.encode()) > 127:  # has no room in the struct of C
            found = ""
        if end == start:
            return Answer(b"", found, size)
        if tuple(result.range) != (start, min(end, size)):
            raise WrongAnswer(f"the answer has the bytes {result.range[0]} to {result.range[1]} of {size}")
        return Answer(await result.bytes_async(), found, size)


_PREFIXES = {"s3": "AWS_", "gs": "GOOGLE_", "az": "AZURE_"}
_CLIENT_NAMES = ("allow_http", "allow_invalid_certificates", "connect_timeout", "proxy_url", "proxy_ca_certificate", "proxy_excludes",
                 "user_agent")


def _client_of_environment(base: str) -> Dict[str, str]:
    """Options of the HTTP client that obstore would read, such as AWS_ALLOW_HTTP, if it were given none."""
    prefix = _PREFIXES.get(base.partition("://")[0])
    names = {name: f"{prefix}{name.upper()}" for name in _CLIENT_NAMES if prefix}
    return {name: os.environ[variable] for name, variable in names.items() if variable in os.environ}


class ObstoreUrl(Obstore):
    """A store that is made from a URL when it is first used in this process, with the credentials of the environment."""

    def __init__(self, url: Url, seconds: float) -> None:
        super().__init__(None)
        from urllib.parse import unquote

        self._url, self._seconds = url, seconds
        self._user = unquote(url.user)
        self.secrets = tuple(filter(None, (url.query, url.user, self._user, *(one.partition(":")[2] for one in (url.user, self._user)))))

    def renew(self) -> None:
        self._store = None

    def _open(self) -> Any:
        if self._store is None:
            from obstore.store import HTTPStore, from_url

            url = self._url
            # Without the types of obstore, which need not be installed.
            client: Any = {**_client_of_environment(url.base), "timeout": f"{max(int(self._seconds * 1000), 1)}ms", "http1_only": True}
            retries: Any = {"max_retries": 0}
            if url.base.startswith("http"):
                if url.user:
                    import base64

                    client["default_headers"] = {"authorization": f"Basic {base64.b64encode(self._user.encode()).decode()}"}
                client["allow_http"] = url.base.startswith("http:")
                base = url.base + (f"?{url.query}" if url.query else "")
                self._store = HTTPStore.from_url(base, client_options=client, retry_config=retries)
            else:
                self._store = from_url(url.base, client_options=client, retry_config=retries)
        return self._store

    def _path(self, name: str) -> str:
        from urllib.parse import unquote

        path = path_of(name)
        return unquote(path) if self._url.base.startswith("http") else path


class _Blocking(Transport):
    """A store without versions, whose calls wait."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self._sizes: Dict[str, Tuple[Optional[int], float]] = {}  # and when they were asked for

    def _read(self, name: str, start: int, end: int) -> Any:
        raise NotImplementedError

    def _ask_size(self, name: str) -> Optional[int]:
        raise NotImplementedError

    def _size(self, name: str, is_opened: bool) -> Optional[int]:
        """Returns the size, without a request for each range. is_opened: another size means that the object was replaced."""
        size, asked = self._sizes.get(name, (None, None))
        if asked is None or not is_opened or time.monotonic() - asked > _SIZE_SECONDS:
            found = self._ask_size(name)
            if asked is not None and is_opened and found != size:
                raise Replaced
            size = found
            self._sizes[name] = size, time.monotonic()
        return size

    def _get(self, name: str, start: int, end: int) -> Answer:
        size = self._size(name, end > start)
        return Answer(self._read(name, start, end) if end > start else b"", "", size)

    async def get(self, name: str, start: int, end: int, version: str) -> Answer:
        answer: Answer = await _in_thread(self._get, name, start, end)
        return answer


class Fsspec(_Blocking):
    """A file system of fsspec."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.uses_tokio = type(store).__module__.partition(".")[0] == "obstore"  # which has one, too

    def _own(self) -> Any:
        if getattr(self._store, "_pid", os.getpid()) != os.getpid():  # such an object refuses to work in a child of fork
            self._store = pickle.loads(pickle.dumps(self._store))
        return self._store

    def _read(self, name: str, start: int, end: int) -> Any:
        return self._own().cat_file(name, start=start, end=end)

    def _ask_size(self, name: str) -> Optional[int]:
        size = self._own().info(name).get("size")
        return None if size is None else int(size)


class Function(_Blocking):
    """A function (name, offset, length) -> bytes, which may have an attribute size: a function (name) -> int."""

    def _read(self, name: str, start: int, end: int) -> Any:
        return self._store(name, start, end - start)

    def _ask_size(self, name: str) -> Optional[int]:
        size = getattr(self._store, "size", None)
        return int(size(name)) if callable(size) else None


def check_obstore() -> None:
    """Raises ModuleNotFoundError if no URL can be opened, and says what to do."""
    import importlib.util

    if sys.version_info < (3, 11):
        raise ModuleNotFoundError(f"URLs are opened by obstore, which needs Python 3.11 or later, and this is {sys.version.split()[0]}. Or "
                                  "give a file system of fsspec or a function by store=", name="obstore")
    if importlib.util.find_spec("obstore") is None:
        raise ModuleNotFoundError("URLs are opened by obstore, which is not installed. Install it: pip install obstore. Or give a file "
                                  "system of fsspec or a function by store=", name="obstore")


def make_transport(store: Any, seconds: float) -> Transport:
    """Chooses how to ask a store: a Url, or an object of the user. seconds: the longest time of a request."""
    if isinstance(store, Url):
        return ObstoreUrl(store, seconds)
    if hasattr(store, "get_async"):
        return Obstore(store)
    if hasattr(store, "cat_file") and hasattr(store, "info"):
        return Fsspec(store)
    if callable(store):
        return Function(store)
    raise TypeError(f"store is a {type(store).__name__}: must be a store of obstore, a file system of fsspec, or a function (name, offset, "
                    "length) -> bytes")
