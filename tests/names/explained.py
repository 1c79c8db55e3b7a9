"""What differs from the peers' functions of the same name, and which names are left out, with a reason each."""

from __future__ import annotations

IN_PLACE = "returns the new array, and takes `inplace=False`, because arrays are immutable"
SIZED = "takes `size` and `fill_value`, without which the number of results depends on values and `jit` raises"

INERT = "taken, and changes nothing"
REFS = "a function that is compiled or repeated cannot use one from outside: that raises"
ARRAYS_ONLY = "of arrays only: there are no types of one's own"

# By namespace and name: in what the function that is here differs.
DIFFERENT: dict[str, dict[str, str]] = {
    "numpy": {
        **dict.fromkeys(("fill_diagonal", "place", "put", "put_along_axis"), IN_PLACE),
        **dict.fromkeys(("argwhere", "flatnonzero", "nonzero", "union1d", "unique", "unique_all", "unique_counts",
                         "unique_inverse", "unique_values", "intersect1d", "setdiff1d", "setxor1d"), SIZED),
        "array": "never an array of objects: ragged lists are an error",
        "asarray": "never an array of objects: ragged lists are an error",
        "broadcast_arrays": "gives arrays, not views",
        "broadcast_to": "gives an array, not a view",
        "bincount": "takes `length`, which `jit` needs",
        "choose": "`out` is not taken",
        "dtype": "NumPy's class",
        "empty": "holds zeros",
        "empty_like": "holds zeros",
        "finfo": "also of `bfloat16` and the 8-bit floats",
        "iinfo": "also of the 2- and 4-bit integers",
        "frompyfunc": "the function is batched by `vmap` instead of called for each element",
        "ufunc": "those that are ufuncs in JAX are plain functions that carry the methods; `isinstance` holds",
        "load": "a file of several arrays is NumPy's mapping of host arrays",
        "ndarray": "`atled.Array`, which is not called to make one",
        "object_": "NumPy's class, for `isdtype` and its like: there are no arrays of objects",
        "repeat": "takes `total_repeat_length`, which `jit` needs where `repeats` is traced",
        "resize": "a function only: arrays have no such method",
        "sort": "stable unless `stable=False`; `kind` may be named and is not chosen by, `order` is an error",
        "argsort": "stable unless `stable=False`; `kind` may be named and is not chosen by, `order` is an error",
        "trim_zeros": "the number of results depends on values, so `jit` raises",
        "vectorize": "the function is batched by `vmap` instead of called for each element",
    },
    "jax.random": {
        **dict.fromkeys(("bernoulli", "binomial", "categorical", "choice", "geometric", "multinomial", "poisson"),
                        "half precisions are decided in float32"),
        **dict.fromkeys(("ball", "beta", "chisquare", "dirichlet", "f", "gamma", "generalized_normal", "loggamma", "t"),
                        "half precisions are drawn in float32, and rounded"),
        "binomial": "accepts by Stirling's formula without cancellation, so that few of many counts differ; decided in "
                    "float32 at least",
        "poisson": "accepts by Stirling's formula without cancellation, so that few of many counts differ",
        "double_sided_maxwell": "always has the shape asked for, and then that of the parameters",
        "weibull_min": "draws for each element of the parameters, too",
        "wald": "does not cancel for large means",
        "rayleigh": "never inf",
        "multivariate_normal": "the result has the dtype asked for",
        "rademacher": "dtypes without a sign are an error",
    },
    "jax.lax": {
        "approx_max_k": "finds all of the k largest",
        "approx_min_k": "finds all of the k smallest",
        "empty": "holds zeros",
        "ragged_dot": "`group_offset` is not taken",
        **dict.fromkeys(("cbrt", "cos", "exp", "exp2", "expm1", "log", "log1p", "logistic", "rsqrt", "sin", "sqrt",
                         "tan", "tanh"), "`accuracy` is checked, and chooses nothing: there is one way of computing"),
        **dict.fromkeys(("all_gather", "all_to_all", "pmax", "pmean", "pmin", "psum", "psum_scatter"),
                        "`axis_index_groups` is an error: a mesh with one axis more says the same"),
        "scan": "also takes `progress`",
        "while_loop": "also takes `max_steps`, with which reverse mode goes through it",
    },
    "jax.lax.linalg": {
        "eigh": "`subset_by_index` on all machines; there is one implementation",
        "qr": "`pivoting` is an error",
        "schur": "eigenvalues are not sorted",
        "svd": "`subset_by_index` on all machines; there is one algorithm",
        "tridiagonal_solve": "`perturb_singular` is an error",
    },
    "jax": {
        **dict.fromkeys(
            ("allow_f16_reductions", "array_garbage_collection_guard", "auto_pcast", "enable_custom_prng",
             "jax2tf_associative_scan_reductions", "legacy_prng_key", "log_compiles",
             "remove_size_one_mesh_axis_from_type", "softmax_custom_jvp", "thread_guard"), INERT),
        **dict.fromkeys(
            ("transfer_guard", "transfer_guard_device_to_device", "transfer_guard_device_to_host",
             "transfer_guard_host_to_device"), "taken, and changes nothing: no transfer is logged or refused"),
        **dict.fromkeys(("default_prng_impl", "no_execution", "no_tracing", "threefry_partitionable"),
                        "has one value here, that of JAX's default, and refuses others"),
        **dict.fromkeys(("Ref", "new_ref", "empty_ref"), REFS),
        "debug_key_reuse": "keys at hand are looked at, not those inside of compiled code",
        "ds": "with a stride, the start must be known",
        "smap": "`in_axes` must be given, and is not negative",
    },
    "jax.core": {"Value": "any value", "AbstractValue": ARRAYS_ONLY},
    "jax.debug": {
        **dict.fromkeys(("callback", "print", "log"), "`partitioned` is an error: whole arrays, or inside `shard_map`"),
        "breakpoint": "one debugger, at the frame of the caller; `num_frames` and `filter_frames` change nothing",
        "inspect_array_sharding": "an error in compiled code",
        **dict.fromkeys(("visualize_sharding", "visualize_array_sharding"),
                        "another picture; `scale`, `min_width`, `max_width` and `color_map` change nothing"),
    },
    "jax.export": {
        "Exported": "a file of our own format around StableHLO; no `vjp`, shardings and versions",
        "deserialize": "reads what was written here, not JAX's files",
        "export": "for the platform that is here; no symbolic dimensions",
        **dict.fromkeys(
            ("maximum_supported_calling_convention_version", "minimum_supported_calling_convention_version"),
            "the versions of our own files"),
    },
    "jax.ffi": {
        "ffi_call": "no tokens among results; programs with such calls are not kept on disk",
        **dict.fromkeys(("register_ffi_target", "register_ffi_type"), "functions of one's own run on the CPU"),
        "register_ffi_target_as_batch_partitionable": "holds for the axes that `vmap` adds, without further rules",
    },
    "jax.monitoring": dict.fromkeys(
        ("record_event", "record_event_duration_secs", "record_event_time_span", "record_scalar"),
        "listeners get what programs record; the library itself records nothing"),
    "jax.ref": dict.fromkeys(("Ref", "new_ref", "empty_ref"), REFS),
    "jax.sharding": {
        **dict.fromkeys(("auto_axes", "explicit_axes"),
                        "the compiler splits inside, whatever the kinds of axes: types do not say how"),
        "AbstractDevice": "kept with a mesh; no program is made for it",
        "get_abstract_mesh": "the mesh that is set, with its devices; None without one",
        "get_mesh": "None without one",
        "make_single_device_sharding": "`memory_kind` is an error: arrays are in the device's own memory",
    },
    "jax.experimental.buffer_callback": {
        "buffer_callback": "results are copied once; the error for a derivative is a TypeError",
        "ExecutionContext": "`stream` is an error: there are no GPUs among the platforms that call back",
    },
    "jax.experimental.compute_on": {
        "compute_on": "on the CPU, where host and device are one; an error elsewhere",
        "compute_on2": "on the CPU, where host and device are one; `out_memory_spaces` changes nothing",
    },
    "jax.experimental.jet": dict.fromkeys(("def_comp", "def_deriv"), "for primitives of one's own"),
    "jax.experimental.layout": dict.fromkeys(
        ("Layout", "with_layout_constraint"), "arrays lie row by row; another order is an error where it is asked for"),
    "jax.experimental.random": dict.fromkeys(
        ("StatefulPRNG", "stateful_rng"),
        "cannot be drawn from inside a compiled function that did not make it; no `split`"),
    "jax.experimental.rnn": {"lstm": "computed with `scan` on every platform, where JAX calls cuDNN"},
    "jax.experimental.serialize_executable": {
        "serialize": "an error for functions that close over arrays or have static arguments",
        "deserialize_and_load": "reads what was written here",
    },
    "jax.experimental.source_mapper": {
        "canonicalize_filename": "gives the name as it is: no setting cuts it",
        "compile_with_env": "`env_flags` are settings of `config`; `compiler_flags` are an error",
        "create_mlir_sourcemap": "columns are counted from 0, as maps have it",
    },
    "jax.experimental.topologies": {"get_topology_desc": "names of machines are those of `atled.topologies`"},
    "jax.experimental.xla_metadata": {"set_xla_metadata": "marks values; as a block or decorator it is an error"},
    "jax.extend.core": {
        **dict.fromkeys(("ClosedJaxpr", "Jaxpr"), "one class is both: a program, with its constants"),
        "CallPrimitive": "binding it calls the function, so no equation of a call is written",
        "DropVar": "no program has one",
        **dict.fromkeys(("Effect", "Effects", "no_effects"), "programs tell effects by ops, not by sets"),
        "primal_dtype_to_tangent_dtype": ARRAYS_ONLY,
    },
    "jax.extend.xla": dict.fromkeys(
        ("clear_hlo_module_transformation", "register_hlo_module_transformation"), "for the CPU"),
    "jax.extend.linear_util": {"transformation_with_aux2": "`unk_names` changes nothing"},
    "jax.extend.random": dict.fromkeys(
        ("random_seed", "seed_with_impl", "threefry_prng_impl"), "there is one kind of keys, which has a name only"),
    "jax.extend.source_info_util": {
        "SourceInfo": "one place in the user's code, which is its own `traceback`",
        "summarize": "one place, whatever `num_frames` is",
        "NameStack": "names of scopes only, none of transformations",
    },
    "jax.interpreters.batching": dict.fromkeys(
        ("axis_primitive_batchers", "primitive_batchers"), "rules can be registered, not looked up or gone through"),
    "jax.interpreters.mlir": {
        "ModuleContext": "says for which platforms, and not more",
        "LoweringRuleContext": "no tokens, names and dimensions that are data",
        "aval_to_ir_type": "the context may be left out",
        "emit_python_callback": "order is kept without the token, which is given back",
        "jaxpr_subcomp": "tokens are given back as they were",
        "register_lowering": "`inline` and `cacheable` change nothing",
        "shape_tensor": "lengths are known",
    },
    "jax.interpreters.partial_eval": {
        **dict.fromkeys(("DynamicJaxprTracer", "JaxprTracer"), "one class is both"),
        "trace_to_jaxpr_dynamic": "`keep_inputs`, `lower` and `auto_dce` change nothing",
    },
    "array_api": {
        "array.__setitem__": "an error that shows `x.at[i].set(v)`: arrays are immutable",
    },
}  # fmt: skip

