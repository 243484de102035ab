# SPDX-License-Identifier: Apache-2.0
"""A server on the loopback that serves repositories as the Hugging Face Hub does, for huggingface_hub and hf."""

import contextlib
import hashlib
import http.server
import json
import threading
import time
import urllib.parse

N_BYTES = 30_000_000  # of a file in which a download is killed; huggingface_hub writes 10 MiB at a time


class Hub:
    """{(kind, id): {revision or commit: {path: bytes}}}, as the Hub serves them."""

    def __init__(self, repositories):
        self.repositories, self.n_requests, self.status, self.stalls = repositories, 0, 200, False
        self.after_a_revision = lambda: None
        hub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, status, body=b"", **headers):
                self.send_response(status)
                for name, value in {"Content-Length": len(body), **headers}.items():
                    self.send_header(name.replace("_", "-"), str(value))
                self.end_headers()
                if self.command != "HEAD":
                    self.send_body(body)

            def send_body(self, body):
                for at in range(0, len(body), 65536):
                    while hub.stalls and at > N_BYTES // 2:
                        time.sleep(0.01)
                    self.wfile.write(body[at:at + 65536])

            def do_GET(self):
                hub.n_requests += 1
                path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path).strip("/").split("/")
                if hub.status != 200:
                    return self.answer(hub.status, b'{"error": "no"}', X_Error_Message="no access")
                is_api = path[0] == "api"
                path = path[is_api:]
                kind = "datasets" if path[0] == "datasets" else "models"
                path = path[path[0] in ("datasets", "models"):]
                files = hub.repositories.get((kind, "/".join(path[:2])), {}).get(path[3]) if len(path) > 3 else None
                if files is None:
                    return self.answer(404, X_Error_Code="RevisionNotFound")
                commit = commit_of(files)
                if is_api and path[2] == "revision":
                    hub.after_a_revision()
                    return self.answer(200, json.dumps({"id": "/".join(path[:2]), "sha": commit,
                                                        "siblings": [{"rfilename": name} for name in files]}).encode())
                if is_api:
                    tree = [{"type": "file", "path": name, "size": len(data), "oid": etag(data)} for name, data in files.items()]
                    return self.answer(200, json.dumps([{"type": "directory", "path": "data", "oid": "0"}, *tree]).encode(),
                                       Content_Type="application/json")
                data = files["/".join(path[4:])]
                begin = int(self.headers.get("Range", "bytes=0-")[6:].split("-")[0])
                self.answer(206 if begin else 200, data[begin:], ETag=f'"{etag(data)}"', X_Repo_Commit=commit)

            do_HEAD = do_GET

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def set_branch(self, kind, name, files):
        self.repositories.setdefault((kind, name), {})["main"] = files
        self.repositories[kind, name][commit_of(files)] = files
        return commit_of(files)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def etag(data):
    return hashlib.sha1(data).hexdigest()


def commit_of(files):
    return etag(repr(sorted(files.items())).encode())


@contextlib.contextmanager
def serve():
    hub = Hub({})
    try:
        yield hub
    finally:
        hub.close()
