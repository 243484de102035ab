# SPDX-License-Identifier: Apache-2.0
"""For files of another program: tokmap pack writes the dataset of the same texts as JSON lines, or refuses the file."""

import json
import re

from ref_protocol import expect, expect_equal, run_program


def pack(folder, source, *options, data=None):
    """Returns the exit status, what it says, and the id of the dataset."""
    done = run_program("tokmap", "pack", "--force", source, "-o", folder / "out", *options, input=data)
    found = re.search(rb"id ([0-9a-f]{32})", done.stdout)
    return done.returncode, done.stderr.decode(), found and found.group(1)


def dataset_of(folder, texts):
    """The id of the dataset of these texts."""
    (folder / "texts.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in texts if t is not None))
    code, message, name = pack(folder, folder / "texts.jsonl", "--format", "jsonl", "--memory", "1G")
    # A run that takes ten seconds also shows its progress, and what limited it.
    message = re.sub(r"^(pack: .*|tokmap pack: .* limited this run: .*)\n", "", message, flags=re.MULTILINE)
    expect_equal((code, message), (0, ""), "pack of JSON lines")
    return name


def compare(folder, what, data, texts, *options):
    """Packs the data as the file `in`, whose texts these are; None: it has none. Returns what it says."""
    (folder / "in").write_bytes(data)
    n_null = sum(t is None for t in texts)
    code, message, name = pack(folder, folder / "in", *options)
    expect_equal(code, 0, "%s: %s" % (what, message))
    expect_equal(name, dataset_of(folder, texts), what)
    expect_equal(re.findall(r"(\d+) records? without", message), [str(n_null)] if n_null else [], what)
    return message


def refused(folder, data, *words, options=()):
    (folder / "in").write_bytes(data)
    code, message, _ = pack(folder, folder / "in", *options)
    expect_equal(code, 3, "exit status (%s)" % message)
    for word in words:
        expect(word in message, "%r is missing in: %s" % (word, message))
