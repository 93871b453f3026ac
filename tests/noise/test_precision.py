"""The error of published counts, against sums over every value of the noise."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.noise.precision import find_count_errors, find_precision, probability_within

TABLE = cr.tabulate(pd.DataFrame({"q": ["a", "b"], "y": ["m", "n"]}), "q", "y")


@pytest.mark.parametrize("threshold", [0.5, 5.5])
@pytest.mark.parametrize("epsilon", [0.05, 0.9])
@pytest.mark.parametrize("name", ["laplace", "geometric", "gaussian", "gaussian-analytic", "discrete-gaussian"])
def test_against_every_value(name: str, epsilon: float, threshold: float) -> None:
    delta = None if name in ("laplace", "geometric") else 1e-5
    mechanism = cr.mechanism(name, epsilon=epsilon, delta=delta, threshold=threshold)
    reach = int(60 * mechanism.scale) + 60
    values = np.arange(-reach, reach + 1)
    mass = np.diff(mechanism.noise.cdf(np.concatenate([[values[0] - 0.5], values + 0.5])))
    found = find_precision(mechanism)
    assert found.sd == pytest.approx(np.sqrt((mass * values.astype(float) ** 2).sum()), rel=1e-6, abs=0)
    assert found.at_zero == pytest.approx((mass * values)[values >= threshold].sum(), rel=1e-6, abs=0)
    assert found.hidden == threshold - 0.5
    published = np.where(values + found.hidden >= threshold, values + found.hidden, 0)
    assert found.at_hidden == pytest.approx((mass * published).sum(), rel=1e-6, abs=0)
    inside = [mass[np.abs(values) <= width].sum() for width in (found.within, found.within - 1)]
    assert inside[0] >= 0.95 > inside[1]
    counts = np.array([1, 2, 6, 30, 1000])
    for count, absolute, bias in zip(counts.tolist(), *find_count_errors(mechanism, counts), strict=True):
        moved = np.where(count + values >= threshold, values, -count)
        assert (absolute, bias) == pytest.approx((mass @ abs(moved), mass @ moved), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("threshold", [0.5, 1.5, 4.5])
@pytest.mark.parametrize("distance", [0, 1, 3, 5, 12])
@pytest.mark.parametrize("name", ["laplace", "geometric", "discrete-gaussian"])
def test_the_worst_count_against_every_count_and_every_value(name: str, distance: int, threshold: float) -> None:
    delta = 1e-5 if name == "discrete-gaussian" else None
    mechanism = cr.mechanism(name, epsilon=0.8, delta=delta, threshold=threshold)
    values = np.arange(-200, 201)
    mass = np.diff(mechanism.noise.cdf(np.concatenate([[values[0] - 0.5], values + 0.5])))
    inside = []
    for count in range(60):
        released = np.where(count + values >= threshold, count + values, 0)
        inside.append(mass[np.abs(released - count) <= distance].sum())
    assert probability_within(mechanism, distance) == pytest.approx(min(inside), rel=0, abs=1e-12)


@pytest.mark.parametrize(("distance", "epsilon"), [(1, 1.7655), (2, 1.137), (3, 0.832), (5, 0.538), (10, 0.284)])
def test_the_epsilon_at_which_95_of_100_counts_are_that_near(distance: int, epsilon: float) -> None:
    """Rounded, so just above it suffices and just below does not."""
    assert probability_within(cr.Geometric(epsilon + 0.0005), distance) >= 0.95
    assert probability_within(cr.Geometric(epsilon - 0.0005), distance) < 0.95


@pytest.mark.parametrize("seed", range(4))
def test_the_public_statement_says_the_bias_of_small_counts_as_it_is(seed: int) -> None:
    """Every mean that the sentence names, and its direction, against sums over every value of the noise."""
    generator = random.Random(seed)
    for _ in range(8):
        name = generator.choice(["laplace", "geometric", "gaussian-analytic", "discrete-gaussian"])
        delta = None if name in ("laplace", "geometric") else 1e-5
        threshold = generator.choice([0.5, 1.5, 2.5, 5.5, 10.5, 20.5])
        epsilon = 10.0 ** generator.uniform(-1.5, 0.8)
        mechanism = cr.mechanism(name, epsilon=epsilon, delta=delta, threshold=threshold)
        reach = int(60 * mechanism.scale) + 100
        noise = np.arange(-reach, reach + 1)
        mass = np.diff(mechanism.noise.cdf(np.concatenate([[noise[0] - 0.5], noise + 0.5])))

        def publish(count: int, noise: Any = noise, mass: Any = mass, threshold: float = threshold) -> float:
            return float((mass * np.where(noise + count >= threshold, noise + count, 0)).sum())

        page = cr.report(TABLE, mechanism, public=True).to_html()
        said = page.partition("<dt>Small counts</dt><dd>")[2].partition("</dd>")[0]
        named = re.findall(r"(?:count|one) of ([\d,]+) (?:is published )?as (under )?([\d.,]*\d)", said)
        assert len(named) == (1 if threshold == 0.5 else 2), said
        for count, under, mean in named:
            true, told = publish(int(count.replace(",", ""))), float(mean.replace(",", ""))
            if under:
                assert true < told, said
            else:
                assert told == pytest.approx(true, rel=0.05, abs=0.5 if true >= 9.95 else 0.0), said
        small = [publish(count) - count for count in range(int(threshold) + 3)]
        if "too high" in said:
            assert min(small) > -1e-9, (said, small)
        else:
            assert "differences add up" in said


def test_wide_noise_is_summed_in_time() -> None:
    """By the closed forms of the geometric law, a the ratio of neighbouring masses."""
    found, a = find_precision(cr.Geometric(epsilon=1e-5)), np.exp(-1e-5)
    assert found.sd == pytest.approx(np.sqrt(2.0 * a) / (1.0 - a), rel=1e-7, abs=0)
    assert found.within == np.floor(1e5 * np.log(40.0 / (1.0 + a)))
    assert found.at_zero == pytest.approx(a / (1.0 - a * a), rel=1e-7, abs=0)


@pytest.mark.parametrize("threshold", [0.5, 3.5])
def test_hardly_any_noise(threshold: float) -> None:
    """P(noise >= j) = a^j / (1 + a), of which all but the first terms are nothing."""
    found, a = find_precision(cr.Geometric(epsilon=50.0, threshold=threshold)), np.exp(-50.0)
    first = threshold + 0.5
    assert found.sd == pytest.approx(np.sqrt(2.0 * a), rel=1e-9, abs=0)
    assert found.within == 0
    assert found.at_zero == pytest.approx(first * a**first, rel=1e-9, abs=0)


def test_the_widest_noise_is_no_longer_a_sum() -> None:
    """Some 10^20 values of the noise: they are not listed."""
    found = find_precision(cr.Geometric(epsilon=1e-18))
    assert found.sd == pytest.approx(np.sqrt(2.0) * 1e18, rel=1e-3, abs=0)
    assert found.within == pytest.approx(1e18 * np.log(20.0), rel=1e-3, abs=0)
    assert found.at_zero == pytest.approx(0.5e18, rel=1e-3, abs=0)
