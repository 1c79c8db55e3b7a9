"""Explains in a few words why a program contains a collective: the user wrote it, or an op made the partitioner insert
it.

The partitioner records the op for which it inserted a collective, but not the reason, which follows from the kind of
collective and the op. An elementwise op needs no other devices, so its collective is an explicit resharding.
"""

from __future__ import annotations

from collections.abc import Sequence

from atled.inspect.hlo_parser import OpName

# Collective ops that users write, and their names in `lax`.
WRITTEN = {
    "psum": "psum", "psum_invariant": "psum", "pmax": "pmax", "pmin": "pmin", "all_gather": "all_gather",
    "psum_scatter": "psum_scatter", "ppermute": "ppermute", "all_to_all": "all_to_all",
}  # fmt: skip
CONTRACTIONS = {"dot_general": "matmul", "convolution": "convolution"}
REDUCTIONS = (
    "reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_and", "reduce_or", "reduce_xor", "argmax",
    "argmin", "softmax", "logsumexp",
)  # fmt: skip
LOOKUPS = ("gather", "dynamic_slice", "select_and_gather")
UPDATES = ("scatter", "dynamic_update_slice", "select_and_scatter")
PARTS = ("concatenate", "slice", "split", "pad", "reverse", "reshape", "transpose", "broadcast")
NEIGHBOURS = ("concatenate", "slice", "split", "pad", "reverse", "convolution", "reduce_window", "dynamic_slice")
ALONG = (
    "sort", "top_k", "fft", "cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", "cholesky", "lu", "qr", "eigh",
    "svd", "triangular_solve", "solve", "reshape", "scan", "while", *NEIGHBOURS,
)  # fmt: skip
_COMBINED = {"add": "sums", "maximum": "maxima", "minimum": "minima", "multiply": "products", "and": "truths",
             "or": "truths"}  # fmt: skip


def is_written(ops: Sequence[OpName]) -> bool:
    """Whether the user wrote the collective: all its ops are collectives outside of the backward pass."""
    return bool(ops) and all([op.name in WRITTEN and not op.is_backward for op in ops])


def reason(kind: str, ops: Sequence[OpName], over: str, combiner: str) -> str:
    """The reason for a collective of this kind, given its ops, its axes as text, and the opcode of its reduction."""
    names = list(dict.fromkeys([op.name for op in ops]))
    is_backward = any([op.is_backward for op in ops])
    if is_written(ops):
        return f"written: lax.{WRITTEN[names[0]]}"
    if names == ["psum_invariant"]:
        return f"gradient of a value replicated over {over}: partial gradients are summed"
    if names and names[0] in WRITTEN:
        return f"backward pass of lax.{WRITTEN[names[0]]} on this line"
    if kind in ("all-reduce", "reduce-scatter"):
        explanation = _reduced(names, is_backward, over, _COMBINED.get(combiner, "parts"))
        return f"{explanation}, each device keeps one shard" if kind == "reduce-scatter" else explanation
    return ("backward: " if is_backward else "") + _moved(kind, names, over)


def _reduced(names: Sequence[str], is_backward: bool, over: str, parts: str) -> str:
    if is_backward:
        return f"gradient: partial sums over {over} are combined"
    for name in names:
        if name in CONTRACTIONS:
            return f"{CONTRACTIONS[name]} contracts a dimension split over {over}: partial {parts} are combined"
        if name in REDUCTIONS:
            return f"{name} over a dimension split over {over}: partial {parts} are combined"
        if name in LOOKUPS:
            return f"{name} from an array split over {over}: each device reads its own shard"
        if name in PARTS:
            return f"{name} of an array split over {over}: the device that holds an element sends it"
        if name in UPDATES:
            return f"{name} into an array replicated over {over}: updates of all devices are combined"
    return f"{_listed(names)} over {over}: partial {parts} are combined"


def _moved(kind: str, names: Sequence[str], over: str) -> str:
    contraction = next((CONTRACTIONS[n] for n in names if n in CONTRACTIONS), None)
    along = next((n for n in names if n in ALONG), None)
    lookup = next((n for n in names if n in LOOKUPS or n in UPDATES), None)
    if kind == "all-gather":
        who = contraction or lookup or along
        return f"{who} needs the full axis split over {over}" if who else f"resharding: split over {over} to replicated"
    if kind == "all-to-all":
        if along:
            return f"{along} along a dimension split over {over}: the split moves to another dimension"
        return f"resharding: {over} moves to another dimension"
    if kind == "collective-permute":
        if any([n in NEIGHBOURS for n in names]):
            return f"{along} across the edges of shards: neighbors along {over} exchange edges"
        return f"resharding: shards move between devices along {over}"
    return f"{_listed(names)}: one device of {over} sends to the others"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "an op"
