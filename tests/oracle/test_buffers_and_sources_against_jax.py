"""`experimental.buffer_callback` and `experimental.source_mapper`: as JAX has them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import atled
from atled.jax.experimental import buffer_callback, source_mapper

jax = pytest.importorskip("jax")
their_buffers = pytest.importorskip("jax.experimental.buffer_callback")
their_maps = pytest.importorskip("jax.experimental.source_mapper")

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all"])
def test_functions_that_write(method):
    def add(context, out, x, y):
        assert context.stage.name == "EXECUTE"
        np.asarray(out)[...] = np.asarray(x) + 2 * np.asarray(y)

    found = []
    for m, buffers in ((atled, buffer_callback), (jax, their_buffers)):
        call = buffers.buffer_callback(add, m.ShapeDtypeStruct((3,), np.float32), vmap_method=method)
        found.append([call(X[0], X[1]), m.jit(m.vmap(lambda x, call=call: call(x, X[1])))(X), m.vmap(call)(X, X)])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_stages_of_calls():
    ours, theirs = buffer_callback.ExecutionStage, their_buffers.ExecutionStage
    assert [s.name for s in ours] == [s.name for s in theirs]
    both = (buffer_callback.Buffer, their_buffers.Buffer)
    names = [{n for n in dir(b) if not n.startswith("_")} for b in both]
    assert names[0] == names[1]


def test_maps_are_written_alike():
    random = np.random.RandomState(0)
    made = []
    for maps in (source_mapper, their_maps):
        random.seed(0)
        generator = maps.MappingsGenerator()
        for _ in range(20):
            generator.new_group()
            for _ in range(random.randint(4)):
                generator.new_segment(*[int(n) for n in random.randint(0, 3000, random.choice([1, 4, 5]))])
        made.append(maps.SourceMap(3, ["a.py", "b.py"], [""], ["n"], generator.mappings()))
    texts = [m.to_json() for m in made]
    assert json.loads(texts[0]) == json.loads(texts[1])
    read = source_mapper.SourceMap.from_json(texts[1])
    assert [list(map(tuple, line)) for line in read.mappings] == [list(map(tuple, g)) for g in made[1].mappings]


def test_maps_of_modules():
    """The same text, read here and there: the same places, but for columns, which a map counts from 0."""
    text = atled.jit(lambda x: x * 2 + 1).lower(X).as_text(debug_info=True)
    ours, theirs = source_mapper.create_mlir_sourcemap(text), their_maps.create_mlir_sourcemap(text)
    assert ours.sources == theirs.sources
    lines = lambda m: [[segment[:3] for segment in line] for line in m.mappings]
    assert lines(ours) == lines(theirs)[: len(lines(ours))]
    names = [[p.name for p in m.all_passes()] for m in (source_mapper, their_maps)]
    assert sorted(names[0]) == sorted(names[1])
