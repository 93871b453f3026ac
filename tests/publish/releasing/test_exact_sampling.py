"""Waiting times and tails, against mpmath and against their definition; and what decides where 64 bits do not."""

from __future__ import annotations

import math
import secrets
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from cellrisk.errors import InvalidInput
from cellrisk.publish.releasing import exact_sampling, sparse_noise
from cellrisk.publish.releasing.exact_sampling import (
    MOST,
    Rate,
    draw_survivals,
    draw_waits,
    enclose_fraction,
    resolve,
    resolve_slowly,
)
from cellrisk.publish.releasing.sparse_noise import GaussianTail, LaplaceTail, Tail, draw_places
from tests.publish.releasing.evidence import FALSE_ALARM, misfit

RATES = [1e-15, 3e-10, 1e-6, 0.01, 0.3, 1.0, 5.0, 40.0]
TAILS: list[Tail] = [
    *(LaplaceTail(scale, least) for scale, least in ((1.0, 1), (1.0, 21), (10 / 3, 4), (0.05, 3))),
    *(GaussianTail(scale, least) for scale, least in ((1.0, 1), (4.5, 1), (4.5, 31), (30.0, 20), (0.2, 2))),
]


def name_of(tail: Tail) -> str:
    return f"{type(tail).__name__}-{tail.scale:.3g}-{tail.least}"


def words_for(number: int) -> np.ndarray:
    """Words of all sizes: near 0 and near 2^64 too."""
    generator = np.random.default_rng(3)
    words = generator.integers(0, 2**64, number, dtype=np.uint64)
    small = words >> generator.integers(0, 63, number).astype(np.uint64)
    return np.concatenate([words, small, ~small])


@pytest.mark.parametrize("rate", RATES)
def test_waits_are_those_of_the_definition(rate: float) -> None:
    words, exact = words_for(150), Fraction(rate)
    waits = resolve(words, np.full(len(words), rate), lambda _, digits: enclose_fraction(exact, digits), MOST)
    with mpmath.workdps(60):
        for word, wait in zip(words.tolist(), waits.tolist(), strict=True):
            ends = [
                -mpmath.log(mpmath.mpf(each) / 2**64) / mpmath.mpf(rate) if each else mpmath.inf
                for each in (word + 1, word)
            ]
            assert min(mpmath.floor(ends[0]), MOST) <= wait <= min(ends[1], MOST)


@pytest.mark.parametrize("rate", RATES[1:])
def test_fast_and_slow_waits_agree(rate: float) -> None:
    words, exact = words_for(300), Fraction(rate)
    fast = resolve(words, np.full(len(words), rate), lambda _, digits: enclose_fraction(exact, digits), MOST)
    compared = 0
    for word, wait in zip(words.tolist(), fast.tolist(), strict=True):
        low, high = exact_sampling.enclose_logarithm(word, 64, 40)
        least, greatest = enclose_fraction(exact, 40)
        if math.floor(low / greatest) == math.floor(min(high / least, MOST)):
            assert resolve_slowly(word, lambda digits: enclose_fraction(exact, digits), MOST) == wait
            compared += 1
    assert compared > len(words) // 2


