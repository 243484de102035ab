# SPDX-License-Identifier: Apache-2.0
"""PTX text, read and turned into Python: one generator for a thread, which yields at each barrier.

Registers become local variables that hold unsigned numbers of the register's width, so a register
that is read before it is written is an error, and so is an operand of another width than the
instruction's. An instruction that is not known is an error, too: nothing is passed over."""

import re
from dataclasses import dataclass

MAX_ROUNDS = 100000  # of the loops of one thread, all together


class PtxError(Exception):
    pass


@dataclass
class Instruction:
    line: int
    guard: str  # Python, "" for none
    name: str
    operands: list


# ---- Reading ----

REGISTER = re.compile(r"%(p|rs|rd|r)(\d+)$")
STATEMENT = re.compile(r"(?:@(!?)(%p\d+)\s+)?([a-z][\w.]*)(?:\s+(.*))?;$")
SPECIAL = {"%tid.x": "tid", "%ctaid.x": "ctaid", "%ntid.x": "ntid", "%nctaid.x": "nctaid"}


def split_operands(text):
    """At commas outside of braces."""
    return [part.strip() for part in re.findall(r"(?:\{[^}]*\}|[^,{])+", text or "")]


class Text:
    """What a file with one kernel says, as it says it."""

    def __init__(self, source):
        self.version = self.target = self.name = None
        self.n_threads = self.param_bytes = 0
        self.param_name = ""
        self.registers = {}  # prefix: (bits, how many)
        self.shared = {}  # name: (alignment, n_bytes)
        self.body = []  # instructions, and labels as text
        self.depth = 0
        for number, line in enumerate(source.split("\n"), 1):
            line = re.sub(r"//.*", "", line).strip()
            if line and not self._directive(line, number) and not self._label(line):
                self._instruction(line, number)
        if self.depth or not self.body:
            raise PtxError("the text ends within a kernel")

    def _directive(self, line, number):
        for pattern, take in self._directives():
            match = re.fullmatch(pattern, line)
            if match:
                take(*match.groups())
                return True
        if line.startswith("."):
            raise PtxError("line %d: unknown directive: %s" % (number, line))
        return False

    def _directives(self):
        return (
            (r"\.version (\S+)", lambda v: setattr(self, "version", v)),
            (r"\.target (\S+)", lambda t: setattr(self, "target", t)),
            (r"\.address_size 64", lambda: None),
            (r"\.visible \.entry (\w+)\(", lambda n: setattr(self, "name", n)),
            (r"\.param \.align 8 \.b8 (\w+)\[(\d+)\]", self._param),
            (r"\)", lambda: None),
            (r"\.maxntid (\d+), 1, 1", lambda n: setattr(self, "n_threads", int(n))),
            (r"\{", lambda: self._deeper(1)),
            (r"\}", lambda: self._deeper(-1)),
            (r"\.reg \.(pred|b16|b32|b64)\s+%(p|rs|rd|r)<(\d+)>;", self._register),
            (r"\.shared \.align (\d+) \.b8 (\w+)\[(\d+)\];", self._shared),
            (r'\.pragma "nounroll";', lambda: None),
        )

    def _deeper(self, by):
        self.depth += by
        if self.depth not in (0, 1):
            raise PtxError("braces within a kernel")

    def _param(self, name, n_bytes):
        if self.param_bytes:
            raise PtxError("a kernel with several parameters")
        self.param_name, self.param_bytes = name, int(n_bytes)

    def _register(self, kind, prefix, n):
        self.registers[prefix] = (1 if kind == "pred" else int(kind[1:]), int(n))

    def _shared(self, alignment, name, n_bytes):
        self.shared[name] = (int(alignment), int(n_bytes))

    def _label(self, line):
        if not re.fullmatch(r"\$?\w+:", line):
            return False
        self.body.append(line[:-1])
        return True

    def _instruction(self, line, number):
        match = STATEMENT.fullmatch(line)
        if not match or self.depth != 1:
            raise PtxError("line %d is not understood: %s" % (number, line))
        no, predicate, name, operands = match.groups()
        guard = ("not " if no else "") + predicate[1:] if predicate else ""
        self.body.append(Instruction(number, guard, name, split_operands(operands)))


