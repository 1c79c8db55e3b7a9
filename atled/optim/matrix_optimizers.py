"""Matrix-aware optimizers: Muon, which updates other arrays by NAdamW, and SOAP, which updates them by AdamW."""

from __future__ import annotations

from typing import Any, ClassVar

import atled.numpy as jnp
from atled.core.array import Array
from atled.core.former_names import formerly
from atled.core.tree_registry import static, struct
from atled.higher_order.cond import cond
from atled.optim.adam_family import NAdam
from atled.optim.basic_optimizers import Adam, AdamW, square

_NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)


@formerly(steps="ns_steps")
def orthogonalized(x: Array, ns_steps: int = 5, eps: float = 1e-8) -> Array:
    """The matrix with singular values moved to between about 0.7 and 1.2, and about the same singular vectors.

    Runs `ns_steps` Newton-Schulz iterations `x = a x + (b y + c y y) x`, `y = x x*`, from the matrix divided by its
    norm.

    >>> import atled.numpy as jnp
    >>> from atled import optim
    >>> values = jnp.linalg.svd(optim.orthogonalized(jnp.diag(jnp.array([9.0, 1.0]))), compute_uv=False)
    >>> bool(jnp.all((values > 0.6) & (values < 1.3)))
    True
    """
    a, b, c = _NEWTON_SCHULZ
    is_tall = x.shape[0] > x.shape[1]
    x = x.T if is_tall else x
    x = x / (jnp.sqrt(jnp.sum(square(x))) + eps)
    for _ in range(ns_steps):
        y = x @ x.T.conj()
        x = a * x + (b * y + c * y @ y) @ x
    return x.T if is_tall else x


