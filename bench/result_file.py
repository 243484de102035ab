# SPDX-License-Identifier: Apache-2.0
"""result_file.py - what the Python programs of bench/ say in a result file, besides rows; report_rows.py says what else
is in one."""

import json
import os
import pathlib
import platform
import re


def machine():
    cpu = re.search(r"^model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cpu": cpu[1].strip() if cpu else platform.machine(), "processors": os.cpu_count(),
            "memory_gib": round(memory / 2**30, 1), "kernel": platform.release(), "architecture": platform.machine()}


def as_text(result):
    """One row on each line, so that diffs of figures are readable."""
    rows = ",\n".join("    " + json.dumps(row) for row in result["rows"])
    head = json.dumps({key: value for key, value in result.items() if key != "rows"}, indent=2)
    return head[:-2] + ',\n  "rows": [\n' + rows + "\n  ]\n}\n"
