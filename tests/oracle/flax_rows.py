"""A layer of ours and of flax.nnx with the same weights: outputs, gradients by everything, statistics of batches."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import nn, tree

jax = pytest.importorskip("jax")
nnx = pytest.importorskip("flax.nnx")

ZEROS, ZEROS_THERE = nn.initializers.zeros, nnx.initializers.zeros  # first values, which are replaced
ONLY_STATISTICS = {"mean": ("mean",), "variance": ("var",)}


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.RandomState(seed).randn(*shape).astype("f4")


class Case(NamedTuple):
    """A layer of ours and of flax, made with dtypes as keywords; our names of arrays, those of their parts there."""

    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    names: dict[str, tuple[str, ...]]
    inputs: tuple[np.ndarray, ...]
    call: Callable[..., Any] = lambda layer, *xs: layer(*xs)
    their_call: Callable[..., Any] | None = None  # where it is not the same


def values(case: Case) -> dict[str, np.ndarray]:
    """Weights for a layer, by our names, about as large as first values are; variances are positive."""
    shapes = {n: at(case.ours(), n).shape for n in case.names}
    found = {
        n: drawn(*s, seed=10 + i) / max(2, math.sqrt(math.prod(s[:-1]))) for i, (n, s) in enumerate(shapes.items())
    }
    return {n: abs(x) + 0.5 if n == "variance" else x + (n == "scale") for n, x in found.items()}


def at(layer: Any, path: str) -> Any:
    for name in path.split("/"):
        layer = layer[name] if isinstance(layer, nnx.State) else getattr(layer, name)
    return layer


def as_floats(x: np.ndarray, dtype: str) -> np.ndarray:
    return x.astype(dtype) if x.dtype.kind == "f" else x


def product(like: Any, out: list[Any], dtype: str) -> Any:
    """The outputs as one number, each element with a weight of its own, which bfloat16 has as well."""
    weights = [np.round(drawn(*y.shape, seed=20 + i) * 16).astype(dtype) / 16 for i, y in enumerate(out)]
    return sum([like.sum(y.astype(dtype) * w) for y, w in zip(out, weights, strict=True)])


def collected(case: Case, out: Any, after: Any, by_weights: Any, by_inputs: dict[int, Any]) -> dict[str, np.ndarray]:
    """All that is compared, by name: arrays of float64."""
    found = {f"output {i}": y for i, y in enumerate(out)}
    found |= {f"by input {i}": g for i, g in by_inputs.items()}
    found |= {f"by {n}": by_weights(n) for n in case.names if n not in ONLY_STATISTICS}
    found |= {f"{n} afterwards": after(n) for n in case.names if n in ONLY_STATISTICS}
    return {n: np.asarray(x).astype("f8") for n, x in found.items()}


def run_ours(case: Case, wide: str, **settings: Any) -> dict[str, np.ndarray]:
    layer = case.ours(param_dtype=wide, **settings)
    for path, x in values(case).items():
        owner, _, name = path.rpartition("/")
        setattr(at(layer, owner) if owner else layer, name, x.astype(wide))
    inputs = [as_floats(x, wide) for x in case.inputs]
    floating = tuple([i for i, x in enumerate(inputs) if x.dtype.kind == "f"])

    def loss(layer: Any, *xs: Any) -> Any:
        out = tree.leaves(case.call(layer, *xs))
        return product(jnp, out, wide), (out, layer)

    by = (0, *[i + 1 for i in floating])
    (_, (out, after)), grads = atled.jit(atled.value_and_grad(loss, argnums=by, has_aux=True))(layer, *inputs)
    return collected(
        case, out, lambda n: at(after, n), lambda n: at(grads[0], n), dict(zip(floating, grads[1:], strict=True))
    )


def run_theirs(case: Case, wide: str, **settings: Any) -> dict[str, np.ndarray]:
    with jax.enable_x64(wide == "float64"):
        layer = case.theirs(param_dtype=wide, **settings)
        for path, x in values(case).items():
            parts = case.names[path]
            for name, part in zip(parts, np.split(x, len(parts), -1), strict=True):
                param = at(layer, name)
                param.set_value(jax.numpy.asarray(part.reshape(param.shape), wide))
        graph, params, rest = nnx.split(layer, nnx.Param, ...)
        inputs = [as_floats(x, wide) for x in case.inputs]
        floating = tuple([i for i, x in enumerate(inputs) if x.dtype.kind == "f"])

        def loss(params: Any, rest: Any, *xs: Any) -> Any:
            layer = nnx.merge(graph, params, rest, copy=True)
            out = jax.tree.leaves((case.their_call or case.call)(layer, *xs))
            return product(jax.numpy, out, wide), (out, nnx.state(layer))

        by = (0, *[i + 2 for i in floating])
        run = jax.jit(jax.value_and_grad(loss, argnums=by, has_aux=True))
        (_, (out, after)), grads = run(params, rest, *inputs)
        shapes = {n: x.shape for n, x in values(case).items()}

        def joined(state: Any, name: str) -> np.ndarray:
            rows = [np.asarray(at(state, n)[...]) for n in case.names[name]]
            shape = (*shapes[name][:-1], shapes[name][-1] // len(rows)) if shapes[name] else ()
            return np.concatenate([x.reshape(shape) for x in rows], -1)

        return collected(
            case, out, lambda n: joined(after, n), lambda n: joined(grads[0], n),
            dict(zip(floating, grads[1:], strict=True)),
        )  # fmt: skip


def check_same(got: dict[str, np.ndarray], want: dict[str, np.ndarray], limit: float) -> None:
    assert got.keys() == want.keys()
    for what, x in want.items():
        assert got[what].shape == x.shape, what
        error = (abs(got[what] - x) / np.maximum(1, abs(x))).max()
        assert error <= limit, f"{what}: {error:.2g}"


def check_precisely(case: Case) -> None:
    """In float32, both are the same."""
    check_same(run_ours(case, "float32"), run_theirs(case, "float32"), 2e-5)


def check_half_precision(case: Case) -> None:
    """Computing in bfloat16 errs as little as flax does against float64, in which both agree."""
    want = run_theirs(case, "float64")
    check_same(run_ours(case, "float64"), want, 1e-13)
    ours, theirs = [run(case, "float32", dtype="bfloat16") for run in (run_ours, run_theirs)]
    for what, x in want.items():
        if what.startswith("by "):  # gradients are in bfloat16, and now and then XLA spares JAX that last rounding
            theirs[what] = theirs[what].astype(jnp.bfloat16).astype("f8")
        own, other = [np.sqrt(((y[what] - x) ** 2).mean()) for y in (ours, theirs)]
        assert own <= 1.5 * other + 1e-6 * max(1, abs(x).max()), f"{what}: {own:.2g}, flax {other:.2g}"