# By namespace and function: parameters of JAX's that are not taken or mean something else here, and what of it.
PARAMETERS: dict[str, dict[str, tuple[str, str]]] = {
    "jax": {
        "checkpoint": ("static_argnames", "`static_argnames` is not taken: `static_argnums`, or `functools.partial`"),
        "vmap": ("sum_match", "`sum_match`, which JAX keeps for a new kind of types, is not taken"),
    },
    "jax.distributed": {
        "initialize": (
            "cluster_detection_method initialization_timeout heartbeat_timeout_seconds shutdown_timeout_seconds "
            "coordinator_bind_address slice_index partition_index",
            "timeouts are shorter, `heartbeat_timeout` has no `_seconds`; clusters are found without being named, "
            "and there are no slices",
        ),
    },
}  # fmt: skip

DATES = "dates: no type of XLA holds them"
TEXT = "text, bytes and records: no type of XLA holds them"
ERRORS = "arithmetic does not raise: infinities and NaN go on; `atled.debug_nans` names the line that made them"
LAYOUT = "the layout in memory is the compiler's, and an array never shares memory with another that changes"
IN_PLACE_ONLY = "writes into an array, and arrays are immutable: `x.at[...].set`, `where`"
LOOPS = "element by element in Python: `vmap`, `lax.map` and `lax.scan` are compiled"
FILES = "files of text and compressed ones are read and written by NumPy; `asarray` takes what it gives"
PRINTED = "the text of a number, which Python and NumPy give; `array_str` and `array_repr` are here"
SYSTEM = "about NumPy's own build"
BY_VALUE = "the type would depend on values; `result_type`, `promote_types` and `can_cast` are here"
WIDTHS = "as wide as the machine says: `int32`, `int64` and their like say it"
TABLES = "tables of NumPy's types"
MATRICES = "the class of matrices, which NumPy advises against"
EXTENDED = "80-bit floats: no type of XLA"

