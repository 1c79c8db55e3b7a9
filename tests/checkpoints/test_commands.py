"""`atled checkpoint …`: what it prints, and what it ends with."""

import subprocess
import sys

import pytest

import atled.numpy as jnp
from atled import checkpoints, nn, random
from atled.__main__ import main


@pytest.fixture
def run(tmp_path):
    with checkpoints.Saver(tmp_path / "run") as saver:
        for step in (1, 2):
            saver.save(step, {"w": jnp.full((2, 3), step), "b": jnp.ones(2)}, metrics={"loss": 1 / step})
    return tmp_path / "run"


def said(capsys, *args):
    code = main(["checkpoint", *map(str, args)])
    both = capsys.readouterr()
    return code, both.out + both.err


def test_ls(run, capsys):
    code, text = said(capsys, "ls", run)
    assert code == 0 and "step          2      2 arrays       32 B  loss 0.5" in text
    code, text = said(capsys, "ls", run / "step-00000001")
    assert code == 0 and "int32[2,3]" in text and "2 arrays, 32 B, 1 files" in text
    code, text = said(capsys, "ls", run / "nothing")
    assert code == 2 and "no checkpoint" in text and "runpy" not in text


def test_verify(run, capsys):
    code, text = said(capsys, "verify", run)
    assert code == 0 and text.count("intact: 32 B, all checksums match") == 2
    file = next((run / "step-00000002").glob("*.data"))
    file.write_bytes(bytes([file.read_bytes()[0] ^ 1]) + file.read_bytes()[1:])
    code, text = said(capsys, "verify", run)
    assert code == 1 and "damaged" in text and "1 of 2 arrays" in text
    file.write_bytes(b"")
    code, text = said(capsys, "verify", run)
    assert code == 1 and "step-00000002" in text and "2 of 2 arrays" in text
    code, text = said(capsys, "ls", run)
    assert "step          2" in text and "is damaged" in text


def test_diff(run, capsys, tmp_path):
    assert said(capsys, "diff", run, run / "step-00000002") == (0, "no differences in 2 arrays\n")
    code, text = said(capsys, "diff", run / "step-00000001", run)
    assert code == 1 and text == "≠ w: different values, or different pieces\n"
    for name, width in (("one", 2), ("two", 4)):
        checkpoints.save(tmp_path / name, nn.Linear(3, width, key=random.key(0)))
    code, text = said(capsys, "diff", tmp_path / "one", tmp_path / "two")
    assert code == 1 and "~ weight: float32[3,2] → float32[3,4]" in text and "~ setting out_features: 2 → 4" in text
    code, text = said(capsys, "diff", tmp_path / "one", run)
    assert "- bias: float32[2]" in text and "+ w: int32[2,3]" in text


def test_export(run, capsys, tmp_path):
    assert said(capsys, "export", run, tmp_path / "x.safetensors")[0] == 0
    assert checkpoints.safetensors.load(tmp_path / "x.safetensors")["w"].tolist() == [[2, 2, 2], [2, 2, 2]]


def test_export_gives_every_array_a_name(capsys, tmp_path):
    checkpoints.save(tmp_path / "c", {"a/b": jnp.ones(1), "c": {"d": jnp.ones(1)}})
    assert said(capsys, "export", tmp_path / "c", tmp_path / "x.safetensors")[0] == 0
    assert sorted(checkpoints.safetensors.load(tmp_path / "x.safetensors")) == ["a/b", "c.d"]
    checkpoints.save(tmp_path / "c", {"a": {"b": jnp.ones(1)}, "a.b": jnp.ones(1)})
    code, text = said(capsys, "export", tmp_path / "c", tmp_path / "y.safetensors")
    assert code == 2 and "two arrays would have the name a.b" in text and not (tmp_path / "y.safetensors").exists()


def test_as_a_program(run):
    done = subprocess.run([sys.executable, "-m", "atled", "checkpoint", "ls", run], capture_output=True, text=True)
    assert done.returncode == 0 and "loss 0.5" in done.stdout
    done = subprocess.run([sys.executable, "-m", "atled"], capture_output=True, text=True)
    assert done.returncode == 2 and "checkpoint" in done.stderr
