"""Arguments of rules with `symbolic_zeros=True`: symbolic zeros, and primals flagged as differentiated or not."""

from __future__ import annotations

from typing import Any

from atled.core.array import type_of


class SymbolicZero:
    """A tangent or cotangent that is known to be zero and is never materialized; `aval` is its type.

    >>> SymbolicZero.from_primal_value(2.0).shape
    ()
    """

    def __init__(self, aval: Any) -> None:
        self.aval = aval

    @staticmethod
    def from_primal_value(val: Any) -> SymbolicZero:
        """The symbolic zero tangent of a value."""
        return SymbolicZero(type_of(val).tangent())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "aval":
            raise AttributeError(name)
        return getattr(self.aval, name)

    def __repr__(self) -> str:
        return "SymbolicZero"


class CustomVJPPrimal:
    """An argument of `fwd`: its value, and whether it is being differentiated (`perturbed`).

    >>> CustomVJPPrimal(1.0, True)
    CustomVJPPrimal(value=1.0, perturbed=True)
    """

    __slots__ = ("perturbed", "value")

    def __init__(self, value: Any, perturbed: bool) -> None:
        self.value, self.perturbed = value, perturbed

    def __repr__(self) -> str:
        return f"CustomVJPPrimal(value={self.value!r}, perturbed={self.perturbed!r})"
