"""The options of `qd.init` that are no settings of the engine.

Programs written for the reference pass them; each is accepted, kept for `qd.cfg` and, unless
it is in EFFECTIVE, has nothing to change in Ingot. name: default.
"""

ACCEPTED = {
    "short_circuit_operators": True,
    "unrolling_limit": 32,
    "print_full_traceback": False,
    "log_level": "info",
    "gdb_trigger": False,
    # Dynamic loops are differentiated exactly and by default, so nothing needs tuning.
    "ad_stack_sparse_threshold_bytes": 100 << 20,
    # The cache keeps within its bounds by itself; the policy "never" takes them away.
    "offline_cache_cleaning_factor": 0.25,
    "offline_cache_cleaning_policy": "lru",
    # Passes that the reference can switch; here LLVM decides.
    "advanced_optimization": True,
    "cache_loop_invariant_global_vars": True,
    "cfg_optimization": True,
    "demote_dense_struct_fors": True,
    "detect_read_only": True,
    "flatten_if": False,
    "force_scalarize_matrix": False,
    "half2_vectorization": False,
    "make_block_local": True,
    "make_cpu_multithreading_loop": True,
    "make_thread_local": True,
    "move_loop_invariant_outside_if": False,
    "quant_opt_atomic_demotion": True,
    "quant_opt_store_fusion": True,
    "real_matrix_scalarize": True,
    "default_cpu_block_dim": 32,
    # Looking inside.
    "debug_dump_path": "/tmp/ir/",
    "print_accessor_ir": False,
    "print_ir": False,
    "print_ir_dbg_info": False,
    "print_kernel_amdgcn": False,
    "print_kernel_asm": False,
    "print_kernel_llvm_ir": False,
    "print_kernel_llvm_ir_optimized": False,
    "print_preprocessed_ir": False,
    "print_struct_llvm_ir": False,
    "timeline": False,
    # Other targets and meshes.
    "auto_mesh_local_default_occupacy": 4,
    "cuda_stack_limit": 0,
    "default_gpu_block_dim": 128,
    "demote_no_access_mesh_fors": True,
    "device_memory_GB": 1.0,
    "device_memory_fraction": 0.0,
    "experimental_auto_mesh_local": False,
    "external_metal_command_queue": 0,
    "external_metal_command_queue_is_torch_queue": False,
    "make_mesh_block_local": True,
    "max_block_dim": 1024,
    "mesh_localize_all_attr_mappings": False,
    "mesh_localize_from_end_mapping": False,
    "mesh_localize_to_end_mapping": True,
    "optimize_mesh_reordered_mapping": True,
    "saturating_grid_dim": 0,
    "vk_api_version": "",
}

# Those of ACCEPTED that do something, and what.
EFFECTIVE = {
    "log_level": "'trace' tells of each compile and what it took, 'debug' of each compile and why it was made",
    "offline_cache_cleaning_policy": "'never': the cache on disk has no bounds",
    "print_ir": "prints the IR of kernels after the passes",
    "print_kernel_asm": "prints the machine code of kernels",
    "print_kernel_llvm_ir": "prints the LLVM IR of kernels",
    "print_kernel_llvm_ir_optimized": "prints the LLVM IR of kernels after LLVM's passes",
    "print_preprocessed_ir": "prints the IR of kernels as lowered",
    "timeline": "writes ingot-timeline.json, a trace for Chrome and Perfetto; or the path of another file",
}

# What is printed of each kernel: bits of the engine's setting `dumps` (ING_DUMP_ in src/compile/compile.h).
DUMPS = {
    "print_preprocessed_ir": 1,
    "print_ir": 2,
    "print_kernel_llvm_ir": 4,
    "print_kernel_llvm_ir_optimized": 8,
    "print_kernel_asm": 16,
}

# What is told of compiles: the engine's setting `verbosity`.
LOG_LEVELS = {"trace": 2, "debug": 1, "info": 0, "warn": 0, "warning": 0, "error": 0, "critical": 0}
LOG_TOPICS = ("cache", "compile")  # of INGOT_LOG
CPU_LEVELS = ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4")  # of INGOT_CPU_LEVEL

# Settings of the engine that other options set.
INNER = ("dumps", "verbosity", "target")

# Environment variables that are no options: name, what it is.
VARIABLES = {
    "INGOT_ARCH": "the target, over the one that `qd.init` names: cpu, interp, python",
    "INGOT_CACHE_DIR": "where the cache on disk is, and results of `CachedStep` (default ~/.cache/ingot)",
    "INGOT_CACHE_PATH": "folders that are searched for compiled code, separated by ':'; an empty one is INGOT_CACHE_DIR",
    "INGOT_CACHE_REMOTE": "a server that machines share: rediss://user:password@host:port/0; redis:// for this machine only",
    "INGOT_CACHE_REMOTE_KEY": "the secret that signs what is shared, at least 16 bytes",
    "INGOT_CACHE_REMOTE_ROLE": "ro (the default) reads, rw also pushes what is compiled here",
    "INGOT_CACHE_REMOTE_TIMEOUT": "seconds that a request may take (1)",
    "INGOT_CACHE_SALT": "any text: results of `CachedStep` with another one are not used",
    "INGOT_CPU_LEVEL": "the instructions to use: x86-64, x86-64-v2, x86-64-v3, x86-64-v4",
    "INGOT_HELPER_PYTHON": "the interpreter that runs LLVM, for programs that are none themselves (PyInstaller)",
    "INGOT_LOG": "topics that are told to the standard error stream: cache (why a kernel was compiled), compile "
                 "(what it took)",
    "INGOT_PERFDISPATCH_FORCE": "which implementations `qd.perf_dispatch` takes: name=implementation,...",
    "INGOT_SERVER": "0: no server of compilers is left behind or asked; a number above 1: seconds after which it ends (300)",
    "INGOT_TRACE": "a file: what happened when, for Chrome and Perfetto",
}

# What the engine takes beside its table: where the cache on disk is.
PATHS = {"offline_cache_file_path": None}

# The version of the reference whose interface this is; `require_version` is compared with it.
REFERENCE = (1, 3, 3)
