"""Primitives of one's own, with rules registered as `jax.interpreters` has them: the same numbers as with JAX."""

import functools

import jax
import jax.extend.core
import jax.interpreters.ad
import jax.interpreters.batching
import jax.interpreters.mlir
import numpy as np
import pytest
from jaxlib.mlir.dialects import stablehlo

import atled.jax as atled
from atled.jax.extend.core import primitives as p


def multiply_add(lib):
    """x * y + z by rules, for either library."""
    ad, batching, mlir, jnp = lib.interpreters.ad, lib.interpreters.batching, lib.interpreters.mlir, lib.numpy
    prim = lib.extend.core.Primitive("multiply_add")
    prim.def_impl(lambda x, y, z: np.add(np.multiply(x, y), z))
    prim.def_abstract_eval(lambda x, y, z: lib.core.ShapedArray(x.shape, x.dtype))

    def lowering(ctx, x, y, z):
        assert [a.shape for a in ctx.avals_in] == [ctx.avals_out[0].shape] * 3
        return [stablehlo.AddOp(stablehlo.MulOp(x, y), z).result]

    mlir.register_lowering(prim, lowering, platform="cpu")

    def jvp(primals, tangents):
        x, y, z = primals
        dx, dy, dz = [ad.instantiate_zeros(t) if type(t) is not ad.Zero else jnp.zeros_like(x) for t in tangents]
        return prim.bind(x, y, z), prim.bind(dx, y, prim.bind(x, dy, dz))

    def transpose(ct, x, y, z):
        zero = jnp.zeros_like(ct)
        back = lambda a, b: prim.bind(a, b, zero)
        dz = ct if ad.is_undefined_primal(z) else None
        if ad.is_undefined_primal(x):
            return back(ct, y), None, dz
        return None, back(x, ct) if ad.is_undefined_primal(y) else None, dz

    ad.primitive_jvps[prim] = jvp
    ad.primitive_transposes[prim] = transpose

    def batch(args, dims):
        size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
        front = [batching.bdim_at_front(x, d, size) for x, d in zip(args, dims, strict=True)]
        return prim.bind(*front), 0

    batching.primitive_batchers[prim] = batch
    return prim


OURS, THEIRS = multiply_add(atled), multiply_add(jax)
X = np.float32([1.0, 2.0, 3.0])
CASES = {
    "eager": lambda lib, f: f(X, X + 1, X),
    "jit": lambda lib, f: lib.jit(f)(X, X + 1, X),
    "jvp": lambda lib, f: lib.jvp(f, (X, X, X), (X, 2 * X, X))[1],
    "jit of jvp": lambda lib, f: lib.jit(lambda x: lib.jvp(f, (x, X, x), (X, 2 * X, X)))(X)[1],
    "grad": lambda lib, f: lib.grad(lambda x: f(x, x * 2, x).sum())(X),
    "grad by one": lambda lib, f: lib.grad(lambda x: f(X, x, X).sum())(X),
    "jit of grad": lambda lib, f: lib.jit(lib.grad(lambda x: f(x, x * 2, x).sum()))(X),
    "second": lambda lib, f: lib.jacfwd(lib.grad(lambda x: f(x, x * x, x).sum()))(X),
    "vmap": lambda lib, f: lib.vmap(lambda x, y: f(x, y, x))(np.stack([X, X]), np.stack([X, 2 * X])),
    "vmap of grad": lambda lib, f: lib.vmap(lib.grad(lambda x: f(x, X, x).sum()))(np.stack([X, 3 * X])),
    "scan": lambda lib, f: lib.lax.scan(lambda c, x: (f(c, x, x), c), X, np.stack([X, X]))[0],
    "program": lambda lib, f: lib.core.eval_jaxpr(lib.make_jaxpr(f)(X, X, X).jaxpr, [], X, 2 * X, X)[0],
}


@pytest.mark.parametrize("case", CASES)
def test_rules_give_what_they_give_in_jax(case):
    np.testing.assert_allclose(CASES[case](atled, OURS.bind), CASES[case](jax, THEIRS.bind), rtol=1e-6)


def test_several_results_and_parameters():
    prim = atled.extend.core.Primitive("scaled_both")
    prim.multiple_results = True
    prim.def_abstract_eval(lambda x, *, by: [x, x])
    prim.def_impl(functools.partial(atled.interpreters.xla.apply_primitive, prim))
    atled.interpreters.mlir.register_lowering(
        prim, atled.interpreters.mlir.lower_fun(lambda x, *, by: [x * by, x + by], multiple_results=True)
    )
    assert [float(v) for v in prim.bind(3.0, by=2)] == [6.0, 5.0]
    assert [float(v) for v in atled.jit(lambda x: prim.bind(x, by=5))(3.0)] == [15.0, 8.0]
    assert [float(v) for v in atled.jit(lambda x: prim.bind(x, by=True))(3.0)] == [3.0, 4.0]  # not what by=1 compiled
    (equation,) = atled.make_jaxpr(lambda x: prim.bind(x, by=7))(1.0).eqns
    assert equation.primitive is prim and equation.params == {"by": 7} and len(equation.outvars) == 2


