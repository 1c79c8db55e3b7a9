"""The layers of `benchmarks.layers` in eager PyTorch, so that one description of a model works for three libraries."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch.nn import functional


class Module(torch.nn.Module):
    """A module whose `__init__` need not call that of `torch.nn.Module`."""

    def __new__(cls, *_: Any, **__: Any) -> Any:
        made = super().__new__(cls)
        torch.nn.Module.__init__(made)
        return made

    def __init__(self) -> None:
        pass


class _Images(torch.nn.Module):
    """Applies a channels-first layer to channels-last images, which are in PyTorch's `channels_last` memory format."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Any) -> Any:
        return self.layer(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)


class _Same(torch.nn.Conv2d):
    """A convolution with the "SAME" padding of XLA: if it is odd, the extra padding is at the end."""

    def forward(self, input: Any) -> Any:
        pads: list[int] = []
        for length, size, stride in zip(input.shape[:1:-1], reversed(self.kernel_size), reversed(self.stride)):
            missing = max(0, (-(-length // stride) - 1) * stride + size - length)
            pads += [missing // 2, missing - missing // 2]
        if pads[::2] == pads[1::2]:
            return functional.conv2d(input, self.weight, None, self.stride, tuple(pads[::-2]))
        return functional.conv2d(functional.pad(input, pads), self.weight, None, self.stride)


class _Embedding(torch.nn.Embedding):
    def reset_parameters(self) -> None:
        """Initialize with the small standard deviation of the other libraries, so that logits are not huge."""
        torch.nn.init.normal_(self.weight, std=self.embedding_dim**-0.5)

    def attend(self, x: Any) -> Any:
        return x @ self.weight.T


class _Attention(torch.nn.Module):
    """Self-attention with PyTorch's fused `scaled_dot_product_attention`."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.inputs, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)

    def forward(self, x: Any, causal: bool) -> Any:
        batch, length, width = x.shape
        split = self.inputs(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(*split, is_causal=causal)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class _Recurrent(torch.nn.LSTM):
    def forward(self, x: Any) -> Any:  # type: ignore[override]
        return super().forward(x)[0]


class Torch:
    """Layers of PyTorch, with PyTorch's AdamW."""

    name = "torch"
    Module = Module

    def __init__(self) -> None:
        self.np = SimpleNamespace(
            asarray=lambda x: torch.as_tensor(x), arange=torch.arange,
            take_along_axis=lambda x, i, axis: torch.gather(x, axis, i.long()),
        )  # fmt: skip
        self.relu = torch.relu
        self.gelu = lambda x: functional.gelu(x, approximate="tanh")
        self.log_softmax = lambda x: torch.log_softmax(x, -1)

    def keys(self, key: Any = 0) -> Any:
        return torch.manual_seed(key)

    def linear(self, i: int, o: int, keys: Any) -> Any:
        return torch.nn.Linear(i, o)

    def embedding(self, n: int, d: int, keys: Any) -> Any:
        return _Embedding(n, d)

    def conv(self, i: int, o: int, size: Any, stride: Any, keys: Any) -> Any:
        made = _Same(i, o, size, stride=stride, bias=False)
        return _Images(made.to(memory_format=torch.channels_last))

    def layer_norm(self, d: int, keys: Any) -> Any:
        return torch.nn.LayerNorm(d)

    def batch_norm(self, d: int, keys: Any) -> Any:
        return _Images(torch.nn.BatchNorm2d(d))

    def attention(self, d: int, heads: int, keys: Any) -> Any:
        return _Attention(d, heads)

    def attend(self, layer: Any, x: Any, causal: bool) -> Any:
        return layer(x, causal)

    def lstm(self, i: int, o: int, keys: Any) -> Any:
        return _Recurrent(i, o, batch_first=True)

    def param(self, x: Any) -> Any:
        return torch.nn.Parameter(torch.as_tensor(x))

    def value(self, x: Any) -> Any:
        return x

    def several(self, items: Any) -> Any:
        return torch.nn.ModuleList(items)

    def step(self, model: Any, loss: Any) -> tuple[Callable[..., Any], Any]:
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)

        def run(state: Any, *batch: Any) -> Any:
            optimizer.zero_grad()
            value = loss(model, *batch)
            value.backward()
            optimizer.step()
            return state, {"loss": value.detach()}

        return run, None

    def ready(self, x: Any) -> None:
        pass
