"""A neural ODE learns the dynamics of prey and predators from noisy counts.

Predictions of 100 new trajectories over 30 years, five times as long as the measured ones, have an error of 11 %; those
of a linear model, fitted by least squares, of 56 %. Half a minute on two cores.

    python examples/neural_ode.py

The network is the right-hand side of x' = f(x); a Runge-Kutta solver, a `scan`, computes the trajectory from any start,
and `grad` differentiates through the solver. The data are 32 trajectories of a Lotka-Volterra system over 6 years, with
10 % noise in each count. A second run resumes from the last checkpoint.
"""

import dataclasses

import numpy as np

import atled
import atled.numpy as jnp
from atled import data, lax, nn, optim, random, train

STEP = 0.1  # years between counts, and step size of the solver


@dataclasses.dataclass
class Config:
    steps: int = 3000
    paths: int = 32  # measured trajectories
    points: int = 60  # counts in each trajectory
    batch: int = 16
    noise: float = 0.1
    rate: float = 5e-3
    width: int = 32
    run: str | None = "runs/neural_ode"
    picture: str | None = "examples/pictures/neural_ode.png"


def nature(x):
    """The true right-hand side. Populations are positive, so x has the logs of the numbers of prey and predators."""
    return jnp.stack([1 - jnp.exp(x[1]), jnp.exp(x[0]) - 1])


class Model(nn.Module):
    """The learned right-hand side, and the starts of the measured trajectories, whose first counts are noisy."""

    def __init__(self, starts, width, *, key):
        keys = nn.Keys(key)
        self.starts = nn.Param(starts)
        self.layers = [nn.Linear(a, b, key=keys()) for a, b in [(2, width), (width, width), (width, 2)]]

    def __call__(self, x):
        for layer in self.layers[:-1]:
            x = jnp.tanh(layer(x))
        return self.layers[-1](x)


def solve(f, start, points):
    """The trajectory of x' = f(x) from a start, by the classical Runge-Kutta method."""

    def advance(x, _):
        a = f(x)
        b = f(x + STEP / 2 * a)
        c = f(x + STEP / 2 * b)
        d = f(x + STEP * c)
        return x + STEP / 6 * (a + 2 * b + 2 * c + d), x

    return lax.scan(advance, start, None, length=points)[1]


def paths(f, starts, points):
    return atled.vmap(lambda start: solve(f, start, points))(starts)


def loss(model, batch):
    found = paths(model, model.starts[batch["path"]], batch["x"].shape[1])
    return nn.losses.squared_error(found, batch["x"])


def linear(x):
    """The baseline: the function for one step of a linear model, fitted by least squares to successive counts."""
    before, after = x[:, :-1].reshape(-1, 2), x[:, 1:].reshape(-1, 2)
    found = np.linalg.lstsq(np.c_[before, np.ones(len(before))], after)[0].astype("float32")
    return lambda x: x @ found[:2] + found[2]


def main(config):
    keys = nn.Keys(0)
    starts = random.uniform(keys(), (config.paths, 2), minval=-1, maxval=1)
    noise = config.noise * random.normal(keys(), (config.paths, config.points, 2))
    measured = np.asarray(paths(nature, starts, config.points) + noise)
    batches = data.arrays(path=np.arange(config.paths), x=measured).shuffle(0).batch(config.batch)
    state = train.fit(
        Model(jnp.asarray(measured[:, 0]), config.width, key=keys()), loss, batches,
        optim.chain(optim.clip_by_global_norm(1.0), optim.Adam(optim.cosine(config.rate, config.steps))),
        steps=config.steps, checkpoint=config.run,
    )  # fmt: skip
    starts = random.uniform(keys(), (100, 2), minval=-1, maxval=1)
    truth, network = (np.asarray(paths(f, starts, 5 * config.points)) for f in (nature, state.model))
    rule = linear(measured)
    straight = np.asarray(lax.scan(lambda x, _: (rule(x), x), starts, None, length=5 * config.points)[1]).swapaxes(0, 1)
    found = {"truth": truth, "network": network, "linear": straight}
    errors = {name: float(np.sqrt(((x - truth) ** 2).mean())) for name, x in found.items() if name != "truth"}
    print("error of predictions: " + ", ".join([f"{name} {value:.1%}" for name, value in errors.items()]))
    if config.picture:
        draw(measured, found, config)
    return errors


def draw(measured, found, config):
    """Plot the prey over time from a new start, and the trajectories of six new starts."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 4.5), width_ratios=[2, 1], layout="constrained")
    left.axvspan(0, STEP * config.points, color="0.9", label="duration of the measurements")
    right.plot(*np.exp(measured).T, ".", color="0.8", markersize=2)
    for (name, x), style in zip(found.items(), ("k-", "r--", "b:")):
        left.plot(STEP * np.arange(x.shape[1]), np.exp(x[0, :, 0]), style, label=name)
        if name != "linear":
            right.plot(*np.exp(x[:6]).T, style, linewidth=1)
    left.set(xlabel="years", ylabel="prey", title="from a new start", ylim=(0, 2.6))
    left.legend(loc="upper center", ncols=4)
    right.set(xlabel="prey", ylabel="predators", title="measurements, and six new starts")
    figure.savefig(config.picture, dpi=90)


if __name__ == "__main__":
    main(Config())
