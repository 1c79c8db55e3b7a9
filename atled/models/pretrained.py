"""`load` and `save`: models in the layouts in which they are published."""

from __future__ import annotations

import importlib
import json
import os
import pathlib
import re
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from atled import nn, random
from atled.checkpoints import gguf, safetensors
from atled.core import errors, tree
from atled.core.array import DTypeLike
from atled.core.dtypes import canonical
from atled.core.sharding import Mesh
from atled.core.types import ShapeDtypeStruct
from atled.nn.state_dicts import TORCH
from atled.staging.jit import eval_shape
from atled.text import tokenizer_files

# The file of each `model_type` in config.json.
ARCHITECTURES = {
    "bert": "bert", "gpt2": "gpt2", "llama": "llama", "mistral": "llama", "resnet": "resnet", "t5": "t5", "vit": "vit",
}  # fmt: skip
# The file that reads each `general.architecture` of GGUF.
GGUF = {"llama": "llama_gguf"}
# PyTorch's layouts, but attention has four linear layers instead of concatenated weights.
SEPARATE = {cls: parts for cls, parts in TORCH.items() if cls is not nn.MultiHeadAttention}


def load(path: str | os.PathLike[str], *, dtype: DTypeLike | None = None, mesh: Mesh | None = None) -> tuple[Any, Any]:
    """A published model in evaluation mode, and its tokenizer, which is None if there is none.

    The tokenizer is that of `text.load_tokenizer`. If it cannot be loaded, such as for lack of a package, its first use
    raises the error.

    Args:
        path: a directory with `config.json` and safetensors files, or a GGUF file.
        dtype: the dtype of parameters; by default that of the files, and float32 for quantized formats.
        mesh: the parameters are sharded by the `SHARDING` rules of the architecture, and read shard by shard.

    >>> import tempfile
    >>> from atled import models, random
    >>> config = models.gpt2.Config(100, 32, n_embd=16, n_layer=2, n_head=2)
    >>> with tempfile.TemporaryDirectory() as there:
    ...     models.save(there, models.gpt2.Model(config, key=random.key(0)))
    ...     model, tokenizer = models.load(there)
    >>> model.config == config, tokenizer
    (True, None)
    """
    path = pathlib.Path(path)
    if path.is_file():
        with gguf.open(path) as file:
            kind = file.metadata.get("general.architecture")
            if kind not in GGUF:
                raise ValueError(
                    errors.explained(f"models.load: {path}: a GGUF file must be of {' or '.join(GGUF)}; got {kind!r}.")
                )
            published = importlib.import_module(f"atled.models.{GGUF[kind]}")
            architecture, config = _architecture(path, kind), published.config_of(file)
            arrays = _Dequantized(published, config, file)
            tokenizer = tokenizer_files.of_model(file)
            return _built(architecture, config, arrays, published.NAMES, SEPARATE, dtype, mesh), tokenizer
    found = json.loads((path / "config.json").read_text())
    architecture = _architecture(path, found.get("model_type"))
    config = architecture.Config.from_published(found)
    arrays, names = safetensors.load(path), architecture.NAMES
    ignored, former = getattr(architecture, "IGNORED", ""), getattr(architecture, "FORMER", {})
    for old, new in former.items():
        arrays = {f"{n.removesuffix(old)}{new}" if n.endswith(old) else n: x for n, x in arrays.items()}
    arrays = {n: x for n, x in arrays.items() if not (ignored and re.fullmatch(ignored, n))}
    prefix = getattr(architecture, "PREFIX", "")
    if prefix and not any([n.startswith(prefix) for n in arrays]):  # the model without its head was saved
        names = {ours: name.removeprefix(prefix) for ours, name in names.items()}
    tokenizer, layout = tokenizer_files.of_model(path), getattr(architecture, "LAYOUT", SEPARATE)
    return _built(architecture, config, arrays, names, layout, dtype, mesh), tokenizer


def save(path: str | os.PathLike[str], model: Any, *, shard_bytes: int | None = None) -> None:
    """Write a model as it is published: `config.json` and safetensors files.

    Args:
        shard_bytes: see `checkpoints.safetensors.save`.

    >>> import os, tempfile
    >>> from atled import models, random
    >>> config = models.gpt2.Config(100, 32, n_embd=16, n_layer=2, n_head=2)
    >>> with tempfile.TemporaryDirectory() as there:
    ...     models.save(there, models.gpt2.Model(config, key=random.key(0)))
    ...     sorted(os.listdir(there))
    ['config.json', 'model.safetensors']
    """
    path, architecture = pathlib.Path(path), importlib.import_module(type(model).__module__)
    arrays = nn.state_dict(model, _present(architecture.NAMES, model), getattr(architecture, "LAYOUT", SEPARATE))
    path.mkdir(parents=True, exist_ok=True)
    safetensors.save(path / "model.safetensors", arrays, metadata={"format": "pt"}, shard_bytes=shard_bytes)
    (path / "config.json").write_text(json.dumps(model.config.published(), indent=2) + "\n")


def _architecture(path: pathlib.Path, kind: Any) -> ModuleType:
    if kind not in ARCHITECTURES:
        raise ValueError(
            errors.explained(
                f"models.load: {path}: model_type must be one of {', '.join(ARCHITECTURES)}; got {kind!r}."
            )
        )
    return importlib.import_module(f"atled.models.{ARCHITECTURES[kind]}")


def _built(
    architecture: ModuleType, config: Any, arrays: Mapping[str, Any], names: Mapping[str, str], layout: Any,
    dtype: DTypeLike | None, mesh: Mesh | None,
) -> Any:  # fmt: skip
    """The model with these arrays; it is never initialized."""
    model = eval_shape(lambda key: architecture.Model(config, key=key), random.key(0)).eval()
    optional = getattr(architecture, "OPTIONAL", {})
    absent = tuple([prefix for part, prefix in optional.items() if getattr(model, part) is None])
    arrays = {n: arrays[n] for n in arrays if not n.startswith(absent)} if absent else arrays
    if dtype is not None:
        dtype = canonical(dtype)
        model = tree.map(lambda x: ShapeDtypeStruct(x.shape, dtype) if np.dtype(x.dtype).kind == "f" else x, model)
    if mesh is not None:
        rules = _present(architecture.SHARDING, model)
        shardings = nn.shardings(model, rules, mesh)
        model = tree.map(lambda x, s: ShapeDtypeStruct(x.shape, x.dtype, sharding=s), model, shardings)
    return nn.load_state_dict(model, arrays, _present(names, model), layout, keep_dtype=dtype is None)


def _present(rules: Mapping[str, Any], model: Any) -> dict[str, Any]:
    """The rules without that of the head, if it is tied to the embedding."""
    is_tied = getattr(model, "head", True) is None
    return {path: x for path, x in rules.items() if not (is_tied and path.split("/")[0] == "head")}


class _Dequantized(Mapping[str, np.ndarray]):
    """The arrays of a GGUF file, each dequantized when it is asked for."""

    def __init__(self, published: ModuleType, config: Any, file: gguf.File) -> None:
        self.change, self.config, self.file = published.published_array, config, file

    def __getitem__(self, name: str) -> np.ndarray:
        return self.change(self.config, name, self.file.tensors[name].read())

    def __iter__(self) -> Iterator[str]:
        return iter(self.file.tensors)

    def __len__(self) -> int:
        return len(self.file.tensors)
