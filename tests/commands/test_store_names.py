#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names of objects in a store, such as s3://bucket/x: every command refuses them where it takes a file, says what to do
instead, and prints nothing that may be secret."""

import sys

from commands import tokmap
from ref_protocol import expect, program, run_in_folders

SCHEMES = ["s3", "gs", "az", "https", "http", "S3"]
# Each command, with * in place of the name.
COMMANDS = ["info *", "verify *", "verify --files *", "cat *", "merge * -o q", "merge d -o *", "redact * --documents 1 -o q",
            "export --to raw * -o q", "export --to raw d -o *", "index *", "rows *", "view * --where 1", "columns list *",
            "columns add d *", "scan d --against *", "scan * --duplicates", "pack * -o q", "pack a.txt -o *", "pack a.txt * -o q",
            "pack a.txt --tokenizer * -o q", "pack --plan *", "plan * --cells c -o p", "plan a.txt --cells * -o p", "status *",
            "join * -o q", "join p -o *", "encode --tokenizer bytes *", "encode --tokenizer *", "decode --tokenizer bytes *",
            "decode --tokenizer *", "import numpy * -o q --vocab-size 9", "render * --tokenizer t",
            "preprocess --input * --output-prefix q --tokenizer-type X --tokenizer-model t --workers 1",
            "trace --ledger * --step 1", "trace d --ledger l --state *", "report --ledger *", "try * text", "try bytes *"]


def every_command_refuses_them(folder):
    (folder / "a.txt").write_text("text")
    for i, command in enumerate(COMMANDS):
        scheme = SCHEMES[i % len(SCHEMES)]
        name = scheme + "://user:hush@bucket/data/train?sig=hush#hush"
        code, out, err = tokmap(*(name if word == "*" else word for word in command.split()))
        expect(code == 2 and out == "", "%s: exit %d, %s%s" % (command, code, out, err))
        expect("%s://bucket/data/train: commands read and write files" % scheme in err, "%s: %s" % (command, err))
        expect("s5cmd" in err and "rclone" in err and "hf download" in err and "tokmap.Loader(" in err, err)
        expect("hush" not in err and "user" not in err, err)
    return "%d command lines" % len(COMMANDS)


def every_scheme_is_known(folder):
    for scheme in SCHEMES:
        expect(tokmap("info", scheme + "://b/x")[0] == 2, scheme)
    for other in ("s3:/b/x", "file:///x", "./s3://b/x", "s4://b/x", "x/https://b"):
        code, _, err = tokmap("info", other)
        expect(code == 3 and "commands read" not in err, "%s: %d %s" % (other, code, err))
    for short in ("s3://", "s3://@", "https://?", "http://a@?b", "gs:///@x"):
        code, _, err = tokmap("info", short)
        expect(code == 2 and ": commands read" in err, "%s: %d %s" % (short, code, err))
    code, _, err = tokmap("info", "s3://bucket/" + 5000 * "x")
    expect(code == 2 and "s5cmd" in err, err)


def lists_of_inputs_may_not_have_them(folder):
    (folder / "list").write_text("s3://k:hush@bucket/*.jsonl\n")
    code, out, err = tokmap("pack", "@%s" % (folder / "list"), "-o", folder / "q")
    expect(code == 3 and out == "", "exit %d, %s" % (code, err))
    expect("list:1: s3://bucket/*.jsonl: commands read" in err and "hush" not in err, err)
    expect(not list(folder.glob("q*")), "nothing is written")


def texts_may_be_anything(folder):
    (folder / "in").write_text('"https://example.org/"\n')
    for arguments in (("pack", folder / "in", "-o", folder / "q", "-q", "--separator", "https://"),
                      ("pack", folder / "in", "-o", folder / "r", "-q", "--lines"),
                      ("encode", "--tokenizer", "bytes", folder / "in")):
        code, _, err = tokmap(*arguments)
        expect(code == 0, "%s: %s" % (arguments, err))
    code, _, err = tokmap("cat", folder / "r", "--where", 'url == "https://example.org/"')
    expect("commands read" not in err, "%d %s" % (code, err))


if __name__ == "__main__":
    program("tokmap")
    sys.exit(run_in_folders("names of stores: "))
