"""Scenes of Genesis, one function each: the table that bench/genesis_table.py runs on both engines.

    genesis_scenes.py FOLDER SCENE... [--steps N] [--perturb EPS]

runs scenes on whatever `import quadrants` is in this process (bench/genesis_table.py starts it
plainly, and through `python -m ingot.compat`), writes their states after N steps to FOLDER and
prints a line of JSON with the times of each. Needs genesis-world and torch.
"""

import argparse
import json
import os
import resource
import sys
import time
import traceback

import _peers

SCENES = {}


def scene(kind, **settings):
    """Registers a scene under its function's name; `settings` go to gs.init."""

    def register(function):
        SCENES[function.__name__] = (function, kind, settings)
        return function

    return register


class World:
    """What a scene sets up: entities, what to do before each step, what to read at the end."""

    def __init__(self, gs):
        self.gs = gs
        self.parts = {}
        self.readers = {}
        self.before = None
        self.envs = 0
        self.eps = 0.0  # how far a perturbed run is moved; for scenes that set their state themselves

    def open(self, dt=0.01, substeps=1, **options):
        gs = self.gs
        sim = gs.options.SimOptions(dt=dt, substeps=substeps)
        self.scene = gs.Scene(sim_options=sim, show_viewer=False, **options)
        return self.scene

    def add(self, name, morph, material=None, **more):
        entity = self.scene.add_entity(morph, material=material, **more)
        self.parts[name] = entity
        return entity

    def plane(self):
        return self.scene.add_entity(self.gs.morphs.Plane())

    def sense(self, name, options):
        sensor = self.scene.add_sensor(options)
        self.readers[name] = lambda: sensor.read()
        return sensor

    def build(self, envs=0):
        self.envs = envs
        self.scene.build(n_envs=envs)


def rigid(w, robot, envs=0, name="robot", dt=0.01, plane=True, control=None, **options):
    w.open(dt=dt, **options)
    if plane:
        w.plane()
    entity = w.add(name, robot)
    w.build(envs)
    if control is not None:
        w.before = lambda i: control(entity, i)
    return entity


def franka_morph(gs):
    return gs.morphs.MJCF(file="xml/franka_emika_panda/panda.xml")


def swing(entity, i, reach=0.3):
    """All joints follow a slow sine, each with a phase of its own."""
    import numpy as np

    n = entity.n_dofs
    target = reach * np.sin(0.05 * i + np.arange(n)).astype(np.float32)
    lead = (entity.scene_envs,) if entity.scene_envs else ()
    entity.control_dofs_position(np.broadcast_to(target, (*lead, n)).copy())


def follow(w, entity, reach=0.3):
    entity.scene_envs = w.envs
    w.before = lambda i: swing(entity, i, reach)


# --- robots -----------------------------------------------------------------------------------


@scene("rigid")
def franka(w):
    follow(w, rigid(w, franka_morph(w.gs)))


@scene("rigid")
def franka_512(w):
    follow(w, rigid(w, franka_morph(w.gs), envs=512))


@scene("rigid")
def franka_reach(w):
    """Inverse kinematics in each step, two environments."""
    import numpy as np

    arm = rigid(w, franka_morph(w.gs), envs=2)
    hand = arm.get_link("hand")

    def reach(i):
        at = np.array([[0.5, 0.1 * np.sin(0.05 * i), 0.4], [0.45, 0.0, 0.5 + 0.001 * i]])
        turn = np.array([[0.0, 1.0, 0.0, 0.0]] * 2)
        goal = arm.inverse_kinematics(hand, pos=at, quat=turn, init_qpos=arm.get_qpos(), max_samples=1)
        arm.control_dofs_position(goal)

    w.before = reach


@scene("rigid")
def franka_two_targets(w):
    """Inverse kinematics of several links at once."""
    import numpy as np

    arm = rigid(w, franka_morph(w.gs))
    links = [arm.get_link("left_finger"), arm.get_link("right_finger")]

    def reach(i):
        middle = np.array([0.5, 0.05, 0.4 + 0.001 * i])
        at = [middle + [0, 0.02, 0], middle - [0, 0.02, 0]]
        goal = arm.inverse_kinematics_multilink(links, poss=at, init_qpos=arm.get_qpos(), max_samples=1)
        arm.control_dofs_position(goal)

    w.before = reach


