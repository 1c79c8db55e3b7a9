# Written by scripts/stubs.
from atled.text.added_tokens import AddedToken as AddedToken
from atled.text.byte_pair import ByteLevelBPE as ByteLevelBPE
from atled.text.tokenizer import Settings as Settings
from atled.text.tokenizer import Tokenizer as Tokenizer
from atled.text.tokenizer_files import load_tokenizer as load_tokenizer

__all__ = [
    "AddedToken",
    "ByteLevelBPE",
    "Settings",
    "Tokenizer",
    "load_tokenizer",
]
