"""Cells of 10^5 records and a thousand labels: Fourier transforms against sums that share no code with them."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from cellrisk.counts.profiles import Profiles
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import AdditiveChannel
from cellrisk.noise.distributions import (
    DiscreteGaussianNoise,
    GaussianNoise,
    GeometricNoise,
    LaplaceNoise,
    Noise,
    NoNoise,
)
from cellrisk.risk.attacks import GUESSES
from cellrisk.risk.measures import (
    MEASURES,
    Dirichlet,
    Expected,
    Local,
    dirichlet,
    expected,
    marginal,
    measure,
    shrinkage,
    transforms,
)
from cellrisk.risk.measures import channel as survival_module
from cellrisk.risk.measures import sizes as sizes_module
from cellrisk.risk.measures.channel import (
    SurvivalTable,
    each_alone,
    exactly_one,
    require_computable,
)
from cellrisk.risk.measures.label_counts import consecutive_pmf, count_pmf, likeliest, window
from cellrisk.risk.measures.shrinkage import risk_by_size
from cellrisk.risk.measures.sizes import NegativeBinomialSizes, PoissonSizes
from cellrisk.risk.measures.transforms import TOLERANCE, _Between
from cellrisk.risk.priors import Fitted
from cellrisk.system.arrays import Floats, Integers
from tests.measures.watched import Watched

ALPHA = (0.06, 0.98, 0.2, 0.3, 0.42, 1.4, 0.4)


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
    risks = risk_by_size(
        Dirichlet.given(ALPHA, 7), np.array([size]), AdditiveChannel((GeometricNoise(scale),)), ("exact", "tight")
    )
    for form, theirs in zip(("exact", "tight"), geometric_oracle(ALPHA, size, scale), strict=True):
        assert risks[form][0, 0] == pytest.approx(theirs, rel=1e-11, abs=1e-15)


def test_sizes_and_noises_of_every_kind_at_once() -> None:
    """Small cells beside large ones, narrow noise beside wide: each pair in its own way, and in its place."""
    sizes, scales = np.array([2_000, 2, 300, 701]), (300.0, 2.0, 1e4, 9.0)
    channel = AdditiveChannel(tuple(GeometricNoise(scale) for scale in scales))
    risks = risk_by_size(Dirichlet.given(ALPHA, 7), sizes, channel, ("exact", "tight"))
    for row, size in enumerate(sizes.tolist()):
        for column, scale in enumerate(scales):
            for form, theirs in zip(("exact", "tight"), geometric_oracle(ALPHA, size, scale), strict=True):
                assert risks[form][row, column] == pytest.approx(theirs, rel=1e-11, abs=1e-15)


@pytest.mark.parametrize("kind", [LaplaceNoise, GaussianNoise, DiscreteGaussianNoise])
@pytest.mark.parametrize("scale", [300.0, 20_000.0])
def test_two_labels_under_any_noise(kind: type[Noise], scale: float) -> None:
    noise, alpha, size = kind(scale), (0.3, 1.9), 100_000
    risks = risk_by_size(Dirichlet.given(alpha, 2), np.array([size]), AdditiveChannel((noise,)), ("exact", "tight"))
    for form, theirs in zip(("exact", "tight"), two_label_oracle(alpha, size, noise), strict=True):
        assert risks[form][0, 0] == pytest.approx(theirs, rel=1e-11, abs=1e-15)


@pytest.mark.parametrize("concentration", [0.02, 6.0, 500.0, 1e6, math.inf])
@pytest.mark.parametrize("noise", [LaplaceNoise(400.0), GaussianNoise(150.0), GeometricNoise(9.0), NoNoise()])
def test_transforms_agree_with_sums_term_by_term(
    noise: Noise, concentration: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ways at one size after another: alone, near each other, and far apart."""
    prior = Dirichlet((0.5, 0.25, 0.125, 0.125), concentration, "given")
    sizes = np.array([1, 2, 40, 700, 701, 702, 1500])
    found = {}
    for name, limit in (("terms", 10**9), ("transforms", 0)):
        monkeypatch.setattr(shrinkage, "LONG", limit)
        found[name] = risk_by_size(prior, sizes, AdditiveChannel((noise,)), ("exact", "tight"))
    for form in ("exact", "tight"):
        assert np.allclose(found["transforms"][form], found["terms"][form], rtol=1e-10, atol=0.1 * TOLERANCE)


