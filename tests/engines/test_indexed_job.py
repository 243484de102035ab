#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/recipes/kubernetes.yaml: what the manifest says, and its indexes as processes, some killed, some evicted, some
twice at a time. There is no cluster here."""

import sys

from indexed_job import IndexedJob, read_manifest
from marked import Marked
from planned import ROOT, Planned, possible_kinds, run_checks
from ref_protocol import expect, expect_equal

MANIFEST = ROOT / "docs/recipes/kubernetes.yaml"


def manifest():
    return read_manifest(MANIFEST.read_text())


def the_manifest_is_an_indexed_job(folder):
    job = manifest()
    spec = job["spec"]
    container, = spec["template"]["spec"]["containers"]
    expect_equal((job["apiVersion"], job["kind"], spec["completionMode"], spec["template"]["spec"]["restartPolicy"]),
                 ("batch/v1", "Job", "Indexed", "Never"), "kind of job")
    expect(0 < spec["parallelism"] <= spec["completions"] and spec["backoffLimitPerIndex"] > 0, spec)
    expect_equal(container["image"], "tokmap", "image")
    expect_equal(container["command"][:2], ["sh", "-c"], "command")
    expect("--task $JOB_COMPLETION_INDEX/%d " % spec["completions"] in container["command"][2], container["command"])
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    expect_equal(mounts, {volume["name"]: container["workingDir"] for volume in spec["template"]["spec"]["volumes"]},
                 "volumes")


class Trouble:
    """Some of each kind, so that no index fails too often."""

    def __init__(self):
        self.left = {"kill": 4, "evict": 4, "twin": 4}

    def __call__(self, rng, kinds):
        how = rng.choice(kinds)
        if rng.random() > 0.05 or self.left[how] == 0:
            return None
        self.left[how] -= 1
        return how


def indexes_that_are_killed_and_started_twice(folder):
    with Marked(folder) as marked:
        planned = Planned(folder, marked, 4, kinds=possible_kinds())
        job = IndexedJob(manifest(), folder, marked, 5, Trouble())
        expect(job.run(), "failed indexes: %s" % job.failed)
        expect(job.n_started > job.completions, "no index was started again")
        planned.tokmap("join", "run.plan", "-o", "train")
        return "%s; %d pods for %d indexes" % (planned.check(), job.n_started, job.completions)


def an_input_that_changed_fails_its_index_at_once(folder):
    with Marked(folder) as marked:
        Planned(folder, marked, 1, kinds=("jsonl",))
        with open(folder / "corpus/b.jsonl", "a") as out:
            out.write("{}\n")
        job = IndexedJob(manifest(), folder, marked, 6, lambda rng, kinds: None)
        expect(not job.run(), "all indexes are done")
        expect_equal((set(job.failed.values()), job.failures), ({4}, {}), "exit status; failures that count")
        expect_equal(job.n_started, job.completions, "pods")


if __name__ == "__main__":
    sys.exit(run_checks("kubernetes: "))
