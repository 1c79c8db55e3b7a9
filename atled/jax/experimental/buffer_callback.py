"""Host callbacks that write into result buffers, with the API of `jax.experimental.buffer_callback`."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from atled.core import errors, tree
from atled.core.array import type_of
from atled.core.trace import bind
from atled.core.types import ArrayType
from atled.ops.callback import IO, METHODS, Callback, Host

__all__ = ["Buffer", "ExecutionContext", "ExecutionStage", "buffer_callback"]
__dir__ = __all__.copy


class ExecutionStage(enum.Enum):
    """The stage at which a callback runs; always `EXECUTE` in atled.

    >>> ExecutionContext().stage
    <ExecutionStage.EXECUTE: 3>
    """

    INSTANTIATE = 0
    PREPARE = 1
    INITIALIZE = 2
    EXECUTE = 3


class ExecutionContext:
    """Information about the call, the callback's first argument.

    >>> import atled, numpy as np
    >>> def f(context, out):
    ...     np.asarray(out)[...] = context.stage.value
    >>> int(buffer_callback(f, atled.ShapeDtypeStruct((), "int32"))()) == ExecutionStage.EXECUTE.value
    True
    """

    stage = ExecutionStage.EXECUTE

    @property
    def stream(self) -> int:
        """The stream of a GPU; always raises, since a CPU has none."""
        raise ValueError("ExecutionContext: a CPU has no stream.")


class Buffer:
    """The memory of an argument, which is read-only, or of a result, which is writable.

    >>> np.asarray(Buffer(np.ones(2), False)).flags.writeable
    False
    """

    def __init__(self, memory: np.ndarray, writeable: bool) -> None:
        self._memory = memory if writeable else memory.view()
        self._memory.flags.writeable = writeable

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return self._memory.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._memory.ndim

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self._memory.dtype

    @property
    def writeable(self) -> bool:
        """Whether the buffer is writable: true for results, false for arguments."""
        return self._memory.flags.writeable

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The memory as a NumPy array."""
        return np.array(self._memory, dtype, copy=copy)

    def __dlpack__(self, **kwargs: Any) -> Any:
        """A DLPack capsule of the memory; only for results."""
        return self._memory.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> Any:
        """The DLPack device of the memory."""
        return self._memory.__dlpack_device__()


def buffer_callback(
    callback: Callable[..., None],
    result_shape_dtypes: object,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_output_aliases: dict[int, int] | None = None,
    command_buffer_compatible: bool = False,
) -> Callable[..., Any]:
    """A function that calls `callback(context, out, *args)`, which writes its results into `out`.

    `out` and `args` have the tree structures of the results and of the arguments, with a `Buffer` for each array. A
    result named in `input_output_aliases` initially holds the data of its argument. Otherwise the callback behaves as
    in `pure_callback`, or, with `has_side_effect`, as in `io_callback`.

    >>> import atled, atled.numpy as jnp
    >>> def add_one(context, out, x):
    ...     np.asarray(out)[...] = np.asarray(x) + 1
    >>> x = jnp.arange(3)
    >>> atled.jit(buffer_callback(add_one, atled.ShapeDtypeStruct(x.shape, x.dtype)))(x)
    Array([1, 2, 3], dtype=int32)
    """
    del command_buffer_compatible  # for GPUs only
    if vmap_method is not None and vmap_method not in METHODS:
        raise ValueError(f"buffer_callback: vmap_method is one of {', '.join(METHODS)}; got {vmap_method!r}.")
    results, out_structure = tree.flatten(result_shape_dtypes)
    types = [ArrayType(tuple(x.shape), x.dtype) for x in results]
    aliases = {int(i): int(o) for i, o in (input_output_aliases or {}).items()}
    name = getattr(callback, "__name__", type(callback).__name__)

    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = tree.flatten((args, kwargs))
        try:
            _check(aliases, [type_of(x) for x in leaves], types)
            host = _Writes((callback, structure, out_structure, aliases), types, name)
            effect = IO[False] if has_side_effect else None
            return out_structure.unflatten(list(bind(Callback(host, effect, vmap_method), *leaves)))
        except Exception as error:
            raise errors.for_user(error)  # noqa: B904

    return call


class _Writes(Host):
    """A host function that calls the callback with buffers and returns the results that it wrote."""

    __slots__ = ("parts",)

    def __init__(self, parts: tuple[Any, ...], types: Sequence[ArrayType], name: str) -> None:
        callback, structure, out_structure, aliases = self.parts = parts

        def function(*arrays: Any) -> list[Any]:
            given = [np.asarray(x) for x in arrays]
            results = [np.zeros(t.shape, t.dtype) for t in types]
            for i, o in aliases.items():
                results[o][...] = given[i]
            args, kwargs = structure.unflatten([Buffer(x, False) for x in given])
            callback(ExecutionContext(), out_structure.unflatten([Buffer(x, True) for x in results]), *args, **kwargs)
            return results

        super().__init__(function, types, name)

    def of_types(self, types: Sequence[ArrayType]) -> Host:
        return _Writes(self.parts, types, self.name)


def _check(aliases: dict[int, int], given: list[ArrayType], types: list[ArrayType]) -> None:
    for i, o in aliases.items():
        if not 0 <= i < len(given) or not 0 <= o < len(types):
            raise ValueError(
                f"buffer_callback: input_output_aliases names argument {i} and result {o}; there are only "
                f"{len(given)} arguments and {len(types)} results."
            )
        if (given[i].shape, given[i].dtype) != (types[o].shape, types[o].dtype):
            raise ValueError(
                f"buffer_callback: input_output_aliases needs equal types; argument {i} is {given[i]}, result {o} is "
                f"{types[o]}."
            )
