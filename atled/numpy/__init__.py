"""NumPy's functions on arrays that can be differentiated, batched, compiled and sharded over devices.

Rarely used files are imported when one of their names is first used.
"""
# fmt: off

from __future__ import annotations

import importlib
import math
from typing import TYPE_CHECKING, Any

import numpy as _np

from atled.core.array import Array as ndarray  # noqa: N813
from atled.core.dtypes import finfo, iinfo, issubdtype
from atled.numpy import methods as _methods
from atled.numpy import ufuncs as _ufuncs
from atled.numpy.arithmetic import (
    divmod,
    float_power,
    floor_divide,
    fmod,
    frexp,
    gcd,
    hypot,
    lcm,
    ldexp,
    mod,
    modf,
    pow,
    power,
    remainder,
    spacing,
)
from atled.numpy.bits import (
    bitwise_and,
    bitwise_count,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_not,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    invert,
    left_shift,
    packbits,
    right_shift,
    unpackbits,
)
from atled.numpy.choosing import choose, compress, extract, piecewise, select, where
from atled.numpy.contractions import (
    cross,
    diag,
    diagflat,
    diagonal,
    dot,
    einsum,
    einsum_path,
    inner,
    kron,
    matmul,
    matvec,
    outer,
    tensordot,
    trace,
    vdot,
    vecdot,
    vecmat,
)
from atled.numpy.creation import (
    array,
    asarray,
    astype,
    copy,
    empty,
    empty_like,
    eye,
    from_dlpack,
    frombuffer,
    fromfile,
    fromiter,
    fromstring,
    full,
    full_like,
    identity,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from atled.numpy.cumulative import cumprod, cumsum, cumulative_prod, cumulative_sum, nancumprod, nancumsum
from atled.numpy.elementwise import (
    abs,
    absolute,
    acos,
    acosh,
    add,
    angle,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cbrt,
    clip,
    conj,
    conjugate,
    cos,
    cosh,
    deg2rad,
    degrees,
    divide,
    exp,
    exp2,
    expm1,
    fabs,
    fmax,
    fmin,
    heaviside,
    i0,
    imag,
    isclose,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logaddexp2,
    maximum,
    minimum,
    multiply,
    negative,
    nextafter,
    positive,
    rad2deg,
    radians,
    real,
    reciprocal,
    sign,
    sin,
    sinc,
    sinh,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
    true_divide,
)
from atled.numpy.joining import append, block, column_stack, concat, concatenate, dstack, hstack, stack, vstack
from atled.numpy.logic import (
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
)
from atled.numpy.nan_reductions import nanargmax, nanargmin, nanmax, nanmean, nanmin, nanprod, nanstd, nansum, nanvar
from atled.numpy.promotion import broadcast_shapes
from atled.numpy.ranges import arange, geomspace, linspace, logspace
from atled.numpy.reductions import (
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    average,
    count_nonzero,
    max,
    mean,
    min,
    prod,
    ptp,
    std,
    sum,
    var,
)
from atled.numpy.repeating import repeat, tile
from atled.numpy.rounding import around, ceil, fix, floor, rint, round, trunc
from atled.numpy.scalar_types import (
    bfloat16,
    bool,
    bool_,
    byte,
    cdouble,
    character,
    complex64,
    complex128,
    complex_,
    complexfloating,
    csingle,
    double,
    flexible,
    float4_e2m1fn,
    float8_e3m4,
    float8_e4m3,
    float8_e4m3b11fnuz,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    float_,
    floating,
    generic,
    half,
    inexact,
    int2,
    int4,
    int8,
    int16,
    int32,
    int64,
    int_,
    intc,
    integer,
    longlong,
    number,
    object_,
    short,
    signedinteger,
    single,
    ubyte,
    uint,
    uint2,
    uint4,
    uint8,
    uint16,
    uint32,
    uint64,
    uintc,
    ulonglong,
    unsignedinteger,
    ushort,
)
from atled.numpy.searching import (
    argwhere,
    digitize,
    flatnonzero,
    nonzero,
    ravel_multi_index,
    searchsorted,
    trim_zeros,
    unravel_index,
)
from atled.numpy.shapes import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_arrays,
    broadcast_to,
    expand_dims,
    flip,
    fliplr,
    flipud,
    matrix_transpose,
    moveaxis,
    permute_dims,
    ravel,
    reshape,
    roll,
    rollaxis,
    rot90,
    squeeze,
    swapaxes,
    transpose,
)
from atled.numpy.sorting import argpartition, argsort, lexsort, partition, sort, sort_complex
from atled.numpy.special_values import copysign, isfinite, isinf, isnan, isneginf, isposinf, nan_to_num, signbit
from atled.numpy.splitting import array_split, dsplit, hsplit, split, unstack, vsplit
from atled.numpy.taking import take, take_along_axis
from atled.numpy.triangles import (
    diag_indices,
    diag_indices_from,
    mask_indices,
    tri,
    tril,
    tril_indices,
    tril_indices_from,
    triu,
    triu_indices,
    triu_indices_from,
)
from atled.numpy.ufuncs import frompyfunc, ufunc

