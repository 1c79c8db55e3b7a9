"""Array paths in checkpoints of manifest version 1, which use names from before 0.1. To be removed in 0.2."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

FIELDS = {  # former names by current name
    "opt_state": "memory", "hyperparams": "hyper", "query_proj": "query", "key_proj": "key", "value_proj": "value",
    "out_proj": "out", "layer": "base", "input_conv": "input", "state_conv": "state",
}  # fmt: skip
NUMBERS = {  # former names of optimizer hyperparameters
    "learning_rate": "rate", "weight_decay": "decay", "max_norm": "limit", "clip_value": "limit", "clipping": "limit",
    "rho": "b", "trust_coefficient": "trust", "decay_rate": "power", "clipping_threshold": "limit",
    "min_parameter_scale": "small", "adam_learning_rate": "adam_rate", "adam_weight_decay": "adam_decay",
    "shampoo_beta": "shampoo", "estim_lr_coef": "growth", "slow_step_size": "share",
}  # fmt: skip


def former_paths(path: str) -> Iterator[str]:
    """The paths that an array may have in a checkpoint of version 1.

    >>> list(former_paths("attention/query_proj/weight"))
    ['attention/query/weight']
    >>> "memory/hyper/rate" in former_paths("opt_state/hyperparams/learning_rate")
    True
    """
    parts = path.split("/")
    is_number = len(parts) > 1 and parts[-2] in ("hyperparams", "scheduled")
    tables = [FIELDS] * (len(parts) - 1) + [NUMBERS if is_number else FIELDS]
    choices = [(part, table[part]) if part in table else (part,) for part, table in zip(parts, tables, strict=True)]
    for chosen in itertools.islice(itertools.product(*choices), 1, 4096):
        yield "/".join(chosen)
