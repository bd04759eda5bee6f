"""The server of helpers: who is served, by whom, and what happens when it is not there, not to be
trusted, dead or silent. Programs always compile; each runs in a process of its own."""

import hashlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import pytest
from conftest import as_root

PROGRAM = """
import os, sys
import ingot as qd
from ingot import _core
qd.init(arch=qd.cpu)

@qd.kernel
def twice(x: qd.types.ndarray(qd.f32, 1), s: qd.f32):
    for i in range(x.shape[0]):
        x[i] = x[i] * 2 + s

@qd.kernel
def other(x: qd.types.ndarray(qd.f32, 1)):
    for i in range(x.shape[0]):
        x[i] = x[i] - 1

x = qd.ndarray(qd.f32, 8)
x.fill(3)
twice(x, 1.0)
HOOK
other(x)
assert x[7] == 6
c = _core.counters()
print(c["helpers_started"], c["helpers_served"], c["helper_retries"])
"""
OWN, SERVED = [1, 0, 0], [0, 1, 0]


class Place:
    """A folder for sockets, and the processes that have to do with it."""

    def __init__(self, path):
        self.path = path
        path.mkdir(mode=0o700)
        self.folder = path / "ingot"
        self.caches = 0
        self.env = {**os.environ, "XDG_RUNTIME_DIR": str(path), "INGOT_SERVER": "20"}

    def run(self, hook="", timeout=240, **env):
        """Counts of helpers of a program with an empty cache."""
        self.caches += 1
        env = {**self.env, "INGOT_CACHE_DIR": str(self.path / f"cache{self.caches}"), **env}
        program = self.path / "prog.py"
        program.write_text(PROGRAM.replace("HOOK", hook))
        done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, env=env, timeout=timeout)
        assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr
        return [int(n) for n in done.stdout.split()]

    def sockets(self):
        found = list(self.folder.iterdir()) if self.folder.exists() else []
        return [p for p in found if p.is_socket()]

    def start(self, **env):
        """A program that finds no server and leaves one behind."""
        assert self.run(**env) == OWN
        end = time.time() + 60
        while not self.sockets() and time.time() < end:
            time.sleep(0.02)
        [at] = self.sockets()
        return at

    def pids(self):
        """The server and those that it forked: all were told the folder."""
        out = []
        for p in pathlib.Path("/proc").iterdir():
            try:
                if p.name.isdigit() and f" {self.folder}\0".encode() in (p / "cmdline").read_bytes():
                    out.append(int(p.name))
            except OSError:
                pass
        return out

    def end(self, sign=signal.SIGKILL):
        for pid in self.pids():
            try:
                os.kill(pid, sign)
            except ProcessLookupError:
                pass

    def image(self, n):
        files = [p for p in (self.path / f"cache{n}").rglob("*") if p.is_file()]
        return sorted(hashlib.sha256(p.read_bytes()).hexdigest() for p in files if b"INGIMAGE" in p.read_bytes())


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path / "run")
    yield place
    place.end()
    end = time.time() + 30
    while place.pids() and time.time() < end:
        time.sleep(0.01)
    assert not place.pids()


def test_the_first_program_leaves_one_for_the_others(place):
    at = place.start()
    assert at.parent.stat().st_mode & 0o777 == 0o700
    assert place.run() == SERVED and place.run() == SERVED
    assert place.sockets() == [at]
    assert place.image(1) == place.image(2) == place.image(3) and len(place.image(1)) == 2


def two_loops(body):
    """Text of a kernel of two tasks with that body, and a call of it."""
    loops = "".join(f"    for i in range(y.shape[0] - {k}):\n        {body} + {k}\n" for k in (50, 60))
    return f"\n@qd.kernel\ndef both(y: qd.types.ndarray(qd.f64, 1)):\n{loops}\nboth(qd.ndarray(qd.f64, 8))\n"