# ---- Instructions as Python ----


def bits_of(kind):
    if kind == "pred":
        return 1
    if not re.fullmatch(r"[usb](8|16|32|64)", kind):
        raise PtxError("unknown type .%s" % kind)
    return int(kind[1:])


def mask_of(bits):
    return hex((1 << bits) - 1)


# What becomes of a and b, unsigned numbers of w bits whose mask is m. A shift takes its 32 bits of b; more than there
# are is all of them.
FORMS = {
    "add": "(%(a)s + %(b)s) & %(m)s",
    "sub": "(%(a)s - %(b)s) & %(m)s",
    "mul.lo": "(%(a)s * %(b)s) & %(m)s",
    "mul.wide": "%(a)s * %(b)s",
    "div": "%(a)s // %(b)s",
    "rem": "%(a)s %% %(b)s",
    "min": "min(%(a)s, %(b)s)",
    "max": "max(%(a)s, %(b)s)",
    "and": "%(a)s & %(b)s",
    "or": "%(a)s | %(b)s",
    "shl": "(%(a)s << min(%(b)s, %(w)d)) & %(m)s",
    "shr": "%(a)s >> min(%(b)s, %(w)d)",
    "not": "%(a)s ^ %(m)s",
    "popc": "bin(%(a)s).count('1')",
    "clz": "%(w)d - (%(a)s).bit_length()",
}
# That give the same bits whether there is a sign or not. Of others with a sign, the kernel has none.
OF_ANY_SIGN = ("add", "sub", "mul.lo")
COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


