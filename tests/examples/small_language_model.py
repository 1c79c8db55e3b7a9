"""A stand-in for SmolLM2, which is not everywhere: a small Llama without training, whose tokens are bytes."""

from atled import models, random, text
from atled.text.byte_pair import byte_alphabet

END = 256


def load(path=None):
    sizes = {"num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2}
    config = models.llama.Config(END + 1, 32, 64, **sizes, tie_word_embeddings=True, initializer_range=0.3)
    end = text.AddedToken("<end>", END, is_special=True)
    template = "{% for m in messages %}{{ m.role }}: {{ m.content }}<end>{% endfor %}"
    settings = text.Settings(end_tokens=frozenset([END]), chat_template=template)
    vocab = {character: byte for byte, character in enumerate(byte_alphabet())}
    tokenizer = text.ByteLevelBPE(vocab, [], added=[end], settings=settings)
    return models.llama.Model(config, key=random.key(0)).eval(), tokenizer
