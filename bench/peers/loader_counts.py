# SPDX-License-Identifier: Apache-2.0
"""loader_counts.py - what the system counts for a process and its descendants, and memory limits.
"""

import os
import pathlib
import time


def tree():
    """This process and its descendants."""
    found, left = [], [os.getpid()]
    while left:
        pid = left.pop()
        found.append(pid)
        try:
            for task in os.listdir("/proc/%d/task" % pid):
                with open("/proc/%d/task/%s/children" % (pid, task)) as f:
                    left += [int(child) for child in f.read().split()]
        except OSError:
            continue  # it has ended meanwhile
    return found


def fields(path):
    try:
        with open(path) as f:
            return dict(line.split(":", 1) for line in f if ":" in line)
    except OSError:
        return {}


def memory():
    """MiB of the processes. private: without pages of files in the page cache."""
    sums = {"Pss": 0, "Pss_Anon": 0, "Pss_Shmem": 0}
    for pid in tree():
        found = fields("/proc/%d/smaps_rollup" % pid)
        for name in sums:
            sums[name] += int(found.get(name, "0 kB").split()[0])
    return {
        "pss": sums["Pss"] / 1024,
        "private": (sums["Pss_Anon"] + sums["Pss_Shmem"]) / 1024,
    }


def memory_available():
    """Bytes of memory that are available."""
    kib = fields("/proc/meminfo").get("MemAvailable", "%d kB" % (1 << 40))
    return int(kib.split()[0]) << 10


def own_memory():
    """MiB of this process that are not pages of a file: now, and a lower bound of the maximum."""
    found = fields("/proc/self/status")
    now, most, of_files = (
        int(found.get(name, "0 kB").split()[0]) / 1024 for name in ("RssAnon", "VmHWM", "RssFile")
    )
    return now, max(now, most - of_files)


def device_bytes():
    """Bytes that these processes have read from disks."""
    return sum(int(fields("/proc/%d/io" % pid).get("read_bytes", 0)) for pid in tree())


# ---- Memory limits ----


def memory_group():
    """(folder of our control group, name of its limit), or None."""
    try:
        lines = pathlib.Path("/proc/self/cgroup").read_text().split("\n")
    except OSError:
        return None
    for line in lines:
        number, controllers, path = (line.split(":", 2) + ["", ""])[:3]
        if controllers == "memory":
            return pathlib.Path("/sys/fs/cgroup/memory" + path), "memory.limit_in_bytes"
    for line in lines:
        if line.startswith("0::") and pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists():
            return pathlib.Path("/sys/fs/cgroup" + line[3:]), "memory.max"
    return None


class Limit:
    """A control group below ours with this much memory, for the duration of the block. `procs` is
    the file to which a process writes its number; None if that is not permitted, and then `why`."""

    def __init__(self, n_bytes):
        self.n_bytes, self.folder, self.procs, self.why = n_bytes, None, None, None

    def __enter__(self):
        found = memory_group()
        if found is None:
            self.why = "no control group for memory"
            return self
        folder = found[0] / ("tokmap-loaders-%d" % os.getpid())
        try:
            folder.mkdir()
            self.folder = folder
            (folder / found[1]).write_text(str(self.n_bytes))
            self.procs = str(folder / "cgroup.procs")
        except OSError as e:
            self.why = "no control group with a limit: %s" % e.strerror
            self.__exit__()
        return self

    def __exit__(self, *exc):
        if self.folder is None:
            return
        for _ in range(50):  # a group is empty a moment after its last process has ended
            try:
                self.folder.rmdir()
                break
            except OSError:
                time.sleep(0.1)
        self.folder = self.procs = None


def forget(paths):
    """Drops files from the page cache, except mapped pages."""
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        os.fdatasync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def read_ahead_kib(path):
    """The number of the device with the file; None if the system does not say."""
    device = os.stat(path).st_dev
    base = pathlib.Path("/sys/dev/block/%d:%d" % (os.major(device), os.minor(device)))
    for place in (base / "queue/read_ahead_kb", base / "../queue/read_ahead_kb"):
        try:
            return int(place.read_text())
        except (OSError, ValueError):
            continue
    return None
