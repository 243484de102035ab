#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""file_systems.py --tokbench FILE --dir FOLDER - `tokbench file-system` on each file system that this machine can make, in a
private namespace (so as root). Nothing else may run meanwhile."""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests/support"), str(HERE.parent / "tests/oracles")]
# For each: its kind for tests/support/mounts.py and its options. "": the folder itself.
PLACES = {"the folder": ("", {}), "overlayfs": ("overlay", {}), "xfs": ("xfs", {}), "btrfs": ("btrfs", {}), "tmpfs": ("tmpfs", {}),
          "quick FUSE": ("fuse", {"latency": 0.001, "attributes": 1}), "slow FUSE": ("fuse", {"latency": 0.03, "attributes": 1})}


def measure(name, place, options):
    words = [options.tokbench, "file-system", place, "--size", options.size, *(["--json"] if options.json else [])]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        return f"{name}: exit status {done.returncode}"
    return {"place": name, **json.loads(done.stdout)} if options.json else f"{name}: {done.stdout}"


def on_each(mounts, options):
    for name in options.places:
        kind, settings = PLACES[name]
        if not kind:
            yield measure(name, options.dir, options)
        elif kind == "fuse":
            for folder in ("shown", "fuse"):
                (options.dir / folder).mkdir(exist_ok=True)
            with mounts.fuse(options.dir / "shown", options.dir / "fuse", **settings):
                yield measure(name, options.dir / "fuse", options)
        else:
            with mounts.mounted(kind, options.dir) as place:
                yield measure(name, place, options)
            shutil.rmtree(options.dir / ("a_" + kind))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokbench", required=True)
    parser.add_argument("--dir", type=pathlib.Path, required=True)
    parser.add_argument("--size", default="512MiB")
    parser.add_argument("--places", nargs="+", default=list(PLACES), choices=PLACES)
    parser.add_argument("--json", action="store_true", help="an object for each, one per line")
    options = parser.parse_args()
    import mounts

    mounts.enter_namespace()
    for found in on_each(mounts, options):
        print(json.dumps(found) if options.json else found, flush=True)


if __name__ == "__main__":
    main()