@scene("rigid")
def franka_plan(w):
    """Motion planning: the way found around a box, followed."""
    import numpy as np

    gs = w.gs
    w.open()
    w.plane()
    arm = w.add("robot", franka_morph(gs))
    w.scene.add_entity(gs.morphs.Box(size=(0.1, 0.1, 0.5), pos=(0.5, 0.3, 0.25), fixed=True))
    w.build()
    goal = np.array([1.2, 0.4, 0.1, -1.6, 0.0, 2.0, 0.8, 0.02, 0.02])
    path = arm.plan_path(goal, num_waypoints=100, ignore_collision=True)
    w.readers["path"] = lambda: path
    w.before = lambda i: arm.control_dofs_position(path[min(i, len(path) - 1)])


def dog(gs, **options):
    return gs.morphs.URDF(file="urdf/go2/urdf/go2.urdf", pos=(0, 0, 0.42), **options)


@scene("rigid")
def go2(w):
    follow(w, rigid(w, dog(w.gs)), 0.1)


@scene("rigid")
def go2_16(w):
    follow(w, rigid(w, dog(w.gs), envs=16), 0.1)


def shipped(name, make):
    """A robot that the package ships, on a plane, its joints moved."""

    def run(w):
        follow(w, rigid(w, make(w.gs.morphs)), 0.1)

    run.__name__ = name
    scene("rigid")(run)


shipped("anymal_c", lambda m: m.URDF(file="urdf/anymal_c/urdf/anymal_c.urdf", pos=(0, 0, 0.8)))
shipped("shadow_hand", lambda m: m.URDF(file="urdf/shadow_hand/shadow_hand.urdf", fixed=True, pos=(0, 0, 0.5)))
shipped("kuka", lambda m: m.URDF(file="urdf/kuka_iiwa/model.urdf", fixed=True))
shipped("panda_bullet", lambda m: m.URDF(file="urdf/panda_bullet/panda.urdf", fixed=True))
shipped("cabinet", lambda m: m.URDF(file="urdf/3763/mobility_vhacd.urdf", fixed=True, pos=(0, 0, 0.5)))
shipped("two_link_arm", lambda m: m.URDF(file="urdf/simple/two_link_arm.urdf", fixed=True))
shipped("ur5e", lambda m: m.MJCF(file="xml/universal_robots_ur5e/ur5e.xml"))
shipped("ant", lambda m: m.MJCF(file="xml/ant.xml"))
shipped("humanoid", lambda m: m.MJCF(file="xml/humanoid.xml"))
shipped("walker", lambda m: m.MJCF(file="xml/walker.xml"))
shipped("four_bar_linkage", lambda m: m.MJCF(file="xml/four_bar_linkage.xml"))
shipped("four_bar_linkage_weld", lambda m: m.MJCF(file="xml/four_bar_linkage_weld.xml"))
shipped("three_joint_link", lambda m: m.MJCF(file="xml/three_joint_link.xml"))
shipped("rope", lambda m: m.MJCF(file="xml/rope_hinge.xml"))
shipped("rope_ball", lambda m: m.MJCF(file="xml/rope_ball.xml"))
shipped("ball_joint", lambda m: m.MJCF(file="xml/one_ball_joint.xml"))


@scene("rigid")
def drone(w):
    quad = rigid(w, w.gs.morphs.Drone(file="urdf/drones/cf2x.urdf", pos=(0, 0, 0.5)))
    w.before = lambda i: quad.set_propellers_rpm([14600 + 20 * i, 14600, 14600, 14500])


# --- contacts ---------------------------------------------------------------------------------


def stack(w, envs=0, **options):
    gs = w.gs
    w.open(rigid_options=gs.options.RigidOptions(**options))
    w.plane()
    for k in range(3):
        box = gs.morphs.Box(size=(0.1, 0.1, 0.1), pos=(0.01 * k, 0.02 * k, 0.06 + 0.11 * k))
        w.add(f"box{k}", box)
    w.build(envs)


@scene("contact")
def boxes(w):
    stack(w)


@scene("contact")
def boxes_gjk(w):
    stack(w, use_gjk_collision=True)


@scene("contact")
def boxes_mpr(w):
    stack(w, use_gjk_collision=False)


@scene("contact")
def boxes_box_box(w):
    stack(w, box_box_detection=True, use_gjk_collision=False)


@scene("contact")
def boxes_cg(w):
    stack(w, constraint_solver=w.gs.constraint_solver.CG)


@scene("contact")
def boxes_euler(w):
    stack(w, integrator=w.gs.integrator.Euler)


@scene("contact")
def boxes_noslip(w):
    stack(w, noslip_iterations=5)


@scene("contact")
def boxes_hibernation(w):
    """Boxes come to rest and are put to sleep."""
    stack(w, envs=2, use_hibernation=True)


@scene("contact")
def boxes_elliptic(w):
    stack(w, friction_cone=w.gs.friction_cone.elliptic, enable_torsional_friction=True)


