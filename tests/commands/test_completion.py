# SPDX-License-Identifier: Apache-2.0
"""What bash, fish and zsh make of a line when Tab is pressed, with the scripts that `tokmap completion` prints."""

import os
import pty
import shutil
import subprocess
import sys

from ref_protocol import BUILD, Skip, expect_equal, program, run_in_folders, tokmap

ENVIRONMENT = {**os.environ, "PATH": "%s:%s" % (BUILD, os.environ["PATH"]), "TERM": "dumb", "LC_ALL": "C.UTF-8"}
CASES = {  # a line: the last word of it, completed
    "tokmap inf": "info", "tokmap help sca": "scan", "tokmap pack --on-error sk": "skip", "tokmap pack --format=js": "jsonl",
    "tokmap pack --tokeni": "--tokenizer", "tokmap report --by inp": "input", "tokmap columns dr": "drop",
    "tokmap completion zs": "zsh", "tokmap info so": "some", "tokmap columns add so": "some",
    "tokmap trace --ledger run.l": "run.ledger", "tokmap pack -o so": "some", "tokmap pack te": "text.jsonl",
    "tokmap plan --cells fo": "folder/", "tokmap cat folder/ot": "folder/other", "tokbench load stal": "stall",
    "tokbench file-system fo": "folder/", "tokbench f": None, "tokmap info nothing": None}
SEVERAL = {"tokbench f": ["file-system", "fit"], "tokmap info nothing": []}


def prepare(folder):
    """Files to be offered, and the scripts."""
    (folder / "folder").mkdir()
    for name in ("some.bin", "some.tmi", "text.jsonl", "run.ledger", "folder/other.tmi"):
        (folder / name).touch()
    for shell in ("bash", "fish", "zsh"):
        (folder / f"script.{shell}").write_text(tokmap(folder, "completion", shell))


def run(folder, shell, *arguments):
    if not shutil.which(shell):
        raise Skip("%s not found" % shell)
    done = subprocess.run([shell, *arguments], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True)
    expect_equal((done.returncode, done.stderr), (0, ""), shell)
    return done.stdout.splitlines()


def split_as_bash(line):
    """Bash splits --format=js in three words."""
    return line.replace("=", " = ").split()


def bash_completes(folder):
    for line, wanted in CASES.items():
        script = "source script.bash; COMP_WORDS=(\"$@\") COMP_CWORD=$(($# - 1)); _tokmap; printf '%s\\n' \"${COMPREPLY[@]}\""
        offered = run(folder, "bash", "--norc", "-c", script, "bash", *split_as_bash(line))
        offered = sorted(word for word in offered if word and not word.endswith((".bin", ".tmi")))
        expect_equal(offered, SEVERAL.get(line, [(wanted or "").rstrip("/")]), line)


def fish_completes(folder):
    for line, wanted in CASES.items():
        lines = run(folder, "fish", "-N", "-c", f"source script.fish; complete -C '{line}'")
        offered = sorted(word.partition("\t")[0].rpartition("=")[2] for word in lines)
        offered = [word for word in offered if not word.endswith((".bin", ".tmi"))]
        expect_equal(offered, SEVERAL.get(line, [wanted]), line)


def zsh_completes(folder):
    """Types the lines, with Tab, and a key that writes the line to a file."""
    if not shutil.which("zsh"):
        raise Skip("zsh not found")
    (folder / ".zshrc").write_text("autoload -U compinit; compinit -u -D; source ./script.zsh; PS1='READY>'\n"
                                   "show() { print -r -- $BUFFER >>typed; BUFFER= }; zle -N show\n"
                                   "bindkey '^T' show; bindkey '^I' complete-word\n")
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execvpe("zsh", ["zsh", "-d", "-i"], {**ENVIRONMENT, "ZDOTDIR": str(folder)})
    said = b""
    while b"READY>" not in said:
        said += os.read(terminal, 4096)
    os.write(terminal, "".join(line + "\t\x14" for line in CASES).encode() + b"exit\n")
    try:
        while os.read(terminal, 4096):
            pass
    except OSError:  # the terminal is closed
        pass
    os.waitpid(child, 0)
    os.close(terminal)
    for line, typed in zip(CASES, (folder / "typed").read_text().splitlines()):
        wanted = CASES[line] or {"tokbench f": "fi"}.get(line, "nothing")  # what fit and file-system begin with
        expect_equal(typed.split()[-1].rpartition("=")[2], wanted, line)


sys.exit(run_in_folders("", prepare=prepare))