def test_linear_ones():
    prim = atled.extend.core.Primitive("twice")
    prim.def_abstract_eval(lambda x: x)
    atled.interpreters.ad.deflinear(prim, lambda ct: [prim.bind(ct)])
    atled.interpreters.batching.defvectorized(prim)
    atled.interpreters.mlir.register_lowering(
        prim, atled.interpreters.mlir.lower_fun(lambda x: 2 * x, multiple_results=False)
    )
    assert atled.grad(lambda x: prim.bind(prim.bind(x)) * x)(3.0) == 24.0
    np.testing.assert_array_equal(atled.vmap(atled.grad(prim.bind))(X), [2, 2, 2])


def test_missing_rules_say_so():
    prim = atled.extend.core.Primitive("nothing")
    with pytest.raises(NotImplementedError, match="Abstract evaluation for 'nothing'"):
        prim.bind(1.0)
    prim.def_abstract_eval(lambda x: x)
    with pytest.raises(NotImplementedError, match="'nothing' not found for platform cpu"):
        atled.jit(prim.bind)(1.0)
    with pytest.raises(NotImplementedError, match="Differentiation rule for 'nothing'"):
        atled.grad(prim.bind)(1.0)
    with pytest.raises(NotImplementedError, match=r"Batching rule for 'nothing' .*batching.primitive_batchers"):
        atled.vmap(prim.bind)(X)


def test_equations_have_one_primitive_for_each_class():
    closed = atled.make_jaxpr(lambda x: atled.numpy.sin(x) + atled.jit(atled.numpy.exp)(x))(1.0)
    primitives = [e.primitive for e in closed.eqns]
    assert primitives == [p.sin_p, p.jit_p, p.add_p] and primitives[0] is atled.lax.sin_p
    assert [str(x) for x in primitives] == ["sin", "jit", "add"]
    assert closed.eqns[1].params["jaxpr"].eqns[0].primitive is p.exp_p
    assert float(p.add_p.bind(1.0, 2.0)) == 3.0
    with pytest.raises(AttributeError, match="no op of atled is called nonsense"):
        p.nonsense_p


def test_an_interpreter_written_for_jax():
    from atled.jax.extend.core import Literal

    inverses = {atled.lax.exp_p: atled.numpy.log, atled.lax.tanh_p: atled.numpy.arctanh}

    def inverse(f):
        def run(y):
            closed = atled.make_jaxpr(f)(y)
            env = dict(zip(closed.jaxpr.outvars, [y], strict=True))
            for e in closed.jaxpr.eqns[::-1]:
                (out,) = [v.val if type(v) is Literal else env[v] for v in e.outvars]
                env[e.invars[0]] = inverses[e.primitive](out)
            return env[closed.jaxpr.invars[0]]

        return run

    f = lambda x: atled.numpy.exp(atled.numpy.tanh(x))
    np.testing.assert_allclose(inverse(f)(f(1.0)), 1.0, rtol=1e-5)
    np.testing.assert_allclose(atled.jit(atled.vmap(atled.grad(inverse(f))))((X + 1) / 2)[:1], 1.0, rtol=1e-3)


def test_partial_evaluation():
    from atled.jax.extend.linear_util import wrap_init
    from atled.jax.interpreters.partial_eval import PartialVal, trace_to_jaxpr_nounits

    def f(x, y):
        return atled.jit(lambda a, b: [a + 1, a * b])(x, y)

    unknown = PartialVal.unknown(atled.typeof(1.0))
    program, out, consts = trace_to_jaxpr_nounits(wrap_init(f), [PartialVal.known(2.0), unknown])
    assert [p.is_known() for p in out] == [True, False] and out[0].get_known() == 3.0
    assert [float(v) for v in atled.core.eval_jaxpr(program, consts, 5.0)] == [10.0]


def test_transformations_of_functions():
    from atled.jax.extend import linear_util as lu

    @lu.transformation_with_aux
    def counted(*args):
        out = yield args, {}
        yield out, len(args)

    f, count = counted(lu.wrap_init(lambda x, y: x + y))
    with pytest.raises(lu.StoreException):
        count()
    assert f.call_wrapped(1, 2) == 3 and count() == 2
    with pytest.raises(lu.StoreException):
        f.call_wrapped(1, 2)
