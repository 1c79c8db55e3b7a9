"""Names of `ref`, `dtypes`, `errors`, `monitoring`, `export`, `profiler`, `sharding`, `tree_util`, `experimental`."""

from __future__ import annotations

import collections
import copy
import importlib
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import atled.jax as atled

jax = pytest.importorskip("jax")

LIBRARIES = pytest.mark.parametrize("library", [atled, jax], ids=["atled", "jax"])


def modules(name):
    return [importlib.import_module(f"{m}.{name}") for m in ("atled.jax", "jax")]


def module(library, name):
    return importlib.import_module(f"{library.__name__}.{name}")


def close(ours, theirs, tolerance=1e-6):
    for a, b in zip(atled.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


# -- references -------------------------------------------------------------------------------------------------------


@LIBRARIES
def test_references(library):
    ref = library.ref
    assert library.new_ref is ref.new_ref and library.free_ref is ref.free_ref
    r = ref.new_ref(library.numpy.arange(4.0))
    assert isinstance(r, library.Ref) and isinstance(r, ref.Ref)
    assert float(ref.swap(r, 1, 9.0)) == 1.0
    ref.set(r, 2, value=5.0)
    ref.addupdate(r, slice(0, 2), library.numpy.ones(2))
    np.testing.assert_array_equal(ref.get(r), [1, 10, 5, 3])
    np.testing.assert_array_equal(ref.get(r, 1), 10)
    np.testing.assert_array_equal(ref.freeze(r), [1, 10, 5, 3])

    @library.jit
    def f():
        empty = ref.empty_ref(library.numpy.ones(2).aval, None)
        empty[...] = library.numpy.ones(2)
        found = empty[...]
        ref.free_ref(empty)
        return found

    np.testing.assert_array_equal(f(), [1, 1])


@LIBRARIES
def test_references_as_arguments(library):
    """The same function object sees each new value, also in nested calls, trees and other shapes."""
    jnp, traces = library.numpy, []

    @library.jit
    def add(r, x):
        traces.append(r.shape)
        r[0] += x
        return r[...] * 2

    @library.jit
    def outer(refs, x):
        y = add(refs["a"], x)
        refs["b"][...] = y + refs["a"][...]
        return y.sum()

    r = library.new_ref(jnp.zeros(3))
    before = r[...]
    np.testing.assert_array_equal(add(r, 1.0), [2, 0, 0])
    np.testing.assert_array_equal(add(r, 2.0), [6, 0, 0])
    np.testing.assert_array_equal(r[...], [3, 0, 0])
    np.testing.assert_array_equal(before, [0, 0, 0])
    refs = {"a": r, "b": library.new_ref(jnp.ones(3))}
    assert float(outer(refs, 1.0)) == 8.0 and float(outer(refs, x=1.0)) == 10.0
    np.testing.assert_array_equal(refs["b"][...], [15, 0, 0])
    other = library.new_ref(jnp.zeros(2, "int32"))
    assert add(other, 1).dtype == np.int32 and int(other[0]) == 1
    assert sorted(set(traces)) == [(2,), (3,)]
    with pytest.raises(ValueError, match=r"same reference twice|only one reference"):
        outer({"a": r, "b": r}, 1.0)
    with pytest.raises((TypeError, ValueError)):
        library.jit(lambda r: r)(r)


@LIBRARIES
def test_what_is_written_to_a_reference(library):
    """It keeps its dtype and its weak type, and refuses what would lose something."""
    jnp = library.numpy
    whole, weak = library.new_ref(jnp.zeros(2, "int32")), library.new_ref(2.0)
    for wrong in (jnp.ones(2), np.ones(2, "f4")):
        with pytest.raises(ValueError, match=r"dtype|holds int32"):
            whole[...] = wrong
        with pytest.raises(ValueError, match=r"dtype|holds int32"):
            library.ref.addupdate(whole, ..., wrong)
    whole[...] = np.full(2, 7, "int32")
    whole[0] = np.int32(3)
    np.testing.assert_array_equal(whole[...], [3, 7])
    weak[...] = np.float32(3)
    assert (weak[...] * jnp.ones(2, jnp.bfloat16)).dtype == jnp.bfloat16
    library.jit(lambda r: library.ref.set(r, ..., jnp.float32(4)))(weak)
    assert (weak[...] * jnp.ones(2, jnp.bfloat16)).dtype == jnp.bfloat16 and float(weak[...]) == 4
    outer = library.new_ref(jnp.float32(0))
    write = library.jit(lambda r, x: (library.ref.set(r, ..., x), x * x)[1])
    for transformed in (
        library.grad(lambda x: write(outer, x)),
        lambda x: library.vmap(lambda v: write(outer, v))(x + np.ones(2, "f4")),
    ):
        with pytest.raises(Exception):  # noqa: B017
            transformed(np.float32(3.0))
        assert float(outer[...]) == 0


def test_references_see_changes_after_clearing_and_copies_are_their_own():
    factor = 1.0

    def f(r):
        r[...] += factor

    r, jitted = atled.new_ref(0.0), atled.jit(f)
    jitted(r)
    factor = 10.0
    jitted.clear_cache()
    jitted(r)
    assert float(r[...]) == 11
    other = copy.deepcopy(r)
    other[...] = 1.0
    assert float(r[...]) == 11 and float(other[...]) == 1


def test_references_and_options_of_jit():
    r = atled.new_ref(1.0)
    with pytest.raises(NotImplementedError, match="takes a reference"):
        atled.jit(lambda r, n: r[...] * n, static_argnums=1)(r, 2)
    with pytest.raises(NotImplementedError, match="uses a reference from outside"):
        atled.jit(lambda x: r[...] + x)(1.0)
    frozen = atled.jit(lambda r: atled.freeze(r) + 1)(r)
    assert float(frozen) == 2.0
    with pytest.raises(ValueError, match="was frozen"):
        r[...]


def test_types_of_references():
    for m in (atled, jax):
        inner = module(m, "core").ShapedArray((2,), np.dtype("float32"))
        assert module(m, "ref").AbstractRef(inner).inner_aval == inner


# -- dtypes and errors ------------------------------------------------------------------------------------------------


def test_dtypes():
    ours, theirs = modules("dtypes")
    for d in ("bool", "int8", "uint32", "float32", "float16", "complex64", ml_dtypes.bfloat16, ml_dtypes.int4):
        assert ours.itemsize_bits(np.dtype(d)) == theirs.itemsize_bits(np.dtype(d))
    for x in (True, 1, 1.0, 1j, np.float16(1), np.int8(1), np.ones(2, ml_dtypes.bfloat16)):
        assert ours.scalar_type_of(x) is theirs.scalar_type_of(x)
    for d in ("float32", np.int32, bool):
        assert ours.canonicalize_dtype(d) == theirs.canonicalize_dtype(d)
    for args in ((1, 2.0), (np.ones(2, "int8"), 1), ("bfloat16", np.float16(1)), (np.float32, 1j)):
        assert ours.result_type(*args) == theirs.result_type(*args)
        both = [m.result_type(*args, return_weak_type_flag=True) for m in (ours, theirs)]
        assert both[0] == both[1]


@LIBRARIES
def test_dtypes_that_are_refused(library):
    dtypes = module(library, "dtypes")
    with pytest.raises(ValueError):
        dtypes.itemsize_bits(None)
    key = library.random.key(0).dtype
    assert dtypes.canonicalize_dtype(key, allow_extended_dtype=True) == key
    with pytest.raises(ValueError):
        dtypes.canonicalize_dtype(key)
    assert dtypes.issubdtype(key, dtypes.extended)
    with library.numpy_dtype_promotion("strict"), pytest.raises(dtypes.TypePromotionError):
        library.numpy.ones(2, "int32") + library.numpy.ones(2, "float32")


@LIBRARIES
def test_errors(library):
    errors = module(library, "errors")
    for name in ("ConcretizationTypeError", "TracerArrayConversionError", "TracerIntegerConversionError"):
        assert issubclass(getattr(errors, name), errors.JAXTypeError)
    assert issubclass(errors.JAXTypeError, TypeError)
    assert issubclass(errors.NonConcreteBooleanIndexError, errors.JAXIndexError)
    with pytest.raises(errors.JAXTypeError):
        library.jit(lambda x: float(x))(1.0)
    with pytest.raises(errors.JAXIndexError):
        library.jit(lambda x: x[x > 0])(library.numpy.ones(2))
    assert issubclass(errors.JaxprTypeError, Exception)


# -- events -----------------------------------------------------------------------------------------------------------


@LIBRARIES
def test_events(library):
    m, seen = module(library, "monitoring"), []
    kinds = {
        "event": (m.register_event_listener, m.unregister_event_listener, m.record_event, ()),
        "duration": (
            m.register_event_duration_secs_listener, m.unregister_event_duration_listener,
            m.record_event_duration_secs, (1.5,),
        ),
        "span": (
            m.register_event_time_span_listener, m.unregister_event_time_span_listener, m.record_event_time_span,
            (1.0, 2.0),
        ),
        "scalar": (m.register_scalar_listener, m.unregister_scalar_listener, m.record_scalar, (3,)),
    }  # fmt: skip
    for kind, (register, unregister, record, values) in kinds.items():
        listener = lambda *args, kind=kind, **more: seen.append((kind, args, more))
        register(listener)
        record("/a", *values, step=1)
        unregister(listener)
        record("/b", *values)
        with pytest.raises(AssertionError):
            unregister(listener)
    assert seen == [(kind, ("/a", *values), {"step": 1}) for kind, (_, _, _, values) in kinds.items()]
    m.register_event_listener(lambda event: seen.append(event))
    m.clear_event_listeners()
    m.record_event("/c")
    assert len(seen) == 4


# -- exported trees ---------------------------------------------------------------------------------------------------

Point = collections.namedtuple("Point", ["x", "y"])


def test_exported_trees():
    export = module(atled, "export")

    class Scaled:
        def __init__(self, value, by):
            self.value, self.by = value, by

    atled.tree_util.register_pytree_node(Scaled, lambda s: ((s.value,), s.by), lambda by, v: Scaled(v[0], by))
    export.register_namedtuple_serialization(Point, serialized_name="tests.Point")
    export.register_pytree_node_serialization(
        Scaled, serialized_name="tests.Scaled", serialize_auxdata=lambda by: str(by).encode(),
        deserialize_auxdata=lambda text: int(text),
    )  # fmt: skip
    f = atled.jit(lambda p, s: Point(p.x + s.value * s.by, p.y))
    arguments = Point(np.float32(1), np.ones(2, "f4")), Scaled(np.float32(2), 3)
    read = export.deserialize(export.export(f, platforms=[export.default_export_platform()])(*arguments).serialize())
    out = read.call(*arguments)
    assert isinstance(out, Point) and float(out.x) == 7.0
    with pytest.raises(TypeError, match="exported for arguments"):
        read.call(arguments[0], Scaled(np.float32(2), 4))
    assert export.default_export_platform() == module(jax, "export").default_export_platform()
    with pytest.raises(ValueError, match="already registered"):
        export.register_namedtuple_serialization(Point, serialized_name="another")
    with pytest.raises(ValueError, match="a namedtuple is needed"):
        export.register_namedtuple_serialization(dict, serialized_name="third")
    with pytest.raises(
        NotImplementedError, match="export: platforms must be \\['cpu'\\], the current platform; got \\['tpu'\\]"
    ):
        export.export(f, platforms=["tpu"])


# -- the rest ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["segment_sum", "segment_prod", "segment_min", "segment_max"])
def test_segments(name):
    data, ids = np.asarray([[1, 2], [3, 4], [5, 0.5]], "f4"), np.asarray([0, 2, 0])
    close(*[getattr(m.ops, name)(data, ids, 4, out_sharding=None) for m in (atled, jax)])


@LIBRARIES
def test_policies(library):
    ad = module(library, "ad_checkpoint")

    def kept(policy):
        f = library.checkpoint(lambda x: library.numpy.sin(library.numpy.sin(x)), policy=policy)
        return float(library.grad(f)(0.5))

    assert kept(lambda *_, **__: ad.Saveable) == kept(lambda *_, **__: ad.Recompute)
    place = ad.Offloadable(src="device", dst="pinned_host")
    assert (place.src, place.dst) == ("device", "pinned_host")


def test_saved_by_policies(capsys):
    from atled.jax import ad_checkpoint as ad

    f = lambda policy: atled.remat(lambda x: atled.numpy.sin(atled.numpy.sin(x)), policy=policy)
    counts = {}
    for name in ("Saveable", "Recompute"):
        ad.print_saved_residuals(f(lambda *_, name=name, **__: getattr(ad, name)), 0.5)
        counts[name] = len(capsys.readouterr().out.splitlines())
    assert counts["Saveable"] > counts["Recompute"]
    assert float(atled.grad(f(lambda *_, **__: ad.Offloadable("device", "pinned_host")))(0.5)) == float(
        atled.grad(f(lambda *_, **__: True))(0.5)
    )


@LIBRARIES
def test_debugging_forms(library, capfd):
    seen = []
    library.debug.callback(ordered=True)(lambda x: seen.append(float(x)), 2.0)
    library.debug.print(ordered=True)("x = {x}", x=3)
    library.debug.print("{}", 4, skip_format_check=True)
    library.debug.log("{}", 5)
    library.effects_barrier()
    assert seen == [2.0] and capfd.readouterr().out.splitlines()[:2] == ["x = 3", "4"]
    where = library.sharding.SingleDeviceSharding(library.devices()[0])
    if library is atled:
        library.debug.visualize_sharding((4,), where, use_color=False)
        assert "0" in capfd.readouterr().out
        with pytest.raises(NotImplementedError, match=r"debug\.print: partitioned=True is not supported"):
            library.debug.print("{}", 1, partitioned=True)
        with pytest.raises(ValueError, match=r"debug\.breakpoint: backend must be 'cli'"):
            library.debug.breakpoint(backend="web")


@LIBRARIES
def test_profiler(library, tmp_path):
    profiler = module(library, "profiler")
    options = profiler.ProfileOptions()
    assert callable(profiler.register_subprocess)
    assert len(profiler.device_memory_profile()) > 0
    assert profiler.annotate_function(lambda x: x + 1, name="f")(1) == 2
    with profiler.trace(str(tmp_path), profiler_options=options):
        library.numpy.ones(3).block_until_ready()
    (file,) = tmp_path.rglob("*.xplane.pb")
    planes = list(profiler.ProfileData.from_file(str(file)).planes)
    assert all([isinstance(p, profiler.ProfilePlane) for p in planes])
    events = [e for p in planes for line in p.lines for e in line.events]
    assert all([isinstance(e, profiler.ProfileEvent) for e in events[:3]])
    profiler.start_server(0 if library is atled else 9871)
    profiler.stop_server()


@LIBRARIES
def test_shardings(library):
    s = library.sharding
    abstract = s.AbstractMesh((4, 2), ("data", "model"))
    assert dict(abstract.shape) == {"data": 4, "model": 2} and abstract.size == 8
    one = s.make_single_device_sharding(library.devices()[0])
    assert isinstance(one, s.Sharding) and isinstance(one, s.SingleDeviceSharding)
    mesh = library.make_mesh((1,), ("data",), devices=library.devices()[:1])
    with library.set_mesh(mesh):
        assert dict(s.get_abstract_mesh().shape) == {"data": 1}
        f = s.explicit_axes(lambda x: x * 2, in_sharding=library.P("data"))
        np.testing.assert_array_equal(library.jit(f)(library.numpy.arange(2)), [0, 2])
        with pytest.raises(TypeError):
            s.explicit_axes(lambda x: x)(library.numpy.arange(2))


@LIBRARIES
def test_stages(library):
    stages = module(library, "stages")
    f = library.jit(lambda x: x + 1)
    assert isinstance(f, stages.Wrapped) and not isinstance(abs, stages.Wrapped)
    lowered = f.lower(1.0)
    (info,) = library.tree.leaves(lowered.args_info, is_leaf=lambda x: isinstance(x, stages.ArgInfo))
    assert isinstance(info, stages.ArgInfo) and info.shape == ()
    assert stages.CompilerOptions is not None


def test_trees():
    ours, theirs = modules("tree_util")
    tree = {"a": [1, 2], "b": (3,)}
    same = {
        "tree_all": lambda m: m.tree_all({"a": True, "b": [False]}),
        "tree_broadcast": lambda m: m.tree_broadcast({"a": 1, "b": 2}, tree),
        "tree_map": lambda m: m.tree_map(lambda x, y: x + y, tree, tree),
        "tree_reduce": lambda m: m.tree_reduce(lambda a, b: a + b, tree),
        "tree_reduce_associative": lambda m: m.tree_reduce_associative(lambda a, b: a + b, tree),
        "tree_transpose": lambda m: m.tree_transpose(
            m.tree_structure([0, 0]), m.tree_structure({"c": 0}), [{"c": 1}, {"c": 2}]
        ),
        "tree_unflatten": lambda m: m.tree_unflatten(m.tree_structure(tree), [4, 5, 6]),
        "leaves": lambda m: isinstance(m.tree_structure(tree), m.PyTreeDef),
    }
    for f in same.values():
        assert f(ours) == f(theirs)
    for m in (ours, theirs):
        kind = m.register_static(type("Static", (), {}))
        assert m.tree_map(lambda x: x, [kind(), 1])[1] == 1 and len(m.tree_leaves([kind(), 1])) == 1


def test_states_of_optimizers():
    for m in modules("example_libraries.optimizers"):
        init, _, _ = m.sgd(0.1)
        assert isinstance(init({"w": 1.0}), m.OptimizerState)


@LIBRARIES
def test_experimental_modules(library, tmp_path):
    experimental = module(library, "experimental")
    assert float(experimental.io_callback(lambda x: x + 1, library.ShapeDtypeStruct((), "float32"), 1.0)) == 2.0
    layout = module(library, "experimental.layout")
    rows = layout.Layout((0, 1))
    x = library.jit(lambda v: layout.with_layout_constraint(v, layouts=rows))(library.numpy.ones((2, 3)))
    assert x.shape == (2, 3) and layout.Format(rows, x.sharding).layout == rows
    meshes = module(library, "experimental.mesh_utils")
    one = library.devices()[:1]
    hybrid = meshes.create_hybrid_device_mesh((1,), (1,), one, process_is_granule=True)
    assert hybrid.shape == (1,)
    hosts = module(library, "experimental.multihost_utils")
    mesh = library.sharding.Mesh(np.asarray(one), ("x",))
    spec = library.sharding.PartitionSpec("x")
    whole = hosts.host_local_array_to_global_array(np.arange(4.0, dtype="f4"), mesh, spec)
    np.testing.assert_array_equal(hosts.global_array_to_host_local_array(whole, mesh, spec), [0, 1, 2, 3])
    topologies = module(library, "experimental.topologies")
    machine = topologies.get_attached_topology()
    assert machine.devices == library.devices()
    assert topologies.make_mesh(topologies.get_attached_topology("cpu"), (len(machine.devices),), ("x",)).size > 0


def test_machines_by_name():
    with pytest.raises(ValueError, match=r"topologies.get: expected a name such as|is not known"):
        module(atled, "experimental.topologies").get_topology_desc("v0:1x1", "tpu")


def test_caches_of_compiled_programs(tmp_path):
    from atled import settings
    from atled.jax.experimental.compilation_cache import compilation_cache

    before = settings.read("cache_dir")
    try:
        compilation_cache.set_cache_dir(str(tmp_path))
        assert settings.read("cache_dir") == str(tmp_path)
        compilation_cache.reset_cache()
    finally:
        settings.update("cache_dir", before)


def test_steps():
    for ratio in (0.0, 1e-9, 0.5, 1.0, 3.0, 1e9):
        close(*[
            module(m, "experimental.ode").optimal_step_size(m.numpy.float32(0.1), m.numpy.float32(ratio))
            for m in (atled, jax)
        ])  # fmt: skip


@LIBRARIES
def test_generators_that_count(library):
    random = module(library, "experimental.random")
    rng = random.stateful_rng(7)
    assert isinstance(rng, random.StatefulPRNG)
    draws = [rng.uniform(size=3), rng.normal(1.0, 2.0, (2,)), rng.integers(0, 100, 4), rng.random((2, 2))]
    draws += [rng.integers(5), *[child.uniform() for child in rng.spawn(2)]]
    DRAWS.setdefault("draws", []).append([np.asarray(x) for x in draws])
    assert len(rng.key(3)) == 3 and random.stateful_rng().uniform().shape == ()
    if len(DRAWS["draws"]) == 2:
        for a, b in zip(*DRAWS["draws"], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


DRAWS: dict[str, list] = {}


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
def test_lstm(layers, bidirectional):
    ours, theirs = modules("experimental.rnn")
    sizes = (3, 4, layers, bidirectional)
    count = ours.get_num_params_in_lstm(*sizes)
    assert count == theirs.get_num_params_in_lstm(*sizes)
    close(*[m.init_lstm_weight(k, *sizes) for m, k in ((ours, atled.random.key(1)), (theirs, jax.random.key(1)))])
    r = np.random.RandomState(0)
    weights, x = r.randn(count).astype("f4") * 0.3, r.randn(2, 5, 3).astype("f4")
    close(*[m.unpack_lstm_weights(weights, *sizes) for m in (ours, theirs)])
    n = layers * (2 if bidirectional else 1)
    h, c = r.randn(2, n, 2, 4).astype("f4")
    lengths = np.asarray([5, 3], "i4")
    results = [
        m.lstm_ref(x, h, c, *m.unpack_lstm_weights(weights, *sizes), lengths, 3, 4, layers, 0.0, bidirectional)
        for m in (ours, theirs)
    ]
    close(*results, tolerance=1e-5)
    close(ours.lstm(x, h, c, weights, lengths, 3, 4, layers, 0.0, bidirectional), results[1], tolerance=1e-5)
    if not bidirectional and layers == 1:  # JAX reads the parts of several layers in another order than it writes them
        close(*[m.swap_lstm_gates(weights, *sizes) for m in (ours, theirs)])


def test_what_lstm_refuses():
    rnn = module(atled, "experimental.rnn")
    arguments = [np.ones((1, 2, 2), "f4"), *[np.zeros((1, 1, 3), "f4")] * 2, np.zeros(84, "f4"), np.asarray([2], "i4")]
    with pytest.raises(NotImplementedError, match=r"lstm: dropout is not supported; got 0\.5"):
        rnn.lstm(*arguments, 2, 3, 1, 0.5, False)
    with pytest.raises(NotImplementedError, match="lstm: seq_lengths must be int32"):
        rnn.lstm(*arguments[:4], np.asarray([2.0], "f4"), 2, 3, 1, 0.0, False)


def test_sparse_functions():
    dense = np.asarray([[0, 2, 0], [1, 0, 3]], "f4")
    v, w = np.arange(3, dtype="f4"), np.ones((3, 2), "f4")
    results = []
    for sparse in modules("experimental.sparse"):
        found = []
        for kind in ("coo", "csr"):
            f = lambda name, kind=kind, sparse=sparse: getattr(sparse, f"{kind}_{name}")
            matrix = f("fromdense")(dense, nse=3)
            found += [f("todense")(matrix), f("matvec")(matrix, v), f("matmat")(matrix, w)]
        turned = sparse.bcoo_sort_indices(sparse.BCOO.fromdense(dense))
        found += [turned.data, sparse.bcoo_update_layout(turned, n_batch=1, on_inefficient=None).data]
        assert issubclass(sparse.CuSparseEfficiencyWarning, Warning) and isinstance(sparse.SparseTracer, type)
        results.append(found)
    names = ["coo_fromdense", "coo_todense", "coo_matvec", "coo_matmat"]
    names += ["csr_fromdense", "csr_todense", "csr_matvec", "csr_matmat"]
    assert all([hasattr(sys.modules["atled.jax.experimental.sparse"], n) for n in names])
    close(*results)


PREEMPTED = """
import importlib, os, signal, socket, sys, time
library = importlib.import_module(sys.argv[1])
with socket.create_server(("127.0.0.1", 0)) as probe:
    port = probe.getsockname()[1]
library.distributed.initialize(f"127.0.0.1:{port}", num_processes=1, process_id=0)
library.devices()
reached = importlib.import_module(f"{sys.argv[1]}.experimental.multihost_utils").reached_preemption_sync_point
seen = [reached(0)]
os.kill(os.getpid(), signal.SIGTERM)
while not seen[-1] and len(seen) < 400:
    time.sleep(0.05)
    seen.append(reached(len(seen)))
print(seen[0], any(seen), reached(len(seen)), flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("name", ["atled.jax", "jax"])
def test_the_step_after_a_signal(name):
    done = subprocess.run([sys.executable, "-c", PREEMPTED, name], capture_output=True, text=True, timeout=120)
    assert done.stdout.split()[-3:] == ["False", "True", "False"], done.stderr
