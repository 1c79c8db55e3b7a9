"""The functions of JAX that the models use, implemented with PyTorch, so that one model works for three libraries."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from benchmarks.models import Library


def torch_library() -> Library:
    """Eager PyTorch under JAX's names."""
    import torch
    from torch.nn import functional
    from torch.utils import _pytree as pytree

    def split(x: Any, parts: int, axis: int) -> Any:
        return x.split(x.shape[axis] // parts, axis)

    def conv(x: Any, w: Any, strides: Any, padding: str, dimension_numbers: Any = None) -> Any:
        """A channels-last convolution, with JAX's "SAME" padding."""
        spatial = x.ndim - 2
        ahead, kernel = (0, spatial + 1, *range(1, spatial + 1)), (spatial + 1, spatial, *range(spatial))
        pads: list[int] = []
        for length, size, stride in zip(reversed(x.shape[1:-1]), reversed(w.shape[:-2]), reversed(strides)):
            missing = max(0, (-(-length // stride) - 1) * stride + size - length) if padding == "SAME" else 0
            pads += [missing // 2, missing - missing // 2]
        x = x.permute(ahead)
        is_even = pads[::2] == pads[1::2]
        apply = functional.conv1d if spatial == 1 else functional.conv2d
        x = x if is_even else functional.pad(x, pads)
        out = apply(x, w.permute(kernel), stride=strides, padding=tuple(pads[::-2]) if is_even else 0)
        return out.permute(0, *range(2, spatial + 2), 1)

    def value_and_grad(loss: Any) -> Any:
        def both(params: Any, *rest: Any) -> Any:
            leaves, structure = pytree.tree_flatten(params)
            leaves = [p.detach().requires_grad_() for p in leaves]
            value = loss(pytree.tree_unflatten(leaves, structure), *rest)
            return value.detach(), pytree.tree_unflatten(list(torch.autograd.grad(value, leaves)), structure)

        return both

    numpy = SimpleNamespace(
        asarray=lambda a: torch.as_tensor(a),
        mean=lambda x, axis=None, keepdims=False: x.mean(axis, keepdim=keepdims) if axis is not None else x.mean(),
        var=lambda x, axis=None, keepdims=False: torch.var(x, axis, correction=0, keepdim=keepdims),
        sum=lambda x, axis=None: x.sum(axis) if axis is not None else x.sum(),
        take_along_axis=lambda x, i, axis: torch.gather(x, axis, i.long()),
        ones=lambda dims, dtype=None: torch.ones(dims, dtype=torch.bool if dtype is bool else None),
        concatenate=torch.cat, broadcast_to=torch.broadcast_to,
        split=split, sqrt=torch.sqrt, tanh=torch.tanh, tril=torch.tril, where=torch.where, einsum=torch.einsum,
        zeros=torch.zeros,
    )  # fmt: skip
    nn = SimpleNamespace(
        softmax=lambda x, axis=-1: torch.softmax(x, axis), log_softmax=lambda x, axis=-1: torch.log_softmax(x, axis),
        gelu=lambda x: functional.gelu(x, approximate="tanh"), relu=torch.relu, sigmoid=torch.sigmoid,
        one_hot=lambda i, n: functional.one_hot(i.long(), n).float(),
    )  # fmt: skip
    lax = SimpleNamespace(rsqrt=torch.rsqrt, conv_general_dilated=conv)
    top = SimpleNamespace(value_and_grad=value_and_grad, block_until_ready=lambda x: x, jit=lambda f: f)
    return Library("torch", top, numpy, lax, nn, None, SimpleNamespace(map=pytree.tree_map))
