"""Names of `lax` beside its arithmetic: local and growing convolutions, groups, algorithms, staging, scatter_apply."""

from __future__ import annotations

import functools

import ml_dtypes
import numpy as np
import pytest

import atled
import atled.numpy as jnp

jax = pytest.importorskip("jax")

R = np.random.RandomState(0)


def normal(*dims):
    return R.randn(*dims).astype("f4")


def close(ours, theirs, tolerance=1e-5):
    ours, theirs = (m.tree.leaves(v) for m, v in ((atled, ours), (jax, theirs)))
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        assert a.dtype == b.dtype and a.shape == b.shape, (a.dtype, b.dtype, a.shape, b.shape)
        np.testing.assert_allclose(np.asarray(a, "c16"), np.asarray(b, "c16"), rtol=tolerance, atol=tolerance)


def both(f, *args, tolerance=1e-5):
    """f(module, *args) with atled and with jax, as it is and compiled."""
    theirs = f(jax, *args)
    close(f(atled, *args), theirs, tolerance)
    close(atled.jit(functools.partial(f, atled))(*args), theirs, tolerance)


# -- convolutions -----------------------------------------------------------------------------------------------------

LOCAL = [  # input, kernel, strides, padding, window, input dilation, kernel dilation, axes
    ((2, 3, 6), (4, 9, 4), (1,), "VALID", (3,), None, None, None),
    ((2, 6, 3), (3, 9, 4), (2,), "SAME", (3,), None, None, ("NHC", "HIO", "NHC")),
    ((2, 7, 6, 3), (3, 6, 18, 4), (2, 1), [(1, 0), (0, 1)], (3, 2), None, None, ("NHWC", "HWIO", "NHWC")),
    ((2, 7, 6, 3), (6, 3, 18, 4), (1, 2), [(0, 1), (1, 0)], (2, 3), None, None, ("NHWC", "WHIO", "NHWC")),
    ((2, 3, 7, 6), (4, 12, 5, 4), (1, 1), "VALID", (2, 2), None, (2, 2), ("NCHW", "OIHW", "NHWC")),
    ((1, 3, 4, 3), (4, 12, 6, 4), (1, 1), [(0, 0), (0, 0)], (2, 2), (2, 2), None, None),
]


@pytest.mark.parametrize("case", LOCAL)
def test_local_convolutions(case):
    x, k, strides, padding, window, spread, wide, axes = case
    image, kernel = normal(*x), normal(*k)
    f = lambda m, a, b: m.lax.conv_general_dilated_local(a, b, strides, padding, window, spread, wide, axes)
    both(f, image, kernel, tolerance=1e-4)
    slope = lambda m, a, b: m.grad(lambda *v: m.numpy.sum(m.numpy.sin(f(m, *v))), (0, 1))(a, b)
    close(slope(atled, image, kernel), slope(jax, image, kernel), 1e-4)
    many = lambda m: m.vmap(lambda a: f(m, a, kernel))(np.stack([image, 2 * image]))
    close(many(atled), many(jax), 1e-4)


def test_local_convolutions_that_do_not_fit():
    with pytest.raises(ValueError, match=r"conv_general_dilated_local: kernels of 6 elements at \(4,\) positions"):
        atled.lax.conv_general_dilated_local(normal(1, 3, 5), normal(2, 6, 3), (1,), "VALID", (2,))


@pytest.mark.parametrize("padding", ["SAME", "VALID", [(1, 1), (0, 2)]])
@pytest.mark.parametrize("strides", [(1, 1), (2, 3), (4, 1)])
def test_shapes_of_growing_convolutions(padding, strides):
    for axes, a, b in (
        (("NHWC", "HWIO", "NHWC"), (2, 7, 6, 3), (3, 2, 3, 5)),
        (("NCHW", "OIHW", "NHWC"), (2, 3, 7, 6), (5, 3, 3, 2)),
    ):
        args = (a, b, strides, padding, axes)
        assert atled.lax.conv_transpose_shape_tuple(*args) == tuple(jax.lax.conv_transpose_shape_tuple(*args))
    with pytest.raises(ValueError, match="padding is 'SAME', 'VALID' or pairs; got 'OTHER'"):
        atled.lax.conv_transpose_shape_tuple((1, 3, 4), (2, 3, 5), (1,), "OTHER", ("NCH", "OIH", "NCH"))


