/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of control groups, of both versions, in folders that look like theirs. */
#include "support/check.h"

#include <sys/stat.h>

#include "support/bad_days.h"
#include "system/control_group.h"

static const char *root; /* of the test, in check_dir() */

static const char *in_root(const char *name)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return check_path(path);
}

static void make_folder(const char *name)
{
    CHECK(mkdir(in_root(name), 0777) == 0);
}

static void make_root(const char *name)
{
    root = name;
    make_folder("");
}

static void store(const char *name, const char *text)
{
    CHECK(file_store(in_root(name), text, strlen(text)));
}

static void limits_are(const char *groups, uint64_t memory, uint64_t processors)
{
    const tokmap_i_group_limits limits = tokmap_i_group_limits_of(check_path(root), groups);
    CHECK_EQ(limits.memory, memory);
    CHECK_EQ(limits.processors, processors);
}

TEST(the_least_limit_of_a_group_and_its_parents_counts)
{
    make_root("r0");
    make_folder("a");
    make_folder("a/b");
    store("a/memory.max", "1000000\n");
    store("a/b/memory.max", "max\n");
    store("a/cpu.max", "400000 100000\n");
    store("a/b/cpu.max", "max 100000\n");
    limits_are("0::/a/b\n", 1000000, 4);
    store("a/b/memory.max", "4096\n");
    store("a/b/cpu.max", "250000 100000\n");
    limits_are("0::/a/b\n", 4096, 3); /* two and a half */
    limits_are("0::/a\n", 1000000, 4);
    store("a/b/cpu.max", "1000 100000\n");
    limits_are("0::/a/b", 4096, 1);
}

TEST(in_a_container_the_root_has_the_limits)
{
    make_root("r1");
    store("memory.max", "77\n");
    store("cpu.max", "150000 50000\n");
    limits_are("0::/\n", 77, 3);
    limits_are("0::/a/group/that/cannot/be/seen\n", 77, 3);
}

TEST(controllers_of_version_1_have_folders_of_their_own)
{
    make_root("r2");
    make_folder("memory");
    make_folder("memory/job");
    make_folder("cpu,cpuacct");
    make_folder("cpu,cpuacct/job");
    store("memory/memory.limit_in_bytes", "9223372036854771712\n");
    store("memory/job/memory.limit_in_bytes", "5000\n");
    store("cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    store("cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    store("cpu,cpuacct/job/cpu.cfs_quota_us", "600000\n");
    store("cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
    limits_are("12:cpu,cpuacct:/job\n5:memory:/job\n1:name=systemd:/x\n", 5000, 6);
    limits_are("5:memory:/\n12:cpu,cpuacct:/\n", 9223372036854771712u, UINT64_MAX);
}

TEST(without_groups_there_is_no_limit)
{
    make_root("r3");
    limits_are("", UINT64_MAX, UINT64_MAX);
    limits_are("\n:\n::\nx", UINT64_MAX, UINT64_MAX);
    store("cpu.max", "100000 0\n");
    store("memory.max", "much\n");
    limits_are("0::/\n", UINT64_MAX, UINT64_MAX);
    const tokmap_i_group_limits now = tokmap_i_group_limits_now();
    CHECK(now.processors > 0 && now.memory > 0);
}
