#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranges by obstore, from a server on the loopback that fails in many ways: the bytes are right or the error names object and
range, no message has credentials, a process that has used obstore may not fork and one that has not may, and Python ends with
requests in flight."""

import base64
import functools
import http.server
import os
import random
import subprocess
import sys
import textwrap
import threading
import time

from package import ROOT  # before NumPy
from ref_protocol import Skip, run_in_folders
from store_reads import open_source, read

sys.path.append(str(ROOT / "tests/stores"))
SECRET, TOKEN, PASSWORD, SIGNATURE = "wJalr/XUtnFEMI+secret", "FwoGZXIv/session+token==", "pass-word-7", "5d672d79signature"
DATA = random.Random(2).getrandbits(8 << 20).to_bytes(1 << 20, "little")


def skip_without_obstore():
    try:
        import obstore  # noqa: F401
        from byte_server import FAULTS  # noqa: F401
    except ImportError as error:
        raise Skip(f"there is no Python package {error.name}") from None


def needs_obstore(test):
    @functools.wraps(test)
    def run(folder):
        skip_without_obstore()
        return test(folder)
    return run


def serve(folder, **settings):
    """A server of a bucket with the object x.bin, and the environment for it."""
    from byte_server import ByteServer, access_key

    (folder / "bucket").mkdir(exist_ok=True)
    (folder / "bucket" / "x.bin").write_bytes(DATA)
    server = ByteServer({"bucket": folder / "bucket"}, **settings)
    os.environ.update(AWS_ENDPOINT_URL=server.endpoint, AWS_ALLOW_HTTP="true", AWS_REGION="us-east-1",
                      AWS_VIRTUAL_HOSTED_STYLE_REQUEST="false", AWS_ACCESS_KEY_ID=access_key(), AWS_SECRET_ACCESS_KEY=SECRET,
                      AWS_SESSION_TOKEN=TOKEN)
    return server


def has_secret(text):
    return any(secret in text for secret in (SECRET, TOKEN, PASSWORD, SIGNATURE, base64.b64encode(PASSWORD.encode()).decode()[:8]))


@needs_obstore
def ranges_by_url_are_right(folder):
    with serve(folder) as server:
        source = open_source("s3://bucket/x", None)
        found = read(source, ("s3://bucket/x.bin", 1000, 500), ("s3://bucket/x.bin", 900000, 10), ("s3://bucket/x.bin", 0, 0))
        assert found.status == 0 and [data for data, *_ in found.parts] == [DATA[1000:1500], DATA[900000:900010], b""]
        version = found.parts[0][1]
        assert version and {one[1:] for one in found.parts} == {(version, len(DATA))}
        assert read(source, ("s3://bucket/x.bin", len(DATA) - 5, 100), version=version).parts[0][0] == DATA[-5:]
        counts = server.counts()
        assert counts["requests"] == {"GET": 3, "HEAD": 1} and counts["body_bytes"] == source.counters["bytes"] == 515, counts
        found = read(source, ("s3://bucket/y.bin", 0, 100))
        assert found.status == -3 and found.text == "s3://bucket/y.bin: bytes 0 to 100: the object does not exist"
        server.set(replaced={"bucket/x.bin": 1})
        assert read(source, ("s3://bucket/x.bin", 0, 100), version=version).status == -7
        http_url = server.endpoint + "/bucket/x"
        assert read(open_source(http_url, None), (http_url + ".bin", 7, 10)).status == 0


@needs_obstore
def stores_of_the_user_are_used(folder):
    from obstore.store import LocalStore, MemoryStore, S3Store

    with serve(folder) as server:
        memory = MemoryStore()
        memory.put("x.bin", DATA)
        s3 = S3Store("bucket", retry_config={"max_retries": 0}, client_options={"allow_http": True})
        for given in (LocalStore(folder / "bucket"), memory, s3):
            found = read(open_source("s3://bucket/x", given), ("s3://bucket/x.bin", 1000, 500), ("s3://bucket/x.bin", 0, 0))
            assert found.status == 0 and found.parts[0][0] == DATA[1000:1500] and found.parts[1][2] == len(DATA)
        assert server.counts()["requests"]


@needs_obstore
def each_fault_gives_right_bytes_or_an_error(folder):
    from byte_server import FAULTS

    numbers = random.Random(5)
    with serve(folder) as server:
        for kind in sorted(set(FAULTS) - {"wrong_byte"}):
            source = open_source("s3://bucket/x", None, 3)
            server.reset()
            server.set(faults={kind: 0.3 if kind != "stall" else 0.05}, seed=numbers.getrandbits(20))
            n_right = n_reads = 0
            while n_reads < 30 or server.counts()["faults"].get(kind, 0) < 2 and n_reads < 300:
                n_reads += 1
                first = numbers.randrange(len(DATA) - 3000)
                begun = time.monotonic()
                found = read(source, ("s3://bucket/x.bin", first, 3000))
                assert time.monotonic() - begun < 5
                assert not has_secret(found.text)
                if found.status:
                    assert f"x.bin: bytes {first} to {first + 3000}: " in found.text, found.text
                else:
                    # Without a version a replaced object is not known, and its bytes are all other ones.
                    assert found.parts[0][0] == DATA[first:first + 3000] or kind == "replaced", kind
                n_right += found.status == 0
            assert n_right > 0.8 * n_reads and server.counts()["faults"].get(kind, 0) > 1, (kind, n_right, n_reads, server.counts())
            server.set(faults={})


@needs_obstore
def a_request_that_hangs_is_sent_again(folder):
    with serve(folder) as server:
        source = open_source("s3://bucket/x", None, 6)
        read(source, ("s3://bucket/x.bin", 0, 100))
        server.set(faults={"stall": 1})
        threading.Timer(2.5, lambda: server.set(faults={})).start()
        begun = time.monotonic()
        assert read(source, ("s3://bucket/x.bin", 0, 100)).parts[0][0] == DATA[:100]
        assert time.monotonic() - begun < 5, source.counters


@needs_obstore
def new_keys_are_read_from_the_environment(folder):
    from byte_server import access_key

    with serve(folder) as server:
        source = open_source("s3://bucket/x", None, 10)
        assert read(source, ("s3://bucket/x.bin", 0, 100)).status == 0
        os.environ["AWS_ACCESS_KEY_ID"] = access_key(100)  # too old
        server.set(key_seconds=0.5)
        time.sleep(0.6)
        threading.Timer(1, lambda: (server.set(key_seconds=60), os.environ.update(AWS_ACCESS_KEY_ID=access_key()))).start()
        assert read(source, ("s3://bucket/x.bin", 0, 100)).parts[0][0] == DATA[:100]
        assert server.counts()["statuses"]["403"] > 1
        # Keys that never were right are an error at once, which does not repeat them.
        server.set(key_seconds=0.01)
        begun, found = time.monotonic(), read(open_source("s3://bucket/x", None, 9), ("s3://bucket/x.bin", 0, 100))
        assert found.status == -3 and time.monotonic() - begun < 2 and "ExpiredToken" in found.text and not has_secret(found.text), found.text


class Asked(http.server.BaseHTTPRequestHandler):
    """Notes what it was asked, and refuses."""

    asked = []

    def do_GET(self):
        self.asked.append((self.path, self.headers.get("authorization")))
        body = f"wrong credentials {self.path} {self.headers}".encode()
        self.send_response(500)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@needs_obstore
def credentials_of_a_url_are_sent_and_never_said(folder):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Asked)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    host = f"127.0.0.1:{server.server_port}"
    source = open_source(f"http://user:{PASSWORD}@{host}/a%20b/x?X-Amz-Signature={SIGNATURE}&se=1", None, 0.5)
    assert source.name == f"http://{host}/a%20b/x"
    found = read(source, (source.name + ".bin", 0, 100))
    path, sent = Asked.asked[0]
    assert path == f"/a%20b/x.bin?X-Amz-Signature={SIGNATURE}&se=1", path
    assert base64.b64decode(sent.split()[1]) == f"user:{PASSWORD}".encode()
    assert found.status == -3 and "500" in found.text and not has_secret(found.text), found.text
    server.shutdown()


# ---- Processes ----


PREPARE = """
    import os, sys, time
    import package
    from store_reads import open_source, read

    def first_bytes():
        return read(open_source("s3://bucket/x", None), ("s3://bucket/x.bin", 0, 100))

    def use_as_the_user():
        import obstore
        from obstore.store import S3Store
        obstore.get(S3Store("bucket", client_options={"allow_http": True}), "x.bin", options={"range": (0, 10)})

    def in_fork(function):
        read_end, write_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            begun = time.monotonic()
            found = function()
            os.write(write_end, ("%d %.1f %s" % (found.status, time.monotonic() - begun, found.text)).encode())
            os._exit(0)
        os.close(write_end)
        os.waitpid(pid, 0)
        return os.read(read_end, 4096).decode()

    def check(said, works):
        status, seconds, text = (said + " ").split(" ", 2)
        assert float(seconds) < 2, said
        assert (status == "0") == works, said
        assert works or status == "-11" and "forkserver" in text, said