@scene("contact")
def shapes(w):
    """Sphere, cylinder, capsule and a mesh fall on a plane."""
    gs = w.gs
    w.open()
    w.plane()
    w.add("sphere", gs.morphs.Sphere(radius=0.1, pos=(0, 0, 0.3)))
    w.add("cylinder", gs.morphs.Cylinder(radius=0.1, height=0.2, pos=(0.5, 0, 0.3), euler=(30, 0, 0)))
    w.add("duck", gs.morphs.Mesh(file="meshes/duck.obj", scale=0.1, pos=(1.0, 0, 0.3)))
    w.build()


@scene("contact")
def bolt(w):
    """A nut on a bolt: meshes that are not convex."""
    gs = w.gs
    w.open(dt=0.005)
    w.add("bolt", gs.morphs.Mesh(file="meshes/bolt_nut/bolt.stl", fixed=True, convexify=False))
    w.add("nut", gs.morphs.Mesh(file="meshes/bolt_nut/nut.stl", pos=(0, 0, 0.03), convexify=False))
    w.build()


@scene("contact")
def terrain(w):
    """Spheres on hills."""
    import numpy as np

    gs = w.gs
    w.open()
    x, y = np.meshgrid(np.arange(24), np.arange(24))
    hills = 40 * np.sin(0.7 * x) * np.cos(0.6 * y)
    w.scene.add_entity(gs.morphs.Terrain(height_field=hills, horizontal_scale=0.25, vertical_scale=0.005))
    for k in range(3):
        w.add(f"ball{k}", gs.morphs.Sphere(radius=0.1, pos=(1.0 + k, 1.5 + 0.3 * k, 0.6)))
    w.build()


@scene("contact")
def terrain_dog(w):
    gs = w.gs
    w.open()
    w.scene.add_entity(
        gs.morphs.Terrain(
            n_subterrains=(2, 2),
            subterrain_size=(3.0, 3.0),
            subterrain_types=[["flat_terrain", "wave_terrain"], ["pyramid_stairs_terrain", "sloped_terrain"]],
        )
    )
    robot = w.add("robot", gs.morphs.URDF(file="urdf/go2/urdf/go2.urdf", pos=(1.5, 1.5, 0.6)))
    w.build(2)
    follow(w, robot, 0.05)


@scene("rigid")
def sensors(w):
    """A dog that feels: IMU, contacts, joint torques, rays."""
    gs = w.gs
    w.open()
    w.plane()
    w.scene.add_entity(gs.morphs.Box(size=(0.2, 1.0, 1.0), pos=(1.5, 0, 0.5), fixed=True))
    robot = w.add("robot", dog(gs))
    at = {"entity_idx": robot.idx}
    foot = robot.get_link("FL_calf").idx_local
    w.sense("imu", gs.sensors.IMU(**at))
    w.sense("contact", gs.sensors.Contact(link_idx_local=foot, **at))
    w.sense("force", gs.sensors.ContactForce(link_idx_local=foot, **at))
    w.sense("torque", gs.sensors.JointTorque(**at))
    rays = gs.sensors.SphericalPattern(n_points=(32, 8))
    w.sense("rays", gs.sensors.Raycaster(pattern=rays, pos_offset=(0, 0, 0.2), **at))
    grid = gs.sensors.GridPattern(resolution=0.2, size=(1.0, 1.0))
    w.sense("grid", gs.sensors.Raycaster(pattern=grid, return_world_frame=True, **at))
    depth = gs.sensors.DepthCameraPattern(res=(32, 24))
    w.sense("depth", gs.sensors.DepthCamera(pattern=depth, pos_offset=(0.3, 0, 0.1), **at))
    w.sense("probe", gs.sensors.SurfaceDistanceProbe(probe_local_pos=((0.2, 0, 0),), track_link_idx=(0,), **at))
    w.build(2)
    follow(w, robot, 0.1)


# --- particles, cloth, solids -----------------------------------------------------------------


def soft(w, material, morph=None, dt=2e-3, substeps=5, envs=0, floor=False, name="body", **options):
    gs = w.gs
    w.open(dt=dt, substeps=substeps, **options)
    if floor:
        w.plane()
    w.add(name, morph or gs.morphs.Box(size=(0.2, 0.2, 0.2), pos=(0, 0, 0.3)), material)
    w.build(envs)


def mpm_options(gs):
    return gs.options.MPMOptions(lower_bound=(-0.5, -0.5, -0.1), upper_bound=(0.5, 0.5, 0.9), grid_density=32)


def mpm(name, make, envs=0, **settings):
    def run(w):
        w.gs.utils.set_random_seed(1)
        soft(w, make(w.gs.materials.MPM), mpm_options=mpm_options(w.gs), envs=envs)

    run.__name__ = name
    scene("mpm", **settings)(run)


