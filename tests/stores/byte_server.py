#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""byte_server.py [--port N] [--bucket NAME=FOLDER] [--made NAME/KEY=BYTES] [--settings JSON] - a store of objects on the
loopback that counts what is asked of it, and fails as it is told to.

    from byte_server import ByteServer
    with ByteServer(buckets={"b": folder}, made={"b/train.bin": 10**13}) as server:
        server.endpoint                             # http://127.0.0.1:PORT, for clients of S3 with names in the path
        server.set(latency={"constant": 0.05})      # from now on
        server.set(faults={"slow_down": 0.01}, ending=".bin")
        server.counts()                             # requests, bytes, faults; see `counts` of Store
        round_trips(server.log())                   # requests that had to wait for one another

It answers GET (one range, If-Match, If-None-Match), HEAD and ListObjectsV2 as S3 does, with errors in S3's XML. It checks
no signature. `buckets` are folders, whose files are the objects. A `made` object is stored nowhere: its bytes are u32
numbers, and number i is i modulo 2^32. It takes precedence over a file of the same name.

The settings, which are given at the start or later, and stay until they are given again:

    latency      seconds before the head of an answer: {"constant": S}, or {"p50": S, "p99": S} for a lognormal
                 distribution; with "one_in": N and "exactly": S, one request in N takes S seconds; {} is none
    faults       {kind: rate}: the kinds are in FAULTS; a request has one fault at most, and a rate counts only where
                 the kind is possible: a fault of a range needs a range
    ending       only objects whose names end so have faults [""]
    seed         the random numbers of latency and faults begin anew with this [1]
    key_seconds  requests whose access key was born longer ago are refused, also those without one [null: all are served].
                 `access_key()` makes a key
    replaced     {"BUCKET/KEY": n}: this object was replaced n times; it then has other bytes and another ETag
    replace_at   {"BUCKET/KEY": S}: it is replaced once more S seconds from now
    log          whether requests are noted for `log()` [false]

