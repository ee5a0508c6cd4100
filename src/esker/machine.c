/* SPDX-License-Identifier: Apache-2.0 */
/* Reads cgroup limits from the process's group up to the root: the tightest counts. In a container
 * the path that /proc names may not exist below the mount, which then is the group itself, so what
 * is missing is skipped. */
#include "esker/machine.h"

#include "base/memory.h"

#include <inttypes.h>
#include <malloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Bodies, batches and parsers are up to a few MiB and come and go with each request; with glibc's
 * thresholds (128 KiB) each would be mapped, faulted in and unmapped: requests of 100 records took
 * 3 to 7 times as long (docs/architecture.md). */
#define MMAP_THRESHOLD_BYTES (4 << 20)
#define TRIM_THRESHOLD_BYTES (32 << 20)

/* The first line of a small file; false when it cannot be read. */
static bool read_line(const char *root, const char *path, char *line, size_t size) {
    char *whole = esk_text_format("%s%s", root, path);
    FILE *file = fopen(whole, "re");
    free(whole);
    if (!file) {
        return false;
    }
    bool read = fgets(line, (int)size, file) != NULL;
    fclose(file);
    return read;
}

/* Whether the comma-separated list has the controller; an empty list is version 2, which has all.
 */
static bool lists(const char *list, const char *controller) {
    size_t size = strlen(controller);
    for (; *list; list += strcspn(list, ","), list += *list == ',') {
        if (strcspn(list, ",") == size && strncmp(list, controller, size) == 0) {
            return true;
        }
    }
    return false;
}

struct group {
    const char *root;
    const char *mount; /* below /sys/fs/cgroup */
    char path[1024];   /* without a slash at its end */
};

/* The process's group for a controller, in version 1 or, with "" as controller, in version 2. */
static bool find_group(const char *root, const char *controller, const char *mount,
                       struct group *group) {
    char *whole = esk_text_format("%s/proc/self/cgroup", root);
    FILE *file = fopen(whole, "re");
    free(whole);
    if (!file) {
        return false;
    }
    bool found = false;
    char line[1200];
    while (!found && fgets(line, sizeof(line), file)) {
        char *rest = line;
        strsep(&rest, ":");
        const char *list = rest ? strsep(&rest, ":") : NULL;
        if (!rest) {
            continue;
        }
        rest[strcspn(rest, "\n")] = '\0';
        if (*controller ? lists(list, controller) : *list == '\0') {
            found = true;
            *group = (struct group){.root = root, .mount = mount};
            snprintf(group->path, sizeof(group->path), "%s", strcmp(rest, "/") ? rest : "");
        }
    }
    fclose(file);
    return found;
}

/* Calls visit with a file of the group and of all above it. */
static void each_level(struct group *group, const char *name,
                       void visit(const struct group *group, const char *path, uint64_t *limit),
                       uint64_t *limit) {
    for (;;) {
        char *path = esk_text_format("/sys/fs/cgroup%s%s/%s", group->mount, group->path, name);
        visit(group, path, limit);
        free(path);
        char *slash = strrchr(group->path, '/');
        if (!slash) {
            return;
        }
        *slash = '\0';
    }
}

static void lower(uint64_t *limit, uint64_t value) {
    if (value < *limit) {
        *limit = value;
    }
}

static void visit_bytes(const struct group *group, const char *path, uint64_t *limit) {
    char line[64];
    uint64_t bytes;
    if (read_line(group->root, path, line, sizeof(line)) && sscanf(line, "%" SCNu64, &bytes) == 1) {
        lower(limit, bytes);
    }
}

/* "QUOTA PERIOD", or "max PERIOD"; counted in thousandths of a core. */
static void visit_quota(const struct group *group, const char *path, uint64_t *limit) {
    char line[64];
    uint64_t quota;
    uint64_t period;
    if (read_line(group->root, path, line, sizeof(line)) &&
        sscanf(line, "%" SCNu64 " %" SCNu64, &quota, &period) == 2 && period > 0) {
        lower(limit, quota * 1000 / period);
    }
}

/* As visit_quota, in version 1: two files, and -1 is no limit. */
static void visit_quota_1(const struct group *group, const char *path, uint64_t *limit) {
    char line[64];
    int64_t quota;
    int64_t period;
    if (!read_line(group->root, path, line, sizeof(line)) ||
        sscanf(line, "%" SCNd64, &quota) != 1 || quota <= 0) {
        return;
    }
    char *other = esk_text_format("%.*s/cpu.cfs_period_us", (int)(strrchr(path, '/') - path), path);
    bool read = read_line(group->root, other, line, sizeof(line));
    free(other);
    if (read && sscanf(line, "%" SCNd64, &period) == 1 && period > 0) {
        lower(limit, (uint64_t)quota * 1000 / (uint64_t)period);
    }
}

static uint64_t memory_limit(const char *root) {
    uint64_t limit = UINT64_MAX;
    struct group group;
    if (find_group(root, "", "", &group)) {
        each_level(&group, "memory.max", visit_bytes, &limit);
    }
    if (find_group(root, "memory", "/memory", &group)) {
        each_level(&group, "memory.limit_in_bytes", visit_bytes, &limit);
    }
    return limit;
}

/* In thousandths of a core. */
static uint64_t cpu_limit(const char *root) {
    uint64_t limit = UINT64_MAX;
    struct group group;
    if (find_group(root, "", "", &group)) {
        each_level(&group, "cpu.max", visit_quota, &limit);
    }
    if (find_group(root, "cpu", "/cpu", &group)) {
        each_level(&group, "cpu.cfs_quota_us", visit_quota_1, &limit);
    }
    return limit;
}

void esk_machine_read(const char *root, struct esk_machine *machine) {
    cpu_set_t processors;
    int count = sched_getaffinity(0, sizeof(processors), &processors) == 0
                    ? CPU_COUNT(&processors)
                    : (int)sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t thousandths = (uint64_t)(count > 0 ? count : 1) * 1000;
    lower(&thousandths, cpu_limit(root));
    machine->cores = (unsigned)((thousandths + 999) / 1000);
    if (machine->cores == 0) {
        machine->cores = 1;
    }
    machine->memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    lower(&machine->memory_bytes, memory_limit(root));
}

void esk_machine_prepare(const struct esk_log *log) {
    mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES);
    mallopt(M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES);
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files); /* what it was is what there is, then */
    }
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        ESK_LOG(log, ESK_LOG_DEBUG, "limits", "files that may be open",
                esk_field_u64("files", files.rlim_cur));
    }
}
