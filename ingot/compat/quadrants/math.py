"""Mathematics."""

from ingot.compat.missing import adopt as _adopt
from ingot.compat.missing import provided as _provided

_adopt(
    globals(),
    "math",
    "cconj cdiv cexp cinv clamp clog cmul cpow cross csqrt degrees determinant distance "
    "dot eye fns fract inverse isinf isnan ivec2 ivec3 ivec4 length log2 mat2 mat3 mat4 "
    "mix mod normalize radians reflect refract rot_by_axis rot_yaw_pitch_roll rotation2d "
    "rotation3d scale sign smoothstep step translate uvec2 uvec3 uvec4 vdir vec2 vec3 "
    "vec4",
)


def __dir__():
    return _provided(globals())
