"""Gradients through scenes of Genesis, against central differences of the same scene.

    python -m ingot.compat genesis_grad.py [SCENE...] [--json FILE]      on Ingot
    python genesis_grad.py [SCENE...] [--json FILE]                      on Quadrants

The interpreter has genesis-world and torch. Each scene runs in a process of its own, unmodified, with
requires_grad=True: a loss of the last state is differentiated with respect to what was set in
the first one. A line for each: seconds of the first backward pass (it compiles), of the best of five
forward and backward passes later, and the largest difference to central differences, relative to
the largest of them. All of it is f64: in f32, contacts need steps so small that nothing is left of the loss.
"""

import argparse
import json
import subprocess
import sys
import time

import _peers

STEP = 1e-5


def rigid(gs, T):
    """A free box: where it ends, by where and how it begins."""
    scene = gs.Scene(
        sim_options=gs.options.SimOptions(dt=1e-2, substeps=1, requires_grad=True, gravity=(0, 0, -1)),
        rigid_options=gs.options.RigidOptions(
            enable_collision=False, enable_self_collision=False, enable_joint_limit=False, disable_constraint=True
        ),
        show_viewer=False,
    )
    box = scene.add_entity(gs.morphs.Box(pos=(0, 0, 0), size=(0.1, 0.1, 0.2)))
    scene.build()
    goal, along = T([0.7, 1.0, 0.05]), T([0.1, 0.7, -0.2, 0.4])

    def loss(pos, quat):
        scene.reset()
        box.set_pos(pos)
        box.set_quat(quat)
        for _ in range(20):
            scene.step()
        state = box.get_state()
        return ((state.pos - goal) ** 2).sum() + (state.quat * along).sum()

    return loss, [T([0.3, 0.1, 0.28]), T([0.8, 0.6, 0.0, 0.0])]


def particles(gs, T):
    """An elastic cube of material points: where it ends, by its velocity."""
    scene = gs.Scene(
        sim_options=gs.options.SimOptions(dt=2e-3, substeps=5, requires_grad=True),
        mpm_options=gs.options.MPMOptions(lower_bound=(-0.3, -0.3, 0), upper_bound=(0.3, 0.3, 0.6), grid_density=32),
        show_viewer=False,
    )
    body = scene.add_entity(gs.morphs.Box(size=(0.1, 0.1, 0.1), pos=(0, 0, 0.2)), gs.materials.MPM.Elastic())
    scene.build()
    goal = T([0.1, 0.05, 0.3])

    def loss(velocity):
        scene.reset()
        body.set_velocity(velocity)
        for _ in range(5):
            scene.step()
        return ((body.get_state().pos - goal) ** 2).mean() * 100

    return loss, [T([0.5, 0.2, -0.3])]


def push(gs, T):
    """A tool pushes an elastic cube: where the cube ends, by the tool's velocity."""
    scene = gs.Scene(
        sim_options=gs.options.SimOptions(dt=4e-3, substeps=10, requires_grad=True),
        mpm_options=gs.options.MPMOptions(lower_bound=(0, 0, -0.1), upper_bound=(1, 1, 1), grid_density=24),
        show_viewer=False,
    )
    stick = scene.add_entity(
        gs.morphs.Mesh(file="meshes/stirrer.obj", scale=0.6, pos=(0.5, 0.5, 0.2), euler=(90, 0, 0)),
        gs.materials.Tool(friction=8.0),
    )
    body = scene.add_entity(gs.morphs.Box(lower=(0.3, 0.3, 0.15), upper=(0.5, 0.5, 0.25)), gs.materials.MPM.Elastic(rho=500))
    scene.build()
    goal = T([0.5, 0.8, 0.05])

    def loss(position, velocity):
        scene.reset()
        stick.set_position(position)
        stick.set_velocity(vel=velocity)
        for _ in range(4):
            scene.step()
        return ((body.get_state().pos - goal) ** 2).mean()

    return loss, [T([[0.4, 0.25, 0.35]]), T([[0.0, 1.5, -1.0]])]


SCENES = {f.__name__: f for f in (rigid, particles, push)}


def central(loss, inputs):
    """Central differences of the loss, of all inputs in a row."""
    found = []
    for at, x in enumerate(inputs):
        for k in range(x.numel()):
            two = []
            for sign in (1, -1):
                moved = [y.detach().clone() for y in inputs]
                moved[at].reshape(-1)[k] += sign * STEP
                two.append(float(loss(*moved).detach()))
            found.append((two[0] - two[1]) / (2 * STEP))
    return found


def run(name):
    _peers.leave_path()
    import genesis as gs
    import torch

    gs.init(backend=gs.cpu, precision="64", logging_level="error", seed=1)
    loss, inputs = SCENES[name](gs, lambda v: torch.tensor(v, dtype=gs.tc_float))
    for x in inputs:
        x.requires_grad_()
    times = []
    for _ in range(6):
        for x in inputs:
            x.grad = None
        begin = time.perf_counter()
        value = loss(*inputs)
        middle = time.perf_counter()
        value.backward()
        times.append((middle - begin, time.perf_counter() - middle))
    exact = [float(g) for x in inputs for g in x.grad.reshape(-1)]
    differences = central(loss, inputs)
    largest = max(map(abs, differences))
    return {
        "scene": name,
        "engine": "ingot" if "ingot" in sys.modules else "quadrants",
        "first_backward_s": times[0][1],
        "forward_s": min(t[0] for t in times[1:]),
        "backward_s": min(t[1] for t in times[1:]),
        "gradient": exact,
        "central": differences,
        "difference": max(abs(a - b) for a, b in zip(exact, differences)) / largest,
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("scenes", nargs="*", metavar="scene")
    parser.add_argument("--json", help="where to keep all numbers")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(run(given.scenes[0])), flush=True)
        return
    engine = ["-m", "ingot.compat"] if "ingot" in sys.modules else []
    lines = []
    for name in given.scenes or SCENES:
        child = subprocess.run([sys.executable, *engine, __file__, name, "--one"], capture_output=True, text=True)
        last = (child.stdout.strip().splitlines() or [""])[-1]
        if not last.startswith("{"):
            print(f"{name:12} failed: {(child.stderr.strip().splitlines() or ['?'])[-1][:150]}", flush=True)
            continue
        line = json.loads(last)
        lines.append(line)
        print(
            f"{name:12} first backward {line['first_backward_s']:.1f} s, then forward {line['forward_s'] * 1e3:.1f} ms, "
            f"backward {line['backward_s'] * 1e3:.1f} ms, off by {line['difference']:.1e}",
            flush=True,
        )
    if given.json:
        with open(given.json, "w") as out:
            json.dump(lines, out, indent=1)


if __name__ == "__main__":
    main()
