"""`ingot doctor`: each thing that would fail is found, named and given a remedy; exit status 1 exactly
then."""

import json
import os
import socket
import subprocess
import sys

import pytest
from conftest import needs
from ingot import _doctor


@pytest.fixture
def doctor(tmp_path):
    """Runs it: exit status and findings by topic."""

    def run(args=("--json",), **env):
        given = {k: v for k, v in os.environ.items() if not k.startswith("INGOT_")}
        given["INGOT_CACHE_DIR"] = str(tmp_path / "cache")
        given |= env
        given = {k: v for k, v in given.items() if v is not None}
        done = subprocess.run([sys.executable, "-m", "ingot", "doctor", *args], capture_output=True, text=True,
                              env=given, timeout=120)
        assert done.returncode in (0, 1), done.stderr
        if "--json" not in args:
            return done.returncode, done.stdout
        return done.returncode, json.loads(done.stdout)

    return run


def failing(found):
    return [(f["topic"], f["text"]) for f in found if f["state"] == "fail"]


def test_all_is_well(doctor, tmp_path):
    code, found = doctor()
    assert code == 0 and failing(found) == []
    topics = {f["topic"]: f["text"] for f in found}
    assert {"python", "ingot", "machine", "numpy", "compiler", "memory", "cache", "space"} <= set(topics)
    assert topics["compiler"].startswith("llvmlite ") and "LLVM" in topics["compiler"]
    assert str(tmp_path / "cache") in topics["cache"]
    assert not (tmp_path / "cache").exists()  # nothing is made
    code, text = doctor(())
    assert code == 0 and "nothing here would fail" in text


def test_caches_that_cannot_be_used(doctor, tmp_path):
    loose = tmp_path / "loose"
    loose.mkdir()
    loose.chmod(0o777)
    code, found = doctor(INGOT_CACHE_DIR=str(loose))
    assert code == 1 and any(t == "cache" and "mode 0777" in x for t, x in failing(found))
    file = tmp_path / "file"
    file.write_text("")
    code, found = doctor(INGOT_CACHE_DIR=str(file / "cache"))
    assert code == 1 and failing(found)[0][0] == "cache"
    code, found = doctor(INGOT_CACHE_PATH=f":{tmp_path / 'none'}")
    assert code == 0 and any(f["state"] == "warn" and "no such layer" in f["text"] for f in found)


def test_no_compiler(doctor, tmp_path):
    code, found = doctor(INGOT_HELPER_PYTHON=str(tmp_path / "python"))
    assert code == 1 and failing(found)[0][0] == "compiler"
    fake = tmp_path / "fake"
    fake.write_text("#!/bin/sh\necho 'No module named llvmlite' >&2\nexit 1\n")
    fake.chmod(0o755)
    code, found = doctor(INGOT_HELPER_PYTHON=str(fake))
    assert code == 1 and "No module named llvmlite" in failing(found)[0][1]


def test_variables(doctor):
    code, found = doctor(INGOT_FAST_MATH="maybe")
    assert code == 1 and "qd.init would raise" in failing(found)[0][1]
    code, found = doctor(INGOT_CACHE_DIRR="x", INGOT_CPU_LEVEL="z80")
    texts = {f["text"]: f["remedy"] for f in found if f["state"] == "warn"}
    assert code == 0 and texts["INGOT_CACHE_DIRR means nothing to Ingot"] == "did you mean INGOT_CACHE_DIR?"
    assert any("z80" in t for t in texts)


def test_remote(doctor):
    code, found = doctor(INGOT_CACHE_REMOTE="redis://far.example:1/0", INGOT_CACHE_REMOTE_KEY="k" * 20)
    assert code == 1 and "refused" in failing(found)[0][1]


@needs("redis")
def test_a_remote_that_is_down(doctor):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]  # nobody listens
        code, found = doctor(INGOT_CACHE_REMOTE=f"redis://:secret@127.0.0.1:{port}/0",
                             INGOT_CACHE_REMOTE_KEY="k" * 20, INGOT_CACHE_REMOTE_TIMEOUT="0.2")
    assert code == 1 and failing(found)[0][0] == "remote" and "secret" not in json.dumps(found)


# ---- what this machine does not have, as if it had ---------------------------------------------------


def said(check):
    return [(state, topic, text) for state, topic, text, _ in check]


def test_mounts_and_space(monkeypatch, tmp_path):
    assert _doctor.mount_of("/proc/self")[0] == "proc"
    points = {line.split()[1] for line in open("/proc/self/mounts", encoding="utf-8", errors="replace")}
    if "/" in points:  # in a chroot nobody knows what its root is on
        assert _doctor.mount_of(str(tmp_path))[0]
    monkeypatch.setattr(_doctor, "mount_of", lambda path: ("ext4", "rw,relatime"))
    monkeypatch.setattr(_doctor._cachetool, "free", lambda path: 1 << 40)
    assert said(_doctor.place(tmp_path)) == [("ok", "space", "1024.0 GiB free")]
    monkeypatch.setattr(_doctor._cachetool, "free", lambda path: 1 << 20)
    assert said(_doctor.place(tmp_path / "not" / "yet")) == [("warn", "space", "1.0 MiB free")]
    for kind, options, text in (("nfs4", "rw", "nfs4, shared: code is copied to memory"),
                                ("fuse.sshfs", "rw", "fuse.sshfs, shared: code is copied to memory"),
                                ("ext4", "rw,noexec,nodev", "noexec: code is copied to memory")):
        monkeypatch.setattr(_doctor, "mount_of", lambda path, found=(kind, options): found)
        state, topic, found = said(_doctor.place(tmp_path))[-1]
        assert (state, topic) == ("ok", "mount") and found.startswith(text)


def test_no_home_and_nothing_to_write(monkeypatch, tmp_path):
    from ingot import _cli

    monkeypatch.setattr(_cli, "default_directory", lambda: None)
    monkeypatch.delenv("INGOT_CACHE_PATH", raising=False)
    assert [x[:2] for x in said(_doctor.caches())] == [("fail", "cache")]
    layer = tmp_path / "layer"
    layer.mkdir(mode=0o700)
    (layer / "MANIFEST").write_text("")  # sealed: only read
    monkeypatch.setenv("INGOT_CACHE_PATH", str(layer))
    found = said(_doctor.caches())
    assert found[0][0] == "ok" and "(read)" in found[0][2]
    assert found[1][0] == "warn" and found[1][2].startswith("no layer can be written")


def test_a_policy_and_a_slow_machine(monkeypatch):
    import mmap

    def refuse(*args, **more):
        raise PermissionError(1, "Operation not permitted")

    def hang(*args, timeout, **more):
        raise subprocess.TimeoutExpired("python", timeout)

    assert [x[0] for x in said(_doctor.memory())] == ["ok"]
    monkeypatch.setattr(mmap, "mmap", refuse)
    assert [x[:2] for x in said(_doctor.memory())] == [("fail", "memory")]
    monkeypatch.setattr(subprocess, "run", hang)
    assert [x[:2] for x in said(_doctor.helper())] == [("fail", "compiler")]