mpm("mpm_elastic", lambda m: m.Elastic())
mpm("mpm_elastic_2", lambda m: m.Elastic(), envs=2)
mpm("mpm_neohooken", lambda m: m.Elastic(model="neohooken"))
mpm("mpm_liquid", lambda m: m.Liquid())
mpm("mpm_viscous", lambda m: m.Liquid(viscous=True))
mpm("mpm_snow", lambda m: m.Snow())
mpm("mpm_sand", lambda m: m.Sand())
mpm("mpm_snow_f64", lambda m: m.Snow(), precision="64")
mpm("mpm_sand_f64", lambda m: m.Sand(), precision="64")
mpm("mpm_elasto_plastic", lambda m: m.ElastoPlastic())


@scene("mpm")
def mpm_muscle(w):
    import numpy as np

    gs = w.gs
    gs.utils.set_random_seed(1)
    soft(w, gs.materials.MPM.Muscle(n_groups=1), mpm_options=mpm_options(gs))
    body = w.parts["body"]
    w.before = lambda i: body.set_actuation(np.array([0.1 * np.sin(0.1 * i) ** 2]))


@scene("sph")
def sph(w):
    gs = w.gs
    bounds = gs.options.SPHOptions(lower_bound=(-0.3, -0.3, 0), upper_bound=(0.3, 0.3, 1), particle_size=0.02)
    soft(w, gs.materials.SPH.Liquid(sampler="regular"), sph_options=bounds)


@scene("sph")
def sph_dfsph(w):
    gs = w.gs
    bounds = gs.options.SPHOptions(
        lower_bound=(-0.3, -0.3, 0), upper_bound=(0.3, 0.3, 1), particle_size=0.02, pressure_solver="DFSPH"
    )
    soft(w, gs.materials.SPH.Liquid(sampler="regular"), sph_options=bounds)


@scene("pbd")
def pbd_cloth(w):
    gs = w.gs
    sheet = gs.morphs.Mesh(file="meshes/cloth.obj", scale=0.5, pos=(0, 0, 0.5))
    soft(w, gs.materials.PBD.Cloth(), sheet, dt=4e-3, substeps=10)
    w.parts["body"].fix_particles(particles_idx_local=[0])


@scene("pbd")
def pbd_elastic(w):
    soft(w, w.gs.materials.PBD.Elastic(), dt=4e-3)


@scene("pbd")
def pbd_liquid(w):
    gs = w.gs
    box = gs.options.PBDOptions(lower_bound=(-0.3, -0.3, 0), upper_bound=(0.3, 0.3, 1), particle_size=0.02)
    soft(w, gs.materials.PBD.Liquid(sampler="regular"), dt=4e-3, pbd_options=box)


@scene("pbd")
def pbd_particle(w):
    gs = w.gs
    soft(w, gs.materials.PBD.Particle(sampler="regular"), dt=4e-3, pbd_options=gs.options.PBDOptions(particle_size=0.02))


def ball(gs, height=0.3):
    return gs.morphs.Sphere(radius=0.1, pos=(0, 0, height))


SOFT = 1e4  # what the explicit solver is stable with in steps of 0.2 ms; with 1e5 these scenes end in NaN


@scene("fem")
def fem_explicit(w):
    soft(w, w.gs.materials.FEM.Elastic(E=SOFT, model="linear"), ball(w.gs, 0.11), dt=1e-3)


@scene("fem")
def fem_neohookean(w):
    soft(w, w.gs.materials.FEM.Elastic(E=SOFT, model="stable_neohookean"), ball(w.gs, 0.11), dt=1e-3)


@scene("fem")
def fem_implicit(w):
    gs = w.gs
    implicit = gs.options.FEMOptions(use_implicit_solver=True)
    material = gs.materials.FEM.Elastic(E=1e5, model="linear_corotated")
    soft(w, material, ball(gs), dt=5e-3, substeps=1, fem_options=implicit)


@scene("fem")
def fem_muscle(w):
    import numpy as np

    soft(w, w.gs.materials.FEM.Muscle(E=SOFT, n_groups=1), ball(w.gs, 0.11), dt=1e-3)
    body = w.parts["body"]
    w.before = lambda i: body.set_actuation(np.array([0.05 * np.sin(0.1 * i) ** 2]))


