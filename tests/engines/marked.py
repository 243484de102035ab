# SPDX-License-Identifier: Apache-2.0
"""Processes that a check starts, in any number of steps: daemons and what they start carry a mark in their
environment, so that a check can end them all, and only them."""

import os
import pathlib
import signal
import subprocess
import time

from ref_protocol import NO_LEAK_SEARCH

NAME = "TOKMAP_ENGINE_CHECK"


def environment_of(pid):
    try:
        return pathlib.Path("/proc/%s/environ" % pid).read_bytes().split(b"\0")
    except OSError:
        return []


def is_dead(pid):
    """It has ended, or is a zombie that its parent has not waited for."""
    try:
        return pathlib.Path("/proc/%s/stat" % pid).read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


class Marked:
    """`with Marked(folder) as m:` - ends every process with its mark at the end."""

    def __init__(self, folder):
        self.mark = "%s=%s" % (NAME, folder)
        self.started = []
        self.environment = {**os.environ, **NO_LEAK_SEARCH, NAME: str(folder),
                            "PATH": os.environ["PATH"] + ":/usr/sbin"}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end_all()

    def pids(self, word=""):
        """Of the processes with the mark that have `word` in their command line."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid() and not is_dead(entry.name) and (
                    self.mark.encode() in environment_of(entry.name)):
                try:
                    line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                except OSError:
                    continue
                if word in line:
                    found.append(int(entry.name))
        return found

    def start(self, *command, **options):
        """In a session of its own, without a terminal."""
        process = subprocess.Popen([str(word) for word in command], **{
            "env": self.environment, "start_new_session": True, "stdin": subprocess.DEVNULL, **options})
        self.started.append(process)
        return process

    def call(self, *command, seconds=60, check=True, **options):
        """(exit status, output and messages); it may take so many seconds."""
        run = self.start(*command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
        try:
            said = run.communicate(timeout=seconds)[0].decode("utf-8", "replace")
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            said = run.communicate()[0].decode("utf-8", "replace")
            raise AssertionError("%s: no end after %d s: %s" % (command, seconds, said)) from None
        if check and run.returncode != 0:
            raise AssertionError("%s: exit %d: %s" % (command, run.returncode, said))
        return run.returncode, said

    def end_all(self):
        for process in self.started:  # some write over their environment
            if process.poll() is None:
                process.terminate()
        for number, patience in ((signal.SIGTERM, 3), (signal.SIGKILL, 10)):
            deadline = time.monotonic() + patience
            while self.pids() and time.monotonic() < deadline:
                for pid in self.pids():
                    send(pid, number)
                time.sleep(0.1)
        for process in self.started:
            process.wait(20)
        left = self.pids()
        if left:
            raise AssertionError("processes %s do not end" % left)


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def wait_until(condition, what, seconds=60, every=0.1):
    """What the condition returns, once it is true."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError("after %d s still not: %s" % (seconds, what))
        time.sleep(every)
