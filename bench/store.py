"""Whether a cache slows down as it fills: CPU microseconds of one put and one get among 10, 1,000
and 100,000 entries, and of a put where each goes past the bound now and then, sweeps included.

    store.py [--json FILE] [--repeat N] [--entries 10 1000 100000]

Entries are values of 100 bytes; kernels are kept by the same functions (src/store). CPU time of
the thread, system calls included; put and get are medians of 200 calls, the best of N rounds. The last
column is the mean over a tenth of the entries (200 at least), at the bound, which has at least one sweep.
The ratio is against the fewest entries.
"""

import os
import statistics
import tempfile
import time

import _peers


def cpu(call):
    before = time.thread_time_ns()
    call()
    return (time.thread_time_ns() - before) / 1e3


def keys(first, n):
    """Spread over the directories as digests are."""
    return [f"{(first + k) * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128:032x}" for k in range(n)]


def row(folder, n, repeat):
    from ingot._core import FileCacheCore

    value, miss = b"x" * 100, object()
    cache = FileCacheCore(folder, 0, 0)
    there = keys(1, n)
    for key in there:
        cache.put(key, value, None, 2, b"")
    put = get = float("inf")
    for r in range(repeat):
        new = keys(10**9 + 200 * r, 200)
        put = min(put, statistics.median(cpu(lambda k=k: cache.put(k, value, None, 2, b"")) for k in new))
        for key in new:
            cache.remove(key)
        some = [there[i * 7919 % n] for i in range(200)]
        get = min(get, statistics.median(cpu(lambda k=k: cache.get(k, miss, None, True)) for k in some))
    bound = FileCacheCore(folder, 0, n)
    more = keys(2 * 10**9, max(n // 10, 200))
    before = time.thread_time_ns()
    for key in more:
        bound.put(key, value, None, 2, b"")
    spent = (time.thread_time_ns() - before) / 1e3
    assert bound.totals()[0] <= n and bound.counters()["store_evicted"] > 0
    return {"entries": n, "put": put, "get": get, "put at the bound": spent / len(more)}


def main():
    args = _peers.arguments(__doc__, entries={"type": int, "nargs": "+", "default": [10, 1000, 100_000]})
    rows = []
    for n in args.entries:
        with tempfile.TemporaryDirectory(prefix="ingot-bench-") as folder:
            rows.append(row(os.path.join(folder, "cache"), n, min(args.repeat, 5)))
            rows[-1] |= {f"{name} ratio": rows[-1][name] / rows[0][name] for name in ("put", "get")}
    columns = [("entries", "entries", ",d"), ("put", "put us", ".1f"), ("put ratio", "ratio", ".2f"),
               ("get", "get us", ".1f"), ("get ratio", "ratio", ".2f"),
               ("put at the bound", "put at the bound us", ".1f")]
    _peers.show("store: CPU time of one call", columns, rows)
    _peers.write(args.json, "store", rows)


if __name__ == "__main__":
    main()
