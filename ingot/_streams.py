"""Streams and events, for programs that use them: on the CPU there is one order of launches.

A launch has ended when its call returns, so every stream is always synchronised, an event has been reached when it is
recorded, and the blocks of `with qd.stream_parallel():` run one after the other. What would be refused on a device
(graph kernels, gradients) is refused here as well, so that a program that runs here is a program that runs there.
"""

from ingot import _core
from ingot.graph import _Nothing


class _Handle:
    """What streams and events share: an end, and `with`."""

    __slots__ = ("_gone", "__weakref__")

    def __init__(self):
        self._gone = False

    @property
    def handle(self):
        """Its number on the device: 0, there is none."""
        return 0

    def synchronize(self):
        """Waits for the launches that it stands for, which have ended."""

    def destroy(self):
        """Ends it; more than once does no harm."""
        self._gone = True

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.destroy()

    def __repr__(self):
        return f"<{type(self).__name__}{' (destroyed)' if self._gone else ''}>"


class Stream(_Handle):
    """An order of launches: `kernel(..., qd_stream=stream)`. Made by `qd.create_stream()`."""

    __slots__ = ()


class Event(_Handle):
    """A moment in a stream that other streams can wait for. Made by `qd.create_event()`."""

    __slots__ = ()

    def record(self, qd_stream=None):
        """The event is reached when what was launched in the stream before has ended."""
        _check(qd_stream)

    def wait(self, qd_stream=None):
        """What is launched in the stream from now on runs after the event."""
        _check(qd_stream)


def _check(stream):
    if stream is not None and not isinstance(stream, Stream):
        raise _core.IngotArgumentError(
            f"qd_stream is a stream of qd.create_stream() or None, not {type(stream).__name__}")
    if stream is not None and stream._gone:
        raise _core.IngotRuntimeError("the stream was destroyed: make another by qd.create_stream()")


def check_launch(stream, what):
    """Called with the argument `qd_stream` of a launch; `what` it is if streams do not go with it, else None."""
    _check(stream)
    if stream is not None and what is not None:
        raise _core.IngotRuntimeError(f"qd_stream is not compatible with {what}: leave it out")


def create_stream():
    """A new stream."""
    return Stream()


def create_event():
    """A new event."""
    return Event()


def stream_parallel():
    """`with qd.stream_parallel():` loops that may run beside those of the next such block; in kernels, outermost."""
    return _Nothing()


_core.register_intrinsic(stream_parallel, "stream_parallel")