# -- precisions and algorithms ----------------------------------------------------------------------------------------


def test_precisions_have_names():
    for name in ("default", "fastest", "bfloat16", "high", "tensorfloat32", "highest", "float32"):
        assert atled.lax.Precision(name).name == jax.lax.Precision(name).name
    assert [(p.name, p.value, str(p), repr(p)) for p in atled.lax.Precision] == [
        (p.name, p.value, str(p), repr(p)) for p in jax.lax.Precision
    ]
    with pytest.raises(ValueError):
        atled.lax.Precision("DEFAULT")


def test_presets_are_those_of_jax():
    ours, theirs = atled.lax.DotAlgorithmPreset, jax.lax.DotAlgorithmPreset
    assert [(p.name, p.value, repr(p)) for p in ours] == [(p.name, p.value, repr(p)) for p in theirs]
    for a, b in zip(ours, theirs):
        assert (a.accumulation_type is None) == (b.accumulation_type is None)
        assert b.accumulation_type is None or a.accumulation_type == np.dtype(b.accumulation_type)
        for mine, other in (
            (a.supported_lhs_types, b.supported_lhs_types),
            (a.supported_rhs_types, b.supported_rhs_types),
        ):
            assert (mine is None) == (other is None)
            assert mine is None or [np.dtype(t) for t in mine] == [np.dtype(t) for t in other]
    assert [e.name for e in atled.lax.FftType] == [e.name for e in jax.lax.FftType]
    assert atled.lax.DotAlgorithm._fields == jax.lax.DotAlgorithm._fields
    assert atled.lax.DotAlgorithm._field_defaults == jax.lax.DotAlgorithm._field_defaults


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32"])
@pytest.mark.parametrize("name", [p.name for p in jax.lax.DotAlgorithmPreset])
def test_products_by_algorithms(name, dtype):
    a, b = (R.randint(-3, 4, s).astype(np.dtype(getattr(ml_dtypes, dtype, dtype))) for s in ((4, 5), (5, 3)))
    for given in (name, getattr(atled.lax.DotAlgorithmPreset, name)):
        f = lambda m, given=given, preferred=None: m.lax.dot(a, b, precision=given, preferred_element_type=preferred)
        if name == "DEFAULT" and isinstance(given, str):
            continue
        theirs = getattr(jax.lax.DotAlgorithmPreset, name)
        try:
            want = f(jax, theirs)
        except ValueError:
            with pytest.raises(ValueError, match=f"precision: '{name}' is not supported on cpu"):
                f(atled, given)
            continue
        close(f(atled, given), want)  # small integers are exact in all of them
        close(f(atled, given, "float32"), f(jax, theirs, "float32"))
        close(jnp.matmul(a, b, precision=given), jax.numpy.matmul(a, b, precision=theirs))
        with atled.default_matmul_precision(name):
            close(jnp.matmul(a, b), want)


def test_algorithms_round_operands_and_have_derivatives():
    with atled.enable_x64(True), jax.enable_x64(True):
        a, b = R.randn(6, 7), R.randn(7, 6)
        for name in ("F16_F16_F16", "BF16_BF16_F32", "BF16_BF16_F32_X3", "F32_F32_F32", "F64_F64_F64"):
            f = lambda m, x, y, name=name: m.lax.dot(x, y, precision=name)
            close(f(atled, a, b), f(jax, a, b), 1e-6)
            slope = lambda m, f=f: m.grad(lambda x: m.numpy.sum(f(m, x, b) ** 2))(a)
            close(slope(atled), slope(jax), 1e-5)
    with pytest.raises(ValueError, match="is not supported on cpu"):
        atled.lax.dot(normal(2, 2), normal(2, 2), precision=atled.lax.DotAlgorithm("float32", "float32", "float32"))
    with pytest.raises(TypeError, match="'F32_F32_F32' is for real numbers"):
        atled.lax.dot(np.ones((2, 2), "c8"), np.ones((2, 2), "c8"), precision="F32_F32_F32")
    with pytest.raises(ValueError, match="precision: expected one of"):
        atled.lax.dot(normal(2, 2), normal(2, 2), precision="OTHER")
    image = normal(1, 1, 4)  # convolutions know no algorithms
    f = lambda m: m.lax.conv(image, image, (1,), "VALID", precision="F32_F32_F32")
    close(f(atled), f(jax))


