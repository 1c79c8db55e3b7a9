"""Products, linear algebra, Fourier transforms, polynomials, statistics of samples, signals."""

from __future__ import annotations

from table.calls import calls, distinct, dominant, fixed, given, increasing, positive, real, symmetric

A, B, V, T = real(2, 3), real(3, 4), real(3), real(2, 2, 3)
Q, H, L = dominant(3, 3), symmetric(3, 3), real(4, 3)
F = real(2, 5)
C4 = real(4)
NOTHING = {
    "no rows": "nothing in, nothing out, as in JAX",
    "nothing in rows": "nothing in, nothing out, as in JAX",
    "one number": "complex, as all results; in NumPy it stays what it is",
}
LENIENT = {"one number": "taken as an array of one element; NumPy looks at its length first"}


def transforms(*names: str) -> list[str]:
    return [
        f"fft.{n}(x{a})"
        for n in names
        for a in ("", ", n=7", ", n=3, axis=0", ", norm='ortho'", ", axis=0, norm='forward'")
    ]


def plane_transforms(*names: str) -> list[str]:
    return [f"fft.{n}(x{a})" for n in names for a in ("", ", s=(3, 4)", ", axes=(1, 0), norm='ortho'")]


ROWS = [
    *calls("dot(a, b)", "dot(a, v)", "dot(v, v)", "dot(v, 2)", "dot(t, b)", "matmul(a, b)", "matmul(v, b)", "matmul(t, b)", "matmul(t, v)", "inner(a, v)",
           "inner(a, a)", "outer(v, a)", "vdot(v, v)", "vdot(a, a)", "vecdot(a, a)", "vecdot(a, v)", "vecdot(b, b, axis=0)", "matvec(t, v)", "vecmat(v, b)", "kron(a, v)",
           "kron(a, b)", "tensordot(a, b, 1)", "tensordot(a, a)", "tensordot(t, a, axes=([0, 2], [0, 1]))", "tensordot(v, v, 0)",
           "einsum('ij,jk', a, b)", "einsum('ij,jk->ki', a, b)", "einsum('ii', a[:, :2])", "einsum('ij->j', a)", "einsum('...j,j', t, v)", "einsum('i,j,k->kji', v, v, v)",
           "einsum('ij,kj,j->ik', a, a, v)", "einsum('ii->i', a[:, :2])", "einsum(a, [0, 1], b, [1, 2], [0, 2])",
           "linalg.matmul(a, b)", "linalg.outer(v, v)", "linalg.vecdot(a, v)", "linalg.tensordot(a, b, axes=1)", "linalg.multi_dot([a, b, b.T])",
           "linalg.multi_dot([v, b])", "linalg.trace(t)", "linalg.trace(a, offset=1)", "linalg.diagonal(t)", "linalg.diagonal(a, offset=-1)", "linalg.matrix_transpose(t)",
           a=A, b=B, v=V, t=T),
    *calls("cross(u, v)", "cross(a, v)", "cross(c, c * c, axis=0)", "cross(c, a, axisa=0, axisc=0)", "linalg.cross(a, v)", "linalg.cross(c, c + 1, axis=0)",
           u=V, v=V, a=A, c=real(3, 2), kinds="iufc"),
    *calls("einsum_path('ij,jk,k', a, b, c)[0]", a=A, b=B, c=C4, reference="[(1, 2), (0, 1)]", but={"empty": "the reference is about these shapes"}),
    *calls("linalg.det(q)", "linalg.inv(q)", "linalg.slogdet(q)", "linalg.solve(q, v)", "linalg.solve(q, q.T)", "linalg.matrix_power(q, 3)", "linalg.matrix_power(q, -2)",
           "linalg.matrix_power(q, 0)", "linalg.pinv(q)", "linalg.norm(q)", "linalg.cond(q)", "linalg.cond(q, 'fro')", "linalg.cond(q, 1)", "linalg.cond(q, -2)",
           q=Q, v=V, kinds="fc", tolerance=128),
    *calls("linalg.det(q)", "linalg.inv(q)", "linalg.matrix_power(q, 2)", q=dominant(2, 2, 2), kinds="fc", tolerance=128),
    *calls("linalg.det(q)", "linalg.inv(q)", "linalg.solve(q, v)", "linalg.norm(q)", q=Q, v=V, kinds="i", tolerance=128),
    *calls("linalg.cholesky(h)", "linalg.cholesky(h, upper=True)", "linalg.eigvalsh(h)", "linalg.eigvalsh(h, UPLO='U')", "linalg.eigh(h)[0]", "linalg.svdvals(h)",
           "linalg.pinv(h, hermitian=True)", h=H, kinds="fc", tolerance=128),
    *calls("abs(linalg.eigh(h)[1])", h=H, kinds="fc", tolerance=128, is_smooth=False),
    *calls("sort_complex(linalg.eigvals(q))", "sort_complex(linalg.eig(q)[0])", q=Q, kinds="fc", tolerance=256),
    *calls("linalg.eigvals(h)", "linalg.eig(h)[0]", reference="linalg.eigvals(h) + 0j", h=fixed([[1.0, 0.5], [0.0, 3.0]], "float32")),
    *calls("linalg.qr(a)", "linalg.qr(a, 'r')", "linalg.qr(l)", "linalg.qr(l, mode='complete')[1]", a=Q, l=L, kinds="fc", tolerance=128, is_smooth=False),
    *calls("linalg.svd(l, compute_uv=False)", "linalg.svd(l, full_matrices=False)[1]", "linalg.svdvals(l)", "linalg.pinv(l)",
           "linalg.norm(l, 2)", "linalg.norm(l, -2)", "linalg.norm(l, 'nuc')", "linalg.matrix_norm(l)", "linalg.matrix_norm(l, ord=2, keepdims=True)", "linalg.cond(l)",
           l=L, kinds="fc", tolerance=128),
    *calls("linalg.svd(l)[1]", l=L, kinds="fc", tolerance=128, is_smooth=False),
    *calls("linalg.matrix_rank(l)", "linalg.matrix_rank(q)", l=L, q=fixed([[1.0, 2.0], [2.0, 4.0]], "float32"), kinds="fc"),
    *calls("linalg.lstsq(l, r)[0]", "linalg.lstsq(l, r)[2:]", l=L, r=C4, kinds="f", tolerance=256),
    *calls("linalg.lstsq(l, r, numpy_resid=True)", l=L, r=C4, kinds="f", tolerance=256, reference="linalg.lstsq(l, r)", is_traced=False),
    *calls("linalg.tensorsolve(t, u)", t=dominant(4, 4), u=C4, kinds="f", tolerance=256),
    *calls("linalg.tensorinv(t.reshape(2, 2, 4))", "linalg.tensorinv(t.reshape(4, 2, 2), 1)", t=dominant(4, 4), kinds="f", tolerance=256),
    *calls(*[f"linalg.norm(v, {o})" for o in ("1", "2", "inf", "-inf", "3", "0", "0.5")], "linalg.norm(a, 1)", "linalg.norm(a, -1)", "linalg.norm(a, inf)", "linalg.norm(a, -inf)", "linalg.norm(a, 'fro')",
           "linalg.norm(a)", "linalg.norm(a, axis=1)", "linalg.norm(a, 1, axis=0, keepdims=True)", "linalg.norm(t, axis=(0, 2))", "linalg.norm(t, 1, axis=(-1, 0))",
           "linalg.vector_norm(a)", "linalg.vector_norm(a, axis=1, ord=1)", "linalg.vector_norm(t, axis=(0, 1), keepdims=True)", "linalg.vector_norm(a, ord=inf)",
           "linalg.matrix_norm(t, ord=1)", "linalg.matrix_norm(t, ord=-inf)", a=A, v=V, t=T, kinds="fc", tolerance=32),
    *calls(*transforms("fft", "ifft"), *plane_transforms("fft2", "ifft2", "fftn", "ifftn"), "fft.fftn(x, axes=(0,))", "fft.irfft(x)", "fft.irfft(x, n=5)", "fft.irfft(x, n=4, axis=0)",
           "fft.hfft(x)", "fft.hfft(x, n=6, norm='ortho')", *plane_transforms("irfft2", "irfftn"), x=F, kinds="fc", tolerance=64, but=NOTHING),
    *calls(*transforms("rfft", "ihfft"), *plane_transforms("rfft2", "rfftn"), x=F, kinds="f", tolerance=64, but=NOTHING),
    *calls("fft.fft(x)", "fft.rfft(x)", "fft.irfft(x)", "fft.fftn(x)", x=F, kinds="i", tolerance=64),
    *calls("fft.fftshift(x)", "fft.ifftshift(x)", "fft.fftshift(x, axes=1)", "fft.ifftshift(x, axes=(1,))", x=F, but=LENIENT),
    *calls("polyval(p, x)", "polyval(p, s)", "polyadd(p, c)", "polysub(c, p)", "polyder(c)", "polyder(c, 2)", "polyint(p)", "polyint(p, 2)", "polyint(p, k=2)",
           "polyint(p, 2, [1, 3])", p=V, c=C4, x=A, s=real(), kinds="ifc", but=LENIENT),
    *calls("polymul(p, c)", "polymul(c, p)", p=positive(3), c=positive(4), kinds="iufc", but={"special": "NumPy drops leading zeros", "no rows": "refused: no coefficients are no polynomial"}),
    *calls("polydiv(c, p)", c=C4, p=positive(2), kinds="fc", tolerance=64, but={"empty": "the reference is about these lengths", "special": "NumPy drops leading zeros"}, reference="(polydiv(c, p)[0], np.append(np.zeros(3), polydiv(c, p)[1]) + 0 * c)"),
    *calls("poly(p)", "vander(p)", "vander(p, 2)", "vander(p, 4, increasing=True)", p=V, kinds="ifc", but=LENIENT),
    *calls("poly(h)", h=H, kinds="f", tolerance=256, reference="poly(h) + 0j"),
    *calls("sort_complex(roots(p))", p=fixed([1.0, -6.0, 11.0, -6.0], "float32"), tolerance=1024, is_traced=False),
    *calls("sort_complex(roots(p, strip_zeros=False))", p=fixed([1.0, -3.0, 2.0], "float32"), tolerance=256, reference="sort_complex(roots(p))"),
    *calls("polyfit(g, y, 2)", "polyfit(g, y, 1, w=w)", g=increasing(5), y=real(5), w=positive(5), kinds="f", tolerance=1024),
    *calls("polyfit(g, y, 1, cov=True)", "polyfit(g, y, 1, full=True)[0]", "polyfit(g, y, 1, full=True)[2:4]", g=increasing(5), y=real(5), kinds="f", tolerance=2048),
    *calls("cov(a)", "cov(a, rowvar=False)", "cov(a, bias=True)", "cov(a, ddof=0)", "cov(v)", "cov(v, v * v)", "cov(a, aweights=w)", "cov(a, fweights=f)", a=A, v=V, w=given([1.0, 2.0, 0.5]),
           f=fixed([1, 2, 1], "int32"), kinds="ifc", tolerance=64),
    *calls("corrcoef(a)", "corrcoef(a, rowvar=False)", "corrcoef(v, v * v)", a=real(3, 4), v=V, kinds="fc", tolerance=64),
    *calls("diff(a)", "diff(a, 2)", "diff(a, axis=0)", "diff(a, prepend=1)", "diff(a, append=a[:, :1])", "ediff1d(a)", "ediff1d(a, to_begin=1)", "ediff1d(v, to_end=v)", a=A, v=V, kinds="ifc"),
    *calls("diff(a)", "diff(a, axis=0)", a=A, kinds="bu"),
    *calls("gradient(c)", "gradient(c, 2.0)", "gradient(c, g)", "gradient(c, edge_order=2)", "gradient(m)", "gradient(m, axis=1)", "gradient(m, 0.5, 2.0)", "gradient(m, axis=(0,))",
           c=real(5), g=given([0.0, 0.5, 2.0, 2.5, 4.0]), m=real(3, 4), kinds="fc", tolerance=64),
    *calls("convolve(c, v)", "convolve(v, c)", "convolve(c, v, 'same')", "convolve(c, v, mode='valid')", "correlate(c, v)", "correlate(c, v, 'full')", "correlate(v, c, 'same')", c=real(5), v=V, kinds="iufc", but={"one number": "signals have an axis"}),
    *calls("interp(x, g, c)", "interp(x, g, c, left=-1, right=5)", "interp(s, g, c)", "interp(x, g, c, period=3.0)", x=A, s=real(), g=given([-1.5, -0.5, 0.25, 1.75]), c=C4, kinds="f"),
    *calls("trapezoid(a)", "trapezoid(a, dx=0.5)", "trapezoid(a, axis=0)", "trapezoid(a, x=v)", "trapezoid(a, x=a, axis=1)", a=A, v=V, kinds="ifc"),
    *calls("unwrap(a)", "unwrap(a, axis=0)", "unwrap(a * 3, discont=4.0)", "unwrap(a, period=2.0)", "unwrap(a * 9)", a=real(3, 4), kinds="f"),
    *calls("histogram(x, bins=4)", "histogram(x, bins=4, range=(-1, 2))", "histogram(x, bins=g)", "histogram(x, bins=3, density=True)", "histogram_bin_edges(x, 4)", "histogram_bin_edges(x, 3, (0, 1))",
           x=distinct(2, 5), g=given([-1.5, 0.0, 0.6, 2.0]), kinds="if", is_smooth=False),
    *calls("histogram(x, bins=3, weights=w)", "histogram(x, bins=3, weights=w, density=True)", x=distinct(8), w=positive(8), kinds="f", is_smooth=False),
    *calls("histogram2d(x, y, bins=3)", "histogram2d(x, y, bins=(2, 3), range=((-2, 2), (-1, 1)))", x=distinct(8), y=distinct(8), kinds="f", is_smooth=False, but=LENIENT),
    *calls("histogramdd(x, bins=2)", "histogramdd(x, bins=(2, 3), density=True)", "histogramdd(x, bins=2, weights=w)", x=distinct(6, 2), w=positive(6), kinds="f", is_smooth=False, but={"one number": "a sample has rows"}),
]  # fmt: skip