def test_consecutive_sizes_agree_with_sums_term_by_term(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where many sizes are asked for, the last step is a transform too."""
    prior, sizes = Dirichlet.given(ALPHA, 7), np.arange(1, 1201)
    found = {}
    for name, limit in (("terms", 10**9), ("transforms", 0)):
        monkeypatch.setattr(shrinkage, "LONG", limit)
        found[name] = risk_by_size(prior, sizes, AdditiveChannel((LaplaceNoise(90.0),)), ("exact", "tight"))
    for form in ("exact", "tight"):
        assert np.allclose(found["transforms"][form], found["terms"][form], rtol=0, atol=TOLERANCE)


def test_many_labels_agree_with_the_closed_form() -> None:
    alpha = tuple(0.2 + 0.005 * label for label in range(200))
    sizes = np.array([1, 30, 400])
    channel = AdditiveChannel((GeometricNoise(300.0), GeometricNoise(2.0)))
    risks = risk_by_size(Dirichlet.given(alpha, 200), sizes, channel, ("exact", "tight"))
    for row, size in enumerate(sizes.tolist()):
        for column, noise in enumerate(channel.noises):
            theirs = geometric_oracle(alpha, size, noise.scale)
            empty = float(noise.p_zero(0)) ** 199  # what a risk is measured by where no label is certain to be seen
            for form, value in zip(("exact", "tight"), theirs, strict=True):
                assert risks[form][row, column] == pytest.approx(value, rel=1e-9, abs=TOLERANCE * empty)


def thousand() -> tuple[int, ...]:
    """Counts of a thousand labels: many small, some large, a third of them absent."""
    return tuple(0 if k % 3 == 0 else 1 + k % 5 + (k % 97 == 1) * 400 for k in range(1000))


@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0, 1e5])
def test_a_thousand_labels_under_geometric_noise(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shrinkage and expected risk against their closed forms, from certain to be small to as large as they become."""
    monkeypatch.setattr(measure, "NEXT_TO_NOTHING", 0.0)
    alpha = tuple(0.02 + 0.4 * (k * 7919 % 10) for k in range(1000))
    sizes = np.array([1, 90, 3_000, 3_050, 20_000])
    noise = GeometricNoise(scale)
    empty = float(noise.p_zero(0)) ** 999
    risks = risk_by_size(Dirichlet.given(alpha, 1000), sizes, AdditiveChannel((noise,)), ("exact", "tight"))
    for row in (0, 2, 4):
        for form, theirs in zip(("exact", "tight"), geometric_oracle(alpha, int(sizes[row]), scale), strict=True):
            assert risks[form][row, 0] == pytest.approx(theirs, rel=1e-11, abs=TOLERANCE * empty)
    cell = thousand()
    profiles = Profiles.from_cells([cell, (0, *cell[1:999], 7)], n_levels=1000)
    found = Expected().average(profiles, AdditiveChannel((noise,)), ("exact", "tight"))
    ends = [expected_oracle(each, scale) for each in (cell, (0, *cell[1:999], 7))]
    for place, form in enumerate(("exact", "tight")):
        theirs = float(sum(end[place] for end in ends)) / 2
        assert found[form, "uniform"][0] == pytest.approx(theirs, rel=1e-10, abs=TOLERANCE * empty)


WIDE_AND_NARROW = (LaplaceNoise(40.0), GeometricNoise(0.2), GaussianNoise(1e6), NoNoise())


def spread_shares(kind: str) -> Floats:
    """Of three hundred labels, no two alike: nearly even, skewed, or a few common ones beside many rare ones."""
    place = (np.arange(1, 301) * 0.618034) % 1.0
    shares = {"even": 0.9 + 0.2 * place, "skewed": -np.log(place + 1e-3), "heavy": place**-1.2 + 1e-3}[kind]
    return np.asarray(shares / shares.sum())


@pytest.mark.parametrize("scale", [2.0, 60.0])
@pytest.mark.parametrize(
    ("kind", "concentration"), [("even", 9e3), ("skewed", 300.0), ("skewed", 2.0), ("heavy", 40.0)]
)
def test_labels_of_like_share_are_interpolated_as_the_closed_form_has_them(
    kind: str, concentration: float, scale: float
) -> None:
    alpha = tuple((spread_shares(kind) * concentration).tolist())
    sizes = np.array([60, 900, 4_000])
    table = AdditiveChannel((GeometricNoise(scale),)).up_to(4_000)
    made = _Between.of(spread_shares(kind), concentration, 900, 4_000, table)
    assert isinstance(made, _Between)
    assert len(made.nodes.shares) < 200
    risks = risk_by_size(
        Dirichlet.given(alpha, 300), sizes, AdditiveChannel((GeometricNoise(scale),)), ("exact", "tight")
    )
    empty = float(GeometricNoise(scale).p_zero(0)) ** 299
    for row, size in enumerate(sizes.tolist()):
        for form, theirs in zip(("exact", "tight"), geometric_oracle(alpha, size, scale), strict=True):
            assert risks[form][row, 0] == pytest.approx(theirs, rel=1e-11, abs=TOLERANCE * empty)


@pytest.mark.parametrize("apart", [2.0**-52, 2.0**-48, 1e-12, 1e-9, 1e-8])
def test_labels_that_differ_by_rounding_are_those_that_are_alike(apart: float) -> None:
    """There is no room for points between shares that are next to each other."""
    alpha = tuple((1.0 + apart * np.arange(60)).tolist())
    sizes, channel = np.array([60, 900]), AdditiveChannel((GeometricNoise(60.0),))
    found, alike = (
        risk_by_size(Dirichlet.given(given, 60), sizes, channel, ("exact", "tight")) for given in (alpha, (1.0,) * 60)
    )
    for form in ("exact", "tight"):
        assert np.allclose(found[form], alike[form], rtol=max(1e-10, 1e4 * apart), atol=0)


@pytest.mark.parametrize("concentration", [1.5, 300.0, 5e4, math.inf])
@pytest.mark.parametrize("threshold", [8.5, 300.5])
def test_labels_between_others_are_those_computed_one_by_one(
    concentration: float, threshold: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under a threshold that most labels, or none, are above; and where frequencies are too many to be interpolated."""
    prior = Dirichlet(tuple(spread_shares("skewed").tolist()), concentration, "given")
    sizes = np.array([40, 45, 700, 3_000])
    for noise in (GaussianNoise(4.0), NoNoise()):
        channel = AdditiveChannel((noise,), threshold)
        found = [risk_by_size(prior, sizes, channel, ("exact", "tight"))]
        for name, value in (("NUMBERS_KEPT", 1), ("NODES", 300)):
            with monkeypatch.context() as patched:
                patched.setattr(transforms, name, value)
                found.append(risk_by_size(prior, sizes, channel, ("exact", "tight")))
        empty = float(channel.q0[0]) ** 299
        for form in ("exact", "tight"):
            for other in found[:2]:
                assert np.allclose(other[form], found[2][form], rtol=1e-11, atol=2 * TOLERANCE * empty)


@pytest.mark.parametrize("name", [name for name in MEASURES if name != "local"])
def test_next_to_nothing_is_0_and_anything_else_is_kept(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside risks of every size in one call: 300 labels under wide noise leave 300 / 2^299, the others keep theirs."""
    cells = [[1 + k % 3 for k in range(300)], [5] + [0] * 298 + [2], [0] * 299 + [9]]
    asked = Fitted(Dirichlet.given([0.01] * 300, 300), NegativeBinomialSizes(2.0, 9.0, True, "given")).measure(name)
    profiles, channel = Profiles.from_cells(cells, 300), AdditiveChannel(WIDE_AND_NARROW)
    ours = asked.average(profiles, channel)
    monkeypatch.setattr(measure, "NEXT_TO_NOTHING", 0.0)
    for (form, weights), theirs in asked.average(profiles, channel).items():
        if form == "published":
            assert ours[form, weights] == pytest.approx(theirs, rel=1e-12, abs=0)
            continue
        assert (theirs[[0, 2]] > 0).all()
        assert (theirs[[0, 2]] < 1e-40).all()
        assert ours[form, weights][[0, 2]].tolist() == [0.0, 0.0]
        assert (theirs[[1, 3]] > 1e-9).all()
        assert ours[form, weights][[1, 3]] == pytest.approx(theirs[[1, 3]], rel=1e-12, abs=0)


def test_more_than_next_to_nothing_is_kept() -> None:
    """141 labels under noise without end leave 141/2^140, which is just above 1e-40, and so little is still told."""
    risk = Expected().average(Profiles.from_cells([[1] * 141], 141), AdditiveChannel((LaplaceNoise(1e9),)), ("exact",))
    labels = 141 * -math.expm1(141 * math.log1p(-1 / 141))  # that are expected in a cell of 141 records
    assert risk["exact", "uniform"][0] == pytest.approx(math.ldexp(labels, -141), rel=1e-6, abs=0)


def test_one_huge_count_beside_small_ones() -> None:
    noise = LaplaceNoise(2.0)
    found = Local().average(Profiles.from_cells([[10**10, 3]], 2), AdditiveChannel((noise,)), ("exact", "tight"))
    assert found["exact", "uniform"][0] == pytest.approx(float(noise.p_zero(3)), rel=1e-12, abs=0)
    assert found["tight", "records"][0] == pytest.approx(float(noise.p_zero(3)), rel=1e-9, abs=0)


def test_what_is_never_exceeded_is_not() -> None:
    """K q(0)^(K-1) is a bound for any counts, and guesses, which it does not bound, are never left out."""
    channel = AdditiveChannel((*WIDE_AND_NARROW, LaplaceNoise(1.0)), threshold=2.5)
    generator = np.random.default_rng(8)
    for labels in (2, 5, 40):
        cells = generator.integers(0, 9, (50, labels))
        cells[:, 0] += 1
        cells[:9, 1:] = 0
        for cell in cells:
            risk = Local().average(Profiles.from_cells([cell.tolist()], labels), channel)["exact", "uniform"]
            assert (risk <= channel.at_most(labels) * (1.0 + 1e-12)).all()
    many = Profiles.from_cells([[7] + [1] * 299], 300)
    for guess in GUESSES.values():
        assert guess().average(many, AdditiveChannel((LaplaceNoise(40.0),)), ("tight",))["tight", "records"][0] > 1e-4


@pytest.mark.parametrize("noise", [LaplaceNoise(300.0), GaussianNoise(40.0), GaussianNoise(1.0)])
def test_many_labels_agree_with_sums_term_by_term(noise: Noise, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other noises have no closed form; forty labels can be summed either way."""
    cells = [tuple(1 + k * k % 23 for k in range(40)), (*range(1, 36), 300)]
    prior = Dirichlet.given([0.1 + 0.05 * k for k in range(40)], 40)
    sizes = np.array([5, 300, 420])
    found = {}
    for name, limit in (("terms", 1000), ("transforms", 4)):
        monkeypatch.setattr(shrinkage, "MANY", limit)
        monkeypatch.setattr(expected, "MANY", limit)
        average = Expected().average(
            Profiles.from_cells([cell + (0,) * (40 - len(cell)) for cell in cells], 40), AdditiveChannel((noise,))
        )
        found[name] = [
            *average.values(),
            *risk_by_size(prior, sizes, AdditiveChannel((noise,)), ("exact", "tight")).values(),
        ]
    empty = float(noise.p_zero(0)) ** 39
    for ours, theirs in zip(found["transforms"], found["terms"], strict=True):
        assert np.allclose(ours, theirs, rtol=1e-10, atol=TOLERANCE * empty)


def test_what_is_certain_to_be_next_to_nothing_is_0() -> None:
    """Two of forty labels never vanish together: no rounding of a transform is shown in the place of such a risk."""
    channel = AdditiveChannel((GeometricNoise(2.0),))
    cells = Profiles.from_cells([[200, 190] + [180] * 38, [60] * 40], 40)
    for risk in Expected().average(cells, channel, ("exact", "tight")).values():
        assert risk.tolist() == [0.0]
    prior = Dirichlet(tuple([0.025] * 40), math.inf, "given")
    for risk in risk_by_size(prior, np.array([8_000, 3_000]), channel, ("exact", "tight")).values():
        assert risk.tolist() == [[0.0], [0.0]]


def test_a_label_that_cannot_vanish_is_the_one_that_shows() -> None:
    """Near-multinomial cells in which one label alone is large: every other may vanish, that one cannot."""
    prior = Dirichlet((0.99, 0.005, 0.005), math.inf, "given")
    channel = AdditiveChannel((GeometricNoise(40.0),))  # a reach of 1,600
    exact = risk_by_size(prior, np.array([4000]), channel, ("exact",))["exact"][0, 0]
    a = mp.exp(-mp.mpf(1) / 40)
    theirs = sum(((p + a * (1 - p)) ** 4000 for p in map(mp.mpf, (0.99, 0.005, 0.005))), mp.mpf(0)) / (1 + a) ** 2
    assert exact == pytest.approx(float(theirs), rel=1e-10, abs=0)


@pytest.mark.parametrize("concentration", [0.5, 3.0, 1e5, math.inf])
def test_windows_leave_out_next_to_nothing(concentration: float) -> None:
    shares = np.array([0.01, 0.1, 0.89])
    first, last = window(shares, concentration, 300)
    for share, low, high in zip(shares, first, last, strict=True):
        law = count_pmf(np.arange(low, high + 1), share, concentration, 300)
        assert math.fsum(law) == pytest.approx(1.0, abs=1e-11)
        fast = consecutive_pmf(np.array([low]), int(high - low) + 1, np.array([share]), concentration, 300)[0]
        assert np.allclose(fast, law, rtol=2e-13, atol=1e-300)


@pytest.mark.parametrize("concentration", [9.0, 1e5, math.inf])
def test_windows_of_rare_and_common_labels_together_are_those_of_each(concentration: float) -> None:
    shares = np.array([1e-6, 0.3, 0.7 - 1e-6])
    together = np.array(window(shares, concentration, 10**6))
    alone = np.array([window(shares[[place]], concentration, 10**6) for place in range(3)])[:, :, 0].T
    assert (np.abs(together - alone) <= 1).all()


def test_at_least_one_cell_is_worked_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many labels it has, and however little is computed at once."""
    for module in (measure, marginal):
        monkeypatch.setattr(module, "NUMBERS_AT_ONCE", 1)
    monkeypatch.setattr(expected, "ROWS_AT_ONCE", 1)
    block = Profiles.from_cells([[2] * 40], 40).blocks[0]
    for name in MEASURES:
        asked = Fitted(Dirichlet.given([1.0] * 40, 40), PoissonSizes(9.0, True, "given")).measure(name)
        assert asked.rows_at_once(block, AdditiveChannel((LaplaceNoise(1.0), LaplaceNoise(2.0)))) == 1


@pytest.mark.parametrize("concentration", [0.5, 9.0, 500.0, math.inf])
def test_the_likeliest_count_of_those_that_are_not_0(concentration: float) -> None:
    shares, size = np.array([0.001, 0.004, 0.01, 0.1, 0.885]), 300
    counts = np.arange(1, 2_000)
    for share, found in zip(shares, likeliest(shares, concentration, size), strict=True):
        mean, shape = share * size, share * concentration
        law = stats.poisson(mean) if math.isinf(shape) else stats.nbinom(shape, shape / (shape + mean))
        assert found == pytest.approx(law.pmf(counts).max(), rel=1e-10, abs=0)


@pytest.mark.parametrize("scale", [1.0, 80.0])
def test_expected_risk_of_many_labels_agrees_with_its_closed_form(scale: float) -> None:
    cell = tuple(k % 7 + 1 for k in range(1, 61))
    exact, tight = expected_oracle(cell, scale)
    others = float(GeometricNoise(scale).p_zero(0)) ** 59
    block = Profiles.from_cells([cell], n_levels=60).blocks[0]
    risks = Expected().risk(block, 60, AdditiveChannel((GeometricNoise(scale),)), ("exact", "tight"))
    for form, theirs in (("exact", exact), ("tight", tight)):
        assert risks[form][0, 0] == pytest.approx(float(theirs), rel=1e-9, abs=TOLERANCE * others)


def test_many_labels_in_cells_of_very_different_sizes() -> None:
    """The counts of the largest cell set how far noise is looked at."""
    cells, scale = [(1,) * 40, (50,) * 20 + (3,) * 20], 300.0
    found = Expected().average(
        Profiles.from_cells(cells, 40), AdditiveChannel((GeometricNoise(scale),)), ("exact", "tight")
    )
    for place, form in enumerate(("exact", "tight")):
        theirs = float(sum(expected_oracle(cell, scale)[place] for cell in cells)) / 2
        assert found[form, "uniform"][0] == pytest.approx(theirs, rel=1e-10, abs=0)


@pytest.mark.parametrize(("widest", "length", "frequencies"), [(6, 64, 4), (64, 64, 33), (50, 16, 9), (33, 16, 5)])
def test_transforms_are_sums_of_waves(widest: int, length: int, frequencies: int) -> None:
    """One by one or by a fast transform, and of terms that are more than a transform is long."""
    terms = np.random.default_rng(5).random((3, widest))
    turns = np.outer(np.arange(widest), np.arange(frequencies)) / length
    found = transforms._Waves(widest, length, frequencies).transform(terms)
    assert np.allclose(found, terms @ np.exp(-2j * np.pi * turns), rtol=0, atol=1e-12)


def test_wide_waves_are_not_listed() -> None:
    """A billion places and as many frequencies would not fit into any memory; two hundred of each do."""
    assert transforms._Waves(1 << 30, 1 << 31, (1 << 30) + 1).waves is None
    assert transforms._Waves(14, 400, 201).waves is not None


def test_transforms_of_many_labels_grow_with_the_root_of_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen times as many labels vary four times as much together, and add up within four times the width."""
    lengths: list[int] = []

    def count(cells: Any, sizes: Integers, log_total: Floats, length: int) -> tuple[Floats, Floats]:
        lengths.append(length)
        return survivors(cells, sizes, log_total, length)

    survivors = transforms._Cells.survivors
    monkeypatch.setattr(transforms._Cells, "survivors", count)
    for labels in (100, 1600):
        block = Profiles.from_cells([(50,) * labels], n_levels=labels).blocks[0]
        Expected().risk(block, labels, AdditiveChannel((GeometricNoise(2e4),)), ("exact",))
    assert lengths[1] <= 5 * lengths[0]


def test_means_that_are_summed_are_few_beside_those_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Panels are half a deviation wide: as many as the root of the largest mean, times four, at 16 points each."""
    summed = Watched(monkeypatch, marginal, "_summed_means")
    marginal._poisson_means(np.linspace(1.0, 10_000.0, 20_000), AdditiveChannel((GeometricNoise(3.0),)), 0)
    assert 0 < sum(means.size for means, *_ in summed.calls) <= 16 * 4.1 * math.sqrt(10_000.0)


@pytest.mark.parametrize("labels", [2, 1000])
@pytest.mark.parametrize("noises", [1, 7, 200])
def test_as_many_rows_at_once_as_fit(labels: int, noises: int) -> None:
    """The numbers that are held at a time stay within a limit, and one more row would not."""
    block = Profiles.from_cells([(1,) * labels], n_levels=labels).blocks[0]
    channel = AdditiveChannel(LaplaceNoise.at_scales(np.linspace(1.0, 2.0, noises)))
    asked = marginal.Marginal(PoissonSizes(30.0, truncated=True, source="given"))
    nodes = len(asked.sizes.size_biased_mixture()[0])
    for made, each, limit in (
        (Expected(), noises, expected.ROWS_AT_ONCE),
        (asked, nodes * max(noises, labels), 4 * measure.NUMBERS_AT_ONCE),
        (Local(), noises if labels == 2 else noises * labels / 4, measure.NUMBERS_AT_ONCE),
    ):
        rows = made.rows_at_once(block, channel)
        assert rows == 1 or rows * each <= limit
        assert (rows + 1.5) * each > limit


def test_small_cells_are_not_as_much_work_as_the_largest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred cells of a thousand beside one of a million: the work is that of each alone."""
    generator = np.random.default_rng(4)
    small = generator.integers(400, 600, (100, 3)).tolist()
    lengths: list[int] = []

    def count(means: Integers, limit: int, table: SurvivalTable) -> list[Floats]:
        found = label(means, limit, table)
        lengths.append(sum(part.size for part in found))
        return found

    label = expected._label
    monkeypatch.setattr(expected, "_label", count)
    channel, work, risks = AdditiveChannel((LaplaceNoise(1e5),)), [], []
    for cells in (small, [[500_000, 300_000, 200_000]], [*small, [500_000, 300_000, 200_000]]):
        lengths.clear()
        risks.append(Expected().average(Profiles.from_cells(cells, 3), channel)["tight", "uniform"][0])
        work.append(sum(lengths))
    assert work[2] == work[0] + work[1]
    assert risks[2] == pytest.approx((100 * risks[0] + risks[1]) / 101, rel=1e-10, abs=0)


@pytest.mark.parametrize("noise", [LaplaceNoise(0.2), GeometricNoise(1.0), GeometricNoise(3.0)])
@pytest.mark.parametrize("cell", [[32, 31], [13, 12, 9, 8, 4, 2, 2], [6] * 10, [3] * 21])
def test_small_cells_keep_every_digit_beside_larger_ones(cell: list[int], noise: Noise) -> None:
    """Some of these risks are below 1e-40, the larger cell's sequences are transformed, and no sequence is shared."""
    channel = AdditiveChannel((noise,))
    alone = expected.multinomial_risk(np.array([cell]), np.array([sum(cell)]), channel)
    both = np.array([[3 * count for count in cell], cell])
    beside = expected.multinomial_risk(both, both.sum(axis=1), channel)
    for mine, theirs in zip(beside, alone, strict=True):
        assert mine[1] == pytest.approx(theirs[0], rel=1e-12, abs=0)


@pytest.mark.parametrize("aside", [0, 1])
def test_interpolated_means_are_the_sums(aside: int) -> None:
    """Very many means are interpolated; each is also a sum over counts, to thirteen digits, however small the mean."""
    noises = (LaplaceNoise(0.3), GeometricNoise(30.0), GaussianNoise(7.0), DiscreteGaussianNoise(1.5), NoNoise())
    for channel in (AdditiveChannel(noises), AdditiveChannel(noises, 3.5)):
        means = np.concatenate([np.geomspace(1e-7, 1.0, 5_000), np.linspace(1.0, 930.0, 15_000)])
        few = np.sort(np.random.default_rng(2).choice(len(means), 300, replace=False))
        for ours, theirs in zip(
            marginal._poisson_means(means, channel, aside),
            marginal._summed_means(means[few], channel, aside),
            strict=True,
        ):
            assert np.allclose(ours[few], theirs, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    ("noise", "threshold"),
    [(GeometricNoise(1.0), 0.5), (LaplaceNoise(10.0), 0.5), (GaussianNoise(2.0), 3.5), (NoNoise(), 14.5)],
)
def test_what_marginal_risk_never_exceeds(noise: Noise, threshold: float) -> None:
    """For many labels a bound says where nothing is left: it is above the risk, and near enough to be of use."""
    counts, channel = np.arange(3_000), AdditiveChannel((noise,), threshold)
    q, s = noise.p_zero(counts, threshold), noise.p_positive(counts, threshold)

    def log_risk(cell: list[int], rate: float) -> float:
        """Over q(0)^19: the sum over the label that is shown, straight from Poisson probabilities."""
        law = stats.poisson.pmf(counts[:, None], rate * np.array(cell) / sum(cell))
        with np.errstate(divide="ignore"):
            none, one = np.log(q @ law / q[0]), np.log((s * (counts > 0)) @ law)
        return float(np.logaddexp.reduce([one[k] + np.delete(none, k).sum() for k in range(20)]))

    for rate in (3.0, 40.0, 600.0, 1_000.0):
        for cell in ([1] * 20, [1 + k % 5 for k in range(20)], [400] + [1] * 19, [90, 60] + [1] * 18):
            block = Profiles.from_cells([cell], 20).blocks[0]
            assert marginal._log_most(block, channel, rate)[0, 0] >= log_risk(cell, rate) - 1e-12
    asked = Fitted(None, PoissonSizes(2_000.0, truncated=False, source="given")).measure("marginal")
    found = asked.average(Profiles.from_cells([[1] * 20], 20), channel, ("exact", "tight"))
    assert all(risk.tolist() == [0.0] for risk in found.values())
    beside = asked.average(Profiles.from_cells([[1] * 20, [10_000] + [1] * 19], 20), channel, ("exact",))
    theirs = math.exp(log_risk([10_000] + [1] * 19, 2_000.0)) * float(q[0]) ** 19 / 2
    assert beside["exact", "uniform"][0] == pytest.approx(theirs, rel=1e-10, abs=0)


def test_exactly_one_of_many_labels_survives() -> None:
    generator = np.random.default_rng(3)
    vanish = generator.uniform(0.9, 1.0, (75, 4, 2))
    survive = 1.0 - vanish
    theirs = sum(survive[k] * np.prod(np.delete(vanish, k, axis=0), axis=0) for k in range(75))
    assert np.allclose(exactly_one(vanish, survive), theirs, rtol=1e-12, atol=0)
    alone = each_alone(list(vanish), list(survive))
    assert np.allclose(sum(alone), theirs, rtol=1e-12, atol=0)
    for k in (0, 1, 40, 74):
        assert np.allclose(alone[k], survive[k] * np.prod(np.delete(vanish, k, axis=0), axis=0), rtol=1e-12, atol=0)
    in_lists = exactly_one(list(vanish[:7]), list(survive[:7]))
    assert np.allclose(exactly_one(vanish[:7], survive[:7]), in_lists, rtol=1e-12, atol=0)
    for labels in (1, 2, 7, 75):
        rows = each_alone(vanish[:labels, :, 0].T, survive[:labels, :, 0].T)
        alone = each_alone(list(vanish[:labels, :, 0]), list(survive[:labels, :, 0]))
        assert np.allclose(rows.T, alone, rtol=1e-12, atol=0)


@pytest.mark.parametrize("threshold", [0.5, 2.5])
def test_labels_of_the_same_count_are_taken_together(threshold: float) -> None:
    """Cells of many labels and few different counts, some labels absent: beside a product over each label."""
    noises = (LaplaceNoise(0.3), GeometricNoise(2.0), GaussianNoise(1.5), NoNoise())
    channel = AdditiveChannel(noises, threshold)
    generator = np.random.default_rng(6)
    cells = np.concatenate([generator.integers(0, 4, (5, 60)), np.eye(2, 60, dtype=int) * 3 + 1, [[3] + [0] * 59]])
    found = Local().average(Profiles.from_cells(cells, 60), channel)
    theirs = np.zeros((2, len(cells), len(noises)))
    for place, cell in enumerate(cells):
        q, s = channel.p_zero(cell), channel.p_positive(cell) * (cell > 0)[:, None]
        for label, count in enumerate(cell.tolist()):
            alone = s[label] * np.prod(np.delete(q, label, axis=0), axis=0)
            theirs[:, place] += np.array([alone, alone * count / cell.sum()])
    records = cells.sum(axis=1)
    for form, risks in zip(("exact", "tight"), theirs, strict=True):
        assert found[form, "uniform"] == pytest.approx(risks.mean(axis=0), rel=1e-12, abs=0)
        assert found[form, "records"] == pytest.approx(records @ risks / records.sum(), rel=1e-12, abs=0)


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
    risks = risk_by_size(prior, np.array([size]), channel, ("exact", "tight"))
    for form, theirs in zip(("exact", "tight"), huge_cell_oracle(alpha, size, scale), strict=True):
        assert risks[form][0, 0] == pytest.approx(theirs, rel=1e-11, abs=0)


def test_sizes_so_many_that_some_stand_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums over every h-th size are those over all, of anything that one record more changes little."""
    law = PoissonSizes(4e7, truncated=True, source="given")
    some, weights = law.likely(labels=7)
    monkeypatch.setattr(sizes_module, "SIZES_ONE_BY_ONE", 1 << 40)
    every, chance = law.likely(labels=7)
    assert len(every) > 100 * len(some)
    for risk in (
        lambda n: (n / 4e7) ** -0.3,
        lambda n: np.exp((n - 4e7) * math.log1p(-1e-4)),  # a label that is at least a few thousand of the records
        lambda n: 1 / (1 + np.exp((n - 4e7) / 6e3)),
    ):
        assert float(weights @ risk(some)) == pytest.approx(float(chance @ risk(every)), rel=1e-11, abs=0)


def test_where_labels_are_as_many_as_records_every_size_counts() -> None:
    """Each label then has few records, and one record more changes much."""
    sizes, chance = PoissonSizes(4e7, truncated=True, source="given").likely(labels=10**8)
    assert (np.diff(sizes) == 1).all()
    assert float(chance.sum()) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("noise", [LaplaceNoise(3.0), GaussianNoise(1e6), DiscreteGaussianNoise(800.0)])
def test_far_counts_are_as_those_in_tables(noise: Noise, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of huge counts no table is made; the risks of smaller ones are the same either way."""
    profiles, channel = Profiles.from_cells([[9_000, 40, 3], [5, 5, 5]], 3), AdditiveChannel((noise,), threshold=2.5)
    asked = [Expected(), Fitted(None, PoissonSizes(700.0, truncated=True, source="given")).measure("marginal")]
    found = []
    for most in (1 << 22, 0):
        monkeypatch.setattr(survival_module, "IN_A_TABLE", most)
        found.append([list(each.average(profiles, channel).values()) for each in asked])
    assert np.allclose(found[0], found[1], rtol=1e-12, atol=1e-300)


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


@pytest.mark.parametrize("name", MEASURES)
def test_however_little_is_computed_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where memory sets the pace, cells, labels, counts and noises are taken one by one: the same risks."""
    forty = [[30, 20, 5, *range(1, 38)], [9] * 20 + [0] * 20, [90, 4, 3] + [0] * 37]
    seven = [[600, 20, 0, 0, 1, 1, 0], [3, 0, 0, 0, 0, 1, 0], [30] * 7]
    sizes = PoissonSizes(4.0, truncated=True, source="given")

    def ask() -> list[Floats]:
        channel = AdditiveChannel((LaplaceNoise(40.0), GeometricNoise(0.7)))
        found: list[Floats] = []
        for cells, alpha in ((forty, [0.1 + 0.05 * (k % 3) for k in range(40)]), (seven, ALPHA)):
            profiles, prior = Profiles.from_cells(cells, len(alpha)), Dirichlet.given(alpha, len(alpha))
            found += Fitted(prior, sizes).measure(name).average(profiles, channel).values()
        return found

    whole = ask()
    for module, limit in (
        *((module, "NUMBERS_AT_ONCE") for module in (measure, expected, transforms)),
        *((expected, "ROWS_AT_ONCE"), (shrinkage, "NUMBERS_IN_MEMORY"), (dirichlet, "_CHUNK")),
    ):
        monkeypatch.setattr(module, limit, 1)
    monkeypatch.setattr(marginal, "NUMBERS_AT_ONCE", marginal.CHEBYSHEV)
    monkeypatch.setattr(survival_module, "NOISES_AT_ONCE", 1)
    for kept in (transforms.NUMBERS_KEPT, 1):
        monkeypatch.setattr(transforms, "NUMBERS_KEPT", kept)
        for ours, theirs in zip(ask(), whole, strict=True):
            assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-20)


def test_what_no_machine_could_add_up_is_refused() -> None:
    wide = NegativeBinomialSizes(2.0, 1e9, truncated=True, source="given")
    with pytest.raises(InvalidInput, match="sizes that a cell may have"):
        wide.likely()
    with pytest.raises(InvalidInput, match="up to 16,777,216 sizes"):
        NegativeBinomialSizes(1.0, 7e5, truncated=True, source="given").likely()  # some twenty-four million
    require_computable(1 << 25)
    with pytest.raises(InvalidInput, match="up to 33,554,432"):
        require_computable((1 << 25) + 1)
    with pytest.raises(InvalidInput, match="cells so large"):
        risk_by_size(
            Dirichlet.given((1.0, 2.0), 2), np.array([10**9]), AdditiveChannel((GaussianNoise(1e8),)), ("tight",)
        )
