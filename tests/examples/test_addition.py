import numpy as np
from addition import Config, carries, examples, main


def test_it_learns(tmp_path):
    picture = tmp_path / "addition.png"
    config = Config(
        steps=600,
        batch=64,
        rate=1e-2,
        features=64,
        digits=2,
        sums=4000,
        run=str(tmp_path / "run"),
        picture=str(picture),
    )
    found = main(config)
    assert found["model"] > 0.6 > found["columns"] + 0.1
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_carries():
    a, b = np.array([1, 5, 99, 50, 250]), np.array([2, 5, 1, 50, 760])
    assert carries(a, b, 3).tolist() == [0, 1, 2, 1, 2]


def test_answers_begin_with_their_last_digit():
    question, answer = examples(np.array([12]), np.array([9]), 2)
    assert question.tolist() == [[1, 2, 10, 9, 11]] and answer.tolist() == [[1, 2, 11]]
