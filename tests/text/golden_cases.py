"""The golden files, which `golden/make.py` wrote with the packages tokenizers and transformers."""

from __future__ import annotations

import json
import pathlib
from typing import Any

from atled import text

HERE = pathlib.Path(__file__).with_name("golden")
CASES: dict[str, list[dict[str, Any]]] = json.loads((HERE / "cases.json").read_text())
CHATS: list[dict[str, Any]] = json.loads((HERE / "chats.json").read_text())["gpt2"]
PACKAGE = ("wordpiece", "unigram")  # which need the package
OURS = [name for name in CASES if name not in PACKAGE]


def content(name: str = "gpt2") -> dict[str, Any]:
    """The content of a `tokenizer.json`."""
    return json.loads((HERE / f"{name}.json").read_text())


def tokenizer(name: str = "gpt2") -> Any:
    return text.load_tokenizer(HERE / f"{name}.json")


def put(there: pathlib.Path, found: Any = None, **files: Any) -> pathlib.Path:
    """Write the files of a model; in names, `__` stands for a dot."""
    (there / "tokenizer.json").write_text(json.dumps(content() if found is None else found))
    for name, value in files.items():
        (there / name.replace("__", ".")).write_text(value if isinstance(value, str) else json.dumps(value))
    return there
