"""The simulations among the examples run, write their pictures, and keep what physics keeps."""

import importlib
import os
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT

import ingot as qd

EXAMPLES = ROOT / "examples"


@pytest.fixture(autouse=True)
def fresh():
    qd.init()


def example(name):
    sys.path.insert(0, str(EXAMPLES))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(EXAMPLES))


def run(name, path, *args):
    done = subprocess.run([sys.executable, str(EXAMPLES / f"{name}.py"), *map(str, args), "--out", str(path)],
                          env=dict(os.environ), capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 500


def test_mpm88(tmp_path):
    run("mpm88", tmp_path / "mpm.png", "--particles", 500)
    mpm = example("mpm88")
    fluid = mpm.Fluid(2000)
    start = fluid.x.to_numpy().mean(axis=0)
    fluid.advance(200)
    time = 200 * mpm.DT
    centre, speed = fluid.x.to_numpy().mean(axis=0), fluid.v.to_numpy().mean(axis=0)
    assert np.allclose(centre, start - (0, 4.9 * time**2), atol=2e-3)  # free fall
    assert np.allclose(speed, (0, -9.8 * time), atol=2e-3)
    assert np.isclose(fluid.grid_m.to_numpy().sum(), 2000 * mpm.MASS, rtol=1e-4)
    fluid.advance(1500)  # and the impact
    x, j = fluid.x.to_numpy(), fluid.j.to_numpy()
    assert np.isfinite(x).all() and x.min() > 0 and x.max() < 1 and (j > 0).all()
    assert np.isclose(fluid.grid_m.to_numpy().sum(), 2000 * mpm.MASS, rtol=1e-4)


def test_cloth(tmp_path):
    run("cloth", tmp_path / "cloth.png", "--size", 24)
    cloth = example("cloth")
    free = cloth.Cloth(32)
    push = np.random.default_rng(3).normal(0, 0.2, (32, 32, 3)).astype(np.float32)
    free.v.from_numpy(push)
    energy = (push**2).sum()
    free.advance(300, gravity=0.0, drag=0.0, ball=0.0)
    after = free.v.to_numpy()
    assert np.allclose(after.sum(axis=(0, 1)), push.sum(axis=(0, 1)), atol=2e-2)  # springs pull both ends
    assert (after**2).sum() < energy  # and lose energy
    fallen = cloth.Cloth(32)
    fallen.advance(2500)
    distance = np.linalg.norm(fallen.x.to_numpy(), axis=-1)
    assert distance.min() > 0.97 * cloth.BALL and fallen.x.to_numpy()[..., 1].min() < 0.2


def test_nbody(tmp_path):
    run("nbody", tmp_path / "nbody.png", "--stars", 200)
    nbody = example("nbody")
    stars = nbody.Stars(600)
    before, momentum = stars.energy(), stars.v.to_numpy().sum(axis=0)
    stars.advance(150)
    assert abs(stars.energy() - before) < 1e-3 * abs(before)
    assert np.allclose(stars.v.to_numpy().sum(axis=0), momentum, atol=2e-2)


def test_sph(tmp_path):
    run("sph", tmp_path / "sph.png", "--particles", 60)
    sph = example("sph")
    water = sph.Water(800)
    water.x.from_numpy(water.x.to_numpy() * 0.9 + (0.6, 0.05))  # squeezed, away from the walls
    push = np.random.default_rng(5).normal(0, 0.1, water.v.to_numpy().shape).astype(np.float32)
    water.v.from_numpy(push)
    water.density()
    n = len(push)
    assert water.rho.to_numpy().mean() > sph.REST  # it is squeezed
    assert sorted(water.order.to_numpy()) == list(range(n)) and water.start.to_numpy()[-1] == n
    x, reach = water.x.to_numpy().astype(np.float64), water.reach
    r2 = ((x[:, None] - x[None]) ** 2).sum(axis=2)
    want = water.mass * (4 / (np.pi * reach**8) * np.maximum(reach**2 - r2, 0) ** 3).sum(axis=1)
    assert np.allclose(water.rho.to_numpy(), want, rtol=1e-4)  # no neighbour is missed
    water.advance(15, gravity=0.0)
    assert np.allclose(water.v.to_numpy().mean(axis=0), push.mean(axis=0), atol=1e-4)
    spread = water.x.to_numpy().std(axis=0)
    assert (spread > x.std(axis=0)).all()  # pressure pushes it apart


def test_path_tracer(tmp_path):
    run("path_tracer", tmp_path / "light.png", "--size", 24, "--samples", 4)
    tracer = example("path_tracer")
    # Inside a sphere that glows everywhere, a matt ball shows exactly its own colour.
    furnace = [((0, 0, 0), 10.0, (1.0, 1.0, 1.0), tracer.GLOW), ((0, 0, 0), 0.6, (0.5, 0.25, 1.0), tracer.MATT)]
    light = tracer.render(furnace, 33, 16)
    assert np.allclose(light[16, 16], (0.5, 0.25, 1.0), atol=1e-5)
    assert np.allclose(light[0, 0], 1.0, atol=1e-5)
    again = tracer.render(tracer.SCENE, 20, 8)
    assert np.isfinite(again).all() and (again >= 0).all() and again.max() <= 9.01


def test_life(tmp_path):
    run("life", tmp_path / "life.png", "--size", 64, "--steps", 10)
    life = example("life")
    board = (np.random.default_rng(2).random((40, 40)) < 0.35).astype(np.int8)
    game = life.Life(40)
    for generations in range(1, 4):
        expected = board
        for _ in range(generations):
            expected = life.reference(expected)
        assert (game.run(board, generations) == expected).all()
        assert game.living[None] == expected.sum()


def test_stable_fluids(tmp_path):
    run("stable_fluids", tmp_path / "smoke.png", "--size", 128, "--steps", 60)
    fluids = example("stable_fluids")
    fluid = fluids.Fluid(48)
    for _ in range(20):
        fluid.step()
    smoke, speed = fluid.smoke.to_numpy(), fluid.speed.to_numpy()
    assert np.isfinite(speed).all() and smoke.min() >= 0 and smoke.max() <= 1
    assert (speed[..., 0] * smoke).sum() > 0  # it rises
    assert fluid.disorder() < 0.1 * np.abs(speed).mean()


def test_cloth_in_fields(tmp_path):
    run("cloth_fields", tmp_path / "cloth.png", "--size", 16, "--steps", 20)
    arrays, fields = example("cloth").Cloth(24), example("cloth_fields").Cloth(24)
    for _ in range(100):
        arrays.advance(1)
        fields.step()
    assert np.allclose(arrays.x.to_numpy(), fields.mass.x.to_numpy(), atol=1e-4)


def test_fit_springs(tmp_path):
    """The gradient of one spring is a difference of losses; a few rounds bring the loss down."""
    run("fit_springs", tmp_path / "springs.png", "--rounds", 5)
    springs = example("fit_springs")
    chain = springs.Chain()
    chain.k.fill(200)
    chain.run()
    chain.seen.from_numpy(chain.x.to_numpy())
    k = np.linspace(180, 220, springs.MASSES).astype(np.float32)
    chain.k.from_numpy(k)
    _, gradient = chain.loss_and_gradient()
    sides = []
    for sign in (1, -1):
        chain.k.from_numpy(k + sign * 2 * (np.arange(springs.MASSES) == 3).astype(np.float32))
        sides.append(chain.loss_and_gradient()[0])
    assert np.isclose(gradient[3], (sides[0] - sides[1]) / 4, rtol=0.02)
    losses, found, true = springs.fit(40)
    assert losses[-1] < losses[0] / 20 and np.abs(found / true - 1).max() < 0.25


def test_fit_throw(tmp_path):
    run("fit_throw", tmp_path / "throw.png", "--rounds", 3, "--particles", 60)
    throw = example("fit_throw")
    body = throw.Body(100)
    at = np.array([1.2, 1.3])
    _, gradient = body.loss_and_gradient(at)
    for axis in range(2):
        step = 0.02 * (np.arange(2) == axis)
        sides = [body.loss_and_gradient(at + sign * step)[0] for sign in (1, -1)]
        assert np.isclose(gradient[axis], (sides[0] - sides[1]) / 0.04, rtol=0.02)
    losses, _, _ = throw.fit(100, 16)
    assert losses[-1] < 1e-3 * losses[0]