SYMBOLIC = "no dimensions that are symbols: programs are recorded for shapes that are known"
EFFECTS = "effects are a property of ops; programs carry no sets of them"
TYPES_OF_ONES_OWN = "types and primitives of one's own in JAX's newest form, hijax, which is out of scope"
MODULE_PARTS = "parts of JAX's own compiler of programs; ours, `atled.compiler` and `atled.engine`, has others"
TOKENS = "order is kept by the engine, without tokens in programs"
RULES = "our ops carry these rules as methods; a primitive of one's own gets its own from what is registered for it"

# By namespace: names that are left out, by reason.
LEFT_OUT: dict[str, dict[str, str]] = {
    "numpy": {
        DATES: "busday_count busday_offset busdaycalendar datetime64 datetime_as_string datetime_data is_busday isnat "
               "timedelta64",
        TEXT: "bytes_ record recarray str_ void",
        ERRORS: "errstate geterr geterrcall seterr seterrcall getbufsize setbufsize",
        LAYOUT: "ascontiguousarray asfortranarray isfortran may_share_memory memmap require shares_memory",
        "there are no subclasses of arrays: `asarray`": "asanyarray",
        IN_PLACE_ONLY: "copyto putmask",
        LOOPS: "broadcast flatiter ndenumerate ndindex nditer nested_iters",
        FILES: "fromregex genfromtxt loadtxt savetxt savez_compressed",
        PRINTED: "array2string base_repr binary_repr format_float_positional format_float_scientific",
        SYSTEM: "get_include info little_endian show_config show_runtime test",
        BY_VALUE: "common_type min_scalar_type mintypecode real_if_close",
        "raises by values, which `jit` cannot; `isfinite` and `debug_nans` find them": "asarray_chkfinite",
        WIDTHS: "intp long uintp ulong",
        TABLES: "ScalarType sctypeDict typecodes typename",
        MATRICES: "asmatrix bmat matrix",
        EXTENDED: "clongdouble complex256 float128 longdouble",
        "Python's `True` and `False`": "False_ True_",
        "the class of polynomials that NumPy advises against; `polyval`, `polyfit` and their like are here": "poly1d",
        "NumPy's old name of `vstack`": "row_stack",
    },
    "numpy.linalg": {
        "results of what has none are NaN, as compiled code cannot raise": "LinAlgError",
    },
    "jax.numpy": {
        "the CPU compiler has no arrays of it": "float6_e2m3fn float6_e3m2fn",
        "numbers of one bit, which the CPU compiler reads as truth values: `bool`": "int1 uint1",
        "NumPy's class, raised by nothing here": "ComplexWarning",
    },
    "jax": {
        "gradients that are written into references, a trial of JAX's": "ad",
        "arrays are in the device's own memory; policies of `checkpoint` keep values elsewhere": "memory",
    },
    "jax.debug": {EFFECTS: "DebugEffect OrderedDebugEffect"},
    "jax.errors": {SYMBOLIC: "InconclusiveDimensionOperation"},
    "jax.export": {
        SYMBOLIC: "SymbolicScope is_symbolic_dim symbolic_args_specs symbolic_shape",
    },
    "jax.sharding": {
        "types do not say along which axes of a mesh they vary": "ManualAxisType",
        "programs are recorded for a mesh with devices: `set_mesh`": "use_abstract_mesh",
    },
    "jax.experimental": {TYPES_OF_ONES_OWN: "EArray cur_qdd primal_tangent_dtype"},
    "jax.experimental.colocated_python": {
        "Python on the machines of a remote runtime": "colocated_cpu_devices colocated_python colocated_python_class",
    },
    "jax.experimental.control_deps": {"the order of ops is the compiler's": "control_dep schedule"},
    "jax.experimental.custom_partitioning": {
        "rules by which the compiler splits a function of one's own; `shard_map` says it in the program":
            "ArrayMapping BATCHING CompoundFactor SdyShardingRule custom_partitioning",
    },
    "jax.experimental.multihost_utils": {
        "what needs a process that is lost raises `distributed.PeerLost`; `distributed.lost` names it":
            "ProcessFailureError live_devices",
        "`train.fit` ends all processes after the same step when the machine is taken away":
            "reached_preemption_sync_point",
    },
    "jax.experimental.roofline": {
        "costs come from the compiler, and from `inspect`":
            "RooflineResult RooflineRuleContext RooflineShape register_roofline register_standard_roofline roofline "
            "roofline_and_grad",
    },
    "jax.extend.backend": {
        "plugins are found by their installed packages": "register_backend_factory",
    },
    "jax.extend.core": {
        SYMBOLIC: "InconclusiveDimensionOperation",
        TOKENS: "AbstractToken Token",
        "no list is kept of the transformations at work": "unsafe_am_i_under_a_vmap_DO_NOT_USE",
    },
    "jax.extend.mlir": {"a trial of JAX's, for its own partitioner": "lower_with_sharding_in_types"},
    "jax.extend.random": {
        "there is one kind of keys, threefry": "define_prng_impl rbg_prng_impl unsafe_rbg_prng_impl",
    },
    "jax.extend.sharding": {"the shardings that JAX has given up for `NamedSharding`": "GSPMDSharding"},
    "jax.extend.source_info_util": {
        "names of scopes carry no names of transformations": "transform_name_stack",
    },
    "jax.interpreters.ad": {"on trees of a class of JAX's own: `atled.jvp`, `atled.linearize`": "jvp linearize"},
    "jax.interpreters.batching": {
        "arrays are batched, and no types of one's own": "register_vmappable unregister_vmappable",
    },
    "jax.interpreters.mlir": {
        MODULE_PARTS: "AxisContext LoweringParameters LoweringResult SPMDAxisContext ShardingContext ir_tree_registry "
                      "lower_jaxpr_to_fun lower_jaxpr_to_module",
        SYMBOLIC: "ShapePolyLoweringState",
        TOKENS: "TokenSet",
        EFFECTS: "lowerable_effects",
    },
    "jax.interpreters.partial_eval": {
        RULES: "custom_partial_eval_rules dce_jaxpr_call_rule dce_jaxpr_closed_call_rule dce_rules "
               "partial_eval_jaxpr_custom_rules",
    },
    "jax.interpreters.xla": {"a table that JAX's own function looks at": "canonicalize_dtype_handlers"},
    "jax.lax": {
        "half of an exchange, which must be written with tokens; `ppermute` is both": "precv psend",
        "parts of different sizes, which the CPU does not exchange; `all_to_all` of padded ones": "ragged_all_to_all",
    },
}  # fmt: skip


def different(namespace: str) -> dict[str, str]:
    """In what names of a namespace differ, by name."""
    given = {name: f"parameters: {text}" for name, (_, text) in PARAMETERS.get(namespace, {}).items()}
    return {**given, **DIFFERENT.get(namespace, {})}


def reasons(namespace: str) -> dict[str, str]:
    """Why names of a namespace are left out, by name."""
    return {name: reason for reason, names in LEFT_OUT.get(namespace, {}).items() for name in names.split()}