@scene("sap", precision="64")
def sap_ball(w):
    gs = w.gs
    w.open(
        dt=1 / 60,
        substeps=2,
        fem_options=gs.options.FEMOptions(use_implicit_solver=True, pcg_threshold=1e-10),
        coupler_options=gs.options.SAPCouplerOptions(pcg_threshold=1e-10, sap_convergence_atol=1e-10, sap_convergence_rtol=1e-10, linesearch_ftol=1e-10),
    )
    material = gs.materials.FEM.Elastic(E=1e5, nu=0.4, model="linear_corotated", friction_mu=0.4)
    w.add("ball", ball(gs), material)
    w.build()


@scene("sap", precision="64")
def sap_rigid(w):
    gs = w.gs
    w.open(
        dt=1 / 60,
        substeps=2,
        rigid_options=gs.options.RigidOptions(enable_self_collision=False),
        fem_options=gs.options.FEMOptions(use_implicit_solver=True),
        coupler_options=gs.options.SAPCouplerOptions(),
    )
    material = gs.materials.FEM.Elastic(E=1e5, nu=0.4, model="linear_corotated")
    w.add("ball", gs.morphs.Sphere(radius=0.1, pos=(0, 0, 0.1)), material)
    w.add("box", gs.morphs.Box(size=(0.1, 0.1, 0.1), pos=(0, 0, 0.3)), gs.materials.Rigid(coup_friction=0.4))
    w.build()


@scene("tool")
def tool(w):
    """A ball of diameter 1 that is moved by hand pushes into a liquid. Genesis 1.4.5 takes the transpose for the inverse
    of a tool's scale: with another scale than 1 its distances are constant, and its normals are rounding errors."""
    import numpy as np

    gs = w.gs
    w.open(dt=2e-3, substeps=5, mpm_options=mpm_options(gs))
    w.add("water", gs.morphs.Box(size=(0.4, 0.4, 0.2), pos=(0, 0, 0.12)), gs.materials.MPM.Liquid())
    ball = gs.morphs.Mesh(file="meshes/sphere.obj", pos=(-0.72, 0, 0.3))
    hand = w.add("ball", ball, gs.materials.Tool(friction=8.0))
    w.build()
    w.before = lambda i: hand.set_velocity(vel=np.array([[1.5, 0.0, -0.1]]))


# --- several solvers --------------------------------------------------------------------------


def onto(w, body, morph=None, substeps=5, dt=2e-3, **options):
    """A rigid box falls onto something soft."""
    gs = w.gs
    w.open(dt=dt, substeps=substeps, **options)
    w.plane()
    w.add("body", morph or gs.morphs.Box(size=(0.4, 0.4, 0.2), pos=(0, 0, 0.12)), body)
    w.add("box", gs.morphs.Box(size=(0.1, 0.1, 0.1), pos=(0, 0, 0.3)), gs.materials.Rigid(rho=500.0))
    w.build()


@scene("coupling")
def rigid_mpm(w):
    onto(w, w.gs.materials.MPM.Elastic(), mpm_options=mpm_options(w.gs))


@scene("coupling")
def rigid_sph(w):
    gs = w.gs
    bounds = gs.options.SPHOptions(lower_bound=(-0.3, -0.3, 0), upper_bound=(0.3, 0.3, 1), particle_size=0.02)
    onto(w, gs.materials.SPH.Liquid(sampler="regular"), sph_options=bounds)


@scene("coupling")
def rigid_pbd(w):
    gs = w.gs
    sheet = gs.morphs.Mesh(file="meshes/cloth.obj", scale=0.5, pos=(0, 0, 0.2))
    onto(w, gs.materials.PBD.Cloth(), sheet)
    w.parts["body"].fix_particles(particles_idx_local=[0, 1, 2])


@scene("coupling")
def rigid_fem(w):
    onto(w, w.gs.materials.FEM.Elastic(E=SOFT), ball(w.gs, 0.12), dt=1e-3)


@scene("coupling")
def mpm_sph(w):
    gs = w.gs
    bounds = gs.options.SPHOptions(lower_bound=(-0.4, -0.4, 0), upper_bound=(0.4, 0.4, 0.8), particle_size=0.02)
    w.open(dt=2e-3, substeps=5, mpm_options=mpm_options(gs), sph_options=bounds)
    w.add("water", gs.morphs.Box(size=(0.3, 0.3, 0.1), pos=(0, 0, 0.1)), gs.materials.SPH.Liquid(sampler="regular"))
    w.add("jelly", gs.morphs.Box(size=(0.1, 0.1, 0.1), pos=(0, 0, 0.25)), gs.materials.MPM.Elastic())
    w.build()


@scene("coupling")
def mpm_pbd(w):
    gs = w.gs
    w.open(dt=2e-3, substeps=5, mpm_options=mpm_options(gs))
    w.add("sheet", gs.morphs.Mesh(file="meshes/cloth.obj", scale=0.4, pos=(0, 0, 0.2)), gs.materials.PBD.Cloth())
    w.add("jelly", gs.morphs.Box(size=(0.1, 0.1, 0.1), pos=(0, 0, 0.3)), gs.materials.MPM.Elastic())
    w.build()


