#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What programs rely on is in abi.txt, and abi.py says what to do about each kind of change: see docs/VERSIONS.md."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from ref_protocol import Skip, expect, expect_equal, run_tests

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAP, HEADER, LOADER, STAGE = "src/libtokmap.map", "include/tokmap.h", "include/tokmap_loader.h", "include/tokmap_stage.h"
FILES = [str(path.relative_to(ROOT)) for path in (ROOT / "include").glob("*.h")] + [
    "Makefile", MAP, "tokenize_tools/tokenizer/library/libtokmap_tokenizer.map", "tests/house/abi.txt"]
BREAKS, TRIES, ADDS = "raise ABI", "Rename it", "These break nothing"


def copy_tree(folder):
    if not shutil.which(os.environ.get("CC", "cc").split()[0]):
        raise Skip("no C compiler")
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)


def change(folder, name, old, new):
    text = (folder / name).read_text()
    expect_equal(text.count(old), 1, "%r in %s" % (old, name))
    (folder / name).write_text(text.replace(old, new))


def abi(folder, *arguments):
    """What abi.py says of the tree, after a word for its exit status."""
    done = subprocess.run([sys.executable, str(ROOT / "tests/house/abi.py"), *arguments], capture_output=True,
                          text=True, env={**os.environ, "TOKMAP_ROOT": str(folder)})
    expect_equal(done.stderr, "", "stderr")
    return ("ok: " if done.returncode == 0 else "differs: ") + done.stdout


def expect_said(folder, line, advice):
    said = abi(folder)
    expect(said.startswith("differs: ") and line in said and advice in said, "%r: %s" % (line, said))
    expect_equal([a for a in (BREAKS, TRIES, ADDS) if a in said], [advice], said)
    kept = (folder / "tests/house/abi.txt").read_bytes()
    if advice == ADDS:
        expect_equal((abi(folder, "--write"), abi(folder)), ("ok: ", "ok: "), "after --write")
    else:
        expect(BREAKS in abi(folder, "--write") or TRIES in abi(folder, "--write"), "--write")
        expect_equal((folder / "tests/house/abi.txt").read_bytes(), kept, "abi.txt")


NODE = "/* Experimental:"
NEXT = ("include/tokmap.h", 'VERSION_TEXT "0.2', 'VERSION_TEXT "0.3')  # which makes 0.2 a release
MORE = ("TOKMAP_API void tokmap_loader_close(", "TOKMAP_API int tokmap_loader_more(void);\nTOKMAP_API void tokmap_loader_close(")
# Name of the test, the changes (file, old, new), what is said, and the advice.
CHANGES = [
    ("another_type_breaks", [(LOADER, "uint32_t batch_rows;", "int32_t batch_rows;")],
     "tokmap_loader_options.batch_rows: was at 28, 4 bytes: uint32_t, now at 28, 4 bytes: int32_t", BREAKS),
    ("a_field_in_padding_breaks", [(HEADER, "    double fraction; ", "    uint32_t more;\n    double fraction; ")],
     "tokmap_verify_options.more: was not there, now at 12, 4 bytes", BREAKS),
    ("a_field_of_a_struct_that_cannot_grow_breaks",
     [(HEADER, "    size_t text_bytes;\n} tokmap_value;", "    uint64_t text_bytes[2];\n} tokmap_value;")],
     "tokmap_value: was 40 bytes, now 48 bytes", BREAKS),
    ("another_value_breaks", [(LOADER, "TOKMAP_IO_READ = 4", "TOKMAP_IO_READ = 5")], "TOKMAP_IO_READ: was = 4, now = 5", BREAKS),
    ("another_macro_breaks", [("include/tokmap_writer.h", "TOKMAP_MAX_NOTE_BYTES 65536", "TOKMAP_MAX_NOTE_BYTES 65537")],
     "TOKMAP_MAX_NOTE_BYTES: was = 65536, now = 65537", BREAKS),
    ("another_parameter_breaks", [(LOADER, "tokmap_loader_seek(tokmap_loader *l, uint64_t", "tokmap_loader_seek(tokmap_loader *l, int64_t")],
     "tokmap_loader_seek(): was TOKMAP_0.2: ", BREAKS),
    ("a_call_that_is_gone_breaks", [(LOADER, "TOKMAP_API uint64_t tokmap_loader_position(const tokmap_loader *l);", "")],
     "tokmap_loader_position(): was TOKMAP_0.2: uint64_t(const tokmap_loader *), now not there", BREAKS),
    ("a_call_that_is_not_exported_is_found", [(MAP, "    tokmap_loader_position;\n", "")],
     "now not exported: uint64_t(const tokmap_loader *)", BREAKS),
    ("a_field_at_the_end_is_fine", [(LOADER, "} tokmap_loader_options;", "    uint64_t more;\n} tokmap_loader_options;")],
     "tokmap_loader_options: was 184 bytes, may grow, now 192 bytes, may grow", ADDS),
    ("a_call_in_the_node_of_a_new_version_is_fine",
     [NEXT, (LOADER, *MORE), (MAP, NODE, "TOKMAP_0.3 {\nglobal:\n    tokmap_loader_more;\n} TOKMAP_0.2;\n\n" + NODE)],
     "tokmap_loader_more(): was not there, now TOKMAP_0.3: int(void)", ADDS),
    ("a_call_in_a_node_that_was_released_breaks",
     [NEXT, (LOADER, *MORE), (MAP, "    tokmap_loader_next;\n", "    tokmap_loader_next;\n    tokmap_loader_more;\n")],
     "tokmap_loader_more(): was not there, now TOKMAP_0.2: int(void)", BREAKS),
    ("the_stage_may_not_change_alone", [(STAGE, "int32_t no_thread;", "uint32_t no_thread;")],
     "tokmap_stage_options.no_thread: was ", TRIES),
    ("the_stage_may_change_with_its_node",
     [(STAGE, "int32_t no_thread;", "uint32_t no_thread;"), (MAP, "TOKMAP_STAGE_0.2", "TOKMAP_STAGE_0.3")],
     "tokmap_stage_open(): was TOKMAP_STAGE_0.2: ", ADDS),
    ("another_number_in_the_soname_allows_everything",
     [(LOADER, "uint32_t batch_rows;", "uint64_t batch_rows;"), ("Makefile", "ABI := 0\n", "ABI := 1\n")],
     "ABI: was 0, now 1", ADDS),
]


def run_change(changes, line, advice):
    with tempfile.TemporaryDirectory() as name:
        copy_tree(pathlib.Path(name))
        for one in changes:
            change(pathlib.Path(name), *one)
        expect_said(pathlib.Path(name), line, advice)


def the_tree_is_what_abi_txt_says():
    with tempfile.TemporaryDirectory() as name:
        copy_tree(pathlib.Path(name))
        expect_equal(abi(pathlib.Path(name)), "ok: ", "abi.py")


if os.environ.get("TOKMAP_SANITIZED"):
    print("skip abi: nothing of it runs in a sanitizer")
    sys.exit(77)
sys.exit(run_tests([("the_tree_is_what_abi_txt_says", the_tree_is_what_abi_txt_says)] +
                   [(name, lambda case=case: run_change(*case)) for name, *case in CHANGES]))
