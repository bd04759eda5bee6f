"""Graph kernels: loops, checkpoints and parallel sections that run in one launch.

    @qd.kernel(graph=True)
    def solve(x: qd.types.ndarray(), go_on: qd.types.ndarray(qd.i32, ndim=0)):
        while qd.graph.do_while(go_on):
            relax(x)
            check(x, go_on)

`do_while`, `parallel_context`, `parallel` and `checkpoint` say something in kernels only. In
Python the last three are context managers that do nothing, so that a function which uses them
can be called from both.
"""

import sys as _sys

from ingot import _core

_loops = {}  # arch=qd.python: frame -> lines of the do-while loops that it is in


def do_while(flag):
    """`while qd.graph.do_while(flag):` runs its body once, and again as long as flag[()] is not 0."""
    if not _core.settings()["python"]:
        raise _core.IngotSyntaxError("qd.graph.do_while() is the condition of a `while` in a kernel with graph=True")
    frame = _sys._getframe(1)
    begun = _loops.setdefault(frame, set())
    if frame.f_lineno in begun and not flag[()]:
        begun.remove(frame.f_lineno)
        if not begun:
            del _loops[frame]
        return False
    begun.add(frame.f_lineno)
    return True


class _Nothing:
    """A context manager that does nothing."""

    __slots__ = ()

    def __enter__(self):
        return None

    def __exit__(self, *error):
        return False


def parallel_context():
    """`with qd.graph.parallel_context():` around sections that may run at the same time."""
    return _Nothing()


def parallel():
    """`with qd.graph.parallel():` one section of a `parallel_context`."""
    return _Nothing()


def checkpoint(cp_id, yield_on):
    """`with qd.checkpoint(label, yield_on=flag):` a place where a launch can stop and go on later.

    label     an int or a member of an IntEnum, each used once in a kernel
    yield_on  an i32 array without axes: not 0 after the body, it ends the launch
    """
    del cp_id, yield_on
    return _Nothing()


class GraphStatus:
    """What a launch of a kernel with checkpoints=True returns.

    yielded     a flag ended the launch
    checkpoint  the label of that checkpoint, the object that the kernel names; else None
    """

    __slots__ = {"yielded": "Whether a flag ended the launch.", "checkpoint": "The label of that checkpoint, or None."}

    def __init__(self, yielded=False, checkpoint=None):
        self.yielded = yielded
        self.checkpoint = checkpoint

    def __repr__(self):
        return f"GraphStatus(yielded={self.yielded!r}, checkpoint={self.checkpoint!r})"

    def __eq__(self, other):
        if not isinstance(other, GraphStatus):
            return NotImplemented
        return (self.yielded, self.checkpoint) == (other.yielded, other.checkpoint)

    def __hash__(self):
        return hash((self.yielded, self.checkpoint))


def visualize(kernel, path=None):
    """The program of a graph kernel as text, and as a picture if `path` ends in .svg or .png.

    Shows loops with their flags, checkpoints, sections and tasks with their source lines and
    what they cost in the last launch. The kernel must have been launched. Pictures are drawn
    by Graphviz; without it the text goes to `path` with .txt in place of its ending.
    """
    from ingot import _visualize

    return _visualize.visualize(kernel, path)


_core.register_intrinsic(do_while, "graph.do_while")
_core.register_intrinsic(parallel_context, "graph.parallel_context")
_core.register_intrinsic(parallel, "graph.parallel")
_core.register_intrinsic(checkpoint, "checkpoint")
_core.register_graph(GraphStatus)

# The older, flat spellings: the same objects. Kernels that use them warn.
graph_do_while = do_while
graph_parallel_context = parallel_context
graph_parallel = parallel
graph = _sys.modules[__name__]
