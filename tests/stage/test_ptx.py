#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The kernel as it is shipped, src/stage/cuda/expand.ptx, without a device: run in ptx_machine on images
of this test's own making against a plain reference; that it is the text of its source; that the
toolkit takes it, and that the driver's interface is what we say, where a toolkit is there. And what
a program hears that has only the toolkit's stub of a driver."""

import ctypes
import os
import random
import re
import shutil
import struct
import subprocess
import sys

from ptx_machine import GlobalMemory, Machine, PtxError
from ref_protocol import Skip, expect, expect_equal, run_in_folders

LONG = os.environ.get("TOKMAP_LONG") == "all"
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PTX = os.path.join(ROOT, "src", "stage", "cuda", "expand.ptx")
CUDA = os.environ.get("CUDA_HOME", "/usr/local/cuda")
STUBS = os.path.join(CUDA, "lib64", "stubs")
BUILD = os.environ.get("TOKMAP_BUILD")
DEVICES = (75, 80, 86, 89, 90, 100, 120)  # that ptxas must know
TILE, THREADS = 2048, 256
MAX_ROWS = 2**24  # of a loader
MASKED = 1
OUTPUTS = ("inputs", "labels", "position_ids", "document_ids", "cu_seqlens")


def read(*path):
    with open(os.path.join(ROOT, *path)) as f:
        return f.read()


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, **options)
    expect(done.returncode == 0, "%s: %s" % (" ".join(map(str, command[:3])), done.stderr[-800:]))
    return done.stdout + done.stderr


def find_program(name):
    path = shutil.which(name) or shutil.which(name, path=os.path.join(CUDA, "bin"))
    if not path:
        raise Skip("%s not found" % name)
    return path


# ---- Batches ----


class Row:
    def __init__(self, rng, plan):
        self.width = rng.choice(plan["widths"])
        length = plan["length"]
        short = plan["short"] and rng.random() < 0.5
        edges = [n for n in (1, TILE - 1, TILE, 2 * TILE - 1) if n < length]
        n = rng.choice([rng.randint(1, length)] + edges) if short else length
        self.tokens = [rng.getrandbits(8 * self.width) for _ in range(n + 1)]
        self.labels, self.n_whole = self.tokens[1:], n
        self.ids = {}
        if plan["slices"] > 1:  # of a whole row; ids and labels are given, so they may be any
            self.labels = [rng.getrandbits(8 * self.width) for _ in range(n)]
            self.n_whole = rng.choice((length * plan["slices"], rng.randint(1, length * plan["slices"])))
            self.ids = {name: [rng.getrandbits(32) for _ in range(length)] for name in ("position_ids", "document_ids")}
        self.starts = [0] + [i for i in range(1, self.n_whole) if cut(rng, plan["cuts"], i)]
        self.mask = None
        if plan["masks"] and rng.random() < 0.8:
            self.mask = [rng.random() < 0.5 for _ in range(length)]
        offset = plan["offset"] if plan["offset"] is not None else rng.randrange(16)
        self.offset = offset // self.width * self.width
        self.n_inputs = n

    def bytes(self):
        letter = "H" if self.width == 2 else "I"
        tokens = struct.pack("<%d%s" % (len(self.tokens), letter), *self.tokens)
        if not self.ids:
            return tokens
        return tokens + bytes(-len(tokens) % 4) + struct.pack("<%d%s" % (len(self.labels), letter), *self.labels)


def cut(rng, style, i):
    """Whether a document begins at input i."""
    if style == "tiles":
        return (i + 1) % TILE <= 2 and rng.random() < 0.7
    if style == "words":
        return (i + 1) % 32 <= 2 and rng.random() < 0.6
    return rng.random() < style


def plan_of(length, **more):
    plan = {"n_rows": 1, "length": length, "widths": (2, 4), "short": False, "cuts": 0.05,
            "masks": True, "offset": None, "outputs": OUTPUTS,
            "row_positions": False, "documents": True, "input_bytes": 4, "label_bytes": 8,
            "pad": 50256, "ignore": -100, "n_cu": None, "slices": 1}
    return {**plan, **more}


