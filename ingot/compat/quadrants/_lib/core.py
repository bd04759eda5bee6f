"""Targets, extensions and versions, as the reference's native module has them."""

import enum
import os

from ingot import _arch, _core, _options
from ingot._arch import amdgpu, arm64, cuda, metal, python, vulkan, x64
from ingot._core import DType as DataTypeCxx

__all__ = [
    "Arch", "DataTypeCxx", "DeviceCapability", "Extension", "amdgpu", "arch_from_name",
    "arch_uses_llvm", "arm64", "cuda", "get_max_num_indices", "get_repo_dir",
    "get_version_major", "get_version_minor", "get_version_patch", "get_version_string",
    "host_arch", "is_extension_supported", "metal", "python", "vulkan", "with_amdgpu", "with_cuda",
    "with_metal", "with_vulkan", "x64",
]

Arch = _arch.Arch
arch_from_name = _arch.by_name

QuadrantsRuntimeError = _core.IngotRuntimeError
QuadrantsAssertionError = _core.IngotAssertionError
QuadrantsSyntaxError = _core.IngotSyntaxError
QuadrantsTypeError = _core.IngotTypeError
QuadrantsIndexError = _core.IngotIndexError


class Extension(enum.IntEnum):
    """Features that a target may have."""

    sparse = 0
    quant = 1
    mesh = 2
    quant_basic = 3
    data64 = 4
    adstack = 5
    bls = 6
    assertion = 7
    extfunc = 8


class DeviceCapability(enum.Enum):
    """Features of GPU devices; the CPU reports none."""

    spirv_has_int8 = 0
    spirv_has_int16 = 1
    spirv_has_int64 = 2
    spirv_has_float16 = 3
    spirv_has_float64 = 4
    spirv_has_atomic_int64 = 5
    spirv_has_atomic_float16 = 6
    spirv_has_atomic_float16_add = 7
    spirv_has_atomic_float = 8
    spirv_has_atomic_float_add = 9
    spirv_has_atomic_float64 = 10
    spirv_has_atomic_float64_add = 11
    spirv_has_shader_clock = 12


def host_arch():
    """The target of this machine's CPU."""
    return _arch.cpu


def arch_uses_llvm(arch):
    """Whether code for `arch` is made by LLVM."""
    return arch in (x64, arm64, cuda, amdgpu)


def is_extension_supported(arch, extension):
    """What the reference answers for `arch`: on the CPU it has all but mesh."""
    return arch in (x64, arm64) and extension is not Extension.mesh


def with_cuda():
    """Whether CUDA can be used."""
    return False


with_amdgpu = with_metal = with_vulkan = with_cuda


def get_version_major():
    """First number of the version of the interface."""
    return _options.REFERENCE[0]


def get_version_minor():
    """Second number of the version of the interface."""
    return _options.REFERENCE[1]


def get_version_patch():
    """Third number of the version of the interface."""
    return _options.REFERENCE[2]


def get_version_string():
    """The version of the interface."""
    return ".".join(map(str, _options.REFERENCE))


def get_max_num_indices():
    """The most axes that an array can have."""
    return 12


def get_repo_dir():
    """The folder for files that belong to the user."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(home, "quadrants")
