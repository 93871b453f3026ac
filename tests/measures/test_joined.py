"""Cells of many labels, worked on together: the same numbers as each cell alone, and as a sum over all labels."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from cellrisk import Geometric, Laplace, Profiles
from cellrisk.noise.channel import AdditiveChannel
from cellrisk.noise.distributions import InfiniteNoise, Noise
from cellrisk.risk.attacks import GUESSES
from cellrisk.risk.attacks.confidence import looks_homogeneous
from cellrisk.risk.measures import FORMS, Local, Marginal
from cellrisk.risk.measures.measure import WIDER, join_blocks
from cellrisk.risk.measures.sizes import NegativeBinomialSizes, PoissonSizes
from cellrisk.risk.sweep import NO_NOISE
from tests.near import RELATIVE

N_LEVELS = 60
NOISES = (Geometric(epsilon=0.4).noise, Laplace(epsilon=1.5).noise)


def near(found: float, expected: float) -> None:
    """The risk of sixty labels may be very small: its digits count all the same."""
    assert found == pytest.approx(expected, rel=RELATIVE, abs=0.0)


def made_cells(number: int = 40) -> list[list[int]]:
    """Cells of 1 to 60 labels, few of them with equally many."""
    generator = np.random.default_rng(3)
    cells = np.zeros((number, N_LEVELS), int)
    for row, labels in enumerate(generator.integers(1, N_LEVELS + 1, number)):
        cells[row, :labels] = generator.geometric(0.4, labels)
    return cells.tolist()


def shown_alone(cell: Sequence[int], noise: Noise, levels: Sequence[int]) -> list[float]:
    """How likely each of these labels survives and all others vanish, by the product over all others."""
    q = [float(noise.p_zero(float(count), 0.5)) for count in cell]
    s = [float(noise.p_positive(float(count), 0.5)) for count in cell]
    return [s[k] * math.prod(q[j] for j in range(len(cell)) if j != k) for k in levels]


def test_every_cell_is_there_once_and_few_blocks_are_left() -> None:
    profiles = Profiles.from_cells(made_cells(), N_LEVELS)
    joined = list(join_blocks(profiles))
    assert len(joined) < len(profiles.blocks) / 2
    rows = [
        (tuple(count for count in counts if count), cells)
        for block in joined
        for counts, cells in zip(block.counts.tolist(), block.cells.tolist(), strict=True)
    ]
    assert sorted(rows) == sorted(profiles.rows())
    for block in joined:
        present = np.count_nonzero(block.counts, axis=1)
        assert present.max() <= max(16, WIDER * present.min())
        assert block.records.tolist() == (block.cells * block.counts.sum(axis=1)).tolist()


def test_zeros_are_given_to_those_that_take_them_alone() -> None:
    """A guess looks at the labels that a cell has; local and marginal risk take a count of 0 for one that it lacks."""
    profiles, channel = Profiles.from_cells(made_cells(), N_LEVELS), AdditiveChannel(NOISES)
    law = PoissonSizes(3.0, truncated=True, source="given")
    for measure, zeros in ((Local(), True), (Marginal(law), True), *((guess(), False) for guess in GUESSES.values())):
        assert any((block.counts == 0).any() for block in measure.pieces(profiles, channel)) == zeros


@pytest.mark.parametrize("noise", NOISES, ids=["geometric", "laplace"])
def test_local_risk_is_the_sum_over_labels(noise: Noise) -> None:
    cells = made_cells()
    found = Local().average(Profiles.from_cells(cells, N_LEVELS), AdditiveChannel((noise,)))
    exact, tight, records = [], [], []
    for cell in cells:
        present = [k for k, count in enumerate(cell) if count]
        alone = shown_alone(cell, noise, present)
        exact.append(math.fsum(alone))
        tight.append(math.fsum(p * cell[k] for p, k in zip(alone, present, strict=True)) / sum(cell))
        records.append(sum(cell))
    for form, risks in (("exact", exact), ("tight", tight)):
        near(float(found[form, "uniform"][0]), math.fsum(risks) / len(cells))
        weighted = math.fsum(risk * n for risk, n in zip(risks, records, strict=True))
        near(float(found[form, "records"][0]), weighted / sum(records))


def test_cells_that_look_homogeneous_are_the_sum_over_all_labels() -> None:
    cells, noise = made_cells(), NOISES[0]
    looks = [math.fsum(shown_alone(cell, noise, range(N_LEVELS))) for cell in cells]
    found = looks_homogeneous(Profiles.from_cells(cells, N_LEVELS), AdditiveChannel((noise,)))[:, 0]
    near(float(found[0]), math.fsum(looks))
    near(float(found[1]), math.fsum(sum(cell) * each for cell, each in zip(cells, looks, strict=True)))


@pytest.mark.parametrize(
    "sizes",
    [
        PoissonSizes(3.0, truncated=True, source="given"),
        NegativeBinomialSizes(0.7, 4.0, truncated=True, source="given"),
    ],
    ids=["poisson", "negative binomial"],
)
@pytest.mark.parametrize("weights", ["uniform", "records"])
def test_together_as_each_cell_alone(sizes: PoissonSizes | NegativeBinomialSizes, weights: str) -> None:
    """For local and marginal risk, under noise that is finite, without bound, and none."""
    cells = made_cells()
    for measure in (Local(), Marginal(sizes)):
        for noise in (*NOISES, InfiniteNoise(), NO_NOISE):
            channel = AdditiveChannel((noise,))
            together = measure.average(Profiles.from_cells(cells, N_LEVELS), channel)
            alone = [measure.average(Profiles.from_cells([cell], N_LEVELS), channel) for cell in cells]
            share = [1.0 if weights == "uniform" else float(sum(cell)) for cell in cells]
            for form in FORMS:
                parts = [float(each[form, weights][0]) * part for each, part in zip(alone, share, strict=True)]
                near(float(together[form, weights][0]), math.fsum(parts) / sum(share))


def test_many_noises_at_once_as_each_alone() -> None:
    profiles = Profiles.from_cells(made_cells(), N_LEVELS)
    noises = tuple(Laplace(epsilon=float(epsilon)).noise for epsilon in np.geomspace(0.1, 10, 70))
    together = Local().average(profiles, AdditiveChannel(noises))["tight", "records"]
    for place in (0, 33, 69):
        near(
            float(together[place]),
            float(Local().average(profiles, AdditiveChannel((noises[place],)))["tight", "records"][0]),
        )
