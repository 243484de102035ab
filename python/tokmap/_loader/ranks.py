# SPDX-License-Identifier: Apache-2.0
"""Which rank this process is, if the caller does not say."""

import os
import sys
from typing import Any, Optional, Sequence, Tuple

from .._c.arguments import number
from .._c.errors import ArgumentError
from .options import Ranks

_logged = False

# Of each launcher: what it is called, and where it states rank and number of ranks. Slurm sets SLURM_NTASKS
# in the batch script too, which is one process, but the number of tasks of a step only under srun. Slurm is last:
# mpirun and torchrun are started in its steps, one process for each node, whose variables their ranks inherit.
_LAUNCHERS = (("torchrun", "RANK", "WORLD_SIZE"),
              ("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
              ("MPICH", "PMI_RANK", "PMI_SIZE"),
              ("Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"))


def _integer(text: str) -> Optional[int]:
    try:
        return int(text) if text else None
    except ValueError:
        return None


def _ask_torch() -> Optional[Tuple[int, int]]:
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed.get_rank(), distributed.get_world_size()


def _discover() -> Tuple[int, int, str]:
    of_torch = _ask_torch()
    if of_torch is not None:
        return (*of_torch, "torch.distributed")
    for name, rank, n_ranks in _LAUNCHERS:
        texts = os.environ.get(rank, ""), os.environ.get(n_ranks, "")
        found, n_found = map(_integer, texts)
        if found is not None and n_found is not None and 0 <= found < n_found:
            return found, n_found, f"{name} ({rank}, {n_ranks})"
        if (found or 0) > 0 or (n_found or 0) > 1:  # else all ranks would train on the samples of rank 0
            raise ArgumentError(f"the environment has {rank}={texts[0]!r} and {n_ranks}={texts[1]!r}, which say no "
                                "rank: correct both, or set rank and n_ranks of Ranks", -1)
    return 0, 1, "no launcher"


def _ask_launcher() -> Tuple[Optional[int], int]:
    """Returns what the launcher calls this process, None without a launcher, and of how many processes, 0 if it does not say."""
    of_torch = _ask_torch()
    if of_torch is not None:
        return of_torch
    for _, rank, n_ranks in _LAUNCHERS:
        found = _integer(os.environ.get(rank, ""))
        if found is not None:
            return found, _integer(os.environ.get(n_ranks, "")) or 0
    return None, 0


def is_first_of_rank(given: Ranks, found: Ranks) -> bool:
    """Whether this one of the processes that get the same rows writes what only one of them is to write. found: what find_rank
    returned."""
    if given.mesh is not None:
        return all(given.mesh.get_local_rank(name) == 0 for name in given.mesh.mesh_dim_names if name not in given.dims)
    (process, n_processes), rank = _ask_launcher(), found.rank or 0
    if process is None or rank == 0:
        return not process
    n_sharing, rest = divmod(n_processes, found.n_ranks or 1)
    if n_sharing < 2 or rest:
        return True
    # Ranks are numbered one after another, so the first process of a rank is rank * stride, where stride processes that
    # differ in an inner dimension (tensor, context) come one after another. Which divisor of n_sharing it is, is not known
    # here: with pp=2, dp=2, tp=3 process 3 is the first of rank 1, with pp=3, dp=2, tp=2 it is the second. So each process
    # that may be the first writes. Of powers of two only one divisor fits.
    stride, rest = divmod(process, rank)
    return stride > 0 and rest == 0 and n_sharing % stride == 0


def _rank_in_mesh(mesh: Any, dims: Sequence[str]) -> Tuple[int, int]:
    """Returns (rank, n_ranks) among the processes of a DeviceMesh that differ in these dimensions. The last dimension
    counts fastest. Processes that differ only in other dimensions have the same rank."""
    if not hasattr(mesh, "mesh_dim_names"):
        raise TypeError(f"mesh is {mesh!r:.80}: must be a DeviceMesh")
    names, rank, n_ranks = tuple(mesh.mesh_dim_names or ()), 0, 1
    is_list = isinstance(dims, (list, tuple)) and len(dims) > 0  # with no dimension all ranks would get the same rows
    if not is_list or any(name not in names for name in dims) or len(set(dims)) != len(dims):
        raise ValueError(f"dims is {dims!r:.80}: must be a list of different dimensions of the mesh, at least one; it has {names}")
    for name in dims:
        size = mesh.size(names.index(name))
        rank, n_ranks = rank * size + mesh.get_local_rank(name), n_ranks * size
    return rank, n_ranks


def find_rank(given: Ranks) -> Ranks:
    """Returns a copy with rank and n_ranks, and without a mesh: as given, else what torch.distributed or the launcher says, which
    is logged once."""
    global _logged
    if given.mesh is not None:
        if (given.rank, given.n_ranks) != (None, None):
            raise ValueError("mesh says rank and n_ranks: do not give them too")
        rank, n_ranks = _rank_in_mesh(given.mesh, given.dims)
        return given._with(rank=rank, n_ranks=n_ranks, mesh=None, dims=("dp",))
    if not isinstance(given.dims, (list, tuple)) or tuple(given.dims) != ("dp",):
        raise ValueError(f"dims is {given.dims!r:.80}: these are dimensions of a mesh, and there is no mesh")
    if (given.rank is None) != (given.n_ranks is None):
        raise ValueError(f"rank is {given.rank} and n_ranks is {given.n_ranks}: give both, or neither")
    if given.rank is not None and given.n_ranks is not None:
        n_ranks = number("n_ranks", given.n_ranks, 2**24, 1)
        return given._with(rank=number("rank", given.rank, n_ranks - 1), n_ranks=n_ranks)
    rank, n_ranks, source = _discover()
    if not _logged and n_ranks > 1:
        _logged = True
        import logging  # as long as the rest of the package takes

        logging.getLogger("tokmap").info("rank %d of %d, from %s; set ranks=tokmap.Ranks(...) if ranks share their data, as in "
                                         "tensor parallelism", rank, n_ranks, source)
    return given._with(rank=rank, n_ranks=n_ranks)


def check_found(found: Ranks) -> None:
    """RuntimeError if torch.distributed was initialized after the rank was found, and says another rank."""
    now = _ask_torch()
    if now is not None and now[1] > 1 and now != (found.rank, found.n_ranks):
        raise RuntimeError(f"this was made for rank {found.rank} of {found.n_ranks}, before torch.distributed was initialized: the "
                           f"process is rank {now[0]} of {now[1]}. Make it after init_process_group, or set rank "
                           "and n_ranks of Ranks")
