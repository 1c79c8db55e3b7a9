"""Loops and memory: layers in a scan against unrolled layers, an LSTM in a scan, and the memory that `remat` saves.

Like the models, the functions are written once for any library with JAX's names.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from benchmarks import measure
from benchmarks.models import Library, atled_library, jax_library

_numbers = itertools.count()


def blocks(lib: Library, layers: int, width: int, heads: int, batch: int, length: int, policy: Any = ...) -> Any:
    """Train steps of a stack of transformer blocks, unrolled and in a scan, with their arguments and losses."""
    jnp, nn, top, lax, tree = lib.numpy, lib.nn, lib.top, lib.lax, lib.tree
    r = np.random.RandomState(0)
    shapes = {"qkv": (width, 3 * width), "out": (width, width), "up": (width, 4 * width), "down": (4 * width, width)}
    stacked = {k: (r.randn(layers, *s) * 0.02).astype("f4") for k, s in shapes.items()}
    x = r.randn(batch, length, width).astype("f4")

    def norm(x: Any) -> Any:
        x = x - jnp.mean(x, -1, keepdims=True)
        return x / jnp.sqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5)

    def block(p: Any, x: Any) -> Any:
        h = (norm(x) @ p["qkv"]).reshape(batch, length, 3, heads, width // heads)
        q, k, v = (jnp.moveaxis(h[:, :, i], 2, 1) for i in range(3))
        weights = nn.softmax(q @ jnp.swapaxes(k, -1, -2) / (width // heads) ** 0.5, axis=-1)
        x = x + jnp.moveaxis(weights @ v, 1, 2).reshape(batch, length, width) @ p["out"]
        return x + nn.gelu(norm(x) @ p["up"]) @ p["down"]

    layer = block if policy is ... else top.remat(block, policy=policy)

    def unrolled(params: Any, x: Any) -> Any:
        for p in params:
            x = layer(p, x)
        return jnp.mean(x * x)

    def scanned(params: Any, x: Any) -> Any:
        x, _ = lax.scan(lambda x, p: (layer(p, x), None), x, params)
        return jnp.mean(x * x)

    def step(loss: Any) -> Any:
        def train(params: Any, momentum: Any, x: Any) -> Any:
            value, grads = top.value_and_grad(loss)(params, x)
            momentum = tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
            return value, tree.map(lambda p, m: p - 0.01 * m, params, momentum), momentum

        return train

    each = [{k: v[i] for k, v in stacked.items()} for i in range(layers)]
    zeros = lambda t: tree.map(np.zeros_like, t)
    return {
        "unrolled": (step(unrolled), (each, zeros(each), x), unrolled),
        "scan": (step(scanned), (stacked, zeros(stacked), x), scanned),
    }


def recurrent(lib: Library, steps: int, batch: int, inputs: int, width: int) -> Any:
    """Loss and gradients of an LSTM in a scan, with its arguments."""
    jnp, nn, lax, top = lib.numpy, lib.nn, lib.lax, lib.top
    r = np.random.RandomState(0)
    params = {
        "w": (r.randn(inputs + width, 4 * width) / 8).astype("f4"),
        "b": np.zeros(4 * width, "f4"),
        "out": (r.randn(width, 1) / 8).astype("f4"),
    }
    xs, target = r.randn(steps, batch, inputs).astype("f4"), r.randn(batch, 1).astype("f4")

    def loss(params: Any, xs: Any, target: Any) -> Any:
        def step(carry: Any, x: Any) -> Any:
            h, c = carry
            i, f, g, o = jnp.split(jnp.concatenate([x, h], -1) @ params["w"] + params["b"], 4, -1)
            c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
            h = nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), None

        start = jnp.zeros((batch, width)), jnp.zeros((batch, width))
        (h, _), _ = lax.scan(step, start, xs)
        return jnp.mean((h @ params["out"] - target) ** 2)

    return top.value_and_grad(loss), (params, xs, target)


def _built(lib: Library, f: Any, args: Any) -> tuple[float, Any]:
    """Seconds to trace, lower and compile a function without caches, and the compiled function."""
    again = lambda *a, _number=next(_numbers): f(*a)  # noqa: B008  # a new function, to avoid a cache hit
    if lib.name == "atled":
        from atled.engine import program_cache

        program_cache.forget()
    else:
        lib.top.clear_caches()
    return measure.timed(lambda: lib.top.jit(again).lower(*args).compile())


def loops(report: Any, rounds: int, is_small: bool) -> None:
    """Add the rows on loops and memory to the report."""
    import atled

    libraries = [atled_library(), jax_library()]
    ours = libraries[0]
    atled.settings.update("cache", False)
    try:
        size = (4, 64, 4, 2, 16) if is_small else (12, 256, 8, 4, 64)
        made = blocks(ours, *size)
        best = measure.once_each(
            {n: (lambda n=n: _built(ours, made[n][0], made[n][1])[0]) for n in made}, 1 if is_small else 3, 300
        )
        report.add("loops", "layers in a scan, trace + compile", best["scan"], best["unrolled"], 0.20, "unrolled")
        _lstm(report, libraries, rounds, is_small)
        _memory(report, libraries, is_small)
    finally:
        atled.settings.update("cache", True)


def _lstm(report: Any, libraries: list[Library], rounds: int, is_small: bool) -> None:
    size = (32, 4, 8, 16) if is_small else (512, 16, 64, 128)
    models = {lib.name: (lib, *recurrent(lib, *size)) for lib in libraries}
    compiled: dict[str, Any] = {}

    def build(name: str) -> float:
        lib, f, args = models[name]
        seconds, compiled[name] = _built(lib, f, args)
        return seconds

    best = measure.once_each({n: (lambda n=n: build(n)) for n in models}, 2 if is_small else 5, 300)
    report.add("loops", "LSTM in a scan, trace + compile", best["atled"], best["jax"], 0.70)
    args = {n: lib.tree.map(lib.numpy.asarray, a) for n, (lib, _, a) in models.items()}

    def step(name: str) -> float:
        lib = models[name][0]
        return measure.timed(lambda: lib.top.block_until_ready(compiled[name](*args[name])))[0]

    for n in models:
        step(n)
    best = measure.once_each({n: (lambda n=n: step(n)) for n in models}, max(10, rounds), 120)
    report.add("loops", "LSTM in a scan, step", best["atled"], best["jax"], 1.00)


def _memory(report: Any, libraries: list[Library], is_small: bool) -> None:
    size = (6, 64, 4, 2, 32) if is_small else (24, 256, 8, 8, 128)
    policies = {"nothing": lambda p: p.nothing_saveable, "dots": lambda p: p.dots_saveable}
    found: dict[Any, float] = {}
    for lib in libraries:
        for policy in ("none", *policies):
            chosen = ... if policy == "none" else policies[policy](lib.top.checkpoint_policies)
            for form, (_, (params, _, x), loss) in blocks(lib, *size, policy=chosen).items():
                if form == "unrolled" and lib.name == "jax" and policy != "nothing":
                    continue  # compiles for a minute, and is not compared
                compiled = _built(lib, lib.top.value_and_grad(loss), (params, x))[1]
                found[lib.name, form, policy] = compiled.memory_analysis().temp_size_in_bytes
    for form in ("unrolled", "scan"):
        for policy in policies:
            kept, plain = found["atled", form, policy], found["atled", form, "none"]
            target = 0.35 if policy == "nothing" else None
            report.add("memory", f"{form}, {policy} kept, bytes / none", kept, plain, target, "none")
            if ("jax", form, policy) in found:
                report.add("memory", f"{form}, {policy} kept, bytes", kept, found["jax", form, policy], 1.00)
