"""Models that people name, one file each: a configuration, the blocks, a loss, sharding rules, published names."""

from atled.core import lazy_imports

_NAMES = {"pretrained": "load save"}
__getattr__, __dir__, __all__ = lazy_imports.public(__name__, _NAMES, "bert gpt2 llama resnet t5 vit")
