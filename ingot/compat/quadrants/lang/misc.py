"""Targets, extensions, `init` and `reset`."""

import ingot
from ingot import _arch
from ingot._arch import amdgpu, arm64, cpu, cuda, gpu, metal, python, vulkan, x64, x86_64
from ingot.compat.quadrants._lib.core import Extension, is_extension_supported

extension = Extension

__all__ = [
    "amdgpu", "arm64", "cpu", "cuda", "extension", "get_host_arch_list", "gpu",
    "is_arch_supported", "is_extension_enabled", "is_extension_supported", "metal", "python",
    "vulkan", "x64", "x86_64",
]


def get_host_arch_list():
    """The target of this machine's CPU, in a list."""
    return [cpu]


def is_arch_supported(arch):
    """Whether kernels can run on `arch` here."""
    return _arch.supported(arch)


def is_extension_enabled(ext):
    """Whether the target in use has the extension."""
    return is_extension_supported(ingot.cfg.arch, ext)


@ingot.func
def loop_unique(val, covers: ingot.template() = None):
    """The value itself: what it promises of the loop, Ingot does not need."""
    return val
