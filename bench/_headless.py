"""Runs a program that draws into a window without one, and writes down what it draws.

    _headless.py taichi|quadrants PROGRAM OUT.npz --frames N | --tapes N [WORD...]

The module of that name gets a GUI and windows that show nothing: what is drawn in the first and
the last frame (images, positions of circles, ends of lines) is kept, the program ends after N
frames. With --tapes it ends after N tapes of gradients, and their losses are kept: what the program
does with a gradient decides the next loss. So two engines can be compared by their numbers. The
program gets the WORDs. Prints a line of JSON with times.
"""

import argparse
import json
import os
import pathlib
import runpy
import sys
import time
import types

import numpy as np


class Log:
    """Frames so far, what was drawn in them, and when the run ends."""

    frames = 0
    limit = 10
    current: list = []
    kept: dict = {}
    marks: list = []
    tapes = 0

    @classmethod
    def draw(cls, what, *values):
        if cls.tapes:
            return
        for value in values:
            if hasattr(value, "to_numpy"):
                value = value.to_numpy()
            try:
                value = np.array(value)
            except ValueError:
                continue
            if value.dtype.kind in "biuf":
                cls.current.append((what, value))

    @classmethod
    def end_tape(cls, loss, begin):
        cls.marks.append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
        cls.kept[f"tape{len(cls.marks)}.loss"] = np.array(loss.to_numpy()).reshape(-1)
        if len(cls.marks) >= cls.tapes:
            raise SystemExit(0)

    @classmethod
    def end_frame(cls):
        if cls.tapes:
            return
        cls.marks.append((time.perf_counter(), time.process_time()))
        cls.frames += 1
        if cls.frames == 1 or cls.frames >= cls.limit:
            for k, (what, value) in enumerate(cls.current):
                cls.kept[f"frame{cls.frames}.{k}.{what}"] = value
        cls.current = []
        if cls.frames >= cls.limit:
            raise SystemExit(0)


DRAWS = """set_image contour vector_field circles circle lines line triangles triangle rect arrows arrow
arrow_field point_field particles mesh scene""".split()
KEYS = """ESCAPE EXIT PRESS RELEASE MOTION LMB MMB RMB SPACE SHIFT CTRL ALT UP DOWN LEFT RIGHT TAB RETURN
BACKSPACE WHEEL MOVE CAPSLOCK""".split()


class Value:
    """A slider, label or button."""

    def __init__(self, value=0):
        self.value = value


class Surface:
    """A window, canvas, scene or camera: draws are written down, everything else is nothing."""

    def __init__(self, *args, **kwargs):
        self.res = next((a for a in [*args, *kwargs.values()] if isinstance(a, (tuple, int))), 512)
        if isinstance(self.res, int):
            self.res = (self.res, self.res)
        self.frame = 0
        self.event = None
        self.fps_limit = 60

    @property
    def running(self):
        return True

    @running.setter
    def running(self, value):
        if not value:
            raise SystemExit(0)

    def show(self, *_, **__):
        self.frame += 1
        Log.end_frame()

    def get_event(self, *_):
        return False

    def get_events(self, *_):
        return iter(())

    def is_pressed(self, *_):
        return False

    def get_cursor_pos(self):
        return (0.5, 0.5)

    def get_window_shape(self):
        return self.res

    def slider(self, text, low, high, step=1):
        return Value(low)

    def label(self, text):
        return Value()

    def button(self, text, event_name=None):
        return False

    def slider_float(self, text, old, low=0, high=0):
        return old

    slider_int = checkbox = color_edit_3 = slider_float

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name in DRAWS:
            return lambda *a, **k: Log.draw(name, *a, *(v for v in k.values() if hasattr(v, "shape")))
        return lambda *a, **k: self


for _key in KEYS:
    setattr(Surface, _key, _key.lower())


def watch_tapes(module):
    """Tapes that say when they end, and with which loss."""
    real = module.ad.Tape

    class Tape:
        def __init__(self, *args, **options):
            self.loss = options.get("loss", args[0] if args else None)
            self.tape = real(*args, **options)

        def __enter__(self):
            self.begin = time.perf_counter(), time.process_time()
            return self.tape.__enter__()

        def __exit__(self, kind, *rest):
            done = self.tape.__exit__(kind, *rest)
            if kind is None:
                Log.end_tape(self.loss, self.begin)
            return done

    module.ad.Tape = Tape


def close_windows():
    """OpenCV's windows and image files, where it is installed."""
    try:
        import cv2
    except ImportError:
        return
    cv2.imshow = cv2.imwrite = lambda *_, **__: True
    cv2.waitKey = lambda *_: -1


def patch(module):
    """The module without windows, on the CPU, with one seed."""
    close_windows()
    watch_tapes(module)
    module.GUI = Surface
    windows = type("ui", (), {"Window": Surface, "Camera": Surface, "Scene": Surface, **{k: k for k in KEYS}})
    windows.make_camera = staticmethod(Surface)
    try:
        module.ui = windows
    except AttributeError:
        pass
    real = module.init

    def init(*args, **options):
        options.update(arch=module.cpu, random_seed=1)
        options.pop("device_memory_GB", None)
        options.pop("device_memory_fraction", None)
        return real(**options)

    module.init = init
    module.tools.imshow = lambda image, *_, **__: Log.draw("imshow", image)
    module.tools.imwrite = lambda image, *_, **__: Log.draw("imwrite", image)
    module.tools.imresize = resized
    core = getattr(getattr(module, "_lib", None), "core", None)
    if core is not None and not hasattr(core, "GGUI_AVAILABLE"):
        core.GGUI_AVAILABLE = True


def resized(image, wide, high=None):
    """Each pixel as often as it takes."""
    image = np.asarray(image.to_numpy() if hasattr(image, "to_numpy") else image)
    size = (wide, high or wide * image.shape[1] // image.shape[0])
    at = [np.arange(n) * have // n for n, have in zip(size, image.shape)]
    return image[at[0]][:, at[1]]


def examples_package(program):
    """`taichi.examples`, which some programs import from: the folder that they are in."""
    for folder in pathlib.Path(program).parents:
        if folder.name == "examples":
            package = types.ModuleType(f"{folder.parent.name}.examples")
            package.__path__ = [str(folder)]
            sys.modules[package.__name__] = package


def main(given):
    module = __import__(given.module)
    patch(module)
    Log.limit, Log.tapes = given.frames, given.tapes
    program = os.path.abspath(given.program)
    sys.argv = [program, *given.words]
    sys.path[0] = os.path.dirname(program)
    np.random.seed(1)
    import random

    random.seed(1)
    examples_package(program)
    begin = time.perf_counter()
    line = {"program": given.program}
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit:
        pass
    if Log.current and not Log.frames:
        try:
            Log.limit = 1
            Log.end_frame()
        except SystemExit:
            pass
    np.savez(given.out, **Log.kept)
    line["frames"] = Log.frames
    line["all_s"] = time.perf_counter() - begin
    if Log.tapes and Log.marks:
        line["frame_s"], line["frame_cpu_s"] = map(min, zip(*Log.marks))
    elif len(Log.marks) > 2:
        line["frame_s"] = (Log.marks[-1][0] - Log.marks[1][0]) / (len(Log.marks) - 2)
        steps = [b[1] - a[1] for a, b in zip(Log.marks[1:], Log.marks[2:])]
        line["frame_cpu_s"] = min(steps)
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("module", choices=["taichi", "quadrants"])
    parser.add_argument("program")
    parser.add_argument("out")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--frames", type=int, default=10)
    parser.add_argument("--tapes", type=int, default=0)
    main(parser.parse_args())
