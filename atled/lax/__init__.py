"""The ops as functions with the names and arguments of JAX's `lax`: strict about shapes and dtypes, close to XLA."""

from atled.core import lazy_imports

_AT_ONCE = {
    "arithmetic": """
        add atan2 bitwise_and bitwise_or bitwise_xor clamp complex div eq ge gt integer_pow le lt max min mul ne
        nextafter polygamma pow rem select shift_left shift_right_arithmetic shift_right_logical sub zeta""",
    "arrays": """
        approx_max_k approx_min_k broadcast_like broadcast_to_rank dtype empty mulhi ragged_dot stack tile
        unstack""",
    "atled.higher_order.cond": "cond switch",
    "atled.higher_order.composite": "composite",
    "atled.higher_order.implicit_diff": "custom_linear_solve custom_root",
    "atled.higher_order.while_loop": "fori_loop while_loop",
    "atled.higher_order.platform_dependent": "platform_dependent",
    "atled.higher_order.scan": "map scan",
    "atled.ops.placement": "with_sharding_constraint",
    "atled.transforms.grad": "stop_gradient",
    "collectives": """
        all_gather all_to_all axis_index axis_size pbroadcast pcast pmax pmean pmin ppermute pshuffle psum
        psum_scatter pswapaxes pvary""",
    "contraction": "batch_matmul dot dot_general",
    "conversion": "bitcast bitcast_convert_type convert_element_type reduce_precision round RoundingMethod select_n",
    "convolution": """
        conv conv_dimension_numbers conv_general_dilated conv_transpose conv_with_general_padding
        ConvDimensionNumbers ConvGeneralDilatedDimensionNumbers""",
    "elementwise": """
        abs AccuracyMode acos acosh asin asinh atan atanh bessel_i0e bessel_i1e bitwise_not cbrt ceil clz conj
        cos cosh digamma erf erf_inv erfc exp exp2 expm1 floor imag is_finite lgamma log log1p logistic neg
        population_count real reciprocal rsqrt sign sin sinh sqrt square tan tanh Tolerance""",
    "incomplete_functions": "betainc igamma igamma_grad_a igammac random_gamma_grad",
    "precision": "DotAlgorithm DotAlgorithmPreset DotDimensionNumbers Precision PrecisionLike",
    "ragged_products": "ragged_dot_general RaggedDotDimensionNumbers scaled_dot",
    "custom_reductions": "associative_scan cumlogsumexp cummax cummin cumprod cumsum reduce reduce_window",
    "reductions": "argmax argmin reduce_and reduce_max reduce_min reduce_or reduce_prod reduce_sum reduce_xor",
    "shape_ops": """
        broadcast broadcast_in_dim broadcast_shapes broadcasted_iota collapse concatenate expand_dims full
        full_like iota pad reshape rev slice split squeeze transpose zeros_like_array""",
    "gather_scatter": """
        dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim dynamic_update_index_in_dim dynamic_update_slice
        dynamic_update_slice_in_dim gather GatherDimensionNumbers GatherScatterMode index_in_dim index_take
        scatter scatter_add scatter_apply scatter_max scatter_min scatter_mul scatter_sub
        ScatterDimensionNumbers slice_in_dim""",
    "sorting": "sort sort_key_val top_k",
    "barriers": """
        after_all create_token dce_sink fft FftType optimization_barrier RandomAlgorithm rng_bit_generator
        rng_uniform shape_as_value stage""",
    "window_shapes": """
        conv_general_dilated_local conv_general_dilated_patches conv_general_permutations
        conv_general_shape_tuple conv_shape_tuple conv_transpose_shape_tuple padtype_to_pads
        reduce_window_shape_tuple""",
}
__getattr__, __dir__, __all__ = lazy_imports.public(__name__, {}, "linalg", _AT_ONCE)
