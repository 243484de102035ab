/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fault_sweeps.h"

#include <errno.h>

#include "support/check.h"
#include "support/joined.h"

const sweep sweeps_of_calls[N_SWEEPS] = {
    {FAULT_ONCE, FAULT_ALL_FILE_CALLS | FAULT_MMAP, EIO, false},
    {FAULT_ONCE, FAULT_ALL_FILE_CALLS | FAULT_MMAP, ENOSPC, false},
    {FAULT_FROM_THEN_ON, FAULT_ALL_FILE_CALLS | FAULT_MMAP, EIO, false},
    {FAULT_FROM_THEN_ON, FAULT_PWRITE | FAULT_FSYNC | FAULT_FTRUNCATE, ENOSPC, false},
    {FAULT_ONCE, FAULT_INTERRUPTIBLE, EINTR, true},
    {FAULT_SHORT, FAULT_TRANSFERS, 0, true},
};

const sweep sweeps_of_memory[N_MEMORY_SWEEPS] = {
    {FAULT_ONCE, FAULT_MEMORY, ENOMEM, false},
    {FAULT_FROM_THEN_ON, FAULT_MEMORY, ENOMEM, false},
};

uint64_t sweep_all(const scenario *s, const sweep *sw)
{
    uint64_t n = 1;
    char what[100];
    for (bool fired = true; fired; n++) {
        snprintf(what, sizeof what, "errno %d at call %" PRIu64 "%s", sw->errno_value, n,
                 sw->mode == FAULT_FROM_THEN_ON ? " and later" : "");
        fired = run_once(s, sw, n, what);
    }
    return n - 2;
}

swept begin_swept(const sweep *sw, uint64_t n)
{
    const swept before = {n_open_files(), fault_n_live};
    fault_arm(sw->mode, sw->calls, sw->errno_value, n);
    return before;
}

static void expect_good_error(tokmap_status status, const tokmap_error *err, const char *what)
{
    const bool memory = fault.last_fired == FAULT_MEMORY;
    const tokmap_status wanted = memory ? TOKMAP_ERR_MEMORY : TOKMAP_ERR_IO;
    if (err->status != status || status != wanted)
        CHECK_FAIL("%s: status %d, in the error %d: %s", what, (int)status, (int)err->status,
                   err->text);
    if (err->sys_errno != (memory ? 0 : fault.errno_value) || strchr(err->text, '\n'))
        CHECK_FAIL("%s: errno %d: %s", what, err->sys_errno, err->text);
    if (!memory && !strstr(err->text, check_dir()))
        CHECK_FAIL("%s: no file is named: %s", what, err->text);
}

bool end_swept(const sweep *sw, const swept *before, tokmap_status status, const tokmap_error *err,
               const char *what)
{
    const int64_t n_lost = fault_n_live - before->n_live;
    const bool fired = fault_disarm();
    if (n_open_files() != before->n_files || (n_lost != 0 && sw->calls == FAULT_MEMORY))
        CHECK_FAIL("%s: open files or memory are left", what);
    if (status && (!fired || sw->invisible))
        CHECK_FAIL("%s: %s", what, err->text);
    if (status)
        expect_good_error(status, err, what);
    return fired;
}
