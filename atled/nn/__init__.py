"""Neural networks: modules and layers; activations, the softmax family, attention, and initializers."""

from atled.core import lazy

_AT_ONCE = {
    "atled.numpy.elementwise": "tanh",
    "attention": "dot_product_attention",
    "block_scaled": "get_scaled_dot_general_config scaled_dot_general scaled_matmul",
    "functions": """
        celu elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu log1mexp log_sigmoid
        log_softmax logmeanexp logsumexp mish one_hot relu relu6 selu sigmoid silu soft_sign softmax softplus
        sparse_plus sparse_sigmoid squareplus standardize swish""",
}
_NAMES = {
    "capturing": "capture",
    "composing": "Lambda Residual Sequential",
    "convolutions": "Conv ConvTranspose",
    "dropouts": "AlphaDropout Dropout SpatialDropout StochasticDepth",
    "experts": "MixtureOfExperts",
    "features": "FourierFeatures PatchEmbedding",
    "graphs": "GraphAttention GraphConv GraphNetwork",
    "keys": "Keys",
    "kinds": "Buffer Frozen Kind Param",
    "layers": "Dense Embedding Linear",
    "long_attention": "memory_efficient_attention",
    "low_rank": "LoRA",
    "module": "Module",
    "multi_head": "Cache MultiHeadAttention start_decoding",
    "norms": "BatchNorm GroupNorm InstanceNorm LayerNorm RMSNorm",
    "pooling": "AdaptiveAvgPool AdaptiveMaxPool avg_pool AvgPool GlobalAvgPool GlobalMaxPool max_pool MaxPool",
    "positions": "ALiBi RelativePositions RoPE SinusoidalPositions",
    "recurrent": "Bidirectional ConvLSTMCell GRUCell LSTMCell RNN RNNCell",
    "reparametrized": "SpectralNorm WeightNorm",
    "replacing": "replace",
    "selecting": "buffers cast declare freeze matches merge modules only params",
    "shards": "create creator shardings",
    "stack": "Stack",
    "summaries": "summary",
    "weights": "load_state state",
}
__getattr__, __dir__, __all__ = lazy.public(__name__, _NAMES, "initializers losses", _AT_ONCE)
