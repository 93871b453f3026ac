"""Ways to convolve, one answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import fft

from cellrisk.risk.measures import sequences
from cellrisk.risk.measures.sequences import convolve, convolve_fast, join_fast


@pytest.mark.parametrize(("long", "short"), [(5, 1), (40, 64), (300, 64), (300, 65), (1000, 700)])
@pytest.mark.parametrize("limit", [1, 37, 900, 5000])
def test_agrees_with_polynomial_product(long: int, short: int, limit: int) -> None:
    generator = np.random.default_rng(long + short)
    x, y = generator.random((3, long, 2)), generator.random((3, short, 2))
    for way in (convolve, convolve_fast):
        for first, second in ((x, y), (y, x)):
            found = way(first, second, limit)
            for cell in range(3):
                for noise in range(2):
                    full = np.polymul(x[cell, ::-1, noise], y[cell, ::-1, noise])[::-1][:limit]
                    assert found[cell, :, noise] == pytest.approx(full, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("none", [(1, 1), (64, 200), (200, 64), (65, 65), (300, 90)])
@pytest.mark.parametrize("some", [(70, 500), (500, 70), (400, 400), (3, 5)])
@pytest.mark.parametrize("limit", [40, 450, 5000])
def test_sequences_are_joined_as_their_convolutions_are_summed(
    none: tuple[int, int], some: tuple[int, int], limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(sum(none) + sum(some))
    monkeypatch.setattr(sequences, "TRANSFORMED_AT_ONCE", 4000)  # few of the cells at a time
    x, y = ([generator.random((7, length, 2)) for length in lengths] for lengths in zip(none, some, some, strict=True))
    kept = [part.copy() for part in (*x, *y)]
    found = join_fast(x, y, limit)
    assert all(np.array_equal(part, was) for part, was in zip((*x, *y), kept, strict=True))
    assert found[0] == pytest.approx(convolve(x[0], y[0], limit), rel=1e-12, abs=1e-12)
    for place in (1, 2):
        theirs = np.zeros((7, max(limit, 2000), 2))
        for part in (convolve(x[place], y[0], limit), convolve(x[0], y[place], limit)):
            theirs[:, : part.shape[1]] += part
        longest = min(limit, max(some[0] + none[1], none[0] + some[1]) - 1)
        assert found[place] == pytest.approx(theirs[:, :longest], rel=1e-12, abs=1e-12)


def test_sequences_longer_than_what_is_computed_at_once() -> None:
    """Two cells, each longer than the processor's cache takes."""
    x = np.random.default_rng(1).random((2, 40_000, 1))
    y = np.array([[[1.0], [2.0]], [[3.0], [0.5]]])
    for cell, found in enumerate(convolve(x, y, 40_000)):
        own = x[cell, :, 0]
        np.testing.assert_allclose(found[:, 0], y[cell, 0] * own + y[cell, 1] * np.append(0.0, own[:-1]), rtol=1e-12)


def test_the_careful_way_keeps_small_terms() -> None:
    """Terms 200 orders of magnitude below the largest are right to the last digits."""
    terms = np.exp(-np.arange(400.0))[None, :, None]
    found = convolve(terms, terms, 400)[0, :, 0]
    exact = (np.arange(400) + 1) * np.exp(-np.arange(400.0))
    assert found == pytest.approx(exact, rel=1e-12, abs=0)
    assert (convolve_fast(terms, terms, 400) >= 0).all()


def test_the_fast_way_keeps_small_terms_where_one_sequence_is_short() -> None:
    """Up to 64 terms are shifted and added, whichever of the two is the short one."""
    long, short = np.exp(-np.arange(400.0))[None, :, None], np.exp(-np.arange(64.0))[None, :, None]
    exact = np.minimum(np.arange(400) + 1, 64) * np.exp(-np.arange(400.0))
    for first, second in ((long, short), (short, long)):
        assert convolve_fast(first, second, 400)[0, :, 0] == pytest.approx(exact, rel=1e-12, abs=0)


@pytest.mark.parametrize(
    ("none", "some", "by_parts"),
    [
        ((64, 200), (300, 300), True),
        ((200, 64), (300, 300), True),
        ((65, 70), (3, 4), False),
        ((70, 65), (3, 4), False),
    ],
)
def test_sequences_are_joined_by_one_transform_each_where_both_are_long(
    none: tuple[int, int], some: tuple[int, int], by_parts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no label survives: with 64 terms or fewer on either side, three convolutions by themselves are faster."""
    calls: list[int] = []

    def count(x: Any, y: Any, limit: int) -> Any:
        calls.append(limit)
        return convolve_fast(x, y, limit)

    monkeypatch.setattr(sequences, "convolve_fast", count)
    x, y = ([np.ones((3, width, 2)) for width in widths] for widths in zip(none, some, strict=True))
    join_fast(x, y, 1000)
    assert calls == ([1000] * 3 if by_parts else [])


@pytest.mark.parametrize("length", [20, 90])
def test_a_sequence_without_its_counterpart_is_refused(length: int) -> None:
    part = np.ones((1, length, 1))
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        join_fast([part, part], [part], 500)


@pytest.mark.parametrize(("long", "short"), [(67, 66), (68, 68)])
@pytest.mark.parametrize(("at_once", "rows"), [(4000, [14, 14, 2]), (1, [1] * 30)])
def test_transforms_are_no_longer_than_the_convolution(
    long: int, short: int, at_once: int, rows: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """132 or 135 terms, for which 135 is the next length that is fast: 4,000 numbers are 14 cells under two noises."""
    asked: list[tuple[int, int]] = []
    transform = fft.rfft

    def note(terms: Any, length: int, axis: int) -> Any:
        asked.append((len(terms), length))
        return transform(terms, length, axis=axis)

    monkeypatch.setattr(sequences.fft, "rfft", note)
    monkeypatch.setattr(sequences, "TRANSFORMED_AT_ONCE", at_once)
    x, y = np.ones((30, long, 2)), np.ones((30, short, 2))
    fast = fft.next_fast_len(long + short - 1, real=True)
    join_fast([x, x], [y, y], 1000)
    assert asked == [(number, fast) for number in rows for _ in range(4)]
    asked.clear()
    convolve_fast(x, y, 1000)
    assert {length for _, length in asked} == {fast}
