# SPDX-License-Identifier: Apache-2.0
"""SentencePiece models, trained here with the package and then changed: flags, pieces, scores.

What trains needs the Python package `sentencepiece`. The fields are those of sentencepiece_model.proto.
"""

import io
import struct

from oracle_reference import package
from ref_thrift import Reader, varint

sentencepiece = package("sentencepiece")
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
# Fields of the messages.
PIECES, TRAINER, NORMALIZER = 1, 2, 3
WHITESPACE_AS_SUFFIX, BYTE_FALLBACK = 24, 35
NAME, CHARSMAP, DUMMY_PREFIX, COLLAPSE, ESCAPE = range(1, 6)


def read_message(data):
    """A list of [field, wire type, value]."""
    fields, reader = [], Reader(data)
    while reader.at < len(data):
        key = reader.varint()
        wire = key & 7
        if wire == 0:
            value = reader.varint()
        else:
            value = reader.take({1: 8, 5: 4}.get(wire) or reader.varint())
        fields.append([key >> 3, wire, value])
    return fields


def message(fields):
    out = b""
    for field, wire, value in fields:
        out += varint(field << 3 | wire)
        if wire == 0:
            out += varint(value)
        else:
            out += (varint(len(value)) if wire == 2 else b"") + value
    return out


def small_model(pieces, kind):
    """A file with pieces (text, score, type). kind: 1 for Unigram, 2 for BPE."""
    rows = [[PIECES, 2, message([[1, 2, text.encode()], [2, 5, struct.pack("<f", score)], [3, 0, type_]])]
            for text, score, type_ in pieces]
    return message([*rows, [TRAINER, 2, message([[3, 0, kind]])],
                    [NORMALIZER, 2, message([[DUMMY_PREFIX, 0, 1], [COLLAPSE, 0, 1]])]])


def with_field(data, field, value):
    """The message with one field set, or taken out (None)."""
    fields = [row for row in read_message(data) if row[0] != field]
    if value is not None:
        fields.append([field, 0, int(value)] if isinstance(value, int) else [field, 2, value])
    return message(sorted(fields, key=lambda row: row[0]))


class Model:
    """pieces: [text, score, type]; the specs as bytes."""

    def __init__(self, data):
        self.pieces, self.rest = [], {}
        for field, _, value in read_message(data):
            if field == PIECES:
                row = {key: content for key, _, content in read_message(value)}
                score = struct.unpack("<f", row[2])[0] if 2 in row else 0.0
                self.pieces.append([row[1].decode(), score, row.get(3, NORMAL)])
            else:
                self.rest[field] = value

    def set(self, spec, **fields):
        for name, value in fields.items():
            self.rest[spec] = with_field(self.rest[spec], globals()[name], value)
        return self

    def normalizer(self, field):
        for key, _, value in read_message(self.rest[NORMALIZER]):
            if key == field:
                return value
        return None

    def to_bytes(self):
        out = []
        for text, score, kind in self.pieces:
            row = [[1, 2, text.encode()], [2, 5, struct.pack("<f", score)]]
            out.append([PIECES, 2, message(row + ([[3, 0, kind]] if kind != NORMAL else []))])
        return message(out + [[field, 2, value] for field, value in sorted(self.rest.items())])


def train(texts, rng, kind, **options):
    lines = []
    for _ in range(200):
        text = rng.choice(texts)
        at = rng.randrange(len(text))
        lines.append(text[at : at + 300].replace("\n", " ").replace("\0", " "))
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=out, model_type=kind,
        vocab_size=options.pop("vocab_size", 500), hard_vocab_limit=False, minloglevel=2,
        num_threads=1, character_coverage=options.pop("character_coverage", 0.98), **options)
    return Model(out.getvalue())


BASES = {
    "bpe": ("bpe", {
        "byte_fallback": True, "normalization_rule_name": "identity", "vocab_size": 1200,
        "remove_extra_whitespaces": False, "split_digits": True,
        "allow_whitespace_only_pieces": True}),
    "bpe_unknown": ("bpe", {"normalization_rule_name": "nmt_nfkc", "unk_surface": "<\u2581?>"}),
    "bpe_symbols": ("bpe", {
        "byte_fallback": True, "vocab_size": 1200, "normalization_rule_name": "nfkc_cf",
        "user_defined_symbols": ["<sep>", "<se", "ing", "  ", "\u2581\u2581", "\u4f60"]}),
    "unigram": ("unigram", {"normalization_rule_name": "nmt_nfkc"}),
    "unigram_bytes": ("unigram", {
        "byte_fallback": True, "normalization_rule_name": "identity"}),
    "unigram_symbols": ("unigram", {
        "normalization_rule_name": "nfkc",
        "user_defined_symbols": ["<sep>", "<sep><x>", "er", " a"]}),
    "unigram_across": ("unigram", {
        "split_by_whitespace": False, "normalization_rule_name": "nmt_nfkc_cf"}),
    "char": ("char", {"normalization_rule_name": "nmt_nfkc", "unk_surface": "",
                      "required_chars": "\u16a0\u16a1"}),
    "char_bytes": ("char", {
        "byte_fallback": True, "normalization_rule_name": "identity",
        "user_defined_symbols": ["<sep>", "ing", "\u2581\u2581"]}),
    "word": ("word", {"normalization_rule_name": "nmt_nfkc", "unk_surface": " ?"}),
    "word_bytes": ("word", {
        "byte_fallback": True, "normalization_rule_name": "identity",
        "user_defined_symbols": ["<sep>", "\u2581the", "\u2581\u2581"]}),
    "bpe_across": ("bpe", {
        "split_by_whitespace": False, "byte_fallback": True, "vocab_size": 1200,
        "normalization_rule_name": "identity"}),
}


def flags_of_normalizer(model, rng):
    """Any combination; absent fields take the defaults of the .proto."""
    for name in ("DUMMY_PREFIX", "COLLAPSE", "ESCAPE"):
        if rng.random() < (0.6 if name != "ESCAPE" else 0.15):
            model.set(NORMALIZER, **{name: rng.choice((True, False, None))})
    if rng.random() < 0.25:
        model.set(TRAINER, WHITESPACE_AS_SUFFIX=rng.choice((True, False)))
    return model


def wild_pieces(model, rng):
    """Scores that are equal or nearly so, in no order; pieces of several words."""
    kinds = {text for text, _, _ in model.pieces}
    symbols = ["\u2581", "a", "b", "s", "e", "1", "\u00e9", "\n"]
    for _ in range(150):
        text = "".join(rng.choices(symbols, k=rng.randint(1, 6)))
        if text not in kinds:
            kinds.add(text)
            model.pieces.append([text, 0.0, rng.choice((NORMAL,) * 12 + (USER_DEFINED,))])
    grain = rng.choice((1.0, 0.25, 0.0001))
    for piece in model.pieces:
        if piece[2] == NORMAL:
            piece[1] = -grain * rng.randint(1, 400)
    return model


def some_unused(model, rng):
    for piece in model.pieces:
        if piece[2] == NORMAL and len(piece[0]) > 1 and rng.random() < 0.1:
            piece[2] = UNUSED
    return model


def wild_order(model, rng):
    """Merges in the order of a shuffled vocabulary: the symbols of a word are joined oddly."""
    normal = [piece for piece in model.pieces if piece[2] == NORMAL]
    scores = [piece[1] for piece in normal]
    rng.shuffle(scores)
    for piece, score in zip(normal, scores):
        piece[1] = score
    return model
