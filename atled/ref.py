"""References: mutable arrays, with the API of `jax.ref`.

A reference can be used only where it was created: in eager code, or inside one transformed function, where a write is
a Python side effect and the compiled program stays pure. Jitted functions and loop bodies cannot write to an outer
reference: that raises.

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

from typing import Any

from atled.core import errors
from atled.core.array import Array, type_of
from atled.core.trace import state
from atled.core.types import ArrayType
from atled.numpy.creation import array, asarray, empty

__all__ = ["AbstractRef", "Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set", "swap"]


class AbstractRef:
    """The type of a reference: that of the array in it.

    >>> AbstractRef(ArrayType((2,), "float32"))
    AbstractRef(f32[2])
    """

    def __init__(self, inner_aval: ArrayType) -> None:
        self.inner_aval = inner_aval

    def __repr__(self) -> str:
        return f"AbstractRef({self.inner_aval})"


class Ref:
    """A mutable array. See `new_ref`.

    >>> x = new_ref(array([1, 2, 3]))
    >>> x[0] = 9
    >>> x[...]
    Array([9, 2, 3], dtype=int32)
    """

    __slots__ = ("_home", "_value")
    __array_priority__ = 1000

    def __init__(self, value: Any) -> None:
        self._value: Any = value
        self._home = state.base

    def _check(self) -> Array:
        if self._value is None:
            raise ValueError(errors.explained("ref: the reference was frozen and can no longer be used."))
        if state.base is not self._home:
            raise NotImplementedError(
                errors.explained(
                    "ref: a jitted function or loop body uses a reference from outside.",
                    "pass ref[...] to the function, return the new array, and write that to the ref outside.",
                )
            )
        return self._value

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return type_of(self._value).shape

    @property
    def ndim(self) -> int:
        """The number of its axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of its elements."""
        return type_of(self._value).size

    @property
    def dtype(self) -> Any:
        """Its dtype."""
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
        """The address of the array."""
        return self._check().unsafe_buffer_pointer()

    def __getitem__(self, idx: Any) -> Array:
        value = self._check()
        return value if idx is Ellipsis else value[idx]

    def __setitem__(self, idx: Any, value: Any) -> None:
        before = self._check()
        self._value = before.at[idx].set(asarray(value, before.dtype))

    def addupdate(self, value: Any, idx: Any = ...) -> None:
        """Add to a part of the array."""
        before = self._check()
        self._value = before.at[idx].add(asarray(value, before.dtype))

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"Ref({self._value})"

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(errors.explained("ref: an array is needed here; got a reference.", "ref[...]"))


def new_ref(init_val: Any, *, memory_space: Any = None, kind: Any = None) -> Ref:
    """A reference to a new array with these values.

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
    """Take the array out of a reference, which cannot be used afterwards.

    >>> float(freeze(new_ref(2.0)))
    2.0
    """
    value, ref._value = ref._check(), None
    return value


def free_ref(ref: Ref) -> None:
    """Give up a reference.

    >>> free_ref(new_ref(2.0))
    """
    freeze(ref)


def get(ref: Ref, idx: Any = None) -> Array:
    """A part of the array, or all of it.

    >>> int(get(new_ref([1, 2]), 1))
    2
    """
    return ref[... if idx is None else idx]


def swap(ref: Ref, idx: Any, value: Any) -> Array:
    """Write to a part of the array; returns the old value.

    >>> r = new_ref([1, 2])
    >>> int(swap(r, 1, 7)), int(r[1])
    (2, 7)
    """
    before = get(ref, idx)
    set(ref, idx, value)
    return before


def set(ref: Ref, idx: Any, value: Any) -> None:
    """Write to a part of the array.

    >>> r = new_ref([1, 2])
    >>> set(r, 0, 4)
    >>> r[...]
    Array([4, 2], dtype=int32)
    """
    ref[... if idx is None else idx] = value


def addupdate(ref: Ref, idx: Any, x: Any) -> None:
    """Add to a part of the array.

    >>> r = new_ref([1, 2])
    >>> addupdate(r, 0, 4)
    >>> int(r[0])
    5
    """
    ref.addupdate(x, ... if idx is None else idx)
