/* SPDX-License-Identifier: Apache-2.0 */
/* interrupt_at.c - makes SIGINT pending before the n-th instruction of Python. The interpreter then
 * handles it where it handles any signal. tests/python/test_python_interrupts.py compiles it. */
#include <Python.h>

static long n_left;

static int trace(PyObject *self, PyFrameObject *frame, int event, PyObject *argument)
{
    (void)self;
    (void)argument;
    if (event == PyTrace_CALL &&
        PyObject_SetAttrString((PyObject *)frame, "f_trace_opcodes", Py_True))
        return -1;
    if (event == PyTrace_OPCODE && n_left > 0 && --n_left == 0)
        PyErr_SetInterrupt();
    return 0;
}

/* Counts the instructions of all functions that are called from now on. */
void interrupt_at(long n)
{
    n_left = n;
    PyEval_SetTrace(trace, NULL);
}

/* Returns whether the n-th instruction was reached. */
int interrupt_end(void)
{
    PyEval_SetTrace(NULL, NULL);
    return n_left == 0;
}
