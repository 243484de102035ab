# SPDX-License-Identifier: Apache-2.0
"""Builds the package: the backend of `pip install .` (PEP 517), of `make wheel` and `make sdist`.

A wheel holds the Python files, the libraries and the programs, which `make` compiles here."""

import base64
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
import zipfile

import sbom

PYTHON = pathlib.Path(__file__).resolve().parent
ROOT = PYTHON.parent
LICENCE_FILES = ["LICENSE", "THIRD_PARTY_NOTICES"]
PROGRAMS = ["tokmap", "tokbench"]
SCRIPT = "tokmap-python"  # which the program tokmap executes, from its own folder or that of PATH
GENERATED = ["PKG-INFO", "sbom.cdx.json", "NOTICE"]  # at the root of a source archive
XXHASH = ROOT / "build/wheel" / sbom.XXHASH[0].replace("==", "-") / "deps/xxhash"  # if make_wheel.py has fetched it
NOT_SOURCE = (".git", "build", "demo")  # folders there


# ---- Metadata ----


def read_project():
    """{table: {key: value}} of pyproject.toml, whose values are also JSON."""
    tables = {}
    for line in (ROOT / "pyproject.toml").read_text().splitlines():
        if line.startswith("["):
            tables[line.strip("[]")] = table = {}
        elif line.strip() and not line.startswith("#"):
            key, value = line.split(" = ", 1)
            table[key] = json.loads(value)
    return tables


def version():
    return re.search(r'TOKMAP_VERSION_TEXT "(.*)"', (ROOT / "include/tokmap.h").read_text()).group(1)


def makefile_value(name):
    return re.search(rf"^{name} :=(.*)", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].strip()


def notice():
    return "\n".join(["tokmap", " ".join(filter(None, ["Copyright", makefile_value("HOLDER"), makefile_value("HOMEPAGE")])), ""])


def readme():
    """With addresses in place of paths, which lead nowhere on the page of an index, if the project has an address."""
    text, homepage = (ROOT / "README.md").read_text(), makefile_value("HOMEPAGE")
    if not homepage:
        return text
    text = re.sub(r'(src(?:set)?=")(?!\w+:)', rf"\g<1>{homepage}/raw/v{version()}/", text)
    return re.sub(r"(\]\()(?!\w+:|#)", rf"\g<1>{homepage}/blob/v{version()}/", text)


def metadata(components):
    project, extras = (read_project()[t] for t in ("project", "project.optional-dependencies"))
    lines = ["Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {version()}",
             f"Summary: {project['description']}", f"Requires-Python: {project['requires-python']}",
             f"License-Expression: {sbom.licence(components)}"]
    lines += [f"License-File: {name}" for name in sorted([*LICENCE_FILES, "NOTICE"])]
    lines += [f"Requires-Dist: {other}" for other in project["dependencies"]]
    for extra, others in extras.items():
        lines.append(f"Provides-Extra: {extra}")
        for other in others:  # which may have a condition of its own
            name, _, condition = other.partition("; ")
            lines.append(f"Requires-Dist: {name}; {condition and condition + ' and '}extra == \"{extra}\"")
    homepage = makefile_value("HOMEPAGE")
    lines += [f"Project-URL: Homepage, {homepage}"] if homepage else []
    lines.append("Description-Content-Type: text/markdown")
    contains = "".join(f"- {part['name']} {part['version']}: {part['licenses'][0]['expression']}\n" for part in components)
    return "\n".join(lines) + f"\n\n{readme()}\n## What this package contains of others\n\n{contains}"


def info_files(tag, components=(sbom.UNICODE,)):
    """The files of the folder .dist-info, but for RECORD; components: what the wheel contains of others."""
    files = {"METADATA": metadata(components),
             "WHEEL": f"Wheel-Version: 1.0\nGenerator: tokmap {version()}\nRoot-Is-Purelib: false\n"
                      f"Tag: {tag}\n",
             "sboms/sbom.cdx.json": sbom.document(version(), epoch(), list(components))}
    for name in LICENCE_FILES:
        files[f"licenses/{name}"] = (ROOT / name).read_text()
    files["licenses/NOTICE"] = notice()
    return {f"tokmap-{version()}.dist-info/{name}": text.encode() for name, text in files.items()}


