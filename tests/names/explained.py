"""What differs from the peers' functions of the same name, and which names are left out, with a reason each."""

from __future__ import annotations

IN_PLACE = "returns the new array, and needs `inplace=False`, because arrays are immutable"
SIZED = "takes `size` and `fill_value`, without which the number of results depends on values and `jit` raises"

INERT = "accepted without effect"
REFS = "a jitted function can use an outer reference only as an argument, a loop body not at all"
ARRAYS_ONLY = "arrays only: there are no user-defined types"

# By namespace and name: in what the function that is here differs.
DIFFERENT: dict[str, dict[str, str]] = {
    "numpy": {
        **dict.fromkeys(("fill_diagonal", "place", "put", "put_along_axis"), IN_PLACE),
        **dict.fromkeys(("argwhere", "flatnonzero", "nonzero", "union1d", "unique", "unique_all", "unique_counts",
                         "unique_inverse", "unique_values", "intersect1d", "setdiff1d", "setxor1d"), SIZED),
        "array": "never an array of objects: ragged lists are an error",
        "asarray": "never an array of objects: ragged lists are an error",
        "broadcast_arrays": "returns arrays, not views",
        "broadcast_to": "returns an array, not a view",
        "bincount": "takes `length`, which `jit` needs",
        "choose": "`out` is not taken",
        "dtype": "NumPy's class",
        "empty": "holds zeros",
        "empty_like": "holds zeros",
        "finfo": "also of `bfloat16` and the 8-bit floats",
        "iinfo": "also of the 2- and 4-bit integers",
        "frompyfunc": "the function is batched by `vmap` instead of called for each element",
        "ufunc": "JAX's ufuncs are plain functions with the ufunc methods; `isinstance` works",
        "load": "a file of several arrays returns NumPy's mapping of host arrays",
        "ndarray": "`atled.Array`, which cannot be instantiated",
        "object_": "NumPy's class, for `isdtype` and similar functions: there are no object arrays",
        "repeat": "takes `total_repeat_length`, which `jit` needs where `repeats` is traced",
        "resize": "a function only: arrays have no such method",
        "sort": "stable unless `stable=False`; `kind` is accepted without effect, `order` is an error",
        "argsort": "stable unless `stable=False`; `kind` is accepted without effect, `order` is an error",
        "trim_zeros": "the number of results depends on values, so `jit` raises",
        "vectorize": "the function is batched by `vmap` instead of called for each element",
    },
    "jax.random": {
        **dict.fromkeys(("bernoulli", "binomial", "categorical", "choice", "geometric", "multinomial", "poisson"),
                        "float16 and bfloat16 are computed in float32"),
        **dict.fromkeys(("ball", "beta", "chisquare", "dirichlet", "f", "gamma", "generalized_normal", "loggamma", "t"),
                        "float16 and bfloat16 are drawn in float32 and then rounded"),
        "binomial": "the acceptance test uses Stirling's formula without cancellation, in float32 or wider, "
        "so a few counts differ from JAX's",
        "poisson": "the acceptance test uses Stirling's formula without cancellation, so a few counts differ "
        "from JAX's",
        "double_sided_maxwell": "the result always has the requested shape, followed by that of the parameters",
        "weibull_min": "one draw for each element of the parameters",
        "wald": "no cancellation for large means",
        "rayleigh": "never inf",
        "multivariate_normal": "the result has the requested dtype",
        "rademacher": "unsigned dtypes are an error",
    },
    "jax.lax": {
        "approx_max_k": "exact: finds all of the k largest",
        "approx_min_k": "exact: finds all of the k smallest",
        "empty": "holds zeros",
        "ragged_dot": "`group_offset` is not supported",
        **dict.fromkeys(("cbrt", "cos", "exp", "exp2", "expm1", "log", "log1p", "logistic", "rsqrt", "sin", "sqrt",
                         "tan", "tanh"), "`accuracy` is validated but has no effect: there is only one implementation"),
        **dict.fromkeys(("all_gather", "all_to_all", "pmax", "pmean", "pmin", "psum", "psum_scatter"),
                        "`axis_index_groups` is an error: use a mesh with one more axis"),
        "scan": "also takes `progress`",
        "while_loop": "also takes `max_steps`, which enables reverse mode",
    },
    "jax.lax.linalg": {
        "eigh": "`subset_by_index` works on all platforms; there is one implementation",
        "qr": "`pivoting` is an error",
        "schur": "eigenvalues are not sorted",
        "svd": "`subset_by_index` works on all platforms; there is one algorithm",
        "tridiagonal_solve": "`perturb_singular` is an error",
    },
    "jax": {
        **dict.fromkeys(
            ("allow_f16_reductions", "array_garbage_collection_guard", "auto_pcast", "enable_custom_prng",
             "jax2tf_associative_scan_reductions", "legacy_prng_key", "log_compiles",
             "remove_size_one_mesh_axis_from_type", "softmax_custom_jvp", "thread_guard"), INERT),
        **dict.fromkeys(
            ("transfer_guard", "transfer_guard_device_to_device", "transfer_guard_device_to_host",
             "transfer_guard_host_to_device"), "accepted without effect: no transfer is logged or rejected"),
        **dict.fromkeys(("default_prng_impl", "no_execution", "no_tracing", "threefry_partitionable"),
                        "accepts only JAX's default value"),
        **dict.fromkeys(("Ref", "new_ref", "empty_ref"), REFS),
        "debug_key_reuse": "only concrete keys are checked, not those inside compiled code",
        "ds": "with a stride, the start must be static",
        "memory": "targets of `device_put`; results of ops are in device memory, and types contain no memory",
        "smap": "`in_axes` is required, and must not be negative",
    },
    "jax.core": {"Value": "any value", "AbstractValue": ARRAYS_ONLY},
    "jax.debug": {
        **dict.fromkeys(("callback", "print", "log"), "`partitioned=True` is an error: use `shard_map` for shards"),
        "breakpoint": "one debugger, at the caller's frame; `num_frames` and `filter_frames` have no effect",
        "inspect_array_sharding": "an error in compiled code",
        **dict.fromkeys(("visualize_sharding", "visualize_array_sharding"),
                        "a different picture; `scale`, `min_width`, `max_width` and `color_map` have no effect"),
    },
    "jax.export": {
        "Exported": "a custom file format around StableHLO; without `vjp`, shardings and versions",
        "deserialize": "reads files written by atled, not JAX's",
        "export": "for the current platform; no symbolic dimensions",
        **dict.fromkeys(
            ("maximum_supported_calling_convention_version", "minimum_supported_calling_convention_version"),
            "the versions of atled's file format"),
    },
    "jax.ffi": {
        "ffi_call": "no tokens among results; programs with such calls are not cached on disk",
        **dict.fromkeys(("register_ffi_target", "register_ffi_type"), "user-defined functions run on the CPU only"),
        "register_ffi_target_as_batch_partitionable": "applies to the axes that `vmap` adds; no other "
        "partitioning rules",
    },
    "jax.monitoring": dict.fromkeys(
        ("record_event", "record_event_duration_secs", "record_event_time_span", "record_scalar"),
        "listeners get events that programs record; the library itself records none"),
    "jax.ref": dict.fromkeys(("Ref", "new_ref", "empty_ref"), REFS),
    "jax.sharding": {
        **dict.fromkeys(("auto_axes", "explicit_axes"),
                        "the compiler chooses shardings inside, regardless of axis types"),
        "AbstractDevice": "stored with a mesh, without effect",
        "get_abstract_mesh": "the current mesh, with its devices; None without one",
        "get_mesh": "None without one",
        "make_single_device_sharding": "`memory_kind` is an error: arrays are in device memory",
    },
    "jax.experimental.buffer_callback": {
        "buffer_callback": "results are copied once; the error for a derivative is a TypeError",
        "ExecutionContext": "`stream` is an error: callbacks are not supported on GPUs",
    },
    "jax.experimental.compute_on": {
        "compute_on": "supported on the CPU, where host and device are the same; an error elsewhere",
        "compute_on2": "supported on the CPU, where host and device are the same; `out_memory_spaces` has no effect",
    },
    "jax.experimental.control_deps": dict.fromkeys(
        ("control_dep", "schedule"), "also under `vmap`, and in functions that are differentiated, where JAX raises"),
    "jax.experimental.jet": dict.fromkeys(("def_comp", "def_deriv"), "for user-defined primitives"),
    "jax.experimental.layout": dict.fromkeys(
        ("Layout", "with_layout_constraint"), "arrays are row-major; another requested order is an error"),
    "jax.experimental.multihost_utils": {
        "reached_preemption_sync_point": "the signal is caught from the first call on, also in a single process",
    },
    "jax.experimental.random": dict.fromkeys(
        ("StatefulPRNG", "stateful_rng"),
        "cannot be used inside a jitted function that did not create it; no `split`"),
    "jax.experimental.rnn": {"lstm": "computed with `scan` on every platform, where JAX calls cuDNN"},
    "jax.experimental.roofline": {
        **dict.fromkeys(
            ("roofline", "roofline_and_grad"),
            "loops count each step, branches the largest one, and more ops have rules; cotangents have the type of the "
            "results"),
        "RooflineRuleContext": "without `jaxpr_eqn_ctx`; `name_stack` is text",
    },
    "jax.experimental.serialize_executable": {
        "serialize": "an error for functions that close over arrays or have static arguments",
        "deserialize_and_load": "reads files written by atled",
    },
    "jax.experimental.source_mapper": {
        "canonicalize_filename": "returns the name unchanged: no setting truncates it",
        "compile_with_env": "`env_flags` are settings of `config`; `compiler_flags` are an error",
        "create_mlir_sourcemap": "columns are counted from 0, as in the source-map format",
    },
    "jax.experimental.colocated_python": dict.fromkeys(
        ("colocated_cpu_devices", "colocated_python", "colocated_python_class"), "raises: there is no remote runtime"
    ),
    "jax.experimental.topologies": {"get_topology_desc": "topology names are those of `atled.topologies`"},
    "jax.experimental.xla_metadata": {"set_xla_metadata": "marks values; as a block or decorator it is an error"},
    "jax.extend.core": {
        **dict.fromkeys(("ClosedJaxpr", "Jaxpr"), "`Jaxpr` and `ClosedJaxpr` are one class: a program with "
            "its constants"),
        "CallPrimitive": "binding it calls the function, so no call equation is recorded",
        "DropVar": "no program contains one",
        "primal_dtype_to_tangent_dtype": ARRAYS_ONLY,
    },
    "jax.extend.xla": dict.fromkeys(
        ("clear_hlo_module_transformation", "register_hlo_module_transformation"), "for the CPU"),
    "jax.extend.linear_util": {"transformation_with_aux2": "`unk_names` has no effect"},
    "jax.extend.random": dict.fromkeys(
        ("random_seed", "seed_with_impl", "threefry_prng_impl"), "there is only one PRNG implementation, "
            "identified by its name"),
    "jax.extend.source_info_util": {
        "SourceInfo": "one source location, which is its own `traceback`",
        "summarize": "one location, regardless of `num_frames`",
        "NameStack": "holds text; the library's own transformations add no names",
    },
    "jax.interpreters.batching": dict.fromkeys(
        ("axis_primitive_batchers", "primitive_batchers"), "rules can be registered, but not looked up or listed"),
    "jax.interpreters.mlir": {
        "ModuleContext": "has only the platforms",
        "LoweringParameters": "only `override_lowering_rules` has an effect",
        "LoweringResult": "`shape_poly_state` is None: there are no symbolic dimensions",
        "lower_jaxpr_to_fun": "programs with effects are an error, and attributes of arguments have no effect",
        "lower_jaxpr_to_module": "for one platform; layouts, names of results and memories have no effect",
        "LoweringRuleContext": "has no tokens, no name stack and no symbolic dimensions",
        "aval_to_ir_type": "the context may be left out",
        "emit_python_callback": "the order is kept without the token, which is returned unchanged",
        "jaxpr_subcomp": "tokens are returned unchanged",
        "register_lowering": "`inline` and `cacheable` have no effect",
        "shape_tensor": "lengths are known",
    },
    "jax.interpreters.partial_eval": {
        **dict.fromkeys(("DynamicJaxprTracer", "JaxprTracer"), "`DynamicJaxprTracer` and `JaxprTracer` are one class"),
        "dce_rules": "for `dce_jaxpr`; of compiled code, the compiler removes what is not used",
        "trace_to_jaxpr_dynamic": "`keep_inputs`, `lower` and `auto_dce` have no effect",
    },
    "array_api": {
        "array.__setitem__": "an error that shows `x.at[i].set(v)`: arrays are immutable",
    },
}  # fmt: skip