def random_plan(rng, max_length):
    length = rng.choice((rng.randint(1, 70), rng.randint(1, max_length)))
    outputs = OUTPUTS if rng.random() < 0.5 else [o for o in OUTPUTS if rng.random() < 0.5]
    documents = rng.random() < 0.8
    row_positions = not documents or rng.random() < 0.3
    if not documents:
        outputs = [o for o in outputs if o not in ("document_ids", "cu_seqlens")]
    return plan_of(
        length, n_rows=rng.randint(1, 4), short=rng.random() < 0.5, masks=rng.random() < 0.6,
        cuts=rng.choice((0, 0.01, 0.1, 0.7, 1, "words", "tiles")),
        outputs=outputs, row_positions=row_positions,
        documents=documents, input_bytes=rng.choice((4, 8)), label_bytes=rng.choice((4, 8)),
        pad=rng.getrandbits(32), ignore=rng.choice((-100, -1, -2**63, 2**40 + 5)),
        n_cu=rng.choice((None, rng.randint(1, 600))))


# ---- Images, by the words of src/stage/expand_job.h ----


class Image:
    """The table stands first; everything else in random order, with other bytes in between."""

    def __init__(self, rng, rows, length, documents, slices=1):
        self.rng, self.bytes = rng, bytearray(32 * len(rows))
        self.known = bytearray(b"\1" * 32 * len(rows))
        self.n_tiles = -(-length // TILE)
        self.places = {}
        boundaries, tiles, firsts, counts = list_boundaries(rows, length * slices, self.n_tiles)
        parts = [(("tokens", r), row.bytes(), 16, row.offset) for r, row in enumerate(rows)]
        parts += [(("mask", r), self.mask_bytes(row.mask), 4, 0) for r, row in enumerate(rows)
                  if row.mask]
        if documents:
            parts += [("boundaries", struct.pack("<%di" % len(boundaries), *boundaries), 4, 0)]
            parts += [("tiles", struct.pack("<%dI" % len(tiles), *tiles), 4, 0)] if slices == 1 else []
        parts += [(name, struct.pack("<%dI" % (length * len(rows)), *(i for row in rows for i in row.ids[name])), 4, 0)
                  for name in rows[0].ids]
        rng.shuffle(parts)
        for name, data, alignment, offset in parts:
            self.put(name, data, alignment, offset)
        self.fill_up(16)
        self.n_boundaries = len(boundaries) if documents else rng.getrandbits(32)
        for r, row in enumerate(rows):
            struct.pack_into("<Q6I", self.bytes, 32 * r, self.places["tokens", r],
                             len(row.tokens), row.width, MASKED if row.mask else 0,
                             firsts[r] if documents else rng.getrandbits(32),
                             counts[r] if documents else rng.getrandbits(32),
                             self.places.get(("mask", r), rng.getrandbits(32)))

    def put(self, name, data, alignment, offset):
        self.bytes += self.rng.randbytes(self.rng.randrange(40))
        self.fill_up(alignment)
        self.bytes += self.rng.randbytes(offset)
        self.known += bytes(offset)
        self.places[name] = len(self.bytes)
        self.bytes += data
        self.known += b"\1" * len(data)

    def fill_up(self, alignment):
        self.bytes += self.rng.randbytes(-len(self.bytes) % alignment)
        self.known += bytes(len(self.bytes) - len(self.known))

    def mask_bytes(self, mask):
        """Bits behind the last input may be anything."""
        bits = mask + [self.rng.random() < 0.5 for _ in range(-len(mask) % 32)]
        return sum(bit << i for i, bit in enumerate(bits)).to_bytes(len(bits) // 8, "little")


def list_boundaries(rows, length, n_tiles):
    """Of all rows; for each tile of each the last one at or before it; the first one and the number
    of each row's. What a short row lacks counts as a document."""
    boundaries, tiles, firsts, counts = [], [], [], []
    for r, row in enumerate(rows):
        own = [r * length + s for s in row.starts]
        own += [r * length + row.n_whole] if row.n_whole < length else []
        for t in range(n_tiles):
            before = [k for k, boundary in enumerate(own) if boundary <= r * length + t * TILE]
            tiles.append(len(boundaries) + before[-1])
        firsts.append(len(boundaries))
        counts.append(len(own))
        boundaries += own
    return boundaries, tiles, firsts, counts


# ---- The reference, token by token ----


def reference(rows, plan):
    length = plan["length"]
    wanted = {name: [] for name in OUTPUTS}
    for r, row in enumerate(rows):
        start = document = 0
        for i in range(length):
            there = i < row.n_inputs
            if i in row.starts[1:] or i == row.n_inputs:
                start, document = i, document + 1
            counts = there and (row.mask is None or row.mask[i])
            wanted["inputs"].append(row.tokens[i] if there else plan["pad"])
            wanted["labels"].append(row.labels[i] if counts else plan["ignore"])
            position = i if plan["row_positions"] else i - start
            wanted["position_ids"].append(position if there else 0)
            wanted["document_ids"].append(document)
        whole = length * plan["slices"]
        wanted["cu_seqlens"] += [r * whole + s for s in row.starts]
        wanted["cu_seqlens"] += [r * whole + row.n_whole] if row.n_whole < whole else []
    for name in rows[0].ids:
        wanted[name] = [i for row in rows for i in row.ids[name]]
    n_cu = plan["n_cu"] or len(wanted["cu_seqlens"]) + 1
    wanted["cu_seqlens"] += [whole * len(rows)] * n_cu
    del wanted["cu_seqlens"][n_cu:]
    return wanted


# ---- Runs ----


def width_of(name, plan):
    return plan[name[:5] + "_bytes"] if name in ("inputs", "labels") else 4


def words_of(rows, image, length):
    """Addresses of the 16-byte words that hold tokens, once for each tile that needs them."""
    words = []
    for r, row in enumerate(rows):
        begin = image.begin + struct.unpack_from("<Q", image.data, 32 * r)[0]
        for at in range(0, length, TILE):
            n = min(TILE + 1, len(row.tokens) - at)
            first = begin + at * row.width
            words += range(first // 16 * 16, first + n * row.width, 16) if n > 0 else []
    return sorted(words)


def check_plan(machine, plan, rng):
    memory = GlobalMemory()
    rows = [Row(rng, plan) for _ in range(plan["n_rows"])]
    image = Image(rng, rows, plan["length"], plan["documents"], plan["slices"])
    wanted = reference(rows, plan)
    at = memory.add("image", image.bytes, 64, 16 * rng.randrange(4))
    at.known = image.known
    outputs = {}
    for name in plan["outputs"]:
        width = width_of(name, plan)
        outputs[name] = memory.add(name, bytes(len(wanted[name]) * width), 256,
                                   rng.randrange(0, 256, width), False)
    addresses = [outputs[name].begin if name in outputs else 0 for name in OUTPUTS]
    places = [image.places.get(name, 0) for name in ("boundaries", "tiles")]
    labels_at = -(-(plan["length"] + 1) * rows[0].width // 4) * 4 if rows[0].ids else 0
    ids = [image.places.get(name, 0) for name in ("position_ids", "document_ids")]
    params = struct.pack("<6Qq16I", at.begin, *addresses, plan["ignore"], len(rows), plan["length"],
                         plan["input_bytes"], plan["label_bytes"], plan["pad"],
                         plan["row_positions"], image.n_tiles, *places, image.n_boundaries,
                         len(wanted["cu_seqlens"]), len(rows) * plan["length"] * plan["slices"],
                         labels_at, *ids, rng.getrandbits(32))
    machine.launch(len(rows) * image.n_tiles, params, memory, rng.getrandbits(32))
    for name, region in outputs.items():
        check_output(name, region, wanted[name], plan)
    expect_equal(sorted(memory.wide_loads), words_of(rows, at, plan["length"]),
                 "loads of tokens")
    check_reads(memory, image, at.begin, len(rows))


def check_reads(memory, image, begin, n_rows):
    """A block reads its row of the table, its word of the tiles
    and the words of its mask once each; the boundaries are read by whoever needs them."""
    boundaries = image.places.get("boundaries", 0)
    for address, n in memory.narrow_loads.items():
        at = address - begin
        if boundaries and boundaries <= at < boundaries + 4 * image.n_boundaries:
            continue
        most = image.n_tiles if at < 32 * n_rows else 1
        expect(n <= most, "%d loads from byte %d of the image, by %d blocks" % (n, at, most))


def check_output(name, region, wanted, plan):
    width = width_of(name, plan)
    expect(all(region.written), "byte %d of %s is not written" % (region.written.find(0), name))
    got = list(struct.unpack("<%d%s" % (len(wanted), "q" if width == 8 else "I"), region.data))
    wanted = [value if width == 8 else value & 0xFFFFFFFF for value in wanted]
    for i, (a, b) in enumerate(zip(got, wanted)):
        expect(a == b, "%s of row %d, %d of %d inputs: %d, not %d; %r" % (
            name, i // plan["length"], i % plan["length"], plan["length"], a, b, plan))


def machine():
    return Machine(read(PTX))


def run_plans(plans, seed):
    m, n = machine(), 0
    for i, plan in enumerate(plans):
        check_plan(m, plan, random.Random(seed + i))
        n += 1
    return "%d batches" % n


def rows_at_every_alignment(folder):
    lengths = (1, 2, 7, 8, 9, 33, TILE + 1) if LONG else (1, 8, 33)
    plans = [plan_of(n, widths=(width,), offset=offset)
             for width in (2, 4) for offset in range(0, 16, width) for n in lengths]
    plans += [plan_of(TILE + 40, widths=(width,), offset=offset, outputs=("labels",))
              for width in (2, 4) for offset in (0, 16 - width)]
    return run_plans(plans, 1)


def tiles_and_words_at_their_edges(folder):
    lengths = [31, 32, 33, 64, 65, 255, 256, 257, TILE - 1, TILE, TILE + 1]
    lengths += [TILE + 2, 2 * TILE - 1, 2 * TILE, 2 * TILE + 1, 3 * TILE] if LONG else []
    cuts = ("words", "tiles", 1, 0) if LONG else ("words", "tiles")
    return run_plans([plan_of(n, cuts=c, short=LONG and n % 2 == 1) for n in lengths for c in cuts]
                     + [plan_of(2 * TILE + 5, cuts="tiles", short=True, n_rows=2)], 1000)


def many_documents_and_few(folder):
    """More of them in a tile than a block has threads; and so few that words without any lie in
    between, and in a row of many tiles."""
    plans = [plan_of(n, cuts=1, masks=False) for n in (300, TILE + 1)]
    plans += [plan_of(900, cuts=0.007, n_rows=3, outputs=OUTPUTS[2:]) for _ in range(2)]
    plans += [plan_of(5 * TILE + 1, cuts=0.001, outputs=OUTPUTS[2:])]
    return run_plans(plans * (3 if LONG else 1), 1500)


def every_choice_of_outputs(folder):
    plans = []
    for bits in range(1, 32):
        outputs = [name for k, name in enumerate(OUTPUTS) if bits >> k & 1]
        for k in range(8 if LONG else 2):
            plans.append(plan_of(40 + bits, short=True, n_rows=2, outputs=outputs, n_cu=50 + bits,
                                 row_positions=bool(k & 1), input_bytes=4 + 4 * (bits + k // 2 & 1),
                                 label_bytes=4 + 4 * (bits // 2 + k // 4 & 1)))
    return run_plans(plans, 2000)


def slices_of_rows(folder):
    rng = random.Random(8)
    return run_plans([plan_of(rng.choice((1, 33, rng.randint(1, 300), TILE + 1)), slices=rng.choice((2, 4)),
                              widths=(rng.choice((2, 4)),), n_rows=rng.randint(1, 3), masks=rng.random() < 0.5,
                              cuts=rng.choice((0, 0.05, 1))) for _ in range(60 if LONG else 20)], 4000)


def random_batches(folder):
    rng = random.Random(7)
    return run_plans([random_plan(rng, 2500 if LONG else 400) for _ in range(120 if LONG else 60)],
                     3000)


def as_many_rows_as_a_loader_has(folder):
    """Two blocks of 2^24: they write their share of the boundaries, and come to an end."""
    memory, rng, n_cu = GlobalMemory(), random.Random(1), 3 * THREADS
    rows = [Row(rng, plan_of(1, cuts=0)) for _ in range(2)]
    image = Image(rng, rows, 1, True)
    at = memory.add("image", image.bytes, 64)
    cu = memory.add("cu_seqlens", bytes(4 * n_cu), read_only=False)
    params = struct.pack("<6Qq16I", at.begin, 0, 0, 0, 0, cu.begin, 0, MAX_ROWS, 1, 4, 4, 0, 0, 1,
                         image.places["boundaries"], image.places["tiles"], 2, n_cu, MAX_ROWS, 0, 0, 0, 0)
    machine().launch(MAX_ROWS, params, memory, blocks=(0, 1))
    expect_equal(cu.written.count(1), 4 * 2 * THREADS, "bytes of cu_seqlens that two blocks wrote")


# ---- The machine itself ----

TINY = """.version 6.3
.target sm_75
.address_size 64
.visible .entry k(
	.param .align 8 .b8 k_param_0[8]
)
.maxntid 4, 1, 1
{
	.reg .pred 	%%p<3>;
	.reg .b32 	%%r<6>;
	.reg .b64 	%%rd<3>;
	.shared .align 16 .b8 s[32];
	ld.param.u64 	%%rd1, [k_param_0];
	mov.u32 	%%r1, %%tid.x;
	mov.u32 	%%r2, s;
	shl.b32 	%%r3, %%r1, 2;
	add.s32 	%%r4, %%r2, %%r3;
	setp.eq.s32 	%%p1, %%r1, 0;
%s
	ret;
}
"""
# What must not pass, and a word of what it says.
CRIMES = (
    ("st.shared.u32 [%r2], %r1;", "races"),
    ("st.shared.u32 [%r4], %r1;\n bar.sync 0;\n ld.shared.u32 %r5, [%r2];\n"
     " st.shared.u32 [%r2], %r5;", "races"),
    ("st.shared.u32 [%r4], %r1;\n bar.sync 0;\n atom.shared.or.b32 %r5, [%r2], 1;\n"
     " ld.shared.u32 %r5, [%r2];", "races"),
    ("atom.shared.or.b32 %r5, [%r2], %r1;", "nothing was stored"),
    ("st.shared.u32 [%r4+20], %r1;", "at 32 of 32"),
    ("st.shared.v2.u32 [%r4], {%r1, %r1};", "not aligned"),
    ("@%p1 bra $A;\n bar.sync 0;\n$A:", "different barriers"),
    ("st.global.u32 [%rd1], %r1;", "written twice"),
    ("ld.global.u32 %r5, [%rd1];", "load from"),
    ("cvt.u64.u32 %rd2, %r3;\n add.s64 %rd2, %rd2, %rd1;\n st.global.u32 [%rd2+4], %r1;", "behind"),
    ("add.s32 %r5, %r5, 1;", "r5"),
    ("add.s32 %r1, %rd1, 1;", "has 64 bits"),
    ("add.s32 %r6, %r1, 1;", "not declared"),
    ("div.u32 %r5, %r2, %r1;", "zero"),
    ("$A:\n bra $A;", "does not end"),
    ("bra $A;", "no label"),
    ("ld.global.nc.u32 %r5, [%rd1];", "unknown instruction"),
    (".local .align 4 .b8 l[4];", "unknown directive"),
)


def run_tiny(body):
    memory = GlobalMemory()
    out = memory.add("out", bytes(16), read_only=False)
    code = "\n".join("\t" + line.strip() for line in body.split("\n"))
    Machine(TINY % code).launch(1, struct.pack("<Q", out.begin), memory, seed=3)


def the_machine_forgives_nothing(folder):
    for body, says in CRIMES:
        try:
            run_tiny(body)
        except PtxError as e:
            expect(says in str(e), "%s: %s" % (body, e))
        else:
            raise AssertionError("%s: was not noticed" % body)
    return "%d errors" % len(CRIMES)


# ---- The text ----


def the_text_is_that_of_its_sources(folder):
    head = read(PTX).split("\n")
    for line, path in ((2, "src/stage/cuda/expand.cu"), (3, "src/stage/expand_job.h")):
        n = run("cksum", os.path.join(ROOT, path)).split()[:2]
        name = os.path.basename(path)
        expect_equal(head[line], "// %s %s %s" % (name, *n), "sum of %s: make ptx" % name)


def the_text_asks_for_an_old_driver_and_no_local_memory(folder):
    text = read(PTX)
    m = Machine(text)
    expect_equal((m.text.version, m.text.target, m.text.name), ("6.3", "sm_75", "tokmap_expand"),
                 "version, target and name")
    expect_equal((m.text.n_threads, m.text.param_bytes), (THREADS, 120), "threads and parameters")
    expect(not re.search(r"\.local|\bcall|%SP", text), "it uses local memory")


def the_library_holds_the_text(folder):
    lines = [line for line in read(PTX).split("\n") if not line.startswith("//")]
    if BUILD is None:
        raise Skip("TOKMAP_BUILD is not set")
    with open(os.path.join(BUILD, "libtokmap.so"), "rb") as f:
        expect("\n".join(lines).encode() + b"\0" in f.read(), "libtokmap.so holds another text")


def nvcc_writes_the_text(folder):
    wanted = re.search(r"// expand.cu by nvcc (\S+);", read(PTX)).group(1)
    has = re.search(r"release ([0-9.]*),", run(find_program("nvcc"), "--version")).group(1)
    if has != wanted:
        raise Skip("nvcc %s is here, the text is by nvcc %s" % (has, wanted))
    script = os.path.join(ROOT, "tests", "stage", "make_ptx.sh")
    expect(run("bash", script, os.path.join(ROOT, "src", "stage", "cuda", "expand.cu")) == read(PTX),
           "nvcc writes another text: make ptx")


def ptxas_takes_it_for_every_device(folder):
    ptxas = find_program("ptxas")
    known = {int(n) for n in re.findall(r"'sm_(\d+)'", run(ptxas, "--help"))}
    for n in sorted(n for n in known if n >= 75):
        says = run(ptxas, "-v", "-arch=sm_%d" % n, PTX, "-o", folder / "out")
        expect("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in says,
               "sm_%d: %s" % (n, says))
    if not known.issuperset(DEVICES):
        raise Skip("this ptxas knows no sm_%s; it takes the text for the others" %
                   ", sm_".join(str(n) for n in sorted(set(DEVICES) - known)))
    return " ".join("sm_%d" % n for n in sorted(known) if n >= 75)


# ---- The driver's interface ----

CONSTANTS = {
    "DRIVER_OUT_OF_MEMORY": "CUDA_ERROR_OUT_OF_MEMORY",
    "DRIVER_STUB": "CUDA_ERROR_STUB_LIBRARY", "DRIVER_NO_DEVICE": "CUDA_ERROR_NO_DEVICE",
    "DRIVER_NOT_READY": "CUDA_ERROR_NOT_READY",
    "DRIVER_CAPTURE_IMPLICIT": "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
    "EVENT_BLOCKING": "CU_EVENT_BLOCKING_SYNC",
    "EVENT_NO_TIMING": "CU_EVENT_DISABLE_TIMING", "STREAM_NON_BLOCKING": "CU_STREAM_NON_BLOCKING",
    "REGISTER_PORTABLE": "CU_MEMHOSTREGISTER_PORTABLE",
    "CAPTURE_RELAXED": "CU_STREAM_CAPTURE_MODE_RELAXED",
    "COMPILE_LOG": "CU_JIT_ERROR_LOG_BUFFER", "COMPILE_LOG_BYTES": "CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES",
    "DRIVER_NO_COMPILER": "CUDA_ERROR_JIT_COMPILER_NOT_FOUND",
    "ATTRIBUTE_HOST_NUMA_ID": "CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID",
    "ATTRIBUTE_PCI_BUS": "CU_DEVICE_ATTRIBUTE_PCI_BUS_ID",
    "ATTRIBUTE_PCI_DEVICE": "CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID",
    "ATTRIBUTE_PCI_DOMAIN": "CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID",
}


def parameters(text):
    """Types of a list of parameters, without their names."""
    types = []
    for parameter in text.split(","):
        words = re.sub(r"\s+", " ", parameter).strip()
        types.append(re.sub(r"(?<=[\s*])\w+$", "", words).strip() if re.search(r"[\s*]\w+$", words)
                     else words)
    return types


def named_calls():
    """{name of the driver's: member of tokmap_i_driver}"""
    calls = dict(re.findall(r'\{"(cu\w+)", offsetof\(tokmap_i_driver, (\w+)\)\}',
                            read("src", "stage", "driver.c")))
    expect(len(calls) > 25, "driver.c names %d calls" % len(calls))
    return calls


def asserts_of_types(name, ours, theirs):
    expect_equal(len(ours), len(theirs), "number of parameters of %s" % name)
    lines = []
    for a, b in zip(ours, theirs):
        lines.append("SAME(%s, %s, %s);" % (name, a, b))
        if a.endswith("*") and a not in ("void *", "const void *"):
            lines.append("SAME(%s, %s, %s);" % (name, "__typeof__(*(%s)0)" % a,
                                                "__typeof__(*(%s)0)" % b))
    return lines


def the_interface_is_that_of_the_toolkit(folder):
    cc = os.environ.get("CC", "cc").split()
    include = os.path.join(CUDA, "include")
    if not os.path.exists(os.path.join(include, "cuda.h")) or not shutil.which(cc[0]):
        raise Skip("cuda.h of the toolkit, or a C compiler, not found")
    header = re.sub(r"/\*.*?\*/", "", read("src", "stage", "driver.h"), flags=re.S)
    ours = dict(re.findall(r"int \(\*(\w+)\)\(([^)]*)\);", header))
    values = re.findall(r"TOKMAP_I_(\w+) = \d+", header)
    expect_equal(sorted(values), sorted(CONSTANTS), "constants of driver.h")
    theirs = run(*cc, "-E", "-P", "-I" + include, "-include", "cuda.h", "-x", "c", os.devnull)
    calls = named_calls()
    expect_equal(sorted(calls.values()), sorted(ours), "calls of driver.h and driver.c")
    lines = ["#include <cuda.h>", '#include "stage/driver.h"',
             "#define CLASS(T) __builtin_classify_type(*(T *)0)",
             "#define SAME(name, A, B) _Static_assert(sizeof(A) == sizeof(B) && "
             'CLASS(A) == CLASS(B), #name ": " #A)']
    lines += ['_Static_assert((int)TOKMAP_I_%s == (int)%s, "%s");' % (a, b, a)
              for a, b in CONSTANTS.items()]
    for name, member in calls.items():
        found = re.search(r"\b%s\s*\(([^)]*)\)\s*;" % name, theirs)
        expect(found, "cuda.h does not declare %s" % name)
        lines += asserts_of_types(name, parameters(ours[member]), parameters(found.group(1)))
    (folder / "same.c").write_text("\n".join(lines) + "\n")
    folders = ["-I" + f for f in (include, os.path.join(ROOT, "include"), os.path.join(ROOT, "src"))]
    run(*cc, "-std=gnu11", "-fsyntax-only", *folders, folder / "same.c")
    return "%d calls, %d checks" % (len(calls), len(lines) - 4)


def stub():
    path = os.path.join(STUBS, "libcuda.so")
    if not os.path.exists(path):
        raise Skip("the stub of the toolkit, libcuda.so, not found")
    return path


def the_stub_exports_every_call(folder):
    library = ctypes.CDLL(stub())
    for name in named_calls():
        expect(hasattr(library, name), "libcuda.so has no %s" % name)


# ---- Programs without a driver ----


def a_program_hears_that_it_has_found_the_stub(folder):
    if BUILD is None or os.environ.get("TOKMAP_SANITIZED"):
        raise Skip("a library without sanitizers is not built")
    os.symlink(stub(), folder / "libcuda.so.1")
    says = run(os.path.join(BUILD, "test_stage"), "without_a_driver_or_a_device_it_says_so",
               env={"LD_LIBRARY_PATH": str(folder)})
    expect(all(word in says for word in ("libcuda.so.1", "stub", "LD_LIBRARY_PATH")), says)


def the_library_is_not_linked_with_a_driver(folder):
    if BUILD is None:
        raise Skip("TOKMAP_BUILD is not set")
    names = run(find_program("nm"), "-D", "-u", os.path.join(BUILD, "libtokmap.so")).split()
    expect("malloc" in " ".join(names), "nm says nothing of libtokmap.so")
    expect(not [n for n in names if re.match(r"(cu[A-Z]|cuda)", n)], "libtokmap.so needs CUDA")


if __name__ == "__main__":
    sys.exit(run_in_folders(""))