# -- products by groups -----------------------------------------------------------------------------------------------

SIZES = np.array([2, 0, 3, 1], "i4")
TWO, INNER = np.stack([SIZES, SIZES[::-1]]), R.randint(0, 3, (2, 6, 4)).astype("i4")
GROUPS = {  # operands, sizes, axes
    "rows": ((7, 3), (4, 3, 5), SIZES, ((((1,), (1,)), ((), ())), (0,), (0,))),
    "rows, groups last": ((7, 3), (3, 5, 4), SIZES, ((((1,), (0,)), ((), ())), (0,), (2,))),
    "rows, batched": ((2, 7, 3), (4, 2, 3, 5), SIZES, ((((2,), (2,)), ((0,), (1,))), (1,), (0,))),
    "rows, sizes batched": ((2, 7, 3), (4, 2, 3, 5), TWO, ((((2,), (2,)), ((0,), (1,))), (1,), (0,))),
    "rows, outer rows": ((2, 6, 7, 3), (4, 2, 3, 5), INNER, ((((3,), (2,)), ((0,), (1,))), (2,), (0,))),
    "summed": ((5, 7), (7, 6), SIZES, ((((1,), (0,)), ((), ())), (1,), ())),
    "summed, batched": ((2, 5, 7), (2, 7, 6), SIZES, ((((2,), (1,)), ((0,), (0,))), (2,), ())),
    "summed, sizes batched": ((2, 5, 7), (2, 7, 6), TWO, ((((2,), (1,)), ((0,), (0,))), (2,), ())),
    "summed, outer": ((2, 5, 3, 7), (2, 3, 7, 6), INNER[:, :3], ((((2, 3), (1, 2)), ((0,), (0,))), (3,), ())),
    "batched": ((7, 5, 3), (7, 3, 6), SIZES, ((((2,), (1,)), ((0,), (0,))), (0,), ())),
    "batched, outer": ((2, 7, 5, 3), (2, 7, 3, 6), TWO, ((((3,), (2,)), ((0, 1), (0, 1))), (1,), ())),
}  # fmt: skip


@pytest.mark.parametrize("name", GROUPS)
def test_products_by_groups(name):
    x, y, sizes, axes = GROUPS[name]
    a, b = normal(*x), normal(*y)
    f = lambda m, a, b, s: m.lax.ragged_dot_general(a, b, s, m.lax.RaggedDotDimensionNumbers(*axes))
    both(f, a, b, sizes)
    wide = lambda m: m.lax.ragged_dot_general(
        a.astype("f2"), b.astype("f2"), sizes, m.lax.RaggedDotDimensionNumbers(*axes), preferred_element_type="float32"
    )
    close(wide(atled), wide(jax), 1e-2)
    slope = lambda m: m.grad(lambda *v: m.numpy.sum(m.numpy.sin(f(m, *v, sizes))), (0, 1))(a, b)
    try:
        want = slope(jax)
    except NotImplementedError:
        want = None
    got = slope(atled)
    if want is not None:
        close(got, want)
    many = atled.vmap(lambda v: f(atled, v, b, sizes))(np.stack([a, 2 * a]))
    close(list(many), [f(jax, a, b, sizes), f(jax, 2 * a, b, sizes)])


def test_products_by_groups_that_do_not_fit():
    D, f = atled.lax.RaggedDotDimensionNumbers, atled.lax.ragged_dot_general
    a, b, plain = normal(7, 3), normal(4, 3, 5), (((1,), (1,)), ((), ()))
    assert D(plain, [0], [0]) == D((([1], [1]), ([], [])), (0,), (0,)) and hash(D(plain, [0], [0]))
    assert repr(D(plain, [0], [0])) == repr(jax.lax.RaggedDotDimensionNumbers(plain, [0], [0]))
    for numbers, sizes, says in (
        (D(plain, (0, 1), (0,)), SIZES, "lhs_ragged_dimensions must be one axis of"),
        (D(plain, (0,), ()), SIZES, "rhs_group_dimensions must have length 1"),
        (D(plain, (0,), (1,)), SIZES, "neither contracted nor a batch axis"),
        (D(plain, (0,), (0,)), SIZES[:3], "one matrix for each of 3 groups; got 4"),
        (D(plain, (0,), (0,)), SIZES.astype("f4"), "group_sizes must be integers"),
        (D(plain, (0,), (0,)), np.stack([SIZES, SIZES]), r"must have the shape \(4,\)"),
    ):
        with pytest.raises(TypeError, match=says):
            f(a, b, sizes, numbers)
    with pytest.raises(NotImplementedError, match="group_offset is not supported"):
        f(a, b, SIZES, D(plain, (0,), (0,)), group_offset=np.array([1], "i4"))


