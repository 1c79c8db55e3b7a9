"""Checkpoints of pytrees on disk and in object stores: written atomically by all processes, verified when read.

>>> import tempfile
>>> from atled import checkpoints, nn, random
>>> model = nn.Linear(2, 3, key=random.key(0))
>>> with tempfile.TemporaryDirectory() as path:
...     checkpoints.save(path, model)
...     again = checkpoints.load(path, template=nn.Linear(2, 3, key=random.key(1)))
>>> bool((again.weight == model.weight).all())
True
"""

from atled.core import lazy_imports

_AT_ONCE = {
    "format": "CheckpointError Manifest",
    "shard_reader": "load manifest verify",
    "saver": "save Saver",
}
__getattr__, __dir__, __all__ = lazy_imports.public(__name__, {}, "gguf orbax safetensors", _AT_ONCE)
