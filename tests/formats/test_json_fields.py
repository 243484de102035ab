#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The fields of JSON lines against Python's json: types, bits of numbers, strings, duplicates."""

import json
import os
import random
import sys

import ref_fields
from ref_protocol import expect, run_in_folders
from test_json_line import LINES, MAX_DEPTH, depth_of, mutate, random_line

LONG = os.environ.get("TOKMAP_LONG") == "all"
LISTS = ["text", "a.b,text,a", "b,a.b.b,é,a.text,a.b,id,@row,text ", "a.a,x.y.z"]

VALUES = [
    "0", "-0", "1", "-1", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "-9223372036854775809", "18446744073709551616", "123456789012345678901234567890", "0.1", "-0.0", "1e0", "1E5",
    "1.0", "2.2250738585072011e-308", "4.9e-324", "2e-324", "1e308", "1e309", "-1e400", "1e-400", "0e999",
    "9007199254740993.0", "9007199254740993", "0." + "3" * 400, "1" + "0" * 309, "7" * 400,
    "8.41470984807896506652502321630298999622563060798371e-1", "5e-1", "true", "false", "null", "[1,2]", "{}",
    '{"b":[{"b":"]"},"}\\""]}', '""', '"x"', '"\\ud800"', '"\\udc00\\ud800\\n"', '"a\\u0000b\\/"', '"é\xff"',
    '"\\\\"', '"\\\\\\""', '"' + "long \\n" * 90 + '"', '"' + "long " * 90 + '"', "[" * 100 + '"]"' + "]" * 100,
]
OBJECTS = [
    '{"a":%s}', '{"a":{"b":%s}}', '{ "a" : { "b" : %s } , "text" : %s }', '{"a":1,"a":%s}', '{"a":{"b":%s},"a":2}',
    '{"a":{"b":7,"b":%s,"b":8},"a":{"b":%s}}', '{"a":{"b":%s},"a":{}}', '{"\\u0061":{"\\u0062":%s}}',
    '{"a":{"b":%s,"\\ud800":1},"a\\ud800":3}', '{"a\\ufffd":%s,"b":%s}', '{"x":[%s,{"a":{"b":1}}],"b":%s}',
    '\t{"a":{"text":%s,"b":{"b":%s}},"id":%s}\r', '{"é":%s}', '{"text ":%s,"":1}', '{"a":"x","a":{"b":%s,"b":null}}',
    "[%s]", "%s",
]


def compare(lines):
    """All lines for all lists. Returns how many values were not null."""
    n_values = 0
    parsed = []
    for line in lines:
        try:
            parsed.append((ref_fields.read_line(line),) if depth_of(line) <= MAX_DEPTH else None)
        except ValueError:
            parsed.append(None)
    for names in LISTS:
        records = [(b"M", names.encode())] + [(b"L", line) for line in lines]
        answers = ref_fields.tool_answers(records)[1:]
        for line, value, got in zip(lines, parsed, answers):
            what = "%s: %.300r" % (names, line)
            expect((value is None) == (got is None), what)
            for name, field in zip(names.split(","), got[0] if got else []):
                wanted = None if name == "@row" else ref_fields.field_value(value[0], name)
                n_values += wanted is not None
                expect(ref_fields.same(field, wanted), "%s: %s: %.99r, expected %.99r" % (what, name, field, wanted))
    return n_values


def known_values_are_those_of_python(folder):
    lines = LINES + [o.replace("%s", v).encode("latin-1") for o in OBJECTS for v in VALUES]
    return "%d lines, %d values" % (len(lines), compare(lines))


def random_value_line(rng):
    if rng.random() < 0.5:
        return random_line(rng)
    line = rng.choice(OBJECTS)
    while "%s" in line:
        number = repr(rng.choice((rng.uniform(-1, 1), rng.randrange(-(2**64), 2**64))) * 10.0 ** rng.randrange(-320, 290))
        line = line.replace("%s", rng.choice((rng.choice(VALUES), number, json.dumps("text " * rng.randrange(9)))), 1)
    return mutate(rng, line.encode("latin-1"))


def random_lines_have_the_values_of_python(folder):
    rng = random.Random(8)
    lines = [random_value_line(rng) for _ in range(60000 if LONG else 6000)]
    n_values = compare(lines)
    expect(n_values > len(lines) / 4, "only %d values" % n_values)
    return "%d lines, %d values" % (len(lines), n_values)


if __name__ == "__main__":
    sys.exit(run_in_folders(""))
