# SPDX-License-Identifier: Apache-2.0
"""Fields of documents and the expressions of --where, by Python's own json and grammar; and what
tool_fields says of them."""

import ast
import decimal
import json
import math
import re
import struct
import sys

from ref_protocol import call, expect_equal

if hasattr(sys, "set_int_max_str_digits"):
    sys.set_int_max_str_digits(0)
# Bytes above 7F stand as code points that no test writes as an escape: Python's json sees text.
HIGH = 0xF5500


def text_bytes(text):
    """The bytes of a string that Python's json has read, and how many surrogates in it are alone."""
    out, lone = bytearray(), 0
    for c in map(ord, text):
        if HIGH + 0x80 <= c <= HIGH + 0xFF:
            out.append(c - HIGH)
        elif 0xD800 <= c <= 0xDFFF:
            out += b"\xef\xbf\xbd"
            lone += 1
        else:
            out += chr(c).encode()
    return bytes(out), lone


class Written(float):
    """A number that is not an int64, as it was written; as a float, the nearest double."""

    def __new__(cls, text):
        self = super().__new__(cls, text)
        self.text = text
        return self


def read_integer(text):
    number = int(text)
    return number if -(2**63) <= number < 2**63 else Written(text)


class Object(list):
    """The pairs of an object, duplicates included."""


def read_line(line):
    """The value of a line; raises ValueError if it is not JSON."""
    text = "".join(chr(c if c < 0x80 else HIGH + c) for c in line)
    return json.loads(text, object_pairs_hook=Object, parse_int=read_integer, parse_float=Written)


def field_value(value, path):
    """None, int, float or bytes: the field with the dotted path."""
    for part in path.split("."):
        found = None
        for key, item in value if isinstance(value, Object) else []:
            if text_bytes(key) == (part.encode(), 0):
                found = item
        value = found
    if isinstance(value, str):
        return text_bytes(value)[0]
    if isinstance(value, list):
        return None
    return int(value) if isinstance(value, int) else value


# ---- Expressions ----

TOKEN = re.compile(
    r"""\s*(?:(?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|`(?P<quoted>[^`]*)`|(?P<number>-?\d[\d.eE+-]*)"""
    r"""|(?P<name>@?[^\W\d][\w]*(?:\.[^\W\d]\w*)*)|(?P<sign>[=!<>]=?|[(),]))""", re.DOTALL)
WORDS = {"and": "and", "or": "or", "not": "not", "is": "is", "in": "in", "null": "None", "true": "1", "false": "0"}


def parse_string(token):
    body = token[1:-1].replace("\\'", "'")
    if token[0] == "'":
        body = re.sub(r'\\.|"', lambda m: '\\"' if m.group() == '"' else m.group(), body, flags=re.DOTALL)
    return json.loads('"%s"' % body).encode()


def parse(text):
    """The expression as Python's grammar reads it; raises ValueError or SyntaxError."""
    out, at = [], 0
    text = text.rstrip(" \t\r\n")
    while at < len(text):
        m = TOKEN.match(text, at)
        if not m:
            raise ValueError("character %d" % at)
        at = m.end()
        if m["string"]:
            out.append(repr(parse_string(m["string"])))
        elif m["number"]:
            json.loads(m["number"])
            out.append("N[%r]" % m["number"])
        elif m["sign"]:
            out.append(m["sign"])
        elif m["name"] in WORDS:
            out.append(WORDS[m["name"]])
        else:
            out.append("V[%r]" % (m["name"] or m["quoted"]))
    return ast.parse(" ".join(out), mode="eval").body


def exact(number, other):
    """The number as one that Python compares without rounding. What was written with a fraction or an exponent, and is
    compared with a double, is the nearest one."""
    if isinstance(number, Written) and type(other) is float and set(".eE") & set(number.text) and not math.isinf(number):
        return float(number)
    if isinstance(number, Written):
        return decimal.Decimal(number.text)
    return number


def compare(op, a, b):
    if a is None or b is None or isinstance(a, bytes) != isinstance(b, bytes) or a != a or b != b:
        return False
    a, b = exact(a, b), exact(b, a)
    return {ast.Eq: lambda: a == b, ast.NotEq: lambda: a != b, ast.Lt: lambda: a < b, ast.LtE: lambda: a <= b,
            ast.Gt: lambda: a > b, ast.GtE: lambda: a >= b}[type(op)]()


def holds(node, values):
    if isinstance(node, ast.BoolOp):
        results = [holds(v, values) for v in node.values]
        return any(results) if isinstance(node.op, ast.Or) else all(results)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not holds(node.operand, values)
    if isinstance(node, ast.Subscript) and node.value.id == "V":
        return compare(ast.NotEq(), operand(node, values), 0)
    (op,), (right,) = node.ops, node.comparators
    left = operand(node.left, values)
    if isinstance(op, (ast.Is, ast.IsNot)):
        return (left is None) == isinstance(op, ast.Is)
    if isinstance(op, ast.In):
        return any(compare(ast.Eq(), left, operand(one, values)) for one in getattr(right, "elts", [right]))
    return compare(op, left, operand(right, values))


def operand(node, values):
    if isinstance(node, ast.Subscript):
        key = ast.literal_eval(node.slice)
        return values[key] if node.value.id == "V" else json.loads(key, parse_int=read_integer, parse_float=Written)
    return ast.literal_eval(node)


# ---- tool_fields ----


def same(a, b):
    """Values, by type and bits."""
    if isinstance(a, float) and isinstance(b, float):
        return struct.pack("<d", a) == struct.pack("<d", b)
    return type(a) is type(b) and a == b


def read_value(out, at):
    kind = out[at]
    if kind == 3:
        n = struct.unpack_from("<I", out, at + 1)[0]
        return out[at + 5 : at + 5 + n], at + 5 + n
    value = None if kind == 0 else struct.unpack_from("<q" if kind == 1 else "<d", out, at + 1)[0]
    return value, at + 9


def tool_answers(records):
    """For M and W (True, [name...]) or (False, character, reason); for L None or ([value...], holds)."""
    stdin = b"".join(kind + struct.pack("<I", len(text)) + text for kind, text in records)
    out = call("tool_fields", stdin=stdin)[1]
    answers, at, names = [], 0, []
    for kind, _ in records:
        flag, at = out[at], at + 1
        if kind == b"L":
            values = []
            for _ in names if flag else []:
                value, at = read_value(out, at)
                values.append(value)
            answers.append((values, bool(out[at])) if flag else None)
            at += flag
            continue
        character = struct.unpack_from("<I", out, at)[0]
        at += 4 * flag
        n = struct.unpack_from("<I", out, at)[0]
        text = out[at + 4 : at + 4 + n].decode()
        at += 4 + n
        names = [] if flag else text.split(",") if text else []
        answers.append((False, character, text) if flag else (True, names))
    expect_equal(at, len(out), "bytes of output")
    return answers
