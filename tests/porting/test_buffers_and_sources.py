"""`experimental.buffer_callback` and `experimental.source_mapper`."""

from __future__ import annotations

import json

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.core.settings import scope
from atled.jax.experimental import buffer_callback as buffers
from atled.jax.experimental import source_mapper

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def like(x):
    return atled.ShapeDtypeStruct(x.shape, x.dtype)


def double(context, out, x):
    assert context.stage is buffers.ExecutionStage.EXECUTE and isinstance(context, buffers.ExecutionContext)
    assert isinstance(x, buffers.Buffer) and out.writeable and not x.writeable
    assert (out.shape, out.ndim, out.dtype) == (x.shape, x.ndim, x.dtype)
    np.asarray(out)[...] = 2 * np.asarray(x)


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
def test_functions_that_write(method):
    f = lambda x: buffers.buffer_callback(double, like(x), vmap_method=method)(x)
    for g in (f, atled.jit(f), atled.vmap(f), atled.jit(atled.vmap(f)), atled.vmap(atled.vmap(f))):
        np.testing.assert_array_equal(g(X), 2 * X)


def test_trees_and_aliases():
    def both(context, out, a, *, b):
        np.from_dlpack(out["sum"])[...] += np.asarray(b)
        np.asarray(out["max"])[...] = np.asarray(a[0]).max()

    types = {"max": atled.ShapeDtypeStruct((), np.float32), "sum": like(X)}
    out = buffers.buffer_callback(both, types, input_output_aliases={0: 1})([X], b=X + 1)
    np.testing.assert_array_equal(out["sum"], 2 * X + 1)
    assert float(out["max"]) == 5
    for aliases, what in (({0: 0}, "needs equal types"), ({5: 0}, "names argument 5 and result 0")):
        with pytest.raises(ValueError, match=what):
            buffers.buffer_callback(both, types, input_output_aliases=aliases)([X], b=X)


def test_arguments_are_not_written():
    def wrong(context, out, x):
        np.asarray(x)[...] = 0

    with pytest.raises(ValueError, match="read-only"):
        buffers.buffer_callback(wrong, like(X))(X)
    with pytest.raises(ValueError, match="a CPU has no stream"):
        _ = buffers.ExecutionContext().stream
    with pytest.raises(TypeError, match="the derivative of double"):
        atled.grad(lambda x: buffers.buffer_callback(double, like(x))(x).sum())(X)
    with pytest.raises(ValueError, match="vmap_method is one of"):
        buffers.buffer_callback(double, like(X), vmap_method="all")


def test_effects_of_functions_that_write():
    seen = []
    note = buffers.buffer_callback(lambda context, out, x: seen.append(float(np.asarray(x))), (), has_side_effect=True)
    atled.jit(lambda x: (note(x), note(x + 1), x)[2])(1.0).block_until_ready()
    atled.effects_barrier()
    assert seen == [1.0, 2.0]


# -- maps of sources --------------------------------------------------------------------------------------------------


def model(x):
    y = jnp.sin(x)
    return atled.lax.cond(
        y.sum() > 0,
        lambda v: v * 2,
        lambda v: jnp.exp(v),
        y,
    )


FIRST = model.__code__.co_firstlineno


def absolute(mappings):
    """Line of the text -> line of the source."""
    found, before = {}, 0
    for i, line in enumerate(mappings):
        for segment in line:
            before += segment[2]
            found[i] = before
    return found


@pytest.mark.parametrize("name", ["jaxpr", "hlo:stable-hlo", "hlo:original", "hlo:optimized"])
def test_maps_of_stages(name):
    (stage,) = source_mapper.filter_passes(f"{name}$")
    assert isinstance(stage, source_mapper.Pass)
    (dump,) = source_mapper.generate_sourcemaps(model, [stage])(X)
    assert isinstance(dump, source_mapper.SourceMapDump) and dump.pass_name == name
    kept = dump.source_map
    assert kept.version == 3 and kept.sources == [__file__]
    lines, places = dump.generated_code.split("\n"), absolute(kept.mappings)
    assert len(kept.mappings) == len(lines)
    of = lambda *words: {places[i] for i, line in enumerate(lines) if i in places and any(w in line for w in words)}
    assert of(" sin ", "stablehlo.sine", " sine(", "sine.") == {FIRST}  # the line after def, counted from 0
    if name != "hlo:optimized":
        assert of(" exp ", "stablehlo.exponential", " exponential(") == {FIRST + 4}
    again = source_mapper.SourceMap.from_json(kept.to_json())
    assert again == source_mapper.SourceMap(3, kept.sources, [], [], [list(line) for line in kept.mappings])
    assert set(json.loads(kept.to_json())) == {"version", "sources", "sourcesContent", "names", "mappings"}


def test_parts_of_maps():
    names = [p.name for p in source_mapper.all_passes()]
    assert names == ["jaxpr", "hlo:stable-hlo", "hlo:original", "hlo:optimized"]
    with pytest.raises(ValueError, match="the stage 'jaxpr' is already registered"):
        source_mapper.register_pass(source_mapper.all_passes()[0])
    made = source_mapper.MappingsGenerator()
    with pytest.raises(RuntimeError, match="to begin a line"):
        made.new_segment(0)
    text = atled.jit(model).lower(X).as_text(debug_info=True)
    assert source_mapper.create_mlir_sourcemap(text).sources == [__file__]
    assert source_mapper.canonicalize_filename(__file__) == __file__
    seen = []
    source_mapper.compile_with_env(
        lambda x: (seen.append(scope().debug_nans), x)[1], (X,), {}, {"debug_nans": True}, {}
    )
    assert seen == [True]
