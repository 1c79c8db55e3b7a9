# Written by scripts/stubs.
from atled.text.added_tokens import AddedToken as AddedToken
from atled.text.byte_pair import ByteLevelBPE as ByteLevelBPE
from atled.text.span_corruption import SpanLengths as SpanLengths
from atled.text.span_corruption import corrupt_spans as corrupt_spans
from atled.text.span_corruption import fill_spans as fill_spans
from atled.text.span_corruption import noise_mask as noise_mask
from atled.text.span_corruption import span_lengths as span_lengths
from atled.text.tokenizer import Settings as Settings
from atled.text.tokenizer import Tokenizer as Tokenizer
from atled.text.tokenizer_files import load_tokenizer as load_tokenizer

__all__ = [
    "AddedToken",
    "ByteLevelBPE",
    "Settings",
    "SpanLengths",
    "Tokenizer",
    "corrupt_spans",
    "fill_spans",
    "load_tokenizer",
    "noise_mask",
    "span_lengths",
]