def test_products_with_scales():
    a, b = normal(4, 8), normal(8, 6)
    left, right = np.abs(normal(4, 2)) + 1, np.abs(normal(4, 6)) + 1
    narrow = lambda x, d: x.astype(getattr(ml_dtypes, d))
    cases = [
        (a, b, {"lhs_scale": left, "rhs_scale": right}),
        (a, b, {"lhs_scale": left}),
        (a, b, {}),
        (normal(2, 4, 8), normal(2, 8, 6), {"lhs_scale": normal(2, 4, 2), "rhs_scale": normal(2, 4, 6)}),
        (normal(2, 4, 8), normal(2, 6, 8),
         {"rhs_scale": normal(2, 6, 4), "dimension_numbers": (((2,), (2,)), ((0,), (0,)))}),
        (narrow(a, "float8_e4m3fn"), narrow(b, "float8_e4m3fn"),
         {"lhs_scale": narrow(left, "float8_e8m0fnu"), "rhs_scale": narrow(right, "float8_e8m0fnu")}),
    ]  # fmt: skip
    for x, y, options in cases:
        for wanted in (None, "float32"):
            f = lambda m, x=x, y=y, o=options, w=wanted: m.lax.scaled_dot(x, y, **o, preferred_element_type=w)
            close(f(atled), f(jax), 2e-2)
    for scale, says in (
        (normal(4, 3), "a scale must cover 2 or more elements of axis 1 of lhs; got 3 for 8"),
        (normal(4, 8), "got 8 for 8"),
        (normal(3, 2), "axis 0 of lhs and its scale must have the same length; got 4 and 3"),
        (normal(4), "the number of axes of lhs"),
    ):
        with pytest.raises(TypeError, match=says):
            atled.lax.scaled_dot(a, b, lhs_scale=scale)


# -- staging ----------------------------------------------------------------------------------------------------------


def test_tokens():
    lax = atled.lax
    made = atled.jit(lambda x: lax.optimization_barrier((x, lax.after_all(lax.create_token(), lax.create_token(3))))[0])
    assert float(made(2.0)) == 2.0
    assert lax.after_all().shape == (0,)
    assert atled.vmap(lambda x: (lax.after_all(lax.create_token()), x)[1])(jnp.arange(3)).tolist() == [0, 1, 2]
    with pytest.raises(TypeError, match="after_all: tokens are needed"):
        lax.after_all(np.ones(2))
    assert lax.dce_sink({"a": jnp.ones(2)}, prevent_mlir_dce=True) is None
    assert float(atled.grad(lambda x: (lax.dce_sink(2 * x), x)[1])(1.0)) == 1.0


def test_values_put_into_programs():
    for x in (1.0, 3, True, normal(2), np.float32(2), 1j):
        ours, theirs = atled.lax.stage(x), jax.lax.stage(x)
        close(ours, theirs)
        assert ours.weak_type == theirs.weak_type
    assert isinstance(atled.lax.stage(1.0), atled.Array)
    seen = []
    atled.jit(lambda: seen.append(atled.lax.stage(1.0)) or 0)()
    assert isinstance(seen[0], atled.Array)
    assert float(atled.grad(atled.lax.stage)(3.0)) == 1.0
    for dims in ((2, 3), (), [5]):
        close(atled.lax.shape_as_value(dims), jax.lax.shape_as_value(dims))


