"""Import and export of weights: arrays by name, in the layouts of other libraries.

A layout maps each array of a module class to the name it is stored under, below the module's name, to the order of its
stored axes, and to its piece, if several arrays are stored as one. Layouts are data, which users can extend.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

import atled.numpy as jnp
from atled.core import errors, tree
from atled.core.array import type_of
from atled.core.types import ShapeDtypeStruct
from atled.engine.global_arrays import make_array_from_callback
from atled.nn.convolutions import Conv, ConvTranspose
from atled.nn.input_features import PatchEmbedding
from atled.nn.linear_layers import Embedding, Linear
from atled.nn.module import Module, walk
from atled.nn.module_filters import paths_of
from atled.nn.multi_head_attention import MultiHeadAttention
from atled.nn.normalization import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm
from atled.nn.recurrent import RNN, Bidirectional, GRUCell, LSTMCell, RNNCell
from atled.nn.stack import Stacked
from atled.nn.weight_normalization import SpectralNorm, WeightNorm


class Part(NamedTuple):
    """Where an array of atled is stored in the other library."""

    name: str
    axes: Any = None  # the stored axes in atled's order, or "kernel" for stored axes (out, in, *spatial)
    piece: tuple[int, int, int] | None = None  # index of the piece, number of pieces, and the stored axis
    more: tuple[str, ...] = ()  # names of stored arrays to add to it
    shape: tuple[int, ...] | None = None  # the shape before reordering axes, if it is stored flat

    def taken(self, found: Mapping[str, Any]) -> np.ndarray:
        """Convert the other library's arrays to atled's."""
        x = sum([_host(found[n]) for n in self.more], _host(found[self.name]))
        if self.piece is not None:
            i, n, axis = self.piece
            x = np.split(x, n, axis)[i]
        x = x if self.shape is None else x.reshape(self.shape)
        return np.transpose(x, self.order(x.ndim))

    def given(self, x: np.ndarray) -> np.ndarray:
        """Convert atled's array to the other library's, or a piece of it."""
        theirs = np.transpose(x, np.argsort(self.order(x.ndim)))
        return theirs if self.shape is None else theirs.reshape(-1)

    def order(self, ndim: int) -> tuple[int, ...]:
        """For each axis of atled's array, the corresponding axis of the other library's."""
        if self.axes is None:
            return tuple(range(ndim))
        return (*range(2, ndim), 1, 0) if self.axes == "kernel" else tuple(self.axes)


def _host(x: Any) -> np.ndarray:
    """Convert an array of any library to a NumPy array."""
    if hasattr(x, "detach"):  # PyTorch's, which may be of a dtype that NumPy lacks
        x = x.detach().cpu()
        return np.asarray(x.float()) if str(x.dtype) == "torch.bfloat16" else x.numpy()
    return np.asarray(x)


_T = (1, 0)
_ATTENTION = {
    **{f"{n}_proj/weight": Part("in_proj_weight", _T, (i, 3, 0)) for i, n in enumerate(("query", "key", "value"))},
    **{f"{n}_proj/bias": Part("in_proj_bias", None, (i, 3, 0)) for i, n in enumerate(("query", "key", "value"))},
    "out_proj/weight": Part("out_proj.weight", _T),
    "out_proj/bias": Part("out_proj.bias"),
}
_CELL = {
    "input_weight": Part("weight_ih", _T), "state_weight": Part("weight_hh", _T),
    "bias": Part("bias_ih", more=("bias_hh",)),  # in a GRU, the two biases are separate
    "input_bias": Part("bias_ih"), "state_bias": Part("bias_hh"),
}  # fmt: skip


def _of_cell(path: str, end: str) -> dict[str, Part]:
    """The layout of a cell at a path inside a layer; `end` is the suffix of the stored names."""
    ends = {n: p._replace(name=p.name + end, more=tuple([m + end for m in p.more])) for n, p in _CELL.items()}
    return {f"{path}/{n}": p for n, p in ends.items()}


TORCH: dict[type, dict[str, Part]] = {
    Linear: {"weight": Part("weight", _T), "bias": Part("bias")},
    Embedding: {"weight": Part("weight")},
    Conv: {"weight": Part("weight", "kernel"), "bias": Part("bias")},
    PatchEmbedding: {"weight": Part("weight", "kernel"), "bias": Part("bias")},
    ConvTranspose: {"weight": Part("weight", "kernel"), "bias": Part("bias")},
    LayerNorm: {"scale": Part("weight"), "bias": Part("bias")},
    RMSNorm: {"scale": Part("weight")},
    GroupNorm: {"scale": Part("weight"), "bias": Part("bias")},
    InstanceNorm: {"scale": Part("weight"), "bias": Part("bias")},
    BatchNorm: {
        "scale": Part("weight"), "bias": Part("bias"), "mean": Part("running_mean"), "variance": Part("running_var"),
    },
    MultiHeadAttention: _ATTENTION,
    RNNCell: _CELL, LSTMCell: _CELL, GRUCell: _CELL,
    RNN: _of_cell("cell", "_l0"),
    Bidirectional: {**_of_cell("forward/cell", "_l0"), **_of_cell("backward/cell", "_l0_reverse")},
}  # fmt: skip
# GPT-2 as stored by Hugging Face: transposed weights, with queries, keys and values concatenated
HUGGING_FACE_GPT2: dict[type, dict[str, Part]] = {
    **TORCH,
    Linear: {"weight": Part("weight"), "bias": Part("bias")},
    MultiHeadAttention: {
        **{f"{n}_proj/weight": Part("c_attn.weight", None, (i, 3, 1)) for i, n in enumerate(("query", "key", "value"))},
        **{f"{n}_proj/bias": Part("c_attn.bias", None, (i, 3, 0)) for i, n in enumerate(("query", "key", "value"))},
        "out_proj/weight": Part("c_proj.weight"),
        "out_proj/bias": Part("c_proj.bias"),
    },
}


_COUNTERS = {"num_batches_tracked"}  # stored by PyTorch with the statistics, and ignored


def _places(
    model: Any, rules: Mapping[str, str], layout: Mapping[type, Mapping[str, Part]]
) -> list[list[tuple[str, Part]]]:
    """For each leaf, its module's stored name and its `Part`: one pair, or in a stack, one for each layer."""
    inside = {path: m for path, m in walk(model) if isinstance(m, Module)}
    stacks = {path: m.num_layers for path, m in inside.items() if isinstance(m, Stacked)}
    places, unused = [], set(rules)
    for path in paths_of(model):
        owners = [o for o in inside if path.startswith(f"{o}/") or not o]
        best: tuple[str, Part] | None = None
        for owner in sorted(owners, key=len):  # the outermost module with a layout
            part = _parts(inside[owner], layout).get(path[len(owner) :].strip("/"))
            if part is not None:
                best = (owner, part)
                break
        owner, part = best or (path.rpartition("/")[0], Part(path.rpartition("/")[2]))
        names = [owner]
        for stack, count in sorted(stacks.items(), key=lambda item: -len(item[0])):  # the innermost first
            start = f"{stack}/layers".strip("/")
            if f"{owner}/".startswith(f"{start}/"):
                names = [f"{stack}/{i}{n[len(start) :]}".strip("/") for i in range(count) for n in names]
        unused -= {rule for rule in rules if any([_begins(rule, n) for n in names])}
        places.append([(_renamed(n, rules), part) for n in names])
    if unused:
        raise ValueError(
            errors.explained(
                f"nn.load_state_dict: a rule must match a path; {min(unused)!r} matches none.",
                f"one of {_some([p for p in inside if p])}; layers of a Stack are numbered: blocks/0.",
            )
        )
    return places


