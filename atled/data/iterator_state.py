"""The state of an iterator: a dict of numbers and strings, and the checks for restoring it."""

from __future__ import annotations

import copy
import difflib
import re
from collections.abc import Sequence
from typing import Any

from atled.core import errors

VERSION = 1


def state_of(pipeline: Any, place: dict[str, Any]) -> dict[str, Any]:
    """The state of an iterator at a position."""
    state = {"version": VERSION, "pipeline": pipeline.text, **copy.deepcopy(place)}
    if pipeline.takes_uneven() and pipeline.process[1] > 1:
        state["taken"] = place.get("taken", 0)
        state["process"], state["processes"] = pipeline.process
    return state


def merge_states(states: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The states of all processes, in order of rank, combined into one. Only needed with `filter` or `pack`.

    Processes that filter or pack consume different numbers of examples, so each has its own state. The merged state
    can be restored by the same number of processes, or by another number if all have consumed the same number of
    examples.

    >>> from atled import data
    >>> odd = data.source(range(12)).filter(lambda x: x % 2).batch(2)
    >>> iterators = [odd.sharded(i, 2).iterator() for i in range(2)]
    >>> len(data.merge_states([i.state() for i in iterators])["each"])
    2
    """
    numbers = [s.get("process", 0) for s in states]
    counts = {s.get("processes", 1) for s in states}
    if numbers != list(range(len(states))) or counts != {len(states)} or len({s["pipeline"] for s in states}) != 1:
        raise ValueError(
            errors.explained(
                "data.merge_states: the states must be those of all processes of one pipeline, in order of rank; "
                "got processes "
                f"{numbers} of {sorted(counts)}.",
                "distributed.gather, or one file for each process.",
            )
        )
    first = states[0]
    return {"version": first["version"], "pipeline": first["pipeline"], "each": [dict(s) for s in states]}


def place_in(state: Any, pipeline: Any) -> dict[str, Any]:
    """The position of a state, for a pipeline and its process; raises if it does not match."""
    if not isinstance(state, dict) or not {"version", "pipeline"} <= set(state):
        raise TypeError(
            errors.explained("data.restore: expected a state returned by iterator.state().", "restore(state).")
        )
    if state["version"] != VERSION:
        raise ValueError(
            errors.explained(f"data.restore: the state must have version {VERSION}; got {state['version']!r}.")
        )
    if state["pipeline"] != str(pipeline):
        raise ValueError(
            errors.explained(
                f"data.restore: the state belongs to a different pipeline. "
                f"{_difference(state['pipeline'], str(pipeline))}",
                "the pipeline that the state was saved with.",
            )
        )
    index, count = pipeline.process
    for one in state.get("each", [state]):
        numbers = [one.get(k) for k in ("epoch", "batches", "position")] + [one.get("taken", 0), one.get("offset", 0)]
        if not all([isinstance(n, int) and n >= 0 for n in numbers]):
            raise ValueError(
                errors.explained(f"data.restore: the numbers of a state must be 0 or more; got {numbers}.")
            )
    each = state.get("each") or [state]
    saved = each[0].get("processes", 1)
    if saved == count and count > 1:
        own_state = each[index] if len(each) > 1 else each[0]
        if own_state["process"] != index:
            raise ValueError(
                errors.explained(
                    f"data.restore: each process has its own state; this is process {index}, the state is that of "
                    f"process {own_state['process']}.",
                    "data.merge_states(states), which all processes can restore.",
                )
            )
        return own_state
    if saved == 1:
        if count > 1 and each[0].get("offset"):
            raise ValueError(
                errors.explained(
                    f"data.restore: a packing pipeline cannot be redistributed in the middle of an example; "
                    f"the state was saved by one process, but there are {count}.",
                    "one process.",
                )
            )
        return each[0]
    return _moved(each, saved, count)


def _moved(each: list[dict[str, Any]], saved: int, count: int) -> dict[str, Any]:
    """One position for all processes, from the states of a different number of processes."""
    same = len(each) == saved and all([_used(s) == _used(each[0]) for s in each]) and not each[0].get("offset")
    if not same:
        raise ValueError(
            errors.explained(
                f"data.restore: the state was saved by {saved} processes, but there are {count}; with filter or pack, "
                "each process has consumed different examples, and the rest cannot be redistributed"
                + (" (this is the state of one process only)." if len(each) < saved else "."),
                f"{saved} processes; or data.merge_states(states) at a point where all have consumed the same number "
                "of examples.",
            )
        )
    first = each[0]
    return {**first, "position": first["position"] + first["taken"] * saved, "taken": 0}


def _used(state: dict[str, Any]) -> tuple[Any, ...]:
    return tuple([state.get(k) for k in ("epoch", "batches", "position", "taken", "offset")])


def _difference(saved: str, here: str) -> str:
    """The steps in which two descriptions of pipelines differ, for a message."""
    old, new = (re.findall(r".+?\)(?=[.,)]|$)", text) or [text] for text in (saved, here))
    lines = [x for x in difflib.ndiff(old, new) if x[0] in "-+"]
    saved_parts = " ".join([x[2:] for x in lines if x[0] == "-"])
    here_parts = " ".join([x[2:] for x in lines if x[0] == "+"])
    return f"The saved pipeline has {saved_parts or 'nothing'}, this pipeline has {here_parts or 'nothing'}."
