#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_byte_server.py - the store of byte_server.py answers as S3 does, each fault is what a client sees as that fault, and
what it counts is what was asked. Needs no package."""
import contextlib
import http.client
import os
import re
import resource
import selectors
import socket
import struct
import subprocess
import sys
import time
import xml.etree.ElementTree

from byte_server import FAULTS, ByteServer, Refused, Store, access_key, made_bytes, round_trips
from ref_protocol import expect, expect_equal, run_in_folders

HUGE = 10**13
SPACE = "{http://s3.amazonaws.com/doc/2006-03-01/}"
TEXT = bytes(range(256)) * 40
RANGE = "bytes=1000-1999"


class Client:
    """One connection that is kept, and made again after it was closed."""

    def __init__(self, server):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)

    def ask(self, path, method="GET", **headers):
        """(status, headers with small letters, body)"""
        self.connection.request(method, path, headers={k.replace("_", "-"): v for k, v in headers.items()})
        answer = self.connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()


@contextlib.contextmanager
def served(folder, **settings):
    """A server with the bucket b of a file, its client."""
    (folder / "d").mkdir()
    (folder / "d" / "file").write_bytes(TEXT)
    with ByteServer({"b": folder}, {"b/made": HUGE, "m/small": 10}, **settings) as server:
        client = Client(server)
        yield server, client
        client.connection.close()


def tokens(first, end):
    return struct.pack("<%dI" % (end - first), *(i & 0xFFFFFFFF for i in range(first, end)))


def error_code(body):
    return xml.etree.ElementTree.fromstring(body).findtext("Code")


def made_bytes_follow_from_their_place(folder):
    for first in (0, 65530, 2**32 - 3, HUGE // 4 - 12):
        expect_equal(made_bytes(4 * first, 4 * first + 48), tokens(first, first + 12), "tokens from %d" % first)
    whole = tokens(65500, 65600 + 65536)
    for skip, n in ((1, 5), (2, 2), (3, 70000), (0, 0), (7, 1)):
        expect_equal(made_bytes(4 * 65500 + skip, 4 * 65500 + skip + n), whole[skip:skip + n], "%d bytes" % n)


def ranges_and_conditions_are_those_of_s3(folder):
    with served(folder) as (_, client):
        for text, span in (("bytes=0-0", (0, 1)), (RANGE, (1000, 2000)), ("bytes=10239-99999", (10239, 10240)),
                           ("bytes=10000-", (10000, 10240)), ("bytes=-40", (10200, 10240))):
            status, headers, body = client.ask("/b/d/file", Range=text)
            expect_equal((status, body), (206, TEXT[span[0]:span[1]]), text)
            expect_equal(headers["content-range"], "bytes %d-%d/10240" % (span[0], span[1] - 1), text)
            expect("last-modified" in headers, "Last-Modified")
        tag = headers["etag"]
        expect_equal(client.ask("/b/d/file")[::2], (200, TEXT), "without a range")
        for text in ("bytes=5-4", "bytes=0-1,4-5", "lines=0-1"):
            expect_equal(client.ask("/b/d/file", Range=text)[::2], (200, TEXT), text)
        status, headers, body = client.ask("/b/d/file", Range="bytes=10240-")
        expect_equal((status, headers["content-range"], error_code(body)), (416, "bytes */10240", "InvalidRange"), "416")
        expect_equal(client.ask("/b/d/file", If_Match=tag, Range=RANGE)[0], 206, "If-Match")
        status, _, body = client.ask("/b/d/file", If_Match='"x"', Range=RANGE)
        expect_equal((status, error_code(body)), (412, "PreconditionFailed"), "another ETag")
        expect_equal(client.ask("/b/d/file", If_None_Match=tag)[::2], (304, b""), "If-None-Match")
        status, headers, body = client.ask("/b/made", "HEAD")
        expect_equal((status, int(headers["content-length"]), body), (200, HUGE, b""), "HEAD")
        last = client.ask("/b/made", Range="bytes=-8")
        expect_equal(last[2], tokens(HUGE // 4 - 2, HUGE // 4), "the end of a made object")
        for path, code in (("/b/none", "NoSuchKey"), ("/c/none", "NoSuchBucket"), ("/b/../b/d/file", "NoSuchKey"),
                           ("/m/file", "NoSuchKey"), ("/b/d", "NoSuchKey")):
            status, _, body = client.ask(path)
            expect_equal((status, error_code(body)), (404, code), path)
            expect_equal(client.ask(path, "HEAD")[::2], (404, b""), "HEAD of " + path)
        expect_equal(client.ask("/b/d/file", "DELETE")[0], 405, "DELETE")


def objects_are_listed_in_pieces(folder):
    wanted = ["a b&c", "made", "x/1", "x/2", "y/1", "z"]
    for key in wanted:
        if key != "made":
            (folder / key).parent.mkdir(exist_ok=True)
            (folder / key).write_bytes(key.encode())
    with served(folder) as (_, client):
        for most, delimiter in ((1000, ""), (1, ""), (2, ""), (2, "/"), (1, "/")):
            found, folders, token = [], [], ""
            while True:
                _, _, body = client.ask("/b?list-type=2&encoding-type=url&max-keys=%d&delimiter=%s%s" % (
                    most, delimiter.replace("/", "%2F"), token))
                root = xml.etree.ElementTree.fromstring(body)
                found += [element.text for element in root.iter(SPACE + "Key")]
                folders += [element.findtext(SPACE + "Prefix") for element in root.iter(SPACE + "CommonPrefixes")]
                if root.findtext(SPACE + "IsTruncated") == "false":
                    break
                token = "&continuation-token=" + root.findtext(SPACE + "NextContinuationToken").replace(" ", "%20").replace("&", "%26")
            keys = [key.replace(" ", "%20").replace("&", "%26") for key in sorted([*wanted, "d/file"])]
            expect_equal(found, [key for key in keys if not delimiter or "/" not in key], "keys")
            expect_equal(folders, ["d/", "x/", "y/"] if delimiter else [], "folders")
        body = client.ask("/b/?list-type=2&prefix=x/")[2]
        expect_equal(re.findall(rb"<Key>(.*?)</Key>", body), [b"x/1", b"x/2"], "a prefix")
        expect(b"<Key>a b&amp;c</Key>" in client.ask("/b?list-type=2")[2], "a key in XML")
        expect_equal(re.findall(rb"<Name>(\w)</Name>", client.ask("/")[2]), [b"b", b"m"], "buckets")
        expect_equal(client.ask("/b", "HEAD")[0], 200, "HEAD of a bucket")
        expect_equal(client.ask("/none?list-type=2")[0], 404, "no bucket")


def raw_answer(server, path="/b/d/file", wait=0.1, span=RANGE):
    """(head, body, how it ended: "open", "closed", "reset") of a request for a range."""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(("GET %s HTTP/1.1\r\nHost: h\r\nRange: %s\r\n\r\n" % (path, span)).encode())
        connection.settimeout(wait)
        data = b""
        try:
            while True:
                piece = connection.recv(1 << 16)
                if not piece:
                    how = "closed"
                    break
                data += piece
        except socket.timeout:
            how = "open"
        except ConnectionResetError:
            how = "reset"
    head, _, body = data.partition(b"\r\n\r\n")
    return head.decode(), body, how


def header(head, name):
    match = re.search(r"^%s: (.*?)\r?$" % name, head, re.MULTILINE)
    return match and match[1]


def each_fault_is_seen_as_what_it_is(folder):
    right = TEXT[1000:2000]
    with served(folder) as (server, client):
        head, body, how = raw_answer(server)
        tag = header(head, "ETag")
        expect_equal((body, how), (right, "open"), "without a fault")
        seen = {}
        for kind in FAULTS:
            server.set(faults={kind: 1})
            seen[kind] = raw_answer(server)
        server.set(faults={})
        for kind, status, code in (("status_500", 500, b"InternalError"), ("slow_down", 503, b"SlowDown"),
                                   ("too_many", 429, b"TooManyRequests")):
            head, body, _ = seen.pop(kind)
            expect(head.startswith("HTTP/1.1 %d " % status) and b"<Code>%s<" % code in body, kind)
        expect_equal(seen.pop("reset"), ("", b"", "reset"), "reset")
        for kind, n, end in (("reset_in_body", 500, "reset"), ("stall", 500, "open"), ("length_too_large", 1000, "closed"),
                             ("length_too_small", 1000, "open"), ("short_body", 500, "open")):
            head, body, how = seen.pop(kind)
            expect_equal((head.split()[1], body, how), ("206", right[:n], end), kind)
            says = int(header(head, "Content-Length"))
            expect({"length_too_large": says > 1000, "length_too_small": says < 1000, "short_body": says == 500}
                   .get(kind, says == 1000), "Content-Length of %s: %d" % (kind, says))
        head, body, _ = seen.pop("wrong_byte")
        expect_equal((len(body), sum(a != b for a, b in zip(body, right))), (1000, 1), "wrong bytes")
        head, body, _ = seen.pop("whole_object")
        expect_equal((head.split()[1], header(head, "Content-Range"), body), ("200", None, TEXT), "whole object")
        head, body, _ = seen.pop("wrong_range")
        expect_equal((header(head, "Content-Range"), body), ("bytes 2000-2999/10240", TEXT[2000:3000]), "wrong range")
        head, body, _ = seen.pop("wrong_etag")
        expect(body == right and header(head, "ETag") != tag, "wrong ETag")
        head, body, _ = seen.pop("replaced")
        expect(len(body) == 1000 and all(a != b for a, b in zip(body, right)) and header(head, "ETag") != tag, "replaced")
        expect_equal(seen, {}, "faults that were not looked at")
        expect_equal(server.counts()["faults"], dict.fromkeys(FAULTS, 1), "counted faults")
        server.set(faults={"replaced": 1})
        expect_equal(client.ask("/b/d/file", If_Match=tag)[0], 412, "If-Match of a replaced object")


def faults_have_rates_a_seed_and_an_ending(folder):
    rates = {"status_500": 0.2, "wrong_range": 0.2, "wrong_byte": 0.1}
    with served(folder) as (server, client):
        runs = []
        for _ in range(2):
            server.set(faults=rates, seed=5)
            server.reset()
            statuses = [client.ask("/b/d/file", Range=RANGE)[0] for _ in range(400)]
            runs.append((statuses, server.counts()["faults"]))
        expect_equal(runs[0], runs[1], "the same seed")
        expect(all(0.7 < runs[0][1][kind] / (400 * rate) < 1.4 for kind, rate in rates.items()), "rates: %s" % runs[0][1])
        server.set(faults={"status_500": 1}, ending=".bin")
        expect_equal(client.ask("/b/d/file")[0], 200, "another ending")
        server.set(faults={"wrong_range": 1}, ending="")
        expect_equal(client.ask("/b/d/file")[0], 200, "a fault of ranges without a range")
        for wrong in ({"faults": {"no_such": 1}}, {"speed": 1}, {"latency": {"p50": 1}}):
            try:
                server.set(**wrong)
            except ValueError:
                continue
            raise AssertionError("%s was taken" % wrong)


def old_keys_are_refused(folder):
    with served(folder, key_seconds=60) as (server, client):
        for key, status, code in ((access_key(), 200, None), (access_key(30), 200, None), (access_key(61), 403, "ExpiredToken"),
                                  ("AKIAIOSFODNN7EXAMPLE", 403, "AccessDenied")):
            said = client.ask("/b/d/file", Authorization="AWS4-HMAC-SHA256 Credential=%s/20260101/r/s3/aws4_request" % key)
            expect_equal((said[0], code and error_code(said[2])), (status, code), key)
        expect_equal(client.ask("/b/d/file")[0], 403, "without a key")
        expect_equal(client.ask("/b/d/file?X-Amz-Credential=%s%%2F20260101" % access_key())[0], 200, "a signed address")
        server.set(key_seconds=None)
        expect_equal(client.ask("/b/d/file")[0], 200, "no key asked for")


def objects_are_replaced_at_a_time(folder):
    with served(folder) as (server, client):
        tags, bodies = [], []
        for n in (0, 1, 2):
            server.set(replaced={"b/d/file": n})
            _, headers, body = client.ask("/b/d/file")
            tags.append(headers["etag"])
            bodies.append(body)
        expect(len(set(tags)) == len(set(bodies)) == 3, "the same object after it was replaced")
        server.set(replaced={}, replace_at={"b/d/file": 2})
        expect_equal(client.ask("/b/d/file")[2], TEXT, "before")
        time.sleep(2.05)
        expect_equal(client.ask("/b/d/file", If_Match=tags[0])[0], 412, "after")
        expect_equal(client.ask("/b/d/file")[2], bodies[1], "the new object")


def latencies_have_their_distribution(folder):
    for latency, seed in (({"p50": 0.12, "p99": 0.3}, 1), ({"p50": 0.12, "p99": 0.3, "one_in": 50, "exactly": 5}, 2)):
        store = Store({}, {}, {"latency": latency, "seed": seed})
        drawn = sorted(store.draw_latency() for _ in range(20000))
        slow = [s for s in drawn if s == 5]
        drawn = [s for s in drawn if s != 5]
        expect(abs(len(slow) - (400 if seed == 2 else 0)) < 80, "%d of exactly 5 s" % len(slow))
        for part, wanted in ((0.5, 0.12), (0.99, 0.3)):
            got = drawn[int(part * len(drawn))]
            expect(abs(got / wanted - 1) < 0.06, "at %g: %g" % (part, got))


def a_thousand_requests_wait_side_by_side(folder):
    n, first = 1000, 3 * 65536 - 100
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    with served(folder, latency={"constant": 2}) as (server, _), contextlib.ExitStack() as stack:
        waiting = selectors.DefaultSelector()
        begun = time.monotonic()
        for i in range(n):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            connection.sendall(b"GET /b/made HTTP/1.1\r\nHost: h\r\nRange: bytes=%d-%d\r\n\r\n" % (4 * first, 4 * first + 799))
            waiting.register(connection, selectors.EVENT_READ, [b""])
        open_ones = n
        while open_ones > 0:
            for key, _ in waiting.select(20):
                key.data[0] += key.fileobj.recv(1 << 16)
                head, _, body = key.data[0].partition(b"\r\n\r\n")
                if len(body) == 800:
                    expect_equal(body, tokens(first, first + 200), "a body")
                    waiting.unregister(key.fileobj)
                    open_ones -= 1
        taken = time.monotonic() - begun
        counts = server.counts()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    expect(counts["most_in_flight"] > n // 2, "%d in flight" % counts["most_in_flight"])
    expect_equal((counts["requests"]["GET"], counts["body_bytes"], counts["in_flight"]), (n, 800 * n, 0), "counts")
    return "%.1f s for %d requests of 2 s" % (taken, n)


def what_is_asked_is_counted(folder):
    with served(folder, log=True, latency={"constant": 0.5}) as (server, client):
        client.ask("/b/d/file", "HEAD")
        sockets = [Client(server) for _ in range(3)]
        for other in sockets:
            other.connection.request("GET", "/b/d/file", headers={"Range": RANGE})
        for other in sockets:
            other.connection.getresponse().read()
            other.connection.close()
        client.ask("/b/made", Range="bytes=0-7")
        counts, log = server.counts(), server.log()
        expect_equal(counts["requests"], {"HEAD": 1, "GET": 4}, "requests")
        expect_equal(counts["objects"], {"b/d/file": {"requests": {"HEAD": 1, "GET": 3}, "body_bytes": 3000},
                                         "b/made": {"requests": {"GET": 1}, "body_bytes": 8}}, "by object")
        expect_equal((counts["statuses"], counts["most_in_flight"]), ({"200": 1, "206": 4}, 3), "statuses, in flight")
        expect_equal(round_trips(log), 3, "round trips")
        expect_equal([request["range"] for request in log], [[0, 10240], *[[1000, 2000]] * 3, [0, 8]], "ranges")
        expect(all(0.4 < request["ended"] - request["begun"] < 20 for request in log), "times")
        server.reset()
        expect_equal((server.counts()["requests"], server.log()), ({}, []), "after a reset")


def requests_may_follow_each_other_at_once(folder):
    with served(folder, latency={"constant": 0.05}) as (server, _):
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
            one = b"GET /b/d/file HTTP/1.1\r\nHost: h\r\nRange: bytes=%d-%d\r\n\r\n"
            for piece in (one % (0, 9) + one % (10, 19) + one[:20], one[20:] % (20, 29)):
                connection.sendall(piece)
                time.sleep(0.02)
            data = b""
            while data.count(b"\r\n\r\n") < 3 or not data.endswith(TEXT[20:30]):
                data += connection.recv(1 << 16)
        places = [data.index(TEXT[i:i + 10]) for i in (0, 10, 20)]
        expect_equal(places, sorted(places), "the order of answers")


def large_bodies_wait_for_their_reader(folder):
    with served(folder) as (server, client):
        first, n = 65536 * 7, 1 << 20
        body = client.ask("/b/made", Range="bytes=%d-%d" % (4 * first, 4 * (first + n) - 1))[2]
        expect_equal(body, tokens(first, first + n), "4 MiB")
        server.reset()
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(b"GET /b/made HTTP/1.1\r\nHost: h\r\n\r\n")
            time.sleep(0.3)
            counts = server.counts()
            expect(0 < counts["body_bytes"] < 64 << 20, "%d bytes were sent to who reads none" % counts["body_bytes"])
        server.set(faults={"length_too_large": 1})
        large = raw_answer(server, "/b/made", span="bytes=0-%d" % (4 * n - 1))
        expect_equal((len(large[1]), large[2]), (4 * n, "closed"), "a connection that is closed after a large body")
        server.set(faults={})
        for n in range(20):     # clients that close while they are sent the whole
            with socket.create_connection(("127.0.0.1", server.port)) as connection:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.sendall(b"GET /b/made HTTP/1.1\r\nHost: h\r\n\r\n")
                if n % 2:
                    connection.recv(1000)
        for _ in range(100):
            counts = server.counts()
            if counts["in_flight"] == 0:
                break
            time.sleep(0.05)
        expect_equal(counts["in_flight"], 0, "in flight after the reader has gone")


def it_ends_with_its_parent(folder):
    script = ("import os, sys; sys.path.insert(0, sys.argv[1]); from byte_server import ByteServer; "
              "print(ByteServer().process.pid, flush=True); os._exit(0)")
    done = subprocess.run([sys.executable, "-c", script, os.path.dirname(os.path.abspath(__file__))], stdout=subprocess.PIPE,
                          check=True)
    for _ in range(200):
        if not os.path.exists("/proc/%d" % int(done.stdout)) or open("/proc/%d/stat" % int(done.stdout)).read().split()[2] == "Z":
            return
        time.sleep(0.05)
    raise AssertionError("the server is still there")


def wrong_settings_are_refused(folder):
    try:
        Store({}, {}, {"faults": {"none": 1}})
    except Refused:
        return
    raise AssertionError("an unknown fault was taken")


if __name__ == "__main__":
    sys.exit(run_in_folders("byte_server_"))
