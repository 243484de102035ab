#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Expressions of --where against Python: its grammar reads them, a small evaluator decides."""

import decimal
import json
import os
import random
import sys

import ref_fields
from ref_protocol import expect, expect_equal, run_in_folders

LONG = os.environ.get("TOKMAP_LONG") == "all"
NAMES = ["score", "lang", "meta.n", "`meta.x-y`", "größe", "ok"]
NUMBERS = ["0", "1", "-1", "3", "2.5", "9007199254740993", "9007199254740992.0", "9223372036854775807",
           "9223372036854775808", "-9223372036854775808", "1e300", "0.1", "-0", "-0.0", "1e-3", "true", "false"]
STRINGS = ['"en"', "'en'", "'de'", '""', "'e'", '"\\u00e4"', "'ä'", '"\\ud83d\\ude00"', "'it\\'s \"x\"'", '"it\'s"',
           "'\\n'", "'and'"]
VALUES = [None, True, False, 0, 1, -1, 3, 2.5, 9007199254740993, 9007199254740992.0, 2**63 - 1, 2**63, -(2**63), 1e300,
          0.1, -0.0, 1e-3, "en", "de", "", "e", "ä", "\U0001f600", "it's \"x\"", "\n", "and", [], {}]


def random_operand(rng):
    return rng.choice((rng.choice(NAMES), rng.choice(NUMBERS), rng.choice(STRINGS)))


def random_comparison(rng):
    if rng.random() < 0.15:
        return "%s %s null" % (rng.choice(NAMES), rng.choice(("is", "is not")))
    if rng.random() < 0.15:
        values = [rng.choice((rng.choice(NUMBERS), rng.choice(STRINGS))) for _ in range(rng.choice((1, 2, 2, 3, 5)))]
        return "%s in%s(%s)" % (rng.choice(NAMES), rng.choice(("", " ")), rng.choice((",", ", ", " , ")).join(values))
    sides = [rng.choice(NAMES), random_operand(rng)]
    rng.shuffle(sides)
    blank = rng.choice(("", " ", "\n"))
    return blank.join((sides[0], rng.choice(("==", "!=", "<", "<=", ">", ">=")), sides[1]))


def random_expression(rng, depth):
    what = rng.random() if depth else 0
    if rng.random() < 0.1:
        return rng.choice(NAMES)
    if what < 0.3:
        return random_comparison(rng)
    if what < 0.45:
        return "not " + random_expression(rng, depth - 1)
    if what < 0.6:
        return "(%s)" % random_expression(rng, depth - 1)
    word = rng.choice((" and ", " or "))
    return word.join(random_expression(rng, depth - 1) for _ in range(rng.randrange(2, 4)))


def random_document(rng):
    document = {"score": rng.choice(VALUES), "lang": rng.choice(VALUES), "größe": rng.choice(VALUES),
                "meta": {"n": rng.choice(VALUES), "x-y": rng.choice(VALUES)}, "ok": rng.choice(VALUES)}
    for name in rng.sample(sorted(document), rng.choice((0, 0, 1, 2))):
        del document[name]
    return json.dumps(document, ensure_ascii=rng.random() < 0.5).encode()


def mutate(rng, text):
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(len(text) + 1)
        piece = rng.choice(("", " ", "(", ")", " and ", " or ", " not ", "not", "==", "<", "=", "'", '"', "`", ".", "1",
                            "e", "null", "is", "ä", "\\", "-", "true", ", ", rng.choice(NAMES)))
        text = text[:at] + piece + text[at + rng.choice((0, 0, 1, 3)):]
    return text if "`" not in text else text.replace(",", " ")  # the tool prints names with commas between them


def check_documents(text, lines, names, answers):
    """Returns how many documents the expression keeps."""
    tree = ref_fields.parse(text)
    n_kept = 0
    for line, (values, kept) in zip(lines, answers):
        document = ref_fields.read_line(line)
        wanted = {name: ref_fields.field_value(document, name) for name in names}
        for name, value in zip(names, values):
            expect(ref_fields.same(value, wanted[name]), "%r: %s of %r" % (text, name, line))
        expect_equal(kept, ref_fields.holds(tree, wanted), "%r for %r" % (text, line))
        n_kept += kept
    return n_kept


