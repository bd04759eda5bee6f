"""The targets that `qd.init(arch=...)` knows by name, and which of them run here."""

import os


class Arch:
    """A target. The members are the constants of this module; compare them with `is`."""

    __slots__ = ("name",)

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
cuda = Arch("cuda")
amdgpu = Arch("amdgpu")
metal = Arch("metal")
vulkan = Arch("vulkan")
python = Arch("python")

x86_64 = x64
cpu = arm64 if os.uname().machine in ("aarch64", "arm64") else x64
gpu = [cuda, metal, vulkan, amdgpu]

_ALL = (x64, arm64, interp, cuda, amdgpu, metal, vulkan, python)


def by_name(name):
    """The target called `name`; `cpu` is the one of this machine."""
    name = name.strip().lower()
    for arch in _ALL:
        if arch.name == name:
            return arch
    if name in ("cpu", "x86_64"):
        return cpu if name == "cpu" else x64
    raise ValueError(f"arch '{name}' is not known: use one of " + ", ".join(a.name for a in _ALL))


def supported(arch):
    """Whether kernels can run on `arch` in this process."""
    return arch is cpu or arch is interp or arch is python
