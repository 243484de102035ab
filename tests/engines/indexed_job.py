# SPDX-License-Identifier: Apache-2.0
"""What Kubernetes does with a manifest of an Indexed Job, as far as its containers see it: indexes, restarts, limits."""

import json
import random
import re
import signal
import time

from marked import send

MOST_SECONDS = 300


def read_manifest(text):
    """The part of YAML that manifests need: block mappings and sequences, and values of one line, which are numbers,
    words, or JSON."""
    lines = [(len(line) - len(line.lstrip()), line.strip()) for line in text.splitlines()
             if line.strip() and not line.lstrip().startswith("#")]
    value, rest = read_block(lines, lines[0][0])
    if rest:
        raise ValueError("not understood: %s" % rest[0][1])
    return value


def read_block(lines, indent):
    """(the value that begins at the first line, the lines after it)"""
    is_list = lines[0][1].startswith("- ")
    value = [] if is_list else {}
    while lines and lines[0][0] == indent and lines[0][1].startswith("- ") == is_list:
        if is_list:
            item, lines = read_block([(indent + 2, lines[0][1][2:]), *lines[1:]], indent + 2)
            value.append(item)
            continue
        key, colon, rest = re.match(r"([\w./-]+)(:)(?: +(.*))?$", lines[0][1]).groups()
        lines = lines[1:]
        if rest is not None:
            value[key] = read_scalar(rest)
        else:
            value[key], lines = read_block(lines, lines[0][0])
    return value, lines


def read_scalar(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


class IndexedJob:
    """Pods are processes in `folder`, which is the mounted volume. `trouble(rng, kinds)` returns one of these kinds, or
    None: "kill" and "evict" are for a pod that runs, "twin" for one that starts."""

    def __init__(self, manifest, folder, marked, seed, trouble):
        spec = manifest["spec"]
        assert manifest["apiVersion"] == "batch/v1" and manifest["kind"] == "Job", manifest
        assert spec["completionMode"] == "Indexed" and spec["template"]["spec"]["restartPolicy"] == "Never", spec
        container, = spec["template"]["spec"]["containers"]
        assert container["workingDir"] == container["volumeMounts"][0]["mountPath"], container
        self.command, self.folder, self.marked = container["command"], folder, marked
        self.completions, self.parallelism = spec["completions"], spec["parallelism"]
        self.limit, self.rules = spec["backoffLimitPerIndex"], spec["podFailurePolicy"]["rules"]
        self.rng, self.trouble = random.Random(seed), trouble
        self.pods, self.evicted, self.done = [], set(), set()  # pods: (index, process)
        self.failures, self.failed, self.n_started = {}, {}, 0

    def start_pod(self, index):
        with open(self.folder / ("pod-%d.log" % index), "ab") as out:
            pod = self.marked.start(*self.command, cwd=self.folder, stdout=out, stderr=out, env={
                **self.marked.environment, "JOB_COMPLETION_INDEX": str(index)})
        self.pods.append((index, pod))
        self.n_started += 1

    def disturb(self, pod):
        how = self.trouble(self.rng, ["kill", "evict"])
        if how in ("kill", "evict"):
            if how == "evict":
                self.evicted.add(pod)
            send(pod.pid, signal.SIGTERM if how == "evict" else signal.SIGKILL)

    def action_for(self, pod, code):
        for rule in self.rules:
            conditions = [c["type"] for c in rule.get("onPodConditions", [])]
            codes = rule.get("onExitCodes", {"operator": "In", "values": []})
            assert codes["operator"] == "In", rule
            if (pod in self.evicted and "DisruptionTarget" in conditions) or code in codes["values"]:
                return rule["action"]
        return "Count"

    def end_of(self, index, pod):
        code = pod.returncode if pod.returncode >= 0 else 128 - pod.returncode
        if code == 0:
            self.done.add(index)
            return
        action = self.action_for(pod, code)
        if action == "Count":
            self.failures[index] = self.failures.get(index, 0) + 1
        if action == "FailIndex" or self.failures.get(index, 0) > self.limit:
            self.failed[index] = code

    def waiting(self):
        busy = self.done | self.failed.keys() | {index for index, _ in self.pods}
        return [index for index in range(self.completions) if index not in busy]

    def run(self):
        """True if all indexes are done; `failed` has the exit status of the others."""
        deadline = time.monotonic() + MOST_SECONDS
        while self.pods or self.waiting():
            assert time.monotonic() < deadline, "no end after %d s" % MOST_SECONDS
            for index in self.waiting()[:max(0, self.parallelism - len(self.pods))]:
                self.start_pod(index)
                if self.trouble(self.rng, ["twin"]):  # Kubernetes does not promise that there is only one
                    self.start_pod(index)
            for index, pod in list(self.pods):
                if pod.poll() is None:
                    self.disturb(pod)
                else:
                    self.pods.remove((index, pod))
                    self.end_of(index, pod)
            time.sleep(0.01)
        return not self.failed
