#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How ranges are read from a store, as the C library asks for them: near ranges are one request, failed requests are repeated
until the deadline, slow ones are sent twice, every answer is compared with what was asked for, and no message has credentials.
Needs no obstore: the stores are functions, and objects with the faces of obstore and fsspec."""

import ctypes
import errno
import gc
import os
import random
import subprocess
import sys
import textwrap
import threading
import time
import warnings
import weakref

from package import raises
from ref_protocol import run_in_folders
from store_reads import Memory, Versions, open_source, read, run_in_child, structs_of

import tokmap
from tokmap._c.errors import check
from tokmap._c.structs import ErrorDetail
from tokmap._data import byte_source, range_reader, store

DATA = random.Random(1).randbytes(1 << 20) if hasattr(random.Random, "randbytes") else os.urandom(1 << 20)
UNKNOWN = 2**64 - 1


def part(first, n_bytes):
    return DATA[first:first + n_bytes]


def ranges_are_those_of_the_object(folder):
    place = folder / "x.bin"
    place.write_bytes(DATA)

    class Files:  # as a file system of fsspec
        def cat_file(self, path, start, end):
            with open(folder / path, "rb") as file:
                return os.pread(file.fileno(), end - start, start)

        def info(self, path):
            return {"size": os.stat(folder / path).st_size}

    for given in (Memory({"x.bin": DATA}), Files(), Versions({"x.bin": DATA})):
        source = open_source("x", given)
        found = read(source, ("x.bin", 700000, 10), ("x.bin", 0, 65536), ("x.bin", 0, 0), ("x.bin", len(DATA) - 5, 100))
        version = '"1"' if isinstance(given, Versions) else ""
        assert found.status == 0 and [data for data, *_ in found.parts] == [part(700000, 10), part(0, 65536), b"", part(len(DATA) - 5, 5)]
        assert {one[1:] for one in found.parts} == {(version, len(DATA))}
        assert source.counters["requests"] == 4 and source.counters["bytes"] == 65551, source.counters


def a_function_may_know_no_size(folder):
    source = open_source("x", lambda name, offset, length: part(offset, length))
    assert read(source, ("x.bin", 5, 10)).parts == [(part(5, 10), "", UNKNOWN)]
    assert read(source, ("x.bin", 0, 0)).parts == [(b"", "", UNKNOWN)]


def near_ranges_are_one_request(folder):
    for gap, n_requests in ((16384, 1), (16385, 2), (-50, 1)):
        given = Memory({"x.bin": DATA})
        first, second = ("x.bin", 1000, 100), ("x.bin", 1100 + gap, 100)
        found = read(open_source("x", given), second, first)
        assert [data for data, *_ in found.parts] == [part(1100 + gap, 100), part(1000, 100)]
        assert len(given.calls) == n_requests, given.calls
    given = Memory({"x.bin": DATA, "y.bin": DATA})
    found = read(open_source("x", given), *(("y.bin" if i % 2 else "x.bin", 100 * i, 100) for i in range(20)))
    assert [data for data, *_ in found.parts] == [part(100 * i, 100) for i in range(20)] and len(given.calls) == 2
    given = Memory({"x.bin": bytes(40 << 20)})  # 5 ranges of 8 MiB stay apart, so that they come at the same time
    read(open_source("x", given), *(("x.bin", i << 23, 1 << 23) for i in range(5)))
    assert len(given.calls) == 5


def random_ranges_are_right(folder):
    numbers = random.Random(3)
    source = open_source("x", Memory({"x.bin": DATA, "y.bin": DATA[::-1]}))
    for _ in range(30):
        ranges = [(numbers.choice(("x.bin", "y.bin")), numbers.randrange(len(DATA)), numbers.choice((0, 1, 300, 40000))) for _ in range(12)]
        for (name, offset, n_bytes), (data, *_) in zip(ranges, read(source, *ranges).parts):
            assert data == (DATA if name == "x.bin" else DATA[::-1])[offset:offset + n_bytes]


def failed_requests_are_repeated(folder):
    def spoil(number, name, offset, length, data):
        wrong = [OSError("connection reset"), TimeoutError(), data[:-1], data + b"x", Exception("of another library")]
        if number <= len(wrong):
            if isinstance(wrong[number - 1], Exception):
                raise wrong[number - 1]
            return wrong[number - 1]
        return data

    given = Memory({"x.bin": DATA}, spoil)
    source = open_source("x", given)
    found = read(source, ("x.bin", 10, 1000))
    assert found.parts[0][0] == part(10, 1000)
    assert source.counters == {"requests": 6, "bytes": 1000, "hedges": 0, "retries": 5, "failures": 5}, source.counters


def wrong_answers_are_found(folder):
    def whole(answer):  # 200 in place of 206
        answer.data, answer.range = DATA, (0, len(DATA))

    def short(answer):
        answer.data = answer.data[:-1]

    def lies(answer):
        answer.meta["size"] += 1

    def other_range(answer):
        answer.range = answer.range[0] + 1, answer.range[1] + 1

    def other_version(answer):
        answer.meta["e_tag"] = '"2"'

    for change in (whole, short, lies, other_range, other_version):
        given = Versions({"x.bin": DATA}, lambda number, answer, change=change: change(answer) if number in (2, 3) else None)
        source = open_source("x", given)
        read(source, ("x.bin", 0, 100))
        assert read(source, ("x.bin", 100, 100), version='"1"').parts == [(part(100, 100), '"1"', len(DATA))]
        assert source.counters["failures"] == 2, (change, source.counters)
        assert all(options["if_match"] == '"1"' for _, options in given.calls[1:])


def a_replaced_object_is_found(folder):
    class PreconditionError(Exception):  # as obstore's
        pass

    def refuse(number, answer):
        raise PreconditionError("412")

    for given in (Versions({"x.bin": DATA}, etag='"2"'), Versions({"x.bin": DATA}, refuse)):
        found = read(open_source("x", given), ("x.bin", 100, 100), version='"1"')
        assert found.status == -7 and found.text == "x.bin: bytes 100 to 200: the object was replaced after it was opened", found.text
        assert found.file == "x.bin" and found.offset == 100
        assert len(given.calls) == 3  # so that one wrong answer ends no run
    weak = Versions({"x.bin": DATA}, etag='W/"1"')
    assert read(open_source("x", weak), ("x.bin", 0, 5), version='W/"1"').status == 0
    assert "if_match" not in weak.calls[0][1]  # nothing is equal to such a version in If-Match


def another_size_of_an_object_without_versions_is_found(folder):
    given = Memory({"x.bin": DATA})
    source = open_source("x", given)
    read(source, ("x.bin", 0, 5))
    given.objects["x.bin"] = DATA[1:]
    source.transport._sizes["x.bin"] = len(DATA), time.monotonic() - store._SIZE_SECONDS - 1  # asked long ago
    assert read(source, ("x.bin", 0, 5)).status == -7


def the_deadline_ends_a_read(folder):
    def fail(number, name, offset, length, data):
        raise OSError(errno.EIO, "the store is down")

    hung = threading.Event()

    def hang(number, name, offset, length, data):
        hung.wait()

    for spoil, said in ((fail, ": OSError: [Errno 5] the store is down"), (hang, ": no answer within 0.3 s")):
        begun = time.monotonic()
        found = read(open_source("x", Memory({"x.bin": DATA}, spoil), 1), ("x.bin", 4096, 1000))
        assert 0.9 < time.monotonic() - begun < 20, time.monotonic() - begun
        assert found.status == -3 and found.errno == errno.ETIMEDOUT and found.offset == 4096
        assert found.text.startswith("x.bin: bytes 4096 to 5096: could not be read within 1 s, in ") and found.text.endswith(said), found.text
    hung.set()


def what_no_try_would_help_is_said_at_once(folder):
    sources = [open_source("x", Memory({}))]
    found = read(sources[-1], ("x.bin", 0, 100))
    assert (found.status, found.errno, found.text) == (-3, errno.ENOENT, "x.bin: bytes 0 to 100: the object does not exist")
    detail = ErrorDetail(status=found.status, sys_errno=found.errno, text=found.text.encode())
    raises(FileNotFoundError, check, found.status, detail)

    def wrong(name, offset):
        return b""

    sources.append(open_source("x", wrong))
    found = read(sources[-1], ("x.bin", 0, 100))
    assert found.status == -3 and "TypeError" in found.text, found.text
    sources.append(open_source("x", lambda name, offset, length: "text"))
    found = read(sources[-1], ("x.bin", 0, 100))
    assert found.status == -3 and "TypeError" in found.text, found.text

    def refuse(number, name, offset, length, data):
        raise PermissionError("403")

    sources.append(open_source("x", Memory({"x.bin": DATA}, refuse)))
    found = read(sources[-1], ("x.bin", 0, 100))
    assert (found.status, found.errno) == (-3, errno.EACCES)  # nothing was ever read with these credentials
    assert [source.counters["retries"] for source in sources] == [0, 0, 0, range_reader.N_PROOFS - 1]


def keys_that_expire_are_waited_for(folder):
    def refuse(number, name, offset, length, data):
        if 2 <= number <= 6:
            raise PermissionError("403: the token has expired")
        return data

    source = open_source("x", Memory({"x.bin": DATA}, refuse))
    assert read(source, ("x.bin", 0, 5)).status == read(source, ("x.bin", 5, 5)).status == 0
    assert source.counters["retries"] == 5


def an_object_that_is_refused_while_others_are_not_is_absent(folder):
    """As S3 answers who may read objects and may not list them."""
    def refuse(number, name, offset, length, data):
        if name != "x.tmi":
            raise PermissionError("403")
        return data

    source = open_source("x", Memory({"x.tmi": DATA, "x.idx": DATA}, refuse), 1)
    assert read(source, ("x.tmi", 0, 5)).status == 0
    found = read(source, ("x.idx", 0, 5))
    assert (found.status, found.errno) == (-3, errno.ENOENT) and "may not be read: PermissionError: 403" in found.text, found.text
    assert source.counters["retries"] == range_reader.N_PROOFS - 1
    found = read(source, ("x.idx", 0, 5), version='"1"')  # it was there, so it is asked for until the deadline
    assert (found.status, found.errno) == (-3, errno.ETIMEDOUT), found.text


def a_slow_request_is_sent_twice(folder):
    hung = threading.Event()

    def slow(number, name, offset, length, data):
        if number == 11:
            hung.wait()
        return data

    source = open_source("x", Memory({"x.bin": DATA}, slow))
    for i in range(10):
        read(source, ("x.bin", i, 5))
    begun = time.monotonic()
    assert read(source, ("x.bin", 50, 5)).parts[0][0] == part(50, 5)
    assert time.monotonic() - begun > 0.9 and source.counters["hedges"] == 1 and source.counters["retries"] == 0
    hung.set()


def after_a_failed_request_none_is_sent_twice(folder):
    def slow(number, name, offset, length, data):
        if number == 1:
            raise OSError("SlowDown")
        if number == 2:
            time.sleep(1.5)
        return data

    source = open_source("x", Memory({"x.bin": DATA}, slow))
    assert read(source, ("x.bin", 50, 5)).status == 0 and source.counters["hedges"] == 0 and source.counters["requests"] == 2


def one_request_in_fifty_is_sent_twice_at_most(folder):
    """All are slow, so there would be one for each."""
    slow_seconds, range_reader.FIRST_HEDGE_SECONDS = range_reader.FIRST_HEDGE_SECONDS, 0.001
    try:
        source = open_source("x", Memory({"x.bin": DATA}, lambda number, name, offset, length, data: time.sleep(0.01) or data))
        for i in range(300):
            read(source, ("x.bin", i, 5))
    finally:
        range_reader.FIRST_HEDGE_SECONDS = slow_seconds
    assert 4 <= source.counters["hedges"] <= max(0.02 * source.counters["requests"], 4) + 1, source.counters


def what_is_slow_follows_from_the_last_thousand(folder):
    import asyncio

    async def make():
        reader = range_reader.RangeReader(asyncio.get_running_loop())
        work = range_reader._Work(store.Function(print), store.Read("x", "", 0, 5), 1, dict.fromkeys(store.COUNTERS, 0))
        for i in range(1, 3001):
            reader._note_time(work, i)
            if i in (999, 1000, 3000):
                yield reader._slow_seconds

    async def run():
        return [one async for one in make()]

    assert asyncio.run(run()) == [1.0, 991, 2991]


def requests_in_flight_are_bounded(folder):
    lock, running, most = threading.Lock(), [0], [0]

    def spoil(number, name, offset, length, data):
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        time.sleep(0.02)
        with lock:
            running[0] -= 1
        return data

    source = open_source("x", Memory({"x.bin": bytes(64 << 20)}, spoil))
    assert read(source, *(("x.bin", i << 17, 10) for i in range(300))).status == 0
    assert 1 < most[0] <= range_reader.MAX_IN_FLIGHT, most


def the_deadline_begins_when_it_is_the_turn_of_a_range(folder):
    source = open_source("x", Memory({"x.bin": bytes(64 << 20)}, lambda *given: time.sleep(0.05) or given[-1]), 3)
    most, range_reader.MAX_IN_FLIGHT = range_reader.MAX_IN_FLIGHT, 4
    try:
        assert read(source, *(("x.bin", i << 16, 10) for i in range(300))).status == 0  # 3.75 s of requests
    finally:
        range_reader.MAX_IN_FLIGHT = most


def a_store_that_hangs_is_an_error_at_the_deadline(folder):
    hung = threading.Event()
    source, begun = open_source("x", Memory({"x.bin": bytes(64 << 20)}, lambda *_: hung.wait()), 0.5), time.monotonic()
    assert read(source, *(("x.bin", i << 16, 10) for i in range(640))).errno == errno.ETIMEDOUT
    assert time.monotonic() - begun < 20
    hung.set()


def many_threads_read_at_the_same_time(folder):
    source, wrong = open_source("x", Memory({"x.bin": DATA})), []

    def run(seed):
        numbers = random.Random(seed)
        for _ in range(50):
            first = numbers.randrange(len(DATA) - 500)
            if read(source, ("x.bin", first, 500)).parts[0][0] != part(first, 500):
                wrong.append(first)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and source.counters["requests"] == 800


def a_read_is_cancelled(folder):
    hung = threading.Event()
    source = open_source("x", Memory({"x.bin": DATA}, lambda *_: hung.wait()))
    structs = structs_of([("x.bin", 0, 100)])
    address = ctypes.addressof(structs[0])
    replies = []
    thread = threading.Thread(target=lambda: replies.append(read(source, structs=structs)))
    thread.start()
    begun = time.monotonic()
    while thread.is_alive():  # as the library does: a cancel may come before the call has reached Python
        source.struct.cancel(source.struct.context, address)
        thread.join(0.01)
    assert time.monotonic() - begun < 20 and replies[0].status == -3 and "cancelled" in replies[0].text
    hung.set()
    assert read(open_source("x", Memory({"x.bin": DATA})), structs=structs).status == 0  # an earlier cancel counts no longer


def a_callback_never_raises_into_the_library(folder):
    source = open_source("x", Memory({"x.bin": DATA}))
    structs, kept = structs_of([("x.bin", 0, 100)])
    detail, unknown = ErrorDetail(), source.struct.context + 1000  # a source that does not exist, as after a fault of this package
    assert source.struct.read(unknown, ctypes.addressof(structs), 1, ctypes.addressof(detail)) == -3
    assert b"interrupted" in detail.text
    raises(KeyError, check, -3, detail)
    assert raises(tokmap.FileError, check, -3, detail).status == -3  # what was kept is raised once


def ctrl_c_is_raised_when_the_library_returns(folder):
    hung = threading.Event()
    source = open_source("x", Memory({"x.bin": DATA}, lambda *_: hung.wait()))
    import signal

    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    found = read(source, ("x.bin", 0, 100))
    detail = ErrorDetail(status=found.status, text=found.text.encode())
    assert found.status == -3
    raises(KeyboardInterrupt, check, found.status, detail)
    hung.set()


def texts_have_no_credentials(folder):
    secrets = ("pass-word-7", "5d672d79signature", "FwoGZXIvYXdzEXAMPLE", "wJalrXUtnFEMI")
    texts = (
        "error sending request for url (https://user:pass-word-7@host/a?X-Amz-Signature=5d672d79signature&x=1): timed out",
        "GET https://acct.blob.core.windows.net/c/x?sv=1&sig=5d672d79signature",
        'headers: {"x-amz-security-token": "FwoGZXIvYXdzEXAMPLE", "authorization": "AWS4-HMAC-SHA256 Credential=wJalrXUtnFEMI"}',
        "X-Amz-Security-Token: FwoGZXIvYXdzEXAMPLE", "Authorization: Bearer FwoGZXIvYXdzEXAMPLE", "aws_secret_access_key=wJalrXUtnFEMI",
        "sas_token='5d672d79signature'", "403: <?xml version='1.0'?><Error><Code>SignatureDoesNotMatch</Code><StringToSign>FwoGZXIvYXdzEXAMPLE",
        "403\n\nDebug source: Url { password: Some(\"pass-word-7\") }")
    for text in texts:
        found = store.describe(OSError(text))
        assert not any(secret in found for secret in secrets), found
        assert found.startswith("OSError: ") and "\n" not in found
    assert store.describe(OSError("503 <?xml?><Error><Code>SlowDown</Code></Error>")) == "OSError: 503: SlowDown"
    os.environ["MY_SECRET_KEY"] = "wJalrXUtnFEMI"
    assert store.describe(OSError("the key wJalrXUtnFEMI is wrong")) == "OSError: the key *** is wrong"
    del os.environ["MY_SECRET_KEY"]
    assert store.describe(OSError("user hunter2 was refused"), ("hunter2",)) == "OSError: user *** was refused"

    def fail(number, name, offset, length, data):
        raise OSError(texts[0])

    found = read(open_source("x", Memory({"x.bin": DATA}, fail), 0.2), ("x.bin", 0, 10))
    assert "timed out" in found.text and not any(secret in found.text for secret in secrets), found.text


def names_have_no_credentials(folder):
    url = store.parse_url("https://user:p@ss@host:81/folder/train.tmi?sig=abc")
    assert url == ("https://host:81/folder/train", "https://host:81", "user:p@ss", "sig=abc")
    assert store.parse_url("s3://bucket/a b/train.bin") == ("s3://bucket/a b/train", "s3://bucket", "", "")
    for wrong in ("s3://bucket", "s3://bucket/", "s3:///x", "s3://bucket/part-*", "s3://key:secret@bucket/x", "gs://bucket/x?token=secret"):
        assert "secret" not in str(raises(ValueError, store.parse_url, wrong))
    assert "secret" not in str(raises(ValueError, open_source, "https://u:secret@host/x", Memory({})))
    assert "pip install obstore" in str(raises_without_obstore())


def raises_without_obstore():
    """The error of a URL where obstore, or a Python for it, is missing."""
    import importlib.util

    found, importlib.util.find_spec = importlib.util.find_spec, lambda name: None
    try:
        if sys.version_info < (3, 11):
            assert "3.11" in str(raises(ModuleNotFoundError, open_source, "s3://bucket/x"))
            version, sys.version_info = sys.version_info, (3, 11)
            try:
                return raises(ModuleNotFoundError, open_source, "s3://bucket/x")
            finally:
                sys.version_info = version
        return raises(ModuleNotFoundError, open_source, "s3://bucket/x")
    finally:
        importlib.util.find_spec = found


def a_store_is_let_go_with_its_last_dataset(folder):
    given = Memory({"x.bin": DATA})
    sources, known = [open_source("x", given), open_source("y", given)], weakref.ref(given)
    assert sources[0].transport is sources[1].transport  # and its connections
    for source in sources:
        assert read(source, ("x.bin", 0, 5)).status == 0
    del given, source
    gc.collect()
    assert known() is not None
    sources.clear()
    for _ in range(50):  # until the loop has forgotten the last call
        gc.collect()
        if known() is None:
            return
        time.sleep(0.1)
    raise AssertionError("the store is kept")


def what_is_no_store_is_refused(folder):
    for wrong in (3, "s3", object(), {}):
        assert "must be" in str(raises(TypeError, open_source, "x", wrong))

    class Retries(Versions):
        retry_config = None  # obstore's default

    class Calm(Versions):
        retry_config = {"max_retries": 0}

    for kind, n in ((Retries, 1), (Calm, 0), (Versions, 0)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            open_source("x", kind({}))
        assert len(caught) == n and all("max_retries" in str(one.message) for one in caught)


def a_forked_child_reads_by_itself(folder):
    source = open_source("x", Memory({"x.bin": DATA}))
    assert read(source, ("x.bin", 0, 100)).status == 0

    def check():
        assert read(source, ("x.bin", 5, 10)).parts[0][0] == part(5, 10)

    run_in_child(check)


PRINTS = """
import os
print("a module of the user may print")

