"""Refusals, matched by their code: it stays when the words change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from cellrisk.errors import CellriskError


@contextmanager
def refused(code: str, *words: str) -> Iterator[Any]:
    """Expect a refusal with this code, and with these words where they say something more."""
    with pytest.raises(CellriskError) as caught:
        yield caught
    assert caught.value.code == code, str(caught.value)
    assert [word for word in words if word not in str(caught.value)] == []
