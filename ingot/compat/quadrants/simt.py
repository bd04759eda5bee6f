"""Operations of GPU threads."""

from ingot.compat.missing import adopt as _adopt
from ingot.compat.missing import provided as _provided

_adopt(globals(), "simt", "Tile16x16 Tile32x32 TileNxN block grid subgroup warp")


def __dir__():
    return _provided(globals())
