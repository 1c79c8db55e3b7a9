"""A question to SmolLM2, a language model of 135 million parameters; the answer appears as it is written.

atled data smollm2
python examples/chat.py "Why is the sky blue?"
"""

import sys
import types

from atled import data, generate, models, random


def main(question, max_new_tokens=200):
    model, tokenizer = models.load(data.sets.smollm2())
    # The prompt of a chat is a list of messages; the question cannot contain special tokens.
    chat = types.SimpleNamespace(encode=tokenizer.chat, decode=tokenizer.decode, end_tokens=tokenizer.end_tokens)
    messages = [{"role": "user", "content": question}]
    sampling, answer = generate.Sampling(temperature=0.6, top_p=0.95), ""
    for piece in generate.stream(
        model, chat, messages, max_new_tokens=max_new_tokens, sampling=sampling, key=random.key(0)
    ):
        print(piece, end="", flush=True)
        answer += piece
    print()
    return answer


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]) or "Why is the sky blue?")
