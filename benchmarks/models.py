"""The models of the benchmark, written once for any library with JAX's names.

`Library` holds the modules; a model is a pair of a function and its arguments. The arguments are NumPy arrays from
fixed seeds, so all libraries compute the same numbers.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass
class Library:
    """The modules of a library under test."""

    name: str
    top: Any
    numpy: Any
    lax: Any
    nn: Any
    random: Any
    tree: Any


def atled_library() -> Library:
    import atled

    return Library("atled", atled, atled.numpy, atled.lax, atled.nn, atled.random, atled.tree)


def jax_library() -> Library:
    import jax

    return Library("jax", jax, jax.numpy, jax.lax, jax.nn, jax.random, jax.tree)


def _adam(lib: Library, params: Any, grads: Any, state: Any, rate: float = 1e-3) -> tuple[Any, Any]:
    """One step of Adam on a tree."""
    jnp, tree = lib.numpy, lib.tree
    count = state["count"] + 1
    first = tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["m"], grads)
    second = tree.map(lambda v, g: 0.999 * v + 0.001 * (g * g), state["v"], grads)
    c1, c2 = 1.0 - 0.9**count, 1.0 - 0.999**count
    updated = tree.map(lambda p, m, v: p - rate * (m / c1) / (jnp.sqrt(v / c2) + 1e-8), params, first, second)
    return updated, {"m": first, "v": second, "count": count}


def _adam_state(params: Any, mapped: Any) -> Any:
    return {"m": mapped(np.zeros_like, params), "v": mapped(np.zeros_like, params), "count": np.float32(0)}


def _map(f: Any, t: Any) -> Any:
    """`tree.map` for dicts and lists, without a library."""
    if isinstance(t, dict):
        return {k: _map(f, v) for k, v in t.items()}
    return [_map(f, v) for v in t] if isinstance(t, list) else f(t)


# -- GPT-2 small ------------------------------------------------------------------------------------------------------


def gpt2(
    lib: Library,
    layers: int = 12,
    width: int = 768,
    heads: int = 12,
    vocab: int = 50257,
    batch: int = 4,
    length: int = 128,
) -> Any:
    """A train step of GPT-2: loss, gradients, Adam; layers unrolled in Python."""
    jnp, nn, top = lib.numpy, lib.nn, lib.top
    r = np.random.RandomState(0)
    draw = lambda *s: (r.randn(*s) * 0.02).astype("f4")
    block = lambda: {
        "ln1": {"g": np.ones(width, "f4"), "b": np.zeros(width, "f4")},
        "qkv": {"w": draw(width, 3 * width), "b": np.zeros(3 * width, "f4")},
        "out": {"w": draw(width, width), "b": np.zeros(width, "f4")},
        "ln2": {"g": np.ones(width, "f4"), "b": np.zeros(width, "f4")},
        "up": {"w": draw(width, 4 * width), "b": np.zeros(4 * width, "f4")},
        "down": {"w": draw(4 * width, width), "b": np.zeros(width, "f4")},
    }
    params = {
        "tokens": draw(vocab, width), "positions": draw(1024, width), "blocks": [block() for _ in range(layers)],
        "ln": {"g": np.ones(width, "f4"), "b": np.zeros(width, "f4")},
    }  # fmt: skip
    tokens = r.randint(0, vocab, (batch, length + 1)).astype("i4")

    def norm(p, x):
        mean = jnp.mean(x, axis=-1, keepdims=True)
        var = jnp.var(x, axis=-1, keepdims=True)
        return (x - mean) / jnp.sqrt(var + 1e-5) * p["g"] + p["b"]

    def dense(p, x):
        return x @ p["w"] + p["b"]

    def attention(p, x):
        b, t, d = x.shape
        q, k, v = jnp.split(dense(p["qkv"], x), 3, axis=-1)
        shaped = lambda y: y.reshape(b, t, heads, d // heads)
        q, k, v = shaped(q), shaped(k), shaped(v)
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(d // heads).astype("f4")
        mask = jnp.tril(jnp.ones((t, t), dtype=bool))
        weights = nn.softmax(jnp.where(mask, scores, -1e10), axis=-1)
        return dense(p["out"], jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(b, t, d))

    def forward(params, ids):
        t = ids.shape[1]
        x = params["tokens"][ids] + params["positions"][:t]
        for p in params["blocks"]:
            x = x + attention(p, norm(p["ln1"], x))
            x = x + dense(p["down"], nn.gelu(dense(p["up"], norm(p["ln2"], x))))
        return norm(params["ln"], x) @ params["tokens"].T

    def loss(params, tokens):
        logits = forward(params, tokens[:, :-1])
        logp = nn.log_softmax(logits, axis=-1)
        picked = jnp.take_along_axis(logp, tokens[:, 1:][..., None], axis=-1)
        return -jnp.mean(picked)

    def step(params, state, tokens):
        value, grads = top.value_and_grad(loss)(params, tokens)
        params, state = _adam(lib, params, grads, state)
        return params, state, value

    return step, (params, _adam_state(params, _map), tokens)


# -- ResNet-18 --------------------------------------------------------------------------------------------------------


def resnet18(
    lib: Library, batch: int = 32, size: int = 32, classes: int = 10, widths: tuple[int, ...] = (64, 128, 256, 512)
) -> Any:
    """A train step of ResNet-18 on small images, with batch normalization and momentum."""
    jnp, lax, nn, top, tree = lib.numpy, lib.lax, lib.nn, lib.top, lib.tree
    r = np.random.RandomState(0)
    kernel = lambda k, i, o: (r.randn(k, k, i, o) * np.sqrt(2 / (k * k * i))).astype("f4")
    bn = lambda n: {"g": np.ones(n, "f4"), "b": np.zeros(n, "f4")}
    params: dict[str, Any] = {"stem": kernel(3, 3, widths[0]), "bn": bn(widths[0]), "blocks": []}
    strides, before = [], widths[0]
    for stage, n in enumerate(widths):
        for i in range(2):
            stride = 2 if stage > 0 and i == 0 else 1
            p = {"c1": kernel(3, before, n), "b1": bn(n), "c2": kernel(3, n, n), "b2": bn(n)}
            if stride != 1 or before != n:
                p |= {"cs": kernel(1, before, n), "bs": bn(n)}
            params["blocks"].append(p)
            strides.append(stride)
            before = n
    params["head"] = {"w": (r.randn(before, classes) * 0.01).astype("f4"), "b": np.zeros(classes, "f4")}
    images, labels = r.randn(batch, size, size, 3).astype("f4"), r.randint(0, classes, batch).astype("i4")

    def conv(x, w, stride=1):
        return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def normed(p, x):
        mean, var = jnp.mean(x, axis=(0, 1, 2)), jnp.var(x, axis=(0, 1, 2))
        return (x - mean) * lax.rsqrt(var + 1e-5) * p["g"] + p["b"]

    def forward(params, x):
        x = nn.relu(normed(params["bn"], conv(x, params["stem"])))
        for p, stride in zip(params["blocks"], strides):
            y = nn.relu(normed(p["b1"], conv(x, p["c1"], stride)))
            y = normed(p["b2"], conv(y, p["c2"]))
            short = normed(p["bs"], conv(x, p["cs"], stride)) if "cs" in p else x
            x = nn.relu(y + short)
        x = jnp.mean(x, axis=(1, 2))
        return x @ params["head"]["w"] + params["head"]["b"]

    def loss(params, images, labels):
        logp = nn.log_softmax(forward(params, images))
        return -jnp.mean(jnp.sum(nn.one_hot(labels, classes) * logp, axis=-1))

    def step(params, velocity, images, labels):
        value, grads = top.value_and_grad(loss)(params, images, labels)
        velocity = tree.map(lambda v, g: 0.9 * v + g, velocity, grads)
        params = tree.map(lambda p, v: p - 0.1 * v, params, velocity)
        return params, velocity, value

    return step, (params, _map(np.zeros_like, params), images, labels)


# -- LSTM -------------------------------------------------------------------------------------------------------------


def lstm(lib: Library, steps: int = 128, batch: int = 16, inputs: int = 64, width: int = 128) -> Any:
    """Loss and gradients of an LSTM, written as a Python loop over time."""
    jnp, nn, top = lib.numpy, lib.nn, lib.top
    r = np.random.RandomState(0)
    params = {
        "wx": (r.randn(inputs, 4 * width) / np.sqrt(inputs)).astype("f4"),
        "wh": (r.randn(width, 4 * width) / np.sqrt(width)).astype("f4"),
        "b": np.zeros(4 * width, "f4"),
    }
    xs, target = r.randn(steps, batch, inputs).astype("f4"), r.randn(batch, width).astype("f4")

    def loss(params, xs, target):
        h, c = jnp.zeros((batch, width)), jnp.zeros((batch, width))
        for t in range(steps):
            gates = xs[t] @ params["wx"] + h @ params["wh"] + params["b"]
            i, f, g, o = jnp.split(gates, 4, axis=-1)
            c = nn.sigmoid(f + 1.0) * c + nn.sigmoid(i) * jnp.tanh(g)
            h = nn.sigmoid(o) * jnp.tanh(c)
        return jnp.mean((h - target) ** 2)

    return top.value_and_grad(loss), (params, xs, target)


# -- ViT-S ------------------------------------------------------------------------------------------------------------


def vit(
    lib: Library, layers: int = 12, width: int = 384, heads: int = 6, batch: int = 4, size: int = 224, patch: int = 16
) -> Any:
    """A train step of a small vision transformer, with momentum."""
    jnp, nn, top, tree = lib.numpy, lib.nn, lib.top, lib.tree
    r = np.random.RandomState(0)
    draw = lambda *s: (r.randn(*s) * 0.02).astype("f4")
    side, classes = size // patch, 1000
    block = lambda: {
        "ln1": np.ones(width, "f4"), "ln2": np.ones(width, "f4"),
        "qkv": draw(width, 3 * width), "out": draw(width, width),
        "up": draw(width, 4 * width), "down": draw(4 * width, width),
    }  # fmt: skip
    params = {
        "patches": draw(patch * patch * 3, width), "positions": draw(side * side, width),
        "blocks": [block() for _ in range(layers)], "head": draw(width, classes),
    }  # fmt: skip
    images, labels = r.randn(batch, size, size, 3).astype("f4"), r.randint(0, classes, (batch, 1)).astype("i4")

    def norm(g, x):
        mean = jnp.mean(x, axis=-1, keepdims=True)
        return (x - mean) * lib.lax.rsqrt(jnp.var(x, axis=-1, keepdims=True) + 1e-6) * g

    def attention(p, x):
        b, t, d = x.shape
        q, k, v = (y.reshape(b, t, heads, d // heads) for y in jnp.split(x @ p["qkv"], 3, axis=-1))
        weights = nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) * (d // heads) ** -0.5, axis=-1)
        return jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(b, t, d) @ p["out"]

    def loss(params, images, labels):
        x = images.reshape(batch, side, patch, side, patch, 3)
        x = jnp.einsum("bipjqc->bijpqc", x).reshape(batch, side * side, patch * patch * 3) @ params["patches"]
        x = x + params["positions"]
        for p in params["blocks"]:
            x = x + attention(p, norm(p["ln1"], x))
            x = x + nn.gelu(norm(p["ln2"], x) @ p["up"]) @ p["down"]
        logp = nn.log_softmax(jnp.mean(x, axis=1) @ params["head"], axis=-1)
        return -jnp.mean(jnp.take_along_axis(logp, labels, axis=-1))

    def step(params, velocity, images, labels):
        value, grads = top.value_and_grad(loss)(params, images, labels)
        velocity = tree.map(lambda v, g: 0.9 * v + g, velocity, grads)
        return tree.map(lambda p, v: p - 0.01 * v, params, velocity), velocity, value

    return step, (params, _map(np.zeros_like, params), images, labels)


# -- convolutions over time -------------------------------------------------------------------------------------------


def conv1d(
    lib: Library, batch: int = 16, length: int = 1024, width: int = 64, layers: int = 6, classes: int = 10
) -> Any:
    """Loss and gradients of a residual network of convolutions over time, as in audio models."""
    jnp, lax, nn, top = lib.numpy, lib.lax, lib.nn, lib.top
    r = np.random.RandomState(0)
    kernel = lambda k, i, o: (r.randn(k, i, o) / np.sqrt(k * i)).astype("f4")
    params = {
        "in": kernel(7, 1, width), "layers": [kernel(5, width, width) for _ in range(layers)],
        "head": (r.randn(width, classes) * 0.1).astype("f4"),
    }  # fmt: skip
    signal, labels = r.randn(batch, length, 1).astype("f4"), r.randint(0, classes, (batch, 1)).astype("i4")

    def conv(x, w, stride=1):
        return lax.conv_general_dilated(x, w, (stride,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))

    def loss(params, signal, labels):
        x = nn.relu(conv(signal, params["in"], 2))
        for w in params["layers"]:
            x = x + nn.relu(conv(x, w))
        logp = nn.log_softmax(jnp.mean(x, axis=1) @ params["head"], axis=-1)
        return -jnp.mean(jnp.take_along_axis(logp, labels, axis=-1))

    return top.value_and_grad(loss), (params, signal, labels)


# -- per-example gradients --------------------------------------------------------------------------------------------


def per_example(lib: Library, batch: int = 128, widths: tuple[int, ...] = (256, 512, 512, 10)) -> Any:
    """Gradients of an MLP for every example of a batch, with vmap."""
    jnp, nn, top = lib.numpy, lib.nn, lib.top
    r = np.random.RandomState(0)
    params = [
        {"w": (r.randn(i, o) / np.sqrt(i)).astype("f4"), "b": np.zeros(o, "f4")} for i, o in itertools.pairwise(widths)
    ]
    x, y = r.randn(batch, widths[0]).astype("f4"), r.randint(0, widths[-1], batch).astype("i4")

    def loss(params, x, y):
        for p in params[:-1]:
            x = nn.relu(x @ p["w"] + p["b"])
        logits = x @ params[-1]["w"] + params[-1]["b"]
        return -jnp.sum(nn.one_hot(y, widths[-1]) * nn.log_softmax(logits))

    return top.vmap(top.grad(loss), in_axes=(None, 0, 0)), (params, x, y)


MODELS = {
    "gpt2": gpt2, "resnet18": resnet18, "vit": vit, "lstm": lstm, "conv1d": conv1d, "per_example": per_example,
}  # fmt: skip
SMALL = {
    "gpt2": {"layers": 2, "width": 64, "heads": 4, "vocab": 503, "batch": 2, "length": 16},
    "resnet18": {"batch": 4, "size": 8, "widths": (8, 16)},
    "lstm": {"steps": 16, "batch": 4, "inputs": 16, "width": 16},
    "vit": {"layers": 2, "width": 32, "heads": 2, "batch": 2, "size": 32, "patch": 8},
    "conv1d": {"batch": 2, "length": 64, "width": 8, "layers": 2},
    "per_example": {"batch": 8, "widths": (16, 32, 10)},
}
