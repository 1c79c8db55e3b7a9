"""`Callback`: the op that calls a Python function on the host with NumPy arrays, also from compiled code.

The types of the results are checked here, because the engine copies results without checks. An exception in compiled
code is stored, and raised with its original type when a result is read. Callbacks with an effect run in program order,
in loops and branches too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from atled.core import dtypes, errors
from atled.core.array import type_of
from atled.core.op import Op
from atled.core.trace import bind
from atled.core.types import ArrayType, Zero
from atled.ops import shape

METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")


class Host:
    """A host function, and the types of its results. Two hosts are equal only if they are the same object."""

    __slots__ = ("function", "name", "types")

    def __init__(self, function: Callable[..., Sequence[Any]], types: Sequence[ArrayType], name: str) -> None:
        self.function, self.types, self.name = function, tuple(types), name

    def __call__(self, *arrays: Any) -> tuple[np.ndarray, ...]:
        out = self.function(*arrays)
        if len(out) != len(self.types):
            raise TypeError(f"callback: {self.name} must return {len(self.types)} arrays; it returned {len(out)}.")
        return tuple([self._checked(x, t) for x, t in zip(out, self.types, strict=True)])

    def _checked(self, x: Any, t: ArrayType) -> np.ndarray:
        host = np.asarray(x)
        if isinstance(x, (bool, int, float, complex)) and host.dtype.kind in _BELOW[t.kind]:
            host = host.astype(t.dtype)
        if host.shape != t.shape or host.dtype != t.dtype:
            try:
                got = str(ArrayType(host.shape, dtypes.canonical(host.dtype)))
            except TypeError:
                got = f"{type(x).__name__}"
            raise TypeError(
                f"callback: {self.name} must return {t}, as declared; it returned {got}."
                + (
                    f"\n  try: np.asarray(result, {t.dtype.name!r})"
                    if host.shape == t.shape
                    else f"\n  try: ShapeDtypeStruct({host.shape}, ...) if that is the right shape."
                )
            )
        return np.ascontiguousarray(host).reshape(t.shape)

    def from_engine(self, *arrays: Any) -> tuple[np.ndarray, ...]:
        """Call the function from compiled code; an exception is stored until a result is read."""
        try:
            return self(*arrays)
        except BaseException as error:
            raise RuntimeError(errors.keep(error)) from None

    def of_types(self, types: Sequence[ArrayType]) -> Host:
        """The same function, with other result types."""
        return Host(self.function, types, self.name)

    def over_lanes(self, size: int, batched: Sequence[bool]) -> Host:
        """A host function that calls this one for each example of a batch in turn, and stacks the results."""
        types = [ArrayType((size, *t.shape), t.dtype) for t in self.types]

        def each(*arrays: Any) -> list[np.ndarray]:
            rows = [self(*[x[i] if b else x for x, b in zip(arrays, batched, strict=True)]) for i in range(size)]
            if not rows:
                return [np.zeros(t.shape, t.dtype) for t in types]
            return [np.stack(column) for column in zip(*rows, strict=True)]

        return Host(each, types, self.name)


_BELOW = {"b": "b", "i": "bi", "u": "bi", "f": "bif", "c": "bifc"}


DEBUG = {False: "debug", True: "ordered debug"}  # effects, keyed by whether they are ordered
IO = {False: "io", True: "ordered io"}


class Callback(Op):
    """Calls a function on the host."""

    gives_tuple = True
    runs_on_host = True
    host: Host
    effect: str | None  # a value of `DEBUG` or `IO`, or None for a pure function
    vmap_method: str | None = None

    @property
    def has_effect(self) -> bool:  # type: ignore[override]
        return self.effect is not None

    def result_type(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        for t in types:
            if t.kind == "k":
                raise TypeError(f"callback: random keys stay on the device; got {t}.\n  try: random.key_data(key).")
        return self.host.types

    def lower(self, build: Any, *operands: Any) -> Any:
        return build.callback(self.host.from_engine, operands, self.host.types, self.has_effect)

    def on_host(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """The results for concrete operands."""
        return self.host(*arrays)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        moving = [t for t in self.host.types if t.tangent().kind != "0"]
        if moving:
            raise TypeError(
                f"callback: the derivative of {self.host.name}, a function on the host, is not known."
                "\n  try: wrap the call in a function with custom_jvp or custom_vjp, or stop_gradient its arguments."
            )
        return bind(self, *primals), tuple([Zero(t.tangent()) for t in self.host.types])

    def batch(self, batched: tuple[bool, ...], *operands: Any) -> Any:
        size = next(type_of(x).shape[0] for x, b in zip(operands, batched, strict=True) if b)
        method = self.vmap_method
        if method is None:
            raise NotImplementedError(
                f"callback: vmap must be told how {self.host.name} takes a batch."
                "\n  try: pure_callback(..., vmap_method='sequential') to call it for each example, or 'expand_dims' or"
                "\n  'broadcast_all' if it works on arrays with one more leading axis."
            )
        if method.startswith("sequential"):
            return bind(Callback(self.host.over_lanes(size, batched), self.effect, method), *operands)
        if method == "expand_dims":
            given = [x if b else shape.add_axis(x, 1) for x, b in zip(operands, batched, strict=True)]
        elif method == "broadcast_all":
            given = [x if b else shape.add_axis(x, size) for x, b in zip(operands, batched, strict=True)]
        else:
            given = list(operands)
        types = [ArrayType((size, *t.shape), t.dtype) for t in self.host.types]
        return bind(Callback(self.host.of_types(types), self.effect, method), *given)
