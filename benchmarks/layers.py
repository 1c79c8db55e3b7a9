"""Models made of layers, and their train steps: atled, and flax nnx with optax, from one description of each model.

`python -m benchmarks.layers` measures the overhead of a call with a model, tracing, the time to the first step of a new
process, and steps. Each row is a ratio of interleaved measurements.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import measure


class Ours:
    """Layers of atled."""

    name = "atled"

    def __init__(self) -> None:
        import atled
        from atled import nn, optim, random, train

        self.top, self.nn, self.np, self.lax = atled, nn, atled.numpy, atled.lax
        self.optim, self.random, self.train, self.Module = optim, random, train, nn.Module
        self.relu, self.gelu, self.log_softmax = nn.relu, nn.gelu, nn.log_softmax

    def keys(self, key: Any = 0) -> Any:
        return self.nn.Keys(key)

    def linear(self, i: int, o: int, keys: Any) -> Any:
        return self.nn.Linear(i, o, key=keys())

    def embedding(self, n: int, d: int, keys: Any) -> Any:
        return self.nn.Embedding(n, d, key=keys())

    def conv(self, i: int, o: int, size: Any, stride: Any, keys: Any) -> Any:
        return self.nn.Conv(i, o, size, strides=stride, use_bias=False, key=keys())

    def layer_norm(self, d: int, keys: Any) -> Any:
        return self.nn.LayerNorm(d)

    def batch_norm(self, d: int, keys: Any) -> Any:
        return self.nn.BatchNorm(d)

    def attention(self, d: int, heads: int, keys: Any) -> Any:
        return self.nn.MultiHeadAttention(d, heads, key=keys())

    def attend(self, layer: Any, x: Any, causal: bool) -> Any:
        return layer(x, is_causal=causal)

    def lstm(self, i: int, o: int, keys: Any) -> Any:
        return self.nn.RNN(self.nn.LSTMCell(i, o, key=keys()))

    def param(self, x: Any) -> Any:
        return self.nn.Param(self.np.asarray(x))

    def value(self, x: Any) -> Any:
        return x

    def several(self, items: Any) -> Any:
        return items

    def stack(self, make: Any, n: int, keys: Any) -> Any:
        return self.nn.Stack(lambda key: make(self.keys(key)), n, key=keys())

    def run_stack(self, stack: Any, x: Any) -> Any:
        return stack(x)

    def step(self, model: Any, loss: Any) -> tuple[Callable[..., Any], Any]:
        state = self.train.State(model, self.optim.AdamW(1e-3))
        run = self.train.step(loss)
        return run, state

    def ready(self, x: Any) -> None:
        self.top.block_until_ready(x)


class Flax:
    """Layers of flax nnx, with optax."""

    name = "flax"

    def __init__(self) -> None:
        import jax
        import optax
        from flax import nnx

        self.top, self.nnx, self.np, self.lax, self.optax = jax, nnx, jax.numpy, jax.lax, optax
        self.Module = nnx.Module
        self.relu, self.gelu, self.log_softmax = jax.nn.relu, jax.nn.gelu, jax.nn.log_softmax

    def keys(self, key: Any = 0) -> Any:
        return self.nnx.Rngs(key) if not isinstance(key, self.nnx.Rngs) else key

    def linear(self, i: int, o: int, keys: Any) -> Any:
        return self.nnx.Linear(i, o, rngs=keys)

    def embedding(self, n: int, d: int, keys: Any) -> Any:
        return self.nnx.Embed(n, d, rngs=keys)

    def conv(self, i: int, o: int, size: Any, stride: Any, keys: Any) -> Any:
        return self.nnx.Conv(i, o, size, strides=stride, use_bias=False, rngs=keys)

    def layer_norm(self, d: int, keys: Any) -> Any:
        return self.nnx.LayerNorm(d, rngs=keys)

    def batch_norm(self, d: int, keys: Any) -> Any:
        return self.nnx.BatchNorm(d, rngs=keys)

    def attention(self, d: int, heads: int, keys: Any) -> Any:
        return self.nnx.MultiHeadAttention(heads, d, decode=False, rngs=keys)

    def attend(self, layer: Any, x: Any, causal: bool) -> Any:
        mask = self.nnx.make_causal_mask(x[..., 0]) if causal else None
        return layer(x, mask=mask)

    def lstm(self, i: int, o: int, keys: Any) -> Any:
        return self.nnx.RNN(self.nnx.LSTMCell(i, o, rngs=keys))

    def param(self, x: Any) -> Any:
        return self.nnx.Param(self.np.asarray(x))

    def value(self, x: Any) -> Any:
        return x[...]

    def several(self, items: Any) -> Any:
        return self.nnx.List(items)

    def stack(self, make: Any, n: int, keys: Any) -> Any:
        return self.nnx.vmap(make, axis_size=n)(keys.split(n))

    def run_stack(self, stack: Any, x: Any) -> Any:
        return self.nnx.scan(lambda x, layer: layer(x), in_axes=(self.nnx.Carry, 0), out_axes=self.nnx.Carry)(x, stack)

    def step(self, model: Any, loss: Any) -> tuple[Callable[..., Any], Any]:
        nnx = self.nnx
        optimizer = nnx.Optimizer(model, self.optax.adamw(1e-3), wrt=nnx.Param)

        @nnx.jit
        def run(model: Any, optimizer: Any, *batch: Any) -> Any:
            value, grads = nnx.value_and_grad(loss)(model, *batch)
            optimizer.update(model, grads)
            return {"loss": value}

        def call(state: Any, *batch: Any) -> Any:
            return state, run(*state, *batch)

        call.lower = lambda state, *batch: run.lower(*state, *batch)  # type: ignore[attr-defined]
        return call, (model, optimizer)

    def ready(self, x: Any) -> None:
        self.top.block_until_ready(x["loss"] if isinstance(x, dict) else x)


# -- models -----------------------------------------------------------------------------------------------------------


def _block(lib: Any, width: int, heads: int, causal: bool) -> Any:
    class Block(lib.Module):
        def __init__(self, keys: Any) -> None:
            self.before = lib.layer_norm(width, keys)
            self.attention = lib.attention(width, heads, keys)
            self.between = lib.layer_norm(width, keys)
            self.up = lib.linear(width, 4 * width, keys)
            self.down = lib.linear(4 * width, width, keys)

        def __call__(self, x: Any) -> Any:
            x = x + lib.attend(self.attention, self.before(x), causal)
            return x + self.down(lib.gelu(self.up(self.between(x))))

    return Block


def _cross_entropy(lib: Any, logits: Any, labels: Any) -> Any:
    return -lib.np.take_along_axis(lib.log_softmax(logits), labels[..., None], -1).mean()


def gpt2(lib: Any, layers: int = 12, width: int = 768, batch: int = 4, length: int = 128, scanned: bool = False) -> Any:
    words = 50257 if width > 100 else 101
    block = _block(lib, width, max(width // 64, 1), True)

    class GPT(lib.Module):
        def __init__(self, keys: Any) -> None:
            self.tokens = lib.embedding(words, width, keys)
            self.places = lib.embedding(1024, width, keys)
            self.blocks = (
                lib.stack(block, layers, keys) if scanned else lib.several([block(keys) for _ in range(layers)])
            )
            self.norm = lib.layer_norm(width, keys)

        def __call__(self, ids: Any) -> Any:
            x = self.tokens(ids) + self.places(lib.np.arange(ids.shape[1]))
            if scanned:
                x = lib.run_stack(self.blocks, x)
            else:
                for b in self.blocks:
                    x = b(x)
            return self.tokens.attend(self.norm(x))

    def loss(model: Any, ids: Any) -> Any:
        return _cross_entropy(lib, model(ids[:, :-1]), ids[:, 1:])

    ids = np.random.default_rng(0).integers(0, words, (batch, length + 1)).astype("int32")
    return GPT(lib.keys()), loss, (lib.np.asarray(ids),)


def vit(lib: Any, layers: int = 12, width: int = 384, batch: int = 4, side: int = 224) -> Any:
    block = _block(lib, width, 6, False)
    count = (side // 16) ** 2

    class ViT(lib.Module):
        def __init__(self, keys: Any) -> None:
            self.patches = lib.conv(3, width, (16, 16), 16, keys)
            self.places = lib.param(np.zeros((1, count, width), "float32"))
            self.blocks = lib.several([block(keys) for _ in range(layers)])
            self.norm = lib.layer_norm(width, keys)
            self.head = lib.linear(width, 1000, keys)

        def __call__(self, x: Any) -> Any:
            x = self.patches(x).reshape(x.shape[0], count, width) + lib.value(self.places)
            for b in self.blocks:
                x = b(x)
            return self.head(self.norm(x).mean(1))

    return ViT(lib.keys()), *_images(lib, batch, side, 1000)


def _images(lib: Any, batch: int, side: int, classes: int) -> Any:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(batch, side, side, 3)).astype("float32")
    y = rng.integers(0, classes, batch).astype("int32")
    return lambda model, x, y: _cross_entropy(lib, model(x), y), (lib.np.asarray(x), lib.np.asarray(y))


def resnet18(lib: Any, batch: int = 8, side: int = 64) -> Any:
    class Block(lib.Module):
        def __init__(self, i: int, o: int, stride: int, keys: Any) -> None:
            self.first, self.norm1 = lib.conv(i, o, (3, 3), stride, keys), lib.batch_norm(o, keys)
            self.second, self.norm2 = lib.conv(o, o, (3, 3), 1, keys), lib.batch_norm(o, keys)
            is_same = i == o and stride == 1
            self.short = None if is_same else lib.conv(i, o, (1, 1), stride, keys)
            self.norm3 = None if is_same else lib.batch_norm(o, keys)

        def __call__(self, x: Any) -> Any:
            y = self.norm2(self.second(lib.relu(self.norm1(self.first(x)))))
            return lib.relu(y + (x if self.short is None else self.norm3(self.short(x))))

    class ResNet(lib.Module):
        def __init__(self, keys: Any) -> None:
            self.stem, self.norm = lib.conv(3, 64, (3, 3), 1, keys), lib.batch_norm(64, keys)
            widths = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1)]
            widths += [(256, 512, 2), (512, 512, 1)]
            self.blocks = lib.several([Block(i, o, s, keys) for i, o, s in widths])
            self.head = lib.linear(512, 100, keys)

        def __call__(self, x: Any) -> Any:
            x = lib.relu(self.norm(self.stem(x)))
            for b in self.blocks:
                x = b(x)
            return self.head(x.mean((1, 2)))

    return ResNet(lib.keys()), *_images(lib, batch, side, 100)


def lstm(lib: Any, batch: int = 16, length: int = 64, width: int = 256) -> Any:
    class Net(lib.Module):
        def __init__(self, keys: Any) -> None:
            self.tokens = lib.embedding(1000, width, keys)
            self.rnns = lib.several([lib.lstm(width, width, keys) for _ in range(2)])
            self.head = lib.linear(width, 1000, keys)

        def __call__(self, ids: Any) -> Any:
            x = self.tokens(ids)
            for r in self.rnns:
                x = r(x)
            return self.head(x)

    ids = np.random.default_rng(0).integers(0, 1000, (batch, length + 1)).astype("int32")
    loss = lambda model, ids: _cross_entropy(lib, model(ids[:, :-1]), ids[:, 1:])
    return Net(lib.keys()), loss, (lib.np.asarray(ids),)


MODELS = {"gpt2": gpt2, "resnet18": resnet18, "vit": vit, "lstm": lstm}


# -- rows -------------------------------------------------------------------------------------------------------------


def _row(what: str, times: dict[str, float], peer: str, target: float) -> None:
    ratio = times["atled"] / times[peer]
    said = "ok" if ratio <= target else "MISSED"
    unit = "MB" if "memory" in what else "ms"
    ours, theirs = [f"{times[n] * 1e3:.2f} {unit}" for n in ("atled", peer)]
    print(f"{what:<52}{ours:>14}{theirs:>14} {peer:<9}{ratio:7.3f}  ≤ {target:.2f} {said}", flush=True)


def overhead() -> None:
    """A call of the identity, with models that have as many leaves as a GPT-2 of 12 and of 24 layers."""
    import jax
    from flax import nnx

    import atled
    from atled import tree
    from atled.nn.module import Module, settled

    def as_dict(x: Any) -> Any:
        if isinstance(x, Module):
            return {n: as_dict(x.__dict__[n]) for n in settled(x).names}
        return [as_dict(v) for v in x] if isinstance(x, list) else x

    for layers, bounds in ((9, (1.10, 0.08, 1.1)), (18, (1.15, 0.08, 1.1))):
        model = gpt2(Ours(), layers, 4)[0]
        plain = as_dict(model)
        theirs = jax.tree.map(lambda x: jax.numpy.asarray(np.asarray(x)), plain)
        other = gpt2(Flax(), layers, 4)[0]
        ours, dicts = atled.jit(lambda m: m), atled.jit(lambda m: m)
        flax, jaxed = nnx.jit(lambda m: m), jax.jit(lambda m: m)
        mine = lambda f=ours, m=model: f(m)
        best = measure.interleaved(
            {"atled": mine, "dict": lambda f=dicts, m=plain: f(m), "jax dict": lambda f=jaxed, m=theirs: f(m)}, 10, 200
        )
        # measured separately: a call of nnx.jit takes twenty times as long, and evicts the CPU caches
        slow = measure.interleaved({"atled": mine, "nnx.jit": lambda f=flax, m=other: f(m)}, 5, 20)
        for peer, bound in zip(("dict", "nnx.jit", "jax dict"), bounds, strict=True):
            _row(f"call with {len(tree.leaves(model))} leaves", slow if peer in slow else best, peer, bound)


def tracing(rounds: int = 3) -> None:
    """Trace and lower the train step of a GPT-2 of 12 layers."""
    for scanned, target in ((False, 0.30), (True, 0.35)):
        candidates = {}
        for lib in (Ours(), Flax()):
            model, loss, batch = gpt2(lib, width=64, scanned=scanned)

            def run(lib: Any = lib, model: Any = model, loss: Any = loss, batch: Any = batch) -> float:
                lib.top.clear_caches()
                step, state = lib.step(model, lambda *a: loss(*a))
                start = time.perf_counter()
                step.lower(state, *batch)
                return time.perf_counter() - start

            candidates[lib.name] = run
        _row(
            f"trace and lower, {'scanned' if scanned else 'unrolled'}",
            measure.once_each(candidates, rounds),
            "flax",
            target,
        )


def first_step(rounds: int = 2) -> None:
    """Time from the start of a process to the end of the first step, without and with a cache on disk."""
    for peer_scanned, target in ((False, 0.25), (True, 0.5)):
        for is_warm in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                best = {"atled": float("inf"), "flax": float("inf")}
                for i in range(rounds + is_warm):
                    for name, scanned in (("atled", True), ("flax", peer_scanned)):
                        own = os.path.join(folder, f"{name}{'' if is_warm else i}")
                        env = {
                            **os.environ, "ATLED_CACHE_DIR": own, "JAX_COMPILATION_CACHE_DIR": own,
                            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
                            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0",
                        }  # fmt: skip
                        code = f"from benchmarks import layers; layers.one_step({name!r}, {scanned})"
                        start = time.perf_counter()
                        subprocess.run([sys.executable, "-c", code], check=True, env=env)
                        if i or not is_warm:
                            best[name] = min(best[name], time.perf_counter() - start)
            said = f"first step, {'warm' if is_warm else 'cold'}, Stack and {'nnx.scan' if peer_scanned else 'nnx'}"
            _row(said, best, "flax", target)


def one_step(name: str, scanned: bool) -> None:
    """Create a model and run a step, in the process that `first_step` measures."""
    lib: Any = Ours() if name == "atled" else Flax()
    model, loss, batch = gpt2(lib, width=256, batch=2, length=64, scanned=scanned)
    step, state = lib.step(model, loss)
    lib.ready(step(state, *batch)[1])


def steps(names: list[str], rounds: int = 5) -> None:
    """One step of training, against flax and, if installed, PyTorch."""
    for name in names:
        candidates = {}
        for lib in (Ours(), Flax(), *torch_layers()):
            model, loss, batch = MODELS[name](lib)
            step, state = lib.step(model, loss)
            box = [state]

            def run(lib: Any = lib, step: Any = step, box: Any = box, batch: Any = batch) -> None:
                box[0], out = step(box[0], *batch)
                lib.ready(out)

            candidates[lib.name] = run
        best = measure.interleaved(candidates, 1, rounds)
        for peer, target in (("flax", 0.9), ("torch", 1.0)):
            if peer in best:
                _row(f"step, {name}", best, peer, target)


def torch_layers() -> list[Any]:
    """A list with PyTorch's layers, empty if PyTorch is not installed."""
    if importlib.util.find_spec("torch") is None:
        return []
    from benchmarks.torch_layers import Torch

    return [Torch()]


