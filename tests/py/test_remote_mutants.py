"""What a server sends instead of an entry: fixed mutations of sealed entries, and of the whole answer as
it comes over the socket. Each is refused or is the entry itself; nothing else is ever handed on."""

import random
import socket
import threading

import pytest
from conftest import SEED, needs, samples

from ingot import _remote

KEY = b"a key of the tests, long enough"
PLACE = (1, "i", "0123456789abcdef" * 2)  # format of entries, kind, key
SIZES = (1, 2, 31, 32, 33, 100, 4096)


class Stub:
    """In the place of a connection: any place has the same."""

    def __init__(self, found):
        self.found = found

    def getrange(self, place, first, last):
        whole = isinstance(self.found, bytes)
        return self.found[first:last + 1] if whole else self.found


def server(found, key=KEY):
    it = object.__new__(_remote.Server)
    it.key, it.redis = key, Stub(found)
    return it


def sealed(payload, place=PLACE, key=KEY):
    return _remote.seal(key, *place, payload) + payload


def changed(rng, data, other):
    """One to three changes; never the same again."""
    b = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at, n = rng.randrange(len(b) + 1), rng.randint(1, 40)
        kind = rng.randrange(8)
        if kind == 0:
            del b[at:]
        elif kind == 1:
            del b[at:at + n]
        elif kind == 2:
            b[at:at] = rng.randbytes(n)
        elif kind == 3:
            b[at:at + n] = rng.randbytes(n)
        elif kind == 4:
            b[at:at] = b[:n]
        elif kind == 5:
            b[:32] = other[:32]  # the seal of another entry
        elif b:
            b[at % len(b)] ^= 1 << rng.randrange(8)
    return bytes(b) if b != data else changed(rng, data, other)


def entries(rng):
    """(payload, sealed) of one entry, and another that is sealed for the same place."""
    payload = rng.randbytes(rng.choice(SIZES))
    return payload, sealed(payload), sealed(rng.randbytes(rng.choice(SIZES)))


def test_mutants_are_refused():
    rng = random.Random(SEED)
    for _ in range(samples(20_000)):
        payload, good, other = entries(rng)
        assert server(good).get(*PLACE) == payload
        bad = changed(rng, good, other)
        assert server(bad).get(*PLACE) == b"" or bad == other, bad.hex()


def test_each_length_and_each_bit():
    good = sealed(bytes(range(64)))
    for n in range(len(good)):
        assert server(good[:n]).get(*PLACE) == b""
    for at in range(8 * len(good)):
        bad = bytearray(good)
        bad[at // 8] ^= 1 << at % 8
        assert server(bytes(bad)).get(*PLACE) == b""


@pytest.mark.parametrize("place", [(2, *PLACE[1:]), (1, "v", PLACE[2]), (1, "i", "f" * 32), (11, "", PLACE[2])])
def test_entries_of_other_places_are_refused(place):
    payload = b"code"
    assert server(sealed(payload, place)).get(*PLACE) == b""
    assert server(sealed(payload, place)).get(*place) == payload


def test_a_seal_of_another_key_is_refused():
    for key in (b"", KEY[:-1], KEY + b"!", KEY[::-1]):
        assert server(sealed(b"code", key=key)).get(*PLACE) == b""


@pytest.mark.parametrize("found", [None, 0, "text", [], [sealed(b"code")], True, bytearray(sealed(b"code"))])
def test_answers_that_are_no_bytes_are_refused(found):
    assert server(found).get(*PLACE) == b""


def test_an_entry_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(_remote, "MAX_ENTRY", 100)
    assert server(sealed(bytes(100))).get(*PLACE) == bytes(100)
    assert server(sealed(bytes(101))).get(*PLACE) == b""


# ---- the answer as it comes over the socket -----------------------------------------------------


def read_command(f):
    head = f.readline()
    return [f.read(int(f.readline()[1:]) + 2)[:-2] for _ in range(int(head[1:]))] if head else None


def answer_one(listener, reply):
    """A server of one connection, which ends with the first entry that it is asked for."""
    connection, _ = listener.accept()
    with connection, connection.makefile("rb") as f:
        try:
            while (words := read_command(f)) and words[0].upper() != b"GETRANGE":
                connection.sendall(b"+OK\r\n")
            connection.sendall(reply)
        except OSError:
            pass


@needs("redis")
def test_mutants_of_the_answer(monkeypatch):
    """An error of the client, which turns the remote off, or none, or the entry."""
    rng = random.Random(SEED)
    listener = socket.create_server(("127.0.0.1", 0))
    monkeypatch.setenv("INGOT_CACHE_REMOTE", f"redis://127.0.0.1:{listener.getsockname()[1]}/0?protocol=2")
    monkeypatch.setenv("INGOT_CACHE_REMOTE_KEY", KEY.decode())
    monkeypatch.setenv("INGOT_CACHE_REMOTE_TIMEOUT", "20")
    ends = {"entry": 0, "none": 0, "error": 0}
    for n in range(samples(10_000)):
        payload, good, other = entries(rng)
        reply = b"$%d\r\n%s\r\n" % (len(good), good)
        sent = changed(rng, reply, b"$%d\r\n%s\r\n" % (len(other), other)) if n else reply
        thread = threading.Thread(target=answer_one, args=(listener, sent))
        thread.start()
        try:
            got = _remote.Server().get(*PLACE)
        except Exception:
            ends["error"] += 1
        else:
            assert got in (b"", payload), sent.hex()
            ends["entry" if got else "none"] += 1
        thread.join()
    listener.close()
    assert all(ends.values()), ends