@scene("coupling")
def fem_mpm(w):
    """A heavy ball on foam: where a node of the grid is heavier than a vertex, Genesis' exchange of momentum grows until both
    engines read beyond the grid."""
    gs = w.gs
    gs.utils.set_random_seed(1)
    w.open(dt=1e-3, substeps=5, mpm_options=mpm_options(gs))
    w.add("ball", ball(gs, 0.3), gs.materials.FEM.Elastic(E=1e6, rho=1e5))
    w.add("foam", gs.morphs.Box(size=(0.3, 0.3, 0.15), pos=(0, 0, 0.1)), gs.materials.MPM.Elastic(E=2e3, rho=2.0))
    w.build()


@scene("coupling")
def hybrid(w):
    """A skeleton of joints in a soft body of particles."""
    gs = w.gs
    box = gs.options.MPMOptions(lower_bound=(-2.5, -2.5, -0.5), upper_bound=(2.5, 2.5, 2), grid_density=24)
    w.open(dt=3e-3, substeps=10, mpm_options=box)
    w.plane()
    morph = gs.morphs.URDF(file="urdf/simple/two_link_arm.urdf", pos=(0, 0, 0.3), fixed=True)
    material = gs.materials.Hybrid(
        material_rigid=gs.materials.Rigid(gravity_compensation=1.0),
        material_soft=gs.materials.MPM.Muscle(E=1e4, nu=0.45, rho=1000.0, model="neohooken"),
        thickness=0.05,
        damping=1000.0,
    )
    robot = w.scene.add_entity(morph, material=material)
    w.build()
    import numpy as np

    w.before = lambda i: robot.control_dofs_velocity(np.array([0.5 * np.sin(0.1 * i)] * robot.n_dofs))
    w.readers["joints"] = lambda: robot.get_dofs_position()


@scene("fluid")
def emitter(w):
    gs = w.gs
    bounds = gs.options.SPHOptions(lower_bound=(-0.3, -0.3, 0), upper_bound=(0.3, 0.3, 1), particle_size=0.02)
    w.open(dt=4e-3, substeps=5, sph_options=bounds)
    w.plane()
    tap = w.scene.add_emitter(gs.materials.SPH.Liquid(sampler="regular"), max_particles=2000)
    w.build()

    def pour(i):
        if i % 4 == 0:
            tap.emit(droplet_shape="circle", droplet_size=0.1, pos=(0, 0, 0.8), direction=(0, 0, -1), speed=1.0)

    w.before = pour
    w.readers["water"] = lambda: tap.entity.get_particles_pos()


@scene("fluid")
def wind(w):
    """Force fields on particles."""
    gs = w.gs
    w.open(dt=2e-3, substeps=5, mpm_options=mpm_options(gs))
    w.add("body", gs.morphs.Box(size=(0.2, 0.2, 0.2), pos=(0, 0, 0.3)), gs.materials.MPM.Elastic())
    fields = gs.force_fields
    for field in (
        fields.Constant(direction=(1, 0, 0), strength=1.0),
        fields.Wind(direction=(0, 1, 0), strength=1.0, radius=0.5, center=(0, 0, 0)),
        fields.Point(strength=0.5, position=(0, 0, 1)),
        fields.Drag(linear=0.1),
        fields.Vortex(),
        fields.Turbulence(strength=0.2, seed=3),
    ):
        w.scene.add_force_field(field)
        field.activate()
    w.build()


# --- getters, setters, controls ---------------------------------------------------------------


