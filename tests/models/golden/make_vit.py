"""Writes small vision transformers with random weights, as transformers saves them, and what it computes with them.

    python tests/models/golden/make_vit.py

It needs torch and transformers, which the tests do not.
"""

import pathlib

import numpy as np
import torch
import transformers
from make_bert import shaken

HERE = pathlib.Path(__file__).parent
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24}
CASES = {
    "vit_plain": {"image_size": 12, "patch_size": 4},  # two classes, which files leave out
    "vit_rectangles": {
        "image_size": [8, 18], "patch_size": [4, 6], "num_channels": 1, "qkv_bias": False,
        "id2label": {0: "cat", 1: "dog", 2: "owl"}, "label2id": {"cat": 0, "dog": 1, "owl": 2},
    },
}  # fmt: skip


def main():
    rng = np.random.default_rng(0)
    for name, more in CASES.items():
        config = transformers.ViTConfig(**SIZES, **more)
        height, width = np.broadcast_to(config.image_size, 2)
        images = rng.standard_normal((2, height, width, config.num_channels)).astype("float32")
        model = shaken(transformers.ViTForImageClassification(config), 1)
        with torch.no_grad():
            logits = model(torch.tensor(images.transpose(0, 3, 1, 2).copy())).logits
        model.save_pretrained(HERE / name)
        np.savez(HERE / name / "computed.npz", images=images, logits=logits.numpy())


if __name__ == "__main__":
    main()
