#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rules by which threads of tokmap pack wait (pack/pipeline.c), as a model: in no order of their steps do all of them wait,
jobs come out in the order of the inputs, and memory stays within what is planned and one job.

Each rule that prevents a deadlock is also left out, and then the model must find one."""

import os
import random
import sys
from typing import NamedTuple

from ref_protocol import Skip, expect, expect_equal, run_tests

LONG = os.environ.get("TOKMAP_LONG") == "all"
UNREAD, TAKEN, DONE, SPILLED = "unread", "taken", "done", "spilled"


class Rules(NamedTuple):
    n_segments: int = 3
    n_jobs: int = 3  # of a segment
    n_readers: int = 3
    n_encoders: int = 2
    most: int = 1  # jobs of the usual size in memory
    large: int = 1  # size of the jobs of all segments but the first; a reader knows it when it has read one
    inputs: tuple = (1, 1, 1)  # memory for inputs that each segment takes, of `most`
    spills: bool = True
    turn_may_read: bool = True  # the segment with the turn reads while it has no job in memory
    oldest_may_take: bool = True  # memory for inputs is not waited for by the oldest segment that is read


class Segment(NamedTuple):
    n_read: int = 0
    filling: bool = False  # its reader has taken room for a job
    has_inputs: bool = False
    begun: bool = False
    at_end: bool = False
    jobs: tuple = ()  # that are read and not handed out


class State(NamedTuple):
    segments: tuple
    turn: int = 0
    out: int = 0  # the size of the job that the caller has
    handed_out: tuple = ()


def size_of(rules, i):
    return rules.large if i > 0 else 1


def in_memory(rules, state):
    return state.out + sum(s.filling + size_of(rules, i) * sum(job != SPILLED for _, job in s.jobs)
                           for i, s in enumerate(state.segments))


def has_room(rules, state, i):
    """may_go for a job: 7/8 of the memory for segments without the turn."""
    s = state.segments[i]
    if i == state.turn and rules.turn_may_read and not s.jobs and not state.out:
        return True
    return (in_memory(rules, state) + 1) * 8 <= rules.most * (8 if i == state.turn else 7)


def has_inputs_room(rules, state, i):
    taken = sum(n for s, n in zip(state.segments, rules.inputs) if s.has_inputs)
    is_oldest = all(s.at_end for s in state.segments[:i])
    return taken + rules.inputs[i] <= rules.most or (is_oldest and rules.oldest_may_take)


def with_segment(state, i, **changes):
    return state._replace(segments=(*state.segments[:i], state.segments[i]._replace(**changes), *state.segments[i + 1:]))


def with_job(state, i, k, what):
    jobs = state.segments[i].jobs
    return with_segment(state, i, jobs=(*jobs[:k], (jobs[k][0], what), *jobs[k + 1:]))


def steps(rules, state):
    """What a thread may do next; each entry is the state after it."""
    found = []
    segments = state.segments
    n_open = sum(s.begun and not s.at_end for s in segments)
    for i, s in enumerate(segments):
        if not s.begun and n_open < rules.n_readers and all(before.begun for before in segments[:i]):
            found.append(with_segment(state, i, begun=True))
        if not s.begun or s.at_end:
            continue
        if not s.has_inputs:
            if has_inputs_room(rules, state, i):
                found.append(with_segment(state, i, has_inputs=True))
        elif not s.filling:
            if has_room(rules, state, i):
                found.append(with_segment(state, i, filling=True))
        elif s.n_read == rules.n_jobs:
            found.append(with_segment(state, i, filling=False, has_inputs=False, at_end=True))
        else:
            found.append(with_segment(state, i, filling=False, n_read=s.n_read + 1, jobs=(*s.jobs, ((i, s.n_read), UNREAD))))
    places = [(i, k) for i, s in enumerate(segments) for k in range(len(s.jobs))]
    n_taken = sum(segments[i].jobs[k][1] == TAKEN for i, k in places)
    unread = [(i, k) for i, k in places if segments[i].jobs[k][1] == UNREAD]
    if unread and n_taken < rules.n_encoders:
        found.append(with_job(state, *unread[0], TAKEN))
    for i, k in places:
        if segments[i].jobs[k][1] == TAKEN:
            found.append(with_job(state, i, k, DONE))
            if rules.spills and i != state.turn and 2 * in_memory(rules, state) >= rules.most:
                found.append(with_job(state, i, k, SPILLED))
    if state.turn < rules.n_segments:
        s = segments[state.turn]
        if state.out:  # the caller gives it back first
            found.append(state._replace(out=0))
        elif s.jobs and s.jobs[0][1] in (DONE, SPILLED):
            after = with_segment(state, state.turn, jobs=s.jobs[1:])
            found.append(after._replace(out=size_of(rules, state.turn), handed_out=(*state.handed_out, s.jobs[0][0])))
        elif not s.jobs and s.at_end:
            found.append(state._replace(turn=state.turn + 1))
    return found


def is_over(rules, state):
    return state.turn == rules.n_segments


def begin(rules):
    return State((Segment(),) * rules.n_segments)


def check_state(rules, state):
    if rules.large == 1:
        expect(in_memory(rules, state) <= rules.most + 1, "%d jobs in memory" % in_memory(rules, state))


def explore(rules):
    """(states, those in which all threads wait)"""
    seen, todo, stuck = {begin(rules)}, [begin(rules)], 0
    while todo:
        state = todo.pop()
        check_state(rules, state)
        after = steps(rules, state)
        if is_over(rules, state):
            expect_equal(list(state.handed_out), sorted(state.handed_out), "order")
            expect_equal(len(state.handed_out), rules.n_segments * rules.n_jobs, "jobs")
            continue
        stuck += not after
        for one in after:
            if one not in seen:
                seen.add(one)
                todo.append(one)
    return len(seen), stuck


def in_no_order_all_threads_wait():
    if os.environ.get("TOKMAP_SANITIZED"):
        raise Skip("there is nothing of C in a model")
    n = 0
    for most in (1, 2, 3):
        for spills in (False, True):
            for inputs in ((0, 0, 0), (1, 1, 1), (most, most, most), (most + 1, 0, most + 1)):
                for large in (1, 4):
                    rules = Rules(most=most, spills=spills, inputs=inputs, large=large)
                    n_states, stuck = explore(rules)
                    expect_equal(stuck, 0, "places where all wait, of %d, with %s" % (n_states, rules))
                    n += n_states
    return "%d states" % n


def each_rule_is_needed():
    for without in ("turn_may_read", "oldest_may_take"):
        found = [explore(Rules(most=most, inputs=inputs, large=4, spills=False, **{without: False}))[1]
                 for most in (2, 3) for inputs in ((0, 0, 0), (most + 1,) * 3)]
        expect(any(found), "without %s, no order of steps ends in a deadlock" % without)


def random_orders_of_larger_runs_end():
    rng, n = random.Random(1), 0
    for _ in range(7000 if LONG else 100):
        n_segments = rng.randint(1, 12)
        most = rng.randint(1, 12)
        rules = Rules(n_segments=n_segments, n_jobs=rng.randint(0, 6), n_readers=rng.randint(1, 12), n_encoders=rng.randint(1, 5),
                      most=most, large=rng.randint(1, 3 * most), spills=rng.random() < 0.5, inputs=tuple(rng.randint(0, most + 2) for _ in range(n_segments)))
        state = begin(rules)
        while not is_over(rules, state):
            after = steps(rules, state)
            expect(after, "all wait in %s with %s" % (state, rules))
            state = rng.choice(after)
            check_state(rules, state)
            n += 1
        expect_equal(list(state.handed_out), sorted(state.handed_out), "order")
        expect_equal(len(state.handed_out), rules.n_segments * rules.n_jobs, "jobs")
    return "%d steps" % n


if __name__ == "__main__":
    sys.exit(run_tests([(f.__name__, f) for f in (in_no_order_all_threads_wait, each_rule_is_needed, random_orders_of_larger_runs_end)]))