def compare(texts, lines):
    """Each expression for its own lines. Returns how many expressions were refused, and documents kept."""
    records = []
    for text, some in zip(texts, lines):
        records += [(b"M", b""), (b"W", text.encode())] + [(b"L", line) for line in some]
    answers = iter(ref_fields.tool_answers(records))
    n_refused = n_kept = 0
    for text, some in zip(texts, lines):
        next(answers)
        (accepted, *said), documents = next(answers), [next(answers) for _ in some]
        if accepted:
            n_kept += check_documents(text, some, *said, documents)
        else:
            n_refused += 1
            expect(1 <= said[0] <= len(text) + 1 and said[1], "%r: %r" % (text, said))
    return n_refused, n_kept


def random_documents(rng, texts, n):
    return [[random_document(rng) for _ in range(n)] for _ in texts]


def random_expressions_keep_what_python_keeps(folder):
    rng = random.Random(9)
    texts = [random_expression(rng, 4) for _ in range(6000 if LONG else 1500)]
    n_refused, n_kept = compare(texts, random_documents(rng, texts, 12))
    expect_equal(n_refused, 0, "refused")
    expect(len(texts) * 3 < n_kept < len(texts) * 9, "%d kept" % n_kept)
    return "%d expressions, %d of %d documents kept" % (len(texts), n_kept, 12 * len(texts))


def what_is_accepted_means_the_same_to_python(folder):
    rng = random.Random(10)
    texts = [mutate(rng, random_expression(rng, 2)) for _ in range(30000 if LONG else 6000)]
    n_refused, _ = compare(texts, random_documents(rng, texts, 3))
    expect(len(texts) / 10 < n_refused < len(texts) * 0.95, "%d refused" % n_refused)
    return "%d expressions, %d refused" % (len(texts), n_refused)


def random_number(rng):
    """Numbers of which many are equal or neighbours, written in many ways."""
    base = rng.choice((0, 1, 2**53, 2**63, 2**64, 10**19, 10**23, 10**40, 10**308, int("7" * 400), rng.randrange(2**64)))
    text = str(max(0, base + rng.choice((0, 0, 0, 1, -1, 2, -2, rng.randrange(-3000, 3000)))))
    what = rng.random()
    if what < 0.4:
        shift = rng.randrange(len(text) + 3)
        digits = text.rjust(shift + 1, "0")
        text = digits[: len(digits) - shift] + ("." + digits[len(digits) - shift :] if shift else "")
        shift += rng.choice((0, 0, 0, 1, -1, -320, 300))
        text += rng.choice(("e%d", "E%+d", "e%+04d")) % shift if shift or rng.random() < 0.3 else ""
    elif what < 0.6:
        text += rng.choice((".0", ".000", "e0", "E-0", ".5", ".0000000000000000000001"))
    elif what < 0.7:
        text = rng.choice(("0.1", "1.10", "1.1", "0.10000000000000000555", "0.10000000000000001", "1e400", "1e401", "1e-400",
                           "5e-324", "4.9e-324", "0e999", "0.0", "1e99999999999999", "1.7976931348623159e308"))
    return rng.choice(("", "", "-")) + text


def numbers_of_any_length_are_compared_exactly(folder):
    rng, texts = random.Random(11), []
    decimal.getcontext().Emax, decimal.getcontext().Emin = decimal.MAX_EMAX, decimal.MIN_EMIN
    for _ in range(6000 if LONG else 1200):
        sides = ["x", random_number(rng) if rng.random() < 0.8 else "y"]
        rng.shuffle(sides)
        texts.append(rng.choice(("==", "!=", "<", "<=", ">", ">=")).join(sides))
    lines = [[('{"x": %s, "y": %s}' % (near(rng, text), random_number(rng))).encode() for _ in range(12)] for text in texts]
    n_refused, n_kept = compare(texts, lines)
    expect_equal(n_refused, 0, "refused")
    expect(len(texts) * 3 < n_kept < len(texts) * 9, "%d kept" % n_kept)
    return "%d comparisons" % (12 * len(texts))


def near(rng, text):
    """Often the number of the expression, or one that differs in a digit."""
    number = "".join(c for c in text if c in "-+.eE0123456789")
    if rng.random() < 0.4 or not number or number[-1] == "y":
        return random_number(rng)
    at = rng.randrange(len(number))
    changed = number[:at] + str((int(number[at]) + 1) % 10) + number[at + 1 :] if number[at].isdigit() else number
    try:
        json.loads(changed)
    except ValueError:
        changed = number
    return rng.choice((number, changed))


if __name__ == "__main__":
    sys.exit(run_in_folders(""))
