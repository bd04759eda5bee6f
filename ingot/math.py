"""`qd.math`: the functions of `qd` that are mathematics, more of them as funcs, and constants."""

from ingot._annotations import template as _template
from ingot._core import _follow_defaults
from ingot._core import f32 as _f32
from ingot._core import i32 as _i32
from ingot._core import u32 as _u32
from ingot._decorators import func as _func
from ingot._matrix import Matrix as _Matrix
from ingot._matrix import Vector as _Vector
from ingot._ops import (
    abs as _abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cast as _cast,
    cbrt,
    ceil,
    clz,
    cos,
    cosh,
    erf,
    erfc,
    exp,
    exp2,
    expm1,
    ffs,
    floor,
    hypot,
    log,
    log10,
    log1p,
    max,
    min,
    popcnt,
    pow,
    round,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
)

from ingot.types.compound import matrix as _matrix
from ingot.types.compound import vector as _vector

e = 2.718281828459045
pi = 3.141592653589793
inf = float("inf")
nan = float("nan")


# Of default_fp and default_ip, also if these are set later.
vec2, vec3, vec4 = (_vector(n, _f32) for n in (2, 3, 4))
ivec2, ivec3, ivec4 = (_vector(n, _i32) for n in (2, 3, 4))
uvec2, uvec3, uvec4 = (_vector(n, _u32) for n in (2, 3, 4))
mat2, mat3, mat4 = (_matrix(n, n, _f32) for n in (2, 3, 4))
_follow_defaults((vec2, vec3, vec4, ivec2, ivec3, ivec4, uvec2, uvec3, uvec4, mat2, mat3, mat4))


@_func
def sign(x):
    """1.0 for positive x, -1.0 for negative x, 0.0 for zero."""
    return _cast(x >= 0, float) - _cast(x <= 0, float)


@_func
def clamp(x, xmin, xmax):
    """x, but not below xmin and not above xmax."""
    return min(xmax, max(xmin, x))


@_func
def mix(x, y, a):
    """The point between x and y at a: x for 0, y for 1."""
    return x * (1.0 - a) + y * a


@_func
def step(edge, x):
    """0.0 below the edge, 1.0 from there on."""
    return _cast(x >= edge, float)


@_func
def smoothstep(edge0, edge1, x):
    """0.0 below edge0, 1.0 above edge1, a smooth cubic between them."""
    t = clamp((x - edge0) / (edge1 - edge0), 0.0, 1.0)
    return t * t * (3.0 - 2.0 * t)


@_func
def fract(x):
    """What floor leaves of x: in [0, 1)."""
    return x - floor(x)


@_func
def mod(x, y):
    """x - y * floor(x / y), exactly: % of floats, integers become floats."""
    return (x * 1.0) % y


@_func
def log2(x):
    """The logarithm of x to base 2."""
    return log(x) / 0.6931471805599453


@_func
def degrees(x):
    """The angle x, given in radians, in degrees."""
    return x * 57.29577951308232


@_func
def radians(x):
    """The angle x, given in degrees, in radians."""
    return x * 0.017453292519943295


@_func
def isnan(x):
    """Whether x is not a number."""
    return x != x


@_func
def isinf(x):
    """Whether x is infinite."""
    return _abs(x) == inf


@_func
def fns(mask, base, offset):
    """The position of the n-th set bit of a 32-bit mask, n = |offset|, counted from bit `base` on.

    Upwards for a positive offset, downwards for a negative one; for 0 `base` itself if that bit
    is set. 0xFFFFFFFF if there is no such bit.
    """
    wanted = _i32(_abs(offset))
    if offset == 0:
        wanted = 1
    seen = 0
    found = _u32(0xFFFFFFFF)
    for k in range(32):
        at = _i32(base) + k
        if offset < 0:
            at = _i32(base) - k
        if at >= 0 and at < 32 and (k == 0 or offset != 0):
            if (_u32(mask) >> _u32(at)) & _u32(1) == 1:
                seen += 1
                if seen == wanted:
                    found = _u32(at)
    return found


@_func
def dot(x, y):
    """The sum of the products of equal elements."""
    return x.dot(y)


@_func
def cross(x, y):
    """The cross product of two vectors."""
    return x.cross(y)


@_func
def length(x):
    """The Euclidean length of a vector."""
    return x.norm()


@_func
def normalize(x):
    """The vector of length one in the direction of x."""
    return x / x.norm()


@_func
def distance(x, y):
    """How far apart two points are."""
    return (x - y).norm()


@_func
def reflect(x, n):
    """The vector x reflected at the plane with normal n."""
    return x - 2.0 * x.dot(n) * n


@_func
def refract(x, n, eta):
    """The vector x refracted at the plane with normal n; zero when it is reflected wholly."""
    along = x.dot(n)
    k = 1.0 - eta * eta * (1.0 - along * along)
    result = 0.0 * x
    if k >= 0.0:
        result = eta * x - (eta * along + sqrt(k)) * n
    return result


@_func
def inverse(m):
    """The inverse of a square matrix."""
    return m.inverse()


@_func
def determinant(m):
    """The determinant of a square matrix of up to 4x4."""
    return m.determinant()