if TYPE_CHECKING:
    from atled.numpy import fft, linalg
    from atled.numpy.comparison import allclose, array_equal, array_equiv
    from atled.numpy.convolutions import convolve, correlate
    from atled.numpy.differences import diff, ediff1d, gradient, trapezoid, unwrap
    from atled.numpy.edits import delete, fill_diagonal, insert, place, put, put_along_axis, resize
    from atled.numpy.functional import apply_along_axis, apply_over_axes, vectorize
    from atled.numpy.grids import c_, fromfunction, index_exp, indices, ix_, meshgrid, mgrid, ogrid, r_, s_
    from atled.numpy.histograms import histogram, histogram2d, histogram_bin_edges, histogramdd
    from atled.numpy.inspection import (
        array_repr,
        array_str,
        can_cast,
        get_printoptions,
        iscomplex,
        iscomplexobj,
        isdtype,
        isreal,
        isrealobj,
        isscalar,
        iterable,
        load,
        ndim,
        printoptions,
        promote_types,
        result_type,
        save,
        savez,
        set_printoptions,
        shape,
        size,
    )
    from atled.numpy.interpolation import interp
    from atled.numpy.padding import pad
    from atled.numpy.polynomial import (
        poly,
        polyadd,
        polyder,
        polydiv,
        polyfit,
        polyint,
        polymul,
        polysub,
        polyval,
        roots,
        vander,
    )
    from atled.numpy.sets import (
        bincount,
        intersect1d,
        isin,
        setdiff1d,
        setxor1d,
        union1d,
        unique,
        unique_all,
        unique_counts,
        unique_inverse,
        unique_values,
    )
    from atled.numpy.statistics import (
        corrcoef,
        cov,
        median,
        nanmedian,
        nanpercentile,
        nanquantile,
        percentile,
        quantile,
    )
    from atled.numpy.windows import bartlett, blackman, hamming, hanning, kaiser

