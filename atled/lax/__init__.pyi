# Written by scripts/stubs.
from atled.higher_order.composite import composite as composite
from atled.higher_order.cond import cond as cond
from atled.higher_order.cond import switch as switch
from atled.higher_order.implicit_diff import custom_linear_solve as custom_linear_solve
from atled.higher_order.implicit_diff import custom_root as custom_root
from atled.higher_order.platform_dependent import platform_dependent as platform_dependent
from atled.higher_order.scan import map as map
from atled.higher_order.scan import scan as scan
from atled.higher_order.while_loop import fori_loop as fori_loop
from atled.higher_order.while_loop import while_loop as while_loop
from atled.lax import linalg as linalg
from atled.lax.arithmetic import add as add
from atled.lax.arithmetic import atan2 as atan2
from atled.lax.arithmetic import bitwise_and as bitwise_and
from atled.lax.arithmetic import bitwise_or as bitwise_or
from atled.lax.arithmetic import bitwise_xor as bitwise_xor
from atled.lax.arithmetic import clamp as clamp
from atled.lax.arithmetic import complex as complex
from atled.lax.arithmetic import div as div
from atled.lax.arithmetic import eq as eq
from atled.lax.arithmetic import ge as ge
from atled.lax.arithmetic import gt as gt
from atled.lax.arithmetic import integer_pow as integer_pow
from atled.lax.arithmetic import le as le
from atled.lax.arithmetic import lt as lt
from atled.lax.arithmetic import max as max
from atled.lax.arithmetic import min as min
from atled.lax.arithmetic import mul as mul
from atled.lax.arithmetic import ne as ne
from atled.lax.arithmetic import nextafter as nextafter
from atled.lax.arithmetic import polygamma as polygamma
from atled.lax.arithmetic import pow as pow
from atled.lax.arithmetic import rem as rem
from atled.lax.arithmetic import select as select
from atled.lax.arithmetic import shift_left as shift_left
from atled.lax.arithmetic import shift_right_arithmetic as shift_right_arithmetic
from atled.lax.arithmetic import shift_right_logical as shift_right_logical
from atled.lax.arithmetic import sub as sub
from atled.lax.arithmetic import zeta as zeta
from atled.lax.arrays import approx_max_k as approx_max_k
from atled.lax.arrays import approx_min_k as approx_min_k
from atled.lax.arrays import broadcast_like as broadcast_like
from atled.lax.arrays import broadcast_to_rank as broadcast_to_rank
from atled.lax.arrays import dtype as dtype
from atled.lax.arrays import empty as empty
from atled.lax.arrays import mulhi as mulhi
from atled.lax.arrays import ragged_dot as ragged_dot
from atled.lax.arrays import stack as stack
from atled.lax.arrays import tile as tile
from atled.lax.arrays import unstack as unstack
from atled.lax.barriers import FftType as FftType
from atled.lax.barriers import RandomAlgorithm as RandomAlgorithm
from atled.lax.barriers import after_all as after_all
from atled.lax.barriers import create_token as create_token
from atled.lax.barriers import dce_sink as dce_sink
from atled.lax.barriers import fft as fft
from atled.lax.barriers import optimization_barrier as optimization_barrier
from atled.lax.barriers import rng_bit_generator as rng_bit_generator
from atled.lax.barriers import rng_uniform as rng_uniform
from atled.lax.barriers import shape_as_value as shape_as_value
from atled.lax.barriers import stage as stage
from atled.lax.collectives import all_gather as all_gather
from atled.lax.collectives import all_to_all as all_to_all
from atled.lax.collectives import axis_index as axis_index
from atled.lax.collectives import axis_size as axis_size
from atled.lax.collectives import pbroadcast as pbroadcast
from atled.lax.collectives import pcast as pcast
from atled.lax.collectives import pmax as pmax
from atled.lax.collectives import pmean as pmean
from atled.lax.collectives import pmin as pmin
from atled.lax.collectives import ppermute as ppermute
from atled.lax.collectives import pshuffle as pshuffle
from atled.lax.collectives import psum as psum
from atled.lax.collectives import psum_scatter as psum_scatter
from atled.lax.collectives import pswapaxes as pswapaxes
from atled.lax.collectives import pvary as pvary
from atled.lax.contraction import batch_matmul as batch_matmul
from atled.lax.contraction import dot as dot
from atled.lax.contraction import dot_general as dot_general
from atled.lax.conversion import RoundingMethod as RoundingMethod
from atled.lax.conversion import bitcast as bitcast
from atled.lax.conversion import bitcast_convert_type as bitcast_convert_type
from atled.lax.conversion import convert_element_type as convert_element_type
from atled.lax.conversion import reduce_precision as reduce_precision
from atled.lax.conversion import round as round
from atled.lax.conversion import select_n as select_n
from atled.lax.convolution import ConvDimensionNumbers as ConvDimensionNumbers
from atled.lax.convolution import ConvGeneralDilatedDimensionNumbers as ConvGeneralDilatedDimensionNumbers
from atled.lax.convolution import conv as conv
from atled.lax.convolution import conv_dimension_numbers as conv_dimension_numbers
from atled.lax.convolution import conv_general_dilated as conv_general_dilated
from atled.lax.convolution import conv_transpose as conv_transpose
from atled.lax.convolution import conv_with_general_padding as conv_with_general_padding
from atled.lax.custom_reductions import associative_scan as associative_scan
from atled.lax.custom_reductions import cumlogsumexp as cumlogsumexp
from atled.lax.custom_reductions import cummax as cummax
from atled.lax.custom_reductions import cummin as cummin
from atled.lax.custom_reductions import cumprod as cumprod
from atled.lax.custom_reductions import cumsum as cumsum
from atled.lax.custom_reductions import reduce as reduce
from atled.lax.custom_reductions import reduce_window as reduce_window
from atled.lax.elementwise import AccuracyMode as AccuracyMode
from atled.lax.elementwise import Tolerance as Tolerance
from atled.lax.elementwise import abs as abs
from atled.lax.elementwise import acos as acos
from atled.lax.elementwise import acosh as acosh
from atled.lax.elementwise import asin as asin
from atled.lax.elementwise import asinh as asinh
from atled.lax.elementwise import atan as atan
from atled.lax.elementwise import atanh as atanh
from atled.lax.elementwise import bessel_i0e as bessel_i0e
from atled.lax.elementwise import bessel_i1e as bessel_i1e
from atled.lax.elementwise import bitwise_not as bitwise_not
from atled.lax.elementwise import cbrt as cbrt
from atled.lax.elementwise import ceil as ceil
from atled.lax.elementwise import clz as clz
from atled.lax.elementwise import conj as conj
from atled.lax.elementwise import cos as cos
from atled.lax.elementwise import cosh as cosh
from atled.lax.elementwise import digamma as digamma
from atled.lax.elementwise import erf as erf
from atled.lax.elementwise import erf_inv as erf_inv
from atled.lax.elementwise import erfc as erfc
from atled.lax.elementwise import exp as exp
from atled.lax.elementwise import exp2 as exp2
from atled.lax.elementwise import expm1 as expm1
from atled.lax.elementwise import floor as floor
from atled.lax.elementwise import imag as imag
from atled.lax.elementwise import is_finite as is_finite
from atled.lax.elementwise import lgamma as lgamma
from atled.lax.elementwise import log as log
from atled.lax.elementwise import log1p as log1p
from atled.lax.elementwise import logistic as logistic
from atled.lax.elementwise import neg as neg
from atled.lax.elementwise import population_count as population_count
from atled.lax.elementwise import real as real
from atled.lax.elementwise import reciprocal as reciprocal
from atled.lax.elementwise import rsqrt as rsqrt
from atled.lax.elementwise import sign as sign
from atled.lax.elementwise import sin as sin
from atled.lax.elementwise import sinh as sinh
from atled.lax.elementwise import sqrt as sqrt
from atled.lax.elementwise import square as square
from atled.lax.elementwise import tan as tan
from atled.lax.elementwise import tanh as tanh
from atled.lax.gather_scatter import GatherDimensionNumbers as GatherDimensionNumbers
from atled.lax.gather_scatter import GatherScatterMode as GatherScatterMode
from atled.lax.gather_scatter import ScatterDimensionNumbers as ScatterDimensionNumbers
from atled.lax.gather_scatter import dynamic_index_in_dim as dynamic_index_in_dim
from atled.lax.gather_scatter import dynamic_slice as dynamic_slice
from atled.lax.gather_scatter import dynamic_slice_in_dim as dynamic_slice_in_dim
from atled.lax.gather_scatter import dynamic_update_index_in_dim as dynamic_update_index_in_dim
from atled.lax.gather_scatter import dynamic_update_slice as dynamic_update_slice
from atled.lax.gather_scatter import dynamic_update_slice_in_dim as dynamic_update_slice_in_dim
from atled.lax.gather_scatter import gather as gather
from atled.lax.gather_scatter import index_in_dim as index_in_dim
from atled.lax.gather_scatter import index_take as index_take
from atled.lax.gather_scatter import scatter as scatter
from atled.lax.gather_scatter import scatter_add as scatter_add
from atled.lax.gather_scatter import scatter_apply as scatter_apply
from atled.lax.gather_scatter import scatter_max as scatter_max
from atled.lax.gather_scatter import scatter_min as scatter_min
from atled.lax.gather_scatter import scatter_mul as scatter_mul
from atled.lax.gather_scatter import scatter_sub as scatter_sub
from atled.lax.gather_scatter import slice_in_dim as slice_in_dim
from atled.lax.incomplete_functions import betainc as betainc
from atled.lax.incomplete_functions import igamma as igamma
from atled.lax.incomplete_functions import igamma_grad_a as igamma_grad_a
from atled.lax.incomplete_functions import igammac as igammac
from atled.lax.incomplete_functions import random_gamma_grad as random_gamma_grad
from atled.lax.precision import DotAlgorithm as DotAlgorithm
from atled.lax.precision import DotAlgorithmPreset as DotAlgorithmPreset
from atled.lax.precision import DotDimensionNumbers as DotDimensionNumbers
from atled.lax.precision import Precision as Precision
from atled.lax.precision import PrecisionLike as PrecisionLike
from atled.lax.ragged_products import RaggedDotDimensionNumbers as RaggedDotDimensionNumbers
from atled.lax.ragged_products import ragged_dot_general as ragged_dot_general
from atled.lax.ragged_products import scaled_dot as scaled_dot
from atled.lax.reductions import argmax as argmax
from atled.lax.reductions import argmin as argmin
from atled.lax.reductions import reduce_and as reduce_and
from atled.lax.reductions import reduce_max as reduce_max
from atled.lax.reductions import reduce_min as reduce_min
from atled.lax.reductions import reduce_or as reduce_or
from atled.lax.reductions import reduce_prod as reduce_prod
from atled.lax.reductions import reduce_sum as reduce_sum
from atled.lax.reductions import reduce_xor as reduce_xor
from atled.lax.shape_ops import broadcast as broadcast
from atled.lax.shape_ops import broadcast_in_dim as broadcast_in_dim
from atled.lax.shape_ops import broadcast_shapes as broadcast_shapes
from atled.lax.shape_ops import broadcasted_iota as broadcasted_iota
from atled.lax.shape_ops import collapse as collapse
from atled.lax.shape_ops import concatenate as concatenate
from atled.lax.shape_ops import expand_dims as expand_dims
from atled.lax.shape_ops import full as full
from atled.lax.shape_ops import full_like as full_like
from atled.lax.shape_ops import iota as iota
from atled.lax.shape_ops import pad as pad
from atled.lax.shape_ops import reshape as reshape
from atled.lax.shape_ops import rev as rev
from atled.lax.shape_ops import slice as slice
from atled.lax.shape_ops import split as split
from atled.lax.shape_ops import squeeze as squeeze
from atled.lax.shape_ops import transpose as transpose
from atled.lax.shape_ops import zeros_like_array as zeros_like_array
from atled.lax.sorting import sort as sort
from atled.lax.sorting import sort_key_val as sort_key_val
from atled.lax.sorting import top_k as top_k
from atled.lax.window_shapes import conv_general_dilated_local as conv_general_dilated_local
from atled.lax.window_shapes import conv_general_dilated_patches as conv_general_dilated_patches
from atled.lax.window_shapes import conv_general_permutations as conv_general_permutations
from atled.lax.window_shapes import conv_general_shape_tuple as conv_general_shape_tuple
from atled.lax.window_shapes import conv_shape_tuple as conv_shape_tuple
from atled.lax.window_shapes import conv_transpose_shape_tuple as conv_transpose_shape_tuple
from atled.lax.window_shapes import padtype_to_pads as padtype_to_pads
from atled.lax.window_shapes import reduce_window_shape_tuple as reduce_window_shape_tuple
from atled.ops.placement import with_sharding_constraint as with_sharding_constraint
from atled.transforms.grad import stop_gradient as stop_gradient