@_func
def vdir(angle):
    """The vector of length one at an angle."""
    return _Vector([cos(angle), sin(angle)])


@_func
def translate(dx, dy, dz):
    """The 4x4 matrix that moves points."""
    return mat4([[1.0, 0.0, 0.0, dx], [0.0, 1.0, 0.0, dy], [0.0, 0.0, 1.0, dz], [0.0, 0.0, 0.0, 1.0]])


@_func
def scale(sx, sy, sz):
    """The 4x4 matrix that stretches along the axes."""
    return mat4([[sx, 0.0, 0.0, 0.0], [0.0, sy, 0.0, 0.0], [0.0, 0.0, sz, 0.0], [0.0, 0.0, 0.0, 1.0]])


@_func
def rotation2d(ang):
    """The 2x2 matrix that turns counter-clockwise."""
    c = cos(ang)
    s = sin(ang)
    return mat2([[c, -s], [s, c]])


@_func
def rot_by_axis(axis, ang):
    """The 4x4 matrix that turns about an axis, for row vectors."""
    c = cos(ang)
    s = sin(ang)
    a = axis / axis.norm()
    t = (1.0 - c) * a
    return mat4([
        [c + t[0] * a[0], t[0] * a[1] + s * a[2], t[0] * a[2] - s * a[1], 0.0],
        [t[1] * a[0] - s * a[2], c + t[1] * a[1], t[1] * a[2] + s * a[0], 0.0],
        [t[2] * a[0] + s * a[1], t[2] * a[1] - s * a[0], c + t[2] * a[2], 0.0],
        [0.0, 0.0, 0.0, 1.0]])


@_func
def rot_yaw_pitch_roll(yaw, pitch, roll):
    """The 4x4 matrix of a rotation about y, then x, then z."""
    cy, sy = cos(yaw), sin(yaw)
    cp, sp = cos(pitch), sin(pitch)
    cr, sr = cos(roll), sin(roll)
    return mat4([
        [cy * cr + sy * sp * sr, sr * cp, cy * sp * sr - sy * cr, 0.0],
        [sy * sp * cr - cy * sr, cr * cp, sr * sy + cy * sp * cr, 0.0],
        [sy * cp, -sp, cy * cp, 0.0],
        [0.0, 0.0, 0.0, 1.0]])


@_func
def rotation3d(ang_x, ang_y, ang_z):
    """The 4x4 matrix of a rotation given by its angles about the axes."""
    return rot_yaw_pitch_roll(ang_z, ang_x, ang_y)


@_func
def eye(n: _template()):
    """The n x n identity matrix."""
    return _Matrix.identity(float, n)


# ---- complex numbers: vectors of two, real and imaginary part ------------------------------------


@_func
def cmul(z, w):
    """The product of two complex numbers."""
    return _Vector([z[0] * w[0] - z[1] * w[1], z[0] * w[1] + z[1] * w[0]])


@_func
def cconj(z):
    """The complex conjugate."""
    return _Vector([z[0], -z[1]])


@_func
def cinv(z):
    """One over a complex number."""
    return cconj(z) / z.dot(z)


@_func
def cdiv(z, w):
    """The quotient of two complex numbers."""
    return cmul(z, cinv(w))


@_func
def csqrt(z):
    """The square root with a real part that is not negative."""
    r = sqrt(z.norm())
    a = atan2(z[1], z[0]) * 0.5
    return r * vdir(a)


@_func
def cpow(z, n):
    """A complex number to the power of a real one."""
    r2 = z.dot(z)
    r = pow(r2, n * 0.5)
    return r * vdir(atan2(z[1], z[0]) * n)


@_func
def cexp(z):
    """e to the power of a complex number."""
    return exp(z[0]) * vdir(z[1])


@_func
def clog(z):
    """The logarithm of a complex number; its imaginary part lies in (-pi, pi]."""
    return _Vector([log(z.dot(z)) * 0.5, atan2(z[1], z[0])])


__all__ = [
    "cconj", "cdiv", "cexp", "cinv", "clog", "cmul", "cpow", "csqrt", "eye",
    "cross", "determinant", "distance", "dot", "inverse", "ivec2", "ivec3", "ivec4", "length",
    "mat2", "mat3", "mat4", "normalize", "rot_by_axis", "rot_yaw_pitch_roll", "rotation2d",
    "rotation3d", "scale", "translate", "reflect", "refract", "uvec2", "uvec3", "uvec4", "vdir",
    "vec2", "vec3", "vec4",
    "acos", "asin", "atan2", "ceil", "clamp", "clz", "cos", "degrees", "e", "exp", "ffs", "floor",
    "fns", "fract", "inf", "isinf", "isnan", "log", "log2", "max", "min", "mix", "mod", "nan", "pi",
    "popcnt", "pow", "radians", "round", "sign", "sin", "smoothstep", "sqrt", "step", "tan", "tanh",
    "acosh", "asinh", "atan", "atanh", "cbrt", "cosh", "erf", "erfc", "exp2", "expm1", "hypot", "log10", "log1p",
    "sinh",
]
