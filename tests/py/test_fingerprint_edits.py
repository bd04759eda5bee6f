"""Programs that are edited between processes: a step's key changes exactly when its result does by
what was edited (random_programs.py). No result that was stored under a key is another one."""

import importlib.util
import json
import os
import re
import subprocess
import sys

from conftest import HERE, ROOT, SEED, STRESS
from random_programs import COMMON, LIBRARY, WAYS, Program, fits

EDITS = 5000 if STRESS else 250
BATCH = 125 if STRESS else 50  # programs that one process looks at
LIGHT = tuple(m for m in ("numpy", "attr", "pydantic") if importlib.util.find_spec(m))
HAVE = LIGHT + tuple(m for m in ("pandas", "scipy", "xarray", "numba", "torch") if importlib.util.find_spec(m))


def write(folder, texts, before):
    for name, text in texts.items():
        if before.get(name) != text:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return texts


def look(folder, cache, programs):
    env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    env["PYTHONPATH"] = os.pathsep.join([p for p in sys.path if p])
    done = subprocess.run(
        [sys.executable, str(HERE / "run_programs.py"), str(folder), str(cache), *[p.name for p in programs]],
        env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def look_apart(folder, cache, programs):
    """The same; programs that change what others share are looked at in processes of their own."""
    alone = [p for p in programs if any(WAYS[way].get("alone") for way in p.ways)]
    seen = look(folder, cache, [p for p in programs if p not in alone])
    for p in alone:
        seen.update(look(folder, cache, [p]))
    return seen


def wrong(program, site, one, two):
    """What is wrong with two looks at a program, before and after an edit; None: nothing."""
    for seen in (one, two):
        if "error" in seen:
            return f"refused: {seen['error']}"
        if seen["result"] != seen["cached"]:
            return f"stale: {seen['cached']} instead of {seen['result']}"
    if one["result"] != two["result"] and one["key"] == two["key"]:
        return "stale: the same key for another result"
    if one["result"] == two["result"] and one["key"] != two["key"]:
        return "another key for the same result"
    if site is not None and site[0] == "r" and one["result"] == two["result"]:
        return "the edit changed nothing: the program is wrong"
    return None


def run(folder, programs, edits, fails):
    cache = folder / "cache"
    texts = {p.name: write(folder, p.render(), {}) for p in programs}
    last = look(folder, cache, programs)
    for p in programs:
        fails += [(p, "", w) for w in [wrong(p, None, last[p.name], last[p.name])] if w]
    programs = [p for p in programs if "error" not in last[p.name]]
    done = 0
    while done < edits and programs:
        sites = {p.name: p.edit() for p in programs}
        for p in programs:
            texts[p.name] = write(folder, p.render(), texts[p.name])
        now = look(folder, cache, programs)
        for p in programs:
            what = wrong(p, sites[p.name], last[p.name], now[p.name])
            if what:
                fails.append((p, sites[p.name], what))
        done += len(programs)
        last = now
    return done


def told(fails):
    return "\n".join(f"{p.name} {p.ways} site {site}: {what}" for p, site, what in fails[:20])


def test_edits(tmp_path):
    fails, done, batch = [], 0, 0
    while done < EDITS:
        library = list(LIBRARY)
        programs = [Program(f"p{batch}x{n}", SEED + 1000 * batch + n, library, LIGHT) for n in range(BATCH)]
        folder = tmp_path / f"b{batch}"
        folder.mkdir()
        done += run(folder, programs, min(EDITS - done, 5 * BATCH), fails)
        batch += 1
    assert not fails, told(fails)


def sites_of(n, program):
    """The sites of its way, and one of those that all programs have, another one from program to program;
    under `make stress` all of them. By their place among the program's sites."""
    sites = sorted(program.sites)
    common = [k for k, site in enumerate(sites) if site[1:3] == "90"]
    return [k for k in range(len(sites)) if STRESS or k not in common or k == common[n % len(common)]]


def test_every_way(tmp_path):
    """Each way alone, each of its sites edited once."""
    library = list(LIBRARY)
    programs = [Program(f"w{n}", SEED + n, library, HAVE, [way]) for n, way in enumerate(WAYS)
                if fits(WAYS[way], HAVE) and not WAYS[way].get("refused")]
    fails = []
    texts = {p.name: write(tmp_path, p.render(), {}) for p in programs}
    last = look_apart(tmp_path, tmp_path / "cache", programs)
    fails += [(p, "", last[p.name]["error"]) for p in programs if "error" in last[p.name]]
    programs = [p for p in programs if "error" not in last[p.name]]
    which = {p.name: sites_of(n, p) for n, p in enumerate(programs)}
    for turn in range(max(map(len, which.values()))):
        now, sites = dict(last), {}
        left = [p for p in programs if turn < len(which[p.name])]
        for p in left:
            sites[p.name] = p.edit(which[p.name][turn])
            texts[p.name] = write(tmp_path, p.render(), texts[p.name])
        now.update(look_apart(tmp_path, tmp_path / "cache", left))
        for p in left:
            what = wrong(p, sites[p.name], last[p.name], now[p.name])
            if what:
                fails.append((p, sites[p.name], what))
        last = now
    assert not fails, told(fails)


def test_every_way_that_is_refused(tmp_path):
    programs = [Program(f"w{n}", SEED + n, [], HAVE, [way]) for n, way in enumerate(WAYS)
                if fits(WAYS[way], HAVE) and WAYS[way].get("refused")]
    for p in programs:
        write(tmp_path, p.render(), {})
    seen = look(tmp_path, tmp_path / "cache", programs)
    taken = [p.ways for p in programs if not seen[p.name].get("error", "").startswith("FingerprintError")]
    assert not taken and len(programs) > 15


def test_the_table_of_what_counts():
    """docs/fingerprint.md has each common way in one row, and what it names is tested."""
    text = (ROOT / "docs" / "fingerprint.md").read_text()
    rows = text.partition("### What a function reaches")[2].partition("What cannot be followed")[0]
    named = [way for row in rows.splitlines() if row.startswith("|") for way in
             re.findall(r"`([^`]*)`", row.rstrip("|").rpartition("|")[2])]
    assert len(named) == len(set(named)) and set(COMMON) <= set(named) <= set(WAYS)
    lines = [row for row in rows.splitlines() if row.startswith("|")][2:]
    assert all("`" in row.rstrip("|").rpartition("|")[2] for row in lines)
