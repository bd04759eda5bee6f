"""Run by test_fingerprint_edits.py in a process of its own: for each program of a folder, what its
step gives when it is called, what a cached step gives for it, and the key, as JSON."""

import importlib
import json
import sys


def look(name, cache):
    import ingot

    main = importlib.import_module(f"{name}.main")
    real, given = main.step, {}

    def record(*args, **kwargs):
        given["args"], given["kwargs"] = args, kwargs

    main.step = record
    main.call()
    main.step = real
    step = ingot.CachedStep(main.target).persistent(cache)
    key = step.key(0)
    cached = ingot.FileCache(cache)
    seen = cached.get(("result", key))
    direct = main.target(*given["args"], **given["kwargs"])
    if seen is None:
        cached[("result", key)] = seen = direct
    return {"result": direct, "cached": seen, "key": key}


def main(folder, cache, names):
    sys.path.insert(0, folder)
    out = {}
    for name in names:
        try:
            out[name] = look(name, cache)
        except Exception as e:
            out[name] = {"error": f"{type(e).__name__}: {e}"}
    print(json.dumps(out))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
