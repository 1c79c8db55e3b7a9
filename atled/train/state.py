"""`State`, the training state, and `gradients` of a loss with respect to a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import atled.numpy as jnp
from atled import nn, random
from atled.core import errors, tree
from atled.core.array import describe
from atled.core.former_names import formerly
from atled.optim.optimizer import Optimizer
from atled.transforms.grad import value_and_grad


@formerly(memory="opt_state", split="mesh_axis", apply="apply_gradients", evaluated="eval_model")
class State(nn.Module):
    """The training state: a model, its optimizer and optimizer state, the step number, and a random key.

    >>> from atled import nn, optim, random, train
    >>> state = train.State(nn.Linear(2, 1, key=random.key(0)), optim.AdamW(1e-3), key=random.key(1))
    >>> int(state.step)
    0
    """

    model: Any
    optimizer: Any
    opt_state: Any
    step: Any
    key: Any

    def __init__(self, model: Any, optimizer: Any, *, key: Any = None, mesh_axis: str | None = None) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(
                errors.explained(
                    f"train.State: the second argument must be an optimizer; got {describe(optimizer)}.",
                    "optim.AdamW(1e-3).",
                )
            )
        self.model, self.optimizer = model, optimizer
        self.opt_state = nn.Buffer(optimizer.init(model, mesh_axis=mesh_axis))
        self.step = nn.Buffer(np.zeros((), "int32"))  # 32 bits, even if the default integer has 64
        self.key = None if key is None else nn.Buffer(key)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "memory":  # the former name of `opt_state`
            getattr(self, name)  # raises
        super().__setattr__(name, value)

    def step_key(self) -> Any:
        """The key of this step, a function of `key` and the step number, so that a resumed run uses the same keys."""
        if self.key is None:
            raise TypeError(
                errors.explained(
                    "train.State: the state has no key.", "train.State(model, optimizer, key=random.key(0))."
                )
            )
        return random.fold_in(self.key, self.step)

    def apply_gradients(self, model: Any, grads: Any, *, value: Any = None, loss: Any = None) -> State:
        """The state after a step: the model with its gradients applied.

        Args:
            value: the loss, if the optimizer needs it, as `optim.reduce_on_plateau` does; others ignore it.
            loss: a function of the model, for optimizers that evaluate the loss at other points, such as `optim.SAM`.

        >>> from atled import nn, optim, random, train
        >>> state = train.State(nn.Linear(2, 1, key=random.key(0)), optim.SGD(0.1))
        >>> value, model, grads = train.gradients(lambda m, x: m(x).sum())(state.model, state.model.weight.T)
        >>> int(state.apply_gradients(model, grads).step)
        1
        """
        new_state = self.__copy__()
        new_state.model, new_state.opt_state = self.optimizer.step(model, grads, self.opt_state, value=value, loss=loss)
        new_state.step = self.step + 1
        return new_state

    def eval_model(self) -> Any:
        """The model for evaluation: in `eval` mode, with averaged parameters if the optimizer has any.

        >>> from atled import nn, optim, random, train
        >>> train.State(nn.Linear(2, 1, key=random.key(0)), optim.SGD(0.1)).eval_model().training
        False
        """
        return not_training(self.optimizer.eval_model(self.model, self.opt_state))


def not_training(model: Any) -> Any:
    """A model, or modules in containers, in `eval` mode."""
    is_module = lambda m: isinstance(m, nn.Module)  # noqa: E731
    return tree.map(lambda m: m.eval() if is_module(m) else m, model, is_leaf=is_module)


def gradients(
    loss: Callable[..., Any], *, has_aux: bool = False, wrt: Any = None, scale: Callable[[Any], Any] | None = None
) -> Callable[..., Any]:
    """A function that returns the value of a loss, the model with updated state, and the gradients.

    State that layers assign, such as statistics, is in the returned model. With `has_aux`, the loss returns (value,
    aux), and this pair is the first element of the result. With `scale`, the gradients are those of `scale(value)`: see
    `optim.LossScale`. Gradients of complex parameters are conjugates of those of `grad`, so that a step against them
    decreases the loss.

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
        return (value if scale is None else scale(value)), (value, model, more)

    run.__name__ = getattr(loss, "__name__", "loss")
    both = value_and_grad(run, has_aux=True, wrt=wrt)

    def call(model: Any, *args: Any, **kwargs: Any) -> Any:
        (_, (value, after, more)), grads = both(model, *args, **kwargs)
        uphill = tree.map(lambda g: g.conj() if jnp.iscomplexobj(g) else g, grads)
        return ((value, more) if has_aux else value), after, uphill

    call.__name__ = run.__name__
    return call