# By namespace and function: parameters of JAX's that are not taken or mean something else here, and what of it.
PARAMETERS: dict[str, dict[str, tuple[str, str]]] = {
    "jax": {
        "checkpoint": ("static_argnames", "`static_argnames` is not supported: use `static_argnums`"),
        "vmap": ("sum_match", "`sum_match` is not supported"),
    },
    "jax.distributed": {
        "initialize": (
            "cluster_detection_method initialization_timeout heartbeat_timeout_seconds shutdown_timeout_seconds "
            "coordinator_bind_address slice_index partition_index",
            "timeouts are shorter, `heartbeat_timeout` has no `_seconds`; clusters are detected automatically, "
            "and TPU slices are not supported",
        ),
    },
}  # fmt: skip

DATES = "dates: XLA has no such type"
TEXT = "text, bytes and records: XLA has no such types"
ERRORS = "arithmetic does not raise: infinities and NaN propagate; `atled.debug_nans` names the line that produced them"
LAYOUT = "the compiler chooses memory layouts, and arrays never alias mutable memory"
IN_PLACE_ONLY = "writes into an array, but arrays are immutable: use `x.at[...].set` or `where`"
LOOPS = "iterates element by element in Python: `vmap`, `lax.map` and `lax.scan` are compiled"
FILES = "read and write text and compressed files with NumPy, and convert with `asarray`"
PRINTED = "number formatting: use Python's or NumPy's; `array_str` and `array_repr` exist"
SYSTEM = "about NumPy's own build"
BY_VALUE = "the type would depend on values; `result_type`, `promote_types` and `can_cast` are here"
WIDTHS = "platform-dependent width: use `int32`, `int64` and similar"
TABLES = "tables of NumPy's types"
MATRICES = "the matrix class, which NumPy advises against"
EXTENDED = "80-bit floats: XLA has no such type"

