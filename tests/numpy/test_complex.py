"""Functions of complex numbers: values against mpmath over the plane, branch cuts, special values, derivatives."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

import atled
import atled.numpy as jnp

INF, NAN, PI = math.inf, math.nan, math.pi
REFERENCE = {
    "exp": mp.exp, "expm1": lambda z: mp.exp(z) - 1, "log": mp.log, "log1p": lambda z: mp.log(1 + z),
    "log2": lambda z: mp.log(z) / mp.log(2), "log10": mp.log10, "sqrt": mp.sqrt, "square": lambda z: z * z,
    "sin": mp.sin, "cos": mp.cos, "tan": mp.tan, "sinh": mp.sinh, "cosh": mp.cosh, "tanh": mp.tanh,
    "asin": mp.asin, "acos": mp.acos, "atan": mp.atan, "asinh": mp.asinh, "acosh": mp.acosh, "atanh": mp.atanh,
    "sign": lambda z: z / abs(z), "reciprocal": lambda z: 1 / z,
}  # fmt: skip
ODD = {"sin", "tan", "sinh", "tanh", "asin", "atan", "asinh", "atanh", "sign", "reciprocal"}
# where a zero is not a limit of its neighbours in the way that the sign of the zero says: see SPECIAL
SINGULAR = {
    "log": {0}, "log2": {0}, "log10": {0}, "sign": {0}, "reciprocal": {0}, "log1p": {-1}, "atanh": {1, -1},
    "atan": {1j, -1j},
}  # fmt: skip


def sizes(real: type) -> list[float]:
    """Sizes of parts: zero, the smallest, where squares are lost, near one, a multiple of pi, near overflow."""
    info = np.finfo(real)
    top = math.log(float(info.max))
    found = [0, 8 * info.tiny, math.sqrt(info.tiny), 3 * info.eps, 0.3, 0.7071, np.nextafter(real(1), real(0)), 1]
    return [float(real(v)) for v in (*found, PI / 2, top - 1, top + 2, info.max / 4)]


def exact(name: str, z: complex, real: type, zero: int) -> list[mp.mpf]:
    """The parts of the value, with zeros moved a little into the first quadrant."""
    extreme = 0 in (z.real, z.imag) or min(z.real, z.imag) < 1e-6 or max(z.real, z.imag) > 1e6
    with mp.workprec((2700 if real is np.float64 else 800) if extreme else 200):
        x, y = (mp.mpf(v) if v else mp.ldexp(1, -zero) for v in (z.real, z.imag))
        out = mp.mpc(REFERENCE[name](mp.mpc(x, y)))
        return [out.real, out.imag]


@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("name", REFERENCE)
def test_values(name, real):
    """Each part within a few units of the last place; also where one is zero, tiny, or next to overflow.

    This is the first quadrant; the others follow by the symmetries, which are exact.
    """
    parts, info = sizes(real), np.finfo(real)
    top, eps, tiny = float(info.max) * (1 - 4 * float(info.eps)), float(info.eps), float(info.tiny)
    z = np.array([complex(x, y) for x in parts for y in parts], np.result_type(real, np.complex64))
    far = 1250 if real is np.float64 else 300
    for point, value in zip(z.tolist(), np.asarray(getattr(jnp, name)(z)), strict=True):
        if point in SINGULAR.get(name, ()):
            continue
        want = exact(name, point, real, far)
        again = exact(name, point, real, far + 20) if 0 in (point.real, point.imag) else want
        for part, w, other in zip((value.real, value.imag), want, again, strict=True):
            message = f"{name}({point}): {value}, but {mp.nstr(w, 20)}"
            if abs(w - other) > abs(w) / 4:  # this part is zero, and what it was moved to can be seen
                assert abs(part) <= tiny, message
            elif abs(w) > top:
                assert abs(part) >= top and (part > 0) == (w > 0), message
            else:
                unit = abs(w) * eps
                if name == "expm1":  # exp(x) cos(y) may be almost one
                    unit = max(unit, max(map(abs, want)) * eps / 4)
                assert abs(mp.mpf(float(part)) - w) <= max(5 * unit, 2 * tiny), message


@pytest.mark.parametrize("name", REFERENCE)
def test_symmetries(name):
    """f(conj z) = conj f(z), and f(-z) = -f(z) for odd functions, to the last bit and the last sign of a zero."""
    parts = [0.0, 1e-30, 0.3, 1.0, 1.5, 3.0, 100.0, 1e30]
    z = np.array([complex(x * s, y) for x in parts for y in parts for s in (1, -1)], "complex64")
    f = getattr(jnp, name)
    got = np.asarray(f(z))
    keep = np.array([v not in SINGULAR.get(name, ()) for v in z.tolist()])

    def same(a, b):
        bits = [np.ascontiguousarray(v[keep]).view("float32") for v in (a, b)]
        np.testing.assert_array_equal(*bits)
        finite = bits[0] == bits[0]
        np.testing.assert_array_equal(*[np.signbit(v[finite]) for v in bits])

    if name not in ("reciprocal", "square"):
        same(np.asarray(f(z.conj())), got.conj())
    if name in ODD - {"reciprocal"}:
        same(np.asarray(f(-z)), -got)


CUTS = {
    "log": [(-2, 0, math.log(2), PI)],
    "sqrt": [(-4, 0, 0, 2)],
    "log1p": [(-3, 0, math.log(2), PI)],
    "asin": [(2, 0, PI / 2, 1.3169578969248166), (-2, 0, -PI / 2, 1.3169578969248166)],
    "acos": [(2, 0, 0, -1.3169578969248166), (-2, 0, PI, -1.3169578969248166)],
    "acosh": [(-2, 0, 1.3169578969248166, PI), (0.5, 0, 0, 1.0471975511965979)],
    "atanh": [(2, 0, 0.5493061443340548, PI / 2), (-2, 0, -0.5493061443340548, PI / 2)],
}


@pytest.mark.parametrize("name", CUTS)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_cuts(name, dtype):
    """On a cut, the sign of the zero says from which side the value comes."""
    for x, y, re, im in CUTS[name]:
        for side in (1.0, -1.0):
            got = complex(getattr(jnp, name)(np.asarray(complex(x, math.copysign(y, side)), dtype)))
            np.testing.assert_allclose([got.real, got.imag], [re, im * side], rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize(("name", "turned"), [("asinh", "asin"), ("atan", "atanh"), ("sin", "sinh"), ("tan", "tanh")])
def test_functions_of_iz(name, turned):
    """f(x + iy) and g(y + ix) have the same parts in turn, also on the cuts."""
    z = np.array([complex(x, y) for x in (0.0, -0.0, 0.5, -2.0) for y in (0.0, -0.0, 0.5, 2.0, -3.0)], "complex64")
    got = np.asarray(getattr(jnp, name)(z))
    want = np.asarray(getattr(jnp, turned)(_turned(z)))
    np.testing.assert_array_equal(got.view("int32").reshape(-1, 2), want.view("int32").reshape(-1, 2)[:, ::-1])


def _turned(z: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(z.view("float32").reshape(-1, 2)[:, ::-1]).view("complex64")[:, 0]


# C99 annex G: z -> the value, "+-" where the sign is not specified. All of it for y with a sign bit of 0; the rest
# follows by conj. Rows: (re z, im z, re f, im f, whose sign is free)
SPECIAL = {
    "acos": [
        (0, 0, PI / 2, -0.0), (-0.0, 0, PI / 2, -0.0), (0, NAN, PI / 2, NAN), (-0.0, NAN, PI / 2, NAN),
        (1, INF, PI / 2, -INF), (1, NAN, NAN, NAN), (-INF, 1, PI, -INF), (INF, 1, 0, -INF),
        (-INF, INF, 3 * PI / 4, -INF), (INF, INF, PI / 4, -INF), (INF, NAN, NAN, INF, "im"),
        (-INF, NAN, NAN, INF, "im"), (NAN, 1, NAN, NAN), (NAN, INF, NAN, -INF), (NAN, NAN, NAN, NAN),
    ],
    "acosh": [
        (0, 0, 0, PI / 2), (-0.0, 0, 0, PI / 2), (1, INF, INF, PI / 2), (0, NAN, NAN, PI / 2, "im"),
        (1, NAN, NAN, NAN), (-INF, 1, INF, PI), (INF, 1, INF, 0), (-INF, INF, INF, 3 * PI / 4),
        (INF, INF, INF, PI / 4), (INF, NAN, INF, NAN), (-INF, NAN, INF, NAN), (NAN, 1, NAN, NAN),
        (NAN, INF, INF, NAN), (NAN, NAN, NAN, NAN),
    ],
    "asinh": [
        (0, 0, 0, 0), (1, INF, INF, PI / 2), (1, NAN, NAN, NAN), (INF, 1, INF, 0), (INF, INF, INF, PI / 4),
        (INF, NAN, INF, NAN), (NAN, 0, NAN, 0), (NAN, 1, NAN, NAN), (NAN, INF, INF, NAN, "re"),
        (NAN, NAN, NAN, NAN),
    ],
    "atanh": [
        (0, 0, 0, 0), (0, NAN, 0, NAN), (1, 0, INF, 0), (1, INF, 0, PI / 2), (2, NAN, NAN, NAN),
        (INF, 1, 0, PI / 2), (INF, INF, 0, PI / 2), (INF, NAN, 0, NAN), (NAN, 1, NAN, NAN),
        (NAN, INF, 0, PI / 2, "re"), (NAN, NAN, NAN, NAN),
    ],
    "cosh": [
        (0, 0, 1, 0), (0, INF, NAN, 0, "im"), (0, NAN, NAN, 0, "im"), (1, INF, NAN, NAN), (1, NAN, NAN, NAN),
        (INF, 0, INF, 0), (INF, 1, INF, INF), (INF, 2, -INF, INF), (INF, INF, INF, NAN, "re"), (INF, NAN, INF, NAN),
        (NAN, 0, NAN, 0, "im"), (NAN, 1, NAN, NAN), (NAN, NAN, NAN, NAN),
    ],
    "sinh": [
        (0, 0, 0, 0), (0, INF, 0, NAN, "re"), (0, NAN, 0, NAN, "re"), (1, INF, NAN, NAN), (1, NAN, NAN, NAN),
        (INF, 0, INF, 0), (INF, 1, INF, INF), (INF, 2, -INF, INF), (INF, INF, INF, NAN, "re"),
        (INF, NAN, INF, NAN, "re"), (NAN, 0, NAN, 0), (NAN, 1, NAN, NAN), (NAN, NAN, NAN, NAN),
    ],
    "tanh": [
        (0, 0, 0, 0), (0, INF, 0, NAN), (1, INF, NAN, NAN), (0, NAN, 0, NAN), (1, NAN, NAN, NAN), (INF, 1, 1, 0),
        (INF, INF, 1, 0, "im"), (INF, NAN, 1, 0, "im"), (NAN, 0, NAN, 0), (NAN, 1, NAN, NAN), (NAN, NAN, NAN, NAN),
    ],
    "exp": [
        (0, 0, 1, 0), (-0.0, 0, 1, 0), (1, INF, NAN, NAN), (1, NAN, NAN, NAN), (INF, 0, INF, 0), (-INF, 1, 0, 0),
        (-INF, 2, -0.0, 0), (INF, 1, INF, INF), (INF, 2, -INF, INF), (-INF, INF, 0, 0, "re im"),
        (INF, INF, INF, NAN, "re"), (-INF, NAN, 0, 0, "re im"), (INF, NAN, INF, NAN, "re"), (NAN, 0, NAN, 0),
        (NAN, 1, NAN, NAN), (NAN, NAN, NAN, NAN),
    ],
    "expm1": [
        (0, 0, 0, 0), (-0.0, 0, 0, 0), (1, INF, NAN, NAN), (1, NAN, NAN, NAN), (INF, 0, INF, 0),
        (-INF, 1, -1, 0), (INF, 1, INF, INF), (-INF, INF, -1, 0, "im"), (INF, INF, INF, NAN, "re"),
        (-INF, NAN, -1, 0, "im"), (INF, NAN, INF, NAN, "re"), (NAN, 0, NAN, 0), (NAN, 1, NAN, NAN),
        (NAN, NAN, NAN, NAN),
    ],
    "log": [
        (-0.0, 0, -INF, PI), (0, 0, -INF, 0), (1, INF, INF, PI / 2), (1, NAN, NAN, NAN), (-INF, 1, INF, PI),
        (INF, 1, INF, 0), (-INF, INF, INF, 3 * PI / 4), (INF, INF, INF, PI / 4), (INF, NAN, INF, NAN),
        (-INF, NAN, INF, NAN), (NAN, 1, NAN, NAN), (NAN, INF, INF, NAN), (NAN, NAN, NAN, NAN),
    ],
    "log1p": [
        (-1, 0, -INF, 0), (0, 0, 0, 0), (-0.0, 0, -0.0, 0), (1, INF, INF, PI / 2), (1, NAN, NAN, NAN),
        (-INF, 1, INF, PI), (INF, 1, INF, 0), (-INF, INF, INF, 3 * PI / 4), (INF, INF, INF, PI / 4),
        (INF, NAN, INF, NAN), (-INF, NAN, INF, NAN), (NAN, 1, NAN, NAN), (NAN, INF, INF, NAN), (NAN, NAN, NAN, NAN),
    ],
    "sqrt": [
        (0, 0, 0, 0), (-0.0, 0, 0, 0), (1, INF, INF, INF), (NAN, INF, INF, INF), (1, NAN, NAN, NAN),
        (-INF, 1, 0, INF), (INF, 1, INF, 0), (-INF, NAN, NAN, INF, "im"), (INF, NAN, INF, NAN), (NAN, 1, NAN, NAN),
        (NAN, NAN, NAN, NAN),
    ],
    "abs": [
        (INF, NAN, INF, 0), (NAN, INF, INF, 0), (-0.0, 0, 0, 0), (1, NAN, NAN, 0), (3, 4, 5, 0),
    ],
    "sign": [
        (0, 0, 0, 0), (-0.0, 0, 0, 0), (3, 4, 0.6, 0.8), (NAN, 1, NAN, NAN), (1, INF, 0, 1), (-INF, 1, -1, 0),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", SPECIAL)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_special_values(name, dtype):
    rows = SPECIAL[name]
    z = np.array([complex(row[0], row[1]) for row in rows], dtype)
    both = [(z, 1.0)] if name in ("abs", "sign") else [(z, 1.0), (z.conj(), -1.0)]
    for points, side in both:
        got = np.asarray(getattr(jnp, name)(points)).astype(dtype)
        for row, value in zip(rows, got, strict=True):
            free = row[4] if len(row) > 4 else ""
            for label, part, want in (("re", value.real, row[2]), ("im", value.imag, row[3] * side)):
                message = f"{name}({row[0]}, {row[1] * side}): {value}"
                if label in free:
                    part, want = abs(part), abs(want)
                np.testing.assert_allclose(part, want, rtol=4 * np.finfo(dtype).eps, err_msg=message)
                if want == 0 and name != "abs":
                    assert math.copysign(1, part) == math.copysign(1, want) or label in free, message


@pytest.mark.parametrize("name", [n for n in REFERENCE if n != "sign"])
def test_derivatives(name):
    """Of analytic functions: the tangent times f', which mpmath takes."""
    z, t = 0.4 - 0.7j, 1.1 + 0.6j
    value, tangent = atled.jvp(getattr(jnp, name), (np.asarray(z),), (np.asarray(t),))
    np.testing.assert_allclose(complex(value), complex(REFERENCE[name](mp.mpc(z))), rtol=1e-14)
    np.testing.assert_allclose(complex(tangent), complex(mp.diff(REFERENCE[name], mp.mpc(z))) * t, rtol=1e-12)


def test_batched_and_compiled():
    z = np.array([[1 + 2j, -0.5j], [3.0, -2 + 0.1j]], "complex64")
    for name in ("log", "sqrt", "asin", "atanh", "tanh"):
        f = getattr(jnp, name)
        want = np.asarray(f(z))
        np.testing.assert_array_equal(np.asarray(atled.vmap(f)(z)), want)
        np.testing.assert_array_equal(np.asarray(atled.jit(f)(z)), want)
    assert jnp.log(jnp.zeros((0, 2), "complex64")).shape == (0, 2)


def test_a_logarithm_near_one_keeps_its_digits():
    """log(abs(z)) of 0.6 + 0.8i, whose squares add up to one but for rounding."""
    z = complex(np.float32(0.6), np.float32(0.8))
    want = mp.log(abs(mp.mpc(z)))
    assert abs(float(jnp.log(np.complex64(z)).real) / float(want) - 1) < 1e-6
