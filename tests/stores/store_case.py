# SPDX-License-Identifier: Apache-2.0
"""What the checks of this folder share: the package, datasets, and a store with credentials. Import it before NumPy.

A check that needs obstore ends with `skip` where it is not installed."""

import datetime
import importlib.util
import math
import os
import pathlib
import re
import sys
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/python"), str(ROOT / "tests/oracles")]

import package  # noqa: E402,F401: finds tokmap
from byte_server import access_key  # noqa: E402
from ref_protocol import run_program  # noqa: E402

BUCKET = "bucket"
# What no message, ledger or log may have. They look like real ones, with characters that addresses quote.
SECRET, TOKEN, PASSWORD, SIGNATURE = "wJalr/XUtnFEMI+secret", "FwoGZXIv/session+token==", "pass-word-7", "5d672d79signature"
SECRETS = [text for secret in (SECRET, TOKEN, PASSWORD, SIGNATURE) for text in (secret, urllib.parse.quote(secret, safe=""))]
# What a message about a range has.
RANGE = re.compile(r"bytes \d+ to \d+|the MiB from byte \d+")


def need_obstore(check):
    """Ends the check with the reason, if obstore is missing."""
    if importlib.util.find_spec("obstore") is None:
        print("skip %s: there is no Python package obstore" % check)
        sys.exit(77)


def set_environment(server, **more):
    """The credentials and the endpoint, where obstore finds them for every address that begins with s3://."""
    os.environ.update(AWS_ENDPOINT_URL=server.endpoint, AWS_ALLOW_HTTP="true", AWS_REGION="us-east-1",
                      AWS_VIRTUAL_HOSTED_STYLE_REQUEST="false", AWS_ACCESS_KEY_ID=access_key(), AWS_SECRET_ACCESS_KEY=SECRET,
                      AWS_SESSION_TOKEN=TOKEN, **more)


class NewKeys:
    """A credential provider of obstore, which makes a new key after so many seconds. obstore asks it before each request,
    because no key is good for another five minutes."""

    def __init__(self, seconds):
        self.seconds, self.made, self.n_keys = seconds, -math.inf, 0

    def __call__(self):
        if time.monotonic() - self.made >= self.seconds:
            self.made, self.key, self.n_keys = time.monotonic(), access_key(), self.n_keys + 1
        expires = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=self.seconds)
        return {"access_key_id": self.key, "secret_access_key": SECRET, "token": TOKEN, "expires_at": expires}


def store_with_keys(server, provider, deadline=60):
    """A store of obstore as a user makes one who has a provider of keys."""
    from obstore.store import S3Store

    return S3Store(BUCKET, endpoint=server.endpoint, client_options={"allow_http": True, "timeout": "%ds" % deadline},
                   region="us-east-1", virtual_hosted_style_request=False, credential_provider=provider,
                   retry_config={"max_retries": 0})


def write_numbers(prefix, n_tokens):
    """A dataset whose token i has the number i, in documents of 1,000 tokens."""
    import numpy
    import tokmap

    with tokmap.Writer(prefix, vocab_size=max(n_tokens, 1 << 17)) as writer:
        for first in range(0, n_tokens, 1000):
            writer.document(numpy.arange(first, min(first + 1000, n_tokens), dtype=numpy.uint32))


def write_hole(prefix, n_tokens):
    """A dataset of u32 tokens whose token file is a hole, for a server that makes its numbers. Its checksums are those of the
    hole."""
    with open("%s.bin" % prefix, "wb") as f:
        f.truncate(4 * n_tokens)
    done = run_program("tokmap", "index", "-q", "--format", "raw", "--dtype", "u32", "--eod", "none", "%s.bin" % prefix)
    if done.returncode != 0:
        raise AssertionError(done.stderr.decode())


def secrets_in(text):
    """The secrets that a text has."""
    return [secret for secret in SECRETS if secret in text]
