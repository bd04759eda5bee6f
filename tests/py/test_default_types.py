"""`float`, `int` and the vectors of qd.math are of default_fp and default_ip, also if these are set later."""

from __future__ import annotations

import gc

import ingot as qd
import numpy as np
import pytest

THIRD = {qd.f32: float(np.float32(1) / np.float32(3)), qd.f64: 1 / 3}
vec3 = qd.math.vec3


@qd.dataclass
class Particle:
    pos: vec3
    cell: qd.math.ivec2


Pair = qd.types.struct(first=Particle, n=qd.i32)


@qd.kernel
def scalar(x: float) -> float:
    return x / 3


@qd.kernel
def vector(x: vec3) -> vec3:
    return x / 3


@qd.func
def third(x: vec3) -> vec3:
    return x / 3


@qd.kernel
def through_a_func() -> qd.f64:
    return third(vec3(1.0))[0]


@qd.kernel
def member() -> qd.f64:
    p = Particle(pos=vec3(1), cell=qd.math.ivec2(1, 2))
    p.pos /= 3
    return p.pos[2]


@qd.kernel
def argument(pair: Pair) -> qd.f64:
    return pair.first.pos[1] / 3


@qd.kernel
def array(x: qd.types.ndarray(dtype=vec3, ndim=1)) -> qd.f64:
    return x[0][0] / 3


@qd.kernel
def field(f: qd.template()) -> qd.f64:
    return f[1].first.pos[0] / 3


@qd.kernel
def large(x: int) -> qd.i64:
    return qd.math.ivec2(x, 2)[0] * x


@pytest.fixture(autouse=True)
def back():
    yield
    qd.init(arch=qd.cpu)


def test_follow_the_settings():
    """One process, the same kernels and types, several settings."""
    for fp in (qd.f32, qd.f64, qd.f32, qd.f64):
        qd.init(arch=qd.cpu, default_fp=fp)
        expected = THIRD[fp]
        assert scalar(1.0) == vector(vec3(1))[0] == through_a_func() == member() == expected
        pair = Pair(first=Particle(pos=vec3(1), cell=[1, 2]), n=3)
        assert argument(pair) == expected
        x, f = qd.ndarray(vec3, 3), Pair.field(shape=2)
        assert x.dtype is fp and f.first.pos.dtype is fp and qd.field(qd.math.mat2, shape=2).dtype is fp
        x.fill(1)
        f.first.pos.fill(1)
        assert array(x) == field(f) == expected
        assert vec3(0.1, 0, 0)[0] == (0.1 if fp is qd.f64 else np.float32(0.1))
        assert vec3 == qd.types.vector(3, fp) and hash(vec3) == hash(qd.types.vector(3, fp))


def test_follow_integers():
    for ip, up in ((qd.i64, qd.u64), (qd.i32, qd.u32), (qd.i64, qd.u64)):
        qd.init(arch=qd.cpu, default_ip=ip)
        assert qd.field(qd.math.ivec2, shape=()).dtype is ip and qd.field(qd.math.uvec3, shape=2).dtype is up
        assert qd.field(vec3, shape=()).dtype is qd.f32 and Particle.field(shape=1).cell.dtype is ip
        assert large(100000) == (10**10 if ip is qd.i64 else 1410065408)


def test_types_with_a_dtype_stay():
    fixed, other = qd.types.vector(3, qd.f32), qd.types.struct(v=qd.types.vector(2, float))
    qd.init(arch=qd.cpu, default_fp=qd.f64)
    assert fixed.dtype is qd.f32 and other.field(shape=2).v.dtype is qd.f32
    assert qd.types.vector(3, float).dtype is qd.f64


def test_struct_types_that_are_gone():
    """The list of those that follow, as types leave it at its ends and in the middle."""
    made = [qd.types.struct(v=vec3, n=qd.i32) for _ in range(9)]
    for k in (0, 7, 3):
        del made[k]
        gc.collect()
        qd.init(arch=qd.cpu, default_fp=qd.f64)
        made.append(qd.types.struct(inner=made[-1], w=qd.math.vec2))
        qd.init(arch=qd.cpu, default_fp=qd.f32)
        assert all((s.field(shape=1).inner if "inner" in s.members else s.field(shape=1)).v.dtype is qd.f32
                   for s in made if "v" in s.members)
    made.clear()
    gc.collect()
    qd.init(arch=qd.cpu, default_fp=qd.f64)
    assert qd.types.struct(v=vec3).field(shape=1).v.dtype is qd.f64
