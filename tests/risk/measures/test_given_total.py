"""Cells of 10^5 records and a thousand categories: transforms against sums that share no code with them."""

from __future__ import annotations

import math
from collections import Counter

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from cellrisk.counts.profiles import Block, Profiles
from cellrisk.noise.channel import AdditiveChannel, CountChannel
from cellrisk.noise.distributions import DiscreteGaussianNoise, GaussianNoise, GeometricNoise, LaplaceNoise, Noise
from cellrisk.risk.measures.dirichlet import Dirichlet
from cellrisk.risk.measures.given_total import Expected, Shrinkage
from cellrisk.system.arrays import Floats, Integers

ALPHA = (0.06, 0.98, 0.2, 0.3, 0.42, 1.4, 0.4)


def risk_by_size(prior: Dirichlet, sizes: Integers, channel: CountChannel) -> dict[str, Floats]:
    """The exact and tight shrinkage risk of a cell of each size."""
    block = Block(sizes[:, None], np.ones(len(sizes), np.int64), sizes)
    return Shrinkage(prior).risk(block, len(prior.mean), channel, ("exact", "tight"))


def rising(alpha: float, last: int) -> Floats:
    """log of alpha (alpha+1) ... (alpha+m-1) / m!, m from 0 to last, in extended precision, a factor at a time."""
    m = np.arange(last, dtype=np.longdouble)
    return np.concatenate([[np.longdouble(0)], np.cumsum(np.log((np.longdouble(alpha) + m) / (m + 1)))])


def geometric_oracle(alpha: tuple[float, ...], n: int, scale: float) -> tuple[float, float]:
    """Under geometric noise q(m) = a^m/(1+a), so that all labels but one are one negative binomial: a single sum."""
    m = np.arange(n + 1, dtype=np.longdouble)
    a = -1 / np.longdouble(scale)
    survive = 1 - np.exp(a * m) / (1 + np.exp(a))
    every = math.fsum(alpha)
    total = rising(every, n)[n]
    exact = tight = np.longdouble(0)
    for label, times in Counter(alpha).items():
        terms = np.exp(rising(label, n) + (rising(every - label, n) + a * m)[::-1] - total)[1:] * survive[1:]
        exact, tight = exact + times * terms.sum(), tight + times * (terms * m[1:]).sum() / n
    others = (1 + np.exp(a)) ** (1 - len(alpha))
    return float(exact * others), float(tight * others)


def expected_oracle(cell: tuple[int, ...], scale: float) -> tuple[mp.mpf, mp.mpf]:
    """Geometric noise: (1+a)^-(K-1) sum_k [ (p_k + a(1-p_k))^n - a^n (1-p_k)^n a/(1+a) - a^n/(1+a) ]."""
    n, a = sum(cell), mp.exp(-1 / mp.mpf(scale))
    shares = [mp.mpf(count) / n for count in cell if count]
    others = (1 + a) ** -(len(cell) - 1)
    exact = others * mp.fsum(
        (p + a * (1 - p)) ** n - a**n * (1 - p) ** n * a / (1 + a) - a**n / (1 + a) for p in shares
    )
    tight = others * mp.fsum(p * ((p + a * (1 - p)) ** (n - 1) - a**n / (1 + a)) for p in shares)
    return exact, tight


def two_label_oracle(alpha: tuple[float, float], n: int, noise: Noise) -> tuple[float, float]:
    """One label survives and the other vanishes: a single sum, whatever the noise."""
    first = np.arange(n + 1)
    second = n - first
    law = np.exp(rising(alpha[0], n) + rising(alpha[1], n)[::-1] - rising(math.fsum(alpha), n)[n])
    exact = tight = 0.0
    for shown, hidden in ((first, second), (second, first)):
        terms = law * noise.p_positive(shown) * noise.p_zero(hidden) * (shown > 0)
        exact, tight = exact + float(terms.sum()), tight + float((terms * shown).sum()) / n
    return exact, tight


@pytest.mark.parametrize("scale", [40.0, 1000.0, 1e6])
@pytest.mark.parametrize("size", [2_000, 104_087])
def test_seven_labels_under_geometric_noise(size: int, scale: float) -> None:
    """The stated error is 1e-12; what is seen is a thousand times less, and relative to the risk."""
    risks = risk_by_size(Dirichlet.given(ALPHA, 7), np.array([size]), AdditiveChannel((GeometricNoise(scale),)))
    for form, theirs in zip(("exact", "tight"), geometric_oracle(ALPHA, size, scale), strict=True):
        assert risks[form][0, 0] == pytest.approx(theirs, rel=1e-10, abs=1e-14)


def test_sizes_and_noises_of_every_kind_at_once() -> None:
    """Small cells beside large ones, narrow noise beside wide: each pair in its own way, and in its place."""
    sizes, scales = np.array([2_000, 2, 300, 701]), (300.0, 2.0, 1e4, 9.0)
    channel = AdditiveChannel(tuple(GeometricNoise(scale) for scale in scales))
    risks = risk_by_size(Dirichlet.given(ALPHA, 7), sizes, channel)
    for row, size in enumerate(sizes.tolist()):
        for column, scale in enumerate(scales):
            for form, theirs in zip(("exact", "tight"), geometric_oracle(ALPHA, size, scale), strict=True):
                assert risks[form][row, column] == pytest.approx(theirs, rel=1e-10, abs=1e-14)


