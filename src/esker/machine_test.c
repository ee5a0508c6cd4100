/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of cgroups, read from folders made to look like the system's. */
#include "esker/machine.h"

#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char root[64];
static struct esk_machine whole; /* without limits */

/* Writes a file below root, making its folders. */
static void put(const char *path, const char *text) {
    char *whole_path = esk_text_format("%s%s", root, path);
    for (char *at = whole_path + strlen(root) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(whole_path, 0755);
        *at = '/';
    }
    FILE *file = fopen(whole_path, "w");
    fputs(text, file);
    fclose(file);
    free(whole_path);
}

static int set_up(void **state) {
    (void)state;
    strcpy(root, "/tmp/esker-machine-test-XXXXXX");
    if (!mkdtemp(root)) {
        return -1;
    }
    esk_machine_read(root, &whole); /* there is no file at all */
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    char *command = esk_text_format("rm -r '%s'", root);
    int failed = system(command);
    free(command);
    return failed;
}

static struct esk_machine read_machine(void) {
    struct esk_machine machine;
    esk_machine_read(root, &machine);
    return machine;
}

static void without_limits_it_is_the_machine(void **state) {
    (void)state;
    assert_true(whole.cores >= 1);
    assert_true(whole.memory_bytes > 64 << 20);
    put("/proc/self/cgroup", "0::/a\n");
    put("/sys/fs/cgroup/a/memory.max", "max\n");
    put("/sys/fs/cgroup/a/cpu.max", "max 100000\n");
    assert_int_equal(read_machine().cores, whole.cores);
    assert_int_equal(read_machine().memory_bytes, whole.memory_bytes);
}

static void version_2_counts_the_tightest_level(void **state) {
    (void)state;
    put("/proc/self/cgroup", "0::/a/b\n");
    put("/sys/fs/cgroup/memory.max", "50000000\n");
    put("/sys/fs/cgroup/a/memory.max", "30000000\n");
    put("/sys/fs/cgroup/a/b/memory.max", "40000000\n");
    assert_int_equal(read_machine().memory_bytes, 30000000);
    put("/sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
    assert_int_equal(read_machine().cores, 1);
    put("/sys/fs/cgroup/a/b/cpu.max", "0 100000\n");
    assert_int_equal(read_machine().cores, 1);
    put("/sys/fs/cgroup/a/b/cpu.max", "100000000 100000\n");
    assert_int_equal(read_machine().cores, whole.cores);
}

static void a_path_that_is_not_mounted_means_the_mount_itself(void **state) {
    (void)state;
    put("/proc/self/cgroup", "0::/elsewhere/c\n");
    put("/sys/fs/cgroup/memory.max", "60000000\n");
    assert_int_equal(read_machine().memory_bytes, 60000000);
}

static void version_1_is_read_per_controller(void **state) {
    (void)state;
    put("/proc/self/cgroup",
        "9:name=systemd:/\n5:cpu,cpuacct:/d\n4:memory:/docker/x\n1:cpuset:/e\n");
    put("/sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", "20000000\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/cpu/d/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu/d/cpu.cfs_period_us", "100000\n");
    assert_int_equal(read_machine().memory_bytes, 20000000);
    assert_int_equal(read_machine().cores, whole.cores);
    put("/sys/fs/cgroup/cpu/d/cpu.cfs_quota_us", "20000\n");
    assert_int_equal(read_machine().cores, 1);
}

static void open_files_are_raised_to_the_hard_limit(void **state) {
    (void)state;
    struct rlimit files;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = 100;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    esk_machine_prepare(NULL);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    assert_int_equal(files.rlim_cur, files.rlim_max);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_limits_it_is_the_machine),
        cmocka_unit_test(version_2_counts_the_tightest_level),
        cmocka_unit_test(a_path_that_is_not_mounted_means_the_mount_itself),
        cmocka_unit_test(version_1_is_read_per_controller),
        cmocka_unit_test(open_files_are_raised_to_the_hard_limit),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
