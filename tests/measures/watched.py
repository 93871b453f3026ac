"""Functions that are watched: what they are asked for, and how often."""

from __future__ import annotations

from typing import Any

import pytest


class Watched:
    """A function that notes what it is given, and goes on."""

    def __init__(self, patch: pytest.MonkeyPatch, module: Any, name: str) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.function = getattr(module, name)
        patch.setattr(module, name, self)

    def __call__(self, *given: Any) -> Any:
        self.calls.append(given)
        return self.function(*given)
