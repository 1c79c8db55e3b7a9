# Written by scripts/stubs.
from atled.checkpoints import orbax as orbax
from atled.checkpoints import safetensors as safetensors
from atled.checkpoints.format import CheckpointError as CheckpointError
from atled.checkpoints.format import Manifest as Manifest
from atled.checkpoints.reading import load as load
from atled.checkpoints.reading import manifest as manifest
from atled.checkpoints.reading import verify as verify
from atled.checkpoints.saving import Saver as Saver
from atled.checkpoints.saving import save as save

__all__ = [
    "CheckpointError",
    "Manifest",
    "Saver",
    "load",
    "manifest",
    "orbax",
    "safetensors",
    "save",
    "verify",
]