class Translator:
    """Python for single instructions of a text."""

    def __init__(self, text, shared_addresses):
        self.text = text
        self.shared_addresses = shared_addresses

    # Operands

    def register(self, operand):
        """(name in Python, bits)"""
        match = REGISTER.match(operand)
        if not match:
            raise PtxError("%s is not a register" % operand)
        bits, n = self.text.registers.get(match.group(1), (0, 0))
        if int(match.group(2)) >= n:
            raise PtxError("register %s is not declared" % operand)
        return operand[1:], bits

    def target(self, operand, bits, wider=False):
        name, has = self.register(operand)
        if has != bits and not (wider and has > bits):
            raise PtxError("%s has %d bits, not %d" % (operand, has, bits))
        return name

    def value(self, operand, bits):
        """Python of a register or a number, both of so many bits."""
        if re.fullmatch(r"-?(\d+|0[xX][0-9a-fA-F]+)", operand):
            number = int(operand, 0)
            if not -(1 << (bits - 1)) <= number < 1 << bits:
                raise PtxError("%s does not fit into %d bits" % (operand, bits))
            return str(number & ((1 << bits) - 1))
        return self.target(operand, bits)

    def address(self, operand, bits):
        match = re.fullmatch(r"\[([%\w]+)(?:\+(-?\d+))?\]", operand)
        if not match:
            raise PtxError("address %s is not understood" % operand)
        if match.group(1) in self.shared_addresses:
            if bits != 32:
                raise PtxError("%s is a place in shared memory" % operand)
            return str(self.shared_addresses[match.group(1)] + int(match.group(2) or 0))
        base = self.target(match.group(1), bits)
        return "(%s + %s) & %s" % (base, match.group(2), mask_of(bits)) if match.group(2) else base

    # Groups of instructions; each returns lines of Python

    def translate(self, i):
        parts = i.name.split(".")
        for what in (self.simple, self.compare, self.move, self.memory, self.barrier):
            lines = what(i.name, parts, i.operands)
            if lines is not None:
                return lines
        raise PtxError("unknown instruction %s" % i.name)

    def simple(self, name, parts, operands):
        base, kind = ".".join(parts[:-1]), parts[-1]
        if base not in FORMS or (kind[0] == "s" and base not in OF_ANY_SIGN):
            return None
        bits, unary = bits_of(kind), "%(b)s" not in FORMS[base]
        self.count(name, operands, 2 if unary else 3)
        result_bits = 32 if base in ("popc", "clz") else bits * 2 if base == "mul.wide" else bits
        names = {"m": mask_of(bits), "w": bits, "a": self.value(operands[1], bits)}
        if not unary:
            names["b"] = self.value(operands[2], 32 if base in ("shl", "shr") else bits)
        return ["%s = %s" % (self.target(operands[0], result_bits), FORMS[base] % names)]

    @staticmethod
    def count(name, operands, n):
        if len(operands) != n:
            raise PtxError("%s with %d operands" % (name, len(operands)))

    def compare(self, name, parts, operands):
        if parts[0] == "setp" and len(parts) == 3 and parts[1] in COMPARISONS:
            if parts[2][0] != "u" and parts[1] not in ("eq", "ne"):
                return None
            self.count(name, operands, 3)
            a, b = (self.value(o, bits_of(parts[2])) for o in operands[1:])
            return ["%s = %s %s %s" % (self.target(operands[0], 1), a, COMPARISONS[parts[1]], b)]
        if parts[0] == "selp" and len(parts) == 2:
            self.count(name, operands, 4)
            bits = bits_of(parts[1])
            a, b = (self.value(o, bits) for o in operands[1:3])
            to, p = self.target(operands[0], bits), self.target(operands[3], 1)
            return ["%s = %s if %s else %s" % (to, a, p, b)]
        return None

    def move(self, name, parts, operands):
        if name == "cvta.to.global.u64":
            return ["%s = %s" % (self.target(operands[0], 64), self.value(operands[1], 64))]
        if name in ("cvt.u32.u64", "cvt.u64.u32"):
            to, bits = self.target(operands[0], bits_of(parts[1])), bits_of(parts[1])
            return ["%s = %s & %s" % (to, self.value(operands[1], bits_of(parts[2])), mask_of(bits))]
        if parts[0] != "mov" or len(parts) != 2:
            return None
        self.count(name, operands, 2)
        bits, source = bits_of(parts[1]), operands[1]
        to = self.target(operands[0], bits)
        if source in SPECIAL and bits == 32:
            return ["%s = %s" % (to, SPECIAL[source])]
        if source in self.shared_addresses:
            return ["%s = %d" % (to, self.shared_addresses[source])]
        return ["%s = %s" % (to, self.value(source, bits))]

    def memory(self, name, parts, operands):
        if name == "atom.shared.or.b32":
            to, at = self.target(operands[0], 32), self.address(operands[1], 32)
            return ["%s = shared.atomic_or(tid, %s, %s)" % (to, at, self.value(operands[2], 32))]
        if parts[0] not in ("ld", "st"):
            return None
        rest = parts[1:-1]
        space = rest.pop(0) if rest and rest[0] in ("param", "global", "shared") else ""
        n = int(rest.pop(0)[1:]) if rest and rest[0] in ("v2", "v4") else 1
        kind = parts[-1]
        if rest or kind[0] == "s" or (parts[0] == "st" and space == "param"):
            return None
        registers, place = operands if parts[0] == "ld" else reversed(operands)
        names = re.fullmatch(r"\{(.*)\}", registers)
        names = [r.strip() for r in names.group(1).split(",")] if names else [registers]
        if len(names) != n:
            raise PtxError("%s of %d registers" % (name, len(names)))
        if parts[0] == "ld":
            return self.load(space, kind, names, place)
        return self.store(space, kind, names, place)

    def load(self, space, kind, names, place):
        bits = bits_of(kind)
        n_bytes = bits // 8 * len(names)
        targets = [self.target(r, bits, wider=True) for r in names]
        if space == "param":
            match = re.fullmatch(r"\[(\w+)(?:\+(\d+))?\]", place)
            if not match or match.group(1) != self.text.param_name:
                raise PtxError("parameter %s is not known" % place)
            first = "param(%s, %d)" % (match.group(2) or 0, n_bytes)
        elif space == "shared":
            first = "shared.load(tid, %s, %d)" % (self.address(place, 32), n_bytes)
        else:
            first = "memory.load(%s, %d)" % (self.address(place, 64), n_bytes)
        if len(targets) == 1:
            return ["%s = %s" % (targets[0], first)]
        return ["loaded = " + first] + [
            "%s = loaded >> %d & %s" % (to, bits * k, mask_of(bits))
            for k, to in enumerate(targets)]

    def store(self, space, kind, names, place):
        bits = bits_of(kind)
        values = []
        for k, r in enumerate(names):
            value = self.target(r, bits, wider=True) if r[0] == "%" else self.value(r, bits)
            values.append("(%s & %s) << %d" % (value, mask_of(bits), bits * k))
        where = "shared.store(tid, %s" % self.address(place, 32) if space == "shared" else \
            "memory.store(%s" % self.address(place, 64)
        return ["%s, %d, %s)" % (where, bits // 8 * len(names), " | ".join(values))]

    @staticmethod
    def barrier(name, _parts, operands):
        return ["yield LINE"] if name == "bar.sync" and operands == ["0"] else None


# ---- A kernel as Python ----


class Kernel:
    """thread(tid, ctaid, ntid, nctaid, param, memory, shared) is a generator; ptx_lines says which
    line of the text a line of Python is."""

    def __init__(self, source, shared_begin):
        self.text = Text(source)
        self.shared_bytes, addresses = 0, {}
        for name, (alignment, n_bytes) in self.text.shared.items():
            at = -(-(shared_begin + self.shared_bytes) // alignment) * alignment
            addresses[name], self.shared_bytes = at, at + n_bytes - shared_begin
        self.translator = Translator(self.text, addresses)
        self.blocks, self.places = self._cut()
        self.python = ["def thread(tid, ctaid, ntid, nctaid, param, memory, shared):"]
        self.ptx_lines = [0, 0]
        self._emit(0, 1, "at, rounds = 0, 0")
        self._emit(0, 1, "if rounds: yield")  # a generator, with and without barriers
        self._emit(0, 1, "while True:")
        self._emit_choice(0, len(self.blocks), 2)
        space = {"PtxError": PtxError}
        exec(compile("\n".join(self.python), "<ptx>", "exec"), space)
        self.thread = space["thread"]

    def _cut(self):
        """Into stretches that are entered at their begin only, and which labels stand where."""
        blocks, places = [[]], {}
        for item in self.text.body:
            if isinstance(item, str):
                if blocks[-1]:
                    blocks.append([])
                places[item] = len(blocks) - 1
                continue
            blocks[-1].append(item)
            if item.name.startswith("bra"):
                blocks.append([])
        return blocks, places

    def _emit(self, line, depth, python):
        self.python.append(" " * depth + python.replace("LINE", str(line)))
        self.ptx_lines.append(line)

    def _emit_choice(self, first, end, depth):
        if end - first == 1:
            self._emit_block(first, depth)
            return
        middle = (first + end) // 2
        self._emit(0, depth, "if at < %d:" % middle)
        self._emit_choice(first, middle, depth + 1)
        self._emit(0, depth, "else:")
        self._emit_choice(middle, end, depth + 1)

    def _emit_block(self, number, depth):
        for i in self.blocks[number]:
            try:
                lines = self._flow(i, number) or self.translator.translate(i)
            except PtxError as e:
                raise PtxError("line %d: %s" % (i.line, e)) from None
            if i.guard:
                self.translator.target("%" + i.guard.split()[-1], 1)
                self._emit(i.line, depth, "if %s:" % i.guard)
            for line in lines:
                self._emit(i.line, depth + bool(i.guard), line)
        self._emit(0, depth, "at = %d" % (number + 1))

    def _flow(self, i, number):
        if i.name == "ret":
            return ["return"]
        if i.name not in ("bra", "bra.uni"):
            return None
        if len(i.operands) != 1 or i.operands[0] not in self.places:
            raise PtxError("no label %s" % i.operands)
        to = self.places[i.operands[0]]
        if to > number:
            return ["at = %d" % to, "continue"]
        return ["rounds += 1",
                "if rounds > %d: raise PtxError('this loop does not end')" % MAX_ROUNDS,
                "at = %d" % to, "continue"]
