#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_faults.py [N [SEED]] - rows from a store that fails N times [100000], in each of the ways of byte_server.py and by
keys that expire. Prints a table by kind. Each batch must be that of the local files, or `next` must raise an error that
names the object and the range; nothing may take longer than its deadline; no message, warning or log may have a
credential. A wrong byte in a token file is only found with `verify=True`: without it the table says how many rows were
wrong. Exit status 1 if anything is otherwise."""

import itertools
import logging
import os
import pathlib
import pickle
import random
import re
import sys
import tempfile
import time
import traceback
import warnings

import store_case  # noqa: F401: finds tokmap
from byte_server import FAULTS, ByteServer
from store_case import (BUCKET, PASSWORD, RANGE, SIGNATURE, NewKeys, need_obstore, secrets_in, set_environment,
                        store_with_keys, write_numbers)

N_TOKENS, LENGTH, ROWS = 1 << 22, 1024, 32
DEADLINE, SLACK = 20, 5         # seconds
ROUND_STEPS = 20                # between two looks at the counts
# Of the requests that have a fault. A fault that ends a step is rarer, so that most steps have one at most.
RATES = {"stall": 0.01, "replaced": 0.1, "wrong_etag": 0.1, "whole_object": 0.1}
RATE = 0.3
KEYS = "old keys"


class Case:
    """What one kind of fault did."""

    def __init__(self, name, wanted, ending, verify=False):
        self.name, self.wanted, self.ending, self.verify = name, wanted, ending, verify
        self.n_faults = self.n_equal = self.n_wrong_rows = self.n_errors = self.n_reopened = 0
        self.slowest, self.wrong = 0.0, []

    def take(self, function, opens=False):
        """What the function returns, or the error of the library that it raised; notes its time. What is wrong with the index,
        or with a whole object, has no range."""
        import tokmap

        begun = time.monotonic()
        try:
            return function()
        except tokmap.Error as error:
            self.n_errors += 1
            self.check_error(error, opens)
            return error
        finally:
            self.slowest = max(self.slowest, time.monotonic() - begun)

    def check_error(self, error, opens):
        text = str(error)
        whole = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        self.wrong += ["a credential in an error: " + secret for secret in secrets_in(whole + repr(error.args))]
        if "s3://%s/train" % BUCKET not in text or not (opens or "train" + self.ending in text and RANGE.search(text)):
            self.wrong.append("no object or range: " + text)

    def line(self):
        return "%-18s %-5s %-6s %7d %8d %7d %7d %8.1f" % (self.name, self.ending, "yes" if self.verify else "no", self.n_faults,
                                                          self.n_equal, self.n_errors, self.n_wrong_rows, self.slowest)


N_LEDGERS = itertools.count()
HEADING = "%-18s %-5s %-6s %7s %8s %7s %7s %8s" % ("fault", "file", "verify", "faults", "equal", "errors", "wrong", "slowest s")


class Rows:
    """The batches of a store beside those of the files."""

    def __init__(self, folder, case, store=None, rows=ROWS, seed=1):
        import tokmap

        self.case, self.options = case, dict(sequence_length=LENGTH, batch_rows=rows, seed=seed, dtype="int32")
        self.local = tokmap.Loader(folder / "train", **self.options)
        self.reading = tokmap.Reading(deadline=DEADLINE, verify=case.verify)
        self.store, self.remote, self.wanted = store, None, None
        self.ledger = folder / ("ledger %d" % next(N_LEDGERS))

    def open(self, sample=0):
        import tokmap

        named = {} if self.store is None else {"store": self.store}
        loader = tokmap.Loader("s3://%s/train" % BUCKET, reading=self.reading, ledger=self.ledger, **named,
                               **self.options)
        loader.seek(sample)
        return loader

    def step(self):
        """Takes a step of the store and compares it."""
        case = self.case
        if self.remote is None:
            sample = self.local.sample - (0 if self.wanted is None else self.options["batch_rows"])
            opened = case.take(lambda: self.open(sample), opens=True)
            if isinstance(opened, Exception):
                return
            self.remote, case.n_reopened = opened, case.n_reopened + 1
        if self.wanted is None:
            self.wanted = next(self.local).inputs.copy()
        got = case.take(lambda: next(self.remote))
        if isinstance(got, Exception):
            self.after_error()
            return
        n_wrong = int((got.inputs != self.wanted).any(axis=1).sum())
        case.n_equal += n_wrong == 0
        case.n_wrong_rows += n_wrong
        self.wanted = None

    def after_error(self):
        """An error changes nothing: the place is the same, and `next` may be called again."""
        if self.remote.sample != self.local.sample - self.options["batch_rows"]:
            self.case.wrong.append("after an error the loader is at sample %d, and not %d" % (
                self.remote.sample, self.local.sample - self.options["batch_rows"]))
            self.close_remote()

    def close_remote(self):
        if self.remote is not None:
            self.remote.close()
            self.remote = None

    def close(self):
        self.close_remote()
        self.local.close()


def read_rows(server, folder, case, seed, store=None, rate=RATE):
    """Takes steps until so many requests had the fault."""
    rows = Rows(folder, case, store, rows=2 if case.verify else ROWS, seed=seed)
    rows.step()                                             # the index is read without faults
    server.reset()
    if case.name == KEYS:
        server.set(key_seconds=1, faults={})
    else:
        server.set(faults={case.name: RATES.get(case.name, rate)}, ending=case.ending, seed=seed)
    while case.n_faults < case.wanted and len(case.wrong) < 5:
        for _ in range(ROUND_STEPS):
            rows.step()
        counts = server.counts()
        case.n_faults = counts["statuses"].get("403", 0) if case.name == KEYS else counts["faults"].get(case.name, 0)
    server.set(faults={}, key_seconds=None)
    rows.close()


def open_often(server, folder, case, seed, rate=0.2):
    """Opens the dataset until so many requests of the index had the fault, and takes a step after each."""
    server.reset()
    server.set(faults={case.name: rate}, ending=case.ending, seed=seed)
    rows = Rows(folder, case, seed=seed)
    while case.n_faults < case.wanted and len(case.wrong) < 5:
        rows.step()
        rows.close_remote()
        case.n_faults = server.counts()["faults"].get(case.name, 0)
    server.set(faults={})
    rows.close()


def fail_always(server, folder, case):
    """A fault that does not end: an error that names object and range comes within the deadline."""
    import tokmap

    rows = Rows(folder, case)
    rows.reading = tokmap.Reading(deadline=2, verify=case.verify)
    rows.step()
    server.reset()
    server.set(faults={case.name: 1}, ending=case.ending)
    before = case.n_errors
    for _ in range(2):
        rows.step()
    # Rows that were read ahead before come first.
    for _ in range(400):
        if case.n_errors > before:
            break
        rows.step()
    else:
        case.wrong.append("no error")
    case.n_faults = server.counts()["faults"].get(case.name, 0)
    server.set(faults={})
    rows.close()


def unlike(case, slowest):
    """What of a case is not as it must be."""
    found = list(case.wrong)
    if case.slowest > slowest:
        found.append("a call took %.1f s" % case.slowest)
    if case.n_wrong_rows and not (case.name == "wrong_byte" and case.ending == ".bin" and not case.verify):
        found.append("%d rows were wrong" % case.n_wrong_rows)
    if case.n_faults < case.wanted:
        found.append("only %d faults" % case.n_faults)
    return ["%s of %s: %s" % (case.name, case.ending, text) for text in found]


class Said:
    """All that is said: warnings, logs, and what goes to standard error."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        logging.basicConfig(level=logging.DEBUG)
        warnings.simplefilter("always")
        sys.stderr.flush()
        self.stderr = os.dup(2)
        with open(self.path, "wb") as file:
            os.dup2(file.fileno(), 2)
        return self

    def __exit__(self, *_):
        sys.stderr.flush()
        os.dup2(self.stderr, 2)
        os.close(self.stderr)


