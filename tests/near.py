"""Equality of numbers that two ways of computing should agree on.

Sums are added up in another order on another processor, or with other neighbours in an array, so their last digits
differ. One tolerance for all such comparisons: far above rounding, far below any digit that is printed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

RELATIVE = 1e-10
ABSOLUTE = 1e-12


def near(expected: Any) -> Any:
    """What equals a number, or a sequence, mapping or array of them, but for rounding."""
    return pytest.approx(expected, rel=RELATIVE, abs=ABSOLUTE)


def near_epsilon(expected: Any) -> Any:
    """What equals an epsilon that was searched for, or a risk there: an edge is found to one part in a million."""
    return pytest.approx(expected, rel=1e-6, abs=0)


def same(found: Any, expected: Any) -> bool:
    """Whether two documents or results are the same: their words exactly, their numbers but for rounding.

    >>> same({"risk": [0.1 + 0.2, "high"]}, {"risk": [0.3, "high"]}), same({"risk": 0.3}, {"risk": 0.31})
    (True, False)
    """
    if dataclasses.is_dataclass(expected) and not isinstance(expected, type):
        return type(found) is type(expected) and same(_compared(found), _compared(expected))
    if isinstance(expected, Mapping):
        return (
            isinstance(found, Mapping)
            and list(found) == list(expected)
            and all(same(found[key], expected[key]) for key in expected)
        )
    if isinstance(expected, np.ndarray):
        return isinstance(found, np.ndarray) and same(found.tolist(), expected.tolist())
    if isinstance(expected, (list, tuple)):
        return (
            isinstance(found, (list, tuple))
            and len(found) == len(expected)
            and all(same(one, other) for one, other in zip(found, expected, strict=True))
        )
    numbers = [one for one in (found, expected) if isinstance(one, (int, float))]
    if len(numbers) == 2 and any(isinstance(one, float) for one in numbers):
        return bool(found == pytest.approx(expected, rel=RELATIVE, abs=ABSOLUTE, nan_ok=True))
    return bool(found == expected)


def _compared(result: Any) -> dict[str, Any]:
    return {each.name: getattr(result, each.name) for each in dataclasses.fields(result) if each.compare}