def memory(rounds: int = 3) -> None:
    """Memory and time of chunked attention and of the loss of a large vocabulary, against the plain functions."""
    import atled
    import atled.numpy as jnp
    from atled import nn, random
    from atled.nn import losses

    qkv = [random.normal(random.key(i), (1, 8192, 4, 64)) for i in range(3)]
    x, table = random.normal(random.key(0), (4096, 768)), random.normal(random.key(1), (50257, 768)) * 0.02
    labels = random.randint(random.key(2), (4096,), 0, 50257)
    rows = {
        "attention, 8192 tokens": (
            qkv, 0.1, 1.3, (0, 1, 2),
            lambda *xs: nn.dot_product_attention(*xs, is_causal=True),
            lambda *xs: nn.memory_efficient_attention(*xs, is_causal=True),
        ),
        "cross entropy, 50257 classes": (
            (x, table, labels), 0.3, 1.1, (0, 1),
            lambda x, table, labels: losses.cross_entropy(x @ table.T, labels),
            losses.linear_cross_entropy,
        ),
    }  # fmt: skip
    for name, (args, most, slowest, by, plain, lean) in rows.items():
        for what in ("forward", "gradient"):

            def made(f: Any, what: Any = what, by: Any = by, args: Any = args) -> Any:
                g = f if what == "forward" else atled.value_and_grad(lambda *xs: jnp.sum(jnp.sin(f(*xs))), argnums=by)
                return atled.jit(g).lower(*args).compile()

            compiled = {"atled": made(lean), "plain": made(plain)}
            used = {n: c.memory_analysis().temp_size_in_bytes / 1e9 for n, c in compiled.items()}
            _row(f"{name}, {what}: memory", used, "plain", most)
            run = {n: lambda c=c, args=args: atled.block_until_ready(c(*args)) for n, c in compiled.items()}
            _row(f"{name}, {what}: time", measure.interleaved(run, 1, rounds), "plain", slowest)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="overhead,tracing,first,steps,memory", help="comma separated")
    parser.add_argument("--models", default=",".join(MODELS), help="comma separated")
    options = parser.parse_args()
    parts = {
        "overhead": overhead,
        "tracing": tracing,
        "first": first_step,
        "steps": lambda: steps(options.models.split(",")),
        "memory": memory,
    }
    for name in options.parts.split(","):
        parts[name]()


if __name__ == "__main__":
    main()
