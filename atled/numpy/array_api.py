"""The inspection functions of the array API standard: devices, dtypes and capabilities.

`atled.numpy` follows version 2025.12 of the standard, whose text is at https://data-apis.org/array-api/2025.12.
"""

from __future__ import annotations

from typing import Any

from atled.core import dtypes as _dtypes
from atled.engine import client
from atled.numpy.inspection import KINDS

__all__ = ["NamespaceInfo", "__array_api_version__", "__array_namespace_info__"]

_NAMES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
    "complex64", "complex128",
)  # fmt: skip


class NamespaceInfo:
    """The inspection functions of the array API standard for `atled.numpy`: dtypes, devices and capabilities.

    >>> info = NamespaceInfo()
    >>> info.default_dtypes()["real floating"], list(info.dtypes(kind="complex floating"))
    (dtype('float32'), ['complex64', 'complex128'])
    """

    def capabilities(self) -> dict[str, Any]:
        """The supported features and limits, by name; data-dependent shapes work outside of jit and vmap."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}  # 64, as in NumPy

    def default_device(self) -> Any:
        """The device on which arrays are created by default."""
        return client.default_device()

    def devices(self) -> tuple[Any, ...]:
        """All devices of this process, of every platform."""
        return tuple([d for c in client.clients().values() for d in c.local_devices()])

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The default dtypes: 32 bits wide, or 64 inside `enable_x64`."""
        kinds = {"real floating": "f", "complex floating": "c", "integral": "i", "indexing": "i"}
        return {name: _dtypes.default(kind) for name, kind in kinds.items()}

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, Any]:
        """The dtypes of the standard by name: all, or those of the given kinds; every device supports all of them."""
        by_name = {name: _dtypes.canonical(name) for name in _NAMES}
        if kind is None:
            return by_name
        kinds = (kind,) if isinstance(kind, str) else kind
        for k in kinds:
            if k not in KINDS:
                raise ValueError(f"dtypes: a kind is one of {', '.join(map(repr, KINDS))}; got {k!r}.")
        letters = "".join([KINDS[k] for k in kinds])
        return {name: dtype for name, dtype in by_name.items() if _dtypes.kind(dtype) in letters}


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807
    """The array API standard's inspection functions: `devices()`, `dtypes()`, `default_dtypes()`, `capabilities()`.

    >>> __array_namespace_info__().default_dtypes()["real floating"]
    dtype('float32')
    """
    return NamespaceInfo()


__array_api_version__ = "2025.12"