@pytest.mark.parametrize(("bit", "expected"), [(0, 70), (1, 69)])
def test_more_bits_decide_where_the_first_do_not(bit: int, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """U begins with the very bits of exp(-70 rate): it is above or below by what follows."""
    asked = []

    def follow(bits: int) -> int:
        asked.append(bits)
        return bit * (2**bits - 1)

    monkeypatch.setattr(secrets, "randbits", follow)
    with mpmath.workdps(60):
        word = int(mpmath.floor(mpmath.exp(mpmath.mpf(-7) / 10) * 2**64))
    rate = Fraction(1, 100)
    assert resolve_slowly(word, lambda digits: enclose_fraction(rate, digits), MOST, digits=5) == expected
    assert len(asked) > 2
    words, rates = np.array([word], np.uint64), np.array([0.01])
    assert resolve(words, rates, lambda _, digits: enclose_fraction(rate, digits), MOST).tolist() == [expected]


def test_waits_have_their_distribution_also_when_no_float_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    rate, support = Fraction(1, 5), range(80)
    chances = [math.exp(-j / 5) * -math.expm1(-1 / 5) for j in support]
    assert misfit(draw_waits(50_000, Rate.of(rate)), support, chances) > FALSE_ALARM
    monkeypatch.setattr(exact_sampling, "SLACK", 0.5)
    assert misfit(draw_waits(3_000, Rate.of(rate)), support, chances) > FALSE_ALARM


def test_survivals_have_their_probability() -> None:
    exponents = np.repeat([0.0, 0.25, 3.0], 20_000)
    alive = draw_survivals(exponents, lambda place: Fraction(exponents[place])).reshape(3, -1)
    assert alive[0].all()
    for row, x in ((alive[1], 0.25), (alive[2], 3.0)):
        assert misfit(row.astype(int), [0, 1], [1 - math.exp(-x), math.exp(-x)]) > FALSE_ALARM


def weights(tail: Tail, count: int) -> list[mpmath.mpf]:
    """The weights of the noise from ``tail.least`` on, as many as are asked for."""
    scale = mpmath.mpf(tail.scale)
    if isinstance(tail, LaplaceTail):
        return [mpmath.exp(-j / scale) for j in range(tail.least, tail.least + count)]
    return [mpmath.exp(-(mpmath.mpf(j) ** 2) / (2 * scale**2)) for j in range(tail.least, tail.least + count)]


@pytest.mark.parametrize("digits", [10, 40, 80])
@pytest.mark.parametrize("tail", TAILS, ids=name_of)
def test_tails_have_their_probability(tail: Tail, digits: int) -> None:
    count = math.ceil(tail.scale * 300) + 20
    with mpmath.workdps(120):
        upper = mpmath.fsum(weights(tail, count))
        total = 1 + 2 * mpmath.fsum(weights(type(tail)(tail.scale, 1), count))
        p = upper / total
        assert abs(mpmath.mpf(str(tail.probability(digits))) / p - 1) < mpmath.mpf(10) ** -digits
        low, high = (mpmath.mpf(str(bound)) for bound in tail.rate.bounds(digits))
        assert low < -mpmath.log1p(-p) < high < low * (1 + mpmath.mpf(10) ** (1 - digits))


@pytest.mark.parametrize("tail", TAILS, ids=name_of)
def test_draws_from_a_tail_have_its_distribution(tail: Tail) -> None:
    upper = [float(weight) for weight in weights(tail, math.ceil(tail.scale * 60) + 20)]
    values, total = tail.draw(20_000), math.fsum(upper)
    assert len(values) == 20_000
    assert values.min() >= tail.least
    support = range(tail.least, tail.least + len(upper))
    if upper[0] / total < 0.999:
        assert misfit(values, support, [weight / total for weight in upper]) > FALSE_ALARM
    assert tail.draw(0).tolist() == []


@pytest.mark.parametrize("tail", [LaplaceTail(1.0, 2), GaussianTail(2.0, 3)], ids=name_of)
def test_the_number_of_places_is_binomial(tail: Tail) -> None:
    p, size = float(tail.probability(20)), 40
    numbers = [sum(len(places) for places in draw_places(tail, size)) for _ in range(4_000)]
    support = range(size + 1)
    chances = [math.comb(size, k) * p**k * (1 - p) ** (size - k) for k in support]
    assert misfit(np.array(numbers), support, chances) > FALSE_ALARM


def test_places_differ_and_stay_inside() -> None:
    places = np.concatenate(list(draw_places(LaplaceTail(10.0, 1), 5_000)))
    assert (np.diff(places) > 0).all()
    assert 0 <= places.min() <= places.max() < 5_000


def test_hopeless_tails_end_at_once() -> None:
    for tail in (LaplaceTail(0.5, 30), LaplaceTail(0.001, 10**6), LaplaceTail(1.0, 10**30), GaussianTail(0.01, 50)):
        assert sum(len(places) for places in draw_places(tail, 2**40)) == 0
    assert sum(len(places) for places in draw_places(LaplaceTail(1.0, 40), MOST)) < 60


def test_what_cannot_be_drawn_is_refused() -> None:
    for make, said in (
        (lambda: LaplaceTail(0.0, 1), "scale"),
        (lambda: LaplaceTail(1.0, 0), "begins at a whole number"),
        (lambda: GaussianTail(2 * sparse_noise.WIDEST_GAUSSIAN, 1), "too wide"),
        (lambda: Rate.of(Fraction(-1)), "negative"),
        (lambda: next(draw_places(LaplaceTail(1.0, 1), 2**61)), "too many counts"),
    ):
        with pytest.raises(InvalidInput, match=said):
            make()
