# SPDX-License-Identifier: Apache-2.0
"""make_wheel.py FOLDER - the wheel for every Linux with glibc 2.28 or later, on x86-64 or on the processor that ARCH
names; make_wheel.py --xxhash fetches the source of xxHash for a source archive.

Compiles with the clang of the package ziglang, which links against the symbols of an old glibc. All other
libraries are linked statically: zstd and zlib of this system, or of the one that .ci/aarch64 has unpacked; xxHash and
ISA-L from the sources that two Python packages contain, because Debian's libxxhash.a lacks AVX2 and AVX-512, and
there is no libisal.a. auditwheel decides the name of the wheel."""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.parse

import build_backend as backend
import sbom

GLIBC = "2.28"  # older versions lack functions that tokmap calls: statx, renameat2, copy_file_range
ARCH = os.environ.get("ARCH") or "x86_64"
IS_NATIVE = ARCH == "x86_64"
WORK = backend.ROOT / ("build/wheel" if IS_NATIVE else f"build/wheel-{ARCH}")
OTHER = backend.ROOT / f"build/{ARCH}-root"  # of .ci/aarch64
VENV = backend.ROOT / "build/wheel/venv"
INCLUDE, LIB = WORK / "include", WORK / "lib"
SOURCES = {sbom.XXHASH[0]: sbom.XXHASH[1],
           "isal==1.9.1": "d210dca02a689ef2af709d2c62d2daac2e36b5d2fa06e6dc0d023c83fee77e91"}
PYTHON = str(VENV / "bin/python")
PROTECTION = ["-O3", "-fPIC", "-fstack-protector-strong", f"-ffile-prefix-map={WORK}=.",
              "-fcf-protection=full" if IS_NATIVE else "-mbranch-protection=standard"]
COMPILER = [PYTHON, "-m", "ziglang", "cc", "-target", f"{ARCH}-linux-gnu.{GLIBC}"]


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
        WORK.mkdir(parents=True, exist_ok=True)
        if not VENV.exists():
            run(sys.executable, "-m", "venv", VENV)
        wanted = WORK / "source.txt"
        wanted.write_text(f"{requirement} --hash=sha256:{SOURCES[requirement]}\n")
        run(PYTHON, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary=:all:", "--require-hashes",
            "-d", WORK, "-r", wanted)
        with tarfile.open(f"{folder}.tar.gz") as archive:
            archive.extractall(WORK)
    return folder


def defined(header, *names):
    """The version that a header states: the values of macros, joined by dots."""
    text = (INCLUDE / header).read_text()
    return ".".join(re.search(rf'define {name}\s+"?([\d.]+)', text).group(1) for name in names)


def system_part(name, version, licence, archive, package):
    """A static library of this system, with the version of its package if dpkg knows it."""
    query = ["dpkg-query", "-W", "-f=${Version}", package]
    if IS_NATIVE:
        release = run(*query) if shutil.which("dpkg-query") else version
    else:
        release = dict(line.split() for line in (OTHER / "packages").read_text().splitlines())[package]
    system = re.search(r"^ID=(\w+)", pathlib.Path("/etc/os-release").read_text(), re.MULTILINE).group(1)
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    return sbom.component(name, version, licence, **sbom.taken_from(
        package, release, f"pkg:deb/{system}/{package}@{urllib.parse.quote(release, safe='')}", digest))


def build_xxhash(requirement):
    source = fetch_source(requirement) / "deps/xxhash"
    for header in source.glob("*.h"):
        shutil.copy(header, INCLUDE)
    objects = [WORK / "xxhash.o", *([WORK / "xxh_x86dispatch.o"] if IS_NATIVE else [])]
    for file in objects:
        run(*COMPILER, *PROTECTION, "-c", source / file.with_suffix(".c").name, "-o", file)
    # One object: tokmap's weak references to the functions for AVX2 load none from an archive.
    run("ld" if IS_NATIVE else f"{ARCH}-linux-gnu-ld", "-r", "-o", WORK / "both.o", *objects)
    run("ar", "qcsD", LIB / "libxxhash.a", WORK / "both.o")
    return sbom.xxhash((INCLUDE / "xxhash.h").read_text())


def build_isal(requirement):
    need_program("nasm", "nasm")
    source = fetch_source(requirement) / "src/isal/isa-l"
    run("make", f"-j{os.cpu_count()}", "-f", "Makefile.unx", "units=igzip crc", "lib", "isa-l.h", f"CC={' '.join(COMPILER)}",
        f"host_cpu={ARCH}",
        cwd=source, env=backend.make_environment())
    shutil.copytree(source / "include", INCLUDE / "isa-l")
    shutil.copy(source / "isa-l.h", INCLUDE)
    shutil.copy(source / "bin/isa-l.a", LIB / "libisal.a")
    names = (f"ISAL_{part}_VERSION" for part in ("MAJOR", "MINOR", "PATCH"))
    return sbom.from_package("ISA-L", defined("isa-l.h", *names), "BSD-3-Clause", requirement, SOURCES[requirement])


