"""The remote layer against a real Redis server on this machine: two machines are two cache
directories that have nothing but the server in common."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time

import pytest

from conftest import needs

a_server = needs("redis-server", "redis")
KEY = "a key of the tests, long enough"

PROGRAM = """\
import json, os, sys, warnings
import ingot as qd

qd.init()
N = 3

@qd.func
def twice(x):
    return x * N

@qd.kernel
def fill(a: qd.types.ndarray(qd.f32, ndim=1)):
    for i in range(a.shape[0]):
        a[i] = twice(i + 0.5)

a = qd.ndarray(qd.f32, (8,))
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    fill(a)
    N = 4
    fill(a)
print(json.dumps([qd._core.counters(), float(a[2]), [str(w.message) for w in seen], "redis" in sys.modules]))
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("remote") / "program.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def server(tmp_path):
    import redis

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    process = subprocess.Popen(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "",
                                "--dir", str(tmp_path)], stdout=subprocess.DEVNULL)
    client = redis.Redis(port=port)
    for _ in range(500):
        try:
            client.ping()
            break
        except redis.ConnectionError:
            time.sleep(0.02)
    client.url = f"redis://127.0.0.1:{port}/0"
    yield client
    process.kill()
    process.wait()


def run(program, cache, url, role="ro", key=KEY, **more):
    env = {**os.environ, "INGOT_ARCH": "cpu", "INGOT_CACHE_DIR": str(cache), "HOME": str(cache),
           "INGOT_CACHE_REMOTE": url, "INGOT_CACHE_REMOTE_ROLE": role, "INGOT_CACHE_REMOTE_KEY": key,
           "INGOT_CACHE_REMOTE_TIMEOUT": "30", **more}
    done = subprocess.run([sys.executable, str(program)], env=env, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    counters, value, warned, has_redis = json.loads(done.stdout)
    assert value == 10.0 and not has_redis
    return counters, warned


def await_keys(server, n):
    """Pushes outlive the program that made them, for a while."""
    for _ in range(1500):
        if server.dbsize() >= n:
            return
        time.sleep(0.02)
    assert server.dbsize() >= n


def fill(server, program, tmp_path):
    """A first machine that compiles and pushes: alias(es), index, two variants, two images."""
    counters, warned = run(program, tmp_path / "first", server.url, "rw")
    assert counters["image_compiles"] == 2 and not warned
    assert counters["remote_hits"] == 0 and counters["remote_pushes"] >= 6
    kinds = {k: len(list((tmp_path / "first" / k).rglob("?" * 32))) for k in "ivxa"}
    await_keys(server, sum(kinds.values()))
    assert {k: len(server.keys(f"ingot:1:{k}:*")) for k in "ivxa"} == kinds
    assert any((tmp_path / "first" / "n").rglob("?" * 32))  # notes on compiles stay here
    assert not server.keys("ingot:1:n:*")
    settle(server)


def settle(server):
    """Until the writer has gone: the index is pushed once per variant."""
    for _ in range(1500):
        if len(server.client_list()) <= 1:
            return
        time.sleep(0.02)
    raise AssertionError("a process still talks to the server")


@a_server
@pytest.mark.counts("lowerings")
def test_a_second_machine_compiles_nothing(server, program, tmp_path):
    fill(server, program, tmp_path)
    counters, warned = run(program, tmp_path / "second", server.url)
    assert (counters["image_compiles"], counters["lowerings"], counters["parses"]) == (0, 0, 0)
    assert counters["remote_hits"] >= 6 and not warned
    # What came from the server is now an entry like any other: no server is needed.
    before = server.info("stats")["total_connections_received"]
    counters, warned = run(program, tmp_path / "second", server.url, "rw")
    assert counters["lowerings"] == counters["remote_hits"] == counters["remote_misses"] == 0 and not warned
    assert server.info("stats")["total_connections_received"] == before


@a_server
@pytest.mark.counts("lowerings")
def test_layers_are_asked_before_the_server(server, program, tmp_path):
    fill(server, program, tmp_path)
    below = {"INGOT_CACHE_PATH": f"{tmp_path / 'second'}:{tmp_path / 'first'}"}
    counters, warned = run(program, tmp_path / "second", server.url, **below)
    assert (counters["image_compiles"], counters["lowerings"]) == (0, 0) and not warned
    # Of indexes each layer has its own, and so has the server.
    came = [p for p in (tmp_path / "second").rglob("?" * 32) if p.is_file()]
    assert counters["remote_hits"] == len(came) and {p.parents[1].name for p in came} == {"x"}


@a_server
@pytest.mark.counts("lowerings")
def test_what_all_layers_lack_becomes_an_entry_of_the_one_written(server, program, tmp_path):
    fill(server, program, tmp_path)
    shutil.rmtree(tmp_path / "first" / "i")
    below = {"INGOT_CACHE_PATH": f"{tmp_path / 'second'}:{tmp_path / 'first'}"}
    counters, warned = run(program, tmp_path / "second", server.url, **below)
    assert (counters["image_compiles"], counters["lowerings"]) == (0, 0) and not warned
    assert len(list((tmp_path / "second" / "i").rglob("?" * 32))) == 2
    assert not (tmp_path / "first" / "i").exists()


@a_server
def test_a_reader_pushes_nothing(server, program, tmp_path):
    counters, warned = run(program, tmp_path / "first", server.url)
    assert counters["remote_pushes"] == 0 and counters["remote_misses"] > 0 and not warned
    settle(server)
    assert server.dbsize() == 0


def change(server, how):
    for key in server.keys("ingot:*"):
        server.set(key, how(server.get(key)))


DAMAGE = {
    "flipped": lambda b: b[:-1] + bytes([b[-1] ^ 1]),
    "flipped seal": lambda b: bytes([b[0] ^ 1]) + b[1:],
    "truncated": lambda b: b[:-1],
    "only a seal": lambda b: b[:32],
    "empty": lambda b: b"",
    "longer": lambda b: b + b"\0",
    "huge": lambda b: b + bytes((64 << 20) + 1),
}


@pytest.mark.parametrize("damage", DAMAGE)
@a_server
def test_damaged_entries_are_misses(server, program, tmp_path, damage):
    fill(server, program, tmp_path)
    change(server, DAMAGE[damage])
    counters, warned = run(program, tmp_path / "second", server.url)
    assert counters["image_compiles"] == 2 and counters["remote_hits"] == 0 and not warned


@a_server
def test_entries_of_another_key_are_misses(server, program, tmp_path):
    fill(server, program, tmp_path)
    counters, _ = run(program, tmp_path / "second", server.url, key=KEY + "!")
    assert counters["image_compiles"] == 2 and counters["remote_hits"] == 0


@a_server
def test_an_entry_is_good_for_its_own_place_only(server, program, tmp_path):
    fill(server, program, tmp_path)
    for kind in "iv":
        one, other = server.keys(f"ingot:1:{kind}:*")
        a, b = server.get(one), server.get(other)
        server.set(one, b)
        server.set(other, a)
    counters, _ = run(program, tmp_path / "second", server.url)
    assert counters["image_compiles"] == 2


@a_server
def test_no_server(program, tmp_path):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        counters, warned = run(program, tmp_path / "c", f"redis://127.0.0.1:{s.getsockname()[1]}", "rw")
    assert counters["image_compiles"] == 2 and counters["remote_pushes"] == 0
    assert len(warned) == 1 and "remote cache is off" in warned[0]


@a_server
def test_a_server_that_never_answers(program, tmp_path):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen(16)
        url = f"redis://127.0.0.1:{s.getsockname()[1]}"
        counters, warned = run(program, tmp_path / "c", url, INGOT_CACHE_REMOTE_TIMEOUT="0.3")
    assert counters["image_compiles"] == 2 and len(warned) == 1 and "remote cache is off" in warned[0]


@pytest.mark.parametrize("url, key, why", [
    ("redis://127.0.0.1:1", "", "INGOT_CACHE_REMOTE_KEY is not set"),
    ("redis://127.0.0.1:1", "short", "shorter than 16 bytes"),
    ("redis://example.org:1", KEY, "without TLS"),
    ("http://127.0.0.1:1", KEY, "rediss://"),
])
@a_server
def test_refused_with_the_reason(program, tmp_path, url, key, why):
    counters, warned = run(program, tmp_path / "c", url, key=key)
    assert counters["image_compiles"] == 2 and counters["remote_misses"] == 0
    assert len(warned) == 1 and "not used" in warned[0] and why in warned[0]


IN_ONE_PROCESS = """\
import socket, sys, threading

listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))


def line(f):
    return f.readline().rstrip()


def serve(connection):
    f = connection.makefile("rwb")
    while head := line(f):
        words = [f.read(int(line(f)[1:]) + 2)[:-2] for _ in range(int(head[1:]))]
        f.write(b"$0\\r\\n\\r\\n" if words[0].upper() == b"GETRANGE" else b"+OK\\r\\n")
        f.flush()


def accept():
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


threading.Thread(target=accept, daemon=True).start()
"""


@needs("redis")
def test_other_threads_run_while_a_server_is_asked(tmp_path):
    """The server is a thread of the very process that asks it: were the GIL held, it could not answer."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    program = tmp_path / "program.py"
    program.write_text(IN_ONE_PROCESS + PROGRAM)
    env = {**os.environ, "INGOT_ARCH": "cpu", "INGOT_CACHE_DIR": str(tmp_path / "cache"),
           "INGOT_CACHE_REMOTE": f"redis://127.0.0.1:{port}/0?protocol=2", "INGOT_CACHE_REMOTE_KEY": KEY,
           "INGOT_CACHE_REMOTE_TIMEOUT": "10"}
    done = subprocess.run([sys.executable, str(program), str(port)], env=env, capture_output=True, text=True,
                          timeout=240)
    assert done.returncode == 0, done.stderr
    counters, value, warned, _ = json.loads(done.stdout)
    assert (value, warned) == (10.0, []) and counters["remote_misses"] >= 4 and counters["image_compiles"] == 2
