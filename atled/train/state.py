"""`State`, all that a run carries from step to step; `gradients` and `step`, which join models and optimizers."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from atled import nn, random
from atled.core import errors
from atled.core.array import describe
from atled.higher_order.jit import jit
from atled.optim.optimizer import Optimizer, norm
from atled.transforms.grad import value_and_grad


class State(nn.Module):
    """A model, its optimizer with what that remembers, the number of steps so far, and a random key.

    >>> from atled import nn, optim, random, train
    >>> state = train.State(nn.Linear(2, 1, key=random.key(0)), optim.AdamW(1e-3), key=random.key(1))
    >>> int(state.step)
    0
    """

    model: Any
    optimizer: Any
    memory: Any
    step: Any
    key: Any

    def __init__(self, model: Any, optimizer: Any, *, key: Any = None, split: str | None = None) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(
                errors.explained(
                    f"train.State: the second argument must be an optimizer; got {describe(optimizer)}.",
                    "optim.AdamW(1e-3).",
                )
            )
        self.model, self.optimizer = model, optimizer
        self.memory = nn.Buffer(optimizer.init(model, split=split))
        self.step = nn.Buffer(0)
        self.key = None if key is None else nn.Buffer(key)

    def step_key(self) -> Any:
        """The key of this step: the same for the same step of a run, so that a run can be resumed."""
        if self.key is None:
            raise TypeError(
                errors.explained("train.State: there is no key.", "train.State(model, optimizer, key=random.key(0)).")
            )
        return random.fold_in(self.key, self.step)

    def apply(self, model: Any, grads: Any) -> State:
        """The state after a step: the model with its gradients applied.

        >>> from atled import nn, optim, random, train
        >>> state = train.State(nn.Linear(2, 1, key=random.key(0)), optim.SGD(0.1))
        >>> value, model, grads = train.gradients(lambda m, x: m(x).sum())(state.model, state.model.weight.T)
        >>> int(state.apply(model, grads).step)
        1
        """
        made = self.__copy__()
        made.model, made.memory = self.optimizer.step(model, grads, self.memory)
        made.step = self.step + 1
        return made


def gradients(loss: Callable[..., Any], *, has_aux: bool = False, wrt: Any = None) -> Callable[..., Any]:
    """A function that gives the value of a loss, the model as the loss left it, and the gradients.

    What layers assign to themselves, such as statistics, is in the model that comes back. With `has_aux`, the loss
    gives (value, more), and so does the result in its first place.

    >>> from atled import nn, random, train
    >>> import atled.numpy as jnp
    >>> norm = nn.BatchNorm(1, momentum=0.5)
    >>> value, norm, grads = train.gradients(lambda m, x: m(x).sum())(norm, jnp.array([[2.0], [4.0]]))
    >>> norm.mean, grads.mean
    (Array([1.5], dtype=float32), None)
    """

    def run(model: Any, *args: Any, **kwargs: Any) -> Any:
        out = loss(model, *args, **kwargs)
        value, more = out if has_aux else (out, None)
        return value, (model, more)

    run.__name__ = getattr(loss, "__name__", "loss")
    both = value_and_grad(run, has_aux=True, wrt=wrt)

    def call(model: Any, *args: Any, **kwargs: Any) -> Any:
        (value, (after, more)), grads = both(model, *args, **kwargs)
        return ((value, more) if has_aux else value), after, grads

    call.__name__ = run.__name__
    return call


def step(loss: Callable[..., Any], *, has_aux: bool = False, donate: bool = True) -> Callable[..., Any]:
    """A compiled function `state, metrics = step(state, *batch)`: one step of training.

    The loss is `loss(model, *batch)`; if it has a parameter `key`, it gets the key of the step. `metrics` is a dict
    with `loss` and `norm`, that of the gradients, and what else the loss gives as a dict, with `has_aux`.

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
    both = gradients(loss, has_aux=has_aux)
    try:
        asked = inspect.signature(loss).parameters.get("key")
    except (TypeError, ValueError):
        asked = None
    must_have_key = asked is not None and asked.default is asked.empty

    def one(state: State, *batch: Any) -> tuple[State, dict[str, Any]]:
        if not isinstance(state, State):
            raise TypeError(
                errors.explained(
                    f"train.step: the first argument must be a train.State; got {describe(state)}.",
                    "train.State(model, optimizer).",
                )
            )
        takes_key = must_have_key or (asked is not None and state.key is not None)
        more = {"key": state.step_key()} if takes_key else {}
        value, model, grads = both(state.model, *batch, **more)
        value, extra = value if has_aux else (value, {})
        if not isinstance(extra, dict):
            raise TypeError(
                errors.explained(
                    f"train.step: with has_aux, the loss must give (value, dict); got {describe(extra)}.",
                    "return value, {'accuracy': accuracy}.",
                )
            )
        return state.apply(model, grads), {"loss": value, "norm": norm(grads), **extra}

    one.__name__ = getattr(loss, "__name__", "step")
    return jit(one, donate_argnums=0) if donate else jit(one)
