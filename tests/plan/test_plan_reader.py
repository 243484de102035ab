#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans as docs/FORMAT.md section 10 has them: a second reader agrees, also about what is refused."""

import pathlib
import random
import struct
import sys

import ref_plan
from ref_protocol import call, expect, expect_equal, run_in_folders

SEEDS = pathlib.Path(__file__).resolve().parents[1] / "fuzz" / "corpus" / "plan"
WORDS = [b" ", b"\n", b"\\x20", b"\\x0a", b"0", b"1", b"18446744073709551615", b"18446744073709551616", b"a", b"-", b"\\",
         b"\t", b"\0", b"\xff", b"option ", b"fact ", b"input ", b"cell ", b"checksum ", b"cell 0 0 0\n", b"text", b"jsonl",
         b"input 9 1 lines x\n", b"cell 1 0 0\n", b"option split s=0.5\n", b"fact \n", b"folder /\n", b" \n", b"01",
         b"origin 0123456789abcdef\n"]


def random_text(rng):
    return bytes(rng.choice(b"ab/ .\\\n\x7f\xc3\xa4 ") for _ in range(rng.randrange(1, 9)))


def random_plan(rng):
    lines = [b"tokmap plan 1", b"folder /" + ref_plan.escape(random_text(rng)),
             b"cells " + ref_plan.escape(random_text(rng)), b"cell-size %d" % rng.choice((1, 1000, 2**64 - 1))]
    for _ in range(rng.randrange(4)):
        lines.append(b"option " + rng.choice((b"lines", b"field " + ref_plan.escape(random_text(rng)))))
    for _ in range(rng.randrange(4)):
        lines.append(b"fact " + rng.choice((b"--eod 0", b"", b"a  ", b"--separator \\x0a")))
    sizes = [rng.choice((0, 5, 2**40)) for _ in range(rng.randrange(1, 5))]
    for size in sizes:
        lines.append(b"input %d %d %s %s" % (size, rng.randrange(2**64), rng.choice((b"jsonl", b"tar", b"parquet")),
                                             ref_plan.escape(random_text(rng))))
    lines.append(b"cell 0 0 0")
    for i, size in enumerate(sizes):
        if i > 0 and rng.random() < 0.5:
            lines.append(b"cell %d 0 0" % i)
        for offset in sorted(rng.sample(range(1, size), min(size - 1, rng.randrange(3)))) if size else []:
            lines.append(b"cell %d %d %d" % (i, offset, offset if size == 5 else 0))
    if rng.random() < 0.3:
        lines.append(b"cell %d 0 0" % len(sizes))
    n_cells = sum(line.startswith(b"cell ") for line in lines)
    for at in range(len(lines) - 1, len(lines) - n_cells - 1, -1):  # empty ones
        lines[at:at + 1] = [lines[at]] * rng.choice((1, 1, 1, 3))
    if rng.random() < 0.3:
        lines.append(b"origin %016x" % rng.randrange(2**64))
    return b"\n".join(lines) + b"\n"


def mutate(rng, lines):
    for _ in range(rng.choice((0, 1, 1, 2))):
        at = rng.randrange(len(lines) + 1)
        lines = lines[:at] + rng.choice(WORDS) + lines[at + rng.choice((0, 0, 1, 2, 5)):]
    return ref_plan.signed(lines) if rng.random() < 0.9 else lines


def expected(data):
    """What the tool answers."""
    try:
        plan = ref_plan.read_plan(data)
    except ref_plan.Refused:
        return None
    texts = [plan["folder"], plan["cells_folder"], plan["cell_size"], plan["hash"].encode(), plan["origin"].encode()]
    for name, value in plan["options"]:
        texts += [name, value or b""]
    texts.append(b"".join(fact + b"\n" for fact in plan["facts"]))
    for one in plan["inputs"]:
        texts += one
    for i, cell in enumerate(plan["cells"]):
        texts += [*cell, ref_plan.cell_hash(plan, i).encode(), ref_plan.cell_prefix(plan, i), ref_plan.cell_prefix(plan, i, b"s")]
    return [text if isinstance(text, bytes) else b"%d" % text for text in texts]


def answers(data):
    at = 0
    while at < len(data):
        at += 1
        if data[at - 1] == 0:
            yield None
            continue
        n, = struct.unpack_from("<I", data, at)
        at += 4
        texts = []
        for _ in range(n):
            size, = struct.unpack_from("<I", data, at)
            texts.append(data[at + 4:at + 4 + size])
            at += 4 + size
        yield texts


def check(plans):
    data = b"".join(struct.pack("<I", len(plan)) + plan for plan in plans)
    got = list(answers(call("tool_plan", stdin=data)[1]))
    expect_equal(len(got), len(plans), "answers")
    n_good = 0
    for plan, answer in zip(plans, got):
        expect_equal(answer, expected(plan), repr(plan))
        n_good += answer is not None
    return n_good


def plans_are_read_alike(folder):
    rng = random.Random(17)
    plans = [ref_plan.signed(random_plan(rng)) for _ in range(300)]
    expect_equal(check(plans), len(plans), "plans that were read")


def changed_plans_are_refused_alike(folder):
    rng = random.Random(18)
    plans = [mutate(rng, random_plan(rng)) for _ in range(3000)]
    n_good = check(plans)
    expect(300 < n_good < 2700, "%d of the plans were good" % n_good)
    return "%d of %d were plans" % (n_good, len(plans))


def seeds_are_read_alike(folder):
    expect(check([path.read_bytes() for path in sorted(SEEDS.iterdir())]) >= 2, "no seed is a plan")


if __name__ == "__main__":
    sys.exit(run_in_folders(""))
