"""The remote layer of the cache: a Redis server that several machines share.

Two halves. `setup` runs in the user's process, when `INGOT_CACHE_REMOTE` is set and the store is
opened, and imports neither redis nor anything heavy. `main` is a process of its own, started at the
first miss by src/compile/remote.c over the wire of src/compile/helper.c: requests are "get KIND KEY"
or "put KIND KEY", answers a payload, nothing (not there) or the text of an error, which turns the
remote off. An entry is code, so it is believed only with a valid HMAC, which is checked here
before anything but its length is looked at.

    ingot:1:KIND:KEY   ->   HMAC-SHA256 (32 bytes), payload
    authenticated:     "ingot remote entry", then 1 (this format), format of entries, kind, key,
                       length of the payload, each with a separator, then the payload
"""

import os
import sys

FORMAT = 1
MAX_ENTRY = 64 << 20  # of a payload, both ways: the helper's wire carries no more
MIN_KEY = 16
DRAIN_SECONDS = 20.0  # for what waits to be pushed when the program has ended
MEMORY = 1 << 30  # of the process: a server that sends without end must not fill the machine
KINDS = ("i", "v", "x", "a")


# ---- in the user's process --------------------------------------------------------------


def is_loopback(host):
    return host in ("localhost", "::1") or bool(host) and host.startswith("127.")


