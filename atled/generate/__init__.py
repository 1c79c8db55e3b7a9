"""Text from models: prefill and decoding with a key-value cache, sampling, beams, speculative decoding, streaming."""

from atled.core import lazy_imports

_NAMES = {
    "beam_search": "beams",
    "decoding": "tokens",
    "sampling": "Sampling",
    "speculative": "speculate",
    "text_output": "stream text",
}
__getattr__, __dir__, __all__ = lazy_imports.public(__name__, _NAMES)
