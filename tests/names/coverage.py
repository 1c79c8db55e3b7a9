"""Writes `docs/guide/names.md`: which public names of NumPy, JAX and the array API standard are there, and which not.

Names come from `peers.txt` (see `peers.py`), what differs and what is left out from `explained.py`; whether a name is
there, the package says. Run this file to write the page anew.
"""

from __future__ import annotations

import importlib
import pathlib
import textwrap

import explained
import peers

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "guide" / "names.md"
TITLES = {"numpy": "NumPy 2.4", "jax": "JAX 0.10.2", "array_api": "The array API standard 2025.12"}
HEAD = """\
# Names

Every public name of NumPy, JAX and the array API standard: whether it is here, what it does differently, or why it is
not here. A name that is here takes the parameters of JAX's function of that name where JAX has one. What [differs
everywhere](differences.md), such as dtypes and indexing, is not said again at each name. This page is written by
`python tests/names/coverage.py`, and tested.
"""
OUTSIDE = textwrap.fill(
    "Modules of JAX whose names are not counted. Nor are those that are deprecated, which leaves nothing of "
    "`jax.experimental.pjit`, `jax.experimental.shard_map` and `jax.lib`, or that a file defines for its own use.", 120
)  # fmt: skip
NOTES = {
    "numpy": "NumPy's functions take no `out`, `casting`, `order`, `subok` and `like` that mean anything here: arrays "
    "are immutable, and their layout in memory is the compiler's. `where` and `dtype` are taken where JAX takes them.",
    "jax.lax": "Names that end in `_p` are JAX's primitives; ours are classes in `atled.ops` and are not public.",
    "jax": "Settings that are named like functions are `with` blocks.",
    "jax.extend.core": "`jax.extend.core.primitives` has names that end in `_p`; ours are found by the name of the op.",
    "array_api": "`array.` stands for the array's attributes and methods, `info.` for those of "
    "`__array_namespace_info__()`.",
}


# Namespaces that stand for a peer's under another name.
PLACES = {peers.STANDARD: "atled.numpy"}


def ours(namespace: str) -> str:
    """The namespace here that stands for a peer's."""
    if namespace in PLACES:
        return PLACES[namespace]
    return namespace.replace("jax", "atled", 1) if namespace.startswith("jax") else f"atled.{namespace}"


def is_there(namespace: str, name: str) -> bool:
    """Whether a name of a peer's namespace is here."""
    value: object = _module(ours(namespace))
    parts = name.split(".")
    if namespace == peers.STANDARD and parts[0] in ("array", "info"):
        about = getattr(value, "__array_namespace_info__", lambda: None)
        value = about() if parts.pop(0) == "info" else value.zeros((1, 1))  # type: ignore[attr-defined]
    for part in parts:
        if not hasattr(value, part) and type(value).__name__ == "module":
            _module(f"{value.__name__}.{part}")  # type: ignore[union-attr]
        if not hasattr(value, part):
            return False
        value = getattr(value, part)
    return True


def _module(name: str) -> object:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


def sorted_out(namespace: str, names: list[str]) -> dict[str, list[str]]:
    """The names of a namespace by how they are here: as they are, different, left out, not yet."""
    different, left_out = explained.different(namespace), explained.reasons(namespace)
    found: dict[str, list[str]] = {"there": [], "different": [], "left out": [], "not yet": []}
    for name in names:
        if is_there(namespace, name):
            found["different" if name in different else "there"].append(name)
        else:
            found["left out" if name in left_out else "not yet"].append(name)
    return found


def page() -> str:
    """The text of the page."""
    kept = peers.kept()
    all_sorted = {n: sorted_out(n, names) for n, names in kept.items()}
    out = [HEAD, _summary(all_sorted)]
    for namespace, found in all_sorted.items():
        if namespace in ("numpy", peers.STANDARD) or namespace == "jax.numpy":
            out.append(f"## {TITLES[namespace.split('.')[0]]}\n")
        if namespace not in ("numpy", peers.STANDARD):
            out.append(f"### `{namespace}`\n")
        if namespace in NOTES:
            out.append(textwrap.fill(NOTES[namespace], 120) + "\n")
        out.extend(_section(namespace, found))
    out.append(_out_of_scope())
    return "\n".join(out).rstrip() + "\n"


def _out_of_scope() -> str:
    rows = [f"| `{name}` | {why} |" for name, why in sorted(peers.OUT_OF_SCOPE.items())]
    rows = ["## Not gone through", "", OUTSIDE, "", "| module | why |", "| --- | --- |", *rows]
    return "\n".join(rows) + "\n"


def _summary(all_sorted: dict[str, dict[str, list[str]]]) -> str:
    rows = ["| namespace | there | different | left out | not yet |", "| --- | --- | --- | --- | --- |"]
    for namespace, found in all_sorted.items():
        rows.append(f"| `{namespace}` | " + " | ".join([str(len(names)) for names in found.values()]) + " |")
    return "\n".join(rows) + "\n"


def _section(namespace: str, found: dict[str, list[str]]) -> list[str]:
    out = []
    for state in ("there", "not yet"):
        if found[state]:
            text = f"{state.capitalize()}: {_listed(found[state])}"
            out.append(textwrap.fill(text, 120, break_on_hyphens=False) + "\n")
    if found["different"]:
        different = explained.different(namespace)
        rows = [f"| `{n}` | {different[n]} |" for n in found["different"]]
        out.append("\n".join(["| different | how |", "| --- | --- |", *rows]) + "\n")
    groups: dict[str, list[str]] = {}
    for name in found["left out"]:
        groups.setdefault(explained.reasons(namespace)[name], []).append(name)
    if groups:
        rows = [f"| {_listed(names)} | {reason} |" for reason, names in groups.items()]
        out.append("\n".join(["| left out | why |", "| --- | --- |", *rows]) + "\n")
    return out


def _listed(names: list[str]) -> str:
    return ", ".join([f"`{n}`" for n in names])


if __name__ == "__main__":
    PAGE.write_text(page())