def read(name, offset, length):
    if name == "fail.tmi":
        raise OSError("down")
    return b"%d" % os.getpid()
"""


def a_short_process_opens_what_can_be_pickled(folder):
    (folder / "users_module.py").write_text(PRINTS)
    sys.path.insert(0, str(folder))
    import users_module

    def check():
        source, other = open_source("x", users_module.read, 0.3), open_source("y", users_module.read, 0.3)
        with store.opening(), source.read_elsewhere():
            pid = int(read(source, ("x.tmi", 0, 100)).parts[0][0])
            assert pid != os.getpid()
            with other.read_elsewhere():  # one process for both
                assert int(read(other, ("y.tmi", 0, 100)).parts[0][0]) == pid
            found = read(source, ("fail.tmi", 7, 100))
            assert found.status == -3 and found.offset == 7 and "could not be read within 0.3 s" in found.text, found.text
            assert int(read(source, ("x.tmi", 0, 100)).parts[0][0]) == pid
            assert source.counters["requests"] > 2 and source.counters["failures"] > 0
        raises(ProcessLookupError, os.kill, pid, 0)
        assert int(read(source, ("x.tmi", 0, 100)).parts[0][0]) == os.getpid()
        with source.read_elsewhere():  # which now would keep this process from nothing
            assert int(read(source, ("x.tmi", 0, 100)).parts[0][0]) == os.getpid()

    run_in_child(check)


def what_cannot_be_pickled_is_read_here(folder):
    def check():
        pids = []
        without_name = open_source("x", lambda name, offset, length: pids.append(os.getpid()) or part(offset, length))
        of_main = open_source("x", Memory({"x.tmi": DATA}))  # which the short process does not find
        for source in (without_name, of_main):
            with source.read_elsewhere():
                assert read(source, ("x.tmi", 0, 100)).parts[0][0] == part(0, 100)
        assert len(of_main.store.calls) == 1 and pids == [os.getpid()]

    run_in_child(check)


def a_short_process_that_ends_is_an_error(folder):
    (folder / "other_module.py").write_text(PRINTS.replace("raise", "os._exit(7)\n        raise"))
    sys.path.insert(0, str(folder))
    import other_module

    def check():
        source = open_source("x", other_module.read)
        with source.read_elsewhere():
            found = read(source, ("fail.tmi", 0, 100))
            assert found.status == -3 and "status 7" in found.text, found.text

    run_in_child(check)


EXITS = """
    import sys, threading, time
    import package
    from store_reads import Memory, open_source, read

    def spoil(*_):
        time.sleep(60)

    source = open_source("x", Memory({"x.bin": bytes(1000)}, spoil))

    def again():
        while read(source, ("x.bin", 0, 100)).status and threading.main_thread().is_alive():
            pass

    for _ in range(8):
        threading.Thread(target=again, daemon=True).start()
    time.sleep(0.3)
"""


def python_ends_with_reads_in_flight(folder):
    for _ in range(5):
        begun = time.monotonic()
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(EXITS)], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        assert done.returncode == 0 and done.stderr == "", (done.returncode, done.stderr)
        assert time.monotonic() - begun < 40


def a_process_that_only_opens_imports_no_asyncio(folder):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent("""
        import sys
        import package
        import tokmap
        from tokmap._data import byte_source
        assert "asyncio" not in sys.modules
    """)], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0


assert byte_source  # it is imported here, and not in the middle of a test that measures
sys.exit(run_in_folders("store_"))
