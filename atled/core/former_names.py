"""Names that were changed before 0.1: a former name raises an error with the new name. Delete this file in 0.2."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from atled.core import errors

T = TypeVar("T")
FORMER = {  # functions and classes, by package
    "atled": {"checkpoint": "remat"},
    "atled.data": {"joined": "merge_states"},
    "atled.nn": {
        "load_state": "load_state_dict", "only": "filter", "start_decoding": "init_cache", "state": "state_dict",
    },
    "atled.optim": {
        "apply": "apply_updates", "change": "set_hyperparams", "joined": "join_schedules", "norm": "global_norm",
        "clip": "clip_by_global_norm", "Clip": "ClipByGlobalNorm", "groups": "partition", "Groups": "Partition",
        "clip_adaptive": "adaptive_grad_clip", "ClipAdaptive": "AdaptiveGradClip", "clip_layers": "clip_by_norm",
        "ClipLayers": "ClipByNorm", "clip_values": "clip_by_value", "ClipValues": "ClipByValue", "noise": "add_noise",
        "Noise": "AddNoise", "decay": "add_decayed_weights", "Decay": "AddDecayedWeights", "Plateau": "ReduceOnPlateau",
        "plateau": "reduce_on_plateau", "skip_not_finite": "apply_if_finite", "SkipNotFinite": "ApplyIfFinite",
    },
}  # fmt: skip


def formerly(**names: str) -> Callable[[T], T]:
    """Decorate a function whose parameters, or a class whose parameters and attributes, were renamed: old="new".

    >>> @formerly(rate="learning_rate")
    ... def step(learning_rate): return learning_rate
    >>> step(learning_rate=1.0)
    1.0
    >>> step(rate=1.0)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    TypeError: step: 'rate' was renamed to 'learning_rate' in 0.1.
    """

    def decorate(thing: Any) -> Any:
        return _class(thing, names) if isinstance(thing, type) else _function(thing, names)

    return decorate


def _refuse(who: str, names: Mapping[str, str], given: Iterable[str]) -> None:
    for old, new in [(name, names[name]) for name in given if name in names]:
        if new.isidentifier():
            raise TypeError(errors.explained(f"{who}: {old!r} was renamed to {new!r} in 0.1.", f"{new}=…."))
        raise TypeError(errors.explained(f"{who}: {old!r} was replaced in 0.1.", f"{new}."))


def _function(f: Callable[..., Any], names: Mapping[str, str]) -> Callable[..., Any]:
    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs and not names.keys().isdisjoint(kwargs):
            _refuse(f.__qualname__, names, kwargs)
        return f(*args, **kwargs)

    return call


def _parameters(f: Any) -> tuple[str, ...]:
    while hasattr(f, "__wrapped__"):
        f = f.__wrapped__
    code = getattr(f, "__code__", None)  # a named tuple's constructor has no code object
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code else ()


def _class(cls: Any, names: Mapping[str, str]) -> Any:
    init, make, found = cls.__init__, cls.__new__, getattr(cls, "__getattr__", None)

    @functools.wraps(init)
    def new(kind: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs and kind.__init__ is init and not names.keys().isdisjoint(kwargs):
            now = _parameters(init)  # a field may have had the name of a parameter
            _refuse(kind.__name__, names, [name for name in kwargs if name not in now])
        return make(kind) if make is object.__new__ else make(kind, *args, **kwargs)

    def missing(self: Any, name: str) -> Any:
        if name in names:
            raise AttributeError(f"{type(self).__name__}.{name} was renamed to {names[name]} in 0.1.")
        if found is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return found(self, name)

    cls._former = {**getattr(cls, "_former", {}), **names}
    cls.__new__ = new
    cls.__getattr__ = missing
    return cls
