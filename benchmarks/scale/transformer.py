"""A large transformer's train step, to compile only: layers in a scan with remat, AdamW, bfloat16 on float32 state.

Weights are sharded over both axes of a mesh: over `model` for tensor parallelism, and over `data` for fully sharded
data parallelism, in which each layer gathers its weights. The step never runs, so its arguments are shapes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import atled
import atled.numpy as jnp
from atled import lax, nn
from atled.sharding import Mesh, NamedSharding
from atled.sharding import PartitionSpec as P


@dataclass(frozen=True)
class Size:
    """The sizes of a model."""

    layers: int
    width: int
    heads: int
    length: int = 2048
    vocab: int = 50304

    @property
    def shapes(self) -> dict[str, tuple[tuple[int, ...], P]]:
        """Shape and partition spec of every weight; weights of layers are stacked."""
        n, d = self.layers, self.width
        return {
            "tokens": ((self.vocab, d), P("model", "data")),
            "scale": ((d,), P()),
            "scale1": ((n, d), P()),
            "scale2": ((n, d), P()),
            "qkv": ((n, 3, d, d), P(None, None, "data", "model")),
            "out": ((n, d, d), P(None, "model", "data")),
            "up": ((n, d, 4 * d), P(None, "data", "model")),
            "down": ((n, 4 * d, d), P(None, "model", "data")),
        }

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        return 12 * self.layers * self.width**2 + self.vocab * self.width


SIZES = {"1.3B": Size(24, 2048, 16), "11B": Size(34, 5120, 40)}
LAYER = ("scale1", "scale2", "qkv", "out", "up", "down")


def train_step(size: Size, mesh: Mesh) -> Any:
    """The jitted `step(weights, first, second, count, tokens)`: a step of AdamW on the next-token loss."""

    def split(x: Any, *spec: Any) -> Any:
        return lax.with_sharding_constraint(x, NamedSharding(mesh, P(*spec)))

    def normed(x: Any, scale: Any) -> Any:
        wide = x.astype("float32")
        return (wide * lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + 1e-6) * scale).astype("bfloat16")

    def attention(x: Any, qkv: Any, out: Any) -> Any:
        b, t, d = x.shape
        q, k, v = [(x @ qkv[i]).reshape(b, t, size.heads, d // size.heads) for i in range(3)]
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype("float32") * (d // size.heads) ** -0.5
        mask = jnp.tril(jnp.ones((t, t), dtype=bool))
        weights = nn.softmax(jnp.where(mask, scores, -1e10), axis=-1).astype("bfloat16")
        return jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(b, t, d) @ out

    @atled.remat
    def layer(x: Any, w: Any) -> Any:
        w = {k: v if k.startswith("scale") else v.astype("bfloat16") for k, v in w.items()}
        x = split(x + attention(normed(x, w["scale1"]), w["qkv"], w["out"]), "data")
        return split(x + nn.gelu(normed(x, w["scale2"]) @ w["up"]) @ w["down"], "data")

    def loss(weights: Any, tokens: Any) -> Any:
        table = weights["tokens"].astype("bfloat16")
        x = split(table[tokens[:, :-1]], "data")
        x, _ = lax.scan(lambda x, w: (layer(x, w), None), x, {k: weights[k] for k in LAYER})
        logits = split(normed(x, weights["scale"]) @ table.T, "data", None, "model").astype("float32")
        picked = jnp.sum(logits * nn.one_hot(tokens[:, 1:], size.vocab), axis=-1)
        return jnp.mean(nn.logsumexp(logits, axis=-1) - picked)

    def step(weights: Any, first: Any, second: Any, count: Any, tokens: Any) -> Any:
        value, grads = atled.value_and_grad(loss)(weights, tokens)
        count = count + 1
        first = {k: 0.9 * first[k] + 0.1 * g for k, g in grads.items()}
        second = {k: 0.95 * second[k] + 0.05 * (g * g) for k, g in grads.items()}
        c1, c2 = 1 - 0.9**count, 1 - 0.95**count

        def moved(k: str, w: Any) -> Any:
            return w - 3e-4 * (first[k] / c1 / (jnp.sqrt(second[k] / c2) + 1e-8) + 0.1 * w)

        return {k: moved(k, w) for k, w in weights.items()}, first, second, count, value

    state = {k: NamedSharding(mesh, spec) for k, (_, spec) in size.shapes.items()}
    return atled.jit(step, donate_argnums=(0, 1, 2, 3), out_shardings=(state, state, state, None, None))


def arguments(size: Size, mesh: Mesh, batch: int) -> tuple[Any, ...]:
    """The arguments of a step, as shapes with shardings."""
    of = lambda shape, dtype, spec: atled.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))
    state = {k: of(shape, "float32", spec) for k, (shape, spec) in size.shapes.items()}
    return state, state, state, of((), "float32", P()), of((batch, size.length + 1), "int32", P("data"))
