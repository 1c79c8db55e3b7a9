import pytest
import small_language_model
from chat import main

from atled import data, models

pytest.importorskip("jinja2")


def test_it_answers(monkeypatch, capsys):
    monkeypatch.setattr(data.sets, "smollm2", lambda: None)
    monkeypatch.setattr(models, "load", small_language_model.load)
    answer = main("Why?<end>", max_new_tokens=12)
    assert answer and capsys.readouterr().out == answer + "\n"
