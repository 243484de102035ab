#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/recipes.md that copy datasets to a store and back: s5cmd and rclone with moto's server for S3, and hf
with a server that serves one repository as the Hub does. Each copy is damaged, and mended with what verify --files prints."""

import contextlib
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / name) for name in ("python", "oracles", "support", "engines", "pack")]

import package  # noqa: E402,F401
import ref_writer  # noqa: E402
from hub_server import serve  # noqa: E402
from ref_protocol import BUILD, Skip, expect, expect_equal, program, run_in_folders  # noqa: E402
from pack_corpus import small_vocabulary  # noqa: E402
from slurm import free_ports  # noqa: E402

import tokmap  # noqa: E402

LENGTHS = [300_000, 0, 7, 400_000, 12_000, 5]
TOKENS = [i * 7919 % 1000 for i in range(sum(LENGTHS))]
SEGMENTS = [(b"cells/000000.bin", 700_000, b""), (b"cells/000001.bin", 5, b""), (b"cells/000002.bin", 12_007, b"")]


def blocks():
    """The commands of the section, {(tool, number): text}."""
    text = (ROOT / "docs/recipes.md").read_text()
    section = text.partition("\n## Datasets in an object store\n")[2].partition("\n## ")[0]
    found = {}
    for language, block in re.findall(r"<!-- run by tests/stores/check_copies.py -->\n```(\w+)\n(.*?)```", section, re.DOTALL):
        tool = "python" if language == "python" else block.split()[0]
        found[tool, sum(key[0] == tool for key in found)] = block
    expect_equal(sorted(found), [("hf", 0), ("python", 0), ("rclone", 0), ("rclone", 1), ("s5cmd", 0), ("s5cmd", 1)], "blocks")
    return found


def need_program(name):
    """In the environment of this Python, or in the path."""
    beside = pathlib.Path(sys.executable).parent
    found = shutil.which(name, path=os.pathsep.join([str(beside), os.environ["PATH"]]))
    if not found:
        raise Skip("%s is not installed" % name)
    return found


def make_data(place):
    """data/train, joined, with a late column and the indexes of its cells; data/val, flat."""
    (place / "data/cells").mkdir(parents=True)
    ref_writer.write(str(place / "data/train"), TOKENS, LENGTHS, vocab=1000, segments=SEGMENTS)
    first = 0
    for name, n, _ in SEGMENTS:
        ref_writer.write(str(place / "data" / name.decode()[:-4]), TOKENS[first:first + n], [n], vocab=1000)
        first += n
    ref_writer.write(str(place / "data/val"), TOKENS[:999], [999], vocab=1000)
    tokmap.open(place / "data/train").add_column("score", list(range(len(LENGTHS))))
    return {str(path.relative_to(place / "data")): path.read_bytes() for path in (place / "data").rglob("*") if path.is_file()}


def contents(place):
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*")
            if path.is_file() and ".cache" not in path.parts}


def shell(text, folder, environment):
    path = os.pathsep.join([os.path.abspath(BUILD), str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
    ours = {name: value for name, value in os.environ.items() if name != "AWS_CA_BUNDLE"}  # rclone 1.60 refuses to start with it
    done = subprocess.run(["bash", "-e", "-c", text], cwd=folder, env={**ours, "PATH": path, **environment},
                          capture_output=True, text=True, timeout=300)
    expect(done.returncode == 0, "%s\n%s%s" % (text, done.stdout, done.stderr))
    return done


def damage(data, seed):
    """A wrong byte that leaves size and time, a shortened file and a missing one. The names of the files."""
    rng = random.Random(seed)
    wrong, short, missing = rng.sample([name.decode() for name, _, _ in SEGMENTS], 3)
    times = os.stat(data / wrong)
    with open(data / wrong, "r+b") as f:
        at = rng.randrange(times.st_size)
        f.seek(at)
        byte = f.read(1)
        f.seek(at)
        f.write(bytes([byte[0] ^ 1]))
    os.utime(data / wrong, ns=(times.st_atime_ns, times.st_mtime_ns))
    os.truncate(data / short, os.stat(data / short).st_size // 2)
    os.remove(data / missing)
    return {wrong, short, missing}


def verify_files(place):
    done = subprocess.run([os.path.join(BUILD, "tokmap"), "verify", "--files", "-q", "data/train"], cwd=place, capture_output=True, text=True)
    return done.returncode, set(done.stdout.split())


def mend(folder, block, environment, wanted):
    """The last command of the block, after some damage."""
    command = block.strip().splitlines()[-1]
    expect(command.startswith("tokmap verify --files"), command)
    names = damage(folder / "data", 5)
    expect_equal(verify_files(folder), (4, names), "what is damaged")
    shell(command, folder, environment)
    expect_equal(verify_files(folder), (0, set()), "after the copy")
    expect(contents(folder / "data") == wanted, "contents")


@contextlib.contextmanager
def s3_server(place):
    """moto with an empty bucket; its environment for clients."""
    try:
        import moto.server  # noqa: F401
    except ImportError:
        raise Skip("moto is not installed: pip install 'moto[server]'") from None
    port, = free_ports(1)
    endpoint = "http://127.0.0.1:%d" % port
    with open(place / "moto.log", "wb") as log:
        server = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(urllib.request.Request(endpoint + "/bucket", method="PUT"))
                break
            except (urllib.error.URLError, ConnectionError):
                expect(server.poll() is None and time.monotonic() < deadline, "moto: " + (place / "moto.log").read_text())
                time.sleep(0.1)
        yield {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1", "S3_ENDPOINT_URL": endpoint,
               "AWS_ENDPOINT_URL": endpoint, "HOME": str(place), "RCLONE_CONFIG": str(place / "none.conf"),
               "RCLONE_CONFIG_STORE_TYPE": "s3", "RCLONE_CONFIG_STORE_PROVIDER": "Other", "RCLONE_CONFIG_STORE_ENV_AUTH": "true",
               "RCLONE_CONFIG_STORE_ENDPOINT": endpoint, "NO_PROXY": "127.0.0.1"}
    finally:
        server.terminate()
        server.wait(30)


def there_and_back(folder, tool):
    need_program(tool)
    wanted, texts = make_data(folder), blocks()
    with s3_server(folder) as environment:
        shell(texts[tool, 0], folder, environment)
        shutil.rmtree(folder / "data")
        shell(texts[tool, 1], folder, environment)
        expect(contents(folder / "data") == wanted, "contents: %s" % sorted(contents(folder / "data")))
        mend(folder, texts[tool, 1], environment, wanted)
    return "%d files" % len(wanted)


def s5cmd_copies_there_and_back(folder):
    return there_and_back(folder, "s5cmd")


def rclone_copies_there_and_back(folder):
    return there_and_back(folder, "rclone")


def store_sbatch_packs_with_s5cmd(folder):
    """docs/recipes/store.sbatch with its own COPY. tests/engines/test_store.py kills its tasks."""
    need_program("s5cmd")
    disk = folder / "disk"
    (disk / "corpus").mkdir(parents=True)
    for i in range(5):
        (disk / "corpus" / ("%d.txt" % i)).write_text("".join("line %d of file %d\n" % (j, i) for j in range(200 * i)))
    (disk / "tokenizer.json").write_text(small_vocabulary())
    with s3_server(folder) as environment:
        environment = {**environment, "FOLDER": str(disk)}
        shell("tokmap pack -q --lines corpus/ --tokenizer tokenizer.json -o ../plain\n"
              "tokmap plan -q --lines corpus/ --tokenizer tokenizer.json --cells cells --cell-size 4k -o run.plan\n"
              "s5cmd cp ./ s3://bucket/pack/", disk, environment)
        n = len(re.findall("^cell ", (disk / "run.plan").read_text(), re.MULTILINE))
        shutil.rmtree(disk)
        for task in range(n):
            shell("sh %s/docs/recipes/store.sbatch" % ROOT, folder, {**environment, "SLURM_ARRAY_TASK_ID": str(task)})
        shell("sh %s/docs/recipes/store.sbatch join" % ROOT, folder, environment)
        shell("s5cmd cp 's3://bucket/pack/cells/*' back/cells/\ns5cmd cp s3://bucket/pack/train.tmi back/\n"
              "tokmap verify -q back/train", folder, environment)
    expect_equal(tokmap.open(folder / "back/train").dataset_id, tokmap.open(folder / "plain").dataset_id, "dataset id")
    return "%d cells" % n


def hf_downloads(folder):
    need_program("hf")
    wanted, texts = make_data(folder), blocks()
    identity = tokmap.open(folder / "data/train").dataset_id
    with serve() as hub:
        environment = {"HF_ENDPOINT": "http://127.0.0.1:%d" % hub.server.server_port, "HF_HOME": str(folder / "hf"), "HF_TOKEN": "",
                       "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1", "HF_HUB_DISABLE_XET": "1"}
        hub.set_branch("datasets", "me/corpus", wanted)
        shutil.rmtree(folder / "data")
        shell(texts["hf", 0], folder, environment)
        expect(contents(folder / "data") == wanted, "contents: %s" % sorted(contents(folder / "data")))
        mend(folder, texts["hf", 0], environment, wanted)
        os.environ["HF_HOME"] = str(folder / "hf")
        n_commands, names = 0, {}
        while "loader" not in names:
            try:
                exec(texts["python", 0], names)
            except FileNotFoundError as error:
                n_commands += 1
                expect(n_commands <= 3, error)
                shell(str(error).partition("Run: ")[2], folder, environment)
        names["loader"].close()
        expect_equal(tokmap.open("hf://datasets/me/corpus/train").dataset_id, identity, "dataset in the cache")
    return "%d files; %d commands of errors filled the cache" % (len(wanted), n_commands)


if __name__ == "__main__":
    program("tokmap")
    sys.exit(run_in_folders("copies: "))
