# Written by scripts/stubs.
from atled.nn import initializers as initializers
from atled.nn import losses as losses
from atled.nn.activations import celu as celu
from atled.nn.activations import elu as elu
from atled.nn.activations import gelu as gelu
from atled.nn.activations import glu as glu
from atled.nn.activations import hard_sigmoid as hard_sigmoid
from atled.nn.activations import hard_silu as hard_silu
from atled.nn.activations import hard_swish as hard_swish
from atled.nn.activations import hard_tanh as hard_tanh
from atled.nn.activations import identity as identity
from atled.nn.activations import leaky_relu as leaky_relu
from atled.nn.activations import log1mexp as log1mexp
from atled.nn.activations import log_sigmoid as log_sigmoid
from atled.nn.activations import log_softmax as log_softmax
from atled.nn.activations import logmeanexp as logmeanexp
from atled.nn.activations import logsumexp as logsumexp
from atled.nn.activations import mish as mish
from atled.nn.activations import one_hot as one_hot
from atled.nn.activations import relu as relu
from atled.nn.activations import relu6 as relu6
from atled.nn.activations import selu as selu
from atled.nn.activations import sigmoid as sigmoid
from atled.nn.activations import silu as silu
from atled.nn.activations import soft_sign as soft_sign
from atled.nn.activations import softmax as softmax
from atled.nn.activations import softplus as softplus
from atled.nn.activations import sparse_plus as sparse_plus
from atled.nn.activations import sparse_sigmoid as sparse_sigmoid
from atled.nn.activations import squareplus as squareplus
from atled.nn.activations import standardize as standardize
from atled.nn.activations import swish as swish
from atled.nn.attention import dot_product_attention as dot_product_attention
from atled.nn.block_scaled import get_scaled_dot_general_config as get_scaled_dot_general_config
from atled.nn.block_scaled import scaled_dot_general as scaled_dot_general
from atled.nn.block_scaled import scaled_matmul as scaled_matmul
from atled.nn.chunked_attention import memory_efficient_attention as memory_efficient_attention
from atled.nn.containers import Lambda as Lambda
from atled.nn.containers import Residual as Residual
from atled.nn.containers import Sequential as Sequential
from atled.nn.convolutions import Conv as Conv
from atled.nn.convolutions import Conv1d as Conv1d
from atled.nn.convolutions import Conv2d as Conv2d
from atled.nn.convolutions import Conv3d as Conv3d
from atled.nn.convolutions import ConvTranspose as ConvTranspose
from atled.nn.convolutions import ConvTranspose1d as ConvTranspose1d
from atled.nn.convolutions import ConvTranspose2d as ConvTranspose2d
from atled.nn.convolutions import ConvTranspose3d as ConvTranspose3d
from atled.nn.decoding_cache import Cache as Cache
from atled.nn.decoding_cache import Positions as Positions
from atled.nn.decoding_cache import init_cache as init_cache
from atled.nn.decoding_cache import seek as seek
from atled.nn.decoding_cache import take_rows as take_rows
from atled.nn.dropout_layers import AlphaDropout as AlphaDropout
from atled.nn.dropout_layers import Dropout as Dropout
from atled.nn.dropout_layers import SpatialDropout as SpatialDropout
from atled.nn.dropout_layers import StochasticDepth as StochasticDepth
from atled.nn.graph_layers import GraphAttention as GraphAttention
from atled.nn.graph_layers import GraphConv as GraphConv
from atled.nn.graph_layers import GraphNetwork as GraphNetwork
from atled.nn.input_features import FourierFeatures as FourierFeatures
from atled.nn.input_features import PatchEmbedding as PatchEmbedding
from atled.nn.intermediates import capture as capture
from atled.nn.key_stream import Keys as Keys
from atled.nn.linear_layers import Dense as Dense
from atled.nn.linear_layers import Embedding as Embedding
from atled.nn.linear_layers import Linear as Linear
from atled.nn.lora import LoRA as LoRA
from atled.nn.mixture_of_experts import MixtureOfExperts as MixtureOfExperts
from atled.nn.module import Module as Module
from atled.nn.module_filters import buffers as buffers
from atled.nn.module_filters import cast as cast
from atled.nn.module_filters import declare as declare
from atled.nn.module_filters import filter as filter
from atled.nn.module_filters import freeze as freeze
from atled.nn.module_filters import matches as matches
from atled.nn.module_filters import merge as merge
from atled.nn.module_filters import modules as modules
from atled.nn.module_filters import params as params
from atled.nn.module_sharding import create as create
from atled.nn.module_sharding import creator as creator
from atled.nn.module_sharding import shardings as shardings
from atled.nn.module_summary import summary as summary
from atled.nn.module_surgery import replace as replace
from atled.nn.module_surgery import unstack as unstack
from atled.nn.multi_head_attention import MultiHeadAttention as MultiHeadAttention
from atled.nn.normalization import BatchNorm as BatchNorm
from atled.nn.normalization import GroupNorm as GroupNorm
from atled.nn.normalization import InstanceNorm as InstanceNorm
from atled.nn.normalization import LayerNorm as LayerNorm
from atled.nn.normalization import RMSNorm as RMSNorm
from atled.nn.pooling import AdaptiveAvgPool as AdaptiveAvgPool
from atled.nn.pooling import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from atled.nn.pooling import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from atled.nn.pooling import AdaptiveAvgPool3d as AdaptiveAvgPool3d
from atled.nn.pooling import AdaptiveMaxPool as AdaptiveMaxPool
from atled.nn.pooling import AdaptiveMaxPool1d as AdaptiveMaxPool1d
from atled.nn.pooling import AdaptiveMaxPool2d as AdaptiveMaxPool2d
from atled.nn.pooling import AdaptiveMaxPool3d as AdaptiveMaxPool3d
from atled.nn.pooling import AvgPool as AvgPool
from atled.nn.pooling import AvgPool1d as AvgPool1d
from atled.nn.pooling import AvgPool2d as AvgPool2d
from atled.nn.pooling import AvgPool3d as AvgPool3d
from atled.nn.pooling import GlobalAvgPool as GlobalAvgPool
from atled.nn.pooling import GlobalMaxPool as GlobalMaxPool
from atled.nn.pooling import MaxPool as MaxPool
from atled.nn.pooling import MaxPool1d as MaxPool1d
from atled.nn.pooling import MaxPool2d as MaxPool2d
from atled.nn.pooling import MaxPool3d as MaxPool3d
from atled.nn.pooling import avg_pool as avg_pool
from atled.nn.pooling import max_pool as max_pool
from atled.nn.position_encodings import ALiBi as ALiBi
from atled.nn.position_encodings import RelativePositions as RelativePositions
from atled.nn.position_encodings import RoPE as RoPE
from atled.nn.position_encodings import RoPEScaling as RoPEScaling
from atled.nn.position_encodings import SinusoidalPositions as SinusoidalPositions
from atled.nn.quantization import quantize as quantize
from atled.nn.recurrent import Bidirectional as Bidirectional
from atled.nn.recurrent import ConvLSTMCell as ConvLSTMCell
from atled.nn.recurrent import GRUCell as GRUCell
from atled.nn.recurrent import LSTMCell as LSTMCell
from atled.nn.recurrent import RNN as RNN
from atled.nn.recurrent import RNNCell as RNNCell
from atled.nn.stack import Stack as Stack
from atled.nn.state_dicts import load_state_dict as load_state_dict
from atled.nn.state_dicts import state_dict as state_dict
from atled.nn.variable_kinds import Buffer as Buffer
from atled.nn.variable_kinds import Frozen as Frozen
from atled.nn.variable_kinds import Kind as Kind
from atled.nn.variable_kinds import Param as Param
from atled.nn.weight_normalization import SpectralNorm as SpectralNorm
from atled.nn.weight_normalization import WeightNorm as WeightNorm
from atled.numpy.elementwise import tanh as tanh

