"""Parts of modules: by kind, by path, by class.

Patterns match the last components of paths: `attention/query_proj` is every `query_proj` in an `attention`. `*` matches
one component or a part of one, `**` any number of components; a leading `/` anchors at the root. A pattern that matches
a module selects everything in it; a pattern that matches nothing raises.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from typing import Any

from atled.core import dtypes, errors, tree
from atled.core.array import DTypeLike, type_of
from atled.core.former_names import formerly
from atled.core.tree_diff import difference
from atled.nn.module import Module, changed, settled, walk, with_kinds, with_statics
from atled.nn.variable_kinds import Frozen, Kind, Param


def filter(module: Any, *kinds: type[Kind]) -> Any:
    """The module with its arrays of the given kinds, and None in place of all other arrays.

    >>> from atled import nn, random
    >>> nn.filter(nn.Linear(2, 3, key=random.key(0)), nn.Buffer)
    Linear(weight=None, bias=None, in_features=2, out_features=3)
    """
    leaves, structure = tree.flatten(module)
    keep = [k is not None and issubclass(k, kinds) for k in structure.kinds]
    return structure.unflatten([x if k else None for x, k in zip(leaves, keep, strict=True)])


def params(module: Any) -> Any:
    """The parameters of a module: the module with None in place of all other arrays.

    >>> from atled import nn, random
    >>> nn.params(nn.freeze(nn.Linear(2, 3, key=random.key(0)), "weight"))
    Linear(weight=None, bias=Param f32[3], in_features=2, out_features=3)
    """
    return filter(module, Param)


def buffers(module: Any) -> Any:
    """The buffers of a module: the module with None in place of all other arrays.

    >>> from atled import nn, random
    >>> nn.buffers(nn.declare(nn.Linear(2, 3, key=random.key(0)), "bias", nn.Buffer))
    Linear(weight=None, bias=Buffer f32[3], in_features=2, out_features=3)
    """
    leaves, structure = tree.flatten(module)
    keep = [k is not None and not issubclass(k, (Param, Frozen)) for k in structure.kinds]
    return structure.unflatten([x if k else None for x, k in zip(leaves, keep, strict=True)])


def merge(*parts: Any) -> Any:
    """A module merged from parts: each leaf is the first that is not None.

    >>> from atled import nn, random
    >>> layer = nn.Linear(2, 3, key=random.key(0))
    >>> nn.merge(nn.params(layer), nn.buffers(layer))
    Linear(weight=Param f32[2,3], bias=Param f32[3], in_features=2, out_features=3)
    """
    flat = [tree.flatten(p, is_leaf=lambda x: x is None) for p in parts]
    structure = flat[0][1]
    for _, other in flat[1:]:
        if other != structure:
            raise _unlike(structure, other)
    columns = zip(*[leaves for leaves, _ in flat], strict=True)
    return structure.unflatten([next((x for x in xs if x is not None), None) for xs in columns])


def _unlike(a: tree.TreeDef, b: tree.TreeDef) -> tree.TreeError:
    path, was, other = difference(a, b) or ("", "", "")
    return tree.TreeError(
        errors.explained(
            f"nn.merge: the parts must come from the same model; at {path or 'the root'}, one has {was}, and "
            f"another {other}.",
            "both from the same model: nn.params(model), nn.buffers(model).",
        )
    )


def modules(module: Any) -> list[tuple[str, Module]]:
    """The paths and modules in a module, starting with the module itself.

    >>> from atled import nn, random
    >>> [path for path, m in nn.modules(nn.MultiHeadAttention(8, 2, key=random.key(0)))]
    ['', 'query_proj', 'key_proj', 'value_proj', 'out_proj']
    """
    return [(path, x) for path, x in walk(module) if isinstance(x, Module)]


# -- patterns ---------------------------------------------------------------------------------------------------------


def matches(pattern: str, path: str) -> bool:
    """Whether a pattern matches a path or a prefix of it.

    >>> matches("layers/*/weight", "layers/0/weight"), matches("layers", "layers/0/weight"), matches("bias", "weight")
    (True, True, False)
    """
    template, steps = pattern.strip("/").split("/"), path.split("/") if path else []
    is_rooted = pattern.startswith("/")
    return any([_ends(template, steps[:n], is_rooted) for n in range(len(steps), -1 if template == ["**"] else 0, -1)])


def _ends(wanted: list[str], steps: list[str], is_rooted: bool) -> bool:
    if not wanted:
        return not is_rooted or not steps
    *rest, last = wanted
    if last == "**":
        return any([_ends(rest, steps[:n], is_rooted) for n in range(len(steps) + 1)])
    return bool(steps) and fnmatch.fnmatchcase(steps[-1], last) and _ends(rest, steps[:-1], is_rooted)


def checked(where: str, patterns: Iterable[str], paths: Sequence[str]) -> None:
    """Raise an error for a pattern that matches none of the paths."""
    for pattern in patterns:
        if not isinstance(pattern, str):
            raise TypeError(
                errors.explained(
                    f"{where}: a pattern must be a string; got a {type(pattern).__name__}.",
                    '"weight", "layers/*/weight" or another pattern of paths; optim.partition takes several.',
                )
            )
        if not any([matches(pattern, p) for p in paths]):
            some = ", ".join([p for p in paths if p][:6])
            raise ValueError(
                errors.explained(
                    f"{where}: a pattern must match something; {pattern!r} matches no path.",
                    f"one of the paths of the model: {some}{', …' if len(paths) > 6 else ''}",
                )
            )


def paths_of(model: Any) -> list[str]:
    """The paths of the leaves of a model, in order."""
    return paths(tree.structure(model))


def paths(structure: tree.TreeDef) -> list[str]:
    """The paths of the leaves of a tree, such as `blocks/0/weight`, in order; cached by structure."""
    leaf_paths = _paths.get(structure)
    if leaf_paths is None:
        named = tree.leaves_with_path(structure.unflatten(list(range(structure.num_leaves))))
        leaf_paths = ["/".join([str(k[0]) for k in path]) for path, _ in named]
        if len(_paths) >= 64:
            _paths.clear()
        _paths[structure] = leaf_paths
    return leaf_paths


_paths: dict[tree.TreeDef, list[str]] = {}


def depths(structure: tree.TreeDef, kind: type) -> list[int]:
    """For each leaf, the number of enclosing nodes of a class; cached by structure."""
    leaf_depths = _depths.get((structure, kind))
    if leaf_depths is None:
        leaf_depths = []
        waiting = [(structure, 0)]
        while waiting:
            node, depth = waiting.pop()
            if node.kind is None:
                leaf_depths.append(depth)
                continue
            inside = depth + issubclass(node.kind, kind)
            waiting.extend([(child, inside) for child in reversed(node.children)])
        if len(_depths) >= 64:
            _depths.clear()
        _depths[structure, kind] = leaf_depths
    return leaf_depths


_depths: dict[tuple[tree.TreeDef, type], list[int]] = {}


def declare(module: Any, pattern: str, kind: type[Kind]) -> Any:
    """A copy in which the arrays that match a pattern have another kind. The arrays are shared.

    >>> from atled import nn, random
    >>> nn.declare(nn.Linear(2, 3, key=random.key(0)), "bias", nn.Buffer)
    Linear(weight=Param f32[2,3], bias=Buffer f32[3], in_features=2, out_features=3)
    """
    return _declared("nn.declare", module, pattern, kind, Kind)


def freeze(module: Any, pattern: str = "**") -> Any:
    """A copy in which the parameters that match a pattern are frozen: `grad` computes no gradients for them.

    >>> from atled import nn, random
    >>> nn.freeze(nn.Linear(2, 3, key=random.key(0)), "weight")
    Linear(weight=Frozen f32[2,3], bias=Param f32[3], in_features=2, out_features=3)
    """
    return _declared("nn.freeze", module, pattern, Frozen, Param)


def _declared(where: str, module: Any, pattern: str, kind: type[Kind], of: type[Kind]) -> Any:
    """A copy in which arrays of one kind that match a pattern get another kind; raises if there are none."""
    checked(where, [pattern], paths_of(module))
    count = [0]

    def change(path: str, m: Any) -> Any:
        start, kinds = f"{path}/" if path else "", settled(m).kinds
        named = [n for n, k in kinds.items() if issubclass(k, (of, kind)) and matches(pattern, start + n)]
        count[0] += len(named)
        return with_kinds(m, dict.fromkeys(named, kind))

    copy = changed(module, change)
    if not count[0]:
        what = "no parameters" if of is Param else "no declared attribute"
        raise ValueError(
            errors.explained(
                f"{where}: a pattern must match attributes declared as {of.__name__}; {pattern!r} matches {what}.",
                "the whole attribute: the arrays of a list are declared together.",
            )
        )
    return copy


def names(pattern: str, path: str) -> bool:
    """Whether a pattern names exactly this path."""
    return _ends(pattern.strip("/").split("/"), path.split("/") if path else [], pattern.startswith("/"))


@formerly(compute="compute_dtype", params="param_dtype")
def cast(module: Any, compute_dtype: DTypeLike | None = None, param_dtype: DTypeLike | None = None) -> Any:
    """A copy whose layers compute in another dtype, or whose floating-point parameters are stored in another dtype.

    >>> from atled import nn, random
    >>> nn.cast(nn.Linear(2, 3, key=random.key(0)), compute_dtype="bfloat16").dtype
    dtype(bfloat16)
    """
    if compute_dtype is not None:
        dtype = dtypes.canonical(compute_dtype)
        castable = [p for p, m in modules(module) if "dtype" in settled(m).statics]
        if not castable:
            raise ValueError(errors.explained("nn.cast: no module has a `dtype` to compute in."))
        module = changed(
            module, lambda path, m: with_statics(m, {"dtype": dtype}) if "dtype" in settled(m).statics else m
        )
    if param_dtype is None:
        return module
    param_dtype = dtypes.canonical(param_dtype)
    leaves, structure = tree.flatten(module)
    cast_leaves = [
        x.astype(param_dtype) if k is not None and issubclass(k, (Param, Frozen)) and type_of(x).kind == "f" else x
        for x, k in zip(leaves, structure.kinds, strict=True)
    ]
    return structure.unflatten(cast_leaves)
