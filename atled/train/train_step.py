"""`step`: one compiled train step. `guarded`: a train step that keeps the state if the loss is not finite."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import atled.numpy as jnp
from atled import random
from atled.core import errors, tree
from atled.core.array import describe, is_array_like, shown, type_of
from atled.core.former_names import formerly
from atled.higher_order.scan import scan
from atled.higher_order.while_loop import while_loop
from atled.optim.optimizer import global_norm
from atled.staging.jit import eval_shape, jit
from atled.train.state import State, gradients

RESERVED = {"loss", "norm", "step", "skipped"}  # names in the log


@formerly(micro="gradient_accumulation_steps")
def step(
    loss: Callable[..., Any], *, has_aux: bool = False, donate: bool = True, gradient_accumulation_steps: int = 1
) -> Callable[..., Any]:
    """A compiled function `state, metrics = step(state, *batch)`: one step of training.

    The loss is `loss(model, *batch)`; if it has a parameter `key`, it gets the key of the step. `metrics` is a dict
    with `loss` and `norm`, the global norm of the gradients, and, with `has_aux`, the dict that the loss returns.

    Args:
        donate: whether the state is donated.
        gradient_accumulation_steps: the number of microbatches that the batch is split into along the first axis, to
            save memory. Losses and gradients are means over the microbatches. Each microbatch has its own key.

    >>> from atled import nn, optim, random, train
    >>> import atled.numpy as jnp
    >>> def loss(model, x, y):
    ...     return ((model(x) - y) ** 2).mean()
    >>> state = train.State(nn.Linear(2, 1, key=random.key(0)), optim.SGD(0.1))
    >>> step, x, y = train.step(loss), jnp.ones((4, 2)), jnp.zeros((4, 1))
    >>> first = float(step(state, x, y)[1]["loss"])
    >>> state = train.State(nn.Linear(2, 1, key=random.key(0)), optim.SGD(0.1))
    >>> for _ in range(5):
    ...     state, metrics = step(state, x, y)
    >>> float(metrics["loss"]) < first
    True
    """
    begun = _begun(loss, has_aux, gradient_accumulation_steps)

    def run(state: State, *batch: Any) -> tuple[State, dict[str, Any]]:
        metrics, apply = begun(state, *batch)
        return apply(state), metrics

    run.__name__ = begun.__name__
    return jit(run, donate_argnums=0) if donate else jit(run)


def guarded(loss: Callable[..., Any], *, has_aux: bool, gradient_accumulation_steps: int) -> Callable[..., Any]:
    """A compiled function `state, is_held, metrics = step(state, is_held, *batch)` that skips steps with a non-finite
    loss.

    After the first non-finite loss or gradient, all calls return the state of the step before, so that further steps
    can be launched before the loss is read.
    """
    begun = _begun(loss, has_aux, gradient_accumulation_steps)

    def run(state: State, is_held: Any, *batch: Any) -> tuple[State, Any, dict[str, Any]]:
        metrics, apply = begun(state, *batch)
        is_good = jnp.isfinite(metrics["loss"])
        if not state.optimizer.has_scale:  # with loss scaling, non-finite gradients are expected
            is_good &= jnp.isfinite(metrics["norm"])
        is_held = is_held | ~is_good
        # A loop of zero or one steps updates the state in place; `where` and `cond` would copy it.
        after, _ = while_loop(lambda now: ~now[1], lambda now: (apply(now[0]), jnp.asarray(True)), (state, is_held))
        return after, is_held, metrics

    run.__name__ = begun.__name__
    return jit(run, donate_argnums=0)


def takes_key(loss: Callable[..., Any]) -> tuple[bool, bool]:
    """Whether a function has a parameter `key`, and whether it must be given."""
    try:
        asked = inspect.signature(loss).parameters.get("key")
    except (TypeError, ValueError):
        asked = None
    return asked is not None, asked is not None and asked.default is asked.empty


def _begun(loss: Callable[..., Any], has_aux: bool, micro: int) -> Callable[..., Any]:
    """A function of a state and a batch that returns the metrics of a step, and a function that applies the step.

    The second function takes the state again, so that a loop can carry the state.
    """
    may_have_key, must_have_key = takes_key(loss)
    if not isinstance(micro, int) or isinstance(micro, bool) or micro < 1:
        raise ValueError(
            errors.explained(f"train.step: gradient_accumulation_steps must be a positive integer; got {micro!r}.")
        )

    def begun(state: State, *batch: Any) -> tuple[dict[str, Any], Callable[[State], State]]:
        if not isinstance(state, State):
            raise TypeError(
                errors.explained(
                    f"train.step: the first argument must be a train.State; got {describe(state)}.",
                    "train.State(model, optimizer).",
                )
            )
        before = state.model
        has_key = must_have_key or (may_have_key and state.key is not None)
        more = {"key": state.step_key()} if has_key else {}
        scale = functools.partial(state.optimizer.scale_loss, state=state.opt_state)

        def part(model: Any, *batch: Any, **more: Any) -> tuple[Any, Any, Any, Any]:
            value, model, grads = gradients(loss, has_aux=has_aux, scale=scale)(model, *batch, **more)
            value, extra = value if has_aux else (value, {})
            if not isinstance(extra, dict) or not all([is_array_like(x) for x in extra.values()]):
                raise TypeError(
                    errors.explained(
                        f"train.step: with has_aux, the loss must return (value, dict of arrays); got "
                        f"{describe(extra)}.",
                        "return value, {'accuracy': accuracy}.",
                    )
                )
            if RESERVED & set(extra):
                raise ValueError(
                    errors.explained(
                        f"train.step: {', '.join(sorted(RESERVED))} are reserved names; the loss returns "
                        f"{', '.join(extra)}."
                    )
                )
            return value, extra, model, grads

        value, extra, model, grads = (part if micro == 1 else _in_parts(part, micro))(state.model, *batch, **more)

        def elsewhere(model: Any) -> Any:
            """The loss of this batch with other parameters; state that layers assign is discarded."""
            same = {name: random.clone(key) for name, key in more.items()}
            out = loss(tree.map(lambda x: x, model), *batch, **same)
            return out[0] if has_aux else out

        def apply(state: State) -> State:
            after = model
            if state.model is not before:  # leaves that the loss did not assign come from `state`
                after = tree.map(lambda now, old, new: now if new is old else new, state.model, before, model)
            return state.apply_gradients(after, grads, value=value, loss=elsewhere)

        return {"loss": value, "norm": global_norm(grads) / scale(jnp.float32(1)), **extra}, apply

    begun.__name__ = getattr(loss, "__name__", "step")
    return begun


def _in_parts(part: Callable[..., Any], micro: int) -> Callable[..., Any]:
    """A function that runs `part` on microbatches in sequence and returns mean results and the final model."""

    def run(model: Any, *batch: Any, **more: Any) -> tuple[Any, Any, Any, Any]:
        parts = tree.map(lambda x: _cut(x, micro), batch)
        keys = {name: random.split(key, micro) for name, key in more.items()}
        first = tree.map(lambda x: x[0], (parts, keys))
        like = eval_shape(lambda m, p, k: part(m, *p, **k)[3], model, *first)
        total = tree.map(lambda t: jnp.zeros(t.shape, t.dtype), like)

        def body(carry: Any, own: Any) -> Any:
            model, total = carry
            value, extra, model, grads = part(model, *own[0], **own[1])
            return (model, tree.map(jnp.add, total, grads)), (value, extra)

        (model, total), (values, extras) = scan(body, (model, total), (parts, keys))
        value, extra = tree.map(lambda x: jnp.mean(x, 0), (values, extras))
        return value, extra, model, tree.map(lambda g: g / micro, total)

    return run


def _cut(x: Any, micro: int) -> Any:
    """A batch as microbatches on a new first axis; each has every `micro`-th row, so that devices keep their rows."""
    shape = type_of(x).shape
    if not shape or shape[0] % micro:
        raise ValueError(
            errors.explained(
                f"train.step: gradient_accumulation_steps={micro} must divide the length of the batch's first axis; "
                "got "
                f"{shown(x)}.",
                "another batch size.",
            )
        )
    return jnp.swapaxes(jnp.reshape(x, (shape[0] // micro, micro, *shape[1:])), 0, 1)
