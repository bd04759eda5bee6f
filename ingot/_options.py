"""The options of `qd.init` that are no settings of the engine.

Programs written for the reference pass them; each is accepted, kept for `qd.cfg` and, unless
said otherwise below, has nothing to change in Ingot. name: default.
"""

ACCEPTED = {
    # Said by the user, used by later features.
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

# What the engine takes beside its table: where the cache on disk is.
PATHS = {"offline_cache_file_path": None}

# The version of the reference whose interface this is; `require_version` is compared with it.
REFERENCE = (1, 3, 3)
