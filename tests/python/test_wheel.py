#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package as pip installs it: what the wheel holds, that it works in a clean environment of each
CPython that is here, and what it says when the library is missing or of another version."""

import csv
import email
import functools
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from base64 import urlsafe_b64encode

from ref_protocol import Skip, call, expect, expect_equal, run_tests

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TOKMAP_BUILD", ROOT / "build"))
if os.environ.get("TOKMAP_SANITIZED"):
    print("skip wheel: a sanitized library cannot be loaded into Python")
    sys.exit(77)
sys.path.insert(0, str(ROOT / "python"))
import build_backend as backend  # noqa: E402

VERSION = backend.version()
MADE = os.environ.get("TOKMAP_WHEEL")  # of make wheel; set by make test-wheel
FROM_INDEX = ["-m", "pip", "install", "--quiet", "--retries=1", "--timeout=30", "--only-binary=:all:"]
PYTHONS = ["3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "3.13t", "3.14t"]
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if name not in ("PYTHONPATH", "TOKMAP_LIBRARY", "PYTHONDONTWRITEBYTECODE")}


@functools.lru_cache(None)
def shared_folder():
    """For what several tests use, and for temporary files that pip leaves; removed at the end."""
    return tempfile.TemporaryDirectory()


def run(*command, check=True, cwd="/", **more):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          cwd=cwd, env={**ENVIRONMENT, "TMPDIR": shared_folder().name, **more})
    expect(done.returncode == 0 or not check, f"{command}: status {done.returncode}: {done.stdout[-2000:]}")
    return done.stdout


@functools.lru_cache(None)
def wheel_of_this_build():
    """What the backend makes of the programs and libraries that are tested."""
    tag, folder = backend.native_tag(), pathlib.Path(shared_folder().name, "this build")
    folder.mkdir()
    files = {**backend.python_files(), **backend.native_files(BUILD), **backend.info_files(tag)}
    return folder / backend.write_wheel(folder, tag, files)


def environment(folder, python, *packages, options=()):
    """A new virtual environment with these packages; returns its interpreter."""
    try:
        run(python, "-m", "venv", *options, folder)
    except AssertionError as error:
        raise Skip(f"no virtual environment: {str(error)[-200:]}")
    python = pathlib.Path(folder, "bin/python")
    if packages:
        run(python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", *packages)
    return python


def need_pip():
    if not can_import(sys.executable, "pip"):
        raise Skip("there is no pip for this Python")


def can_import(python, module):
    return run(python, "-c", f"import importlib.util; print(importlib.util.find_spec({module!r}) is not None)",
               ).strip() == "True"


# ---- What a wheel holds ----


def files_and_their_record_agree(folder):
    with zipfile.ZipFile(wheel_of_this_build()) as wheel:
        names = wheel.namelist()
        own = f"tokmap-{VERSION}.dist-info/RECORD"
        rows = list(csv.reader(io.StringIO(wheel.read(own).decode())))
        expect_equal([row[0] for row in rows], names, "the names in RECORD")
        for name, digest, size in rows[:-1]:
            data = wheel.read(name)
            right = urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
            expect_equal((digest, size), ("sha256=" + right, str(len(data))), name)
        expect_equal(rows[-1], [own, "", ""], "the last line of RECORD")
        scripts = [entry for entry in wheel.infolist() if ".data/scripts/" in entry.filename]
        names_of_scripts = [entry.filename.rpartition("/")[2] for entry in scripts]
        expect_equal(names_of_scripts, ["tokbench", "tokmap", "tokmap-python"], "programs")
        expect(all(entry.external_attr >> 16 == 0o100755 for entry in scripts), "a program is not executable")
        pages = {pathlib.PurePath(name).name for name in names if "/share/man/" in name}
        expect_equal(pages, {page.name for page in ROOT.glob("docs/man/*.[157]")}, "pages of the manual")
        for shell, name in (("bash", "bash-completion/completions/tokmap"), ("bash", "bash-completion/completions/tokbench"),
                            ("zsh", "zsh/site-functions/_tokmap"), ("fish", "fish/vendor_completions.d/tokmap.fish"),
                            ("fish", "fish/vendor_completions.d/tokbench.fish")):
            script = wheel.read(f"tokmap-{VERSION}.data/data/share/{name}")
            expect_equal(script, call("tokmap", "completion", shell)[1], name)
        for name in ("libtokmap.so", "libtokmap_tokenizer.so", "py.typed", "version.txt", "__main__.py"):
            expect("tokmap/" + name in names, f"{name} is missing")


def metadata_names_numpy_and_the_extras(folder):
    with zipfile.ZipFile(wheel_of_this_build()) as wheel:
        info = email.message_from_bytes(wheel.read(f"tokmap-{VERSION}.dist-info/METADATA"))
        licences = [name for name in wheel.namelist() if "/licenses/" in name]
        notice = wheel.read(f"tokmap-{VERSION}.dist-info/licenses/NOTICE").decode()
    expect(re.fullmatch(r"tokmap\nCopyright .+\n", notice), notice)
    expect_equal((info["Name"], info["Version"]), ("tokmap", VERSION), "name and version")
    needed = info.get_all("Requires-Dist")
    expect_equal([line for line in needed if ";" not in line], ["numpy>=1.21"], "hard requirements")
    extras = set(info.get_all("Provides-Extra"))
    expect_equal({re.search('extra == "(.*)"', line).group(1) for line in needed if ";" in line}, extras, "extras")
    everything = next(line for line in needed if 'extra == "all"' in line)
    expect_equal(set(re.search(r"\[(.*)\]", everything).group(1).split(",")), extras - {"all"}, "extra 'all'")
    readme, _, contains = info.get_payload(decode=True).decode().partition("\n## What this package contains of others\n\n")
    expect_equal(readme, (ROOT / "README.md").read_text(), "description")
    expect(contains.startswith("- Unicode Character Database 17.0.0: Unicode-3.0\n"), contains)
    expect_equal([name.rpartition("/")[2] for name in licences], info.get_all("License-File"), "licences")


def read_contents(wheel):
    with zipfile.ZipFile(wheel) as files:
        return files.read(f"tokmap-{VERSION}.dist-info/sboms/sbom.cdx.json")


def what_it_contains_is_listed(folder):
    """The rules of CycloneDX that make sense without its schema, and that metadata and notices name the same."""
    with zipfile.ZipFile(wheel_of_this_build()) as wheel:
        info = email.message_from_bytes(wheel.read(f"tokmap-{VERSION}.dist-info/METADATA"))
    contents = json.loads(read_contents(wheel_of_this_build()))
    expect_equal((contents["bomFormat"], contents["specVersion"], contents["version"]), ("CycloneDX", "1.6", 1), "kind")
    own, parts = contents["metadata"]["component"], contents["components"]
    expect_equal((own["name"], own["version"]), ("tokmap", VERSION), "name and version")
    names = [part["bom-ref"] for part in parts]
    expect_equal(len(set(names)), len(names), "names that are different")
    expect_equal(contents["dependencies"], [{"ref": "tokmap", "dependsOn": names}, *({"ref": name} for name in names)],
                 "dependencies")
    licences = {part["licenses"][0]["expression"] for part in [own, *parts]}
    expect_equal(set(info["License-Expression"].split(" AND ")), licences, "licences")
    notices = (ROOT / "THIRD_PARTY_NOTICES").read_text()
    for part in parts:
        expect(f"\n{part['name']}\n===" in notices,
               f"no notice of {part['name']}")
        expect(re.fullmatch(r"pkg:[a-z]+/[\w.%/-]+@[\w.%-]+", part["purl"]), part["purl"])


def the_same_bytes_each_time(folder):
    os.makedirs(folder / "again")
    for build in (backend.build_sdist, backend.build_editable):
        name = build(folder)
        build(folder / "again")
        expect((folder / name).read_bytes() == (folder / "again" / name).read_bytes(), f"two {name} differ")


# ---- Installed ----


def check_installed(python, folder):
    """The package and its programs work in this environment."""
    scripts = python.parent
    (folder / "text.txt").write_text("one line\nand another\n")
    expect(run(scripts / "tokmap", "--version").startswith(f"tokmap {VERSION}"), "tokmap --version")
    expect(VERSION in run(scripts / "tokbench", "--version"), "tokbench --version")
    expect_equal(run(python, "-m", "tokmap", "--help"), run(scripts / "tokmap", "--help"), "python -m tokmap")
    run(python, "-m", "tokmap", "pack", "--lines", folder / "text.txt", "-o", folder / "text")
    script = "ds = tokmap.open({0!r}); assert len(ds) == 2, len(ds); text = bytes(ds[0][:8].tolist()); " \
        "assert text == b'one line', text; loader = tokmap.Loader(ds, 4, 1); rows = next(iter(loader))" \
        .format(str(folder / "text"))
    script += "; from tokmap._c import find; find.load('libtokmap_tokenizer.so', {})"
    others = [name for name in ("torch", "numpy") if can_import(python, name)]
    for imports in ["import tokmap"] + [f"import {name}, tokmap" for name in others] \
            + [f"import tokmap, {name}" for name in others]:
        strict = [] if "torch" in imports else ["-W", "error", "-X", "dev"]  # PyTorch itself warns
        said = run(python, *strict, "-c", f"{imports}; {script}")
        expect_equal(said, "", f"output of {imports!r}, also as the interpreter ends")


@functools.lru_cache(None)
def install_this_build():
    """An environment with the wheel and the packages of the Python that runs the tests."""
    folder = pathlib.Path(shared_folder().name, "venv")
    options = ["--system-site-packages"]
    return with_packages(folder, environment(folder, sys.executable, wheel_of_this_build(), options=options))


def with_packages(folder, python):
    """Gives a virtual environment the packages of the Python that runs the tests."""
    for site in folder.glob("lib/python*/site-packages"):  # those of a virtual environment are not the system's
        (site / "tests.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    if not can_import(python, "numpy"):
        raise Skip("there is no NumPy for this Python")
    return python


def it_works_in_a_virtual_environment(folder):
    check_installed(install_this_build(), folder)


def write_package(folder, text):
    """A package of this name, whose import does what the text says."""
    (folder / "tokmap").mkdir(parents=True)
    for name in ("__init__.py", "__main__.py"):
        (folder / "tokmap" / name).write_text(text)


def the_program_runs_the_commands_in_python(folder):
    """From any folder, under any name, and without the environment being activated."""
    scripts = install_this_build().parent
    (folder / "text.txt").write_text("one line")
    run(scripts / "tokmap", "pack", folder / "text.txt", "-o", folder / "text")
    write_package(folder / "here", "raise SystemExit('the folder of the user was imported')\n")
    (folder / "link").symlink_to(scripts / "tokmap")
    for program in (scripts / "tokmap", folder / "link"):
        for more in ({}, {"PYTHONPATH": ""}, {"PYTHONPATH": ":/nonexistent"}, {"PYTHONPATH": "/nonexistent:"},
                     {"PYTHONSAFEPATH": "1"}):
            said = run(program, "report", "../text", "--sequence-length", 4, "--until", 1, "--json",
                       cwd=folder / "here", **{"PATH": "/usr/bin:/bin", **more})
            expect_equal(json.loads(said)["n_labels"], 4, "tokens of the report")
    os.mkfifo(folder / "ledger")
    command = [scripts / "tokmap", "report", "--ledger", folder / "ledger"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as running, \
            open(folder / "ledger", "wb"):  # which waits until the command has opened it
        running.send_signal(signal.SIGINT)
        expect_equal((running.wait(), running.stderr.read()), (130, b""), "the end by Ctrl-C")


def another_version_of_the_package_is_refused(folder):
    """By both paths; and nothing is executed for ever."""
    scripts = install_this_build().parent
    (folder / "tokmap").write_bytes((BUILD / "tokmap").read_bytes().replace(VERSION.encode() + b"\0", b"9.8.7\0"))
    (folder / "tokmap").chmod(0o755)

    def refuse(status, *command, **more):
        done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=60, env={**ENVIRONMENT, "PATH": f"{scripts}:/usr/bin:/bin", **more})
        expect_equal((done.returncode, done.stdout.count("\n")), (status, 1), done.stdout)
        return done.stdout

    if not os.environ.get("EMULATOR"):
        said = refuse(2, folder / "tokmap", "trace", "--step", "1")
        expect(f"{folder}/tokmap is of version 9.8.7, but the Python package {scripts.parent}/lib" in said, said)
    said = refuse(2, scripts / "tokmap-python", VERSION, "/usr/bin/tokmap", "pack", "--help")
    expect("the Python package has no command 'pack'" in said, said)
    goes_back = f"    os.execv('{scripts}/tokmap', sys.argv)\n"
    write_package(folder / "old", f"import os, sys\nif __name__ == '__main__':\n{goes_back}")
    said = refuse(3, scripts / "tokmap", "trace", "--step", "1", PYTHONPATH=str(folder / "old"))
    expect("cannot import name 'run_for_program'" in said and f"{folder}/old/tokmap" in said, said)


def an_editable_install_runs_them_too(folder):
    """For the program of the checkout, and for one that is installed in the system."""
    made = folder / backend.build_editable(folder)
    python = with_packages(folder / "venv", environment(folder / "venv", sys.executable, made))
    (folder / "bin").mkdir()
    shutil.copy(BUILD / "tokmap", folder / "bin")
    for program in (folder / "bin/tokmap", BUILD / "tokmap"):
        said = run(program, "trace", "--step", 1, check=False, PATH=f"{python.parent}:/usr/bin:/bin",
                   TOKMAP_LIBRARY=str(BUILD / "libtokmap.so"))
        expect("say which run" in said, said)
    for name in ("tokmap", "tokbench"):  # of this environment, which is not activated
        launcher = python.parent / name
        expect(str(backend.ROOT / "build" / name) in launcher.read_text(), name)
        (folder / name).symlink_to(launcher)
        expect(VERSION in run(folder / name, "--version"), name)


def a_wrong_or_missing_library_is_an_import_error(folder):
    python = install_this_build()
    fake = folder / "libtokmap.so"
    (folder / "fake.c").write_text('const char *tokmap_version(void) { return "9.8.7"; }\n')
    run(shutil.which("cc") or "cc", "-shared", "-fPIC", "-o", fake, folder / "fake.c")
    package = next(python.parents[1].glob("lib/*/site-packages/tokmap"))

    def refusal(**more):
        said = run(python, "-c", "import tokmap", check=False, **more).strip().rsplit("\n", 1)[-1]
        expect(said.startswith(f"ImportError: tokmap {VERSION}: "), said)
        return said

    said = refusal(TOKMAP_LIBRARY=str(fake))
    expect(f"{fake} (TOKMAP_LIBRARY) is of version 9.8.7" in said and "unset" in said, said)
    said = refusal(TOKMAP_LIBRARY="/nonexistent")
    expect("cannot load /nonexistent (TOKMAP_LIBRARY)" in said and "unset" in said, said)
    shutil.copy(fake, package / "libtokmap.so")
    said = refusal()
    expect(f"{package}/libtokmap.so is of version 9.8.7" in said and "install the package again" in said, said)
    (package / "libtokmap.so").write_bytes(b"damaged")
    said = refusal()
    expect(f"cannot load {package}/libtokmap.so" in said and "install the package again" in said, said)
    (package / "libtokmap.so").unlink()
    said = run(python, "-c", "import tokmap", check=False).strip().rsplit("\n", 1)[-1]
    expect(said == "" or "cannot load libtokmap.so.0 (the system's libraries)" in said, said)


def programs_are_found_where_pip_puts_them(folder):
    need_pip()
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", folder / "here",
        wheel_of_this_build())
    script = "from tokmap._c.find import find_program; print(find_program('tokmap'))"
    try:
        said = run(sys.executable, "-c", script, PYTHONPATH=str(folder / "here"))
    except AssertionError as error:
        if "No module named 'numpy'" in str(error):
            raise Skip("there is no NumPy for this Python")
        raise
    expect_equal(said.strip(), str(folder / "here/bin/tokmap"), "the program of a --target folder")
    (folder / "here/bin/tokmap").unlink()
    said = run(sys.executable, "-m", "tokmap", check=False, PYTHONPATH=str(folder / "here"))
    expect("the program tokmap is missing" in said and "install the package again" in said, said)


# ---- Of make wheel, in every Python that is here; and compiled by pip ----


def an_sdist_builds_without_an_index(folder):
    need_pip()
    sdist = backend.build_sdist(folder)
    shutil.unpack_archive(folder / sdist, folder)
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps", "-w", folder,
        folder / f"tokmap-{VERSION}", CFLAGS="-O1")
    wheel = folder / f"tokmap-{VERSION}-py3-none-linux_{os.uname().machine}.whl"
    with zipfile.ZipFile(wheel) as made, zipfile.ZipFile(wheel_of_this_build()) as other:
        expect_equal(made.namelist(), other.namelist(), "files of the wheel")


def find_python(version):
    folders = [pathlib.Path(folder) for folder in os.environ["PATH"].split(":")]
    folders += sorted(pathlib.Path.home().glob(f".pyenv/versions/{version.rstrip('t')}*/bin"))
    for folder in folders:
        path = folder / f"python{version}"
        if path.exists() and subprocess.run([path, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0:
            return path
    raise Skip(f"python{version} not found")


def it_works_in(version, folder):
    python = environment(folder / "venv", find_python(version), MADE)
    said = run(python, *FROM_INDEX, "numpy", check=False)
    if not can_import(python, "numpy"):
        raise Skip(f"NumPy cannot be installed: {said[-200:]}")
    check_installed(python, folder)


def segments_begin_at_large_pages(folder):
    """Kernels of aarch64 may have pages of 64 KiB."""
    with zipfile.ZipFile(MADE) as wheel:
        for name in wheel.namelist():
            data = wheel.read(name)
            if data[:4] != b"\x7fELF":
                continue
            place, (size, n) = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<HH", data, 54)
            segments = [struct.unpack_from("<II6Q", data, place + i * size) for i in range(n)]
            aligned = [segment[7] for segment in segments if segment[0] == 1]  # PT_LOAD
            expect(aligned and min(aligned) >= 65536, f"{name}: its segments are aligned to {aligned}")


def it_works_in_an_emulator(folder):
    """With the Python and NumPy that .ci/aarch64 has unpacked."""
    site, other = folder / "site", BUILD / "aarch64-root"
    with zipfile.ZipFile(MADE) as wheel:
        wheel.extractall(site)
    (site / "bin").mkdir()
    for program in site.glob("*.data/scripts/*"):
        program.chmod(0o755)
    for name, command in (("python", other / "python"), *((name, f"{other / 'run'} {site}/tokmap-{VERSION}.data/scripts/{name}")
                                                          for name in backend.PROGRAMS)):
        (site / "bin" / name).write_text(f'#!/bin/sh\nexport PYTHONPATH={site}\nexec {command} "$@"\n')
        (site / "bin" / name).chmod(0o755)
    check_installed(site / "bin/python", folder)


def twine_and_check_wheel_contents_accept_it(folder):
    wheel, sdist = MADE, folder / backend.build_sdist(folder)
    python = environment(folder / "venv", sys.executable)
    said = run(python, *FROM_INDEX, "twine", "check-wheel-contents", check=False)
    if not can_import(python, "twine") or not can_import(python, "check_wheel_contents"):
        raise Skip(f"they cannot be installed: {said[-200:]}")
    said = run(python, "-m", "twine", "check", "--strict", wheel, sdist)
    expect(said.count("PASSED") == 2, said)
    run(python, "-m", "check_wheel_contents", wheel)


def a_validator_accepts_what_it_contains(folder):
    """By the published schema."""
    (folder / "contents.json").write_bytes(read_contents(MADE))
    python = environment(folder / "venv", sys.executable)
    said = run(python, *FROM_INDEX, "cyclonedx-python-lib[json-validation]", check=False)
    if not can_import(python, "cyclonedx") or not can_import(python, "jsonschema"):
        raise Skip(f"it cannot be installed: {said[-200:]}")
    script = "import pathlib, sys; from cyclonedx.schema import SchemaVersion; " \
        "from cyclonedx.validation.json import JsonStrictValidator; " \
        "print(JsonStrictValidator(SchemaVersion.V1_6).validate_str(pathlib.Path(sys.argv[1]).read_text()))"
    expect_equal(run(python, "-c", script, folder / "contents.json").strip(), "None", "its error")
    wrong = (folder / "contents.json").read_text().replace('"library"', '"libary"', 1)
    (folder / "contents.json").write_text(wrong)
    expect("libary" in run(python, "-c", script, folder / "contents.json"), "a wrong file passed")


def main():
    tests = {test.__name__: test for test in [
        files_and_their_record_agree, metadata_names_numpy_and_the_extras, what_it_contains_is_listed,
        the_same_bytes_each_time, it_works_in_a_virtual_environment,
        the_program_runs_the_commands_in_python, another_version_of_the_package_is_refused,
        an_editable_install_runs_them_too, a_wrong_or_missing_library_is_an_import_error,
        programs_are_found_where_pip_puts_them]}
    if MADE and not MADE.endswith(os.uname().machine + ".whl"):
        tests = {test.__name__: test for test in [segments_begin_at_large_pages, it_works_in_an_emulator,
                                                  a_validator_accepts_what_it_contains, twine_and_check_wheel_contents_accept_it]}
    elif MADE:
        tests["an_sdist_builds_without_an_index"] = an_sdist_builds_without_an_index
        tests["a_validator_accepts_what_it_contains"] = a_validator_accepts_what_it_contains
        tests["twine_and_check_wheel_contents_accept_it"] = twine_and_check_wheel_contents_accept_it
        for version in PYTHONS:
            tests["it_works_in_python" + version] = functools.partial(it_works_in, version)
    else:
        print("skip wheel_in_every_python: compiles and installs; make test-wheel runs it")

    def in_folder(test):
        with tempfile.TemporaryDirectory() as name:
            return test(pathlib.Path(name))

    return run_tests([("wheel_" + name, functools.partial(in_folder, test)) for name, test in tests.items()])


if __name__ == "__main__":
    status = main()
    shared_folder().cleanup()
    sys.exit(status)
