"""Functions that make arrays, and those that ask about types and shapes."""

from __future__ import annotations

import numpy as np

from table.calls import calls, fixed, positive, real

X, V, S = real(2, 3), real(3), real()
ROWS = [
    *calls("zeros((2, 3))", "zeros(3, 'int32')", "ones((2, 1))", "ones((), 'complex64')", "full((2, 2), 3)", "full(2, 2.5)", "full(2, 1, 'bool')",
           "empty((0, 3))", "eye(3)", "eye(2, 3, 1)", "eye(3, k=-1, dtype='int32')", "identity(2)", "tri(3)", "tri(2, 4, 1)", "tri(3, k=-1)",
           "arange(5)", "arange(2, 7)", "arange(1, 9, 3)", "arange(5, 0, -2)", "arange(0.5, 3)", "arange(0, 1, 0.25)", "arange(3, dtype='float32')",
           "arange(0)", "linspace(0, 1, 5)", "linspace(2, -3, 4, endpoint=False)", "linspace(0, 1, 1)", "linspace(0, 1, 0)",
           "linspace(1, 3, 3, retstep=True)", "linspace(0, 10, 4, dtype='int32')", "logspace(0, 2, 4)", "logspace(0, 2, 3, base=2.0)",
           "geomspace(1, 64, 4)", "geomspace(-1, -8, 4)", "geomspace(1, 8, 3, endpoint=False)", "indices((2, 3))", "indices((2, 3), sparse=True)",
           "diag_indices(3)", "diag_indices(2, 3)", "tril_indices(3)", "tril_indices(3, -1, 4)", "triu_indices(3)", "triu_indices(3, 1, 4)",
           "mask_indices(3, triu)", "mask_indices(3, tril, -1)", "bartlett(5)", "bartlett(1)", "blackman(5)", "blackman(6)", "hamming(5)",
           "hanning(6)", "kaiser(5, 3.0)", "kaiser(1, 14.0)", "hanning(0)", "fft.fftfreq(5)", "fft.fftfreq(4, 0.5)", "fft.rfftfreq(5)", "fft.rfftfreq(4, 0.1)",
           "broadcast_shapes((3, 1), (4,))", "broadcast_shapes((), (2, 1, 3), (5, 1))", "fromfunction(lambda i, j: i * 2 + j, (2, 3))",
           "fromiter([1, 2, 3], 'int32')", "fromstring('1 2 3', 'float32', sep=' ')",
           "frombuffer(np.arange(4, dtype='int32').tobytes(), 'int32')", "frombuffer(np.arange(4, dtype='int32').tobytes(), 'int32', 2, 4)"),
    *calls("linspace(x, y, 4)", "linspace(x, y, 3, axis=1)", "linspace(x, y, 3, endpoint=False, axis=-1)", "linspace(x, 2, 3)",
           x=X, y=real(2, 3), kinds="fc"),
    *calls("logspace(x, y, 3)", "geomspace(x, y, 4)", "geomspace(x, y, 4, axis=-1)", x=positive(2, 3), y=positive(2, 3), kinds="f", tolerance=64),
    *calls("zeros_like(x)", "ones_like(x)", "full_like(x, 1)", "empty_like(x) * 0", "zeros_like(x, 'int32')", "ones_like(x, shape=(2,))",
           "full_like(x, 2, dtype='float32')", "full_like(x, s)", x=X, s=S, kinds="iufc"),
    *calls("diag_indices_from(x)", "tril_indices_from(x)", "triu_indices_from(x, 1)", x=real(3, 3)),
    *calls("from_dlpack(x)", x=X, kinds="iuf", is_traced=False, but={"bfloat16": "NumPy has no such arrays"}),
    *calls("isscalar(x)", x=X, but={"one number": "an array without axes counts as a scalar, as in JAX"}),
    *calls("shape(x)", "ndim(x)", "size(x)", "size(x, 1)", "iscomplexobj(x)", "isrealobj(x)", "iterable(x)", "iterable(s)",
           "isscalar(2.5)", "isscalar('a')", "iterable(3)", "shape(2.0)", "ndim([1, 2])", x=X, s=S),
    *calls("can_cast('int8', 'int16')", "can_cast('float64', 'float32')", "can_cast('float64', 'float32', 'same_kind')", "can_cast('int32', 'bool', 'unsafe')",
           "isdtype(np.dtype('int8'), 'signed integer')", "isdtype(np.dtype('float32'), ('integral', 'complex floating'))",
           "isdtype(np.dtype('bool'), 'bool')", "issubdtype('int32', np.integer)", "issubdtype('float32', np.integer)",
           "promote_types('int8', 'int16') == np.int16", "promote_types('int8', 'uint8') == np.int16", "promote_types('float32', 'complex64') == np.complex64",
           "result_type('int8', 'int16') == np.int16", "result_type('float32', 3.0) == np.float32", "result_type('bool', 'uint8') == np.uint8",
           "finfo('float32').eps", "finfo('float64').max", "finfo('float16').tiny", "iinfo('int8').min", "iinfo('uint32').max"),
    *calls("array_equal(x, x)", "array_equal(x, y)", "array_equal(x, v)", "array_equiv(x, x)", "array_equiv(x, v)", "array_equiv(v, x * 0 + v)",
           "allclose(x, x)", "allclose(x, y)", "allclose(x, y, rtol=100.0, atol=100.0)", x=X, y=real(2, 3), v=V),
    *calls("array_equal(n, n)", "array_equal(n, n, equal_nan=True)", "allclose(n, n)", "allclose(n, n, equal_nan=True)", n=fixed([1.0, np.nan], "float32")),
]  # fmt: skip
