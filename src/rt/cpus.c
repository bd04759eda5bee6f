/* How many threads a launch may use: the cores that affinity allows, and no more than the
 * CPU quota of the control group pays for (a container limited to 2 CPUs on a 64-core
 * host would be throttled for most of each period otherwise). Called once by ing_rt_new.
 * Never fails: what cannot be read does not limit. */
#include "rt/rt_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first line of a small file; false when there is none. */
static bool first_line(const char *path, char *buf, size_t size) {
    ing_bytes b;
    ing_bytes_init(&b);
    bool ok = ing_os_read(path, 1 << 16, &b, NULL) == ING_OK && !b.failed && b.len > 0;
    if (ok) snprintf(buf, size, "%.*s", (int)strcspn((char *)b.at, "\n"), (char *)b.at);
    ing_bytes_fini(&b);
    return ok;
}

static uint32_t quota_cpus(long long quota, long long period) {
    if (quota <= 0 || period <= 0) return 0;
    long long n = quota / period + (quota % period != 0);
    return n > THREADS_MAX ? THREADS_MAX : (uint32_t)n;
}

/* Version 2: "<quota or max> <period>"; the group's own directory is the root in a
 * container, which is where quotas are met in practice. */
static uint32_t quota_v2(void) {
    char line[64], *end;
    if (!first_line("/sys/fs/cgroup/cpu.max", line, sizeof line)) return 0;
    long long quota = strtoll(line, &end, 10);
    return end == line ? 0 : quota_cpus(quota, strtoll(end, NULL, 10));
}

static uint32_t quota_v1(void) {
    char quota[64], period[64];
    if (!first_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", quota, sizeof quota) ||
        !first_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us", period, sizeof period)) {
        return 0;
    }
    return quota_cpus(strtoll(quota, NULL, 10), strtoll(period, NULL, 10));
}

uint32_t ing_rt_default_threads(void) {
    uint32_t n = ing_os_cpus(), quota = quota_v2();
    if (!quota) quota = quota_v1();
    if (quota && quota < n) n = quota;
    return n ? n : 1;
}
