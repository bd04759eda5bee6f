"""The targets that `qd.init(arch=...)` knows by name, and which of them run here."""

import os


class Arch:
    """A target. The members are the constants of this module; compare them with `is`."""

    __slots__ = {"name": "As in qd.init(arch=name)."}

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"Arch.{self.name}"

    @property
    def __name__(self):
        return repr(self)

    def __reduce__(self):
        return by_name, (self.name,)


x64 = Arch("x64")
arm64 = Arch("arm64")
interp = Arch("interp")
mock = Arch("mock")  # for tests: this machine's code, memory that only kernels may touch
cuda = Arch("cuda")
amdgpu = Arch("amdgpu")
metal = Arch("metal")
vulkan = Arch("vulkan")
python = Arch("python")

x86_64 = x64
cpu = arm64 if os.uname().machine in ("aarch64", "arm64") else x64
gpu = [cuda, metal, vulkan, amdgpu]

_ALL = (x64, arm64, interp, cuda, amdgpu, metal, vulkan, python, mock)
_TARGETS = {interp: 1, mock: 2}  # numbers of the engine's setting `target`; others are 0


def by_name(name):
    """The target called `name`; `cpu` is the one of this machine."""
    name = name.strip().lower()
    for arch in _ALL:
        if arch.name == name:
            return arch
    if name in ("cpu", "x86_64"):
        return cpu if name == "cpu" else x64
    names = ", ".join(a.name for a in _ALL if a is not mock)
    raise ValueError(f"arch '{name}' is not known: use one of cpu, {names}")


def target(arch):
    """The number of the target that kernels for `arch` run on."""
    return _TARGETS.get(arch, 0)


def supported(arch):
    """Whether kernels can run on `arch` in this process."""
    return arch in (cpu, interp, python, mock)