@pytest.mark.skipif(os.cpu_count() < 2, reason="one helper is all that one processor has")
def test_long_tasks_of_a_kernel_are_compiled_side_by_side(place):
    place.start()
    long, longest = (two_loops("y[i] = " + " + ".join(f"y[i + {k}] * y[i + {k + 1}]" for k in range(n))) for n in (45, 300))
    assert place.run(longest) == [0, 2, 0]  # its first task is under way when the second thread starts, however late
    assert place.run(two_loops("y[i] = y[i + 1]")) == SERVED
    # Without a server the second waits for the first, but not for long: on a busy machine it gets a process of its own.
    assert place.run(long, INGOT_SERVER="0") in (OWN, [2, *OWN[1:]])


@pytest.mark.parametrize("off", ["0", "off", "no sense"])
def test_it_can_be_turned_off(place, off):
    assert place.run(INGOT_SERVER=off) == OWN
    assert not place.folder.exists() and not place.pids()


def test_it_ends_when_idle(place):
    assert place.run(INGOT_SERVER="3") == OWN and place.folder.exists()
    end = time.time() + 60
    while place.pids() and time.time() < end:
        time.sleep(0.05)
    assert not place.pids() and not list(place.folder.iterdir())


def test_another_follows_one_that_was_killed(place):
    at = place.start()
    place.end()
    assert at.is_socket()
    first = at.stat().st_ctime_ns
    assert place.run() == OWN
    end = time.time() + 60
    while (not at.exists() or at.stat().st_ctime_ns == first) and time.time() < end:
        time.sleep(0.02)
    assert place.run() == SERVED


def test_other_builds_have_others(place):
    place.start()
    assert place.run(LD_LIBRARY_PATH="/nowhere") == OWN


KILL = """
import pathlib, signal, time
for p in pathlib.Path("/proc").iterdir():
    try:
        told = p.name.isdigit() and b"FOLDER\\0" in (p / "cmdline").read_bytes()
    except OSError:
        told = False
    if told:
        os.kill(int(p.name), signal.SIGKILL)
time.sleep(0.3)
"""


def test_all_die_between_two_kernels(place):
    place.start()
    assert place.run(KILL.replace("FOLDER", str(place.folder))) == [1, 1, 0]


def test_one_that_says_nothing_is_left_alone(place):
    place.start()
    place.end(signal.SIGSTOP)
    assert place.run() == [1, 1, 0]
    place.end(signal.SIGCONT)


def test_one_that_talks_nonsense_is_left_alone(place):
    at = place.start()
    place.end()
    at.unlink()
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(at))
        s.listen()
        s.settimeout(60)
        child = subprocess.Popen([sys.executable, "-c", f"""
import socket
s = socket.socket(fileno={s.fileno()})
while True:
    c, _ = s.accept()
    c.sendall(b"INGH" + bytes(60))
"""], pass_fds=[s.fileno()])
        try:
            assert place.run() == [1, 1, 0]
        finally:
            child.kill()
            child.wait()


def test_a_folder_that_others_may_enter_is_not_used(place):
    at = place.start()
    at.parent.chmod(0o755)
    assert place.run() == OWN
    at.parent.chmod(0o700)
    assert place.run() == SERVED


@as_root("to give folders away")
def test_a_folder_of_another_user_is_not_used(place):
    at = place.start()
    os.chown(at.parent, 12345, 12345)
    assert place.run() == OWN
    os.chown(at.parent, 0, 0)


def test_a_link_is_not_followed(place):
    at = place.start()
    at.parent.rename(place.path / "elsewhere")
    at.parent.symlink_to(place.path / "elsewhere")
    assert place.run() == OWN


def test_no_folder_can_be_made(place):
    place.folder.write_text("a file")
    assert place.run() == OWN


def test_it_serves_who_is_as_nice(place):
    polite = "import os; os.nice(5)\n"
    at = place.start()
    place.end()
    at.unlink()
    program = place.path / "polite.py"
    program.write_text(polite + PROGRAM.replace("HOOK", ""))
    env = {**place.env, "INGOT_CACHE_DIR": str(place.path / "polite")}
    subprocess.run([sys.executable, str(program)], check=True, env=env, capture_output=True, timeout=240)
    end = time.time() + 60
    while not place.sockets() and time.time() < end:
        time.sleep(0.02)
    assert place.run() == [1, 1, 0]  # its server would be slower
