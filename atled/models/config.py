"""Sizes of models as frozen dataclasses, whose fields have the names of the published `config.json`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from atled.core import errors


@dataclasses.dataclass(frozen=True)
class PublishedConfig:
    """A configuration that is read from, and written as, the dict in `config.json`.

    `REQUIRED` has entries of the published dict that the architecture does not vary, with the values that it supports:
    another value is an error, since the numbers would be wrong. A missing entry has the first value.
    """

    REQUIRED: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    MODEL_TYPE: ClassVar[str] = ""

    @classmethod
    def from_published(cls, found: Mapping[str, Any]) -> Any:
        """The configuration of a published dict; entries without a field are ignored.

        >>> from atled import models
        >>> models.gpt2.Config.from_published({"n_layer": 2, "n_head": 3, "n_embd": 6}).n_layer
        2
        """
        for name, supported in cls.REQUIRED.items():
            if found.get(name, supported[0]) not in supported:
                raise ValueError(
                    errors.explained(
                        f"{cls.__name__}: {name} must be {' or '.join(map(repr, supported))}; got {found[name]!r}."
                    )
                )
        return cls(**{f.name: found[f.name] for f in dataclasses.fields(cls) if f.name in found})

    def published(self) -> dict[str, Any]:
        """The dict for `config.json`."""
        required = {name: supported[0] for name, supported in self.REQUIRED.items()}
        return {"model_type": self.MODEL_TYPE, **required, **dataclasses.asdict(self)}
