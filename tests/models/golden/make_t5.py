"""Writes small T5 models with random weights, as transformers saves them, and what it computes with them.

    python tests/models/golden/make_t5.py

It needs torch and transformers, which the tests do not.
"""

import json
import pathlib

import numpy as np
import torch
import transformers

HERE = pathlib.Path(__file__).parent
SIZES = {
    "vocab_size": 60, "d_model": 16, "d_kv": 4, "d_ff": 24, "num_layers": 2, "num_heads": 3,
    "relative_attention_num_buckets": 8, "relative_attention_max_distance": 20, "decoder_start_token_id": 0,
}  # fmt: skip
V1_1 = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
KINDS = {"t5": {"num_decoder_layers": 1}, "t5_v1_1": V1_1, "t5_published": {**V1_1, "num_decoder_layers": 1}}
NEW_TOKENS = 12


def shaken(model, has_head, seed):
    """The model in evaluation mode, with scales that are not all 1, and a head that is not tied if it should not be."""
    generator = torch.Generator().manual_seed(seed)
    if has_head:  # transformers ties heads of new models only
        model.lm_head.weight = torch.nn.Parameter(torch.zeros_like(model.lm_head.weight))
    with torch.no_grad():
        for name, x in model.named_parameters():
            if "norm" in name or "relative" in name or "lm_head" in name:
                x += 0.3 * torch.randn(x.shape, generator=generator)
            if "EncDecAttention.v" in name or "EncDecAttention.o" in name:
                x *= 3  # otherwise rows differ little from each other
        model.shared.weight *= 0.3  # otherwise a tied head repeats the last token
    return model.eval()


def generated(model, ids, where):
    """Greedy tokens. The stop token is the one that ends rows at the most different steps."""
    options = {"do_sample": False, "max_new_tokens": NEW_TOKENS, "attention_mask": where}
    model.generation_config.eos_token_id = None
    rows = model.generate(ids, **options)[:, 1:].numpy()
    ends = [{int(np.argmax(row == token)) for row in rows if token in row} for token in range(1, 60)]
    model.config.eos_token_id = model.generation_config.eos_token_id = 1 + int(np.argmax([len(e) for e in ends]))
    return model.generate(ids, **options)[:, 1:].numpy()


def main():
    torch.manual_seed(2)
    rng = np.random.default_rng(0)
    given = {"ids": rng.integers(2, 60, (6, 30)), "decoder_ids": rng.integers(2, 60, (6, 25))}
    given["lengths"] = np.array([30, 17, 1, 8, 3, 22])
    given["labels"] = np.where(np.arange(25) < given["lengths"][:, None], given["decoder_ids"], -100)
    ids, decoder_ids, lengths, labels = [torch.tensor(x) for x in given.values()]
    where = (torch.arange(30) < lengths[:, None]).long()
    for seed, (name, more) in enumerate(KINDS.items(), 1):
        model = transformers.T5ForConditionalGeneration(transformers.T5Config(**SIZES, **more))
        model = shaken(model, name != "t5", seed)
        found = {}
        with torch.no_grad():
            found["tokens"] = generated(model, ids * where, where)
            for part, mask in {"logits": None, "padded_logits": where}.items():
                found[part] = model(input_ids=ids, decoder_input_ids=decoder_ids, attention_mask=mask).logits.numpy()
            found["loss"] = model(input_ids=ids, labels=labels, attention_mask=where).loss.numpy()
        model.save_pretrained(HERE / name)
        (HERE / name / "generation_config.json").unlink()
        if name == "t5_published":  # as the files of T5 1.1, which transformers 4 wrote
            config = json.loads((HERE / name / "config.json").read_text())
            new = ("scale_decoder_outputs", "dense_act_fn", "is_gated_act", "is_decoder", "dtype")
            config = {n: x for n, x in config.items() if n not in new} | {"tie_word_embeddings": False}
            (HERE / name / "config.json").write_text(json.dumps(config, indent=2) + "\n")
        np.savez(
            HERE / name / "computed.npz", **{n: x.astype("int32") for n, x in given.items()},
            **{n: x.astype("int32") if x.dtype.kind == "i" else x for n, x in found.items()},
        )  # fmt: skip


if __name__ == "__main__":
    main()
