#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/recipes/ssh.sh with three machines that are all this one, and a stand-in for ssh; some processes are killed."""

import os
import re
import sys

from marked import Marked
from planned import Killer, Planned, possible_kinds, run_checks
from ref_protocol import expect, expect_equal

# As `ssh -o BatchMode=yes HOST COMMAND`: the other machine does not know the PATH of this one.
STAND_IN = """#!/bin/sh
[ "$1 $2" = "-o BatchMode=yes" ] && [ $# = 4 ] || exit 255
echo "on $3"
exec env PATH=/usr/bin:/bin sh -c "$4"
"""


def pack_on_three_machines(folder, marked, ssh, planned):
    """Runs the recipe until it ends with 0, with this text as the command ssh, which says on which host it is."""
    (folder / "bin").mkdir()
    (folder / "bin/ssh").write_text(ssh)
    (folder / "bin/ssh").chmod(0o755)
    marked.environment["PATH"] = os.pathsep.join([str(folder / "bin"), marked.environment["PATH"]])
    machines, n_runs, code, said = set(), 0, 1, ""
    with Killer(marked, 3, 3) as killer:
        while code != 0:
            n_runs += 1
            expect(n_runs < 10, "it does not end; it said " + said)
            code, said = marked.call("sh", "ssh.sh", "one", "two", "three", cwd=folder, seconds=200, check=False)
            machines.update(re.findall(r"^on (\w+)$", said, re.MULTILINE))
    expect_equal(machines, {"one", "two", "three"}, "machines")
    return "%s; %d kills, %d runs" % (planned.check(), killer.n_kills, n_runs)


def three_machines_with_kills(folder):
    with Marked(folder) as marked:
        planned = Planned(folder, marked, 8, kinds=possible_kinds())
        return pack_on_three_machines(folder, marked, STAND_IN, planned)


if __name__ == "__main__":
    sys.exit(run_checks("ssh: "))
