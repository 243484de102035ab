#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap.Stage on a device with streams, and on one that fails: what reaches the CUDA driver.

The driver is tests/stage/stand_in_driver.c: a libcuda.so.1 that does everything at once, in ordinary
memory, and writes down which stream waits for which event. Each test is a process of its own, since a
process finds its driver once."""

import os
import subprocess
import sys

import test_python_stage as stage
from package import BUILD, ROOT
from ref_protocol import program, run_in_folders

ON_DEVICE = """
import ctypes
sys.path.insert(0, {tests!r})
os.environ["TOKMAP_BUILD"] = {build!r}
import test_python_stage as t
import pathlib
folder = pathlib.Path({folder!r})
class Call(ctypes.Structure):
    _fields_ = [("what", ctypes.c_int), ("stream", ctypes.c_void_p), ("event", ctypes.c_void_p)]
driver = ctypes.CDLL("libcuda.so.1")
calls = (Call * 65536).in_dll(driver, "stand_in_calls")
n_calls = ctypes.c_int.in_dll(driver, "stand_in_n_calls")
fail_copies = ctypes.c_int.in_dll(driver, "stand_in_fail_copies")
captured = ctypes.c_void_p.in_dll(driver, "stand_in_captured")
fail_pins = ctypes.c_int.in_dll(driver, "stand_in_fail_pins")
def since(first):
    return [(chr(c.what), c.stream or 0) for c in calls[first:n_calls.value]]
def events(what, stream):
    return [c.event for c in calls[:n_calls.value] if (chr(c.what), c.stream or 0) == (what, stream)]
"""


def run_on_device(folder, script, **environment):
    text = stage.BEGIN.format(python=str(ROOT / "python"), folder=str(folder))
    text += ON_DEVICE.format(tests=str(ROOT / "tests/python"), build=str(BUILD),
                             folder=str(folder))
    done = subprocess.run([sys.executable, "-c", text + script], capture_output=True, text=True,
                          env={**os.environ, **environment,
                                            "LD_LIBRARY_PATH": os.path.dirname(program("stand_in/libcuda.so.1"))})
    assert (done.returncode, done.stderr) == (0, ""), (done.returncode, done.stderr)


STREAMS = """
assert tokmap.count_devices() == 2
s, truth = tokmap.Stage(t.loader(folder), 1, t.ALL, thread=False), t.loader(folder)
first = n_calls.value
b = s.next(0x700)
ready = events("r", 0x700)  # after the kernel
assert len(ready) == 1 and events("w", 0x700)[0] == ready[0]
t.check(b, next(truth))
assert b.inputs.__dlpack_device__() == (2, 1)
for stream, waits in ((0x700, 0x700), (-1, 0x700), (None, 0), (1, 0), (0x800, 0x800)):
    first = n_calls.value
    b.inputs.__dlpack__(stream=stream)
    assert since(first)[0] == ("w", waits), since(first)
    assert calls[first].event == ready[0]
    first = n_calls.value
    b.labels.__dlpack__(stream=0x999)
    assert since(first)[0] == ("w", 0x999), since(first)
    b.release(0x700)
    b = s.next(0x700)
    ready = events("r", 0x700)[-1:]
    t.check(b, next(truth))
t.raises(ValueError, b.inputs.__dlpack__, stream=0)
assert "each thread's own" in str(t.raises(ValueError, b.inputs.__dlpack__, stream=2))
t.raises(BufferError, b.inputs.__dlpack__, dl_device=(2, 0))
first = n_calls.value
b.release(0x900)
assert ("r", 0x900) in since(first), since(first)

class Torch:
    cuda_stream = 0xa00
class Protocol:
    def __cuda_stream__(self):
        return (0, 0xb00)
for given, is_ in ((Torch(), 0xa00), (Protocol(), 0xb00), (None, 0), (1, 0), (0, 0)):
    b = s.next(given)
    assert b._stream == is_ and ("w", is_) in since(0), given
    t.check(b, next(truth))
    first = n_calls.value
    del b
    assert since(first)[0] == ("r", is_), (given, since(first))
captured.value = 0x666
assert "captured" in str(t.raises(tokmap.Error, s.next, 0x666))
captured.value = 0
b = s.next(0xc00)
next(truth)
tensors = [_dlpack.take(b.labels.__dlpack__(stream=0xc10)) for _ in range(2)]
b.release()
for tensor in tensors:
    first = n_calls.value
    _dlpack.delete(tensor)
    assert since(first)[:2] == [("w", 0xc10), ("r", 0xc10)], since(first)

