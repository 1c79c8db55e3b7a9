"""NumPy's functions on arrays that can be differentiated, batched, compiled and sharded over devices.

Rarely used files are imported when one of their names is first used.
"""

from atled.core import lazy_imports
from atled.numpy import array_methods, ufuncs

_AT_ONCE = {
    "arithmetic": """
        divmod float_power floor_divide fmod frexp gcd hypot lcm ldexp mod modf pow power remainder spacing""",
    "atled.core.array": "ndarray=Array",
    "atled.core.dtypes": "finfo iinfo issubdtype",
    "bitwise": """
        bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift
        bitwise_xor invert left_shift packbits right_shift unpackbits""",
    "selection": "choose compress extract piecewise select where",
    "constants": "ComplexWarning dtype e euler_gamma inf nan newaxis pi",
    "contractions": """
        cross diag diagflat diagonal dot einsum einsum_path inner kron matmul matvec outer tensordot trace vdot
        vecdot vecmat""",
    "creation": """
        array asarray astype copy empty empty_like eye from_dlpack frombuffer fromfile fromiter fromstring full
        full_like identity ones ones_like zeros zeros_like""",
    "cumulative": "cumprod cumsum cumulative_prod cumulative_sum nancumprod nancumsum",
    "elementwise": """
        abs absolute acos acosh add angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan
        atan2 atanh cbrt clip conj conjugate cos cosh deg2rad degrees divide exp exp2 expm1 fabs fmax fmin
        heaviside i0 imag isclose log log10 log1p log2 logaddexp logaddexp2 maximum minimum multiply negative
        nextafter positive rad2deg radians real reciprocal sign sin sinc sinh sqrt square subtract tan tanh
        true_divide""",
    "concatenation": "append block column_stack concat concatenate dstack hstack stack vstack",
    "logic": "equal greater greater_equal less less_equal logical_and logical_not logical_or logical_xor not_equal",
    "nan_reductions": "nanargmax nanargmin nanmax nanmean nanmin nanprod nanstd nansum nanvar",
    "promotion": "broadcast_shapes",
    "ranges": "arange geomspace linspace logspace",
    "reductions": "all amax amin any argmax argmin average count_nonzero max mean min prod ptp std sum var",
    "repetition": "repeat tile",
    "rounding": "around ceil fix floor rint round trunc",
    "scalar_types": """
        bfloat16 bool bool_ byte cdouble character complex128 complex64 complex_ complexfloating csingle double
        flexible float16 float32 float4_e2m1fn float64 float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn
        float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float_ floating generic half inexact int16
        int2 int32 int4 int64 int8 int_ intc integer longlong number object_ short signedinteger single ubyte
        uint uint16 uint2 uint32 uint4 uint64 uint8 uintc ulonglong unsignedinteger ushort""",
    "searching": "argwhere digitize flatnonzero nonzero ravel_multi_index searchsorted trim_zeros unravel_index",
    "shapes": """
        atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_to expand_dims flip fliplr flipud
        matrix_transpose moveaxis permute_dims ravel reshape roll rollaxis rot90 squeeze swapaxes transpose""",
    "sorting": "argpartition argsort lexsort partition sort sort_complex",
    "special_values": "copysign isfinite isinf isnan isneginf isposinf nan_to_num signbit",
    "splitting": "array_split dsplit hsplit split unstack vsplit",
    "take_along": "take take_along_axis",
    "triangular": """
        diag_indices diag_indices_from mask_indices tri tril tril_indices tril_indices_from triu triu_indices
        triu_indices_from""",
    "ufuncs": "frompyfunc ufunc",
}
_NAMES = {
    "array_equality": "allclose array_equal array_equiv",
    "convolutions": "convolve correlate",
    "differences": "diff ediff1d gradient trapezoid unwrap",
    "insert_delete": "delete fill_diagonal insert place put put_along_axis resize",
    "vectorization": "apply_along_axis apply_over_axes vectorize",
    "index_grids": "c_ fromfunction index_exp indices ix_ meshgrid mgrid ogrid r_ s_",
    "histograms": "histogram histogram2d histogram_bin_edges histogramdd",
    "inspection": """
        array_repr array_str can_cast get_printoptions iscomplex iscomplexobj isdtype isreal isrealobj isscalar
        iterable load ndim printoptions promote_types result_type save savez set_printoptions shape size""",
    "interpolation": "interp",
    "padding": "pad",
    "polynomial": "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots vander",
    "set_operations": """
        bincount intersect1d isin setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse
        unique_values""",
    "array_api": "__array_api_version__ __array_namespace_info__",
    "statistics": "corrcoef cov median nanmedian nanpercentile nanquantile percentile quantile",
    "window_functions": "bartlett blackman hamming hanning kaiser",
}
__getattr__, __dir__, __all__ = lazy_imports.public(__name__, _NAMES, "fft linalg", _AT_ONCE)
array_methods.install()
ufuncs.install()
