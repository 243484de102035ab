# SPDX-License-Identifier: Apache-2.0
"""make_dist.py BUILD - what a release consists of: source archive, wheels, what each wheel contains (.cdx.json) and
SHA256SUMS, in a new folder of BUILD.

The folder is dist-VERSION if the commit has the tag vVERSION, and dist-COMMIT without a tag. The bytes depend
only on the commit, the compiler and the static libraries of this machine."""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import build_backend as backend
import make_wheel
import sbom


def release_name():
    """VERSION or the commit; refuses what is in no commit, and another version than that of the tag."""
    commit = backend.git("rev-parse", "--short=12", "HEAD").strip()
    if not commit:
        sys.exit("make_dist.py: needs a git checkout with a commit; without one, use make sdist")
    changed = backend.git("status", "--porcelain").splitlines()
    if changed:
        sys.exit(f"make_dist.py: not committed: {changed[0][3:]}"
                 + (f" and {len(changed) - 1} more" if len(changed) > 1 else ""))
    tags, version = backend.git("tag", "--points-at", "HEAD", "--list", "v*").split(), backend.version()
    if tags and f"v{version}" not in tags:
        sys.exit(f"make_dist.py: the tag is {tags[0]}, the version in include/tokmap.h is {version}")
    return version if tags else commit


def main(build):
    folder = pathlib.Path(build, "dist-" + release_name()).resolve()
    os.environ["SOURCE_DATE_EPOCH"] = backend.git("log", "-1", "--format=%ct").strip()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    make_wheel.fetch_source(sbom.XXHASH[0])
    backend.build_sdist(folder)
    for processor in ("x86_64", "aarch64"):
        subprocess.run([sys.executable, make_wheel.__file__, folder], check=True, env={**os.environ, "ARCH": processor})
    for path in list(folder.glob("*.whl")):
        with zipfile.ZipFile(path) as wheel:
            contents = wheel.read(f"tokmap-{backend.version()}.dist-info/sboms/sbom.cdx.json")
        path.with_suffix(".cdx.json").write_bytes(contents)
    sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(folder.iterdir()))
    (folder / "SHA256SUMS").write_text(sums)
    print(f"{sums}{folder}")


if __name__ == "__main__":
    main(sys.argv[1])
