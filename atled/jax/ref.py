"""References: mutable arrays, with the API of `jax.ref`.

A reference can be used where it was created, in eager code or inside one transformed function, and in jitted functions
that take it as an argument. A write is a Python side effect; compiled programs stay pure: they return the new values.
A jitted function or loop body that closes over a reference from outside raises.

>>> import atled, atled.numpy as jnp
>>> @atled.jit
... def f(x):
...     total = new_ref(jnp.zeros(2))
...     total[0] = x
...     total[1] += 2 * x
...     return total[...]
>>> f(3.0)
Array([3., 6.], dtype=float32)
"""

from __future__ import annotations

import functools
from typing import Any

from atled.core import errors, tree
from atled.core.array import Array, type_of
from atled.core.trace import Tracer, state
from atled.core.types import ArrayType
from atled.numpy.creation import array, asarray, empty
from atled.numpy.inspection import result_type
from atled.ops.conversion import convert
from atled.staging.jit import jit
from atled.staging.jit_signature import Options

__all__ = ["AbstractRef", "Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set", "swap"]
__dir__ = __all__.copy


class AbstractRef:
    """The type of a reference; `inner_aval` is the type of its array.

    >>> AbstractRef(ArrayType((2,), "float32"))
    AbstractRef(f32[2])
    """

    def __init__(self, inner_aval: ArrayType) -> None:
        self.inner_aval = inner_aval

    def __repr__(self) -> str:
        return f"AbstractRef({self.inner_aval})"


def typeof(x: Any) -> ArrayType | AbstractRef:
    """The type of an array, a number or a reference.

    >>> typeof(1.0), typeof(new_ref(1.0))
    (~f32[], AbstractRef(~f32[]))
    """
    return x.aval if isinstance(x, Ref) else type_of(x)


