"""A stub of `jax.experimental.hijax`, so that libraries that use it can be imported. Binding its types raises."""

from __future__ import annotations

from typing import Any

from atled.core.types import ArrayType as AbstractValue
from atled.core.types import Zero
from atled.jax.interpreters.ad import instantiate_zeros, is_undefined_primal

__all__ = [
    "AbstractValue", "AvalMutableQDD", "AvalQDD", "HiPrimitive", "HiType", "MutableHiType", "QuasiDynamicData",
    "VJPHiPrimitive", "Zero", "aval_method", "aval_property", "control_flow_allowed_effects", "instantiate_zeros",
    "is_undefined_primal", "register_hitype",
]  # fmt: skip


class _Absent:
    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def bind(self, *_: Any, **__: Any) -> Any:
        """Not supported."""
        raise NotImplementedError("jax.experimental.hijax: custom types are not supported by atled.jax.as_jax.")


class HiPrimitive(_Absent):
    """A primitive on user-defined types."""


class VJPHiPrimitive(_Absent):
    """A primitive on user-defined types with a custom VJP."""


class HiType(_Absent):
    """A user-defined type."""


class MutableHiType(_Absent):
    """A user-defined type with mutable values."""


class QuasiDynamicData(_Absent):
    """The mutable part of the value of a user-defined type."""


class AvalQDD(_Absent):
    """A type together with its `QuasiDynamicData`."""


class AvalMutableQDD(_Absent):
    """A type together with mutable `QuasiDynamicData`."""


class aval_property(property):  # noqa: N801
    """A property of a type that tracers of the type have, too."""


def aval_method(fun: Any) -> Any:
    """A method of a type that tracers of the type have, too."""
    return fun


class _Effects:
    def add_type(self, kind: type) -> None:
        """Does nothing: no program in atled has effects of user-defined types."""


control_flow_allowed_effects = _Effects()


def register_hitype(val_cls: type, typeof_fn: Any) -> None:
    """Does nothing: using values of the class raises."""