def copy_library(name, headers, package):
    """A static library of this system, and its headers: the compiler must not see the others of their
    folder, which belong to this system's libc."""
    if not IS_NATIVE:
        archive = OTHER / f"root/usr/lib/{ARCH}-linux-gnu/lib{name}.a"
        for path in [archive, *(OTHER / "root/usr/include" / header for header in headers)]:
            shutil.copy(path, LIB if path == archive else INCLUDE)
        return archive
    includes = "".join(f"#include <{header}>\n" for header in headers)
    found = subprocess.run(["cc", "-M", "-x", "c", "-"], input=includes, stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True).stdout
    archive = pathlib.Path(run("cc", f"-print-file-name=lib{name}.a").strip())
    if not found or not archive.exists():
        sys.exit(f"make_wheel.py: lib{name}.a or {headers[0]} not found: install the package {package}")
    for path in [archive, *(path for path in found.split() if pathlib.Path(path).name in headers)]:
        shutil.copy(path, LIB if path == archive else INCLUDE)
    return archive


def prepare_compiler():
    """Downloads what is not here yet."""
    need_program("cc", "gcc")
    need_program("clang", "clang")
    WORK.mkdir(parents=True, exist_ok=True)
    run(sys.executable, backend.ROOT / "bench/peers/install.py", VENV, backend.PYTHON / "wheel-requirements.txt")
    for requirement in SOURCES:
        fetch_source(requirement)


def prepare_libraries():
    """Returns what the wheel contains of others."""
    for folder in (INCLUDE, LIB, WORK / "make"):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    parts = [sbom.UNICODE] + [build(requirement) for build, requirement in zip((build_xxhash, build_isal), SOURCES)]
    archive = copy_library("zstd", ["zstd.h", "zstd_errors.h"], "libzstd-dev")
    names = (f"ZSTD_VERSION_{part}" for part in ("MAJOR", "MINOR", "RELEASE"))
    parts.append(system_part("Zstandard", defined("zstd.h", *names), "BSD-3-Clause", archive, "libzstd-dev"))
    archive = copy_library("z", ["zlib.h", "zconf.h"], "zlib1g-dev")
    parts.append(system_part("zlib", defined("zlib.h", "ZLIB_VERSION"), "Zlib", archive, "zlib1g-dev"))
    # zig's own runtime library does not detect the processor, and replaces memcpy of libc by a slower one.
    if IS_NATIVE:
        archive = pathlib.Path(run("clang", "--rtlib=compiler-rt", "-print-libgcc-file-name").strip())
        version = run("clang", "-dumpversion").strip()
    else:
        archive = next(OTHER.glob(f"root/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.builtins-{ARCH}.a"))
        version = archive.parts[-4]
    package = f"libclang-rt-{version.partition('.')[0]}-dev"
    if not archive.exists():
        sys.exit(f"make_wheel.py: {archive.name} not found: install the package {package}")
    shutil.copy(archive, LIB / "libruntime.a")
    parts.append(system_part("compiler-rt", version, "Apache-2.0 WITH LLVM-exception", archive, package))
    return parts


def platform_tag(wheel):
    """The name of the oldest platform that auditwheel finds the wheel fit for."""
    said = run(PYTHON, "-m", "auditwheel", "show", wheel)
    print(said.strip())
    tag = re.search(r'platform tag:\s*"(manylinux_\w+)"', said)
    if not tag:
        sys.exit("make_wheel.py: the wheel depends on more than glibc")
    return tag.group(1)


def main(folder):
    prepare_compiler()
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    os.environ["ZIG_GLOBAL_CACHE_DIR"] = str(WORK / "zig")
    parts = prepare_libraries()
    backend.run_make(WORK / "make", f"CC={' '.join(COMPILER)}", "CFLAGS=-O3 -w", f"CPPFLAGS=-I{INCLUDE}",
                     f"LDFLAGS=-s -L{LIB} -lruntime", *(f"{part}=yes" for part in ("ZSTD", "ZLIB", "ISAL")),
                     *([] if IS_NATIVE else [f"OBJCOPY={ARCH}-linux-gnu-objcopy"]))
    tag = f"py3-none-manylinux_{GLIBC.replace('.', '_')}_{ARCH}"
    wheel = backend.write_wheel(folder, tag, {**backend.python_files(), **backend.native_files(WORK / "make"),
                                              **backend.info_files(tag, parts)})
    found = platform_tag(pathlib.Path(folder, wheel))
    if not tag.endswith(found):
        sys.exit(f"make_wheel.py: {wheel} is fit for {found}")
    print(pathlib.Path(folder, wheel))


if __name__ == "__main__":
    fetch_source(sbom.XXHASH[0]) if sys.argv[1] == "--xxhash" else main(sys.argv[1])
