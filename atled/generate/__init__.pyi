# Written by scripts/stubs.
from atled.generate.beam_search import beams as beams
from atled.generate.decoding import tokens as tokens
from atled.generate.sampling import Sampling as Sampling
from atled.generate.speculative import speculate as speculate
from atled.generate.text_output import stream as stream
from atled.generate.text_output import text as text

__all__ = [
    "Sampling",
    "beams",
    "speculate",
    "stream",
    "text",
    "tokens",
]
