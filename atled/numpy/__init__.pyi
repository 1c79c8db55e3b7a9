# Written by scripts/stubs.
from atled.core.array import Array as ndarray
from atled.core.dtypes import finfo as finfo
from atled.core.dtypes import iinfo as iinfo
from atled.core.dtypes import issubdtype as issubdtype
from atled.numpy import fft as fft
from atled.numpy import linalg as linalg
from atled.numpy.arithmetic import divmod as divmod
from atled.numpy.arithmetic import float_power as float_power
from atled.numpy.arithmetic import floor_divide as floor_divide
from atled.numpy.arithmetic import fmod as fmod
from atled.numpy.arithmetic import frexp as frexp
from atled.numpy.arithmetic import gcd as gcd
from atled.numpy.arithmetic import hypot as hypot
from atled.numpy.arithmetic import lcm as lcm
from atled.numpy.arithmetic import ldexp as ldexp
from atled.numpy.arithmetic import mod as mod
from atled.numpy.arithmetic import modf as modf
from atled.numpy.arithmetic import pow as pow
from atled.numpy.arithmetic import power as power
from atled.numpy.arithmetic import remainder as remainder
from atled.numpy.arithmetic import spacing as spacing
from atled.numpy.array_api import __array_api_version__ as __array_api_version__
from atled.numpy.array_api import __array_namespace_info__ as __array_namespace_info__
from atled.numpy.array_equality import allclose as allclose
from atled.numpy.array_equality import array_equal as array_equal
from atled.numpy.array_equality import array_equiv as array_equiv
from atled.numpy.bitwise import bitwise_and as bitwise_and
from atled.numpy.bitwise import bitwise_count as bitwise_count
from atled.numpy.bitwise import bitwise_invert as bitwise_invert
from atled.numpy.bitwise import bitwise_left_shift as bitwise_left_shift
from atled.numpy.bitwise import bitwise_not as bitwise_not
from atled.numpy.bitwise import bitwise_or as bitwise_or
from atled.numpy.bitwise import bitwise_right_shift as bitwise_right_shift
from atled.numpy.bitwise import bitwise_xor as bitwise_xor
from atled.numpy.bitwise import invert as invert
from atled.numpy.bitwise import left_shift as left_shift
from atled.numpy.bitwise import packbits as packbits
from atled.numpy.bitwise import right_shift as right_shift
from atled.numpy.bitwise import unpackbits as unpackbits
from atled.numpy.concatenation import append as append
from atled.numpy.concatenation import block as block
from atled.numpy.concatenation import column_stack as column_stack
from atled.numpy.concatenation import concat as concat
from atled.numpy.concatenation import concatenate as concatenate
from atled.numpy.concatenation import dstack as dstack
from atled.numpy.concatenation import hstack as hstack
from atled.numpy.concatenation import stack as stack
from atled.numpy.concatenation import vstack as vstack
from atled.numpy.constants import ComplexWarning as ComplexWarning
from atled.numpy.constants import dtype as dtype
from atled.numpy.constants import e as e
from atled.numpy.constants import euler_gamma as euler_gamma
from atled.numpy.constants import inf as inf
from atled.numpy.constants import nan as nan
from atled.numpy.constants import newaxis as newaxis
from atled.numpy.constants import pi as pi
from atled.numpy.contractions import cross as cross
from atled.numpy.contractions import diag as diag
from atled.numpy.contractions import diagflat as diagflat
from atled.numpy.contractions import diagonal as diagonal
from atled.numpy.contractions import dot as dot
from atled.numpy.contractions import einsum as einsum
from atled.numpy.contractions import einsum_path as einsum_path
from atled.numpy.contractions import inner as inner
from atled.numpy.contractions import kron as kron
from atled.numpy.contractions import matmul as matmul
from atled.numpy.contractions import matvec as matvec
from atled.numpy.contractions import outer as outer
from atled.numpy.contractions import tensordot as tensordot
from atled.numpy.contractions import trace as trace
from atled.numpy.contractions import vdot as vdot
from atled.numpy.contractions import vecdot as vecdot
from atled.numpy.contractions import vecmat as vecmat
from atled.numpy.convolutions import convolve as convolve
from atled.numpy.convolutions import correlate as correlate
from atled.numpy.creation import array as array
from atled.numpy.creation import asarray as asarray
from atled.numpy.creation import astype as astype
from atled.numpy.creation import copy as copy
from atled.numpy.creation import empty as empty
from atled.numpy.creation import empty_like as empty_like
from atled.numpy.creation import eye as eye
from atled.numpy.creation import from_dlpack as from_dlpack
from atled.numpy.creation import frombuffer as frombuffer
from atled.numpy.creation import fromfile as fromfile
from atled.numpy.creation import fromiter as fromiter
from atled.numpy.creation import fromstring as fromstring
from atled.numpy.creation import full as full
from atled.numpy.creation import full_like as full_like
from atled.numpy.creation import identity as identity
from atled.numpy.creation import ones as ones
from atled.numpy.creation import ones_like as ones_like
from atled.numpy.creation import zeros as zeros
from atled.numpy.creation import zeros_like as zeros_like
from atled.numpy.cumulative import cumprod as cumprod
from atled.numpy.cumulative import cumsum as cumsum
from atled.numpy.cumulative import cumulative_prod as cumulative_prod
from atled.numpy.cumulative import cumulative_sum as cumulative_sum
from atled.numpy.cumulative import nancumprod as nancumprod
from atled.numpy.cumulative import nancumsum as nancumsum
from atled.numpy.differences import diff as diff
from atled.numpy.differences import ediff1d as ediff1d
from atled.numpy.differences import gradient as gradient
from atled.numpy.differences import trapezoid as trapezoid
from atled.numpy.differences import unwrap as unwrap
from atled.numpy.elementwise import abs as abs
from atled.numpy.elementwise import absolute as absolute
from atled.numpy.elementwise import acos as acos
from atled.numpy.elementwise import acosh as acosh
from atled.numpy.elementwise import add as add
from atled.numpy.elementwise import angle as angle
from atled.numpy.elementwise import arccos as arccos
from atled.numpy.elementwise import arccosh as arccosh
from atled.numpy.elementwise import arcsin as arcsin
from atled.numpy.elementwise import arcsinh as arcsinh
from atled.numpy.elementwise import arctan as arctan
from atled.numpy.elementwise import arctan2 as arctan2
from atled.numpy.elementwise import arctanh as arctanh
from atled.numpy.elementwise import asin as asin
from atled.numpy.elementwise import asinh as asinh
from atled.numpy.elementwise import atan as atan
from atled.numpy.elementwise import atan2 as atan2
from atled.numpy.elementwise import atanh as atanh
from atled.numpy.elementwise import cbrt as cbrt
from atled.numpy.elementwise import clip as clip
from atled.numpy.elementwise import conj as conj
from atled.numpy.elementwise import conjugate as conjugate
from atled.numpy.elementwise import cos as cos
from atled.numpy.elementwise import cosh as cosh
from atled.numpy.elementwise import deg2rad as deg2rad
from atled.numpy.elementwise import degrees as degrees
from atled.numpy.elementwise import divide as divide
from atled.numpy.elementwise import exp as exp
from atled.numpy.elementwise import exp2 as exp2
from atled.numpy.elementwise import expm1 as expm1
from atled.numpy.elementwise import fabs as fabs
from atled.numpy.elementwise import fmax as fmax
from atled.numpy.elementwise import fmin as fmin
from atled.numpy.elementwise import heaviside as heaviside
from atled.numpy.elementwise import i0 as i0
from atled.numpy.elementwise import imag as imag
from atled.numpy.elementwise import isclose as isclose
from atled.numpy.elementwise import log as log
from atled.numpy.elementwise import log10 as log10
from atled.numpy.elementwise import log1p as log1p
from atled.numpy.elementwise import log2 as log2
from atled.numpy.elementwise import logaddexp as logaddexp
from atled.numpy.elementwise import logaddexp2 as logaddexp2
from atled.numpy.elementwise import maximum as maximum
from atled.numpy.elementwise import minimum as minimum
from atled.numpy.elementwise import multiply as multiply
from atled.numpy.elementwise import negative as negative
from atled.numpy.elementwise import nextafter as nextafter
from atled.numpy.elementwise import positive as positive
from atled.numpy.elementwise import rad2deg as rad2deg
from atled.numpy.elementwise import radians as radians
from atled.numpy.elementwise import real as real
from atled.numpy.elementwise import reciprocal as reciprocal
from atled.numpy.elementwise import sign as sign
from atled.numpy.elementwise import sin as sin
from atled.numpy.elementwise import sinc as sinc
from atled.numpy.elementwise import sinh as sinh
from atled.numpy.elementwise import sqrt as sqrt
from atled.numpy.elementwise import square as square
from atled.numpy.elementwise import subtract as subtract
from atled.numpy.elementwise import tan as tan
from atled.numpy.elementwise import tanh as tanh
from atled.numpy.elementwise import true_divide as true_divide
from atled.numpy.histograms import histogram as histogram
from atled.numpy.histograms import histogram2d as histogram2d
from atled.numpy.histograms import histogram_bin_edges as histogram_bin_edges
from atled.numpy.histograms import histogramdd as histogramdd
from atled.numpy.index_grids import c_ as c_
from atled.numpy.index_grids import fromfunction as fromfunction
from atled.numpy.index_grids import index_exp as index_exp
from atled.numpy.index_grids import indices as indices
from atled.numpy.index_grids import ix_ as ix_
from atled.numpy.index_grids import meshgrid as meshgrid
from atled.numpy.index_grids import mgrid as mgrid
from atled.numpy.index_grids import ogrid as ogrid
from atled.numpy.index_grids import r_ as r_
from atled.numpy.index_grids import s_ as s_
from atled.numpy.insert_delete import delete as delete
from atled.numpy.insert_delete import fill_diagonal as fill_diagonal
from atled.numpy.insert_delete import insert as insert
from atled.numpy.insert_delete import place as place
from atled.numpy.insert_delete import put as put
from atled.numpy.insert_delete import put_along_axis as put_along_axis
from atled.numpy.insert_delete import resize as resize
from atled.numpy.inspection import array_repr as array_repr
from atled.numpy.inspection import array_str as array_str
from atled.numpy.inspection import can_cast as can_cast
from atled.numpy.inspection import get_printoptions as get_printoptions
from atled.numpy.inspection import iscomplex as iscomplex
from atled.numpy.inspection import iscomplexobj as iscomplexobj
from atled.numpy.inspection import isdtype as isdtype
from atled.numpy.inspection import isreal as isreal
from atled.numpy.inspection import isrealobj as isrealobj
from atled.numpy.inspection import isscalar as isscalar
from atled.numpy.inspection import iterable as iterable
from atled.numpy.inspection import load as load
from atled.numpy.inspection import ndim as ndim
from atled.numpy.inspection import printoptions as printoptions
from atled.numpy.inspection import promote_types as promote_types
from atled.numpy.inspection import result_type as result_type
from atled.numpy.inspection import save as save
from atled.numpy.inspection import savez as savez
from atled.numpy.inspection import set_printoptions as set_printoptions
from atled.numpy.inspection import shape as shape
from atled.numpy.inspection import size as size
from atled.numpy.interpolation import interp as interp
from atled.numpy.logic import equal as equal
from atled.numpy.logic import greater as greater
from atled.numpy.logic import greater_equal as greater_equal
from atled.numpy.logic import less as less
from atled.numpy.logic import less_equal as less_equal
from atled.numpy.logic import logical_and as logical_and
from atled.numpy.logic import logical_not as logical_not
from atled.numpy.logic import logical_or as logical_or
from atled.numpy.logic import logical_xor as logical_xor
from atled.numpy.logic import not_equal as not_equal
from atled.numpy.nan_reductions import nanargmax as nanargmax
from atled.numpy.nan_reductions import nanargmin as nanargmin
from atled.numpy.nan_reductions import nanmax as nanmax
from atled.numpy.nan_reductions import nanmean as nanmean
from atled.numpy.nan_reductions import nanmin as nanmin
from atled.numpy.nan_reductions import nanprod as nanprod
from atled.numpy.nan_reductions import nanstd as nanstd
from atled.numpy.nan_reductions import nansum as nansum
from atled.numpy.nan_reductions import nanvar as nanvar
from atled.numpy.padding import pad as pad
from atled.numpy.polynomial import poly as poly
from atled.numpy.polynomial import polyadd as polyadd
from atled.numpy.polynomial import polyder as polyder
from atled.numpy.polynomial import polydiv as polydiv
from atled.numpy.polynomial import polyfit as polyfit
from atled.numpy.polynomial import polyint as polyint
from atled.numpy.polynomial import polymul as polymul
from atled.numpy.polynomial import polysub as polysub
from atled.numpy.polynomial import polyval as polyval
from atled.numpy.polynomial import roots as roots
from atled.numpy.polynomial import vander as vander
from atled.numpy.promotion import broadcast_shapes as broadcast_shapes
from atled.numpy.ranges import arange as arange
from atled.numpy.ranges import geomspace as geomspace
from atled.numpy.ranges import linspace as linspace
from atled.numpy.ranges import logspace as logspace
from atled.numpy.reductions import all as all
from atled.numpy.reductions import amax as amax
from atled.numpy.reductions import amin as amin
from atled.numpy.reductions import any as any
from atled.numpy.reductions import argmax as argmax
from atled.numpy.reductions import argmin as argmin
from atled.numpy.reductions import average as average
from atled.numpy.reductions import count_nonzero as count_nonzero
from atled.numpy.reductions import max as max
from atled.numpy.reductions import mean as mean
from atled.numpy.reductions import min as min
from atled.numpy.reductions import prod as prod
from atled.numpy.reductions import ptp as ptp
from atled.numpy.reductions import std as std
from atled.numpy.reductions import sum as sum
from atled.numpy.reductions import var as var
from atled.numpy.repetition import repeat as repeat
from atled.numpy.repetition import tile as tile
from atled.numpy.rounding import around as around
from atled.numpy.rounding import ceil as ceil
from atled.numpy.rounding import fix as fix
from atled.numpy.rounding import floor as floor
from atled.numpy.rounding import rint as rint
from atled.numpy.rounding import round as round
from atled.numpy.rounding import trunc as trunc
from atled.numpy.scalar_types import bfloat16 as bfloat16
from atled.numpy.scalar_types import bool as bool
from atled.numpy.scalar_types import bool_ as bool_
from atled.numpy.scalar_types import byte as byte
from atled.numpy.scalar_types import cdouble as cdouble
from atled.numpy.scalar_types import character as character
from atled.numpy.scalar_types import complex128 as complex128
from atled.numpy.scalar_types import complex64 as complex64
from atled.numpy.scalar_types import complex_ as complex_
from atled.numpy.scalar_types import complexfloating as complexfloating
from atled.numpy.scalar_types import csingle as csingle
from atled.numpy.scalar_types import double as double
from atled.numpy.scalar_types import flexible as flexible
from atled.numpy.scalar_types import float16 as float16
from atled.numpy.scalar_types import float32 as float32
from atled.numpy.scalar_types import float4_e2m1fn as float4_e2m1fn
from atled.numpy.scalar_types import float64 as float64
from atled.numpy.scalar_types import float8_e3m4 as float8_e3m4
from atled.numpy.scalar_types import float8_e4m3 as float8_e4m3
from atled.numpy.scalar_types import float8_e4m3b11fnuz as float8_e4m3b11fnuz
from atled.numpy.scalar_types import float8_e4m3fn as float8_e4m3fn
from atled.numpy.scalar_types import float8_e4m3fnuz as float8_e4m3fnuz
from atled.numpy.scalar_types import float8_e5m2 as float8_e5m2
from atled.numpy.scalar_types import float8_e5m2fnuz as float8_e5m2fnuz
from atled.numpy.scalar_types import float8_e8m0fnu as float8_e8m0fnu
from atled.numpy.scalar_types import float_ as float_
from atled.numpy.scalar_types import floating as floating
from atled.numpy.scalar_types import generic as generic
from atled.numpy.scalar_types import half as half
from atled.numpy.scalar_types import inexact as inexact
from atled.numpy.scalar_types import int16 as int16
from atled.numpy.scalar_types import int2 as int2
from atled.numpy.scalar_types import int32 as int32
from atled.numpy.scalar_types import int4 as int4
from atled.numpy.scalar_types import int64 as int64
from atled.numpy.scalar_types import int8 as int8
from atled.numpy.scalar_types import int_ as int_
from atled.numpy.scalar_types import intc as intc
from atled.numpy.scalar_types import integer as integer
from atled.numpy.scalar_types import longlong as longlong
from atled.numpy.scalar_types import number as number
from atled.numpy.scalar_types import object_ as object_
from atled.numpy.scalar_types import short as short
from atled.numpy.scalar_types import signedinteger as signedinteger
from atled.numpy.scalar_types import single as single
from atled.numpy.scalar_types import ubyte as ubyte
from atled.numpy.scalar_types import uint as uint
from atled.numpy.scalar_types import uint16 as uint16
from atled.numpy.scalar_types import uint2 as uint2
from atled.numpy.scalar_types import uint32 as uint32
from atled.numpy.scalar_types import uint4 as uint4
from atled.numpy.scalar_types import uint64 as uint64
from atled.numpy.scalar_types import uint8 as uint8
from atled.numpy.scalar_types import uintc as uintc
from atled.numpy.scalar_types import ulonglong as ulonglong
from atled.numpy.scalar_types import unsignedinteger as unsignedinteger
from atled.numpy.scalar_types import ushort as ushort
from atled.numpy.searching import argwhere as argwhere
from atled.numpy.searching import digitize as digitize
from atled.numpy.searching import flatnonzero as flatnonzero
from atled.numpy.searching import nonzero as nonzero
from atled.numpy.searching import ravel_multi_index as ravel_multi_index
from atled.numpy.searching import searchsorted as searchsorted
from atled.numpy.searching import trim_zeros as trim_zeros
from atled.numpy.searching import unravel_index as unravel_index
from atled.numpy.selection import choose as choose
from atled.numpy.selection import compress as compress
from atled.numpy.selection import extract as extract
from atled.numpy.selection import piecewise as piecewise
from atled.numpy.selection import select as select
from atled.numpy.selection import where as where
from atled.numpy.set_operations import bincount as bincount
from atled.numpy.set_operations import intersect1d as intersect1d
from atled.numpy.set_operations import isin as isin
from atled.numpy.set_operations import setdiff1d as setdiff1d
from atled.numpy.set_operations import setxor1d as setxor1d
from atled.numpy.set_operations import union1d as union1d
from atled.numpy.set_operations import unique as unique
from atled.numpy.set_operations import unique_all as unique_all
from atled.numpy.set_operations import unique_counts as unique_counts
from atled.numpy.set_operations import unique_inverse as unique_inverse
from atled.numpy.set_operations import unique_values as unique_values
from atled.numpy.shapes import atleast_1d as atleast_1d
from atled.numpy.shapes import atleast_2d as atleast_2d
from atled.numpy.shapes import atleast_3d as atleast_3d
from atled.numpy.shapes import broadcast_arrays as broadcast_arrays
from atled.numpy.shapes import broadcast_to as broadcast_to
from atled.numpy.shapes import expand_dims as expand_dims
from atled.numpy.shapes import flip as flip
from atled.numpy.shapes import fliplr as fliplr
from atled.numpy.shapes import flipud as flipud
from atled.numpy.shapes import matrix_transpose as matrix_transpose
from atled.numpy.shapes import moveaxis as moveaxis
from atled.numpy.shapes import permute_dims as permute_dims
from atled.numpy.shapes import ravel as ravel
from atled.numpy.shapes import reshape as reshape
from atled.numpy.shapes import roll as roll
from atled.numpy.shapes import rollaxis as rollaxis
from atled.numpy.shapes import rot90 as rot90
from atled.numpy.shapes import squeeze as squeeze
from atled.numpy.shapes import swapaxes as swapaxes
from atled.numpy.shapes import transpose as transpose
from atled.numpy.sorting import argpartition as argpartition
from atled.numpy.sorting import argsort as argsort
from atled.numpy.sorting import lexsort as lexsort
from atled.numpy.sorting import partition as partition
from atled.numpy.sorting import sort as sort
from atled.numpy.sorting import sort_complex as sort_complex
from atled.numpy.special_values import copysign as copysign
from atled.numpy.special_values import isfinite as isfinite
from atled.numpy.special_values import isinf as isinf
from atled.numpy.special_values import isnan as isnan
from atled.numpy.special_values import isneginf as isneginf
from atled.numpy.special_values import isposinf as isposinf
from atled.numpy.special_values import nan_to_num as nan_to_num
from atled.numpy.special_values import signbit as signbit
from atled.numpy.splitting import array_split as array_split
from atled.numpy.splitting import dsplit as dsplit
from atled.numpy.splitting import hsplit as hsplit
from atled.numpy.splitting import split as split
from atled.numpy.splitting import unstack as unstack
from atled.numpy.splitting import vsplit as vsplit
from atled.numpy.statistics import corrcoef as corrcoef
from atled.numpy.statistics import cov as cov
from atled.numpy.statistics import median as median
from atled.numpy.statistics import nanmedian as nanmedian
from atled.numpy.statistics import nanpercentile as nanpercentile
from atled.numpy.statistics import nanquantile as nanquantile
from atled.numpy.statistics import percentile as percentile
from atled.numpy.statistics import quantile as quantile
from atled.numpy.take_along import take as take
from atled.numpy.take_along import take_along_axis as take_along_axis
from atled.numpy.triangular import diag_indices as diag_indices
from atled.numpy.triangular import diag_indices_from as diag_indices_from
from atled.numpy.triangular import mask_indices as mask_indices
from atled.numpy.triangular import tri as tri
from atled.numpy.triangular import tril as tril
from atled.numpy.triangular import tril_indices as tril_indices
from atled.numpy.triangular import tril_indices_from as tril_indices_from
from atled.numpy.triangular import triu as triu
from atled.numpy.triangular import triu_indices as triu_indices
from atled.numpy.triangular import triu_indices_from as triu_indices_from
from atled.numpy.ufuncs import frompyfunc as frompyfunc
from atled.numpy.ufuncs import ufunc as ufunc
from atled.numpy.vectorization import apply_along_axis as apply_along_axis
from atled.numpy.vectorization import apply_over_axes as apply_over_axes
from atled.numpy.vectorization import vectorize as vectorize
from atled.numpy.window_functions import bartlett as bartlett
from atled.numpy.window_functions import blackman as blackman
from atled.numpy.window_functions import hamming as hamming
from atled.numpy.window_functions import hanning as hanning
from atled.numpy.window_functions import kaiser as kaiser

