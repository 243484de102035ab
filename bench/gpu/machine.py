#!/usr/bin/env python3
"""machine.py - what the device, its driver and the system are, for the record. bench/gpu.sh runs it; with --look it only says whether there is a device."""

import argparse
import ctypes
import json
import os
import pathlib
import platform
import re
import resource
import subprocess
import sys

SKIPPED = 77
ATTRIBUTES = {
    "host NUMA node (134)": 134,
    "asynchronous engines (40)": 40,
    "multiprocessors (16)": 16,
    "compute capability, major (75)": 75,
    "compute capability, minor (76)": 76,
}
NO_DEVICE = {34: "libcuda.so.1 is the toolkit's stub, not a driver",
             100: "the CUDA driver finds no device in this machine"}


class Driver:
    """The first device, through the driver's own library."""

    def __init__(self):
        """Raises OSError that says what is missing."""
        try:
            self.cuda = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise OSError(f"there is no CUDA driver on this machine ({error})") from None
        code = self.cuda.cuInit(0)
        if code:
            raise OSError(NO_DEVICE.get(code, f"the CUDA driver does not start: error {code}"))
        count = ctypes.c_int()
        if self.cuda.cuDeviceGetCount(ctypes.byref(count)) or count.value < 1:
            raise OSError("the CUDA driver finds no device in this machine")
        self.n_devices, self.device = count.value, ctypes.c_int()
        self.cuda.cuDeviceGet(ctypes.byref(self.device), 0)

    def name(self):
        text = ctypes.create_string_buffer(256)
        self.cuda.cuDeviceGetName(text, 256, self.device)
        return text.value.decode(errors="replace")

    def version(self):
        value = ctypes.c_int()
        self.cuda.cuDriverGetVersion(ctypes.byref(value))
        return f"{value.value // 1000}.{value.value % 1000 // 10}"

    def attribute(self, number):
        value = ctypes.c_int()
        code = self.cuda.cuDeviceGetAttribute(ctypes.byref(value), number, self.device)
        return value.value if code == 0 else f"error {code}"

    def bus_id(self):
        text = ctypes.create_string_buffer(32)
        code = self.cuda.cuDeviceGetPCIBusId(text, 32, self.device)
        return text.value.decode() if code == 0 else None


def read(path, default=None):
    try:
        return pathlib.Path(path).read_text(errors="replace").strip()
    except OSError:
        return default


def output(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=15)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


# ---- The system ----


def cpu_name():
    found = re.search(r"^model name\s*:\s*(.*)", read("/proc/cpuinfo", ""), re.MULTILINE)
    return found[1] if found else platform.machine()


def memory_gib():
    found = re.search(r"^MemTotal:\s*(\d+)", read("/proc/meminfo", ""), re.MULTILINE)
    return round(int(found[1]) / 1048576, 1) if found else 0


def describe():
    """As result files have it."""
    return {"cpu": cpu_name(), "processors": os.cpu_count(), "memory_gib": memory_gib(),
            "kernel": platform.release(), "architecture": platform.machine()}


def io_uring():
    parameters = ctypes.create_string_buffer(512)
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(425, 8, parameters)  # io_uring_setup, on all architectures
    if fd < 0:
        return os.strerror(ctypes.get_errno())
    os.close(fd)
    return "works"


def file_system(path):
    best = ("", "unknown")
    for line in read("/proc/self/mounts", "").split("\n"):
        fields = line.split()
        if len(fields) > 2 and os.path.realpath(path).startswith(fields[1]):
            best = max(best, (fields[1], fields[2]), key=lambda mount: len(mount[0]))
    return best[1]


def system(folder):
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    nodes = pathlib.Path("/sys/devices/system/node").glob("node[0-9]*")
    return {
        **describe(),
        "memory that may be locked (ulimit -l)": ["unlimited" if n == resource.RLIM_INFINITY else n
                                                  for n in limit],
        "io_uring": io_uring(),
        "transparent huge pages": read("/sys/kernel/mm/transparent_hugepage/enabled"),
        "huge pages reserved": read("/proc/sys/vm/nr_hugepages"),
        "memory nodes": sorted(path.name for path in nodes),
        "file system of the data": file_system(folder),
        "cgroup memory limit": read("/sys/fs/cgroup/memory.max"),
        "CUDA_DEVICE_MAX_CONNECTIONS": os.environ.get("CUDA_DEVICE_MAX_CONNECTIONS"),
    }


# ---- The device ----

SMI_FIELDS = ("name", "driver_version", "pcie.link.gen.current", "pcie.link.gen.max",
              "pcie.link.width.current", "pcie.link.width.max", "clocks.sm", "clocks.mem",
              "power.draw", "temperature.gpu", "compute_mode")


def query_smi():
    line = output("nvidia-smi", "--id=0", "--query-gpu=" + ",".join(SMI_FIELDS),
                  "--format=csv,noheader")
    return dict(zip(SMI_FIELDS, (field.strip() for field in line.split(",")))) if line else None


def link_of(bus_id):
    folder = f"/sys/bus/pci/devices/{(bus_id or '').lower()}/"
    names = ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width",
             "numa_node")
    return {name: read(folder + name) for name in names}


def device(driver):
    kernel_module = read("/proc/driver/nvidia/version", "")
    return {
        "name": driver.name(), "devices": driver.n_devices, "CUDA version": driver.version(),
        "PCI": driver.bus_id(),
        "attributes": {name: driver.attribute(n) for name, n in ATTRIBUTES.items()},
        "kernel module": kernel_module.split("\n")[0] or None,
        "module is open": "Open Kernel Module" in kernel_module if kernel_module else None,
        "idle": {"nvidia-smi": query_smi(), "link": link_of(driver.bus_id())},
        "topology": output("nvidia-smi", "topo", "-m"),
    }


def programs():
    code = ("import json, sys\nfound = {'python': sys.version.split()[0]}\n"
            "for name in ('torch', 'numpy', 'jax', 'cupy-cuda13x'):\n"
            "    try:\n        from importlib.metadata import version\n"
            "        found[name] = version(name)\n"
            "    except Exception:\n        found[name] = None\nprint(json.dumps(found))")
    found = json.loads(output(sys.executable, "-c", code) or "{}")
    for name in ("nvcc", "compute-sanitizer", "gcc", "nsys"):
        text = output(name, "--version")
        found[name] = text.split("\n")[-1 if name == "nvcc" else 0] if text else None
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--look", action="store_true")
    parser.add_argument("--out", help="file for the record, as JSON")
    parser.add_argument("--dir", default=".", help="where the data are")
    options = parser.parse_args()
    try:
        driver = Driver()
    except OSError as error:
        print(error)
        return SKIPPED
    if options.look:
        print(driver.name())
        return 0
    record = {"device": device(driver), "system": system(options.dir),
              "programs": programs()}
    pathlib.Path(options.out).write_text(json.dumps(record, indent=2))
    print(json.dumps(record, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
