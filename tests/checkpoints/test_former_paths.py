"""What was saved before fields and arguments got the names of 0.1 is read for as long as the old names are explained.

`golden/former` was written by the last commit with the old names, and is never written again.
"""

import pathlib
import shutil
import warnings

import numpy as np
import pytest

from atled import checkpoints, data, nn, optim, random, train
from atled.checkpoints.former_paths import former_paths

GOLDEN = pathlib.Path(__file__).with_name("golden") / "former"


class Net(nn.Module):
    def __init__(self, key):
        k = list(random.split(key, 6))
        self.table = nn.Embedding(11, 8, key=k[0])
        self.norm = nn.BatchNorm(8)
        self.attention = nn.MultiHeadAttention(8, 2, dropout_rate=0.1, key=k[1])
        self.cells = nn.RNN(nn.LSTMCell(8, 4, key=k[2]))
        self.both = nn.Bidirectional(nn.GRUCell(4, 3, key=k[3]), nn.GRUCell(4, 3, key=k[4]))
        self.stack = nn.Stack(lambda key: nn.LoRA(nn.Linear(6, 6, key=key), 2, key=key), 2, key=k[5])

    def __call__(self, ids, key=None):
        x = self.norm(self.table(ids))
        x = self.cells(self.attention(x, key=key))
        return self.stack(self.both(x))


def fresh():
    chain = optim.chain(optim.clip_by_global_norm(1.0), optim.LAMB(1e-2, weight_decay=0.1))
    return train.State(Net(random.key(5)), optim.average(chain, 0.9), key=random.key(6))


def test_a_training_state():
    state = checkpoints.load(GOLDEN / "fitted", template=fresh())
    want = np.load(GOLDEN / "fitted.npy")
    got = np.asarray(state.eval_model()(np.arange(6).reshape(3, 2)))
    assert int(state.step) == 3
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    kept = state.opt_state.inner[1].hyperparams
    assert {n: round(float(x), 4) for n, x in kept.items() if n in ("learning_rate", "weight_decay")} == {
        "learning_rate": 0.01, "weight_decay": 0.1,
    }  # fmt: skip


def test_the_state_of_a_data_iterator():
    found = checkpoints.manifest(GOLDEN / "fitted").metadata
    rows = data.arrays(np.arange(40).reshape(20, 2) % 11).shuffle(3).batch(4)
    assert next(rows.iterator().restore(found["data"])).tolist() == found["next"]


def loss(model, batch):
    return ((model(batch["x"])[:, 0] - batch["y"]) ** 2).mean()


def test_a_run_goes_on_from_there(tmp_path):
    """The optimizer is made again from a record with the old names, and the data goes on where it was."""
    shutil.copytree(GOLDEN / "resumed", tmp_path / "run")
    rng = np.random.RandomState(0)
    examples = [{"x": rng.randn(3 + i % 3).astype("float32"), "y": np.float32(i % 2)} for i in range(24)]
    rows = data.source(examples).shuffle(1).pad(6, fields=["x"], truncate=True).batch(4)
    adam = optim.AdamW(optim.cosine(1e-1, 12, warmup_steps=2), weight_decay=0.1)
    chain = optim.chain(optim.clip_by_global_norm(0.5), optim.add_decayed_weights(1e-3), adam)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # none says that the optimizer is another one
        state = train.fit(
            nn.Linear(6, 1, key=random.key(0)), loss, rows, optim.accumulate(chain, 2), steps=24, progress=False,
            checkpoint=checkpoints.Saver(tmp_path / "run", every=6),
        )  # fmt: skip
    assert [r["step"] for r in train.records(tmp_path / "run")] == list(range(1, 25))
    np.testing.assert_allclose(state.model.weight, np.load(GOLDEN / "resumed.npy"), rtol=1e-5, atol=1e-6)


def test_only_checkpoints_of_that_time_are_read_so(tmp_path):
    checkpoints.save(tmp_path, {"memory": np.ones(3)})
    with pytest.raises(checkpoints.CheckpointError, match=r"missing in the checkpoint: 1\n.*opt_state"):
        checkpoints.load(tmp_path, template={"opt_state": np.ones(3)})


def test_one_array_is_not_read_twice(tmp_path):
    """Two paths of today that may have been one path of before: the second one is missing."""
    checkpoints.save(tmp_path, {"base": {"out": np.ones(3)}})
    manifest = tmp_path / "manifest"
    manifest.write_bytes(manifest.read_bytes().replace(b"checkpoint 2 ", b"checkpoint 1 ", 1))
    assert (checkpoints.load(tmp_path, template={"layer": {"out_proj": np.zeros(3)}})["layer"]["out_proj"] == 1).all()
    with pytest.raises(checkpoints.CheckpointError, match="missing in the checkpoint: 1"):
        checkpoints.load(tmp_path, template={k: {"out_proj": np.zeros(3)} for k in ("base", "layer")})


def test_what_a_path_may_have_been():
    assert list(former_paths("model/weight")) == []
    assert set(former_paths("layer/out_proj/bias")) == {"base/out_proj/bias", "layer/out/bias", "base/out/bias"}
    assert "memory/hyper/limit" in former_paths("opt_state/hyperparams/max_norm")
    assert list(former_paths("max_norm")) == []  # only a hyperparameter was called so