__all__ = [
    "AccuracyMode",
    "ConvDimensionNumbers",
    "ConvGeneralDilatedDimensionNumbers",
    "DotAlgorithm",
    "DotAlgorithmPreset",
    "DotDimensionNumbers",
    "FftType",
    "GatherDimensionNumbers",
    "GatherScatterMode",
    "Precision",
    "PrecisionLike",
    "RaggedDotDimensionNumbers",
    "RandomAlgorithm",
    "RoundingMethod",
    "ScatterDimensionNumbers",
    "Tolerance",
    "abs",
    "acos",
    "acosh",
    "add",
    "after_all",
    "all_gather",
    "all_to_all",
    "approx_max_k",
    "approx_min_k",
    "argmax",
    "argmin",
    "asin",
    "asinh",
    "associative_scan",
    "atan",
    "atan2",
    "atanh",
    "axis_index",
    "axis_size",
    "batch_matmul",
    "bessel_i0e",
    "bessel_i1e",
    "betainc",
    "bitcast",
    "bitcast_convert_type",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "broadcast",
    "broadcast_in_dim",
    "broadcast_like",
    "broadcast_shapes",
    "broadcast_to_rank",
    "broadcasted_iota",
    "cbrt",
    "ceil",
    "clamp",
    "clz",
    "collapse",
    "complex",
    "composite",
    "concatenate",
    "cond",
    "conj",
    "conv",
    "conv_dimension_numbers",
    "conv_general_dilated",
    "conv_general_dilated_local",
    "conv_general_dilated_patches",
    "conv_general_permutations",
    "conv_general_shape_tuple",
    "conv_shape_tuple",
    "conv_transpose",
    "conv_transpose_shape_tuple",
    "conv_with_general_padding",
    "convert_element_type",
    "cos",
    "cosh",
    "create_token",
    "cumlogsumexp",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "custom_linear_solve",
    "custom_root",
    "dce_sink",
    "digamma",
    "div",
    "dot",
    "dot_general",
    "dtype",
    "dynamic_index_in_dim",
    "dynamic_slice",
    "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim",
    "dynamic_update_slice",
    "dynamic_update_slice_in_dim",
    "empty",
    "eq",
    "erf",
    "erf_inv",
    "erfc",
    "exp",
    "exp2",
    "expand_dims",
    "expm1",
    "fft",
    "floor",
    "fori_loop",
    "full",
    "full_like",
    "gather",
    "ge",
    "gt",
    "igamma",
    "igamma_grad_a",
    "igammac",
    "imag",
    "index_in_dim",
    "index_take",
    "integer_pow",
    "iota",
    "is_finite",
    "le",
    "lgamma",
    "linalg",
    "log",
    "log1p",
    "logistic",
    "lt",
    "map",
    "max",
    "min",
    "mul",
    "mulhi",
    "ne",
    "neg",
    "nextafter",
    "optimization_barrier",
    "pad",
    "padtype_to_pads",
    "pbroadcast",
    "pcast",
    "platform_dependent",
    "pmax",
    "pmean",
    "pmin",
    "polygamma",
    "population_count",
    "pow",
    "ppermute",
    "pshuffle",
    "psum",
    "psum_scatter",
    "pswapaxes",
    "pvary",
    "ragged_dot",
    "ragged_dot_general",
    "random_gamma_grad",
    "real",
    "reciprocal",
    "reduce",
    "reduce_and",
    "reduce_max",
    "reduce_min",
    "reduce_or",
    "reduce_precision",
    "reduce_prod",
    "reduce_sum",
    "reduce_window",
    "reduce_window_shape_tuple",
    "reduce_xor",
    "rem",
    "reshape",
    "rev",
    "rng_bit_generator",
    "rng_uniform",
    "round",
    "rsqrt",
    "scaled_dot",
    "scan",
    "scatter",
    "scatter_add",
    "scatter_apply",
    "scatter_max",
    "scatter_min",
    "scatter_mul",
    "scatter_sub",
    "select",
    "select_n",
    "shape_as_value",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "sign",
    "sin",
    "sinh",
    "slice",
    "slice_in_dim",
    "sort",
    "sort_key_val",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "stage",
    "stop_gradient",
    "sub",
    "switch",
    "tan",
    "tanh",
    "tile",
    "top_k",
    "transpose",
    "unstack",
    "while_loop",
    "with_sharding_constraint",
    "zeros_like_array",
    "zeta",
]
