"""A row for each optimizer. Every law holds for every row."""

from atled import optim

CASES = {
    "SGD": optim.SGD(0.1),
    "SGD, momentum": optim.SGD(0.1, momentum=0.9),
    "SGD, nesterov": optim.SGD(optim.cosine(0.1, 50), momentum=0.9, nesterov=True),
    "Adam": optim.Adam(1e-2),
    "AdamW": optim.AdamW(optim.linear(1e-2, 30, warmup=5), decay=0.1, decays="**/weight"),
    "Chain": optim.chain(optim.clip(0.5), optim.AdamW(1e-2)),
    "Clip": optim.chain(optim.clip(0.5), optim.SGD(0.1)),
    "Groups": optim.groups({"first": optim.Adam(1e-2), "second/bias": None, "**": optim.SGD(0.1)}),
}
