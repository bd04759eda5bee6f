"""How long Ctrl-C takes while values are hashed, stored and read.

    interrupt.py [--json FILE] [--repeat N]

Each row is something that takes seconds; a signal is sent at a random moment, and the time until
KeyboardInterrupt is caught is measured N times. The bar is 200 ms.
"""

import os
import random
import signal
import tempfile
import threading
import time

import _peers
import ingot


def rows(folder):
    import numpy as np

    cache = ingot.FileCache(folder, max_bytes=8 << 30)
    flat = np.zeros(1 << 30, np.uint8)
    turned = np.zeros((1 << 13, 1 << 15), "i4").T
    numbers = list(range(5_000_000))
    nested = [[k] for k in range(2_000_000)]
    text = "é" * (1 << 28)
    cache["large"], cache["many"] = flat, nested
    turns = iter(range(1 << 30))
    return {
        "hash 1 GiB": lambda: ingot.fingerprint(flat),
        "hash 1 GiB in Fortran order": lambda: ingot.fingerprint(turned),
        "hash every second byte": lambda: ingot.fingerprint(flat[::2]),
        "hash 5M ints": lambda: ingot.fingerprint(numbers),
        "hash 2M lists": lambda: ingot.fingerprint(nested),
        "hash 512 MiB of text": lambda: ingot.fingerprint(text),
        "trace 2M lists": lambda: ingot.trace(nested, limit=None),
        "store 1 GiB": lambda: cache.put(("x", next(turns) % 2), flat),
        "store 2M lists": lambda: cache.put("y", nested),
        "read 1 GiB": lambda: cache["large"],
        "read 2M lists": lambda: cache["many"],
        "verify": cache.verify,
    }


def once(call, rng):
    """Seconds from the signal to where it is caught; None when the call was over before."""
    sent = [0.0]

    def send(delay):
        time.sleep(delay)
        sent[0] = time.perf_counter()
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=send, args=(rng.random() * 0.3,))
    try:
        thread.start()
        end = time.perf_counter() + 10
        while time.perf_counter() < end:
            call()
    except KeyboardInterrupt:
        return time.perf_counter() - sent[0]
    finally:
        thread.join()
    return None


def main():
    args = _peers.arguments(__doc__)
    rng, out = random.Random(1), []
    with tempfile.TemporaryDirectory() as folder:
        for label, call in rows(os.path.join(folder, "cache")).items():
            times = sorted(t * 1e3 for t in (once(call, rng) for _ in range(args.repeat)) if t is not None)
            out.append({"row": label, "median_ms": times[len(times) // 2], "most_ms": times[-1], "n": len(times)})
    columns = [("row", "", ""), ("median_ms", "median ms", ".1f"), ("most_ms", "most ms", ".1f"), ("n", "signals", "")]
    _peers.show("from Ctrl-C to KeyboardInterrupt", columns, out)
    _peers.write(args.json, "interrupt", out)


if __name__ == "__main__":
    main()
