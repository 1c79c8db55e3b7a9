"""Write the golden files of Llama, Mistral and GPT-2 with `transformers` (not run by the tests).

    python tests/models/golden/make_decoders.py

Each directory has a small random model as `save_pretrained` writes it, logits for two rows of integers, and what
`generate` adds to prompts of different lengths: greedily, and with four beams.
"""

import json
import pathlib

import numpy as np
import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
)

HERE = pathlib.Path(__file__).parent
SIZES = {
    "vocab_size": 60, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
    "initializer_range": 0.3, "eos_token_id": 2,
}  # fmt: skip
LONG = {
    "rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}  # fmt: skip
MODELS = {
    "llama": (LlamaForCausalLM, LlamaConfig(**SIZES, num_key_value_heads=2)),
    "llama_scaled": (
        LlamaForCausalLM,
        LlamaConfig(
            **SIZES, head_dim=8, attention_bias=True, mlp_bias=True, tie_word_embeddings=True, rope_parameters=LONG
        ),
    ),
    "llama_linear": (
        LlamaForCausalLM,
        LlamaConfig(**SIZES, rope_parameters={"rope_type": "linear", "rope_theta": 500.0, "factor": 4.0}),
    ),
    "mistral": (MistralForCausalLM, MistralConfig(**SIZES, num_key_value_heads=2, sliding_window=6)),
    "gpt2": (
        GPT2LMHeadModel,
        GPT2Config(vocab_size=60, n_positions=128, n_embd=16, n_layer=2, n_head=4, initializer_range=0.3,
                   eos_token_id=2, bos_token_id=2),
    ),
}  # fmt: skip


def main() -> None:
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    prompts = [rng.integers(3, 60, rng.integers(1, 30)).tolist() for _ in range(20)]
    for name, (cls, config) in MODELS.items():
        model = cls(config).eval()
        model.generation_config.pad_token_id = 2
        model.save_pretrained(HERE / name)
        (HERE / name / "generation_config.json").unlink(missing_ok=True)
        ids = rng.integers(0, 60, (2, 50))
        with torch.no_grad():
            np.savez(HERE / name / "logits.npz", ids=ids.astype("int32"), logits=model(torch.tensor(ids)).logits)
            rows = {}
            for mode, options in {"greedy": {}, "beams": {"num_beams": 4, "num_return_sequences": 4}}.items():
                rows[mode] = []
                for prompt in prompts:
                    out = model.generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=16, **options)
                    rows[mode].append(out[:, len(prompt) :].tolist())
        (HERE / name / "generated.json").write_text(json.dumps({"prompts": prompts, **rows}))


if __name__ == "__main__":
    main()