"""


def run_script(folder, text, **options):
    path = folder / "script.py"
    path.write_text(textwrap.dedent(PREPARE) + textwrap.dedent(text))
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, **options)
    assert done.returncode == 0 and done.stderr == "", (done.returncode, done.stderr)
    return done.stdout


@needs_obstore
def a_store_that_is_only_made_or_opened_works_in_a_fork(folder):
    with serve(folder):
        run_script(folder, """
            source = open_source("s3://bucket/x", None)
            with source.read_elsewhere():
                assert read(source, ("s3://bucket/x.bin", 0, 100)).status == 0
            from obstore.store import S3Store
            made = S3Store("bucket", client_options={"allow_http": True}, retry_config={"max_retries": 0})
            check(in_fork(first_bytes), True)
            check(in_fork(lambda: read(source, ("s3://bucket/x.bin", 0, 100))), True)
            check(in_fork(lambda: read(open_source("x", made), ("x.bin", 0, 100))), True)
        """)


@needs_obstore
def a_fork_after_use_is_an_error(folder):
    with serve(folder):
        for use in ("first_bytes()", "use_as_the_user()"):
            run_script(folder, f"""
                source = open_source("s3://bucket/x", None)
                {use}
                check(in_fork(first_bytes), False)
                check(in_fork(lambda: read(source, ("s3://bucket/x.bin", 0, 100))), False)

                def again():
                    check(in_fork(first_bytes), False)
                    return first_bytes()

                check(in_fork(again), False)
            """)


@needs_obstore
def a_fork_before_tokmap_is_imported_is_an_error_after_a_while(folder):
    """Nobody has noted the use, so the child waits until it is certain."""
    with serve(folder):
        path = folder / "script.py"
        path.write_text(textwrap.dedent("""
            import os, time
            import obstore
            from obstore.store import MemoryStore
            MemoryStore().put("x", b"1")
            pid = os.fork()
            if pid == 0:
                begun = time.monotonic()
                from store_reads import open_source, read
                found = read(open_source("s3://bucket/x", None), ("s3://bucket/x.bin", 0, 100))
                os._exit(0 if found.status == -11 and time.monotonic() - begun < 10 else 1)
            assert os.waitpid(pid, 0)[1] == 0
        """))
        subprocess.run([sys.executable, path], check=True, timeout=60, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})


@needs_obstore
def use_by_another_package_does_not_matter_if_obstore_works(folder):
    """A thread with the name of the runtime's is in the parent, and the child may use obstore."""
    with serve(folder):
        run_script(folder, """
import threading
def run():
    with open("/proc/self/task/%d/comm" % threading.get_native_id(), "w") as file:
        file.write("tokio-rt-worker")
    time.sleep(20)
threading.Thread(target=run, daemon=True).start()
time.sleep(0.2)
from tokmap._c.forks import has_tokio
assert has_tokio()
check(in_fork(first_bytes), True)
""")


