"""Writes small BERT models with random weights, as transformers saves them, and what it computes with them.

    python tests/models/golden/make_bert.py

It needs torch and transformers, which the tests do not.
"""

import pathlib

import numpy as np
import torch
import transformers

HERE = pathlib.Path(__file__).parent
SIZES = {
    "vocab_size": 60, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24,
    "max_position_embeddings": 12,
}  # fmt: skip
KINDS = {
    "bert_model": "BertModel", "bert_masked_lm": "BertForMaskedLM", "bert_pretraining": "BertForPreTraining",
}  # fmt: skip


def shaken(model, seed):
    """The model in evaluation mode, with biases and scales that are not all 0 or 1."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for x in model.parameters():
            x += 0.2 * torch.randn(x.shape, generator=generator)
    return model.eval()


def main():
    rng = np.random.default_rng(0)
    ids, types = rng.integers(0, SIZES["vocab_size"], (2, 7)), np.repeat([[0, 0, 0, 0, 1, 1, 1]], 2, 0)
    mask = np.array([[1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0, 0]])
    given = {"input_ids": ids, "token_type_ids": types, "attention_mask": mask}
    for name, kind in KINDS.items():
        model = shaken(getattr(transformers, kind)(transformers.BertConfig(**SIZES)), 1)
        with torch.no_grad():
            out = model(**{n: torch.tensor(x) for n, x in given.items()}, output_hidden_states=True)
        names = {
            "pooler_output": "pooled", "logits": "logits", "prediction_logits": "logits",
            "seq_relationship_logits": "next_sentence",
        }  # fmt: skip
        found = {ours: out[theirs].numpy() for theirs, ours in names.items() if theirs in out}
        model.save_pretrained(HERE / name)
        arrays = {"ids": ids, "types": types, "mask": mask}
        np.savez(
            HERE / name / "computed.npz",
            **{n: x.astype("int32") for n, x in arrays.items()}, **found, features=out.hidden_states[-1].numpy(),
        )  # fmt: skip


if __name__ == "__main__":
    main()