def test_composites():
    def scaled(x, /, *, by, note=None):
        return {"a": x * by, "b": x + 1}

    made = {m: m.lax.composite(functools.partial(scaled), name="my.scaled", version=2) for m in (atled, jax)}
    x = normal(3)
    both(lambda m, v: made[m](v, by=2.0), x)
    both(lambda m, v: made[m](v, by=3, note="said"), x)
    text = atled.jit(lambda v: made[atled](v, by=2.0, note=None)).lower(x).as_text()
    assert 'stablehlo.composite "my.scaled"' in text and "by = 2.0" in text and "version = 2" in text
    assert "note" not in text
    listed = atled.lax.composite(lambda x, *, axes, at: x, "my.same")
    assert atled.jit(lambda v: listed(v, axes=(0, 1), at=np.array([0.5, 1.5])))(x).tolist() == x.tolist()
    slope = atled.grad(lambda v: made[atled](v, by=2.0)["a"].sum())(x)  # JAX has no derivative of composites
    assert slope.tolist() == [2.0] * 3
    assert atled.vmap(lambda v: made[atled](v, by=2.0)["b"])(x).tolist() == (x + 1).tolist()
    captured = atled.jit(lambda v, y: atled.lax.composite(lambda a: a + y, "my.add")(v))(x, x)
    np.testing.assert_allclose(captured, 2 * x)
    with pytest.raises(ValueError, match="composite: a name must have a namespace"):
        atled.lax.composite(scaled, "scaled")


def test_functions_for_platforms():
    x = normal(3)
    f = lambda m, v: m.lax.platform_dependent(v, cpu=m.numpy.sin, default=m.numpy.cos)
    g = lambda m, v: m.lax.platform_dependent(v, tpu=m.numpy.sin, cuda=m.numpy.exp, default=m.numpy.cos)
    h = lambda m, v: m.lax.platform_dependent({"a": v}, tpu=lambda d: d["a"], cpu=lambda d: 2 * d["a"])
    for k in (f, g, h):
        both(k, x)
        slope = lambda m, v, k=k: m.grad(lambda v: m.numpy.sum(k(m, v) ** 2))(v)
        both(slope, x)
        both(lambda m, v, k=k: m.vmap(functools.partial(k, m))(v), x)
        both(lambda m, v, k=k: m.grad(lambda v: m.numpy.sum(m.jit(functools.partial(k, m))(v)))(v), x)
    both(lambda m, v: m.lax.platform_dependent(v, default=m.numpy.sin), x)
    both(lambda m, v: m.lax.platform_dependent(v, cpu=m.numpy.sin), x)
    assert "exponential" not in atled.jit(functools.partial(g, atled)).lower(x).as_text()  # the others are not there
    for call in (lambda k: k(x), lambda k: atled.jit(k)(x)):
        with pytest.raises(NotImplementedError, match="a function for cpu or a default is needed; got tpu"):
            call(lambda v: atled.lax.platform_dependent(v, tpu=jnp.sin))
    with pytest.raises(ValueError, match="'gpu' stands for two platforms"):
        atled.lax.platform_dependent(x, gpu=jnp.sin, default=jnp.sin)
    with pytest.raises(TypeError, match="platform_dependent: the branches must return the same types"):
        atled.jit(lambda v: atled.lax.platform_dependent(v, tpu=lambda v: v[:1], cpu=jnp.sin))(x)


def test_varying_values():
    x = normal(2)
    f = lambda m, to: m.jit(
        m.shard_map(lambda v: m.lax.pcast(v, "i", to=to), mesh=m.make_mesh((1,), ("i",)),
                    in_specs=m.sharding.PartitionSpec(), out_specs=m.sharding.PartitionSpec("i"))
    )(x)  # fmt: skip
    close(f(atled, "varying"), f(jax, "varying"))
    with pytest.raises(ValueError, match="pcast: `to` is 'varying', 'reduced' or 'unreduced'; got 'other'"):
        atled.lax.pcast(x, "i", to="other")
    with pytest.raises(NotImplementedError, match="to='unreduced'"):
        atled.lax.pcast(x, "i", to="unreduced")


def test_random_numbers_of_the_device():
    draw = atled.jit(lambda: atled.lax.rng_uniform(2.0, 5.0, (1000,)))
    a, b = draw(), draw()
    assert a.shape == (1000,) and a.dtype == "float32" and not np.array_equal(a, b)
    assert 2 <= float(a.min()) < 2.1 and 4.9 < float(a.max()) < 5
    ints = atled.lax.rng_uniform(np.int32(-3), np.int32(4), (1000,))
    assert ints.dtype == "int32" and sorted(set(ints.tolist())) == list(range(-3, 4))
    assert atled.lax.rng_uniform(ml_dtypes.bfloat16(0), ml_dtypes.bfloat16(1), (2, 3)).dtype == ml_dtypes.bfloat16
    for low, high in ((0, 1.0), (np.zeros(3), np.ones(3)), (0j, 1j), (False, True), (np.float32(0), np.float16(1))):
        with pytest.raises(TypeError, match="rng_uniform: bounds must be two numbers of one dtype"):
            atled.lax.rng_uniform(low, high, (3,))


