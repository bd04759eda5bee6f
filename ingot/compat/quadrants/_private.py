"""Private modules of the reference that programs import from and Ingot has no part of.

Each exists with stand-ins, so that a program which imports one for a feature it does not use
runs. Names that mean something here are in files of their own.
"""

import sys
import types

from ingot.compat.missing import Missing, fill

MODULES = {
    "algorithms._radix_sort": "_min_log256_for_n",
    "algorithms._reduce": "_reduce_depth_for_n",
    "lang._dataclass_util": "create_flat_name",
    "lang._fast_caching.args_hasher": "FastcacheSkip stringify_obj_type",
    "lang._fast_caching.config_hasher": "",
    "lang._fast_caching.function_hasher": "",
    "lang._fast_caching.src_hasher": "",
    "lang._func_base": "_frozen_dc_plans _get_frozen_dc_plan",
    "lang._py_tensor": "PyTensor create_tensor",
    "lang._template_mapper_hotpath": "_extract_arg",
    "lang._wrap_inspect": "get_source_info_and_src",
    "lang.ast": "",
    "lang.ast.ast_transformers": "",
    "lang.ast.ast_transformers.graph_api": "",
    "lang.kernel_arguments": "ArgMetadata",
    "lang.simt": "",
    "lang.simt.block": "",
    "lang.simt.reductions": "_inclusive_scan_tiled",
    "lang.simt.subgroup": "",
}


def _stand_in(prefix):
    def look_up(name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Missing(f"{prefix}.{name}")

    return look_up


def register(package):
    """Makes those of the modules that `package` has no file for."""
    for path, names in MODULES.items():
        full = f"{package}.{path}"
        if full in sys.modules:
            continue
        module = types.ModuleType(full, "Stand-ins: not provided by Ingot.")
        module.__path__ = []
        fill(vars(module), names, path + ".")
        module.__getattr__ = _stand_in(path)
        sys.modules[full] = module
        parent, _, name = full.rpartition(".")
        setattr(sys.modules[parent], name, module)