def refusal(url, key):
    """Why this remote is not used, or None."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        scheme, host = parts.scheme, parts.hostname
    except ValueError as e:
        return f"INGOT_CACHE_REMOTE is no address: {e}"
    if scheme not in ("rediss", "redis"):
        return "INGOT_CACHE_REMOTE must begin with rediss://"
    if scheme == "redis" and not is_loopback(host):
        return "redis:// without TLS is for this machine alone; write rediss://"
    if not key:
        return (
            "INGOT_CACHE_REMOTE_KEY is not set; entries are machine code, and without a key nobody "
            "can tell who wrote them"
        )
    if len(key.encode("utf-8", "surrogateescape")) < MIN_KEY:
        return f"INGOT_CACHE_REMOTE_KEY is shorter than {MIN_KEY} bytes"
    try:
        from ingot import _numbers

        _numbers.number(os.environ.get("INGOT_CACHE_REMOTE_TIMEOUT") or "1")
    except ValueError as e:
        return f"INGOT_CACHE_REMOTE_TIMEOUT: {e}"
    return None


def package_dirs():
    finder = sys.modules["_frozen_importlib_external"].PathFinder
    try:
        spec = finder.find_spec("redis")
    except (ImportError, ValueError):
        spec = None
    places = spec.submodule_search_locations if spec else None
    return [os.path.dirname(os.path.abspath(p)) for p in places or ()]


def patience():
    """Seconds that a request may take."""
    try:
        seconds = float(os.environ.get("INGOT_CACHE_REMOTE_TIMEOUT") or 1.0)
    except ValueError:
        seconds = 1.0
    return min(max(seconds, 0.01), 60.0)


def setup():
    """None, after a warning, when the remote cannot be used; else the command line of its process,
    milliseconds of patience, and whether it may be written to."""
    from ingot import _helper

    url = os.environ.get("INGOT_CACHE_REMOTE", "")
    role = os.environ.get("INGOT_CACHE_REMOTE_ROLE") or "ro"
    reason = refusal(url, os.environ.get("INGOT_CACHE_REMOTE_KEY"))
    if not reason and role not in ("ro", "rw"):
        reason = "INGOT_CACHE_REMOTE_ROLE must be ro or rw"
    dirs = package_dirs()
    if not reason and not dirs:
        reason = "it needs the package redis: pip install 'ingot[remote]'"
    command = []
    if not reason:
        try:
            command = _helper.argv()[:4]
        except RuntimeError as e:
            reason = str(e)
    if reason:
        import warnings

        from ingot._core import IngotRuntimeWarning

        warnings.warn(f"the remote cache is not used: {reason}", IngotRuntimeWarning, stacklevel=2)
        return None
    return [*command, os.path.abspath(__file__), *dirs], int(patience() * 1000), role == "rw"


# ---- in the process that talks to the server ---------------------------------------------


def wire():
    """ingot/_helper.py, whose framing is used, by its path."""
    from importlib.util import module_from_spec, spec_from_file_location

    path = os.path.join(os.path.dirname(__file__), "_helper.py")
    spec = spec_from_file_location("ingot_helper_wire", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def seal(key, entry_format, kind, name, payload):
    """The HMAC of an entry."""
    import hmac

    head = f"ingot remote entry\0{FORMAT}\0{entry_format}\0{kind}\0{name}\0{len(payload)}\0"
    mac = hmac.new(key, head.encode(), "sha256")
    mac.update(payload)
    return mac.digest()


class Server:
    """The connection; made at the first request."""

    def __init__(self):
        import redis

        self.key = os.environ["INGOT_CACHE_REMOTE_KEY"].encode("utf-8", "surrogateescape")
        seconds = patience()
        self.redis = redis.Redis.from_url(
            os.environ["INGOT_CACHE_REMOTE"], socket_timeout=seconds, socket_connect_timeout=seconds, retry=None
        )

    def get(self, entry_format, kind, name):
        """The payload, or b"" when there is none that can be believed."""
        import hmac

        place = f"ingot:{FORMAT}:{kind}:{name}"
        # One byte more than is allowed tells an entry that is too large.
        found = self.redis.getrange(place, 0, MAX_ENTRY + 32)
        if not isinstance(found, bytes) or not 32 < len(found) <= MAX_ENTRY + 32:
            return b""
        payload = found[32:]
        good = seal(self.key, entry_format, kind, name, payload)
        return payload if hmac.compare_digest(good, found[:32]) else b""

    def put(self, entry_format, kind, name, payload):
        sealed = seal(self.key, entry_format, kind, name, payload) + payload
        self.redis.set(f"ingot:{FORMAT}:{kind}:{name}", sealed)


def reason_of(error):
    place = os.environ.get("INGOT_CACHE_REMOTE", "").rpartition("@")[2].rpartition("//")[2]
    return f"{place}: {type(error).__name__}: {error}"


class Worker:
    """One thread that talks to the server, in the order of requests, so that whoever waits can
    give up on it. Pushes are not waited for."""

    def __init__(self):
        import queue
        import threading

        self.jobs = queue.Queue()
        self.answers = queue.SimpleQueue()
        self.trouble = None
        threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        server = None
        while True:
            verb, *rest = self.jobs.get()
            reply = b""
            try:
                if self.trouble is None:
                    server = server or Server()
                    reply = server.get(*rest) if verb == "get" else server.put(*rest)
            except BaseException as e:
                self.trouble = reason_of(e)
            if verb == "get":
                self.answers.put(reply)
            self.jobs.task_done()

    def ask(self, verb, entry_format, kind, name, payload):
        """Payload, b"" or, when the server is of no use, the reason as str."""
        import queue

        if kind not in KINDS or verb not in ("get", "put"):
            return f"unknown request {verb} {kind}"
        if self.trouble is None and verb == "put":
            self.jobs.put(("put", entry_format, kind, name, payload))
            return b""
        if self.trouble is None:
            self.jobs.put(("get", entry_format, kind, name))
            try:
                reply = self.answers.get(timeout=patience())
            except queue.Empty:
                self.trouble = f"no answer within {patience():g} s"
            else:
                if self.trouble is None:
                    return reply
        return self.trouble

    def drain(self):
        """Lets what is queued go out, for a bounded time."""
        import threading

        done = threading.Thread(target=self.jobs.join, daemon=True)
        done.start()
        done.join(DRAIN_SECONDS)


def limit_memory():
    import resource

    try:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    except (OSError, ValueError):
        pass


def main():
    import signal
    from struct import pack, unpack

    helper = wire()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    helper.close_inherited()
    limit_memory()
    worker = Worker()
    try:
        while True:
            head = helper.read_exactly(helper.HEADER_BYTES)
            magic, version, kind, n, m = unpack(helper.HEADER, head)
            known = (helper.MAGIC, helper.VERSION, helper.COMPILE)
            if (magic, version, kind) != known or n + m > helper.MAX_BYTES:
                os._exit(3)
            words = helper.read_exactly(n).decode("ascii").split()
            reply = worker.ask(*words, helper.read_exactly(m))
            kind = helper.OBJECT
            if isinstance(reply, str):
                kind, reply = helper.ERROR, reply.encode("utf-8", "replace")
            helper.write_all(pack(helper.HEADER, helper.MAGIC, helper.VERSION, kind, 0, len(reply)) + reply)
    except (EOFError, OSError):
        worker.drain()
        os._exit(0)
