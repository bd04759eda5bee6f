"""`qd.profiler`: how often kernels and their tasks ran, how long they took, on how many threads, and how
many bytes they moved. On with `qd.init(kernel_profiler=True)`; without, launches are not measured at all.

A kernel's top-level loops and the stretches between them are its tasks. Bytes are an estimate: each array
that a task reads counts once, each that it writes once, and no more than its iterations touch; what
loops inside read again is taken to come from caches. The peak is how fast the threads of a launch copy
64 MiB, measured when first asked for: work that stays in caches can exceed it.
"""

import warnings
from collections import namedtuple

from ingot import _core

__all__ = [
    "clear_kernel_profiler_info",
    "clear_scoped_profiler_info",
    "get_kernel_profiler_total_time",
    "peak_bandwidth",
    "print_kernel_profiler_info",
    "print_scoped_profiler_info",
    "query_kernel_profiler_info",
    "task_profiles",
]

#: What `query_kernel_profiler_info` gives: launches, and their times in milliseconds.
KernelProfilerQueryResult = namedtuple("KernelProfilerQueryResult", "counter min max avg")

#: A line of the table. Times in seconds; `task` is None for the launches of the kernel as a whole;
#: `share` is of the peak bandwidth, None where no array was touched.
TaskProfile = namedtuple(
    "TaskProfile", "kernel place task parallel count total min max bytes threads share")

_peak = None


def _on():
    if _core.settings()["kernel_profiler"]:
        return True
    warnings.warn("kernels are not measured: use qd.init(kernel_profiler=True)", stacklevel=3)
    return False


def peak_bandwidth():
    """Bytes per second that the threads of a launch copy, measured once."""
    global _peak
    if _peak is None:
        _peak = _core._profile_peak()
    return _peak


def _merged():
    """Rows by (kernel, place, task): specialisations of a kernel count together."""
    rows = {}
    for kernel, place, task, parallel, count, total, least, most, moved, threads in _core._profile_rows():
        if not count:
            continue
        old = rows.get((kernel, place, task))
        if old:
            count, total, moved = count + old[1], total + old[2], moved + old[5]
            least, most, threads = min(least, old[3]), max(most, old[4]), max(threads, old[6])
            parallel = parallel or old[0]
        rows[kernel, place, task] = (parallel, count, total, least, most, moved, threads)
    return rows


def _share(moved, total):
    return moved / (total * 1e-9) / peak_bandwidth() if moved and total else None


def task_profiles():
    """All that was measured, as a list of `TaskProfile`: of each kernel first its launches (`task` is
    None), then its tasks; the kernels that took longest first."""
    from ingot._html import Profile

    if not _on():
        return Profile()
    groups = {}
    for (kernel, place, task), row in _merged().items():
        groups.setdefault(kernel, []).append((task, place, row))
    order = sorted(groups, key=lambda k: -sum(row[2] for task, _, row in groups[k] if task < 0))
    out = Profile()
    for kernel in order:
        for task, place, (parallel, count, total, least, most, moved, threads) in sorted(
                groups[kernel], key=lambda g: (g[0], g[1])):
            out.append(TaskProfile(kernel, place, None if task < 0 else task, parallel, count, total * 1e-9,
                                   least * 1e-9, most * 1e-9, moved, threads, _share(moved, total)))
    return out


def _line(r, whole):
    share = "     -" if r.share is None else f"{100 * r.share:5.0f}%"
    rate = "      -" if r.share is None else f"{r.bytes / r.total * 1e-9:7.2f}"
    percent = f"{100 * r.total / whole:6.2f}%" if whole else "      -"
    times = f"{1e3 * r.min:9.3f} {1e3 * r.total / r.count:9.3f} {1e3 * r.max:9.3f} ms"
    what = r.kernel if r.task is None else f"  task {r.task} {'' if r.parallel else 'serial '}{r.place}"
    head = percent if r.task is None else "       "
    return f"[{head} {r.total:8.3f} s {r.count:7d}x |{times} |{r.threads:3d} |{rate} {share}] {what}"


def _print_count():
    rows = task_profiles()
    whole = sum(r.total for r in rows if r.task is None)
    title = (f"kernel profile: {sum(r.task is None for r in rows)} kernels, {whole:.3f} s; "
             f"peak {peak_bandwidth() * 1e-9:.1f} GB/s")
    head = "[      %     total    count |      min       avg       max    |thr |   GB/s  peak] kernel"
    rule = "-" * max(len(head), len(title))
    print(title, rule, head, rule, sep="\n")
    for r in rows:
        print(_line(r, whole))
    print(rule)


def _print_trace():
    rows, (records, left) = _core._profile_rows(), _core._profile_records()
    start = min((at for _, at, _ in records), default=0)
    head = "[  start.time | task.time   ] task"
    rule = "-" * len(head)
    print(f"kernel profile: {len(records)} runs of tasks" + (f", {left} left out" if left else ""), rule, head, rule, sep="\n")
    for row, at, ns in sorted(records, key=lambda r: r[1]):
        kernel, place, task = rows[row][:3]
        print(f"[{(at - start) * 1e-6:9.3f} ms |{ns * 1e-6:9.3f} ms ] {kernel} task {task} {place}")
    print(rule)


def print_kernel_profiler_info(mode="count"):
    """Prints what was measured. 'count': a table of kernels, the slowest first, and their tasks, with how
    often they ran, times, threads, bandwidth and its share of the peak. 'trace': each run of a task."""
    if mode not in ("count", "trace"):
        raise ValueError(f"mode is 'count' or 'trace', not {mode!r}")
    if _on():
        _print_count() if mode == "count" else _print_trace()


def query_kernel_profiler_info(name):
    """How often the kernel of that name was launched, and the shortest, longest and mean time of a
    launch in milliseconds: counter, min, max, avg."""
    if not _on():
        return None
    found = [row for (kernel, _, task), row in _merged().items() if task < 0 and kernel == name]
    count, total = sum(r[1] for r in found), sum(r[2] for r in found)
    if not count:
        return KernelProfilerQueryResult(0, 0.0, 0.0, 0.0)
    return KernelProfilerQueryResult(
        count, min(r[3] for r in found) * 1e-6, max(r[4] for r in found) * 1e-6, total / count * 1e-6)


def clear_kernel_profiler_info():
    """Forgets all that was measured."""
    if _on():
        _core._profile_clear()


def get_kernel_profiler_total_time():
    """Seconds that all launches took together."""
    if not _on():
        return 0.0
    return sum(row[2] for (_, _, task), row in _merged().items() if task < 0) * 1e-9


def print_scoped_profiler_info():
    """Prints what compiling took, by its steps; always measured."""
    compiles, *times = _core._profile_scopes(False)
    print(f"compile: {sum(times) * 1e-6:.3f} ms in {compiles} compiles")
    for name, ns in zip(("front end", "passes", "LLVM text", "LLVM", "link and load"), times):
        print(f"  {name:<14}{ns * 1e-6:10.3f} ms")


def clear_scoped_profiler_info():
    """Forgets what compiling took."""
    _core._profile_scopes(True)