# -- functions at positions -------------------------------------------------------------------------------------------

NUMBERS = ((), (0,), (0,))
APPLIED = {
    "repeated": (normal(4), [[0], [2], [2]], NUMBERS, (3,), {}),
    "one": (normal(4), [1], NUMBERS, (), {}),
    "out of bounds": (normal(4), [[0], [9]], NUMBERS, (2,), {}),
    "clipped": (normal(4), [[0], [9]], NUMBERS, (2,), {"mode": "clip"}),
    "unique": (normal(4), [[3], [1]], NUMBERS, (2,), {"unique_indices": True}),
    "windows": (normal(3, 2), [[0], [2]], ((1,), (0,), (0,)), (2, 2), {}),
    "nowhere": (normal(4), np.zeros((0, 1), "i4"), NUMBERS, (0,), {}),
    "integers": (np.arange(4, dtype="i4"), [[0], [2], [2]], NUMBERS, (3,), {"indices_are_sorted": True}),
}


@pytest.mark.parametrize("name", APPLIED)
def test_functions_at_positions(name):
    x, places, numbers, dims, options = APPLIED[name]
    places = np.array(places, "i4")
    f = lambda m, x, i: m.lax.scatter_apply(
        x, i, lambda v: 2 * v + 1, m.lax.ScatterDimensionNumbers(*numbers), update_shape=dims, **options
    )
    both(f, x, places)
    many = lambda m: m.vmap(functools.partial(f, m))(np.stack([x, 3 * x]), np.stack([places, places]))
    close(many(atled), many(jax))


def test_functions_at_positions_that_do_not_fit():
    numbers, places = atled.lax.ScatterDimensionNumbers(*NUMBERS), np.array([[0], [2]])
    f = lambda g: atled.lax.scatter_apply(normal(3), places, g, numbers, update_shape=(2,))
    with pytest.raises(TypeError, match="scatter_apply: the function must return a scalar of float32"):
        f(lambda v: (v, v))
    with pytest.raises(TypeError, match="scatter_apply: the function must return a scalar of float32"):
        f(lambda v: v.astype("int32"))
    assert f(lambda v: v.sum() + v.ndim).shape == (3,)  # of numbers, not of the array
    unique = lambda x: atled.lax.scatter_apply(
        x, places, lambda v: v * v, numbers, update_shape=(2,), unique_indices=True
    )
    np.testing.assert_allclose(atled.grad(lambda x: unique(x).sum())(jnp.array([3.0, 4.0, 5.0])), [6.0, 1.0, 10.0])


@pytest.mark.parametrize("algorithm", ["RNG_DEFAULT", "RNG_PHILOX", "RNG_THREE_FRY"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
def test_bits_of_the_generator(algorithm, dtype):
    """The same bits and the same next state, also from keys of four words."""
    words = np.asarray([7, 8, 9, 10], "uint32")
    for mine, theirs in zip(
        atled.lax.rng_bit_generator(words, (2, 5), dtype, algorithm=atled.lax.RandomAlgorithm[algorithm]),
        jax.lax.rng_bit_generator(words, (2, 5), dtype, algorithm=jax.lax.RandomAlgorithm[algorithm]),
        strict=True,
    ):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(np.asarray(mine), np.asarray(theirs))


@pytest.mark.parametrize("dtype, kind", [("U8", "character"), ("S4", "flexible"), ("O", "object_"), ("f4", "flexible")])
def test_kinds_that_arrays_do_not_have(dtype, kind):
    assert atled.numpy.issubdtype(dtype, getattr(np, kind)) == jax.numpy.issubdtype(dtype, getattr(np, kind))


def test_compiler_options_in_jaxs_place():
    for options in ({}, {"xla_cpu_enable_fast_math": True}, {"xla_backend_optimization_level": 1}):
        got, want = (m.jit(lambda x: x + 1).lower(1.0).compile(options)(1.0) for m in (atled.jax, jax))
        assert float(got) == float(want)
    for library in (atled.jax, jax):
        with pytest.raises((ValueError, jax.errors.JaxRuntimeError), match="No such compile option: 'xla_none'"):
            library.jit(lambda x: x).lower(1.0).compile({"xla_none": True})