@formerly(
    rate="learning_rate",
    decay="weight_decay",
    decays="weight_decay_mask",
    adam_rate="adam_learning_rate",
    adam_decay="adam_weight_decay",
    steps="ns_steps",
)
@struct
class Muon(AdamW):
    """Muon: orthogonalized momentum for matrices (Jordan et al., 2024); other arrays follow NAdamW.

    `m = momentum m + (1 - momentum) g`, with bias correction and Nesterov's step as in `NAdam`; a matrix of m inputs
    and n outputs moves by `rate sqrt(max(1, n / m))` along the nearest orthogonal matrix. Matrices are arrays with two
    axes, or with three in a `Stack`. Use Adam for embeddings and the last layer, through `optim.partition`.
    `adam_learning_rate` is the rate of other arrays, by default `learning_rate`; `weight_decay` is for matrices,
    `adam_weight_decay` for other arrays.

    >>> from atled import optim
    >>> import atled.numpy as jnp
    >>> slots = optim.Muon(0.02, adam_learning_rate=1e-3).init({"bias": jnp.ones(2), "weight": jnp.ones((3, 2))}).slots
    >>> slots["second"]
    {'bias': Array([0., 0.], dtype=float32), 'weight': None}
    """

    learning_rate: Any = static(default=2e-2)
    momentum: float = static(default=0.95)
    weight_decay: float = static(default=0.0)
    adam_learning_rate: Any = static(default=None)
    adam_weight_decay: float = static(default=0.0)
    ns_steps: int = static(default=5)
    nesterov: bool = static(default=True)
    is_elementwise: ClassVar[bool] = False

    @property
    def numbers(self) -> tuple[str, ...]:  # type: ignore[override]
        """The hyperparameters, with `adam_learning_rate` only if it is given."""
        own = () if self.adam_learning_rate is None else ("adam_learning_rate",)
        return ("learning_rate", "momentum", "b1", "b2", "eps", "weight_decay", "adam_weight_decay", *own)

    def leaf(self, path: str, h: dict[str, Any]) -> dict[str, Any]:
        """The hyperparameters of the parameter at a path."""
        leaf_numbers = AdamW.leaf(self, path, h)
        return leaf_numbers if leaf_numbers is h else {**leaf_numbers, "adam_weight_decay": 0.0}

    def axes(self, dims: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
        """The axes of slots; matrices have no slot for squares."""
        every = tuple(range(len(dims)))
        return {"first": every} if len(dims) == 2 else {"first": every, "second": every}

    def derived(self, h: Any, t: Any) -> dict[str, Any]:
        """The bias corrections of the means."""
        own = {"own": 1 - h.momentum**t, "own_ahead": 1 - h.momentum ** (t + 1)}
        return {**NAdam.derived(self, h, t), **own}  # type: ignore[arg-type]

    def rule(self, g: Any, p: Any, s: dict[str, Any], h: Any) -> tuple[Any, dict[str, Any]]:
        """The update of one array."""
        if p.ndim != 2:
            first, second = self.moments(g, s, h)
            mean = NAdam.mean(self, g, first, h) if self.nesterov else first / h.first  # type: ignore[arg-type]
            step = mean / (jnp.sqrt(second / h.second) + h.eps) + h.adam_weight_decay * p
            rate = h.learning_rate if self.adam_learning_rate is None else h.adam_learning_rate
            return -rate * step, {"first": first, "second": second}
        b = h.momentum
        mean = b * s["first"] + (1 - b) * g
        step = b * mean / h.own_ahead + (1 - b) * g / h.own if self.nesterov else mean / h.own
        step = max(1.0, p.shape[1] / max(p.shape[0], 1)) ** 0.5 * orthogonalized(step, self.ns_steps, h.eps)
        return -h.learning_rate * (step + h.weight_decay * p), {"first": mean}


@formerly(
    rate="learning_rate",
    decay="weight_decay",
    decays="weight_decay_mask",
    shampoo="shampoo_beta",
    every="precondition_frequency",
    longest="max_precond_dim",
)
@struct
class SOAP(AdamW):
    """AdamW in the eigenbasis of Shampoo (Vyas et al., 2024), for matrices; other arrays follow AdamW.

    `L = b L + (1 - b) g g*` and `R = b R + (1 - b) g* g` with `b = shampoo_beta`. Q and P
    are the eigenvectors of L and R: exact in the first step, then updated every
    `precondition_frequency` steps by one step of orthogonal iteration, `Q = qr(L Q)`. The
    step is Adam's for `Q* g P`, transformed back, with entries clipped to Adam's largest
    possible step, because the means of squares are from older bases. Matrices with an axis
    longer than `max_precond_dim` follow AdamW.

    >>> from atled import optim
    >>> import atled.numpy as jnp
    >>> slots = optim.SOAP(3e-3).init({"weight": jnp.ones((3, 2))}).slots
    >>> slots["left"]["weight"].shape, slots["right_basis"]["weight"].shape
    ((3, 3), (2, 2))
    """

    learning_rate: Any = static(default=3e-3)
    b1: float = static(default=0.95)
    b2: float = static(default=0.95)
    shampoo_beta: float = static(default=0.95)
    precondition_frequency: int = static(default=10)
    max_precond_dim: int = static(default=10000)
    slots: ClassVar[tuple[str, ...]] = ("first", "second", "left", "right", "left_basis", "right_basis")
    numbers: ClassVar[tuple[str, ...]] = ("learning_rate", "b1", "b2", "eps", "weight_decay", "shampoo_beta")
    is_elementwise: ClassVar[bool] = False

    def _is_matrix(self, dims: tuple[int, ...]) -> bool:
        return len(dims) == 2 and max(dims) <= self.max_precond_dim and min(dims) > 0

    def axes(self, dims: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
        """The axes of slots; matrices also have square slots for L, R and their bases."""
        every = tuple(range(len(dims)))
        square = {"left": (0, 0), "right": (1, 1), "left_basis": (0, 0), "right_basis": (1, 1)}
        return {"first": every, "second": every, **(square if self._is_matrix(dims) else {})}

    def derived(self, h: Any, t: Any) -> dict[str, Any]:
        """Bias corrections, `turn` (what to do with the bases: 0 keep, 1 iterate, 2 compute), and the largest step
        `most`.

        In a fixed basis, no mean is longer than `most` times the root of its mean square; after a change of basis, it
        can be longer.
        """
        turn = jnp.where(t == 1, 2, jnp.where(t % self.precondition_frequency == 0, 1, 0))
        corrections, ratio = Adam.derived(self, h, t), h.b1**2 / h.b2
        total = jnp.where(ratio == 1, t, (1 - ratio**t) / jnp.where(ratio == 1, 1, 1 - ratio))
        most = (1 - h.b1) / corrections["first"] * jnp.sqrt(total * corrections["second"] / (1 - h.b2))
        return {**corrections, "turn": turn, "most": most}

    def rule(self, g: Any, p: Any, s: dict[str, Any], h: Any) -> tuple[Any, dict[str, Any]]:
        """The update of one array."""
        if not self._is_matrix(p.shape):
            return AdamW.rule(self, g, p, s, h)
        old = jnp.where(h.turn == 2, 0, h.shampoo_beta)  # the first gradient is not averaged
        new = {
            "left": old * s["left"] + (1 - old) * g @ g.T.conj(),
            "right": old * s["right"] + (1 - old) * g.T.conj() @ g,
        }
        for side in ("left", "right"):
            new[f"{side}_basis"] = _basis(h.turn, new[side], s[f"{side}_basis"].astype(g.dtype))
        q, r = new["left_basis"], new["right_basis"]
        turned = _without_noise(q.T.conj() @ g @ r)
        first = h.b1 * s["first"] + (1 - h.b1) * g
        second = h.b2 * s["second"] + (1 - h.b2) * square(turned)
        mean = _without_noise(q.T.conj() @ first @ r) / h.first
        step = mean / (jnp.sqrt(second / h.second) + h.eps)
        size = jnp.abs(step)
        step = q @ jnp.where(size > h.most, step * (h.most / jnp.where(size > h.most, size, 1)), step) @ r.T.conj()
        return -h.learning_rate * (step + h.weight_decay * p), {"first": first, "second": second, **new}


def _basis(turn: Any, x: Any, basis: Any) -> Any:
    """Eigenvectors of x, largest eigenvalues first: unchanged, after one orthogonal iteration, or recomputed."""

    def turned() -> Any:
        q, r = jnp.linalg.qr(x @ basis)
        signs = jnp.sign(jnp.diagonal(r))
        return q * jnp.where(signs == 0, 1, signs)

    return cond(turn == 2, lambda: jnp.linalg.eigh(x)[1][:, ::-1], lambda: cond(turn == 1, turned, lambda: basis))


def _without_noise(x: Any) -> Any:
    """A matrix with rounding noise set to zero; dividing noise by its own size would amplify it."""
    size = jnp.abs(x)
    return jnp.where(size <= 16 * float(jnp.finfo(x.dtype).eps) * jnp.max(size), 0, x)
