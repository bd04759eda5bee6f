"""A server of helpers, one per user and build: it has LLVM loaded, and forks a process for each
connection, which then is a helper (_helper.py) for whoever connected.

The first helper of a program that finds no server leaves one behind. It ends when nobody has
connected for a while. Its socket is in a folder that is the user's alone; both ends ask the kernel
who the other one is. It has no threads, so that it can be forked at any time, and never compiles
for others itself: what LLVM does to a process it does to one connection. Whatever goes wrong here,
a program then starts a helper of its own. `address` is for the parent, the rest runs in helpers
and imports nothing of ingot.
"""

import os
import sys

IDLE_SECONDS = 300
TICK_SECONDS = 5.0
BACKLOG = 64
CHANNEL = 3
UCRED = 12  # bytes: pid, uid, gid

# ---- in programs --------------------------------------------------------------------------


def idle_seconds():
    """How long a server waits for the next connection; 0: there is to be none."""
    text = (os.environ.get("INGOT_SERVER") or "1").strip().lower()
    if text in ("0", "off", "false", "no"):
        return 0
    if text in ("1", "on", "true", "yes"):
        return IDLE_SECONDS
    try:
        return min(max(int(text), 0), 86400)
    except ValueError:
        return 0


def folder():
    """Where the socket is: the user's own folder for such things, or one below /tmp."""
    runtime = os.environ.get("XDG_RUNTIME_DIR") or ""
    if os.path.isabs(runtime) and os.path.isdir(runtime):
        return os.path.join(runtime, "ingot")
    return f"/tmp/ingot-{os.geteuid()}"


def about(path):
    """What changes when a file is replaced."""
    try:
        s = os.stat(path)
    except OSError:
        return path
    return f"{path} {s.st_dev} {s.st_ino} {s.st_size} {s.st_mtime_ns}"


def address(command):
    """Folder, seconds, and a text that differs where a server would not do the same as the helper
    that `command` starts; None: no server is wanted."""
    seconds = idle_seconds()
    if not seconds or sys.platform != "linux":
        return None
    files = [command[0], command[4], os.path.join(os.path.dirname(command[4]), "_server.py")]
    files += [os.path.join(d, "llvmlite", "binding", "libllvmlite.so") for d in command[5:]]
    words = [about(os.path.realpath(f)) for f in files]
    words += [f"{n}={os.environ.get(n)}" for n in ("LD_LIBRARY_PATH", "LD_PRELOAD")]
    return folder(), seconds, "\n".join([*command, *words])


# ---- leaving a server behind ---------------------------------------------------------------


def open_folder(path):
    """Its descriptor, after it was made if need be; OSError when it is not the user's alone."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    s = os.fstat(fd)
    if s.st_uid != os.geteuid() or s.st_mode & 0o777 != 0o700:
        os.close(fd)
        raise PermissionError(path)
    return fd


def leave_behind(spec, exercise, greet):
    """In a helper without threads, once LLVM is loaded. `spec`: seconds, name, folder. The server
    holds a lock as long as it lives: there is one."""
    import fcntl

    seconds, name, path = spec.split(" ", 2)
    place = open_folder(path)
    lock = os.open(name + ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=place)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return
        child = os.fork()
        if child == 0:
            try:
                os.setsid()
                if os.fork() == 0:
                    Server(place, lock, name, int(seconds), greet).run(exercise)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
    finally:
        os.close(lock)
        os.close(place)


class Server:
    def __init__(self, place, lock, name, seconds, greet):
        self.place, self.lock, self.name = place, lock, name
        self.seconds, self.greet = seconds, greet
        self.children = set()
        self.most = max(16, 4 * (os.cpu_count() or 1))

    def listen(self):
        """Replaces what a server that was killed left: the lock says that there is none."""
        import socket

        os.fchdir(self.place)
        try:
            os.unlink(self.name)
        except FileNotFoundError:
            pass
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(self.name)
        listener.listen(BACKLOG)
        listener.setblocking(False)
        os.chdir("/")
        self.listener = listener
        self.file = self.seen()

    def detach(self):
        """Nothing of the program that started us stays open or reaches us."""
        import signal

        for s in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(s, signal.SIG_IGN)
        nothing = os.open("/dev/null", os.O_RDWR)
        for fd in range(CHANNEL + 1):
            os.dup2(nothing, fd)  # the channel too: its number stays taken
        os.close(nothing)

    def run(self, exercise):
        import select
        import time

        self.detach()
        exercise()
        self.listen()
        last = time.monotonic()
        while True:
            ready = select.select([self.listener], [], [], min(TICK_SECONDS, self.seconds))[0]
            self.reap()
            if ready and self.accept():
                last = time.monotonic()
            if self.children:
                last = time.monotonic()
            if not self.is_there() or time.monotonic() - last >= self.seconds:
                self.end()

    def seen(self):
        s = os.stat(self.name, dir_fd=self.place, follow_symlinks=False)
        return s.st_ino, s.st_ctime_ns

    def is_there(self):
        """Whether those who connect by the name reach us."""
        try:
            return self.seen() == self.file
        except OSError:
            return False

    def end(self):
        if self.is_there():
            os.unlink(self.name, dir_fd=self.place)
            os.unlink(self.name + ".lock", dir_fd=self.place)
        os._exit(0)  # those who were served are served on

    def reap(self):
        while self.children:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.children.clear()
                return
            if not pid:
                return
            self.children.discard(pid)

    def accept(self):
        import socket
        from struct import unpack

        try:
            connection, _ = self.listener.accept()
        except OSError:
            return False
        with connection:
            given = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, UCRED)
            pid, uid, _ = unpack("iII", given)
            if uid != os.geteuid() or len(self.children) >= self.most or not self.suits(pid):
                return False
            try:
                child = os.fork()
            except OSError:
                return False
            if child == 0:
                try:
                    self.become_helper(connection.detach(), pid)
                finally:
                    os._exit(1)
            self.children.add(child)
        return True

    def suits(self, pid):
        """Whether we are as important to the system as who asks: one cannot become more so."""
        try:
            return os.getpriority(os.PRIO_PROCESS, pid) >= os.getpriority(os.PRIO_PROCESS, 0)
        except OSError:
            return False

    def become_helper(self, fd, pid):
        os.dup2(fd, CHANNEL)
        os.set_blocking(CHANNEL, True)
        for other in (fd, self.listener.detach(), self.lock, self.place):
            os.close(other)
        try:  # as a process that it had started
            os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, pid))
            os.sched_setaffinity(0, os.sched_getaffinity(pid))
        except OSError:
            pass
        self.greet()