def _parts(module: Any, layout: Mapping[type, Mapping[str, Part]]) -> Mapping[str, Part]:
    """The layout of a module: that of its class or nearest base; for a reparametrized layer, of the wrapped layer."""
    known = next((layout[c] for c in type(module).__mro__ if c in layout), None)
    if known is not None or not isinstance(module, (WeightNorm, SpectralNorm)):
        return known or {}
    inner = _parts(module.layer, layout)
    weight = inner.get(module.name, Part(module.name.replace("/", ".")))
    path, _, last = weight.name.rpartition(".")
    name, entries = _joined(path, f"parametrizations.{last}"), {f"layer/{n}": p for n, p in inner.items()}
    if isinstance(module, WeightNorm):
        parts = {"scale": f"{name}.original0", "direction": f"{name}.original1"}
        return entries | {n: weight._replace(name=there) for n, there in parts.items()}
    entries |= {"weight": weight._replace(name=f"{name}.original")}
    if module.v is None:  # gradients have None for buffers
        return entries
    rows = module.v.shape[len(module.u.shape) - 1 :]  # without axes for layers of a stack
    order = weight.order(len(rows) + 1)
    others = [n for i, n in enumerate(order) if i != module.axis % len(order)]
    axes = [sorted(others).index(n) for n in others]
    shape = tuple([rows[axes.index(i)] for i in range(len(rows))])
    return entries | {"u": Part(f"{name}.0._u"), "v": Part(f"{name}.0._v", axes, shape=shape)}


