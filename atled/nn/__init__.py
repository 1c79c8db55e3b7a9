"""Neural networks: modules and layers; activations, the softmax family, attention, and initializers."""

from atled.core import lazy_imports

_AT_ONCE = {
    "atled.numpy.elementwise": "tanh",
    "attention": "dot_product_attention",
    "block_scaled": "get_scaled_dot_general_config scaled_dot_general scaled_matmul",
    "activations": """
        celu elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu log1mexp log_sigmoid
        log_softmax logmeanexp logsumexp mish one_hot relu relu6 selu sigmoid silu soft_sign softmax softplus
        sparse_plus sparse_sigmoid squareplus standardize swish""",
}
_NAMES = {
    "intermediates": "capture",
    "containers": "Lambda Residual Sequential",
    "convolutions": "Conv Conv1d Conv2d Conv3d ConvTranspose ConvTranspose1d ConvTranspose2d ConvTranspose3d",
    "dropout_layers": "AlphaDropout Dropout SpatialDropout StochasticDepth",
    "mixture_of_experts": "MixtureOfExperts",
    "input_features": "FourierFeatures PatchEmbedding",
    "graph_layers": "GraphAttention GraphConv GraphNetwork",
    "key_stream": "Keys",
    "variable_kinds": "Buffer Frozen Kind Param",
    "linear_layers": "Dense Embedding Linear",
    "chunked_attention": "memory_efficient_attention",
    "lora": "LoRA",
    "module": "Module",
    "decoding_cache": "Cache init_cache Positions seek take_rows",
    "multi_head_attention": "MultiHeadAttention",
    "normalization": "BatchNorm GroupNorm InstanceNorm LayerNorm RMSNorm",
    "pooling": """
        AdaptiveAvgPool AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool AdaptiveMaxPool1d
        AdaptiveMaxPool2d AdaptiveMaxPool3d avg_pool AvgPool AvgPool1d AvgPool2d AvgPool3d GlobalAvgPool GlobalMaxPool
        max_pool MaxPool MaxPool1d MaxPool2d MaxPool3d""",
    "position_encodings": "ALiBi RelativePositions RoPE RoPEScaling SinusoidalPositions",
    "recurrent": "Bidirectional ConvLSTMCell GRUCell LSTMCell RNN RNNCell",
    "weight_normalization": "SpectralNorm WeightNorm",
    "quantization": "quantize",
    "module_surgery": "replace unstack",
    "module_filters": "buffers cast declare filter freeze matches merge modules params",
    "module_sharding": "create creator shardings",
    "stack": "Stack",
    "module_summary": "summary",
    "state_dicts": "load_state_dict state_dict",
}
__getattr__, __dir__, __all__ = lazy_imports.public(__name__, _NAMES, "initializers losses", _AT_ONCE)
