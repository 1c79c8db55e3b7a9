"""Logs compilations of a function, and explains recompilations.

The explanation compares a call with the most similar earlier one, and names the difference: an argument's type or
placement, a static value, the tree of arguments, or a setting.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import reprlib
from typing import Any, NamedTuple

from atled.core import errors, settings, source, tree, tree_registry
from atled.core.cache_keys import exact
from atled.core.settings import scope
from atled.core.sharding import NamedSharding, asked_sharding
from atled.core.tree_diff import difference
from atled.core.types import ArrayType
from atled.staging.jit_signature import Arguments, Signature, leaf_names


class Compile(NamedTuple):
    """One compilation of a function: the signature, and the time in milliseconds."""

    types: tuple[ArrayType, ...]
    statics: tuple[Any, ...]
    milliseconds: float
    names: tuple[str, ...] = ()  # the names of the argument leaves
    structure: tree.TreeDef | None = None
    settings: tuple[Any, ...] = ()
    places: tuple[str, ...] = ()  # device or sharding of each leaf

    def __repr__(self) -> str:
        rows = [f"{name}: {t!r}" for name, t in itertools.zip_longest(self.names, self.types, fillvalue="?")]
        rows += [f"{place}={reprlib.repr(value)}" for place, _, value in self.statics]
        return f"Compile({', '.join(rows)}; {self.milliseconds:.0f} ms)"


def _of(signature: Signature, call: Arguments, milliseconds: float) -> Compile:
    names = () if signature.options.is_library else tuple(leaf_names(signature, call))
    types = tuple(call.types())
    places = tuple([_place(x) for x in call.leaves])
    return Compile(types, call.statics, milliseconds, names, call.structure, settings.trace_key(), places)


def _place(x: Any) -> str:
    """The device or sharding of a committed argument, as text; empty for other arguments."""
    sharding = asked_sharding(x)
    if sharding is None or not getattr(x, "committed", True):
        return ""
    return f"split by {sharding.spec}" if isinstance(sharding, NamedSharding) else f"on {sharding.devices[0]}"


def note(compiles: list[Compile], signature: Signature, call: Arguments, milliseconds: float) -> Compile:
    """Record a compilation, and log the reason from the second one on."""
    now = _of(signature, call, milliseconds)
    if compiles and scope().explain_compiles and not signature.options.is_library:
        import logging

        total = sum([c.milliseconds for c in compiles]) + milliseconds
        logging.getLogger("atled").warning(
            "%s is compiled again, number %d: %s; %.0f ms, %.0f ms so far.%s",
            signature.name, len(compiles) + 1, reason(compiles, now, signature), milliseconds, total,
            source.describe(source.here()),
        )  # fmt: skip
    compiles.append(now)
    return now


def note_models(name: str, f: Any) -> None:
    """Log which models a newly traced function reads from globals or closures: it keeps their current arrays."""
    code = getattr(f, "__code__", None)
    if code is None or not scope().explain_compiles:
        return
    values = {n: f.__globals__[n] for n in code.co_names if n in f.__globals__}
    for n, cell in zip(code.co_freevars, f.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # the variable is not assigned yet
            values[n] = cell.cell_contents
    models = [n for n, x in values.items() if (node := tree_registry.nodes.get(type(x))) is not None and node.code]
    if models:
        import logging

        logging.getLogger("atled").warning(
            "%s reads %s from outside, with its current arrays: later assignments have no effect.%s\n  try: pass it as "
            "an argument.", name, ", ".join(models), source.describe(source.here()),
        )  # fmt: skip


def limit(most: int, compiles: list[Compile], signature: Signature, call: Arguments) -> None:
    """Raise an error if the function was already compiled `max_compiles` times."""
    if len(compiles) >= most:
        now = _of(signature, call, 0.0)
        why = f" ({reason(compiles, now, signature)})" if compiles else ""
        says = f"jit: {signature.name} has reached max_compiles={most}, and this call needs another compilation{why}."
        way_out = "pad arguments to a few shapes, keep their dtypes, or pass static values that vary as arrays."
        raise RuntimeError(errors.explained(says, way_out))


def reason(compiles: list[Compile], now: Compile, signature: Signature) -> str:
    """The difference from the most similar earlier compilation."""
    return min([_differences(c, now, signature) for c in reversed(compiles)], key=len, default=["it is new"])[0]


def _differences(before: Compile, now: Compile, signature: Signature) -> list[str]:
    if before.structure != now.structure:
        return [f"the tree of arguments changed: {_changes(before, now, signature)}"] * 99
    rows = [
        f"argument {name} was {a} and is {b}"
        for name, a, b in zip(now.names, before.types, now.types, strict=True)
        if a is not b
    ]
    for (old, _, a), (new, _, b) in zip(before.statics, now.statics, strict=False):
        if (signature.label(old), exact(a)) != (signature.label(new), exact(b)):
            rows.append(f"static argument {signature.label(new)} was {reprlib.repr(a)} and is {reprlib.repr(b)}")
    given, were = [{signature.label(s[0]) for s in c.statics} for c in (now, before)]
    rows += [f"static argument {name} was omitted, and is given" for name in sorted(given - were)]
    rows += [f"static argument {name} was given, and is omitted" for name in sorted(were - given)]
    if before.settings != now.settings:
        changes = zip((*settings.TRACED, "a user context"), before.settings, now.settings, strict=True)
        rows += [f"the setting {name} was {a!r} and is {b!r}" for name, a, b in changes if a != b]
    rows += [
        f"argument {name} was {a or 'uncommitted'} and is {b or 'uncommitted'}"
        for name, a, b in zip(now.names, before.places, now.places, strict=True)
        if a != b
    ]
    if len(rows) > 1:
        rows[0] += f", and {len(rows) - 1} more"
    return rows or ["the function, a value that it closes over, or the device changed"]


_NUMBER = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?")


def _changes(before: Compile, now: Compile, signature: Signature) -> str:
    """The first removed and the first added argument, or where the trees differ, as text."""
    changed = []
    for names, others, what in ((before.names, now.names, "gone"), (now.names, before.names, "new")):
        only = [n for n in names if n not in set(others)]
        if only:
            changed.append(f"{only[0]} is {what}" + (f", and {len(only) - 1} more" if len(only) > 1 else ""))
    if changed or before.structure is None or now.structure is None:
        return "; ".join(changed)
    path, was, is_now = difference(before.structure, now.structure) or ("", "", "")
    text = f"was {was} and is {is_now}"
    if _NUMBER.fullmatch(was) and _NUMBER.fullmatch(is_now):  # static numbers of a model
        text += " (try: nn.Buffer, for a number that changes)"
    number = re.match(r"\[0\]\[(\d+)\]|\[1\]\['(\w+)'\]", path)  # positional and keyword arguments
    if number is None:
        return f"{path} {text}"
    return f"{number[2] or signature.label(int(number[1]))}{path[number.end() :]} {text}"