class torch:  # PyTorch in use, in a stream of its own
    class cuda:
        is_initialized = staticmethod(lambda: True)
        @staticmethod
        def current_stream(device):
            assert device == 1
            return Torch()
sys.modules["torch"] = torch
assert s.next()._stream == 0xa00
del sys.modules["torch"]
next(truth)

class Tensor:  # on the device
    def __init__(self, array):
        self.array = array
    def __dlpack__(self, *, stream):
        assert stream == -1
        return self.array.__dlpack__(stream=stream)
other = tokmap.Stage(t.loader(folder), 1).next()
s.fill(inputs=Tensor(other.inputs), stream=0xd00)
assert ("w", 0xd00) in since(0)
assert t.numbers(other.inputs) == t.said_by_loader(next(truth))[0]["inputs"]
t.raises(ValueError, s.fill, inputs=Tensor(other.labels))
t.raises(ValueError, s.fill, inputs=Tensor(tokmap.Stage(t.loader(folder), 0).next().inputs))
t.raises(TypeError, s.fill, inputs=bytearray(4 * t.ROWS * t.LENGTH))
assert tokmap.Stage(t.loader(folder), "cuda:1").device == 1
assert "no device 2" in str(t.raises(tokmap.DeviceError, tokmap.Stage, t.loader(folder), 2))
"""

FAILURES = """
for thread in (True, False):
    lines, unraisable = [], []
    def log(text):
        lines.append(text)
        raise RuntimeError("of the log")
    sys.unraisablehook = lambda what: unraisable.append(str(what.exc_value))
    fail_pins.value = 1
    s = tokmap.Stage(t.loader(folder), 0, t.ALL, thread=thread, n_slots=8, log=log)
    fail_pins.value = 0
    truth = t.loader(folder)
    for _ in range(20):
        t.check(s.next(), next(truth))
    assert len(lines) == 1 and "not pinned" in lines[0] and s.stats["pinned"] is False
    assert unraisable == ["of the log"]
    fail_copies.value = 1 << 20
    while True:
        try:
            t.check(s.next(), next(truth))
        except tokmap.DeviceError as e:
            error = e
            break
    assert "OF_THE_STAND_IN" in str(error), error
    fail_copies.value = 0
    t.raises(tokmap.DeviceError, s.next)
    assert len(s.state()) == 128
    s.close()
    assert len(lines) == 2 and "stopped" in lines[1], lines
"""

# A batch is collected while its stream is captured, which a release must not become part of.
CAPTURED = """
s, truth = tokmap.Stage(t.loader(folder), 0, t.ALL, n_slots=2), t.loader(folder)
for _ in range(20):
    b = s.next(0x700)
    t.check(b, next(truth))
    captured.value = 0x700
    first = n_calls.value
    del b
    assert [what for what, stream in since(first) if stream == 0x700] == []  # the stage's thread goes on in its own
    captured.value = 0
s.next(0x700)
captured.value = 0x700
s.close()
"""

# An array library deletes a tensor while it has the interpreter, for which `log` waits.
LOG_AND_DELETE = """
in_log = threading.Event()
def log(text):
    in_log.set()
    time.sleep(0.1)
s = tokmap.Stage(t.loader(folder), 0, t.ALL, n_slots=8, log=log)
b = s.next()
tensor = _dlpack.take(b.labels.__dlpack__())
b.release()
fail_copies.value = 1 << 20
def work():
    for _ in range(20):
        try:
            s.next().release()
        except tokmap.DeviceError:
            break
thread = threading.Thread(target=work)
thread.start()
assert in_log.wait(60)
ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(tensor.deleter)(ctypes.addressof(tensor))
thread.join()
"""

NO_DEVICE = """
assert tokmap.count_devices() == 0
error = t.raises(tokmap.DeviceError, tokmap.Stage, t.loader(folder))
assert error.status == -12 and "no device" in str(error)
"""


def streams_reach_the_driver(folder):
    run_on_device(folder, STREAMS)


def failures_of_a_device_are_told(folder):
    run_on_device(folder, FAILURES)


def a_batch_that_is_collected_during_a_capture_comes_back(folder):
    run_on_device(folder, CAPTURED)


def log_may_wait_for_who_deletes_a_tensor(folder):
    run_on_device(folder, LOG_AND_DELETE)


def without_a_device_the_error_says_so(folder):
    run_on_device(folder, NO_DEVICE, STAND_IN_WITHOUT_DEVICE="1")


sys.exit(run_in_folders("python_", prepare=stage.write))