class Ref:
    """A mutable array. See `new_ref`.

    >>> x = new_ref(array([1, 2, 3]))
    >>> x[0] = 9
    >>> x[...]
    Array([9, 2, 3], dtype=int32)
    """

    __slots__ = ("_home", "_level", "_value")
    __array_priority__ = 1000

    def __init__(self, value: Any) -> None:
        self._value: Any = value
        self._home, self._level = state.base, state.level

    def _check(self) -> Array:
        if self._value is None:
            raise ValueError(errors.explained("ref: the reference was frozen and can no longer be used."))
        if state.base is not self._home:
            raise NotImplementedError(
                errors.explained(
                    "ref: a jitted function or loop body uses a reference from outside.",
                    "pass the ref to the jitted function as an argument; in a loop, carry ref[...] instead.",
                )
            )
        return self._value

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return type_of(self._value).shape

    @property
    def ndim(self) -> int:
        """The number of axes of the array."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements of the array."""
        return type_of(self._value).size

    @property
    def dtype(self) -> Any:
        """The dtype of the array."""
        return type_of(self._value).dtype

    @property
    def aval(self) -> AbstractRef:
        """The type of the reference."""
        return AbstractRef(type_of(self._value))

    @property
    def sharding(self) -> Any:
        """The sharding of the array."""
        return self._value.sharding

    def unsafe_buffer_pointer(self) -> int:
        """The memory address of the array."""
        return self._check().unsafe_buffer_pointer()

    def __getitem__(self, idx: Any) -> Array:
        value = self._check()
        return value if idx is Ellipsis else value[idx]

    def __setitem__(self, idx: Any, value: Any) -> None:
        before = self._check()
        self._write(before.at[idx].set(self._fitting(value)))

    def addupdate(self, value: Any, idx: Any = ...) -> None:
        """Add `value` to the array, or to its elements at `idx`."""
        before = self._check()
        self._write(before.at[idx].add(self._fitting(value)))

    def _fitting(self, value: Any) -> Array:
        """A value to write, converted to the dtype of the array; raises unless that is the promoted dtype."""
        t, own = type_of(value), type_of(self._value)
        if own.kind != "k" and t.dtype != own.dtype and not (t.weak and result_type(own.dtype, value) == own.dtype):
            raise ValueError(
                errors.explained(
                    f"ref: the reference holds {own.dtype.name}; got a value of type {t.dtype.name}.",
                    f"value.astype({own.dtype.name!r}).",
                )
            )
        return asarray(value, own.dtype)

    def _write(self, value: Any) -> None:
        """Replace the array by `value`, converted to the same type."""
        if isinstance(value, Tracer) and value.interpreter.level > max(self._level, state.base.level):
            raise ValueError(
                errors.explained(
                    "ref: a tracer of differentiation or batching is written to a reference from outside.",
                    "return the value from the transformed function, and write that to the ref outside.",
                )
            )
        own = type_of(self._value)
        self._value = value if own.kind == "k" else convert(value, own.dtype, own.weak)

    def __deepcopy__(self, memo: Any) -> Ref:
        return Ref(self._value)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"Ref({self._value})"

    @staticmethod
    def call_with_references(shared: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a jitted function with references among its arguments: compile a function from their values to new ones.

        `jit` calls this function.
        """
        options = shared.options
        asked = [x for s in (options.in_shardings, options.out_shardings) if s is not None for x in s.leaves]
        if options._replace(in_shardings=None, out_shardings=None) != Options() or any([x is not None for x in asked]):
            raise NotImplementedError(
                errors.explained(
                    f"jit: {shared.name} takes a reference, so it can have no static or donated arguments, "
                    "shardings or other options.",
                    "pass ref[...] to the function, return the new array, and write that to the ref outside.",
                )
            )
        leaves, structure = tree.flatten((args, kwargs))
        places = tuple([i for i, x in enumerate(leaves) if isinstance(x, Ref)])
        refs = [leaves[i] for i in places]
        if len({id(r) for r in refs}) < len(refs):
            raise ValueError(errors.explained(f"jit: {shared.name} got the same reference twice.", "pass it once."))
        if shared.of_values is None:
            of_values = functools.partial(_of_values, shared)
            of_values.__name__ = shared.name  # type: ignore[attr-defined]
            shared.of_values = jit(of_values, static_argnums=0)
        others = [x for x in leaves if not isinstance(x, Ref)]
        out, values = shared.of_values((structure, places), [r._check() for r in refs], others)
        for ref, value in zip(refs, values, strict=True):
            if value is None:
                ref._value = None  # the function froze ref
            else:
                ref._write(value)
        return out

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(errors.explained("ref: an array is needed here; got a reference.", "ref[...]"))


def _of_values(shared: Any, how: tuple[Any, tuple[int, ...]], values: list[Any], others: list[Any]) -> tuple[Any, Any]:
    """The results of a jitted function of references, and the final values of the references."""
    structure, places = how
    refs, rest = [Ref(v) for v in values], iter(others)
    given = dict(zip(places, refs, strict=True))
    args, kwargs = structure.unflatten([given[i] if i in given else next(rest) for i in range(structure.num_leaves)])
    out = shared.f(*args, **kwargs)
    return out, [r._value for r in refs]


def new_ref(init_val: Any, *, memory_space: Any = None, kind: Any = None) -> Ref:
    """A reference to a copy of `init_val`.

    >>> r = new_ref(1.0)
    >>> r[...] = 5
    >>> float(r[...])
    5.0
    """
    return Ref(array(init_val))


def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """A reference to an array of a given type, with unspecified values.

    >>> empty_ref(ArrayType((2,), "float32")).shape
    (2,)
    """
    return Ref(empty(ty.shape, ty.dtype))


def freeze(ref: Ref) -> Array:
    """The array of a reference, which cannot be used afterwards.

    >>> float(freeze(new_ref(2.0)))
    2.0
    """
    value, ref._value = ref._check(), None
    return value


def free_ref(ref: Ref) -> None:
    """Free the array of a reference, which cannot be used afterwards.

    >>> free_ref(new_ref(2.0))
    """
    freeze(ref)


def get(ref: Ref, idx: Any = None) -> Array:
    """The array of a reference, or its elements at `idx`.

    >>> int(get(new_ref([1, 2]), 1))
    2
    """
    return ref[... if idx is None else idx]


def swap(ref: Ref, idx: Any, value: Any) -> Array:
    """Write `value` to the elements at `idx`, or to all; returns the old value.

    >>> r = new_ref([1, 2])
    >>> int(swap(r, 1, 7)), int(r[1])
    (2, 7)
    """
    before = get(ref, idx)
    set(ref, idx, value)
    return before


def set(ref: Ref, idx: Any, value: Any) -> None:
    """Write `value` to the elements at `idx`, or to all.

    >>> r = new_ref([1, 2])
    >>> set(r, 0, 4)
    >>> r[...]
    Array([4, 2], dtype=int32)
    """
    ref[... if idx is None else idx] = value


def addupdate(ref: Ref, idx: Any, x: Any) -> None:
    """Add `x` to the elements at `idx`, or to all.

    >>> r = new_ref([1, 2])
    >>> addupdate(r, 0, 4)
    >>> int(r[0])
    5
    """
    ref.addupdate(x, ... if idx is None else idx)
