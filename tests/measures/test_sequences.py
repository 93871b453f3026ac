"""Ways to convolve, one answer."""

from __future__ import annotations

import numpy as np
import pytest

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