__all__ = [
    "ALiBi",
    "AdaptiveAvgPool",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AlphaDropout",
    "AvgPool",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "BatchNorm",
    "Bidirectional",
    "Buffer",
    "Cache",
    "Conv",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvLSTMCell",
    "ConvTranspose",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "Dense",
    "Dropout",
    "Embedding",
    "FourierFeatures",
    "Frozen",
    "GRUCell",
    "GlobalAvgPool",
    "GlobalMaxPool",
    "GraphAttention",
    "GraphConv",
    "GraphNetwork",
    "GroupNorm",
    "InstanceNorm",
    "Keys",
    "Kind",
    "LSTMCell",
    "Lambda",
    "LayerNorm",
    "Linear",
    "LoRA",
    "MaxPool",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MixtureOfExperts",
    "Module",
    "MultiHeadAttention",
    "Param",
    "PatchEmbedding",
    "Positions",
    "RMSNorm",
    "RNN",
    "RNNCell",
    "RelativePositions",
    "Residual",
    "RoPE",
    "RoPEScaling",
    "Sequential",
    "SinusoidalPositions",
    "SpatialDropout",
    "SpectralNorm",
    "Stack",
    "StochasticDepth",
    "WeightNorm",
    "avg_pool",
    "buffers",
    "capture",
    "cast",
    "celu",
    "create",
    "creator",
    "declare",
    "dot_product_attention",
    "elu",
    "filter",
    "freeze",
    "gelu",
    "get_scaled_dot_general_config",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "identity",
    "init_cache",
    "initializers",
    "leaky_relu",
    "load_state_dict",
    "log1mexp",
    "log_sigmoid",
    "log_softmax",
    "logmeanexp",
    "logsumexp",
    "losses",
    "matches",
    "max_pool",
    "memory_efficient_attention",
    "merge",
    "mish",
    "modules",
    "one_hot",
    "params",
    "quantize",
    "relu",
    "relu6",
    "replace",
    "scaled_dot_general",
    "scaled_matmul",
    "seek",
    "selu",
    "shardings",
    "sigmoid",
    "silu",
    "soft_sign",
    "softmax",
    "softplus",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "standardize",
    "state_dict",
    "summary",
    "swish",
    "take_rows",
    "tanh",
    "unstack",
]
