"""Tokenizers: from text to the ids of a model's vocabulary, and back; chat templates; T5's span corruption.

`load_tokenizer` reads `tokenizer.json` and GGUF files. Byte-level BPE needs no other package; other tokenizers need
`tokenizers`, and chats need `jinja2`: `pip install "atled[text]"`.
"""

from atled.core import lazy_imports

_NAMES = {
    "added_tokens": "AddedToken",
    "byte_pair": "ByteLevelBPE",
    "span_corruption": "SpanLengths corrupt_spans fill_spans noise_mask span_lengths",
    "tokenizer": "Settings Tokenizer",
    "tokenizer_files": "load_tokenizer",
}
__getattr__, __dir__, __all__ = lazy_imports.public(__name__, _NAMES)
