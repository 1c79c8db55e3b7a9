"""Checkpoints of pytrees on disk and in object stores: written atomically by all processes, verified when read.

>>> import tempfile
>>> from atled import checkpoints, nn, random
>>> model = nn.Linear(2, 3, key=random.key(0))
>>> with tempfile.TemporaryDirectory() as path:
...     checkpoints.save(path, model)
...     again = checkpoints.load(path, like=nn.Linear(2, 3, key=random.key(1)))
>>> bool((again.weight == model.weight).all())
True
"""

from atled.checkpoints import orbax, safetensors
from atled.checkpoints.format import CheckpointError, Manifest
from atled.checkpoints.reading import load, manifest, verify
from atled.checkpoints.saving import Saver, save

__all__ = ["CheckpointError", "Manifest", "Saver", "load", "manifest", "orbax", "safetensors", "save", "verify"]
