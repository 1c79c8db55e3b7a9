# Written by scripts/stubs.
from atled.checkpoints import gguf as gguf
from atled.checkpoints import orbax as orbax
from atled.checkpoints import safetensors as safetensors
from atled.checkpoints.format import CheckpointError as CheckpointError
from atled.checkpoints.format import Manifest as Manifest
from atled.checkpoints.saver import Saver as Saver
from atled.checkpoints.saver import save as save
from atled.checkpoints.shard_reader import load as load
from atled.checkpoints.shard_reader import manifest as manifest
from atled.checkpoints.shard_reader import verify as verify

__all__ = [
    "CheckpointError",
    "Manifest",
    "Saver",
    "gguf",
    "load",
    "manifest",
    "orbax",
    "safetensors",
    "save",
    "verify",
]
