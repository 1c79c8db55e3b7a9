"""Training scripts in the style of the documentation of JAX libraries: `python ported_training.py NAME` runs on JAX,
`python -m atled.jax.as_jax ported_training.py NAME` on atled. Prints losses and times as JSON for `ported.py`."""

import itertools
import json
import sys
import time

import numpy as np

STEPS = 100
SIZES = (64, 256, 256, 10)
RNG = np.random.RandomState(0)
X = RNG.randn(STEPS, 128, SIZES[0]).astype("float32")
Y = X[..., : SIZES[-1]].argmax(-1).astype("int32")


def haiku():
    """Haiku with Optax: a multilayer perceptron."""
    import haiku as hk
    import jax
    import optax

    net = hk.without_apply_rng(hk.transform(lambda x: hk.nets.MLP(SIZES[1:])(x)))
    optimizer = optax.adamw(1e-3)
    params = net.init(jax.random.PRNGKey(0), X[0])

    def loss(params, x, y):
        return optax.softmax_cross_entropy_with_integer_labels(net.apply(params, x), y).mean()

    @jax.jit
    def step(state, x, y):
        params, slots = state
        value, grads = jax.value_and_grad(loss)(params, x, y)
        updates, slots = optimizer.update(grads, slots, params)
        return (optax.apply_updates(params, updates), slots), value

    return step, (params, optimizer.init(params))


def linen():
    """Flax's Linen with Optax: a convolutional network with batch statistics."""
    import flax.linen as nn
    import jax
    import optax
    from flax.training import train_state

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x, train):
            x = x.reshape(-1, 8, 8, 1)
            for features in (16, 32):
                x = nn.Conv(features, (3, 3))(x)
                x = nn.relu(nn.BatchNorm(use_running_average=not train)(x))
            return nn.Dense(SIZES[-1])(x.reshape(len(x), -1))

    class State(train_state.TrainState):
        batch_stats: dict

    net = Net()
    variables = net.init(jax.random.key(0), X[0], train=False)
    state = State.create(
        apply_fn=net.apply, params=variables["params"], tx=optax.sgd(0.01, momentum=0.9),
        batch_stats=variables["batch_stats"],
    )  # fmt: skip

    @jax.jit
    def step(state, x, y):
        def loss(params):
            out, new = state.apply_fn(
                {"params": params, "batch_stats": state.batch_stats}, x, train=True, mutable=["batch_stats"]
            )
            return optax.softmax_cross_entropy_with_integer_labels(out, y).mean(), new

        (value, new), grads = jax.value_and_grad(loss, has_aux=True)(state.params)
        return state.apply_gradients(grads=grads, batch_stats=new["batch_stats"]), value

    return step, state


def nnx():
    """Flax's NNX with Optax: modules that are updated in place, with `nnx.jit`."""
    import optax
    from flax import nnx

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.layers = nnx.List([nnx.Linear(n, m, rngs=rngs) for n, m in itertools.pairwise(SIZES)])
            self.norm = nnx.LayerNorm(SIZES[1], rngs=rngs)

        def __call__(self, x):
            x = nnx.relu(self.norm(self.layers[0](x)))
            for layer in self.layers[1:-1]:
                x = nnx.relu(layer(x))
            return self.layers[-1](x)

    net = Net(nnx.Rngs(0))
    optimizer = nnx.Optimizer(net, optax.adam(1e-3), wrt=nnx.Param)

    @nnx.jit
    def train(net, optimizer, x, y):
        def loss(net):
            return optax.softmax_cross_entropy_with_integer_labels(net(x), y).mean()

        value, grads = nnx.value_and_grad(loss)(net)
        optimizer.update(net, grads)
        return value

    return lambda state, x, y: (state, train(net, optimizer, x, y)), None


def equinox():
    """Equinox with Optax: modules as pytrees, filtered transformations."""
    import equinox as eqx
    import jax
    import optax

    net = eqx.nn.MLP(SIZES[0], SIZES[-1], SIZES[1], 2, key=jax.random.PRNGKey(0))
    optimizer = optax.adam(1e-3)

    @eqx.filter_jit
    def step(state, x, y):
        net, slots = state

        def loss(net):
            return optax.softmax_cross_entropy_with_integer_labels(jax.vmap(net)(x), y).mean()

        value, grads = eqx.filter_value_and_grad(loss)(net)
        updates, slots = optimizer.update(grads, slots, eqx.filter(net, eqx.is_array))
        return (eqx.apply_updates(net, updates), slots), value

    return step, (net, optimizer.init(eqx.filter(net, eqx.is_array)))


def numpyro():
    """NumPyro: variational inference for a logistic regression."""
    import jax
    import numpyro
    from numpyro import distributions as dist
    from numpyro.infer import SVI, Trace_ELBO
    from numpyro.infer.autoguide import AutoNormal

    def model(x, y):
        w = numpyro.sample("w", dist.Normal(0, 1).expand([SIZES[0]]).to_event(1))
        b = numpyro.sample("b", dist.Normal(0, 1))
        numpyro.sample("y", dist.Bernoulli(logits=x @ w + b), obs=(y > 4).astype("float32"))

    svi = SVI(model, AutoNormal(model), numpyro.optim.Adam(0.01), Trace_ELBO())
    return jax.jit(svi.update), svi.init(jax.random.PRNGKey(0), X[0], Y[0])


def optax():
    """Optax alone: a chain with a schedule, clipping and weight decay."""
    import jax
    import jax.numpy as jnp
    import optax

    rate = optax.warmup_cosine_decay_schedule(0.0, 3e-3, 10, STEPS)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_adam(), optax.add_decayed_weights(1e-4),
                            optax.scale_by_learning_rate(rate))  # fmt: skip
    keys = jax.random.split(jax.random.key(0), 3)
    params = [(jax.random.normal(k, s) / s[0] ** 0.5, jnp.zeros(s[1])) for k, s in zip(keys, itertools.pairwise(SIZES))]

    def loss(params, x, y):
        for w, b in params[:-1]:
            x = jax.nn.gelu(x @ w + b)
        w, b = params[-1]
        return optax.softmax_cross_entropy_with_integer_labels(x @ w + b, y).mean()

    @jax.jit
    def step(state, x, y):
        params, slots = state
        value, grads = jax.value_and_grad(loss)(params, x, y)
        updates, slots = optimizer.update(grads, slots, params)
        return (optax.apply_updates(params, updates), slots), value

    return step, (params, optimizer.init(params))


def main(name):
    """Train, and print losses, median step time and the time of the first step."""
    step, state = globals()[name]()
    losses, times = [], []
    for x, y in zip(X, Y):
        began = time.perf_counter()
        state, value = step(state, x, y)
        losses.append(float(value))
        times.append(time.perf_counter() - began)
        if len(losses) == 1:
            first = time.time()
    print(json.dumps({"losses": losses, "step": sorted(times[10:])[len(times[10:]) // 2], "first": first}))


if __name__ == "__main__":
    main(sys.argv[1])
