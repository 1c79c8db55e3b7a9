# Written by scripts/stubs.
from atled.models import bert as bert
from atled.models import gpt2 as gpt2
from atled.models import llama as llama
from atled.models import resnet as resnet
from atled.models import t5 as t5
from atled.models import vit as vit
from atled.models.pretrained import load as load
from atled.models.pretrained import save as save

__all__ = [
    "bert",
    "gpt2",
    "llama",
    "load",
    "resnet",
    "save",
    "t5",
    "vit",
]