_LAZY = {
    "comparison": """
        allclose array_equal array_equiv""",
    "convolutions": """
        convolve correlate""",
    "differences": """
        diff ediff1d gradient trapezoid unwrap""",
    "edits": """
        delete fill_diagonal insert place put put_along_axis resize""",
    "functional": """
        apply_along_axis apply_over_axes vectorize""",
    "grids": """
        c_ fromfunction index_exp indices ix_ meshgrid mgrid ogrid r_ s_""",
    "histograms": """
        histogram histogram2d histogram_bin_edges histogramdd""",
    "inspection": """
        array_repr array_str can_cast get_printoptions iscomplex iscomplexobj isdtype isreal isrealobj
        isscalar iterable load ndim printoptions promote_types result_type save savez set_printoptions shape
        size""",
    "interpolation": """
        interp""",
    "padding": """
        pad""",
    "polynomial": """
        poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots vander""",
    "sets": """
        bincount intersect1d isin setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse
        unique_values""",
    "statistics": """
        corrcoef cov median nanmedian nanpercentile nanquantile percentile quantile""",
    "windows": """
        bartlett blackman hamming hanning kaiser""",
}
_FILE_OF = {name: file for file, names in _LAZY.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in ("fft", "linalg"):
        return importlib.import_module(f"atled.numpy.{name}")
    if name in _FILE_OF:
        value = globals()[name] = getattr(importlib.import_module(f"atled.numpy.{_FILE_OF[name]}"), name)
        return value
    raise AttributeError(f"module 'atled.numpy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


def __array_namespace_info__() -> Any:  # noqa: N807
    """The array API standard's inspection functions: `devices()`, `dtypes()`, `default_dtypes()`, `capabilities()`.

    >>> __array_namespace_info__().default_dtypes()["real floating"]
    dtype('float32')
    """
    from atled.numpy.standard import NamespaceInfo

    return NamespaceInfo()


__array_api_version__ = "2025.12"
_methods.install()
_ufuncs.install()
pi, e, euler_gamma, inf, nan, newaxis = math.pi, math.e, _np.euler_gamma, math.inf, math.nan, None
dtype, ComplexWarning = _np.dtype, _np.exceptions.ComplexWarning

__all__ = [
    "ComplexWarning", "__array_api_version__", "__array_namespace_info__",
    "abs", "absolute", "acos", "acosh", "add", "all", "allclose", "amax", "amin", "angle", "any", "append",
    "apply_along_axis", "apply_over_axes", "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan",
    "arctan2", "arctanh", "argmax", "argmin", "argpartition", "argsort", "argwhere", "around", "array",
    "array_equal", "array_equiv", "array_repr", "array_split", "array_str", "asarray", "asin", "asinh",
    "astype", "atan", "atan2", "atanh", "atleast_1d", "atleast_2d", "atleast_3d", "average", "bartlett",
    "bfloat16", "bincount", "bitwise_and", "bitwise_count", "bitwise_invert", "bitwise_left_shift",
    "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "blackman", "block", "bool", "bool_",
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "byte", "c_", "can_cast", "cbrt", "cdouble", "ceil",
    "character", "choose", "clip", "column_stack", "complex64", "complex128", "complex_", "complexfloating",
    "compress", "concat", "concatenate", "conj", "conjugate", "convolve", "copy", "copysign", "corrcoef",
    "correlate", "cos", "cosh", "count_nonzero", "cov", "cross", "csingle", "cumprod", "cumsum",
    "cumulative_prod", "cumulative_sum", "deg2rad", "degrees", "delete", "diag", "diag_indices",
    "diag_indices_from", "diagflat", "diagonal", "diff", "digitize", "divide", "divmod", "dot", "double",
    "dsplit", "dstack", "dtype", "e", "ediff1d", "einsum", "einsum_path", "empty", "empty_like", "equal",
    "euler_gamma", "exp", "exp2", "expand_dims", "expm1", "extract", "eye", "fabs", "fft", "fill_diagonal",
    "finfo", "fix", "flatnonzero", "flexible", "flip", "fliplr", "flipud", "float4_e2m1fn", "float8_e3m4",
    "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "float8_e8m0fnu", "float16", "float32", "float64", "float_", "float_power", "floating", "floor",
    "floor_divide", "fmax", "fmin", "fmod", "frexp", "from_dlpack", "frombuffer", "fromfile", "fromfunction",
    "fromiter", "frompyfunc", "fromstring", "full", "full_like", "gcd", "generic", "geomspace", "get_printoptions",
    "gradient", "greater", "greater_equal", "half", "hamming", "hanning", "heaviside", "histogram",
    "histogram2d", "histogram_bin_edges", "histogramdd", "hsplit", "hstack", "hypot", "i0", "identity", "iinfo",
    "imag", "index_exp", "indices", "inexact", "inf", "inner", "insert", "int2", "int4", "int8", "int16",
    "int32", "int64", "int_", "intc", "integer", "interp", "intersect1d", "invert", "isclose", "iscomplex",
    "iscomplexobj", "isdtype", "isfinite", "isin", "isinf", "isnan", "isneginf", "isposinf", "isreal",
    "isrealobj", "isscalar", "issubdtype", "iterable", "ix_", "kaiser", "kron", "lcm", "ldexp", "left_shift",
    "less", "less_equal", "lexsort", "linalg", "linspace", "load", "log", "log1p", "log2", "log10", "logaddexp",
    "logaddexp2", "logical_and", "logical_not", "logical_or", "logical_xor", "logspace", "longlong",
    "mask_indices", "matmul", "matrix_transpose", "matvec", "max", "maximum", "mean", "median", "meshgrid",
    "mgrid", "min", "minimum", "mod", "modf", "moveaxis", "multiply", "nan", "nan_to_num", "nanargmax",
    "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin", "nanpercentile",
    "nanprod", "nanquantile", "nanstd", "nansum", "nanvar", "ndarray", "ndim", "negative", "newaxis",
    "nextafter", "nonzero", "not_equal", "number", "object_", "ogrid", "ones", "ones_like", "outer", "packbits",
    "pad", "partition", "percentile", "permute_dims", "pi", "piecewise", "place", "poly", "polyadd", "polyder",
    "polydiv", "polyfit", "polyint", "polymul", "polysub", "polyval", "positive", "pow", "power",
    "printoptions", "prod", "promote_types", "ptp", "put", "put_along_axis", "quantile", "r_", "rad2deg",
    "radians", "ravel", "ravel_multi_index", "real", "reciprocal", "remainder", "repeat", "reshape", "resize",
    "result_type", "right_shift", "rint", "roll", "rollaxis", "roots", "rot90", "round", "s_", "save", "savez",
    "searchsorted", "select", "set_printoptions", "setdiff1d", "setxor1d", "shape", "short", "sign", "signbit",
    "signedinteger", "sin", "sinc", "single", "sinh", "size", "sort", "sort_complex", "spacing", "split",
    "sqrt", "square", "squeeze", "stack", "std", "subtract", "sum", "swapaxes", "take", "take_along_axis",
    "tan", "tanh", "tensordot", "tile", "trace", "transpose", "trapezoid", "tri", "tril", "tril_indices",
    "tril_indices_from", "trim_zeros", "triu", "triu_indices", "triu_indices_from", "true_divide", "trunc",
    "ubyte", "ufunc", "uint", "uint2", "uint4", "uint8", "uint16", "uint32", "uint64", "uintc", "ulonglong", "union1d",
    "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values", "unpackbits", "unravel_index",
    "unsignedinteger", "unstack", "unwrap", "ushort", "vander", "var", "vdot", "vecdot", "vecmat", "vectorize",
    "vsplit", "vstack", "where", "zeros", "zeros_like",
]