SYMBOLIC = "no symbolic dimensions: programs are traced for static shapes"
EFFECTS = "effects are a property of ops; programs have no effect sets"
TYPES_OF_ONES_OWN = "user-defined types and primitives (hijax), which are out of scope"
MODULE_PARTS = "internals of JAX's lowering; atled's are in `atled.compiler` and `atled.engine`"
TOKENS = "the engine keeps effects in order, without tokens in programs"
RULES = "atled's ops have these rules as methods; a user-defined primitive uses its registered rules"

# By namespace: names that are left out, by reason.
LEFT_OUT: dict[str, dict[str, str]] = {
    "numpy": {
        DATES: "busday_count busday_offset busdaycalendar datetime64 datetime_as_string datetime_data is_busday isnat "
               "timedelta64",
        TEXT: "bytes_ record recarray str_ void",
        ERRORS: "errstate geterr geterrcall seterr seterrcall getbufsize setbufsize",
        LAYOUT: "ascontiguousarray asfortranarray isfortran may_share_memory memmap require shares_memory",
        "there are no array subclasses: use `asarray`": "asanyarray",
        IN_PLACE_ONLY: "copyto putmask",
        LOOPS: "broadcast flatiter ndenumerate ndindex nditer nested_iters",
        FILES: "fromregex genfromtxt loadtxt savetxt savez_compressed",
        PRINTED: "array2string base_repr binary_repr format_float_positional format_float_scientific",
        SYSTEM: "get_include info little_endian show_config show_runtime test",
        BY_VALUE: "common_type min_scalar_type mintypecode real_if_close",
        "raises depending on values, which `jit` cannot; use `isfinite` or `debug_nans`": "asarray_chkfinite",
        WIDTHS: "intp long uintp ulong",
        TABLES: "ScalarType sctypeDict typecodes typename",
        MATRICES: "asmatrix bmat matrix",
        EXTENDED: "clongdouble complex256 float128 longdouble",
        "Python's `True` and `False`": "False_ True_",
        "a class that NumPy advises against; use `polyval`, `polyfit` and similar functions": "poly1d",
        "NumPy's old name of `vstack`": "row_stack",
    },
    "numpy.linalg": {
        "gives NaN if there is no result, because compiled code cannot raise": "LinAlgError",
    },
    "jax.numpy": {
        "not supported by the CPU compiler": "float6_e2m3fn float6_e3m2fn",
        "1-bit integers, which the CPU compiler treats as booleans: use `bool`": "int1 uint1",
    },
    "jax": {
        "gradients accumulated into references: experimental in JAX": "ad",
    },
    "jax.errors": {SYMBOLIC: "InconclusiveDimensionOperation"},
    "jax.export": {
        SYMBOLIC: "SymbolicScope is_symbolic_dim symbolic_args_specs symbolic_shape",
    },
    "jax.sharding": {
        "types do not contain the mesh axes along which values vary": "ManualAxisType",
        "programs are traced for a mesh with devices: `set_mesh`": "use_abstract_mesh",
    },
    "jax.experimental": {TYPES_OF_ONES_OWN: "EArray cur_qdd primal_tangent_dtype"},
    "jax.experimental.custom_partitioning": {
        "partitioning rules for user functions; use `shard_map`":
            "ArrayMapping BATCHING CompoundFactor SdyShardingRule custom_partitioning",
    },
    "jax.experimental.multihost_utils": {
        "processes that are left start anew: see `distributed.PeerLost`; `distributed.lost` names those that are not":
            "ProcessFailureError live_devices",
    },
    "jax.extend.backend": {
        "plugins are found by their installed packages": "register_backend_factory",
    },
    "jax.extend.core": {
        SYMBOLIC: "InconclusiveDimensionOperation",
        TOKENS: "AbstractToken Token",
    },
    "jax.extend.mlir": {"experimental in JAX, for its own partitioner": "lower_with_sharding_in_types"},
    "jax.extend.random": {
        "there is only one PRNG, threefry": "define_prng_impl rbg_prng_impl unsafe_rbg_prng_impl",
    },
    "jax.extend.sharding": {"shardings that JAX has replaced by `NamedSharding`": "GSPMDSharding"},
    "jax.interpreters.ad": {"take trees of a JAX-internal class: use `atled.jvp`, `atled.linearize`": "jvp linearize"},
    "jax.interpreters.batching": {
        "only arrays are batched, not user-defined types": "register_vmappable unregister_vmappable",
    },
    "jax.interpreters.mlir": {
        MODULE_PARTS: "ir_tree_registry",
        SYMBOLIC: "ShapePolyLoweringState",
        TOKENS: "TokenSet",
        EFFECTS: "lowerable_effects",
    },
    "jax.interpreters.partial_eval": {
        RULES: "custom_partial_eval_rules partial_eval_jaxpr_custom_rules",
    },
    "jax.interpreters.xla": {"a table used by JAX's own implementation": "canonicalize_dtype_handlers"},
    "jax.lax": {
        "half of an exchange, which needs tokens; use `ppermute`": "precv psend",
        "shards of different sizes, which the CPU does not support; pad and use `all_to_all`": "ragged_all_to_all",
    },
}  # fmt: skip


def different(namespace: str) -> dict[str, str]:
    """In what names of a namespace differ, by name."""
    given = {name: f"parameters: {text}" for name, (_, text) in PARAMETERS.get(namespace, {}).items()}
    return {**given, **DIFFERENT.get(namespace, {})}


def reasons(namespace: str) -> dict[str, str]:
    """Why names of a namespace are left out, by name."""
    return {name: reason for reason, names in LEFT_OUT.get(namespace, {}).items() for name in names.split()}
