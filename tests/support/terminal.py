"""Runs a program on a pseudo-terminal, for tests of what only a terminal is shown."""

import os
import subprocess

from ref_protocol import Skip

try:
    import pty
except ImportError:
    pty = None


class Session:
    """The program, with stdout (and stderr, unless it is given) on a terminal. Skips the test where
    there is none to be had."""

    def __init__(self, arguments, **options):
        try:
            self.ours, theirs = pty.openpty()
        except (AttributeError, OSError) as error:
            raise Skip("no pseudo-terminal: %s" % error) from None
        options.setdefault("stderr", theirs)
        options.setdefault("stdin", subprocess.DEVNULL)
        self.process = subprocess.Popen(arguments, stdout=theirs, **options)
        os.close(theirs)
        self.text = b""

    def read(self):
        """More of what it prints; b"" when it has ended."""
        try:
            part = os.read(self.ours, 65536)
        except OSError:  # nobody writes there any more
            part = b""
        self.text += part
        return part

    def end(self):
        """Waits for it. Returns (exit status, all that it printed, with its own line ends)."""
        while self.read():
            pass
        os.close(self.ours)
        return self.process.wait(), self.text.replace(b"\r\n", b"\n")


def run(arguments, **options):
    return Session(arguments, **options).end()