__all__ = [
    "ComplexWarning",
    "__array_api_version__",
    "__array_namespace_info__",
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "all",
    "allclose",
    "amax",
    "amin",
    "angle",
    "any",
    "append",
    "apply_along_axis",
    "apply_over_axes",
    "arange",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmax",
    "argmin",
    "argpartition",
    "argsort",
    "argwhere",
    "around",
    "array",
    "array_equal",
    "array_equiv",
    "array_repr",
    "array_split",
    "array_str",
    "asarray",
    "asin",
    "asinh",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "average",
    "bartlett",
    "bfloat16",
    "bincount",
    "bitwise_and",
    "bitwise_count",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "blackman",
    "block",
    "bool",
    "bool_",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "byte",
    "c_",
    "can_cast",
    "cbrt",
    "cdouble",
    "ceil",
    "character",
    "choose",
    "clip",
    "column_stack",
    "complex128",
    "complex64",
    "complex_",
    "complexfloating",
    "compress",
    "concat",
    "concatenate",
    "conj",
    "conjugate",
    "convolve",
    "copy",
    "copysign",
    "corrcoef",
    "correlate",
    "cos",
    "cosh",
    "count_nonzero",
    "cov",
    "cross",
    "csingle",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "deg2rad",
    "degrees",
    "delete",
    "diag",
    "diag_indices",
    "diag_indices_from",
    "diagflat",
    "diagonal",
    "diff",
    "digitize",
    "divide",
    "divmod",
    "dot",
    "double",
    "dsplit",
    "dstack",
    "dtype",
    "e",
    "ediff1d",
    "einsum",
    "einsum_path",
    "empty",
    "empty_like",
    "equal",
    "euler_gamma",
    "exp",
    "exp2",
    "expand_dims",
    "expm1",
    "extract",
    "eye",
    "fabs",
    "fft",
    "fill_diagonal",
    "finfo",
    "fix",
    "flatnonzero",
    "flexible",
    "flip",
    "fliplr",
    "flipud",
    "float16",
    "float32",
    "float4_e2m1fn",
    "float64",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float_",
    "float_power",
    "floating",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "frexp",
    "from_dlpack",
    "frombuffer",
    "fromfile",
    "fromfunction",
    "fromiter",
    "frompyfunc",
    "fromstring",
    "full",
    "full_like",
    "gcd",
    "generic",
    "geomspace",
    "get_printoptions",
    "gradient",
    "greater",
    "greater_equal",
    "half",
    "hamming",
    "hanning",
    "heaviside",
    "histogram",
    "histogram2d",
    "histogram_bin_edges",
    "histogramdd",
    "hsplit",
    "hstack",
    "hypot",
    "i0",
    "identity",
    "iinfo",
    "imag",
    "index_exp",
    "indices",
    "inexact",
    "inf",
    "inner",
    "insert",
    "int16",
    "int2",
    "int32",
    "int4",
    "int64",
    "int8",
    "int_",
    "intc",
    "integer",
    "interp",
    "intersect1d",
    "invert",
    "isclose",
    "iscomplex",
    "iscomplexobj",
    "isdtype",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "isrealobj",
    "isscalar",
    "issubdtype",
    "iterable",
    "ix_",
    "kaiser",
    "kron",
    "lcm",
    "ldexp",
    "left_shift",
    "less",
    "less_equal",
    "lexsort",
    "linalg",
    "linspace",
    "load",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logspace",
    "longlong",
    "mask_indices",
    "matmul",
    "matrix_transpose",
    "matvec",
    "max",
    "maximum",
    "mean",
    "median",
    "meshgrid",
    "mgrid",
    "min",
    "minimum",
    "mod",
    "modf",
    "moveaxis",
    "multiply",
    "nan",
    "nan_to_num",
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmedian",
    "nanmin",
    "nanpercentile",
    "nanprod",
    "nanquantile",
    "nanstd",
    "nansum",
    "nanvar",
    "ndarray",
    "ndim",
    "negative",
    "newaxis",
    "nextafter",
    "nonzero",
    "not_equal",
    "number",
    "object_",
    "ogrid",
    "ones",
    "ones_like",
    "outer",
    "packbits",
    "pad",
    "partition",
    "percentile",
    "permute_dims",
    "pi",
    "piecewise",
    "place",
    "poly",
    "polyadd",
    "polyder",
    "polydiv",
    "polyfit",
    "polyint",
    "polymul",
    "polysub",
    "polyval",
    "positive",
    "pow",
    "power",
    "printoptions",
    "prod",
    "promote_types",
    "ptp",
    "put",
    "put_along_axis",
    "quantile",
    "r_",
    "rad2deg",
    "radians",
    "ravel",
    "ravel_multi_index",
    "real",
    "reciprocal",
    "remainder",
    "repeat",
    "reshape",
    "resize",
    "result_type",
    "right_shift",
    "rint",
    "roll",
    "rollaxis",
    "roots",
    "rot90",
    "round",
    "s_",
    "save",
    "savez",
    "searchsorted",
    "select",
    "set_printoptions",
    "setdiff1d",
    "setxor1d",
    "shape",
    "short",
    "sign",
    "signbit",
    "signedinteger",
    "sin",
    "sinc",
    "single",
    "sinh",
    "size",
    "sort",
    "sort_complex",
    "spacing",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "subtract",
    "sum",
    "swapaxes",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "trace",
    "transpose",
    "trapezoid",
    "tri",
    "tril",
    "tril_indices",
    "tril_indices_from",
    "trim_zeros",
    "triu",
    "triu_indices",
    "triu_indices_from",
    "true_divide",
    "trunc",
    "ubyte",
    "ufunc",
    "uint",
    "uint16",
    "uint2",
    "uint32",
    "uint4",
    "uint64",
    "uint8",
    "uintc",
    "ulonglong",
    "union1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unpackbits",
    "unravel_index",
    "unsignedinteger",
    "unstack",
    "unwrap",
    "ushort",
    "vander",
    "var",
    "vdot",
    "vecdot",
    "vecmat",
    "vectorize",
    "vsplit",
    "vstack",
    "where",
    "zeros",
    "zeros_like",
]
