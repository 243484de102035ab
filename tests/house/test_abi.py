#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What programs rely on is in abi.txt, and abi.py says what to do about each kind of change: see docs/VERSIONS.md."""

import os
import pathlib
import shutil
import subprocess
import sys

from ref_protocol import Skip, expect, expect_equal, run_in_folders

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAP, LOADER, STAGE = "src/libtokmap.map", "include/tokmap_loader.h", "include/tokmap_stage.h"
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


def the_tree_is_what_abi_txt_says(folder):
    expect_equal(abi(folder), "ok: ", "abi.py")


def another_type_breaks(folder):
    change(folder, LOADER, "uint32_t batch_rows;", "int32_t batch_rows;")
    expect_said(folder, "tokmap_loader_options.batch_rows: was at 48, 4 bytes: uint32_t, now at 48, 4 bytes: int32_t",
                BREAKS)


def a_field_in_padding_breaks(folder):
    change(folder, "include/tokmap.h", "    double sample; ", "    uint32_t more;\n    double sample; ")
    expect_said(folder, "tokmap_verify_options.more: was not there, now at 12, 4 bytes", BREAKS)


def a_field_of_a_struct_that_cannot_grow_breaks(folder):
    change(folder, "include/tokmap.h", "    size_t text_bytes;\n} tokmap_value;", "    uint64_t text_bytes[2];\n} tokmap_value;")
    expect_said(folder, "tokmap_value: was 40 bytes, now 48 bytes", BREAKS)


def another_value_breaks(folder):
    change(folder, LOADER, "TOKMAP_IO_READ = 4", "TOKMAP_IO_READ = 5")
    expect_said(folder, "TOKMAP_IO_READ: was = 4, now = 5", BREAKS)


def another_macro_breaks(folder):
    change(folder, "include/tokmap_writer.h", "TOKMAP_MAX_NOTE_BYTES 65536", "TOKMAP_MAX_NOTE_BYTES 65537")
    expect_said(folder, "TOKMAP_MAX_NOTE_BYTES: was = 65536, now = 65537", BREAKS)


def another_parameter_breaks(folder):
    change(folder, LOADER, "tokmap_loader_seek(tokmap_loader *l, uint64_t", "tokmap_loader_seek(tokmap_loader *l, int64_t")
    expect_said(folder, "tokmap_loader_seek(): was TOKMAP_0.1: ", BREAKS)


def a_call_that_is_gone_breaks(folder):
    change(folder, LOADER, "TOKMAP_API uint64_t tokmap_loader_position(const tokmap_loader *l);", "")
    expect_said(folder, "tokmap_loader_position(): was TOKMAP_0.1: uint64_t(const tokmap_loader *), now not there", BREAKS)


def a_call_in_another_node_breaks(folder):
    change(folder, MAP, "    tokmap_loader_position;\n", "")
    change(folder, MAP, "/* Experimental:", "TOKMAP_0.2 {\nglobal:\n    tokmap_loader_position;\n} TOKMAP_0.1;\n\n/* Experimental:")
    expect_said(folder, "tokmap_loader_position(): was TOKMAP_0.1: ", BREAKS)


def a_field_at_the_end_is_fine(folder):
    change(folder, LOADER, "} tokmap_loader_options;", "    uint64_t more;\n} tokmap_loader_options;")
    expect_said(folder, "tokmap_loader_options: was 120 bytes, may grow, now 128 bytes, may grow", ADDS)


def add_call(folder, node):
    change(folder, LOADER, "TOKMAP_API void tokmap_loader_close(",
           "TOKMAP_API int tokmap_loader_more(void);\nTOKMAP_API void tokmap_loader_close(")
    change(folder, MAP, "/* Experimental:", node + " {\nglobal:\n    tokmap_loader_more;\n} TOKMAP_0.1;\n\n/* Experimental:")


def release_0_1(folder):
    text = (folder / "include/tokmap.h").read_text().replace('TOKMAP_VERSION_TEXT "0.1.', 'TOKMAP_VERSION_TEXT "0.2.')
    (folder / "include/tokmap.h").write_text(text)


def a_call_in_the_node_of_a_new_version_is_fine(folder):
    release_0_1(folder)
    add_call(folder, "TOKMAP_0.2")
    expect_said(folder, "tokmap_loader_more(): was not there, now TOKMAP_0.2: int(void)", ADDS)


def a_call_in_a_node_that_was_released_breaks(folder):
    release_0_1(folder)
    add_call(folder, "X")
    change(folder, MAP, "X {\nglobal:\n    tokmap_loader_more;\n} TOKMAP_0.1;\n\n", "")
    change(folder, MAP, "    tokmap_loader_next;\n", "    tokmap_loader_next;\n    tokmap_loader_more;\n")
    expect_said(folder, "tokmap_loader_more(): was not there, now TOKMAP_0.1: int(void)", BREAKS)


def a_call_that_is_not_exported_is_found(folder):
    change(folder, MAP, "    tokmap_loader_position;\n", "")
    expect_said(folder, "now not exported: uint64_t(const tokmap_loader *)", BREAKS)


def the_stage_may_change_with_its_node(folder):
    change(folder, STAGE, "int32_t no_thread;", "uint32_t no_thread;")
    expect_said(folder, "tokmap_stage_options.no_thread: was ", TRIES)
    change(folder, MAP, "TOKMAP_STAGE_0.2", "TOKMAP_STAGE_0.3")
    expect_said(folder, "tokmap_stage_open(): was TOKMAP_STAGE_0.2: ", ADDS)


def another_number_in_the_soname_allows_everything(folder):
    change(folder, LOADER, "uint32_t batch_rows;", "uint64_t batch_rows;")
    change(folder, "Makefile", "ABI := 0\n", "ABI := 1\n")
    expect_said(folder, "ABI: was 0, now 1", ADDS)


if os.environ.get("TOKMAP_SANITIZED"):
    print("skip abi: nothing of it runs in a sanitizer")
    sys.exit(77)
sys.exit(run_in_folders("", (
    the_tree_is_what_abi_txt_says,
    another_type_breaks,
    a_field_in_padding_breaks,
    a_field_of_a_struct_that_cannot_grow_breaks,
    another_value_breaks,
    another_macro_breaks,
    another_parameter_breaks,
    a_call_that_is_gone_breaks,
    a_call_in_another_node_breaks,
    a_field_at_the_end_is_fine,
    a_call_in_the_node_of_a_new_version_is_fine,
    a_call_in_a_node_that_was_released_breaks,
    a_call_that_is_not_exported_is_found,
    the_stage_may_change_with_its_node,
    another_number_in_the_soname_allows_everything,
), copy_tree))