def addresses_with_credentials(server, folder):
    """What is wrong with errors, names and pickles of datasets whose address, or whose environment, has credentials."""
    import tokmap

    found = []
    address = server.endpoint.replace("//", "//user:%s@" % PASSWORD) + "/%s/train?X-Amz-Signature=%s" % (BUCKET, SIGNATURE)
    for name in (address, "s3://%s/train" % BUCKET):
        for fault in ({}, {"status_500": 1}):
            server.set(faults=fault)
            try:
                loader = tokmap.Loader(name, LENGTH, ROWS, reading=tokmap.Reading(deadline=1), ledger=folder / ("ledger %d" % next(N_LEDGERS)))
                next(loader)
                dataset = tokmap.Dataset(name)
                texts = [repr(loader), repr(dataset), str(loader.stats), repr(pickle.dumps(dataset)), repr(pickle.dumps(loader))]
                loader.close()
            except tokmap.Error as error:
                texts = ["".join(traceback.format_exception(type(error), error, error.__traceback__))]
                if not fault:
                    found.append("no rows from %s: %s" % (name, error))
            found += ["%s: a credential in %.300s" % (name, text) for text in texts if secrets_in(text)]
    server.set(faults={})
    return found


def check(n_faults, seed):
    numbers = random.Random(seed)
    n_stalls = max(1, n_faults // 500)
    n_each = max(2, (n_faults - n_stalls) // len(FAULTS))
    n_index = max(1, n_each // 250)      # each of them needs a process or more
    found, cases = [], []
    with tempfile.TemporaryDirectory(prefix="tokmap_faults_") as name:
        folder = pathlib.Path(name)
        write_numbers(folder / "train", N_TOKENS)
        with ByteServer({BUCKET: folder}) as server, Said(folder / "said"):
            set_environment(server)
            print(HEADING, flush=True)

            def run(function, case, slowest, *arguments):
                function(server, folder, case, *arguments)
                cases.append(case)
                print(case.line(), flush=True)
                found.extend(unlike(case, slowest + SLACK))

            for kind in FAULTS:
                n = n_stalls if kind == "stall" else n_each
                run(read_rows, Case(kind, n, ".bin"), DEADLINE, numbers.getrandbits(30))
            run(read_rows, Case("wrong_byte", max(1, n_each // 20), ".bin", verify=True), DEADLINE, numbers.getrandbits(30))
            # A provider whose keys are older than what the server takes.
            keys = store_with_keys(server, NewKeys(2), DEADLINE)
            run(read_rows, Case(KEYS, n_each, ".bin"), DEADLINE, numbers.getrandbits(30), keys)
            for kind in FAULTS:
                n = max(1, n_index // 10) if kind == "stall" else n_index
                run(open_often, Case(kind, n, ".tmi"), DEADLINE, numbers.getrandbits(30))
            print("requests that always fail, with a deadline of 2 s:", flush=True)
            for kind in FAULTS:
                run(fail_always, Case(kind, 1, ".bin", verify=kind == "wrong_byte"), 2)
            found += addresses_with_credentials(server, folder)
        for path in (folder / "said", *folder.glob("ledger *")):
            found += ["a credential in %s: %s" % (path.name, secret) for secret in secrets_in(path.read_text(errors="replace"))]
    print("%d faults" % sum(case.n_faults for case in cases))
    for text in found:
        print("FAIL faults: " + re.sub(r"\s+", " ", text))
    if not found:
        print("ok faults")
    return 1 if found else 0


if __name__ == "__main__":
    need_obstore("faults")
    n, first = (int(value) for value in [*sys.argv[1:], *("100000", "1")[len(sys.argv) - 1:]])
    sys.exit(check(n, first))