def _begins(pattern: str, path: str) -> Any:
    """The match of a rule's pattern with the first components of a path."""
    return re.match(re.escape(pattern).replace(r"\*", "([^/]+)") + "(?=/|$)", path) if pattern else re.match("", path)


def _renamed(path: str, rules: Mapping[str, str]) -> str:
    """A module's path in the other library: by the first rule that matches a prefix, then component by component."""
    for pattern, name in rules.items():
        match = _begins(pattern, path)
        if match:
            rest = path[match.end() :].strip("/").replace("/", ".")
            return ".".join([x for x in (name.format(*match.groups()), rest) if x])
    return path.replace("/", ".")


def _joined(module: str, name: str) -> str:
    return f"{module}.{name}" if module else name


def load_state_dict(
    model: Any,
    state_dict: Mapping[str, Any],
    rename: Mapping[str, str] | None = None,
    layout: Mapping[type, Mapping[str, Part]] | None = None,
    *,
    keep_dtype: bool = False,
) -> Any:
    """A copy of a model with weights from a dict of arrays by name, such as a `state_dict` of PyTorch.

    Args:
        rename: names of modules in the other library by their paths in atled: `{"blocks/*/attention": "h.{}.attn"}`.
            Paths without a rule keep their components, joined by dots.
        layout: layouts by module class, which also apply to subclasses; PyTorch's by default.
        keep_dtype: keep the dtypes of the arrays; otherwise they are cast to those of the model.

    Every array of the model must be present with its shape; unused names are an error as well.

    >>> import numpy as np
    >>> from atled import nn, random
    >>> there = {"fc.weight": np.ones((3, 2), "float32"), "fc.bias": np.zeros(3, "float32")}
    >>> nn.load_state_dict(nn.Linear(2, 3, key=random.key(0)), there, {"": "fc"}).weight.shape
    (2, 3)
    """
    places = _places(model, rename or {}, TORCH if layout is None else layout)
    leaves, structure = tree.flatten(model)
    paths, asked = paths_of(model), set()
    missing, odd, new_leaves = [], [], []
    for path, x, there in zip(paths, leaves, places, strict=True):
        full = [p._replace(name=_joined(m, p.name), more=tuple([_joined(m, n) for n in p.more])) for m, p in there]
        names = [n for p in full for n in (p.name, *p.more)]
        asked.update(names)
        absent = [n for n in names if n not in state_dict]
        if absent:
            missing.append(f"{path} ({absent[0]})")
            continue
        taken = [p.taken(state_dict) for p in full]
        counts = _counts(path, model)
        t = x.type if isinstance(x, ShapeDtypeStruct) else type_of(x)
        shapes = {y.shape for y in taken}
        if len(shapes) > 1 or (*counts, *taken[0].shape) != t.shape:
            wrong = next(n for n, y in enumerate(taken) if (*counts, *y.shape) != t.shape)
            odd.append(f"{path} is {t}, and {full[wrong].name} gives {taken[wrong].shape}")
            continue
        if taken[0].dtype.kind == "c" and t.kind != "c":
            raise TypeError(errors.explained(f"nn.load_state_dict: {path} is {t}, but {full[0].name} is complex."))
        new_leaves.append(_placed_like(taken, counts, taken[0].dtype if keep_dtype else t.dtype, x))
    spare = [n for n in state_dict if n not in asked and n.rpartition(".")[2] not in _COUNTERS]
    if missing or odd or spare:
        problems = [f"missing: {_some(missing)}"] if missing else []
        problems += [f"of another shape: {_some(odd)}"] if odd else []
        problems += [f"unused: {_some(spare)}"] if spare else []
        raise ValueError(
            errors.explained(
                f"nn.load_state_dict: names and shapes must match the model; {'; '.join(problems)}.",
                "rename={'our/path': 'their.name'}, or leave the names out of the state.",
            )
        )
    return structure.unflatten(new_leaves)


