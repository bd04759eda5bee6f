"""Questions about the environment and about dtypes."""

import os


def has_pytorch():
    """Whether torch is installed and not switched off by QD_ENABLE_TORCH=0."""
    if os.environ.get("QD_ENABLE_TORCH", "1") == "0":
        return False
    import importlib.util

    return importlib.util.find_spec("torch") is not None


_NUMPY = {
    "f16": "float16", "f32": "float32", "f64": "float64",
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u1": "bool_", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
}


def to_numpy_type(dtype):
    """The NumPy scalar class of a dtype."""
    import numpy as np

    return getattr(np, _NUMPY[str(dtype)])


def to_pytorch_type(dtype):
    """The torch dtype of a dtype."""
    import torch

    return getattr(torch, _NUMPY[str(dtype)].rstrip("_"))


def to_quadrants_type(dtype):
    """The dtype of a NumPy or torch one; a dtype stays what it is."""
    from ingot import types

    name = str(getattr(dtype, "__name__", dtype)).removeprefix("torch.")
    for short, long in _NUMPY.items():
        if name in (short, long, long.rstrip("_")):
            return getattr(types, short)
    raise TypeError(f"{dtype!r} has no counterpart among the dtypes")


def in_python_scope():
    """Whether Python runs the caller: always, kernels are never run by Python."""
    return True


def is_data_oriented(obj):
    """Whether the class of `obj` is marked by `qd.data_oriented`."""
    return getattr(type(obj), "_data_oriented", False)