@scene("accessors")
def accessors(w):
    """Everything that can be asked of and told to the rigid solver, two environments: each setter
    and control takes its turn in one of the steps, each getter is read after the last."""
    import numpy as np

    gs = w.gs
    w.open(rigid_options=gs.options.RigidOptions(batch_dofs_info=True, batch_links_info=True))
    w.plane()
    arm = w.add("arm", franka_morph(gs))
    box = w.add("box", gs.morphs.Box(size=(0.1, 0.1, 0.1), pos=(0.6, 0.2, 0.06)))
    w.build(2)
    n = arm.n_dofs
    rows = np.stack([np.arange(n), np.arange(n)[::-1]]) * (1 + w.eps)
    hand = arm.get_link("hand").idx_local

    tell = [
        lambda: arm.set_dofs_kp(1000 + 100 * rows),
        lambda: arm.set_dofs_kv(50 + 5 * rows),
        lambda: arm.set_dofs_force_range(-60 - rows, 60 + rows),
        lambda: arm.set_dofs_stiffness(0.1 * rows),
        lambda: arm.set_dofs_armature(0.1 + 0.01 * rows),
        lambda: arm.set_dofs_damping(1.0 + 0.1 * rows),
        lambda: arm.set_dofs_frictionloss(0.01 * rows),
        lambda: arm.set_dofs_limit(-2.9 - 0.01 * rows, 2.9 + 0.01 * rows),
        lambda: arm.set_dofs_position(0.1 * np.sin(rows)),
        lambda: arm.set_dofs_position(np.full((2, 2), 0.01), dofs_idx_local=[7, 8]),
        lambda: arm.set_dofs_velocity(0.1 * np.cos(rows)),
        lambda: arm.set_qpos(0.2 * np.cos(rows)),
        lambda: arm.set_qpos(0.2 * np.sin(rows[1:]), envs_idx=[1]),
        lambda: arm.control_dofs_force(0.5 * np.sin(rows)),
        lambda: arm.control_dofs_velocity(0.2 * np.sin(rows)),
        lambda: arm.control_dofs_position(0.2 * np.cos(rows)),
        lambda: arm.control_dofs_position(np.full((1, 3), 0.3), [0, 1, 2], [1]),
        lambda: arm.control_dofs_position_velocity(0.2 * np.cos(rows), 0.1 * np.sin(rows)),
        lambda: box.set_pos(np.array([[0.6, 0.2, 0.08], [0.5, 0.3, 0.09]]) + w.eps),
        lambda: box.set_quat(np.array([[1, 0, 0, 0], [0.924, 0, 0, 0.383]])),
        lambda: box.set_friction(0.7),
        lambda: box.set_friction_ratio(np.array([[0.9], [1.1]]), links_idx_local=[0]),
        lambda: box.set_links_mass(np.array([[1.1], [1.2]]), links_idx_local=[0]),
        lambda: arm.set_links_mass(np.array([[0.8], [0.9]]), links_idx_local=[hand]),
        lambda: arm.set_links_COM(np.array([[[0.01, 0, 0]], [[0, 0.01, 0]]]), links_idx_local=[hand]),
        lambda: box.set_links_COM(np.array([[[0.001, 0, 0]], [[0, 0.002, 0]]]), links_idx_local=[0]),
        lambda: box.set_mass(np.array([1.3, 1.4])),
        lambda: box.zero_all_dofs_velocity(),
        lambda: box.apply_links_external_wrench(np.full((2, 1, 3), 0.2), links_idx_local=[0]),
    ]  # fmt: skip
    w.readers["done"] = lambda: np.array(w.done)
    w.done = []

    def step(i):
        if i < len(tell):
            try:
                tell[i]()
                w.done.append(i)
            except gs.GenesisException:  # not of this entity, says Genesis
                w.done.append(-i)

    w.before = step
    for part, entity in (("arm", arm), ("box", box)):
        for name in GETTERS:
            w.readers[f"{part}.{name}"] = getattr(entity, name)
    w.readers["arm.get_jacobian"] = lambda: arm.get_jacobian(arm.get_link("hand"))
    w.readers["arm.get_links_pos_some"] = lambda: arm.get_links_pos([hand], [1])
    w.readers["arm.get_dofs_velocity_some"] = lambda: arm.get_dofs_velocity([0, 3], [1])
    w.readers["arm.get_mass_mat_decomposed"] = lambda: arm.get_mass_mat(decompose=True)
    w.readers["box.get_contacts"] = lambda: w.contact_count(box)
    w.contact_count = lambda e: e.get_contacts(is_padded=True)["position"].shape[0]


GETTERS = """
get_pos get_quat get_vel get_ang get_links_pos get_links_quat get_links_vel get_links_ang get_links_acc
get_links_acc_ang get_links_mass get_links_COM get_links_inertia get_links_invweight get_qpos
get_dofs_position get_dofs_velocity get_dofs_force get_dofs_control_force get_dofs_acc get_dofs_kp
get_dofs_kv get_dofs_act_gain get_dofs_act_bias get_dofs_force_range get_dofs_limit get_dofs_stiffness
get_dofs_invweight get_dofs_armature get_dofs_damping get_dofs_frictionloss get_mass_mat get_mass
get_kinetic_energy get_potential_energy get_total_energy get_AABB get_vAABB get_verts get_vverts
get_links_net_contact_force
""".split()


# --- the same in fields -----------------------------------------------------------------------

for _name in ("franka", "franka_512", "franka_reach", "go2", "boxes_gjk", "boxes_mpr", "terrain", "sensors", "mpm_elastic", "boxes_hibernation"):
    _function = SCENES[_name][0]
    SCENES[_name + "_fields"] = (_function, "fields", {"performance_mode": True})
