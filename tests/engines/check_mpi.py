#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/recipes/mpi.sh with Open MPI: a rank for each core, some of them killed."""

import sys

from marked import Marked
from planned import Killer, Planned, need_programs, run_checks
from ref_protocol import expect

# For root.
ALLOWED = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def ranks_with_kills(folder):
    need_programs("mpirun")
    with Marked(folder) as marked:
        planned = Planned(folder, marked)
        marked.environment.update(ALLOWED)
        with Killer(marked, 2, 2) as killer:
            said = marked.call("sh", "mpi.sh", cwd=folder, seconds=300)[1]
        expect(killer.n_kills > 0, "nothing was killed: " + said)
        return "%s; %d kills" % (planned.check(), killer.n_kills)


if __name__ == "__main__":
    sys.exit(run_checks("mpi: "))
