"""Writes small residual networks with random weights, as transformers saves them, and what it computes with them.

    python tests/models/golden/make_resnet.py

It needs torch and transformers, which the tests do not.
"""

import pathlib

import numpy as np
import torch
import transformers
from make_bert import shaken

HERE = pathlib.Path(__file__).parent
CASES = {
    "resnet_basic": {"layer_type": "basic", "hidden_sizes": [8, 12], "depths": [2, 1], "num_labels": 5},
    "resnet_bottleneck": {"hidden_sizes": [16, 24], "depths": [1, 2], "num_labels": 3},
    "resnet_downsampled": {
        "hidden_sizes": [8, 16], "depths": [1, 1], "downsample_in_first_stage": True, "downsample_in_bottleneck": True,
    },
}  # fmt: skip


def main():
    rng, generator = np.random.default_rng(0), torch.Generator().manual_seed(2)
    for name, more in CASES.items():
        config = transformers.ResNetConfig(embedding_size=8, **more)
        images = rng.standard_normal((2, 37, 40, 3)).astype("float32")
        model = shaken(transformers.ResNetForImageClassification(config), 1)
        for path, x in model.named_buffers():  # statistics that training could have left
            if path.endswith("running_mean"):
                x.copy_(0.3 * torch.randn(x.shape, generator=generator))
            if path.endswith("running_var"):
                x.copy_(0.5 + torch.rand(x.shape, generator=generator))
        with torch.no_grad():
            logits = model(torch.tensor(images.transpose(0, 3, 1, 2).copy())).logits
        model.save_pretrained(HERE / name)
        np.savez(HERE / name / "computed.npz", images=images, logits=logits.numpy())


if __name__ == "__main__":
    main()
