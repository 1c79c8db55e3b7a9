"""Why a collective is in a program, in a few words: written by the user, or inserted by the partitioner for an op.

The partitioner records for which op it inserted a collective, not why. The reason follows from its kind and
what that op does: an elementwise op never needs other devices, so there the sharding was changed explicitly.
"""

from __future__ import annotations

from collections.abc import Sequence

from atled.inspect.hlo_parser import OpName

# Ops that are collectives written by the user, and their names in `lax`.
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
    """Whether the user wrote the collective."""
    return bool(ops) and all([op.name in WRITTEN and not op.is_backward for op in ops])


def reason(kind: str, ops: Sequence[OpName], over: str, combiner: str) -> str:
    """Why a collective of this kind is there, for these ops; `combiner` is what an all-reduce does to its operands."""
    names = list(dict.fromkeys([op.name for op in ops]))
    is_backward = any([op.is_backward for op in ops])
    if is_written(ops):
        return f"written: lax.{WRITTEN[names[0]]}"
    if names == ["psum_invariant"]:
        return f"gradient of a value that all devices of {over} share: parts are added up"
    if names and names[0] in WRITTEN:
        return f"backward of the line's own collective: lax.{WRITTEN[names[0]]}"
    if kind in ("all-reduce", "reduce-scatter"):
        explanation = _reduced(names, is_backward, over, _COMBINED.get(combiner, "parts"))
        return f"{explanation}, each device keeps a share" if kind == "reduce-scatter" else explanation
    return ("backward: " if is_backward else "") + _moved(kind, names, over)


def _reduced(names: Sequence[str], is_backward: bool, over: str, parts: str) -> str:
    if is_backward:
        return f"gradient: every part of {over} gives a share of the sum"
    for name in names:
        if name in CONTRACTIONS:
            return f"{CONTRACTIONS[name]} contracts a dimension split over {over}: partial {parts} are combined"
        if name in REDUCTIONS:
            return f"{name} over a dimension split over {over}: partial {parts} are combined"
        if name in LOOKUPS:
            return f"{name} from what is split over {over}: each device looks in its own part"
        if name in PARTS:
            return f"{name} of what is split over {over}: the device that has it gives it to all"
        if name in UPDATES:
            return f"{name} into what is whole over {over}: updates of all devices are combined"
    return f"{_listed(names)} over {over}: partial {parts} are combined"


def _moved(kind: str, names: Sequence[str], over: str) -> str:
    contraction = next((CONTRACTIONS[n] for n in names if n in CONTRACTIONS), None)
    along = next((n for n in names if n in ALONG), None)
    lookup = next((n for n in names if n in LOOKUPS or n in UPDATES), None)
    if kind == "all-gather":
        who = contraction or lookup or along
        return f"{who} needs whole what is split over {over}" if who else f"resharding: split over {over}, wanted whole"
    if kind == "all-to-all":
        if along:
            return f"{along} along a dimension split over {over}: another one is split meanwhile"
        return f"resharding: {over} moves to another dimension"
    if kind == "collective-permute":
        if any([n in NEIGHBOURS for n in names]):
            return f"{along} across the borders of parts: neighbours along {over} hand over their edges"
        return f"resharding: parts change places along {over}"
    return f"{_listed(names)}: one device of {over} sends to the others"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "an op"
