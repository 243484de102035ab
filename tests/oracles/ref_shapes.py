# SPDX-License-Identifier: Apache-2.0
"""Datasets of every shape for the tests: each is a list of steps that Python (tokens_of) and
tool_make_dataset (tool_input) carry out alike.

    ("ids", 1, 2, 3)           append these tokens to the document at hand
    ("tokens", n)              append n generated tokens
    ("end",)                   end the document
    ("documents", n, length)   n documents of generated tokens
    ("varied", n, m)           n documents; document i of them has (i * i + i / 7) % m tokens
    ("input", name, input_bytes, input_checksum)
"""

MIB = 2**20


class Shape:
    def __init__(self, steps, vocab=50257, eod=None, metadata=b"{}"):
        self.steps = steps
        self.vocab = vocab
        self.eod = eod
        self.metadata = metadata


def generated_id(i, vocab):
    """The id of token i of a dataset where no ids are given."""
    return ((i * 0x9E3779B97F4A7C15 & 2**64 - 1) >> 32) % vocab


def varied_length(i, m):
    return (i * i + i // 7) % m


def many_documents():
    return Shape([("varied", 200000, 5), ("input", b"all", 1, 1)], eod=0)


def group_boundary(n):
    return Shape([("varied", n, 11)], eod=50256)


def around_block(n_bytes, token_bytes):
    vocab = 65536 if token_bytes == 2 else 65537
    n_tokens = n_bytes // token_bytes
    return Shape([("documents", 1, n_tokens - 3), ("documents", 3, 1)], vocab)


def many_inputs():
    steps = []
    for i in range(300):
        steps += [("varied", i % 4, 7), ("input", b"part-%05d.jsonl" % i, i, i << 55)]
    return Shape(steps)


SHAPES = {
    "nothing": Shape([]),
    "no documents, tokens": Shape([("tokens", 1000)]),
    "no documents, tokens, an input": Shape([("tokens", 10), ("input", b"raw", 20, 7)]),
    "one empty document": Shape([("end",)]),
    "only empty documents": Shape([("documents", 3, 0)]),
    "1025 empty documents": Shape([("documents", 1025, 0)]),
    "one document of one token": Shape([("ids", 50256), ("end",)], eod=50256),
    "an empty document first": Shape([("end",), ("ids", 1, 2, 3), ("end",)]),
    "an empty document in the middle": Shape(
        [("ids", 1), ("end",), ("end",), ("ids", 2), ("end",)]
    ),
    "an empty document last": Shape([("ids", 1, 2, 3), ("end",), ("end",)]),
    "65 empty documents first": Shape([("documents", 65, 0), ("documents", 2, 3)]),
    "65 empty documents last": Shape([("documents", 2, 3), ("documents", 65, 0)]),
    "1025 empty documents in the middle": Shape(
        [("documents", 5, 2), ("documents", 1025, 0), ("documents", 70, 1)]
    ),
    "1100 empty documents last": Shape([("documents", 100, 2), ("documents", 1100, 0)]),
    "vocabulary of one": Shape([("documents", 3, 4)], vocab=1, eod=0),
    "vocabulary 65536": Shape([("ids", 65535, 0, 65534), ("end",)], vocab=65536, eod=65535),
    "vocabulary 65537": Shape([("ids", 65536, 0, 65534), ("end",)], vocab=65537, eod=65536),
    "vocabulary 65537, small ids": Shape([("ids", 1, 0, 2), ("end",)], vocab=65537),
    "vocabulary 2^31": Shape([("ids", 2**31 - 1, 0), ("end",)], vocab=2**31, eod=2**31 - 1),
    "one input": Shape([("documents", 7, 3), ("input", b"in.txt", 12345, 2**64 - 1)]),
    "an input without documents": Shape([("input", b"empty.txt", 0, 0)]),
    "many inputs": many_inputs(),
    "odd names": Shape(
        [
            ("documents", 1, 2),
            ("input", b"", 0, 0),
            ("documents", 1, 2),
            ("input", b"\xff\xfe/\x01\n\"\\", 2**64 - 1, 3),
            ("input", bytes([1 + i % 255 for i in range(4096)]), 9, 9),
            ("documents", 2, 1),
            ("input", "été".encode(), 0, 0),
        ]
    ),
    "metadata": Shape(
        [("documents", 2, 2)], metadata='{"created_by": "t 1", "é": [1, {"x": null}]}'.encode()
    ),
    "200,000 documents": many_documents(),
}
for n_documents in (1, 63, 64, 65, 1023, 1024, 1025, 16384, 16385):
    SHAPES["%d documents" % n_documents] = group_boundary(n_documents)
for token_bytes in (2, 4):
    for delta in (-token_bytes, 0, token_bytes):
        name = "u%d, 1 MiB %+d bytes" % (8 * token_bytes, delta)
        SHAPES[name] = around_block(MIB + delta, token_bytes)
    SHAPES["u%d, 3 MiB" % (8 * token_bytes)] = around_block(3 * MIB, token_bytes)


def carry_out(shape):
    """What a shape stands for: tokens, document lengths, inputs as ref_writer wants them."""
    tokens, lengths, inputs = [], [], []
    first = 0

    def generate(n):
        at = len(tokens)
        tokens.extend(generated_id(i, shape.vocab) for i in range(at, at + n))

    def end():
        nonlocal first
        lengths.append(len(tokens) - first)
        first = len(tokens)

    for verb, *arguments in shape.steps:
        if verb == "ids":
            tokens.extend(arguments)
        elif verb == "tokens":
            generate(arguments[0])
        elif verb == "end":
            end()
        elif verb == "input":
            name, n_bytes, checksum = arguments
            inputs.append((name, len(lengths), len(tokens), n_bytes, checksum))
        else:
            n, size = arguments
            for i in range(n):
                generate(size if verb == "documents" else varied_length(i, size))
                end()
    return tokens, lengths, inputs


def tool_input(shape, prefix):
    """The same as input for tool_make_dataset."""
    eod = "none" if shape.eod is None else shape.eod
    lines = ["write %d %s %s" % (shape.vocab, eod, prefix)]
    lines.append("metadata " + shape.metadata.decode())
    for verb, *arguments in shape.steps:
        if verb == "input":
            name, n_bytes, checksum = arguments
            lines.append("input %d %d x%s" % (n_bytes, checksum, name.hex()))
        else:
            lines.append(" ".join([verb] + [str(a) for a in arguments]))
    return "\n".join(lines) + "\n"


def adopt_input(token_path, place, vocab, eod, lengths):
    """Input for an index over an existing token file. place: token_bytes, token_offset, n."""
    eod = "none" if eod is None else eod
    token_bytes, token_offset, n_tokens = place
    numbers = "%d %d %d %d" % (token_bytes, token_offset, n_tokens, vocab)
    lines = ["adopt %s %s %s" % (numbers, eod, token_path)]
    lines += ["documents 1 %d" % n for n in lengths]
    return "\n".join(lines) + "\n"