@pytest.mark.parametrize("kind", [LaplaceNoise, GaussianNoise, DiscreteGaussianNoise])
@pytest.mark.parametrize("scale", [300.0, 20_000.0])
def test_two_labels_under_any_noise(kind: type[Noise], scale: float) -> None:
    noise, alpha, size = kind(scale), (0.3, 1.9), 100_000
    risks = risk_by_size(Dirichlet.given(alpha, 2), np.array([size]), AdditiveChannel((noise,)))
    for form, theirs in zip(("exact", "tight"), two_label_oracle(alpha, size, noise), strict=True):
        assert risks[form][0, 0] == pytest.approx(theirs, rel=1e-10, abs=1e-14)


def thousand() -> tuple[int, ...]:
    """Counts of a thousand labels: many small, some large, a third of them absent."""
    return tuple(0 if k % 3 == 0 else 1 + k % 5 + (k % 97 == 1) * 400 for k in range(1000))


@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0, 1e5])
def test_a_thousand_labels_under_geometric_noise(scale: float) -> None:
    """Shrinkage and expected risk against their closed forms, from certain to be small to as large as they become."""
    alpha = tuple(0.02 + 0.4 * (k * 7919 % 10) for k in range(1000))
    sizes = np.array([1, 90, 3_000, 3_050, 20_000])
    noise = GeometricNoise(scale)
    risks = risk_by_size(Dirichlet.given(alpha, 1000), sizes, AdditiveChannel((noise,)))
    for row in (0, 2, 4):
        for form, theirs in zip(("exact", "tight"), geometric_oracle(alpha, int(sizes[row]), scale), strict=True):
            assert risks[form][row, 0] == pytest.approx(theirs, rel=1e-11, abs=1e-14)
    cell = thousand()
    profiles = Profiles.from_cells([cell, (0, *cell[1:999], 7)], n_levels=1000)
    found = Expected().average(profiles, AdditiveChannel((noise,)), ("exact", "tight"))
    ends = [expected_oracle(each, scale) for each in (cell, (0, *cell[1:999], 7))]
    for place, form in enumerate(("exact", "tight")):
        theirs = float(sum(end[place] for end in ends)) / 2
        assert found[form, "uniform"][0] == pytest.approx(theirs, rel=1e-10, abs=1e-14)


@pytest.mark.parametrize("scale", [1.0, 80.0])
def test_expected_risk_of_many_labels_agrees_with_its_closed_form(scale: float) -> None:
    cell = tuple(k % 7 + 1 for k in range(1, 61))
    exact, tight = expected_oracle(cell, scale)
    block = Profiles.from_cells([cell], n_levels=60).blocks[0]
    risks = Expected().risk(block, 60, AdditiveChannel((GeometricNoise(scale),)), ("exact", "tight"))
    for form, theirs in (("exact", exact), ("tight", tight)):
        assert risks[form][0, 0] == pytest.approx(float(theirs), rel=1e-9, abs=1e-14)


def huge_cell_oracle(alpha: tuple[float, ...], n: int, scale: float) -> tuple[float, float]:
    """Geometric noise: of the others' total only counts up to sixty scales matter, from their ratios, one by one."""
    with mp.workdps(50):
        a = np.exp(-1 / np.longdouble(scale))
        every = mp.fsum(map(mp.mpf, alpha))
        total = np.arange(int(60 * scale) + 60, dtype=np.longdouble)
        exact = tight = np.longdouble(0)
        for own in alpha:
            others = np.longdouble(mp.nstr(every - own, 30))
            none = mp.exp(mp.loggamma(mp.mpf(own) + n) - mp.loggamma(every + n) + mp.loggamma(every) - mp.loggamma(own))
            ratios = (n - total) / (total + 1) * (others + total) / (np.longdouble(own) + n - total - 1) * a
            law = np.longdouble(mp.nstr(none, 25)) * np.concatenate([[np.longdouble(1)], np.cumprod(ratios)[:-1]])
            exact, tight = exact + law.sum(), tight + (law * (n - total)).sum() / n
        vanish = (1 + a) ** (1 - len(alpha))
    return float(exact * vanish), float(tight * vanish)


@pytest.mark.parametrize("scale", [1.0, 100.0])
@pytest.mark.parametrize("alpha", [(0.3, 1.9), (40.0, 3.0, 5.0), ALPHA])
@pytest.mark.parametrize("size", [100_000, 10**7, 10**9, 10**12])
def test_huge_cells_under_geometric_noise(size: int, alpha: tuple[float, ...], scale: float) -> None:
    """However large, and where one label's counts are more than a transform is long."""
    prior, channel = Dirichlet.given(alpha, len(alpha)), AdditiveChannel((GeometricNoise(scale),))
    risks = risk_by_size(prior, np.array([size]), channel)
    for form, theirs in zip(("exact", "tight"), huge_cell_oracle(alpha, size, scale), strict=True):
        assert risks[form][0, 0] == pytest.approx(theirs, rel=1e-9, abs=1e-14)


def test_expected_risk_where_noise_is_as_wide_as_no_table() -> None:
    """Fifty million records of two labels: a sum over the counts of the first, near their mean."""
    counts, noise = (40_000_000, 10_000_000), LaplaceNoise(1e6)
    n = sum(counts)
    found = Expected().average(Profiles.from_cells([counts], 2), AdditiveChannel((noise,)), ("exact",))[
        "exact", "uniform"
    ][0]
    first = np.arange(counts[0] - 30_000, counts[0] + 30_001)  # ten standard deviations
    law = stats.norm.pdf(first, counts[0], math.sqrt(n * 0.8 * 0.2))  # the risk is all but linear there
    risk = noise.p_positive(first) * noise.p_zero(n - first) + noise.p_zero(first) * noise.p_positive(n - first)
    assert found == pytest.approx(float(law @ risk / law.sum()), rel=1e-8, abs=0)
