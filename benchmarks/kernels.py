"""Compiled kernels, each against JAX, PyTorch and the limit of the machine.

A kernel is written once for atled and JAX, and once for PyTorch. `--scale 0.37` runs the table at other, odd sizes, to
find optimizations that only help at the default sizes.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import measure
from benchmarks.models import Library, atled_library, jax_library

STRICT = 1.05  # allowed ratio to JAX's time; with --strict, a higher ratio is a failure
VOCABULARY = 50257


@dataclass(frozen=True)
class Kernel:
    """A function of arrays, for atled and JAX and for PyTorch. `flops` are the float operations of its contractions."""

    family: str
    name: str
    arrays: tuple[np.ndarray, ...]
    ours: Callable[[Library], Callable[..., Any]]
    torch: Callable[[Any], Callable[..., Any]] | None = None
    flops: float = 0.0
    gradient: tuple[int, ...] = ()  # arguments of the gradient, if any; then the last array is the cotangent

    def call(self, lib: Library) -> Callable[[], Any]:
        """A call of the compiled kernel on its arrays, for atled or JAX."""
        f = self.ours(lib)
        if self.gradient:
            f = _pullback(lib, f, self.gradient)
        f = lib.top.jit(f)
        arrays = [lib.numpy.asarray(a) for a in self.arrays]
        return lambda: lib.top.block_until_ready(f(*arrays))

    def call_torch(self, torch: Any) -> Callable[[], Any]:
        """A call of the kernel on its arrays, for PyTorch."""
        assert self.torch is not None
        f = self.torch(torch)
        arrays = [_tensor(torch, a) for a in self.arrays]
        if not self.gradient:
            return torch.no_grad()(lambda: f(*arrays))
        *args, cotangent = arrays
        wanted = [args[i].requires_grad_() for i in self.gradient]
        return lambda: torch.autograd.grad(f(*args), wanted, cotangent)


def _pullback(lib: Library, f: Callable[..., Any], positions: tuple[int, ...]) -> Callable[..., Any]:
    def pulled(*arrays: Any) -> Any:
        *args, cotangent = arrays

        def of_some(*some: Any) -> Any:
            full = list(args)
            for i, v in zip(positions, some, strict=True):
                full[i] = v
            return f(*full)

        return lib.top.vjp(of_some, *[args[i] for i in positions])[1](cotangent)

    return pulled


def _tensor(torch: Any, a: np.ndarray) -> Any:
    if a.dtype.name == "bfloat16":
        return torch.from_numpy(a.view(np.int16)).view(torch.bfloat16)
    return torch.as_tensor(a)


# -- the rows ---------------------------------------------------------------------------------------------------------


def kernels(scale: float = 1.0) -> Iterator[Kernel]:
    """All kernels, with lengths of axes multiplied by `scale`, except of small axes."""
    n = lambda length: max(1, round(length * scale))
    draw = np.random.default_rng(0)
    floats = lambda *dims: draw.standard_normal(dims, np.float32)
    below = lambda top, *dims: draw.integers(0, top, dims, np.int32)
    for part in (_normalizations, _reductions, _layouts, _orders, _transforms, _indexing, _contractions):
        yield from part(n, floats, below)
    for part in (_convolutions, _linalg, _random, _decoding):
        yield from part(n, floats, below)


def _both(family: str, name: str, arrays: Any, cotangent: Any, ours: Any, torch: Any, which: Any = (0,)) -> Any:
    """Two rows: a kernel and its gradient."""
    yield Kernel(family, name, arrays, ours, torch)
    yield Kernel(family, f"{name}, gradient", (*arrays, cotangent), ours, torch, gradient=which)


def _normalizations(n: Any, floats: Any, below: Any) -> Iterator[Kernel]:
    x = floats(n(4096), n(1024))
    yield from _both(
        "softmax", "softmax", (x,), floats(*x.shape), lambda lib: lib.nn.softmax, lambda t: lambda x: t.softmax(x, -1)
    )
    scores, length = floats(n(48), n(256), n(256)), n(256)
    causal = np.tril(np.ones((length, length), bool))
    below_diagonal = lambda lib: lib.numpy.tril(lib.numpy.ones((length, length), bool))
    yield from _both(
        "softmax", "causal softmax", (scores,), floats(*scores.shape),
        lambda lib: lambda s: lib.nn.softmax(lib.numpy.where(below_diagonal(lib), s, -1e10)),
        lambda t: lambda s: t.softmax(t.where(t.from_numpy(causal), s, -1e10), -1),
    )  # fmt: skip
    yield from _both(
        "softmax", "log_softmax", (x,), floats(*x.shape),
        lambda lib: lib.nn.log_softmax, lambda t: lambda x: t.log_softmax(x, -1),
    )  # fmt: skip

    def layer_norm(lib: Library) -> Any:
        def f(x: Any, g: Any, b: Any) -> Any:
            mean, var = lib.numpy.mean(x, -1, keepdims=True), lib.numpy.var(x, -1, keepdims=True)
            return (x - mean) * lib.lax.rsqrt(var + 1e-5) * g + b

        return f

    width = x.shape[1]
    yield from _both(
        "layer norm", "layer norm", (x, floats(width), floats(width)), floats(*x.shape), layer_norm,
        lambda t: lambda x, g, b: t.nn.functional.layer_norm(x, (width,), g, b), (0, 1, 2),
    )  # fmt: skip
    gelu = lambda t: lambda x: t.nn.functional.gelu(x, approximate="tanh")
    yield from _both("gelu", "gelu", (x,), floats(*x.shape), lambda lib: lib.nn.gelu, gelu)
    yield from _both(
        "gelu", "gelu, exact", (x,), floats(*x.shape),
        lambda lib: lambda x: lib.nn.gelu(x, approximate=False), lambda t: t.nn.functional.gelu,
    )  # fmt: skip
    logits, labels = floats(n(512), VOCABULARY), below(VOCABULARY, n(512))

    def cross_entropy(lib: Library) -> Any:
        def f(logits: Any, labels: Any) -> Any:
            picked = lib.numpy.take_along_axis(lib.nn.log_softmax(logits), labels[:, None], -1)
            return -lib.numpy.mean(picked)

        return f

    yield from _both(
        "cross entropy", "cross entropy, 50,257", (logits, labels), np.float32(1), cross_entropy,
        lambda t: lambda x, y: t.nn.functional.cross_entropy(x, y.long()),
    )  # fmt: skip


def _reductions(n: Any, floats: Any, below: Any) -> Iterator[Kernel]:
    x = floats(n(4096), n(1024))
    for name, ours, torch in [
        ("sum", lambda lib: lib.numpy.sum, lambda t: t.sum),
        ("sum over rows", lambda lib: lambda x: lib.numpy.sum(x, 1), lambda t: lambda x: t.sum(x, 1)),
        ("sum over columns", lambda lib: lambda x: lib.numpy.sum(x, 0), lambda t: lambda x: t.sum(x, 0)),
        ("max over rows", lambda lib: lambda x: lib.numpy.max(x, 1), lambda t: lambda x: t.amax(x, 1)),
        ("max over columns", lambda lib: lambda x: lib.numpy.max(x, 0), lambda t: lambda x: t.amax(x, 0)),
        ("variance over rows", lambda lib: lambda x: lib.numpy.var(x, 1), lambda t: lambda x: t.var(x, 1)),
        ("logsumexp over rows", lambda lib: lambda x: lib.nn.logsumexp(x, 1), lambda t: lambda x: t.logsumexp(x, 1)),
        ("argmax over rows", lambda lib: lambda x: lib.numpy.argmax(x, 1), lambda t: lambda x: t.argmax(x, 1)),
        ("argmax over columns", lambda lib: lambda x: lib.numpy.argmax(x, 0), lambda t: lambda x: t.argmax(x, 0)),
    ]:
        yield Kernel("reductions", name, (x,), ours, torch)
    yield Kernel(
        "reductions", "max over rows, gradient", (x, floats(x.shape[0])),
        lambda lib: lambda x: lib.numpy.max(x, 1), lambda t: lambda x: t.amax(x, 1), gradient=(0,),
    )  # fmt: skip


def _layouts(n: Any, floats: Any, below: Any) -> Iterator[Kernel]:
    square, four = floats(n(2048), n(2048)), floats(n(16), n(256), 12, n(64))
    for name, array, axes in [
        ("transpose", square, (1, 0)),
        ("heads to the front", four, (0, 2, 1, 3)),
        ("channels to the front", four, (0, 3, 1, 2)),
    ]:
        yield Kernel(
            "transposes", name, (array,),
            lambda lib, axes=axes: lambda x: lib.numpy.transpose(x, axes),
            lambda t, axes=axes: lambda x: x.permute(axes).contiguous(),
        )  # fmt: skip
    yield Kernel("transposes", "x + x.T", (square,), lambda lib: lambda x: x + x.T, lambda t: lambda x: x + x.T)
    yield Kernel(
        "transposes", "concatenate", (square, square),
        lambda lib: lambda x, y: lib.numpy.concatenate([x, y], 1), lambda t: lambda x, y: t.cat([x, y], 1),
    )  # fmt: skip
    yield Kernel(
        "transposes", "flip", (square,), lambda lib: lambda x: lib.numpy.flip(x, 1), lambda t: lambda x: x.flip(1)
    )


def _orders(n: Any, floats: Any, below: Any) -> Iterator[Kernel]:
    x, rows, k = floats(n(1_000_000)), floats(n(1000), n(1000)), 50
    integers = below(1 << 30, n(1_000_000))
    for name, arrays, ours, torch in [
        ("sort", (x,), lambda lib: lib.numpy.sort, lambda t: t.sort),
        ("sort, int32", (integers,), lambda lib: lib.numpy.sort, lambda t: t.sort),
        ("sort, rows", (rows,), lambda lib: lib.numpy.sort, lambda t: t.sort),
        ("argsort", (x,), lambda lib: lib.numpy.argsort, lambda t: t.argsort),
        ("argsort, rows", (rows,), lambda lib: lib.numpy.argsort, lambda t: t.argsort),
        ("top_k", (x,), lambda lib: lambda x: lib.lax.top_k(x, k), lambda t: lambda x: t.topk(x, k)),
        ("top_k, rows", (rows,), lambda lib: lambda x: lib.lax.top_k(x, k), lambda t: lambda x: t.topk(x, k)),
        ("median", (x,), lambda lib: lib.numpy.median, lambda t: t.median),
        ("argmax", (x,), lambda lib: lib.numpy.argmax, lambda t: t.argmax),
        ("cumsum", (x,), lambda lib: lib.numpy.cumsum, lambda t: lambda x: t.cumsum(x, 0)),
        ("cumsum, rows", (rows,), lambda lib: lambda x: lib.numpy.cumsum(x, 1), lambda t: lambda x: t.cumsum(x, 1)),
    ]:
        yield Kernel("orders", name, arrays, ours, torch)


def _transforms(n: Any, floats: Any, below: Any) -> Iterator[Kernel]:
    long, rows, image = floats(n(1 << 18)), floats(n(512), n(1024)), floats(n(512), n(512))
    of = lambda name: (lambda lib: getattr(lib.numpy.fft, name), lambda t: getattr(t.fft, name))
    yield Kernel("fft", "fft", (long.astype(np.complex64),), *of("fft"))
    yield Kernel("fft", "rfft, rows", (rows,), *of("rfft"))
    yield Kernel("fft", "fft2", (image.astype(np.complex64),), *of("fft2"))


def _indexing(n: Any, floats: Any, below: Any) -> Iterator[Kernel]:
    flat, places = floats(n(1_000_000)), below(n(1_000_000), n(1_000_000))
    table, rows = floats(n(50_000), n(256)), below(n(50_000), n(4096))
    take, take_t = lambda lib: lambda x, i: x[i], lambda t: lambda x, i: x[i.long()]
    yield from _both("gather", "gather elements", (flat, places), floats(places.size), take, take_t)
    yield from _both("gather", "gather rows", (table, rows), floats(rows.size, table.shape[1]), take, take_t)
    wide, column = floats(n(4096), n(1024)), below(n(1024), n(4096), 1)
    yield from _both(
        "gather", "one of each row", (wide, column), floats(wide.shape[0], 1),
        lambda lib: lambda x, i: lib.numpy.take_along_axis(x, i, 1), lambda t: lambda x, i: t.gather(x, 1, i.long()),
    )  # fmt: skip
    for name, target, at, new in [
        ("elements", flat, places, floats(places.size)),
        ("rows", table, rows, floats(rows.size, table.shape[1])),
    ]:
        yield Kernel(
            "scatter", f"add {name}", (target, at, new),
            lambda lib: lambda x, i, v: x.at[i].add(v), lambda t: lambda x, i, v: x.index_add(0, i, v),
        )  # fmt: skip
        yield Kernel(
            "scatter", f"set {name}", (target, at, new),
            lambda lib: lambda x, i, v: x.at[i].set(v), lambda t: lambda x, i, v: x.index_copy(0, i.long(), v),
        )  # fmt: skip
    ids, count = np.sort(below(n(1000), n(100_000))), n(1000)
    values = floats(n(100_000), 64)
    yield Kernel(
        "scatter", "segment sum", (values, ids),
        lambda lib: lambda v, i: lib.top.ops.segment_sum(v, i, count),
        lambda t: lambda v, i: t.zeros(count, 64).index_add(0, i, v),
    )  # fmt: skip


def _contractions(n: Any, floats: Any, below: Any) -> Iterator[Kernel]:
    import ml_dtypes

    m, k, p = n(1024), n(1024), n(1024)
    integers = lambda *dims: below(100, *dims).astype(np.int8)
    for dtype, make in [
        ("f32", floats),
        ("bf16", lambda *dims: floats(*dims).astype(ml_dtypes.bfloat16)),
        ("f16", lambda *dims: floats(*dims).astype(np.float16)),
        ("int8", integers),
    ]:
        for left, right in itertools.product(("", ".T"), repeat=2):
            a, b = make(*((k, m) if left else (m, k))), make(*((p, k) if right else (k, p)))
            yield Kernel(
                    f"matmul {dtype}", f"A{left} @ B{right}", (a, b),
                    functools.partial(_product, left, right, dtype),
                    functools.partial(_product_torch, left, right, dtype),
                    2.0 * m * k * p,
                )  # fmt: skip
    for dtype, cast in [("f32", np.float32), ("bf16", ml_dtypes.bfloat16)]:
        small = floats(n(2048), 32, 32).astype(cast)
        heads, keys = floats(n(48), n(256), 64).astype(cast), floats(n(48), n(256), 64).astype(cast)
        yield Kernel(
            "matmul batched", f"2048 of 32 x 32, {dtype}", (small, small),
            lambda lib: lib.numpy.matmul, lambda t: t.matmul, 2.0 * small.size * 32,
        )  # fmt: skip
        yield Kernel(
            "matmul batched", f"Q @ K.T of 48 heads, {dtype}", (heads, keys),
            lambda lib: lambda q, k: q @ lib.numpy.swapaxes(k, 1, 2), lambda t: lambda q, k: q @ k.transpose(1, 2),
            2.0 * heads.size * heads.shape[1],
        )  # fmt: skip
    vector = floats(n(4096))
    yield Kernel(
        "matmul batched", "matrix times vector", (floats(n(4096), n(4096)), vector),
        lambda lib: lib.numpy.matmul, lambda t: t.matmul, 2.0 * n(4096) ** 2,
    )  # fmt: skip


def _product(left: str, right: str, dtype: str, lib: Library) -> Any:
    wanted = "int32" if dtype == "int8" else None
    turned = lambda x, turn: x.T if turn else x
    return lambda a, b: lib.numpy.matmul(turned(a, left), turned(b, right), preferred_element_type=wanted)


def _product_torch(left: str, right: str, dtype: str, torch: Any) -> Any:
    turned = lambda x, turn: x.T if turn else x
    product = torch._int_mm if dtype == "int8" else torch.matmul
    return lambda a, b: product(turned(a, left), turned(b, right))


def _convolutions(n: Any, floats: Any, below: Any) -> Iterator[Kernel]:
    for name, dims, size, stride in [
        ("1d, 64 channels", (16, n(1024), 64), (5, 64, 64), 1),
        ("2d, 3 to 64 channels", (8, n(64), n(64), 3), (7, 7, 3, 64), 2),
        ("2d, 64 channels", (8, n(32), n(32), 64), (3, 3, 64, 64), 1),
        ("2d, 256 channels", (8, n(14), n(14), 256), (3, 3, 256, 256), 1),
    ]:
        spatial = len(dims) - 2
        numbers = ("NWC", "WIO", "NWC") if spatial == 1 else ("NHWC", "HWIO", "NHWC")
        images, kernel = floats(*dims), floats(*size)

        def conv(lib: Library, spatial: int = spatial, numbers: Any = numbers, stride: int = stride) -> Any:
            return lambda x, w: lib.lax.conv_general_dilated(
                x, w, (stride,) * spatial, "SAME", dimension_numbers=numbers
            )

        def conv_torch(t: Any, spatial: int = spatial, stride: int = stride, width: int = size[0]) -> Any:
            apply = t.nn.functional.conv1d if spatial == 1 else t.nn.functional.conv2d
            front, back = (0, spatial + 1, *range(1, spatial + 1)), (spatial + 1, spatial, *range(spatial))
            again = (0, *range(2, spatial + 2), 1)

            def f(x: Any, w: Any) -> Any:
                return apply(x.permute(front), w.permute(back), stride=stride, padding=width // 2).permute(again)

            return f

        outs = tuple(-(-d // stride) for d in dims[1:-1])
        flops = 2.0 * dims[0] * np.prod(outs) * np.prod(size)
        cotangent = floats(dims[0], *outs, size[-1])
        torches = conv_torch if all(-(-d // stride) == (d - 1) // stride + 1 for d in dims[1:-1]) else None
        yield Kernel("convolution", name, (images, kernel), conv, torches, flops)
        yield Kernel("convolution", f"{name}, input gradient", (images, kernel, cotangent), conv, torches, flops, (0,))
        yield Kernel("convolution", f"{name}, kernel gradient", (images, kernel, cotangent), conv, torches, flops, (1,))
    x = floats(8, n(64), n(64), 64)
    pool = lambda lib: lambda x: lib.lax.reduce_window(x, -np.inf, lib.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    half = n(64) // 2
    yield from _both(
        "pooling", "max pool 2 x 2", (x,), floats(8, half, half, 64), pool,
        lambda t: lambda x: t.nn.functional.max_pool2d(x.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1),
    )  # fmt: skip


def _linalg(n: Any, floats: Any, below: Any) -> Iterator[Kernel]:
    size = n(256)
    a, b = floats(size, size), floats(size, size)
    positive = (a @ a.T + size * np.eye(size)).astype(np.float32)
    linalg = lambda name, **more: (
        lambda lib: lambda *x: getattr(lib.numpy.linalg, name)(*x, **more),
        lambda t: lambda *x: getattr(t.linalg, name)(*x, **more),
    )
    yield Kernel("linalg", "solve", (positive, b), *linalg("solve"))
    yield Kernel("linalg", "cholesky", (positive,), *linalg("cholesky"))
    yield Kernel("linalg", "qr", (a,), *linalg("qr"))
    yield Kernel("linalg", "inv", (positive,), *linalg("inv"))
    yield Kernel("linalg", "eigh", (positive,), *linalg("eigh"))
    yield Kernel("linalg", "svd", (a,), *linalg("svd", full_matrices=False))


def _random(n: Any, floats: Any, below: Any) -> Iterator[Kernel]:
    dims = (n(1_000_000),)

    def drawn(lib: Library, draw: str) -> Any:
        key = lambda seed: lib.random.key(seed)
        return lambda seed: getattr(lib.random, draw)(key(seed), dims)

    for name, torch in [
        ("normal", lambda t: lambda seed: t.randn(dims)),
        ("uniform", lambda t: lambda s: t.rand(dims)),
    ]:
        yield Kernel("random", name, (np.int32(0),), functools.partial(drawn, draw=name), torch)
    yield Kernel(
        "random", "permutation", (np.int32(0),),
        lambda lib: lambda seed: lib.random.permutation(lib.random.key(seed), dims[0] // 10),
        lambda t: lambda seed: t.randperm(dims[0] // 10),
    )  # fmt: skip


def _decoding(n: Any, floats: Any, below: Any) -> Iterator[Kernel]:
    heads, size, length = 12, 64, n(1024)
    width = heads * size
    weights = tuple(
        floats(*dims) * 0.02 for dims in [(width, 3 * width), (width, width), (width, 4 * width), (4 * width, width)]
    )

    def step(lib: Library) -> Any:
        jnp, lax, nn = lib.numpy, lib.lax, lib.nn

        def norm(x: Any) -> Any:
            x = x - jnp.mean(x, -1, keepdims=True)
            return x / jnp.sqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5)

        def f(x: Any, keys: Any, values: Any, at: Any, qkv: Any, out: Any, up: Any, down: Any) -> Any:
            q, k, v = jnp.split(norm(x) @ qkv, 3, -1)
            q, k, v = (y.reshape(1, heads, size) for y in (q, k, v))
            keys = lax.dynamic_update_slice(keys, k, (at, 0, 0))
            values = lax.dynamic_update_slice(values, v, (at, 0, 0))
            scores = jnp.einsum("qhd,khd->hqk", q, keys) / size**0.5
            shares = nn.softmax(jnp.where(jnp.arange(length) <= at, scores, -jnp.inf))
            x = x + jnp.einsum("hqk,khd->qhd", shares, values).reshape(1, width) @ out
            return x + nn.gelu(norm(x) @ up) @ down, keys, values

        return f

    def step_torch(t: Any) -> Any:
        functional = t.nn.functional

        def f(x: Any, keys: Any, values: Any, at: Any, qkv: Any, out: Any, up: Any, down: Any) -> Any:
            i = int(at)
            q, k, v = (functional.layer_norm(x, (width,)) @ qkv).split(width, -1)
            keys[i], values[i] = k.view(heads, size), v.view(heads, size)
            y = functional.scaled_dot_product_attention(
                q.view(heads, 1, size), keys[: i + 1].transpose(0, 1), values[: i + 1].transpose(0, 1)
            )
            x = x + y.reshape(1, width) @ out
            return x + functional.gelu(functional.layer_norm(x, (width,)) @ up, approximate="tanh") @ down, keys, values

        return f

    arrays = (
        floats(1, width),
        floats(length, heads, size),
        floats(length, heads, size),
        np.int32(length // 2),
        *weights,
    )
    yield Kernel("decoding", "a token with a KV cache", arrays, step, step_torch, 2.0 * sum(w.size for w in weights))


# -- measuring --------------------------------------------------------------------------------------------------------


@functools.cache
def rates() -> tuple[float, float]:
    """The limits of the machine: bytes copied per second, and float operations per second in a matrix product."""
    source, a = np.ones(1 << 25, np.float32), np.ones((2048, 2048), np.float32)
    target = np.empty_like(source)
    copy = measure.interleaved({"copy": lambda: np.copyto(target, source)}, 1, 10)["copy"]
    product = measure.interleaved({"product": lambda: a @ a}, 1, 10)["product"]
    return 2.0 * source.nbytes / copy, 2.0 * 2048**3 / product


def limit(kernel: Kernel, result_bytes: int) -> float:
    """A lower bound of the seconds for a kernel, from the bytes of its arrays and the operations of its products."""
    bytes_a_second, flops_a_second = rates()
    moved = sum(a.nbytes for a in kernel.arrays) + result_bytes
    return max(moved / bytes_a_second, kernel.flops / flops_a_second)


def step_limit(compiled: Any, arguments: Any) -> float:
    """A lower bound of the seconds for a compiled step, from its operations and one read and write of its arguments."""
    bytes_a_second, flops_a_second = rates()
    moved = 2.0 * sum(int(x.nbytes) for x in atled_library().tree.leaves(arguments))
    return compiled.cost_analysis()["flops"] / flops_a_second + moved / bytes_a_second


def keep_pages() -> None:
    """Make malloc keep freed memory; otherwise random page faults dominate the time of kernels with large results."""
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # only in glibc
    for option, value in [(-4, 0), (-1, 2**31 - 1), (-8, 1)] if mallopt else []:  # no mmap, no trimming, one arena
        mallopt(option, value)


def measured(kernel: Kernel, torch: Any, rounds: int, seconds: float = 0.004) -> dict[str, float]:
    """The best seconds of each library, and the lower bound of the machine."""
    libraries = (atled_library(), jax_library())
    candidates = {lib.name: kernel.call(lib) for lib in libraries}
    out = candidates["atled"]()
    size = sum(int(x.nbytes) for x in libraries[0].tree.leaves(out))
    began = time.perf_counter()
    candidates["jax"]()
    calls = max(1, min(1000, int(seconds / (time.perf_counter() - began))))
    best = measure.interleaved(candidates, calls, rounds)
    if torch is not None and kernel.torch is not None:  # last, because its threads keep spinning for a while
        best |= measure.interleaved({"torch": kernel.call_torch(torch)}, calls, max(3, rounds // 2))
    return {**best, "limit": limit(kernel, size)}


def table(report: Any, rounds: int, scale: float, is_quick: bool, only: list[str]) -> None:
    """Add rows to the report: each kernel, the mean of each family, and the mean over families."""
    keep_pages()
    try:
        import torch
    except ImportError:
        torch = None
    else:
        torch.set_num_threads(2)
    families: dict[str, list[float]] = {}
    shown = list(kernels(0.05 if is_quick else scale))
    for kernel in shown[:: 9 if is_quick else 1]:
        if only and not any(word in f"{kernel.family}: {kernel.name}" for word in only):
            continue
        best = measured(kernel, torch, 3 if is_quick else rounds)
        families.setdefault(kernel.family, []).append(best["atled"] / best["jax"])
        others = {name: best[name] for name in ("torch", "limit") if name in best}
        report.add("kernels", f"{kernel.family}: {kernel.name}", best["atled"], best["jax"], STRICT, others=others)
    means = {name: float(np.exp(np.mean(np.log(found)))) for name, found in families.items()}
    for name, mean in means.items():
        report.note("kernels", f"mean of {name}", mean, None)
    report.note("kernels", f"mean of {len(means)} families", float(np.exp(np.mean(np.log(list(means.values()))))), 0.80)
