# SPDX-License-Identifier: Apache-2.0
"""Runs a program on a pseudo-terminal, for tests of what only a terminal is shown."""

import os
import subprocess
import threading

from ref_protocol import Skip

try:
    import pty
except ImportError:
    pty = None


END = b"\0the program has ended\0"


class Session:
    """The program, with stdout (and stderr, unless it is given) on a terminal. Skips the test where
    there is none to be had."""

    def __init__(self, arguments, **options):
        try:
            self.ours, self.theirs = pty.openpty()
        except (AttributeError, OSError) as error:
            raise Skip("no pseudo-terminal: %s" % error) from None
        options.setdefault("stderr", self.theirs)
        options.setdefault("stdin", subprocess.DEVNULL)
        self.process = subprocess.Popen(arguments, stdout=self.theirs, **options)
        self.text = b""
        self.ended = False
        # A terminal that nobody has open any more may lose what was not read yet. So it stays open, and a mark says
        # where the program's output ends.
        threading.Thread(target=self.mark_end, daemon=True).start()

    def mark_end(self):
        self.process.wait()
        os.write(self.theirs, END)

    def read(self):
        """More of what it prints; b"" when it has ended."""
        before = len(self.text)
        while not self.ended and len(self.text) == before:
            self.text += os.read(self.ours, 65536)
            self.ended = END in self.text
            self.text = self.text.replace(END, b"")
        return self.text[before:]

    def end(self):
        """Waits for it. Returns (exit status, all that it printed, with its own line ends)."""
        while self.read():
            pass
        os.close(self.ours)
        os.close(self.theirs)
        return self.process.wait(), self.text.replace(b"\r\n", b"\n")


def run(arguments, **options):
    return Session(arguments, **options).end()
