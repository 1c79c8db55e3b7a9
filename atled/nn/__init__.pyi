# Written by scripts/stubs.
from atled.nn import initializers as initializers
from atled.nn import losses as losses
from atled.nn.attention import dot_product_attention as dot_product_attention
from atled.nn.block_scaled import get_scaled_dot_general_config as get_scaled_dot_general_config
from atled.nn.block_scaled import scaled_dot_general as scaled_dot_general
from atled.nn.block_scaled import scaled_matmul as scaled_matmul
from atled.nn.capturing import capture as capture
from atled.nn.composing import Lambda as Lambda
from atled.nn.composing import Residual as Residual
from atled.nn.composing import Sequential as Sequential
from atled.nn.convolutions import Conv as Conv
from atled.nn.convolutions import ConvTranspose as ConvTranspose
from atled.nn.dropouts import AlphaDropout as AlphaDropout
from atled.nn.dropouts import Dropout as Dropout
from atled.nn.dropouts import SpatialDropout as SpatialDropout
from atled.nn.dropouts import StochasticDepth as StochasticDepth
from atled.nn.experts import MixtureOfExperts as MixtureOfExperts
from atled.nn.features import FourierFeatures as FourierFeatures
from atled.nn.features import PatchEmbedding as PatchEmbedding
from atled.nn.functions import celu as celu
from atled.nn.functions import elu as elu
from atled.nn.functions import gelu as gelu
from atled.nn.functions import glu as glu
from atled.nn.functions import hard_sigmoid as hard_sigmoid
from atled.nn.functions import hard_silu as hard_silu
from atled.nn.functions import hard_swish as hard_swish
from atled.nn.functions import hard_tanh as hard_tanh
from atled.nn.functions import identity as identity
from atled.nn.functions import leaky_relu as leaky_relu
from atled.nn.functions import log1mexp as log1mexp
from atled.nn.functions import log_sigmoid as log_sigmoid
from atled.nn.functions import log_softmax as log_softmax
from atled.nn.functions import logmeanexp as logmeanexp
from atled.nn.functions import logsumexp as logsumexp
from atled.nn.functions import mish as mish
from atled.nn.functions import one_hot as one_hot
from atled.nn.functions import relu as relu
from atled.nn.functions import relu6 as relu6
from atled.nn.functions import selu as selu
from atled.nn.functions import sigmoid as sigmoid
from atled.nn.functions import silu as silu
from atled.nn.functions import soft_sign as soft_sign
from atled.nn.functions import softmax as softmax
from atled.nn.functions import softplus as softplus
from atled.nn.functions import sparse_plus as sparse_plus
from atled.nn.functions import sparse_sigmoid as sparse_sigmoid
from atled.nn.functions import squareplus as squareplus
from atled.nn.functions import standardize as standardize
from atled.nn.functions import swish as swish
from atled.nn.graphs import GraphAttention as GraphAttention
from atled.nn.graphs import GraphConv as GraphConv
from atled.nn.graphs import GraphNetwork as GraphNetwork
from atled.nn.keys import Keys as Keys
from atled.nn.kinds import Buffer as Buffer
from atled.nn.kinds import Frozen as Frozen
from atled.nn.kinds import Kind as Kind
from atled.nn.kinds import Param as Param
from atled.nn.layers import Dense as Dense
from atled.nn.layers import Embedding as Embedding
from atled.nn.layers import Linear as Linear
from atled.nn.long_attention import memory_efficient_attention as memory_efficient_attention
from atled.nn.low_rank import LoRA as LoRA
from atled.nn.module import Module as Module
from atled.nn.multi_head import Cache as Cache
from atled.nn.multi_head import MultiHeadAttention as MultiHeadAttention
from atled.nn.multi_head import start_decoding as start_decoding
from atled.nn.norms import BatchNorm as BatchNorm
from atled.nn.norms import GroupNorm as GroupNorm
from atled.nn.norms import InstanceNorm as InstanceNorm
from atled.nn.norms import LayerNorm as LayerNorm
from atled.nn.norms import RMSNorm as RMSNorm
from atled.nn.pooling import AdaptiveAvgPool as AdaptiveAvgPool
from atled.nn.pooling import AdaptiveMaxPool as AdaptiveMaxPool
from atled.nn.pooling import AvgPool as AvgPool
from atled.nn.pooling import GlobalAvgPool as GlobalAvgPool
from atled.nn.pooling import GlobalMaxPool as GlobalMaxPool
from atled.nn.pooling import MaxPool as MaxPool
from atled.nn.pooling import avg_pool as avg_pool
from atled.nn.pooling import max_pool as max_pool
from atled.nn.positions import ALiBi as ALiBi
from atled.nn.positions import RelativePositions as RelativePositions
from atled.nn.positions import RoPE as RoPE
from atled.nn.positions import SinusoidalPositions as SinusoidalPositions
from atled.nn.recurrent import Bidirectional as Bidirectional
from atled.nn.recurrent import ConvLSTMCell as ConvLSTMCell
from atled.nn.recurrent import GRUCell as GRUCell
from atled.nn.recurrent import LSTMCell as LSTMCell
from atled.nn.recurrent import RNN as RNN
from atled.nn.recurrent import RNNCell as RNNCell
from atled.nn.reparametrized import SpectralNorm as SpectralNorm
from atled.nn.reparametrized import WeightNorm as WeightNorm
from atled.nn.replacing import replace as replace
from atled.nn.selecting import buffers as buffers
from atled.nn.selecting import cast as cast
from atled.nn.selecting import declare as declare
from atled.nn.selecting import freeze as freeze
from atled.nn.selecting import matches as matches
from atled.nn.selecting import merge as merge
from atled.nn.selecting import modules as modules
from atled.nn.selecting import only as only
from atled.nn.selecting import params as params
from atled.nn.shards import create as create
from atled.nn.shards import creator as creator
from atled.nn.shards import shardings as shardings
from atled.nn.stack import Stack as Stack
from atled.nn.summaries import summary as summary
from atled.nn.weights import load_state as load_state
from atled.nn.weights import state as state
from atled.numpy.elementwise import tanh as tanh

__all__ = [
    "ALiBi",
    "AdaptiveAvgPool",
    "AdaptiveMaxPool",
    "AlphaDropout",
    "AvgPool",
    "BatchNorm",
    "Bidirectional",
    "Buffer",
    "Cache",
    "Conv",
    "ConvLSTMCell",
    "ConvTranspose",
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
    "MixtureOfExperts",
    "Module",
    "MultiHeadAttention",
    "Param",
    "PatchEmbedding",
    "RMSNorm",
    "RNN",
    "RNNCell",
    "RelativePositions",
    "Residual",
    "RoPE",
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
    "freeze",
    "gelu",
    "get_scaled_dot_general_config",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "identity",
    "initializers",
    "leaky_relu",
    "load_state",
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
    "only",
    "params",
    "relu",
    "relu6",
    "replace",
    "scaled_dot_general",
    "scaled_matmul",
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
    "start_decoding",
    "state",
    "summary",
    "swish",
    "tanh",
]