def native_tag():
    return "py3-none-" + re.sub(r"[-.]", "_", sysconfig.get_platform())


# ---- Archives: sorted, without times and owners of this machine ----


def git(*arguments):
    """What git says; nothing if this is no checkout."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        return ""
    return subprocess.run(["git", *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout


def epoch():
    """The time of all files: of the commit, or of the source archive."""
    found = os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct") \
        or (ROOT / "include/tokmap.h").stat().st_mtime
    return max(int(found), 315532800)  # 1980, the first year of zip


def write_wheel(folder, tag, files):
    """Writes {path: bytes} with its RECORD; returns the name of the wheel."""
    name = f"tokmap-{version()}-{tag}.whl"
    files, record = dict(sorted(files.items(), key=lambda item: (".dist-info/" in item[0], item[0]))), ""
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        record += f"{path},sha256={digest},{len(data)}\n"
    own = f"tokmap-{version()}.dist-info/RECORD"
    files[own] = f"{record}{own},,\n".encode()
    date = time.gmtime(epoch())[:6]
    with zipfile.ZipFile(pathlib.Path(folder, name), "w") as wheel:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, date)
            entry.create_system, entry.compress_type = 3, zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if ".data/scripts/" in path else 0o100644) << 16
            wheel.writestr(entry, data, compresslevel=9)
    return name


def write_sdist(folder, files):
    """Writes {path: (bytes, whether it is a program)}; returns the name of the archive."""
    name, date = f"tokmap-{version()}", epoch()
    with open(pathlib.Path(folder, name + ".tar.gz"), "wb") as out, \
            gzip.GzipFile("", "wb", mtime=date, fileobj=out) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, (data, is_program) in sorted(files.items()):
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size, entry.mtime, entry.mode = len(data), date, 0o755 if is_program else 0o644
            archive.addfile(entry, io.BytesIO(data))
    return name + ".tar.gz"


# ---- What they hold ----


def python_files():
    """The files of the package, and its version."""
    files = {path.relative_to(PYTHON).as_posix(): path.read_bytes()
             for path in (PYTHON / "tokmap").rglob("*") if path.suffix in (".py", ".pyi", ".typed")}
    return {**files, "tokmap/version.txt": f"{version()}\n".encode()}


def native_files(build):
    """The libraries, the programs and their pages of the manual, which `man` finds beside the programs, and
    the scripts with which shells complete words, which bash-completion finds there too."""
    files = script_files()
    files.update({f"tokmap/{path.name}": path.read_bytes() for path in build.glob("libtokmap*.so")})
    data = f"tokmap-{version()}.data"
    for name in PROGRAMS:
        files[f"{data}/scripts/{name}"] = (build / name).read_bytes()
    for page in ROOT.glob("docs/man/tok*.[157]"):
        files[f"{data}/data/share/man/man{page.suffix[1:]}/{page.name}"] = page.read_bytes()
    shares = {"tokmap.bash": ["bash-completion/completions/tokmap", "bash-completion/completions/tokbench"],
              "_tokmap": ["zsh/site-functions/_tokmap"],
              "tokmap.fish": ["fish/vendor_completions.d/tokmap.fish", "fish/vendor_completions.d/tokbench.fish"]}
    for script, paths in shares.items():
        text = (ROOT / "tokenize_tools/completion" / script).read_bytes()
        files.update({f"{data}/data/share/{path}": text for path in paths})
    return files


def script_files():
    """The script, whose first line an installer changes."""
    return {f"tokmap-{version()}.data/scripts/{SCRIPT}": (PYTHON / SCRIPT).read_bytes()}


def make_environment():
    """Without the options of a make that has called us."""
    return {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}


def run_make(build, *variables):
    """Compiles libraries and programs into the folder `build`; a variable is NAME=VALUE."""
    if not shutil.which("make"):
        sys.exit("tokmap: make is required and was not found: install the package make")
    command = ["make", f"-j{os.cpu_count()}", f"BUILD={build}", "all", *variables]
    if subprocess.run(command, cwd=ROOT, env=make_environment()).returncode != 0:
        sys.exit("tokmap: make failed, for the reason above")


# ---- PEP 517 and PEP 660 ----


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    tag, build = native_tag(), ROOT / "build/wheel-native"
    run_make(build, *([] if "CFLAGS" in os.environ else ["CFLAGS=-O3"]), "LDFLAGS=-s " + os.environ.get("LDFLAGS", ""))
    parts = [sbom.UNICODE]
    if (build / "xxhash.o").exists():  # compiled from a source archive, on a system without xxHash
        parts.append(sbom.xxhash((ROOT / "xxhash/xxhash.h").read_text()))
    return write_wheel(wheel_directory, tag, {**python_files(), **native_files(build), **info_files(tag, parts)})


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """The package in place, with the libraries and programs of build/, which are compiled if they are not there."""
    tag = native_tag()
    if not all((ROOT / "build" / name).exists() for name in ("libtokmap.so", "libtokmap_tokenizer.so", *PROGRAMS)):
        run_make("build")
    files = {"tokmap.pth": f"{PYTHON}\n".encode(), **script_files(), **info_files(tag)}
    for name in PROGRAMS:  # as they are compiled next; env finds the Python of this environment for their script
        files[f"tokmap-{version()}.data/scripts/{name}"] = (
            f'#!/bin/sh\nPATH=$(dirname "$(readlink -f "$0")"):$PATH\nexport PATH\n'
            f'exec {shlex.quote(str(ROOT / "build" / name))} "$@"\n').encode()
    return write_wheel(wheel_directory, tag, files)


def write_files(folder, files):
    for path, data in files.items():
        out = pathlib.Path(folder, path)
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(data)
    return f"tokmap-{version()}.dist-info"


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    return write_files(metadata_directory, info_files(native_tag()))


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def source_files():
    """The files that git tracks; without git, those of an unpacked archive."""
    tracked = git("ls-files", "-z")
    if tracked:
        return sorted(tracked.rstrip("\0").split("\0"))
    paths = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in paths
                  if path.parts[0] not in NOT_SOURCE and "__pycache__" not in path.parts
                  and path.as_posix() not in GENERATED)


def build_sdist(sdist_directory, config_settings=None):
    """All of the source with its tests, and xxHash, if it was fetched: the archive for packagers is that for pip."""
    files = {path: ((ROOT / path).read_bytes(), bool((ROOT / path).stat().st_mode & 0o100)) for path in source_files()}
    files.update({f"xxhash/{path.name}": (path.read_bytes(), False) for path in XXHASH.glob("*")})
    parts = [sbom.UNICODE]
    if "xxhash/xxhash.h" in files:
        parts.append(sbom.xxhash(files["xxhash/xxhash.h"][0].decode()))
    for name, text in zip(GENERATED, (metadata(parts), sbom.document(version(), epoch(), parts), notice())):
        files[name] = (text.encode(), False)
    return write_sdist(sdist_directory, files)


def install(folder, scripts, interpreter):
    """The package without libraries and programs: it uses those that `make install` has installed. Its script goes into
    the folder `scripts`, and is run by this interpreter."""
    script = (PYTHON / SCRIPT).read_bytes().replace(b"python", interpreter.encode(), 1)
    write_files(scripts, {SCRIPT: script})
    pathlib.Path(scripts, SCRIPT).chmod(0o755)
    return write_files(folder, {**python_files(), **info_files("py3-none-any")})


if __name__ == "__main__":  # build_backend.py sdist|wheel FOLDER, or install FOLDER SCRIPTS INTERPRETER
    made = {"sdist": build_sdist, "wheel": build_wheel, "install": install}[sys.argv[1]](*sys.argv[2:])
    print(pathlib.Path(sys.argv[2], made))