@needs_obstore
def processes_that_are_no_forks_work(folder):
    with serve(folder):
        run_script(folder, """
            import multiprocessing

            def run(queue):
                found = first_bytes()
                queue.put((found.status, found.text))

            if __name__ == "__main__":
                assert first_bytes().status == 0
                for name in ("forkserver", "spawn"):
                    context = multiprocessing.get_context(name)
                    queue = context.Queue()
                    process = context.Process(target=run, args=(queue,))
                    process.start()
                    assert queue.get(timeout=60)[0] == 0
                    process.join()
        """)


@needs_obstore
def python_ends_with_requests_in_flight(folder):
    with serve(folder) as server:
        server.set(latency={"constant": 1.0})
        for _ in range(10):
            begun = time.monotonic()
            run_script(folder, """
                import threading
                source = open_source("s3://bucket/x", None)

                def again():
                    while read(source, *(("s3://bucket/x.bin", i << 16, 100) for i in range(8))).status == 0:
                        pass

                for _ in range(8):
                    threading.Thread(target=again, daemon=True).start()
                time.sleep(0.7)
            """)
            assert time.monotonic() - begun < 10


@needs_obstore
def another_server_agrees(folder):
    """moto, which others wrote, for the meaning of ranges and versions."""
    try:
        from moto.server import ThreadedMotoServer
    except ImportError:
        raise Skip("there is no Python package moto[server]") from None
    from obstore.store import S3Store

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        os.environ.update(AWS_ENDPOINT_URL=f"http://{host}:{port}", AWS_ALLOW_HTTP="true", AWS_REGION="us-east-1",
                          AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY=SECRET, AWS_VIRTUAL_HOSTED_STYLE_REQUEST="false")
        os.environ.pop("AWS_SESSION_TOKEN", None)
        import urllib.request

        urllib.request.urlopen(urllib.request.Request(f"http://{host}:{port}/bucket", method="PUT"))
        user = S3Store("bucket", client_options={"allow_http": True}, retry_config={"max_retries": 0})
        user.put("folder/x.bin", DATA)
        source = open_source("s3://bucket/folder/x", None, 5)
        name = "s3://bucket/folder/x.bin"
        found = read(source, (name, 5, 100), (name, len(DATA) - 7, 100), (name, 0, 0))
        assert found.status == 0 and [data for data, *_ in found.parts] == [DATA[5:105], DATA[-7:], b""], found.text
        version = found.parts[0][1]
        assert read(source, (name, 5, 100), version=version).status == 0
        user.put("folder/x.bin", DATA[::-1])
        assert read(source, (name, 5, 100), version=version).status == -7
        assert "does not exist" in read(source, ("s3://bucket/folder/y.bin", 5, 100)).text
    finally:
        server.stop()


sys.exit(run_in_folders("obstore_"))