def _placed_like(layers: list[np.ndarray], counts: tuple[int, ...], dtype: Any, x: Any) -> Any:
    """The arrays of all layers in one, with the sharding of another array if that is committed.

    Only the shards of this process are read, one at a time.
    """
    sharding = x.sharding if getattr(x, "committed", isinstance(x, ShapeDtypeStruct)) else None
    if sharding is None:
        return jnp.asarray(np.stack(layers).reshape((*counts, *layers[0].shape)), dtype)
    which = np.arange(len(layers)).reshape(counts)

    def shard(index: Any) -> np.ndarray:
        numbers, inside = which[index[: len(counts)]], index[len(counts) :]
        out = np.stack([layers[i][inside] for i in numbers.ravel()])
        return out.reshape((*numbers.shape, *out.shape[1:])).astype(dtype)

    return make_array_from_callback((*counts, *layers[0].shape), sharding, shard)


def _counts(path: str, model: Any) -> tuple[int, ...]:
    """The number of layers of each stack that contains a leaf, outermost first."""
    stacks = [
        (p, m.num_layers)
        for p, m in walk(model)
        if isinstance(m, Stacked) and path.startswith(f"{p}/layers/".lstrip("/"))
    ]
    return tuple([n for _, n in sorted(stacks, key=lambda item: len(item[0]))])


def _some(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f", and {len(names) - 4} more" if len(names) > 4 else "")


def state_dict(
    model: Any,
    rename: Mapping[str, str] | None = None,
    layout: Mapping[type, Mapping[str, Part]] | None = None,
) -> dict[str, np.ndarray]:
    """The weights of a model by name, in the layout of another library: the inverse of `load_state_dict`.

    >>> from atled import nn, random
    >>> {name: x.shape for name, x in nn.state_dict(nn.Linear(2, 3, key=random.key(0)), {"": "fc"}).items()}
    {'fc.weight': (3, 2), 'fc.bias': (3,)}
    """
    places = _places(model, rename or {}, TORCH if layout is None else layout)
    out: dict[str, Any] = {}
    pieces: dict[str, list[Any]] = {}
    for path, x, there in zip(paths_of(model), tree.leaves(model), places, strict=True):
        host = np.asarray(x)
        layers = host.reshape((-1, *host.shape[len(_counts(path, model)) :]))
        for layer, (module, part) in zip(layers, there, strict=True):
            own, name = part.given(layer), _joined(module, part.name)
            if name in out and part.piece is None:
                raise ValueError(
                    errors.explained(f"nn.state_dict: rename must give each array its own name; two arrays get {name}.")
                )
            if part.piece is None:
                out[name] = own
            else:
                pieces.setdefault(name, [None] * part.piece[1])[part.piece[0]] = (own, part.piece[2])
                out[name] = None
            for more in part.more:
                out[_joined(module, more)] = np.zeros_like(own)
    for name, arrays in pieces.items():
        if len({x.shape for x, _ in arrays}) > 1:
            raise ValueError(
                errors.explained(
                    f"nn.state_dict: the pieces of {name} must have the same shape; got "
                    f"{[x.shape for x, _ in arrays]}.",
                    "a custom layout for this class: layout={**weights.TORCH, MyLayer: {...}}.",
                )
            )
        out[name] = np.concatenate([x for x, _ in arrays], arrays[0][1])
    return out