The same by HTTP: POST /_settings with JSON, GET /_counts, GET /_log, POST /_reset (counts and log begin anew). The server
ends when its standard input ends, and so with the process that started it.
"""
import argparse
import array
import asyncio
import contextlib
import datetime
import email.utils
import http.client
import json
import math
import os
import random
import re
import resource
import socket
import struct
import subprocess
import sys
import time
import urllib.parse
import xml.sax.saxutils

# kind: (needs a body, needs a range). What the client sees is at `Answer.spoil`.
FAULTS = {
    "status_500": (False, False),
    "slow_down": (False, False),            # 503, and S3's word for it
    "too_many": (False, False),             # 429
    "reset": (False, False),                # before the head
    "reset_in_body": (True, False),
    "stall": (True, False),                 # head and half of the body, then nothing until the client closes
    "length_too_large": (True, False),      # Content-Length says more than is sent; then the connection is closed
    "length_too_small": (True, False),      # Content-Length says less than is sent
    "short_body": (True, False),            # half of the body, with the Content-Length of that half
    "wrong_byte": (True, False),            # in a body of the right length
    "whole_object": (True, True),           # 200 with all bytes
    "wrong_range": (True, True),            # Content-Range names the bytes behind those that were asked for, and has them
    "wrong_etag": (False, False),
    "replaced": (False, False),             # this request sees the object replaced: 412 with If-Match, else other bytes
}
STATUS_FAULTS = {
    "status_500": (500, "InternalError", "We encountered an internal error. Please try again."),
    "slow_down": (503, "SlowDown", "Please reduce your request rate."),
    "too_many": (429, "TooManyRequests", "Too many requests."),
}
REASONS = {200: "OK", 206: "Partial Content", 304: "Not Modified", 400: "Bad Request", 403: "Forbidden",
           404: "Not Found", 405: "Method Not Allowed", 412: "Precondition Failed", 416: "Range Not Satisfiable",
           429: "Too Many Requests", 500: "Internal Server Error", 503: "Service Unavailable"}
CHUNK = 1 << 20
KEY = "TKMP"
LISTED = 1000       # keys in an answer, as in S3
LOW = array.array("I", range(65536)).tobytes()
Z99 = 2.3263478740408408        # the 99th percentile of a normal distribution
NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"


def access_key(seconds_old=0):
    """An access key id that says when it was born."""
    return "%s%013d" % (KEY, (time.time() - seconds_old) * 1000)


def made_bytes(first, end):
    """The bytes [first, end) of a made object."""
    token, last = first // 4, (end + 3) // 4
    pieces = []
    while token < last:
        high, low = token >> 16, token & 65535
        n = min(65536 - low, last - token)
        piece = bytearray(LOW[4 * low:4 * (low + n)])
        piece[2::4] = bytes([high & 255]) * n
        piece[3::4] = bytes([high >> 8 & 255]) * n
        pieces.append(piece)
        token += n
    return b"".join(pieces)[first % 4:first % 4 + end - first]


def round_trips(log):
    """How many requests of a log had to wait for one another: the longest list in which each began after the one before
    had ended. It needs a latency that is long beside the time between requests."""
    n, at = 0, -math.inf
    for request in sorted(log, key=lambda request: request["ended"]):
        if request["begun"] >= at:
            n, at = n + 1, request["ended"]
    return n


class Refused(Exception):
    """An answer that is an error: status, code of S3, text, and more headers."""

    def __init__(self, status, code, text, headers=()):
        super().__init__(status, code, text)
        self.status, self.code, self.text, self.headers = status, code, text, headers


# ---- Objects ----

class Made:
    """An object whose bytes follow from their place."""

    changed = 1577836800

    def __init__(self, n_bytes, generation):
        self.n_bytes, self.generation = n_bytes, generation
        self.etag = '"made-%x-%d"' % (n_bytes, generation)

    def read(self, first, end):
        return replaced_bytes(made_bytes(first, end), self.generation)


class File:
    """A file of a folder. It is opened for each piece, so that a client that stalls holds no file open."""

    def __init__(self, path, generation):
        about = os.stat(path)
        self.path, self.generation = path, generation
        self.n_bytes, self.changed = about.st_size, about.st_mtime
        self.etag = '"%x-%x-%x-%d"' % (about.st_ino, about.st_mtime_ns, about.st_size, generation)

    def read(self, first, end):
        with open(self.path, "rb", buffering=0) as f:
            return replaced_bytes(os.pread(f.fileno(), end - first, first), self.generation)


def replaced_bytes(data, generation):
    """The bytes after the object was replaced so often: none is what it was."""
    flip = generation & 255
    return data.translate(bytes(byte ^ flip for byte in range(256))) if flip else bytes(data)


def parse_range(text, n_bytes):
    """(first, end) of a Range header, or None if it is to be ignored. Refused if no byte of it exists."""
    match = re.fullmatch(r"\s*bytes\s*=\s*(\d*)\s*-\s*(\d*)\s*", text or "")
    if not match or match.groups() == ("", ""):
        return None
    first, last = match.groups()
    if first == "":
        first, end = max(0, n_bytes - int(last)), n_bytes
    else:
        first, end = int(first), math.inf if last == "" else int(last) + 1
        if end <= first:
            return None
    if first >= n_bytes:
        raise Refused(416, "InvalidRange", "The requested range is not satisfiable",
                      [("Content-Range", "bytes */%d" % n_bytes)])
    return first, min(end, n_bytes)


# ---- The store: settings, counts, objects ----

class Store:
    """What is served, how it fails, and what was asked of it."""

    def __init__(self, buckets, made, settings):
        self.buckets, self.made = buckets, made
        self.latency, self.faults, self.ending, self.key_seconds = {}, {}, "", None
        self.generations, self.moments, self.logs = {}, {}, False
        self.random = random.Random(1)
        self.in_flight = self.connections = 0
        self.reset()
        self.set(settings)

    def set(self, settings):
        unknown = set(settings) - {"latency", "faults", "ending", "seed", "key_seconds", "replaced", "replace_at", "log"}
        unknown |= set(settings.get("faults", {})) - set(FAULTS)
        if unknown:
            raise Refused(400, "InvalidArgument", "unknown: " + ", ".join(sorted(unknown)))
        latency = settings.get("latency", self.latency)
        if not (latency == {} or "constant" in latency or {"p50", "p99"} <= set(latency)):
            raise Refused(400, "InvalidArgument", "a latency has constant, or p50 and p99")
        self.latency = latency
        self.faults = settings.get("faults", self.faults)
        self.ending = settings.get("ending", self.ending)
        self.key_seconds = settings.get("key_seconds", self.key_seconds)
        self.generations = settings.get("replaced", self.generations)
        self.moments.update((name, time.monotonic() + s) for name, s in settings.get("replace_at", {}).items())
        self.logs = settings.get("log", self.logs)
        if "seed" in settings:
            self.random = random.Random(settings["seed"])

    def reset(self):
        self.log = []
        self.body_bytes = 0
        self.requests, self.by_object, self.statuses, self.by_fault = {}, {}, {}, {}
        self.most_in_flight, self.most_connections = self.in_flight, self.connections
        self.cpu = time.process_time()

    def counts(self):
        """What was asked since the last reset. `body_bytes` are those that were sent, faults and hedges included."""
        return {"requests": self.requests, "objects": self.by_object, "statuses": self.statuses, "faults": self.by_fault,
                "body_bytes": self.body_bytes, "in_flight": self.in_flight, "most_in_flight": self.most_in_flight,
                "connections": self.connections, "most_connections": self.most_connections,
                "cpu_seconds": time.process_time() - self.cpu}

    def draw_latency(self):
        about, draw = self.latency, self.random.random
        if not about:
            return 0
        if "one_in" in about and draw() * about["one_in"] < 1:
            return about["exactly"]
        if "constant" in about:
            return about["constant"]
        return about["p50"] * math.exp(self.random.gauss(0, 1) * math.log(about["p99"] / about["p50"]) / Z99)

    def draw_fault(self, name, has_body, has_range):
        """The kind of fault that a request has, or None."""
        if not self.faults or not name.endswith(self.ending):
            return None
        at = self.random.random()
        for kind, rate in self.faults.items():
            needs_body, needs_range = FAULTS[kind]
            if (has_body or not needs_body) and (has_range or not needs_range):
                at -= rate
                if at < 0:
                    return kind
        return None

    def find(self, bucket, key, fault):
        """The object, or Refused."""
        name = bucket + "/" + key
        if name in self.moments and time.monotonic() >= self.moments[name]:
            del self.moments[name]
            self.generations = {**self.generations, name: self.generations.get(name, 0) + 1}
        generation = self.generations.get(name, 0) + (fault == "replaced")
        if name in self.made:
            return Made(self.made[name], generation)
        path = self.path(bucket, key)
        if not os.path.isfile(path):
            raise Refused(404, "NoSuchKey", "The specified key does not exist.")
        return File(path, generation)

    def path(self, bucket, key):
        if bucket not in self.buckets and not any(name.startswith(bucket + "/") for name in self.made):
            raise Refused(404, "NoSuchBucket", "The specified bucket does not exist")
        parts = key.split("/")
        if bucket not in self.buckets or ".." in parts or "\0" in key:
            raise Refused(404, "NoSuchKey", "The specified key does not exist.")
        return os.path.join(self.buckets[bucket], *parts)

    def keys(self, bucket):
        """All keys of a bucket, sorted by their bytes."""
        found = {name.split("/", 1)[1] for name in self.made if name.startswith(bucket + "/")}
        folder = self.buckets.get(bucket)
        if folder is None and not found:
            raise Refused(404, "NoSuchBucket", "The specified bucket does not exist")
        for at, _, files in os.walk(folder) if folder else ():
            found |= {os.path.relpath(os.path.join(at, file), folder) for file in files}
        return sorted(found, key=os.fsencode)

    def check_key(self, authorization):
        if self.key_seconds is None:
            return
        match = re.search(KEY + r"(\d{13})(?!\d)", authorization)
        if not match:
            raise Refused(403, "AccessDenied", "Access Denied")
        if time.time() - int(match[1]) / 1000 > self.key_seconds:
            raise Refused(403, "ExpiredToken", "The provided token has expired.")

    def list_objects(self, bucket, query):
        """The answer to ListObjectsV2."""
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = query.get("continuation-token") or query.get("start-after", "")
        most = min(LISTED, int(query.get("max-keys") or LISTED))
        quote = urllib.parse.quote if query.get("encoding-type") == "url" else xml.sax.saxutils.escape
        rows, folders, last, more = [], [], "", False
        for key in self.keys(bucket):
            if not key.startswith(prefix):
                continue
            end = key.find(delimiter, len(prefix)) if delimiter else -1
            shown = key if end < 0 else key[:end + len(delimiter)]
            # A folder that an answer before has shown is named by the token, and so are the keys in it.
            if os.fsencode(shown) <= os.fsencode(after) or shown == last:
                continue
            if len(rows) + len(folders) == most:
                more = True
                break
            last = shown
            (rows if end < 0 else folders).append(shown)
        objects = [(key, self.find(bucket, key, None)) for key in rows]
        values = [("Name", bucket), ("Prefix", quote(prefix)), ("KeyCount", len(rows) + len(folders)),
                  ("MaxKeys", most), ("IsTruncated", str(more).lower())]
        values += [("Delimiter", quote(delimiter))] if delimiter else []
        values += [("EncodingType", "url")] if query.get("encoding-type") == "url" else []
        values += [("NextContinuationToken", xml.sax.saxutils.escape(last))] if more else []
        body = "".join("<%s>%s</%s>" % (name, value, name) for name, value in values)
        body += "".join("<Contents><Key>%s</Key><LastModified>%s</LastModified><ETag>%s</ETag><Size>%d</Size>"
                        "<StorageClass>STANDARD</StorageClass></Contents>"
                        % (quote(key), iso_time(found.changed), xml.sax.saxutils.escape(found.etag), found.n_bytes)
                        for key, found in objects)
        body += "".join("<CommonPrefixes><Prefix>%s</Prefix></CommonPrefixes>" % quote(name) for name in folders)
        return xml_answer('<ListBucketResult xmlns="%s">%s</ListBucketResult>' % (NAMESPACE, body))


def iso_time(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def xml_answer(text, status=200, headers=()):
    body = ('<?xml version="1.0" encoding="UTF-8"?>\n' + text).encode()
    return Answer(status, [("Content-Type", "application/xml"), *headers], len(body), [body])


def refusal(refused, name):
    escape = xml.sax.saxutils.escape
    return xml_answer("<Error><Code>%s</Code><Message>%s</Message><Key>%s</Key><Resource>/%s</Resource></Error>" % (
        refused.code, escape(refused.text), escape(name.partition("/")[2]), escape(name)), refused.status, refused.headers)


# ---- Requests and answers ----

class Request:
    """The head of a request, and what the log keeps of it."""

    def __init__(self, head):
        first, *lines = head.decode("latin-1").split("\r\n")
        self.method, target, self.version = first.split(" ")
        self.headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            self.headers[name.lower()] = value.strip()
        path, _, query = target.partition("?")
        self.path = urllib.parse.unquote(path)
        self.query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        self.bucket, _, self.key = self.path[1:].partition("/")
        self.name = self.bucket + "/" + self.key
        self.begun = time.monotonic()
        self.fault = self.span = None

    def kind(self):
        if self.key:
            return self.method
        return "LIST" if self.method == "GET" and self.bucket else self.method + "_BUCKET"

    def keeps_alive(self):
        return self.version != "HTTP/1.0" and self.headers.get("connection", "").lower() != "close"


class Answer:
    """Status, headers and body; `chunks` are its pieces. The body is cut after `n_sent` bytes, if that is not None, and
    then the connection ends by `end`: "close", "reset" or "stall"."""

    def __init__(self, status, headers, n_bytes, chunks, says_bytes=None):
        self.status, self.headers, self.n_bytes, self.chunks = status, headers, n_bytes, chunks
        self.says_bytes = n_bytes if says_bytes is None else says_bytes
        self.n_sent = self.end = None

    def head(self, keeps_alive):
        lines = ["HTTP/1.1 %d %s" % (self.status, REASONS[self.status]), "Content-Length: %d" % self.says_bytes,
                 *("%s: %s" % header for header in self.headers)]
        lines += [] if keeps_alive else ["Connection: close"]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def read_chunks(found, first, end):
    while first < end:
        stop = min(end, first + CHUNK)
        yield found.read(first, stop)
        first = stop


def flip_byte(chunks, place, mask):
    """The chunks with another byte at this place."""
    for chunk in chunks:
        if 0 <= place < len(chunk):
            chunk = bytearray(chunk)
            chunk[place] ^= mask
        place -= len(chunk)
        yield chunk


def object_answer(store, request):
    """The answer to GET or HEAD of an object."""
    found = store.find(request.bucket, request.key, request.fault)
    wanted = request.headers.get("if-match")
    if wanted not in (None, "*") and found.etag not in [tag.strip() for tag in wanted.split(",")]:
        raise Refused(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
    headers = [("ETag", found.etag), ("Last-Modified", email.utils.formatdate(found.changed, usegmt=True)),
               ("Accept-Ranges", "bytes"), ("Content-Type", "application/octet-stream")]
    if found.etag in [tag.strip() for tag in request.headers.get("if-none-match", "").split(",")]:
        return Answer(304, headers, 0, [])
    span = parse_range(request.headers.get("range"), found.n_bytes)
    if request.fault == "wrong_etag":
        headers[0] = ("ETag", '"wrong-%s' % found.etag[1:])
    if request.fault == "whole_object":
        span = None
    if span is None:
        first, end, status = 0, found.n_bytes, 200
    else:
        first, end, status = *span, 206
        if request.fault == "wrong_range":
            n = end - first
            first = end if end + n <= found.n_bytes else max(0, first - n)
            end = first + n
        headers.append(("Content-Range", "bytes %d-%d/%d" % (first, end - 1, found.n_bytes)))
    request.span = [first, end]
    if request.method == "HEAD":
        return Answer(status, headers, 0, [], end - first)
    return spoil(Answer(status, headers, end - first, read_chunks(found, first, end)), request.fault, store.random)


def spoil(answer, fault, numbers):
    """The answer with a fault of its body."""
    n = answer.n_bytes
    if n == 0:
        return answer
    if fault in ("reset_in_body", "stall"):
        answer.n_sent, answer.end = n // 2, fault.partition("_")[0]
    elif fault == "length_too_large":
        answer.says_bytes, answer.end = n + 1 + numbers.randrange(n), "close"
    elif fault == "length_too_small":
        answer.says_bytes = numbers.randrange(n)
    elif fault == "short_body":
        answer.n_sent = answer.says_bytes = n // 2
    elif fault == "wrong_byte":
        answer.chunks = flip_byte(answer.chunks, numbers.randrange(n), numbers.randrange(1, 256))
    return answer


def answer_request(store, request):
    """The answer to a request of a client of the store."""
    try:
        store.check_key(request.headers.get("authorization", "") + request.query.get("X-Amz-Credential", ""))
        if request.fault in STATUS_FAULTS:
            raise Refused(*STATUS_FAULTS[request.fault])
        if request.method not in ("GET", "HEAD"):
            raise Refused(405, "MethodNotAllowed", "The specified method is not allowed against this resource.")
        if request.key:
            return object_answer(store, request)
        if not request.bucket:
            names = sorted({*store.buckets, *(name.partition("/")[0] for name in store.made)})
            return xml_answer('<ListAllMyBucketsResult xmlns="%s"><Buckets>%s</Buckets></ListAllMyBucketsResult>' % (
                NAMESPACE, "".join("<Bucket><Name>%s</Name><CreationDate>%s</CreationDate></Bucket>"
                                   % (name, iso_time(0)) for name in names)))
        if "location" in request.query:
            return xml_answer('<LocationConstraint xmlns="%s"/>' % NAMESPACE)
        return store.list_objects(request.bucket, request.query)
    except Refused as refused:
        return refusal(refused, request.name)


def control_answer(store, request, body):
    """The answer to a request of the test."""
    try:
        if request.path == "/_settings":
            store.set(json.loads(body))
        elif request.path == "/_reset":
            store.reset()
        elif request.path not in ("/_counts", "/_log"):
            raise Refused(404, "NoSuchKey", "The specified key does not exist.")
        value = store.log if request.path == "/_log" else store.counts()
    except Refused as refused:
        return refusal(refused, request.name)
    data = json.dumps(value).encode()
    return Answer(200, [("Content-Type", "application/json")], len(data), [data])


class Connection(asyncio.Protocol):
    """One connection: its requests are answered one after the other."""

    def __init__(self, store, loop):
        self.store, self.loop = store, loop
        self.data, self.request, self.timer, self.paused = bytearray(), None, None, False

    def connection_made(self, transport):
        self.transport = transport
        transport.set_write_buffer_limits(high=2 * CHUNK)
        self.store.connections += 1
        self.store.most_connections = max(self.store.most_connections, self.store.connections)

    def connection_lost(self, error):
        self.store.connections -= 1
        self.data.clear()
        if self.timer:
            self.timer.cancel()
        if self.request:
            self.finish("closed")

    def data_received(self, data):
        self.data += data
        if self.request is None:
            self.begin()

    def begin(self):
        """Begins to answer the next request, if all of it is there."""
        end = self.data.find(b"\r\n\r\n")
        if end < 0:
            return
        try:
            request = Request(bytes(self.data[:end]))
            n_body = int(request.headers.get("content-length", 0))
        except ValueError:
            self.transport.abort()
            return
        if len(self.data) < end + 4 + n_body:
            return
        body = bytes(self.data[end + 4:end + 4 + n_body])
        del self.data[:end + 4 + n_body]
        self.is_control = request.path.startswith("/_")
        self.request = request
        if self.is_control:
            self.send(control_answer(self.store, request, body))
            return
        store = self.store
        store.in_flight += 1
        store.most_in_flight = max(store.most_in_flight, store.in_flight)
        request.fault = store.draw_fault(request.name, request.method == "GET" and bool(request.key),
                                         "range" in request.headers)
        delay = store.draw_latency()
        if delay > 0:
            self.timer = self.loop.call_later(delay, self.answer)
        else:
            self.answer()

    def answer(self):
        self.timer = None
        if self.request.fault == "reset":
            self.request.status = 0
            self.reset()
        else:
            self.send(answer_request(self.store, self.request))

    def send(self, answer):
        self.reply, self.request.status = answer, answer.status
        self.left = answer.n_bytes if answer.n_sent is None else answer.n_sent
        if self.request.method == "HEAD":
            self.left = 0
        self.chunks = iter(answer.chunks)
        self.head = answer.head(self.request.keeps_alive())
        self.send_more()

    def send_more(self):
        """Writes head and chunks until the transport has enough."""
        # A client that has gone is found while writing, and `connection_lost` comes later.
        while not self.paused and not self.transport.is_closing():
            chunk = next(self.chunks)[:self.left] if self.left else b""
            self.left -= len(chunk)
            if not self.is_control:
                self.count_bytes(len(chunk))
            self.transport.write(self.head + chunk)
            self.head = b""
            if self.left == 0:
                self.end()
                return

    def count_bytes(self, n):
        store, request = self.store, self.request
        store.body_bytes += n
        if request.key:
            store.by_object.setdefault(request.name, {"requests": {}, "body_bytes": 0})["body_bytes"] += n

    def end(self):
        if self.reply.end == "stall":
            return
        if self.reply.end == "reset":
            self.reset()
            return
        closes = self.reply.end == "close" or not self.request.keeps_alive()
        self.finish()
        if closes:
            self.transport.close()
        elif self.data:
            self.loop.call_soon(self.begin_next)

    def begin_next(self):
        if self.request is None and not self.transport.is_closing():
            self.begin()

    def finish(self, how="ended"):
        """Counts the request, which has ended."""
        request, self.request = self.request, None
        if self.is_control:
            return
        store, kind = self.store, request.kind()
        store.in_flight -= 1
        store.requests[kind] = store.requests.get(kind, 0) + 1
        if request.key:
            asked = store.by_object.setdefault(request.name, {"requests": {}, "body_bytes": 0})["requests"]
            asked[kind] = asked.get(kind, 0) + 1
        status = str(getattr(request, "status", "none"))
        store.statuses[status] = store.statuses.get(status, 0) + 1
        if request.fault:
            store.by_fault[request.fault] = store.by_fault.get(request.fault, 0) + 1
        if store.logs:
            store.log.append({"begun": request.begun, "ended": time.monotonic(), "kind": kind, "object": request.name,
                              "range": request.span, "status": status, "fault": request.fault, "how": how})

    def reset(self):
        """Ends the connection as a machine does that has forgotten it."""
        with contextlib.suppress(OSError):
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.finish()
        self.transport.abort()

    def pause_writing(self):
        self.paused = True

    def resume_writing(self):
        self.paused = False
        # Later: a transport that is closed in this call closes itself twice.
        self.loop.call_soon(self.go_on)

    def go_on(self):
        if self.request and self.timer is None and self.left and not self.paused:
            self.send_more()


# ---- The process ----

async def serve(store, port):
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(store, loop), "127.0.0.1", port, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    ended = asyncio.Event()

    def read_stdin():
        if not os.read(0, 4096):
            ended.set()

    with contextlib.suppress(PermissionError):      # a regular file as standard input never ends the server
        loop.add_reader(0, read_stdin)
    await ended.wait()


def pairs(texts):
    return dict(text.split("=", 1) for text in texts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0, help="[a free one, which is printed]")
    parser.add_argument("--bucket", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--made", action="append", default=[], metavar="BUCKET/KEY=BYTES")
    parser.add_argument("--settings", default="{}", metavar="JSON")
    parser.add_argument("--processor", type=int, help="run on this one only")
    given = parser.parse_args()
    if given.processor is not None:
        os.sched_setaffinity(0, [given.processor])
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    made = {name: int(n) for name, n in pairs(given.made).items()}
    store = Store(pairs(given.bucket), made, json.loads(given.settings))
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(store, given.port))


class ByteServer:
    """The server in a process of its own. `processor`: it runs on this one only."""

    def __init__(self, buckets=None, made=None, processor=None, port=0, **settings):
        words = [sys.executable, "-I", __file__, "--port", str(port), "--settings", json.dumps(settings)]
        for option, values in (("--bucket", buckets), ("--made", made)):
            for name, value in (values or {}).items():
                words += [option, "%s=%s" % (name, value)]
        words += [] if processor is None else ["--processor", str(processor)]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise OSError("the server did not start; its exit status is %d" % self.process.wait())
        self.port = int(line)
        self.endpoint = "http://127.0.0.1:%d" % self.port

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()

    def call(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body)
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise ValueError(data.decode())
        return json.loads(data)

    def set(self, **settings):
        """Changes settings from now on."""
        self.call("POST", "/_settings", json.dumps(settings))

    def counts(self):
        return self.call("GET", "/_counts")

    def log(self):
        return self.call("GET", "/_log")

    def reset(self):
        """Lets counts and log begin anew."""
        self.call("POST", "/_reset")


if __name__ == "__main__":
    main()
