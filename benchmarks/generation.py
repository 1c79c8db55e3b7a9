"""Decoding of language models: tokens per second against PyTorch's `generate`, and llama.cpp if it is installed.

`python -m benchmarks.generation` needs `torch`, `transformers` and `gguf`; `atled data smollm2` downloads SmolLM2. Each
turn decodes greedily, with a key-value cache; the turns of the libraries alternate, and the best of each counts. The
copy rate of the memory bounds the rate at batch 1, because each token reads all weights.
"""

from __future__ import annotations

import argparse
import importlib.util
import pathlib
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from atled import data, generate, models, nn, random
from benchmarks.measure import once_each

NEW, PROMPT, VOCABULARY = 64, 32, 49000


def load(name: str, dtype: str) -> tuple[Any, Any, pathlib.Path | None]:
    """A model in both libraries, with the same weights, and its file if it is GGUF."""
    import torch
    import transformers

    kind = getattr(torch, dtype)
    if name == "smollm2":
        path = data.sets.smollm2()
        ours, _ = models.load(path, dtype=dtype)
        theirs = transformers.AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=kind)
        return ours, theirs.eval(), path
    made = models.gpt2.Model(models.gpt2.SIZES["gpt2"], key=random.key(0)).eval()
    with tempfile.TemporaryDirectory() as place:
        models.save(place, made)
        ours, _ = models.load(place, dtype=dtype)
        return ours, transformers.AutoModelForCausalLM.from_pretrained(place, dtype=kind).eval(), None


def torch_turn(model: Any, prompts: np.ndarray) -> Callable[[], float]:
    """Decode once with PyTorch's `generate`; seconds."""
    import torch

    ids = torch.tensor(prompts)
    how = {"max_new_tokens": NEW, "min_new_tokens": NEW, "do_sample": False, "pad_token_id": 0}

    def turn() -> float:
        start = time.perf_counter()
        with torch.inference_mode():
            out = model.generate(ids, attention_mask=torch.ones_like(ids), **how)
        assert out.shape[1] == PROMPT + NEW
        return time.perf_counter() - start

    return turn


def our_turn(model: Any, prompts: np.ndarray) -> Callable[[], float]:
    def turn() -> float:
        start = time.perf_counter()
        rows = generate.tokens(model, list(prompts), max_new_tokens=NEW)
        assert all([len(row) == NEW for row in rows])
        return time.perf_counter() - start

    return turn


def llama_turn(path: pathlib.Path, prompts: np.ndarray) -> Callable[[], float]:
    from llama_cpp import Llama

    model = Llama(str(path), n_ctx=256, verbose=False)

    def turn() -> float:
        start = time.perf_counter()
        model.reset()
        tokens = model.generate(prompts[0].tolist(), temp=0.0)
        for _ in range(NEW):
            next(tokens)
        return time.perf_counter() - start

    return turn


def copy_rate() -> float:
    """Bytes per second of reading memory: the sum of an array that no cache holds."""
    import torch

    x = torch.ones(1 << 27)

    def turn() -> float:
        start = time.perf_counter()
        x.sum()
        return time.perf_counter() - start

    return x.nbytes / once_each({"read": turn}, 10)["read"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["smollm2", "gpt2"])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    rate = copy_rate()
    print(f"reading memory: {rate / 1e9:.1f} GB/s")
    for name in options.models:
        for dtype in ("float32", "bfloat16"):
            ours, theirs, path = load(name, dtype)
            for batch in (1, 8):
                prompts = np.random.default_rng(0).integers(0, VOCABULARY, (batch, PROMPT))
                turns = {"atled": our_turn(ours, prompts), "torch": torch_turn(theirs, prompts)}
                if batch == 1 and dtype == "float32":
                    turns["int8"] = our_turn(nn.quantize(ours), prompts)
                    if path is not None and importlib.util.find_spec("llama_cpp"):
                        turns["llama.cpp"] = llama_turn(path, prompts)
                for turn in turns.values():
                    turn()
                best = once_each(turns, options.rounds, limit=240)
                rates = {k: batch * NEW / seconds for k, seconds in best.items()}
                row = ", ".join([f"{k} {r:.1f} ({r / rates['torch']:.2f})" for k, r in rates.items()])
                print(f"{name} {dtype} batch {batch}: tokens/s (of PyTorch's): {row}", flush=True)


if __name__ == "__main__":
    main()
