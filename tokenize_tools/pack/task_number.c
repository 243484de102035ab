/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/task_number.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

/* The variables of one engine. The first one whose variables `i` and `n` are set counts. The ranks
 * of mpirun come before those of srun, because a process that mpirun has started inherits the
 * variables of Slurm from mpirun itself. */
typedef struct task_variables {
    const char *i, *n;
    const char *least; /* the smallest value of i, or NULL: 0 */
    const char *step;  /* between two values of i, or NULL: 1 */
} task_variables;

static const task_variables engines[] = {
    {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN",
     "SLURM_ARRAY_TASK_STEP"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL, NULL},
    {"PMI_RANK", "PMI_SIZE", NULL, NULL},
    {"SLURM_PROCID", "SLURM_NTASKS", NULL, NULL},
};
#define N_ENGINES (sizeof engines / sizeof *engines)

static bool is_plain_number(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text);
}

/* CLI_OK with the default if the variable is not set. */
static int read_variable(const char *name, uint64_t otherwise, uint64_t *value)
{
    const char *text = name ? getenv(name) : NULL;
    *value = otherwise;
    if (!text || (is_plain_number(text) && cli_parse_u64(text, value)))
        return CLI_OK;
    return cli_usage("--task auto: %s is '%.100s', not a whole number", name, text);
}

static int refuse_auto(void)
{
    char names[512] = "";
    size_t used = 0;
    if (getenv("PMIX_RANK"))
        return cli_usage(
            "--task auto: PMIX_RANK is the number of this process, but no variable says "
            "how many there are; give the task as --task $PMIX_RANK/N");
    for (size_t i = 0; i < N_ENGINES; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s with %s", i ? ", " : "",
                                 engines[i].i, engines[i].n);
    return cli_usage("--task auto: none of these variables is set: %s; give the task as --task "
                     "I/N, in Kubernetes as --task $JOB_COMPLETION_INDEX/N",
                     names);
}

static int check_task(const pack_task_number *task, const char *text)
{
    if (task->n > 0 && task->n <= PACK_MAX_TASKS && task->i < task->n)
        return CLI_OK;
    return cli_usage("--task %s: must be I/N, with I from 0 to N-1 and N at most 2^32", text);
}

static int find_auto(pack_task_number *task)
{
    const task_variables *e = engines;
    uint64_t least, step;
    while (e < engines + N_ENGINES && (!getenv(e->i) || !getenv(e->n)))
        e++;
    if (e == engines + N_ENGINES)
        return refuse_auto();
    int code = read_variable(e->i, 0, &task->i);
    if (code == CLI_OK)
        code = read_variable(e->n, 0, &task->n);
    if (code == CLI_OK)
        code = read_variable(e->least, 0, &least);
    if (code == CLI_OK)
        code = read_variable(e->step, 1, &step);
    if (code != CLI_OK)
        return code;
    char text[128];
    snprintf(text, sizeof text, "auto (%s=%.20s, %s=%.20s)", e->i, getenv(e->i), e->n,
             getenv(e->n));
    if (task->i < least || step == 0)
        return cli_usage("--task %s: the values do not go together", text);
    task->i = (task->i - least) / step;
    return check_task(task, text);
}

int pack_task_number_parse(pack_task_number *task, const char *text)
{
    char first[24] = "";
    const char *slash = strchr(text, '/');
    if (strcmp(text, "auto") == 0)
        return find_auto(task);
    *task = (pack_task_number){0};
    if (slash && (size_t)(slash - text) < sizeof first) {
        memcpy(first, text, (size_t)(slash - text));
        bool plain = is_plain_number(first) && is_plain_number(slash + 1);
        if (!plain || !cli_parse_u64(first, &task->i) || !cli_parse_u64(slash + 1, &task->n))
            *task = (pack_task_number){0};
    }
    return check_task(task, text);
}

void pack_task_share(const pack_task_number *task, size_t n_things, size_t *first, size_t *end)
{
    /* Neither is above 2^32. */
    *first = (size_t)((uint64_t)n_things * task->i / task->n);
    *end = (size_t)((uint64_t)n_things * (task->i + 1) / task->n);
}
