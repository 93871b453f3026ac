"""Bins: right-closed, exact at their edges, no record lost."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cellrisk.counts.columns import make_binning
from cellrisk.counts.counting import tabulate
from tests.counts.counter import refused
from tests.examples import examples


@pytest.mark.parametrize(
    ("width", "values", "expected"),
    [
        (5, [15, 15.5, 20, 20.0001], ["(10, 15]", "(15, 20]", "(20, 25]"]),
        (0.1, [1.1, 0.3, 0.7, 1.2], ["(0.2, 0.3]", "(0.6, 0.7]", "(1, 1.1]", "(1.1, 1.2]"]),
        (5, [0, -5, -0.1], ["(-10, -5]", "(-5, 0]"]),
        (0.07, [0.07, 0.14, 0.15], ["(0, 0.07]", "(0.07, 0.14]", "(0.14, 0.21]"]),
        (0.1, [1.7, math.nextafter(1.7, 2)], ["(1.6, 1.7]", "(1.7, 1.8]"]),
        (2.50, [2.5, 5], ["(0, 2.5]", "(2.5, 5]"]),
        (1000, [1000, 1001], ["(0, 1000]", "(1000, 2000]"]),
        (np.float64(0.2), [0.6, 0.61], ["(0.4, 0.6]", "(0.6, 0.8]"]),
        ([0, 18, 65], [-3, 0, 18, 19, 65, 66], ["up to 0", "(0, 18]", "(18, 65]", "above 65"]),
        ((0.5, 1.50), [0.5, 1.5, 2], ["up to 0.5", "(0.5, 1.5]", "above 1.5"]),
        (np.array([1, 2]), [1, 2], ["up to 1", "(1, 2]", "above 2"]),
    ],
)
def test_labels(width: Any, values: list[float], expected: list[str]) -> None:
    frame = pd.DataFrame({"id": range(len(values)), "y": values})
    table = tabulate(frame, "id", "y", bins={"y": width})
    assert list(table.attribute("y").levels.labels) == expected
    text = frame.astype(str)
    assert list(tabulate(text, "id", "y", bins={"y": width}).attribute("y").levels.labels) == expected


def test_narrow_floats_mean_what_they_say() -> None:
    frame = pd.DataFrame({"id": [1, 2], "y": np.array([1.1, 1.2], np.float32)})
    assert tabulate(frame, "id", "y", bins={"y": 0.1}).attribute("y").levels.labels == ("(1, 1.1]", "(1.1, 1.2]")


def test_every_multiple_closes_its_own_bin() -> None:
    """The k-th decimal multiple of the width is the right edge of bin k - 1, for every k."""
    for width in ("0.1", "0.3", "0.7", "0.05", "1.1", "2.5", "3", "7"):
        values = [float(Fraction(width) * k) for k in range(-300, 301)]
        frame = pd.DataFrame({"id": range(601), "y": values})
        table = tabulate(frame, "id", "y", bins={"y": float(width)})
        expected = [make_binning("x", float(width)).label(k - 1) for k in range(-300, 301)]
        assert list(table.attribute("y").levels.labels) == expected
        assert set(table.attribute("y").levels.totals.tolist()) == {1}


@settings(max_examples=examples(25))
@given(
    values=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30),
    width=st.sampled_from([0.1, 0.25, 1, 5, 7.5, 1e-3, 1e5]),
)
def test_every_value_lies_in_its_bin(values: list[float], width: float) -> None:
    values = [*values, 0.0, width]
    frame = pd.DataFrame({"id": range(len(values)), "y": values})
    levels = tabulate(frame, "id", "y", bins={"y": width}).attribute("y").levels
    expected: dict[str, int] = {}
    for value in values:
        guess = math.ceil(Fraction(value) / Fraction(str(width))) - 1
        edges = [
            (k, float(k * Fraction(str(width))), float((k + 1) * Fraction(str(width))))
            for k in range(guess - 1, guess + 2)
        ]
        index = next(k for k, low, high in edges if low < value <= high)
        label = make_binning("x", width).label(index)
        expected[label] = expected.get(label, 0) + 1
    assert dict(zip(levels.labels, levels.totals.tolist(), strict=True)) == expected


def test_binned_quasi_identifiers_and_missing_values(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("age,y\n16,a\n20,b\n21,a\n,a\n,b\n 18 ,a\n", encoding="utf-8")
    table = tabulate(path, "age", "y", bins={"age": 5})
    assert dict(table.profiles().rows()) == {(2, 1): 1, (1,): 1, (1, 1): 1}
    assert dict(tabulate(path, "age", "y", bins={"age": [0, 20]}).profiles().rows()) == {(2, 1): 1, (1,): 1, (1, 1): 1}


@pytest.mark.slow
def test_a_thousand_edges() -> None:
    frame = pd.DataFrame({"a": np.arange(-5, 1010) + 0.5, "y": ["u", "v"] * 507 + ["u"]})
    assert tabulate(frame, "a", "y", bins={"a": list(range(1000))}).n_cells == 1001


def test_declared_levels_of_a_binned_column() -> None:
    frame = pd.DataFrame({"a": [1, 1], "y": [3, 8]})
    table = tabulate(frame, "a", "y", bins={"y": 5}, levels={"y": ["(5, 10]", "(0, 5]", "(10, 15]"]})
    assert table.attribute("y").levels.labels == ("(5, 10]", "(0, 5]", "(10, 15]")
    assert table.attribute("y").levels.totals.tolist() == [1, 1, 0]


WIDTHS = [0, -5, math.nan, math.inf, 1e-30, True, "5", None]
EDGES: list[Any] = [[], [1], [1, 1], [2, 1], [0, math.inf], [0, math.nan], [0, "9"], list(range(1001))]


@pytest.mark.parametrize("given", WIDTHS + EDGES)
def test_refused(given: Any) -> None:
    with refused("bins") as refusal:
        make_binning("age", given)
    assert "'age'" in str(refusal.value)