"""The same scenes with performance_mode=True: state lives in fields instead of ndarrays."""

for _name in ("terrain", "rigid_mpm", "rigid_pbd"):
    _function, _kind, _ = SCENES[_name]
    SCENES[_name + "_f64"] = (_function, _kind, {"precision": "64"})
"""The same scenes in f64: the arbiter where f32 differs by more than the scene's own drift."""


# --- running one ------------------------------------------------------------------------------


def arrays(value):
    """NumPy arrays of what a getter gives, nested tuples flattened."""
    import numpy as np
    import torch

    if isinstance(value, torch.Tensor):
        return [value.detach().cpu().numpy()]
    if isinstance(value, (tuple, list)):
        return [a for item in value for a in arrays(item)]
    if isinstance(value, dict):
        return [a for key in sorted(value) for a in arrays(value[key])]
    return [np.asarray(value)]


READS = (
    "get_qpos", "get_dofs_velocity", "get_links_pos", "get_links_quat", "get_particles_pos", "get_particles_vel",
)  # fmt: skip


def states(w):
    found = {}
    for name, entity in w.parts.items():
        for read in READS:
            if hasattr(entity, read):
                found[f"{name}.{read}"] = arrays(getattr(entity, read)())[0]
        if not any(key.startswith(name + ".") for key in found):
            state = entity.get_state()
            found[f"{name}.pos"] = arrays(state.pos)[0]
            found[f"{name}.vel"] = arrays(state.vel)[0]
    for name, read in w.readers.items():
        for k, array in enumerate(arrays(read())):
            found[f"{name}.{k}"] = array
    return found


def perturb(w, eps):
    """Moves every start by `eps`: how far runs of one engine drift apart."""
    import numpy as np

    for entity in w.parts.values():
        if hasattr(entity, "get_qpos"):
            q = arrays(entity.get_qpos())[0]
            entity.set_qpos((q * (1 + eps) + eps).astype(q.dtype))
        elif hasattr(entity, "set_particles_pos"):
            x = arrays(entity.get_particles_pos())[0]
            entity.set_particles_pos((x * (1 + eps)).astype(np.float32))
        elif hasattr(entity, "set_position"):  # tools, meshes of finite elements
            x = arrays(entity.get_state().pos)[0]
            entity.set_position((x * (1 + eps) + eps).astype(x.dtype))


def run(gs, name, out, steps, eps):
    """Builds and steps one scene; gives its times and writes its states to `out`."""
    import numpy as np

    function, kind, settings = SCENES[name]
    begin = time.perf_counter()
    gs.init(backend=gs.cpu, logging_level="error", seed=1, **settings)
    ready, ready_cpu = time.perf_counter(), time.process_time()
    w = World(gs)
    w.eps = eps
    function(w)
    built, built_cpu = time.perf_counter(), time.process_time()
    if eps:
        perturb(w, eps)
    cpu, walls = [], []
    for i in range(steps):
        t, c = time.perf_counter(), time.process_time()
        if w.before:
            w.before(i)
        w.scene.step()
        cpu.append(time.process_time() - c)
        walls.append(time.perf_counter() - t)
    found = states(w)
    np.savez(out, **found)
    tenth = max(1, steps // 10)
    windows = [sum(cpu[k : k + tenth]) / tenth for k in range(tenth, steps - tenth + 1, tenth)]
    return {
        "init_s": ready - begin,
        "build_s": built - ready,
        "build_cpu_s": built_cpu - ready_cpu,
        "first_step_s": walls[0],
        "step_cpu_s": min(windows or cpu),
        "step_wall_s": sorted(walls)[len(walls) // 2],
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "finite": all(np.isfinite(a).all() for a in found.values()),
    }


def main(given):
    engine = "ingot" if "ingot" in sys.modules else "quadrants"
    _peers.leave_path()
    import genesis as gs

    for name in given.scenes:
        line = {"scene": name, "kind": SCENES[name][1], "engine": engine, "perturb": given.perturb}
        tail = f".{given.perturb:g}" if given.perturb else ""
        try:
            out = os.path.join(given.out, f"{name}.{engine}{tail}.npz")
            line |= run(gs, name, out, given.steps, given.perturb)
        except Exception as error:
            line["error"] = f"{type(error).__name__}: {error}"
            traceback.print_exc()
        print(json.dumps(line), flush=True)
        gs.destroy()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("scenes", nargs="+", choices=list(SCENES), metavar="scene")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--perturb", type=float, default=0.0)
    main(parser.parse_args())
