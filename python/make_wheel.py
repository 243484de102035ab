# SPDX-License-Identifier: Apache-2.0
"""make_wheel.py FOLDER - the wheel for every Linux on x86-64 with glibc 2.28 or later.

Compiles with the clang of the package ziglang, which links against the symbols of an old glibc. All other
libraries are linked statically: zstd and zlib of this system; xxHash and ISA-L from the sources that two
Python packages contain, because Debian's libxxhash.a lacks AVX2 and AVX-512, and there is no libisal.a.
auditwheel decides the name of the wheel."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

import build_backend as backend

GLIBC = "2.28"  # older versions lack functions that tokmap calls: statx, renameat2, copy_file_range
WORK = backend.ROOT / "build/wheel"
VENV = WORK / "venv"
INCLUDE, LIB = WORK / "include", WORK / "lib"
SOURCES = ["xxhash==4.1.0", "isal==1.9.1"]
PYTHON = str(VENV / "bin/python")
COMPILER = [PYTHON, "-m", "ziglang", "cc", "-target", f"x86_64-linux-gnu.{GLIBC}"]


def run(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{done.stdout}make_wheel.py: failed: {' '.join(map(str, command))}")
    return done.stdout


def need_program(name, package):
    if not shutil.which(name):
        sys.exit(f"make_wheel.py: {name} not found: install the package {package}")


def fetch_source(requirement):
    """The folder with the unpacked source of a Python package."""
    folder = WORK / requirement.replace("==", "-")
    if not folder.exists():
        run(PYTHON, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary=:all:", "-d", WORK, requirement)
        with tarfile.open(f"{folder}.tar.gz") as archive:
            archive.extractall(WORK)
    return folder


def build_xxhash(source):
    for header in source.glob("*.h"):
        shutil.copy(header, INCLUDE)
    objects = [WORK / "xxhash.o", WORK / "xxh_x86dispatch.o"]
    for file in objects:
        run(*COMPILER, "-O3", "-fPIC", "-c", source / file.with_suffix(".c").name, "-o", file)
    # One object: tokmap's weak references to the functions for AVX2 load none from an archive.
    run("ld", "-r", "-o", WORK / "both.o", *objects)
    run("ar", "qcs", LIB / "libxxhash.a", WORK / "both.o")


def build_isal(source):
    need_program("nasm", "nasm")
    run("make", f"-j{os.cpu_count()}", "-f", "Makefile.unx", "units=igzip crc", "lib", "isa-l.h", f"CC={' '.join(COMPILER)}",
        cwd=source, env=backend.make_environment())
    shutil.copytree(source / "include", INCLUDE / "isa-l")
    shutil.copy(source / "isa-l.h", INCLUDE)
    shutil.copy(source / "bin/isa-l.a", LIB / "libisal.a")


def copy_library(name, headers, package):
    """A static library of this system, and its headers: the compiler must not see the others of their
    folder, which belong to this system's libc."""
    includes = "".join(f"#include <{header}>\n" for header in headers)
    found = subprocess.run(["cc", "-M", "-x", "c", "-"], input=includes, stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True).stdout
    archive = pathlib.Path(run("cc", f"-print-file-name=lib{name}.a").strip())
    if not found or not archive.exists():
        sys.exit(f"make_wheel.py: lib{name}.a or {headers[0]} not found: install the package {package}")
    for path in [archive, *(path for path in found.split() if pathlib.Path(path).name in headers)]:
        shutil.copy(path, LIB if path == archive else INCLUDE)


def prepare_libraries():
    for folder in (INCLUDE, LIB, WORK / "make"):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    xxhash, isal = map(fetch_source, SOURCES)
    build_xxhash(xxhash / "deps/xxhash")
    build_isal(isal / "src/isal/isa-l")
    copy_library("zstd", ["zstd.h", "zstd_errors.h"], "libzstd-dev")
    copy_library("z", ["zlib.h", "zconf.h"], "zlib1g-dev")
    # zig's own runtime library does not detect the processor, and replaces memcpy of libc by a slower one.
    shutil.copy(run("cc", "-print-libgcc-file-name").strip(), LIB / "libgcc_runtime.a")


def platform_tag(wheel):
    """The name of the oldest platform that auditwheel finds the wheel fit for."""
    said = run(PYTHON, "-m", "auditwheel", "show", wheel)
    print(said.strip())
    tag = re.search(r'platform tag:\s*"(manylinux_\w+)"', said)
    if not tag:
        sys.exit("make_wheel.py: the wheel depends on more than glibc")
    return tag.group(1)


def main(folder):
    need_program("cc", "gcc")
    for path in (WORK, pathlib.Path(folder)):
        path.mkdir(parents=True, exist_ok=True)
    run(sys.executable, backend.ROOT / "bench/peers/install.py", VENV, backend.PYTHON / "wheel-requirements.txt")
    os.environ["ZIG_GLOBAL_CACHE_DIR"] = str(WORK / "zig")
    prepare_libraries()
    backend.run_make(WORK / "make", f"CC={' '.join(COMPILER)}", "CFLAGS=-O3 -w", f"CPPFLAGS=-I{INCLUDE}",
                     f"LDFLAGS=-s -L{LIB} -lgcc_runtime", *(f"{part}=yes" for part in ("ZSTD", "ZLIB", "ISAL")))
    tag = f"py3-none-manylinux_{GLIBC.replace('.', '_')}_x86_64"
    wheel = backend.write_wheel(folder, tag, {**backend.python_files(), **backend.native_files(WORK / "make"),
                                              **backend.info_files(tag, notices=True)})
    found = platform_tag(pathlib.Path(folder, wheel))
    if not tag.endswith(found):
        sys.exit(f"make_wheel.py: {wheel} is fit for {found}")
    print(pathlib.Path(folder, wheel))


if __name__ == "__main__":
    main(sys.argv[1])
