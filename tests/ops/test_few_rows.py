"""Products of a few rows with a large matrix, in the forms that `ops/few_rows.py` chooses on a CPU."""

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax

RNG = np.random.default_rng(0)
ROWS = [(), (1,), (1, 1), (2,), (2, 4), (16,), (17,)]
AXES = {"rows @ matrix": (-1, 0), "rows @ matrix.T": (-1, 1), "matrix.T @ rows.T": (0, -1), "matrix @ rows.T": (1, -1)}


def product(axes, dtype=None):
    def f(rows, matrix):
        at = rows.ndim - 1
        if axes[0] == -1:
            return lax.dot_general(rows, matrix, (((at,), (axes[1],)), ((), ())), preferred_element_type=dtype)
        return lax.dot_general(matrix, rows, (((axes[0],), (at,)), ((), ())), preferred_element_type=dtype)

    return f


@pytest.mark.parametrize("shape", ROWS, ids=str)
@pytest.mark.parametrize("form", AXES)
@pytest.mark.parametrize(
    "kinds", ["bfloat16 bfloat16", "float16 float16", "float32 float32", "float32 int8", "float32 bfloat16"]
)
def test_values(kinds, form, shape):
    """Against float64, with the error of float32 sums of the given operands."""
    axes = AXES[form]
    length, other = 300, 257  # 77,100 elements
    first, second = kinds.split()
    rows = jnp.asarray(RNG.normal(size=(*shape, length)), first)
    dims = (length, other) if 0 in axes else (other, length)
    matrix = jnp.asarray(np.round(RNG.normal(size=dims) * 20) if second == "int8" else RNG.normal(size=dims), second)
    found = np.asarray(atled.jit(product(axes, "float32"))(rows, matrix), "f8")
    r, m = np.asarray(rows, "f8"), np.asarray(matrix, "f8")
    wanted = np.tensordot(r, m, (-1, axes[1])) if axes[0] == -1 else np.tensordot(m, r, (axes[0], -1))
    assert found.shape == wanted.shape
    limit = (
        np.tensordot(abs(r), abs(m), (-1, axes[1])) if axes[0] == -1 else np.tensordot(abs(m), abs(r), (axes[0], -1))
    )
    assert (abs(found - wanted) <= 300 * 2**-24 * limit).all()


def test_a_row_of_bfloat16_is_rounded_once():
    """The result in bfloat16 is the float32 sum, rounded."""
    row, matrix = (jnp.asarray(RNG.normal(size=s), "bfloat16") for s in ((1, 512), (512, 256)))
    wide = atled.jit(product((-1, 0), "float32"))(row, matrix)
    narrow = atled.jit(lambda x, y: x @ y)(row, matrix)
    assert narrow.dtype == "bfloat16"
    assert (np.asarray(narrow, "f4") == np.asarray(wide.astype("bfloat16"), "f4")).mean() > 0.99


def test_derivatives_and_batches():
    row, matrix = (
        jnp.asarray(RNG.normal(size=(1, 300)), "float32"),
        jnp.asarray(RNG.normal(size=(300, 256)), "bfloat16"),
    )
    f = atled.jit(
        lambda x, m: (lax.dot_general(x, m, (((1,), (0,)), ((), ())), preferred_element_type="float32") ** 2).sum()
    )
    slope = np.asarray(atled.grad(f)(row, matrix), "f8")
    r, m = np.asarray(row, "f8"), np.asarray(matrix, "f8")
    np.testing.assert_allclose(slope, 2 * (r @ m) @ m.T, 1e-4, 1e-4 * abs(slope).max())
    rows = jnp.asarray(RNG.normal(size=(3, 300)), "float32")
    each = atled.jit(atled.vmap(lambda x: x @ matrix.astype("float32")))(rows)
    np.testing.assert_allclose(each, np.asarray(rows, "f8") @ m, 1e-4, 1e-4)


def compiled(f, *operands):
    return atled.jit(f).lower(*operands).compile().as_text()


def test_what_is_compiled():
    """A row is computed once; a narrow matrix is converted in the kernel, or not before its rows are known."""
    row, matrix = jnp.ones((1, 576)), jnp.ones((1536, 576), "int8")
    text = compiled(lambda x, m: product((-1, 1), "float32")(jnp.sin(x), m), row, matrix)
    kernel = text[: text.index("ENTRY")]
    assert not [part for part in kernel.split("\n}\n") if "sine" in part and "dot(" in part]
    assert "f32[1536,576]" not in text[text.index("ENTRY") :]
    text = compiled(lambda x, m: x @ m, jnp.ones((1, 576), "bfloat16"), jnp.ones((576, 1536), "bfloat16"))
    assert "f32[576,1536]" not in text[text.index("ENTRY") :]
    lowered = atled.jit(lambda x, m: x @ m).lower(jnp.ones((8, 576), "bfloat16"), jnp.ones((576, 1536), "bfloat16"))
    assert "optimization_barrier" in lowered.as_text()


def test_loops_have_no_barriers():
    """A matrix that does not change is converted once, before the loop."""
    matrix, rows = jnp.ones((576, 576), "bfloat16"), jnp.ones((8, 576), "bfloat16")
    loop = atled.jit(lambda m, x: lax.fori_loop(0, 9, lambda i, x: x @ m, x))
    assert "optimization_barrier" not in loop.lower(matrix, rows).as_text()
