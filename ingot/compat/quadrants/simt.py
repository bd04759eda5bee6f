"""Operations of GPU threads.

A CPU has no subgroups. Programs for both have them in branches that a CPU does not take, some of which are
decided by a variable: so these are functions that kernels may have, and that fail where they are reached.
"""

import types as _types

from ingot import func as _func
from ingot import i32 as _i32
from ingot import u64 as _u64
from ingot._ops import cast as _cast
from ingot._ops import never as _never
from ingot.compat.missing import Missing as _Missing
from ingot.compat.missing import adopt as _adopt
from ingot.compat.missing import provided as _provided

_WHY = "a CPU has no subgroups: functions of qd.simt.subgroup run on GPUs only"


@_func
def _nothing():
    _never(_WHY)


@_func
def _number():
    _never(_WHY)
    return _cast(0, _i32)


@_func
def _same(value, a=0, b=0):
    _never(_WHY)
    return value


@_func
def _vote(predicate, a=0, b=0):
    _never(_WHY)
    return _cast(0, _i32)


@_func
def _mask(predicate, a=0):
    _never(_WHY)
    return _cast(0, _u64)


def _subgroup():
    """The reference's functions of subgroups, by what they give."""
    found = _types.ModuleType("quadrants.simt.subgroup", "Functions of subgroups: a CPU has none.")
    found.sync = found.mem_fence = _nothing
    found.invocation_id = found.group_size = found.log2_group_size = found.elect = _number
    found.ballot = _mask
    words = "broadcast broadcast_first shuffle shuffle_xor shuffle_up shuffle_down"
    for kind in ("reduce", "reduce_all", "segmented_reduce"):
        words += f" {kind}_add {kind}_min {kind}_max"
    for kind in ("inclusive", "exclusive"):
        words += "".join(f" {kind}_{op}" for op in ("add", "mul", "min", "max", "and", "or", "xor"))
    for name in words.split():
        setattr(found, name, _same)
        setattr(found, name + "_tiled", _same)
    for name in ("all_true", "any_true", "all_equal"):
        setattr(found, name, _vote)
        setattr(found, name + "_tiled", _vote)

    def look_up(name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Missing(f"simt.subgroup.{name}")

    found.__getattr__ = look_up
    return found


subgroup = _subgroup()
_adopt(globals(), "simt", "Tile16x16 Tile32x32 TileNxN block grid subgroup warp")


def __dir__():
    return _provided(globals())
