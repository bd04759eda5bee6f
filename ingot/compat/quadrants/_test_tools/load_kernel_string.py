"""Kernels from text: each in a module of its own, with a file as long as it is in use."""

import contextlib
import importlib.util
import os
import sys
import tempfile


def import_kernel_from_file(kernel_filepath, kernel_name):
    """The object `kernel_name` of the module of that name in this file."""
    spec = importlib.util.spec_from_file_location(kernel_name, kernel_filepath)
    module = sys.modules[kernel_name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, kernel_name)


@contextlib.contextmanager
def load_kernel_from_string(kernel_str, kernel_name):
    """Gives the object `kernel_name` that the text defines."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, kernel_name + ".py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(kernel_str)
        try:
            yield import_kernel_from_file(path, kernel_name)
        finally:
            sys.modules.pop(kernel_name, None)
