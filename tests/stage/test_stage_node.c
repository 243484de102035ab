/* SPDX-License-Identifier: Apache-2.0 */
/* The memory node on which a stage takes the host memory of a device: from the driver, or from the
 * file of the device in sysfs. The file and the call that prefers a node are replaced here. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "stage/fake_driver_case.h"

static struct machine {
    int node;         /* what the driver says; below -1: an error */
    bool has_place;   /* the driver knows the place on the bus */
    const char *file; /* the text of the file, or NULL */
    int expected;     /* the preferred node; -1: none */
} machine;
static char opened[100]; /* the last file in /sys/bus */
static int preferred;

static int open_or_replace(const char *path, int flags, mode_t mode)
{
    int ends[2];
    if (strncmp(path, "/sys/bus/", 9) != 0)
        return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    snprintf(opened, sizeof opened, "%s", path);
    if (!machine.file || pipe(ends))
        return -1;
    CHECK_INT(write(ends[1], machine.file, strlen(machine.file)), strlen(machine.file));
    close(ends[1]);
    return ends[0];
}

#define REPLACE_OPEN(name)                                                                         \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        const mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;                            \
        va_end(args);                                                                              \
        return open_or_replace(path, flags, mode);                                                 \
    }
REPLACE_OPEN(open)
REPLACE_OPEN(open64)

long syscall(long number, ...)
{
    long (*real)(long, ...), a[6];
    va_list args;
    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    if (number == SYS_mbind) {
        const unsigned long *nodes = (const unsigned long *)a[3];
        for (preferred = 0; !(nodes[preferred / 64] >> preferred % 64 & 1); preferred++)
            continue;
        return 0;
    }
    *(void **)&real = dlsym(RTLD_NEXT, "syscall");
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static int get_attribute(int *value, int attribute, int device)
{
    (void)device;
    *value = attribute == TOKMAP_I_ATTRIBUTE_HOST_NUMA_ID ? machine.node
             : attribute == TOKMAP_I_ATTRIBUTE_PCI_DOMAIN ? 0x10
             : attribute == TOKMAP_I_ATTRIBUTE_PCI_BUS    ? 0xaf
                                                          : 1;
    if (attribute == TOKMAP_I_ATTRIBUTE_HOST_NUMA_ID ? machine.node < -1 : !machine.has_place)
        return FAKE_INJECTED;
    return 0;
}

TEST(host_memory_is_taken_on_the_node_of_the_device)
{
    static const struct machine machines[] = {
        {2, true, "3\n", 2},    {0, true, "3\n", 0},  {-2, true, "3\n", 3},  {-1, true, "12\n", 12},
        {-2, true, "-1\n", -1}, {-2, true, NULL, -1}, {-2, false, "3\n", -1}};
    tokmap_i_driver driver = fake_driver;
    driver.get_attribute = get_attribute;
    case_driver = &driver;
    case_open();
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++) {
        stage_case c;
        machine = machines[i];
        opened[0] = 0;
        preferred = -1;
        fake_begin(FAKE_EAGER, 1);
        case_open_stage(&c, (tokmap_stage_options){.no_thread = 1});
        CHECK_INT(preferred, machine.expected);
        CHECK_STR(opened, machine.node < 0 && machine.has_place
                              ? "/sys/bus/pci/devices/0010:af:01.0/numa_node"
                              : "");
        case_close_stage(&c);
        fake_check();
    }
    case_driver = &fake_driver;
    close_corpus();
}

TEST(the_host_as_a_device_has_no_node)
{
    stage_case c;
    machine.file = "3\n";
    opened[0] = 0;
    preferred = -1;
    case_open();
    case_open_stage(&c, (tokmap_stage_options){.device = TOKMAP_STAGE_HOST, .no_thread = 1});
    CHECK_INT(preferred, -1);
    CHECK_STR(opened, "");
    case_close_stage(&c);
    close_corpus();
}
