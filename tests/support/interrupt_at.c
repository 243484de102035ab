/* SPDX-License-Identifier: Apache-2.0 */
/* interrupt_at.c - makes SIGINT pending before the n-th instruction of Python. The interpreter then
 * handles it where it handles any signal. tests/python/test_python_interrupts.py compiles it. */
#include <Python.h>

static long n_left;

/* f_trace is not called, but without it CPython 3.13 counts no instructions of the frame. */
static int count_in(PyFrameObject *frame, PyObject *whether)
{
    PyObject *f = (PyObject *)frame;
    return PyObject_SetAttrString(f, "f_trace", whether == Py_True ? whether : Py_None) ||
           PyObject_SetAttrString(f, "f_trace_opcodes", whether);
}

static int trace(PyObject *self, PyFrameObject *frame, int event, PyObject *argument)
{
    (void)self;
    (void)argument;
    if (event == PyTrace_CALL && count_in(frame, Py_True))
        return -1;
    if (event == PyTrace_OPCODE && n_left > 0 && --n_left == 0)
        PyErr_SetInterrupt();
    return 0;
}

/* Counts the instructions of all functions that are called from now on. CPython 3.12 must have seen
 * a frame that counts before. */
void interrupt_at(long n)
{
    PyFrameObject *frame = PyEval_GetFrame();
    n_left = n;
    if (!count_in(frame, Py_True) && !count_in(frame, Py_False))
        PyEval_SetTrace(trace, NULL);
}

/* Returns whether the n-th instruction was reached. */
int interrupt_end(void)
{
    PyEval_SetTrace(NULL, NULL);
    return n_left == 0;
}
