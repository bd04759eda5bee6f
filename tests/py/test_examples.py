"""The examples run, and the simulation of the demo agrees with NumPy."""

import sys

import numpy as np
import pytest
from conftest import ROOT, output_of

import ingot as qd

EXAMPLES = ROOT / "examples"
CX = (0, 1, 0, -1, 0, 1, -1, -1, 1)
CY = (0, 0, 1, 0, -1, 1, 1, -1, -1)
WEIGHTS = [4 / 9] + [1 / 9] * 4 + [1 / 36] * 4
OPPOSITE = (0, 3, 4, 1, 2, 7, 8, 5, 6)


def run(*command, **options):
    return output_of(sys.executable, *command, timeout=500, **options)


@pytest.fixture(scope="module")
def flow():
    qd.init()
    sys.path.insert(0, str(EXAMPLES))
    try:
        import flow
    finally:
        sys.path.remove(str(EXAMPLES))
    return flow


def equilibrium(rho, ux, uy):
    out = np.empty((9, *np.shape(ux)))
    for q in range(9):
        cu = CX[q] * ux + CY[q] * uy
        out[q] = WEIGHTS[q] * rho * (1 + 3 * cu + 4.5 * cu**2 - 1.5 * (ux**2 + uy**2))
    return out


def numpy_step(f, solid, omega, inflow):
    """One step on an array of nine x height x width, written independently in float64."""
    come = np.stack([np.roll(f[q], (CY[q], CX[q]), (0, 1)) for q in range(9)])
    rho = come.sum(0)
    ux = sum(CX[q] * come[q] for q in range(9)) / rho
    uy = sum(CY[q] * come[q] for q in range(9)) / rho
    new = come + omega * (equilibrium(rho, ux, uy) - come)
    new[:, solid] = come[list(OPPOSITE)][:, solid]
    stream = equilibrium(1.0, np.float64(inflow), np.float64(0.0))[:, None]
    new[:, 0, :] = new[:, -1, :] = new[:, :, 0] = stream
    new[:, :, -1] = new[:, :, -2]
    return new


def test_flow_agrees_with_numpy(flow):
    sim = flow.Flow(96, 48, radius=5, reynolds=60, speed=0.1)
    f = sim.now.to_numpy().astype(np.float64).reshape(9, 48, 96)
    solid = sim.solid.to_numpy().reshape(48, 96) != 0
    assert 60 < solid.sum() < 100
    for _ in range(40):
        f = numpy_step(f, solid, sim.omega, sim.inflow)
    sim.advance(40)
    got = sim.now.to_numpy().reshape(9, 48, 96)
    assert np.abs(got - f).max() < 2e-6
    curl, speed, _ = sim.picture()
    rho = f.sum(0)
    ux = np.where(solid, 0, sum(CX[q] * f[q] for q in range(9)) / rho)
    uy = np.where(solid, 0, sum(CY[q] * f[q] for q in range(9)) / rho)
    assert np.abs(speed - np.hypot(ux, uy)).max() < 1e-5
    want = np.gradient(uy, axis=1) - np.gradient(ux, axis=0)
    assert np.abs(curl - want)[1:-1, 1:-1].max() < 1e-5


def test_saxpy_example(cache_dir):
    assert run(EXAMPLES / "saxpy.py") == "y[10] = 21.0\n"


def test_demo_writes_pictures_and_a_table(tmp_path, cache_dir):
    from PIL import Image

    text = run(EXAMPLES / "demo.py", "--quick", "--out", tmp_path / "out")
    for row in ("cold start", "warm start", "launch", "simulation", "saxpy"):
        assert f"\n  {row}" in text
    with Image.open(tmp_path / "out" / "demo.png") as png:
        assert png.size == (800, 486)
    with Image.open(tmp_path / "out" / "demo.gif") as gif:
        assert gif.size == (400, 120) and gif.n_frames > 20


def test_newton_overflow(tmp_path):
    """Every point that arrives is in the list once, however often the list had to grow."""
    picture = tmp_path / "newton.png"
    out = run(EXAMPLES / "newton_overflow.py", "--size", 60, "--out", picture)
    assert picture.stat().st_size > 1000 and "arrived" in out
    sys.path.insert(0, str(EXAMPLES))
    try:
        import newton_overflow
    finally:
        sys.path.remove(str(EXAMPLES))
    qd.init()
    ends, results, history, grown = newton_overflow.solve(60, room=100)
    assert grown >= 5 and len(np.unique(results)) == len(results) == 3600
    assert np.abs(ends[results] ** 3 - 1).max() < 1e-4
    assert history[-1] == 0 and (np.diff(history) <= 0).all()
