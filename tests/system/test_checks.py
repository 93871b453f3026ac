"""One check of a number in a range, whose sentence names the range as it is."""

from __future__ import annotations

from typing import Any

import pytest

from cellrisk.errors import InvalidInput
from cellrisk.system.checks import read_bins, read_numbers, require_within
from tests.counts.counter import refused
from tests.near import near


@pytest.mark.parametrize(
    ("ends", "inside", "outside", "says"),
    [
        ({"above": 0}, [1e-300, 1e300], [0, -1], "above 0"),
        ({"least": 0, "below": 1}, [0, 0.999], [-1e-300, 1], "from 0 to below 1"),
        ({"least": 0, "most": 1}, [0, 1], [-0.1, 1.0001], "from 0 to 1"),
        ({"above": 0, "below": 1}, [0.5], [0, 1], "above 0 and below 1"),
        ({"above": 0, "most": 100}, [100], [0, 101], "above 0 and up to 100"),
        ({"least": 2}, [2], [1.9], "from 2"),
    ],
)
def test_a_number_in_a_range(ends: dict[str, Any], inside: list[float], outside: list[Any], says: str) -> None:
    assert [require_within("x", value, **ends) for value in inside] == inside
    for value in [*outside, float("nan"), float("inf"), True, "1", None]:
        with pytest.raises(InvalidInput) as refused:
            require_within("x", value, **ends)
        assert str(refused.value).startswith(f"x must be a number {says}; got ")


def test_a_number_of_very_many_digits_is_not_told() -> None:
    with refused("range"):
        require_within("x", 10**5000, above=0)


def test_numbers_in_texts() -> None:
    assert read_numbers(" 1, 2.5") == near([1.0, 2.5])
    assert (read_bins("5"), read_bins("0/18/65")) == (5.0, [0.0, 18.0, 65.0])
    for text in ("", "wide", "5/", "1,2"):
        with refused("type"):
            read_bins(text, "each bin of column 'age'")
