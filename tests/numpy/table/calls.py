"""What a row of the table is: the text of a call, the arrays it is made on, and what holds for it.

The text is evaluated with the names of one library or the other: `call(atled.numpy, arrays)` and `call(numpy, arrays)`.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes  # noqa: F401  (NumPy learns about bfloat16)
import numpy as np

import atled
import atled.numpy as jnp

PUBLIC = [
    *jnp.__all__,
    *[f"linalg.{n}" for n in jnp.linalg.__all__],
    *[f"fft.{n}" for n in jnp.fft.__all__],
]
REPRESENTATIVE = {
    "f": ("float16", "bfloat16", "float64"),
    "i": ("int32",),
    "u": ("uint8",),
    "b": ("bool",),
    "c": ("complex64",),
}
EXTREME = {"int32": (-(2**31), 2**31 - 1, -1, 0, 1, 7), "uint8": (0, 1, 255, 128, 5)}
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-3, 40.0])


@dataclasses.dataclass(frozen=True)
class Operand:
    """An array to be drawn. Those that vary take the dtype that is asked for; the others are what they are."""

    shape: tuple[int, ...]
    make: Callable[[np.random.RandomState, Any], Any]
    varies: bool = True
    low: float = -np.inf  # of special values
    is_symmetric: bool = False  # and so is every direction in which it is moved
    is_special: bool = True  # NaN and infinities may stand in it

    def draw(self, rng: np.random.RandomState, dtype: Any) -> np.ndarray:
        return np.asarray(self.make(rng, np.dtype(dtype)))


def numbers(rng: np.random.RandomState, shape: Sequence[int], dtype: Any, low: float = -2.0, high: float = 2.0) -> Any:
    """Numbers of any dtype in a range, which for integers is a little wider."""
    if dtype.kind == "b":
        return rng.rand(*shape) > 0.4
    if dtype.kind in "iu":
        return rng.randint(1 if low > 0 else 0 if dtype.kind == "u" or low >= 0 else -5, 6, shape).astype(dtype)
    if dtype.kind == "c":
        return (rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)).astype(dtype)
    return rng.uniform(low, high, shape).astype(dtype)


def real(*shape: int, low: float = -2.0, high: float = 2.0) -> Operand:
    return Operand(shape, lambda r, d: numbers(r, shape, d, low, high))


def positive(*shape: int) -> Operand:
    return Operand(shape, lambda r, d: numbers(r, shape, d, 0.5, 2.0), low=0.0)


def distinct(*shape: int) -> Operand:
    """Numbers that stay in their order when they are moved a little."""

    def make(rng: np.random.RandomState, dtype: Any) -> Any:
        x = rng.permutation(int(np.prod(shape))).reshape(shape)
        return (
            x.astype(dtype)
            if dtype.kind in "biu"
            else (x * 0.375 - 1.25 + (0.25j * x[::-1] if dtype.kind == "c" else 0)).astype(dtype)
        )

    return Operand(shape, make)


def increasing(n: int) -> Operand:
    """Grid points, in order."""
    return Operand(
        (n,),
        lambda r, d: (np.arange(n) if d.kind in "biu" else np.cumsum(r.uniform(0.25, 1, n)) - 1).astype(d),
        is_special=False,
    )


def given(value: Any) -> Operand:
    """Numbers that are what they are, in any dtype."""
    x = np.asarray(value)
    return Operand(x.shape, lambda r, d: x.astype(d), is_special=False)


def dominant(*shape: int) -> Operand:
    """Matrices that are far from singular, with eigenvalues that are far from each other."""

    def make(rng: np.random.RandomState, dtype: Any) -> Any:
        x = numbers(rng, shape, dtype, -0.5, 0.5) if dtype.kind in "fc" else rng.randint(0, 2, shape).astype(dtype)
        return x + np.eye(*shape[-2:], dtype=dtype) * np.arange(2, 2 + shape[-1]).astype(dtype)

    return Operand(shape, make)


def symmetric(*shape: int) -> Operand:
    """Hermitian and positive matrices, whose eigenvalues are far from each other."""

    def make(rng: np.random.RandomState, dtype: Any) -> Any:
        x = dominant(*shape).draw(rng, dtype)
        return x + np.conj(np.swapaxes(x, -1, -2))

    return Operand(shape, make, is_symmetric=True)


def mask(*shape: int) -> Operand:
    """Truth values, of which every row and column has a true one."""
    checkered = np.sum(np.indices(shape), axis=0) % 2 == 0
    return Operand(shape, lambda r, d: checkered | (r.rand(*shape) > 0.6), varies=False)


def index(n: int, *shape: int) -> Operand:
    return Operand(shape, lambda r, d: r.randint(0, n, shape).astype(np.int32), varies=False)


def fixed(value: Any, dtype: Any = None) -> Operand:
    x = np.asarray(value, dtype)
    return Operand(x.shape, lambda r, d: x, varies=False)


@dataclasses.dataclass(frozen=True, eq=False)
class Call:
    """A row: one way to call one function. The laws that do not hold for it are named in `but`, with the reason."""

    text: str
    operands: dict[str, Operand]
    kinds: str = "biufc"  # of dtypes, as NumPy names them, that it takes
    reference: str | Callable[..., Any] = ""  # for NumPy, where it is not the same text
    tolerance: float = 16.0  # in units of the dtype's precision, relative to the largest result
    is_smooth: bool = True  # derivatives are compared with differences
    is_traced: bool = True  # it can be recorded; otherwise the shape of its result depends on values
    widens: bool = True  # the reference is computed in float64; otherwise it is about the dtype
    but: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def covers(self) -> str:
        """The function that the row is about: the innermost of those that only make the result comparable."""
        return re.match(r"(?:(?:abs|sort_complex)\((?=linalg|roots))?([\w.]+)", self.text)[1]  # type: ignore[index]

    def arrays(self, dtype: Any, seed: int = 0) -> dict[str, np.ndarray]:
        """Arrays of a dtype, the same at every run."""
        rng = np.random.RandomState(zlib.crc32(self.text.encode()) % 2**31 + seed)
        return {n: o.draw(rng, dtype) for n, o in self.operands.items()}

    def varying(self) -> list[str]:
        return [n for n, o in self.operands.items() if o.varies]

    def __call__(self, library: Any, arrays: dict[str, Any]) -> list[Any]:
        """The results, as a flat list."""
        return leaves(eval(code(self.text), {**names_of(library), **arrays}))

    def expected(self, arrays: dict[str, Any]) -> list[Any]:
        """What NumPy says."""
        if callable(self.reference):
            return leaves(self.reference(**{n: np.copy(x) for n, x in arrays.items()}))
        return leaves(eval(code(self.reference or self.text), {**names_of(np), **arrays}))


@functools.cache
def code(text: str) -> Any:
    return compile(text, f"<{text}>", "eval")


@functools.cache
def names_of(library: Any) -> dict[str, Any]:
    found = {n: getattr(library, n) for n in jnp.__all__ if hasattr(library, n)}  # jax.numpy is asked, too
    return {**found, "slice": slice, "dict": dict, "len": len, "list": list, "np": np, "int": int}


def leaves(x: Any) -> list[Any]:
    return [v for item in x for v in leaves(item)] if isinstance(x, (tuple, list)) else [x]


def calls(*texts: str, kinds: str = "biufc", operands: dict[str, Operand] | None = None, **more: Any) -> list[Call]:
    """Rows that have their operands, named x, y, z and so on, and what holds for them in common."""
    named = dict(operands or {})
    traits = {k: v for k, v in more.items() if not isinstance(v, Operand)}
    named.update({k: v for k, v in more.items() if isinstance(v, Operand)})
    return [Call(t, {n: o for n, o in named.items() if re.search(rf"\b{n}\b", t)}, kinds, **traits) for t in texts]


def public_functions() -> list[str]:
    """Functions of the three namespaces; classes, dtypes and constants are none."""
    from atled.numpy import scalar_types

    found = []
    for name in PUBLIC:
        value = functools.reduce(getattr, name.split("."), jnp)
        is_type = isinstance(value, type) or name in vars(scalar_types)
        home = getattr(value, "__module__", "") or ""
        if callable(value) and not is_type and home.startswith("atled"):
            found.append(name)
    return found


def is_array(x: Any) -> bool:
    return isinstance(x, (atled.Array, np.ndarray, np.generic))
