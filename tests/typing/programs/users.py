"""Sixty small programs as users write them: a checker has nothing to say, and each function runs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, assert_type

import numpy as np

import atled
import atled.numpy as jnp
from atled import Array, data, lax, metrics, nn, optim, random, train
from atled.scipy import linalg, signal, special
from atled.sharding import NamedSharding
from atled.sharding import PartitionSpec as P

x = jnp.linspace(0.0, 1.0, 6).reshape(2, 3)


class Params(NamedTuple):
    w: Array
    b: Array


def loss(params: Params, x: Array, y: Array, scale: float = 1.0) -> Array:
    return scale * jnp.mean((x @ params.w + params.b - y) ** 2)


params = Params(jnp.ones((3,)), jnp.zeros(()))
y = jnp.ones((2,))


def gradients_keep_parameters() -> None:
    slope = atled.grad(loss)
    slope(params, x, y, scale=2.0)


def values_keep_their_type() -> None:
    value, slopes = atled.value_and_grad(loss)(params, x, y)
    assert_type(value, Array)
    assert_type(slopes, Any)


def auxiliary_values() -> None:
    def both(p: Params, x: Array) -> tuple[Array, dict[str, Array]]:
        out = x @ p.w
        return out.sum(), {"out": out}

    (value, aux), _ = atled.value_and_grad(both, has_aux=True)(params, x)
    assert_type(value, Array)
    assert_type(aux, dict[str, Array])


def decorated() -> None:
    @atled.jit
    def double(x: Array) -> Array:
        return 2 * x

    assert_type(double(x), Array)


def decorated_with_options() -> None:
    @functools.partial(atled.jit, static_argnums=1)
    def power(x: Array, n: int) -> Array:
        return x**n

    power(x, 2)


def compiled_gradients() -> None:
    step = atled.jit(atled.grad(loss))
    step(params, x, y)


def per_example() -> None:
    each = atled.vmap(atled.grad(loss), in_axes=(None, 0, 0))
    each(params, x, y)


def jacobians() -> None:
    def f(x: Array) -> Array:
        return jnp.sin(x).sum(axis=0)

    atled.jacfwd(f)(x)
    atled.jacrev(f)(x)
    atled.hessian(lambda x: f(x).sum())(x)


def rematerialized() -> None:
    @atled.remat
    def layer(x: Array) -> Array:
        return jnp.tanh(x)

    assert_type(layer(x), Array)


def rematerialized_with_options() -> None:
    @atled.remat(prevent_cse=False)
    def layer(x: Array) -> Array:
        return jnp.tanh(x)

    assert_type(layer(x), Array)


def forward_derivatives() -> None:
    value, tangent = atled.jvp(jnp.sin, (x,), (jnp.ones_like(x),))
    print(value + tangent)


def pullbacks() -> None:
    value, pull = atled.vjp(jnp.sin, x)
    pull(value)


def custom_rules() -> None:
    @atled.custom_jvp
    def cut(x: Array) -> Array:
        return jnp.clip(x, 0, 1)

    @cut.defjvp
    def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
        return cut(*primals), tangents[0]

    atled.grad(lambda x: cut(x).sum())(x)


def custom_pullbacks() -> None:
    @atled.custom_vjp
    def f(x: Array) -> Array:
        return x * x

    f.defvjp(lambda x: (f(x), x), lambda x, g: (2 * x * g,))
    atled.grad(lambda x: f(x).sum())(x)


def scans() -> None:
    def step(carry: Array, x: Array) -> tuple[Array, Array]:
        return carry + x, carry * x

    last, all = lax.scan(step, jnp.zeros(3), x)
    print(last.sum() + all.sum())


def counted_loops() -> None:
    lax.fori_loop(0, 3, lambda i, s: s + i, jnp.int32(0))


def open_loops() -> None:
    lax.while_loop(lambda s: s < 10, lambda s: s + 1, jnp.int32(0))


def branches() -> None:
    lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x)
    lax.switch(1, [jnp.sin, jnp.cos], x)


def maps() -> None:
    lax.map(jnp.sum, x)


def accumulations() -> None:
    lax.associative_scan(jnp.add, x)


def random_numbers() -> None:
    a, b = random.split(random.key(1))
    assert_type(random.normal(a, (3,)) + random.bernoulli(b, 0.5, (3,)), Array)


def many_keys() -> None:
    atled.vmap(lambda k: random.uniform(k, (2,)))(random.split(random.key(2), 4))


def updates() -> None:
    assert_type(x.at[0].set(1.0), Array)
    assert_type(x.at[:, 1].add(x[:, 0]), Array)


def selections() -> None:
    assert_type(jnp.where(x > 0.5, x, 0.0), Array)


def numpy_goes_in() -> None:
    assert_type(jnp.asarray(np.ones(3)) + np.float32(1), Array)


def numpy_comes_out() -> None:
    np.asarray(x).tolist()


def numbers() -> None:
    assert_type(float(x.sum()) + int(x.size) + x.shape[0], float)


def iteration() -> None:
    for row in x:
        assert_type(row.sum(), Array)


def dtypes() -> None:
    x.astype(jnp.bfloat16).astype("float32").astype(np.float64)


def linear_algebra() -> None:
    values, vectors = jnp.linalg.eigh(x.T @ x)
    assert_type(values.sum() + vectors.sum(), Array)


def einsums() -> None:
    assert_type(jnp.einsum("ij,kj->ik", x, x), Array)


def joined() -> None:
    assert_type(jnp.concatenate([x, x], axis=0), Array)
    assert_type(jnp.stack([x, x]), Array)


def trees() -> None:
    atled.tree.map(lambda a: a * 2, params)
    leaves, structure = atled.tree.flatten(params)
    atled.tree.unflatten(structure, leaves)


def printed_programs() -> None:
    str(atled.make_program(jnp.sin)(x))


def shapes_only() -> None:
    atled.eval_shape(loss, params, x, y)
    atled.ShapeDtypeStruct((2, 3), "float32")


def ahead_of_time() -> None:
    compiled = atled.jit(jnp.sin).lower(x).compile()
    compiled(x)


def devices() -> None:
    atled.device_put(x, atled.devices()[0])


def shardings() -> None:
    mesh = atled.make_mesh((1,), ("data",))
    atled.device_put(x, NamedSharding(mesh, P("data")))


def debug_prints() -> None:
    atled.jit(lambda x: atled.debug.print("{}", x))(x)


def callbacks() -> None:
    atled.pure_callback(np.sin, atled.ShapeDtypeStruct(x.shape, x.dtype), x)


def settings() -> None:
    with atled.debug_nans(False):
        pass
    atled.settings.update("debug_nans", False)


class Net(nn.Module):
    first: nn.Linear
    second: nn.Linear

    def __init__(self, width: int, *, key: Array) -> None:
        a, b = random.split(key)
        self.first = nn.Linear(3, width, key=a)
        self.second = nn.Linear(width, 1, key=b)

    def __call__(self, x: Array) -> Array:
        return self.second(nn.relu(self.first(x)))[..., 0]


def modules() -> None:
    net = Net(4, key=random.key(4))
    assert_type(net.first, nn.Linear)
    assert_type(net(x), Array)


def gradients_of_modules() -> None:
    net = Net(4, key=random.key(5))
    atled.grad(lambda net, x: net(x).sum())(net, x)


def sequences_of_layers() -> None:
    nn.Sequential(nn.Linear(3, 4, key=random.key(6)), nn.relu, nn.Linear(4, 1, key=random.key(7)))(x)


def norms_and_dropout() -> None:
    nn.LayerNorm(3)(x)
    nn.Dropout(0.5).eval()(x)


def losses() -> None:
    assert_type(nn.losses.cross_entropy(x, jnp.zeros(2, "int32")), Array)


def activations() -> None:
    assert_type(nn.gelu(x) + nn.softmax(x), Array)


def optimizers() -> None:
    optimizer = optim.AdamW(1e-3)
    state = optimizer.init(params)
    optimizer.update(params, state, params)


def schedules() -> None:
    optim.SGD(optim.schedules.cosine(0.1, 100))


def pipelines() -> None:
    batches = data.arrays({"x": np.ones((8, 3)), "y": np.ones(8)}).shuffle(0).batch(4)
    for batch in batches:
        batch["x"]


def trained_models() -> None:
    def error(net: Net, x: Array, y: Array) -> Array:
        return jnp.mean((net(x) - y) ** 2)

    rows = data.arrays((np.ones((8, 3), "float32"), np.ones(8, "float32"))).batch(4)
    train.fit(Net(4, key=random.key(8)), error, rows, optim.SGD(0.1), epochs=1, progress=False)


def functions_of_functions() -> None:
    def newton(f: Callable[[Array], Array]) -> Callable[[Array], Array]:
        slope = atled.grad(f)
        return lambda x: x - f(x) / slope(x)

    assert_type(newton(lambda x: x**2 - 2.0)(jnp.array(1.0)), Array)


def generators() -> Iterator[Array]:
    for k in random.split(random.key(9), 2):
        yield random.normal(k, (2,))


def dictionaries() -> None:
    weights = {"w": jnp.ones(3), "b": jnp.zeros(())}

    def predict(weights: dict[str, Array], x: Array) -> Array:
        return x @ weights["w"] + weights["b"]

    atled.grad(lambda w: predict(w, x).sum())(weights)["w"]


def keyword_only() -> None:
    def f(x: Array, *, power: int) -> Array:
        return (x**power).sum()

    atled.grad(f)(x, power=2)


def default_arguments() -> None:
    def f(x: Array, rate: float = 0.1) -> Array:
        return (rate * x).sum()

    atled.grad(f)(x)


def saved_arrays() -> None:
    np.save("/dev/null", np.asarray(x))


def finite_differences() -> None:
    atled.test_util.check_grads(jnp.sin, (x,), order=1)


def fourier() -> None:
    assert_type(jnp.fft.fft(x).real, Array)


def statistics() -> None:
    assert_type(jnp.quantile(x, 0.5) + jnp.median(x) + jnp.std(x), Array)


def sorted_values() -> None:
    assert_type(jnp.sort(x) + jnp.argsort(x), Array)


def interpolated() -> None:
    assert_type(jnp.interp(0.5, jnp.arange(3.0), jnp.arange(3.0)), Array)


def attention() -> None:
    q = jnp.ones((1, 4, 2, 3))
    assert_type(nn.dot_product_attention(q, q, q, is_causal=True), Array)
    out, residual = nn.dot_product_attention(q, q, q, return_residual=True)
    assert_type(out, Array)
    assert_type(residual, Array)
    assert_type(nn.memory_efficient_attention(q, q, q, chunk_size=2), Array)


def pooled() -> None:
    assert_type(nn.max_pool(x[..., None], (2,)) + nn.avg_pool(x[..., None], (2,), padding=[(0, 1)]).sum(), Array)


def losses_of_selected_examples() -> None:
    wanted = np.array([True, False])
    assert_type(nn.losses.squared_error(x, jnp.zeros_like(x), where=wanted[:, None]), Array)
    assert_type(nn.losses.info_nce(x, x, weights=np.ones(2, "float32")), Array)


def factorized() -> None:
    matrix = x @ x.T + jnp.eye(2)
    factors = linalg.lu_factor(matrix)
    assert_type(factors, tuple[Array, Array])
    assert_type(linalg.lu_solve(factors, jnp.ones(2)), Array)
    assert_type(linalg.cho_solve(linalg.cho_factor(matrix), jnp.ones(2)), Array)
    assert_type(linalg.schur(matrix), tuple[Array, Array])


def special_functions() -> None:
    assert_type(special.fresnel(x), tuple[Array, Array])
    assert_type(special.polygamma(1, x + 1), Array)


def spectra() -> None:
    frequencies, power = signal.welch(jnp.arange(32.0), nperseg=16)
    assert_type(frequencies, Array)
    assert_type(power, Array)


def shapes_and_dtypes() -> None:
    n = np.int64(3)
    assert_type(jnp.zeros(3, jnp.bfloat16), Array)
    assert_type(jnp.zeros((n, 2), float) + jnp.ones([3, 2], "float16"), Array)
    assert_type(random.normal(random.key(0), (n,), np.float32), Array)
    assert_type(random.uniform(random.key(0), 2, dtype=np.dtype("float32"), minval=-1.0), Array)
    assert_type(jnp.sum(x, axis=(0, 1), dtype=x.dtype), Array)
    assert_type(lax.full((2,), 1.0, jnp.float32) + lax.full_like(x[:, 0], 2), Array)


def windows_of_arrays() -> None:
    assert_type(lax.dynamic_slice(x, (jnp.int32(0), 1), (1, 2)), Array)
    assert_type(lax.approx_max_k(x, 2), tuple[Array, Array])
    assert_type(lax.dot(x, x.T, precision="highest", preferred_element_type=jnp.float32), Array)
    assert_type(lax.cumsum(x, axis=1), Array)


def initial_weights() -> None:
    make = nn.initializers.he_normal(dtype=jnp.bfloat16)
    assert_type(make, nn.initializers.Initializer)
    make(random.key(0), (3, 2))


def scores() -> None:
    assert_type(metrics.auc(jnp.array([0.1, 0.9]), np.array([0, 1])), Array)


def clipped_gradients() -> None:
    optim.chain(optim.clip_by_global_norm(lambda step: 1.0), optim.SGD(0.1))
    assert_type(optim.global_norm(params), Array)
