"""An independent opinion on caused and certainty: every noise of a small cell is enumerated, and read as defined.

Nothing here shares a formula with the package. The mass of rounded noise comes from mpmath's distribution functions,
and its tails are cut where they hold less than 1e-20.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import product

import mpmath as mp
import numpy as np

from cellrisk.noise.distributions import (
    DiscreteGaussianNoise,
    GaussianNoise,
    GeometricNoise,
    LaplaceNoise,
    Noise,
    NoNoise,
)
from cellrisk.system.arrays import Floats, Integers

TAIL = mp.mpf("1e-20")
TIE = 1e-12


def mass_of(noise: Noise) -> Callable[[int], mp.mpf]:
    """P(rounded noise = j) as a function of j, in mpmath; of discrete Gaussian noise but for a constant."""
    scale = mp.mpf(noise.scale)
    if isinstance(noise, NoNoise):
        return lambda j: mp.mpf(j == 0)
    if isinstance(noise, LaplaceNoise):
        beyond: Callable[[mp.mpf], mp.mpf] = lambda x: mp.exp(-x / scale) / 2  # noqa: E731
    elif isinstance(noise, GaussianNoise):
        beyond = lambda x: mp.erfc(x / scale / mp.sqrt(2)) / 2  # noqa: E731
    elif isinstance(noise, GeometricNoise):
        ratio = mp.exp(-1 / scale)
        return lambda j: (1 - ratio) / (1 + ratio) * ratio ** abs(j)
    else:
        if not isinstance(noise, DiscreteGaussianNoise):
            raise TypeError(type(noise).__name__)
        return lambda j: mp.exp(-(mp.mpf(j) ** 2) / (2 * scale**2))
    return lambda j: (
        1 - 2 * beyond(mp.mpf("0.5")) if j == 0 else beyond(abs(j) - mp.mpf("0.5")) - beyond(abs(j) + mp.mpf("0.5"))
    )


@cache
def law(noise: Noise) -> tuple[Integers, Floats]:
    """Every value that rounded noise takes, but for 1e-20, and its probability."""
    with mp.workdps(40):
        mass = mass_of(noise)
        half = [mass(0)]
        while half[-1] > TAIL * half[0]:
            half.append(mass(len(half)))
        total = half[0] + 2 * mp.fsum(half[1:])
        chances = [float(each / total) for each in (*half[:0:-1], *half)]
    reach = len(half) - 1
    return np.arange(-reach, reach + 1), np.array(chances)


def released(count: int, noise: Noise, threshold: float) -> tuple[Integers, Floats]:
    """What a count is released as under each value of the noise, and how likely that is."""
    steps, chance = law(noise)
    shown = count + steps
    return np.where(shown < threshold, 0, shown), chance


def grid(counts: Sequence[int], noise: Noise, threshold: float) -> tuple[list[Integers], Floats]:
    """Every released vector of a cell, one array a label, and its probability."""
    parts = [released(count, noise, threshold) for count in counts]
    values = np.meshgrid(*(value for value, _ in parts), indexing="ij", sparse=True)
    chance = np.ones(())
    for factor in np.meshgrid(*(each for _, each in parts), indexing="ij", sparse=True):
        chance = chance * factor
    return list(values), chance


def alone(values: Sequence[Integers], label: int) -> Floats:
    """Whether the label is shown and no other is."""
    others = sum((value > 0).astype(int) for place, value in enumerate(values) if place != label)
    return np.asarray((values[label] > 0) & (others == 0))


def caused_law(counts: Sequence[int], noise: Noise, threshold: float) -> dict[int, float]:
    """The number of people of one cell read off with their record and not without it, under the same noise."""
    steps, _ = law(noise)
    found: dict[int, float] = {}
    values, together = grid(counts, noise, threshold)
    for label, count in enumerate(counts):
        if not count:
            continue
        less = count - 1 + steps
        shape = [1] * len(counts)
        shape[label] = len(steps)
        without = [*values[:label], np.where(less < threshold, 0, less).reshape(shape), *values[label + 1 :]]
        gained = alone(values, label) & ~alone(without, label)
        lost = alone(without, label) & ~alone(values, label)
        if (together * lost).sum() > 0:
            raise ArithmeticError("a record took its own label away")
        found[count] = found.get(count, 0.0) + float((together * gained).sum())
    found[0] = 1.0 - sum(found.values())
    return found


def total_law(cells: Sequence[Sequence[int]], noise: Noise, threshold: float) -> dict[int, float]:
    """The same over independent cells."""
    total = {0: 1.0}
    for counts in cells:
        cell = caused_law(counts, noise, threshold)
        joined: dict[int, float] = {}
        for (before, first), (more, second) in product(total.items(), cell.items()):
            joined[before + more] = joined.get(before + more, 0.0) + first * second
        total = joined
    return total


def name_each(counts: Sequence[int], noise: Noise, threshold: float, attack: str) -> list[float]:
    """P(the guess is label k), for each label."""
    values, chance = grid(counts, noise, threshold)
    largest, total = np.zeros(()), np.zeros(())
    for value in values:
        largest, total = np.maximum(largest, value), total + value
    if attack == "proportional":
        parts = [np.broadcast_to(value, total.shape) / np.maximum(total, 1) for value in values]
    else:
        wins = [(value == largest) & (largest > 0) for value in values]
        tied = np.maximum(sum(win.astype(int) for win in wins), 1)
        parts = [win / tied for win in wins]
    return [float((chance * part).sum()) for part in parts]


def caused_by_guess(counts: Sequence[int], noise: Noise, threshold: float, attack: str) -> float:
    found = 0.0
    here = name_each(counts, noise, threshold, attack)
    for label, count in enumerate(counts):
        if count:
            less = [each - (place == label) for place, each in enumerate(counts)]
            found += count * (here[label] - name_each(less, noise, threshold, attack)[label])
    return found


# Certainty


def expected_behind(
    value: int, shape: float, theta: float, noise: Noise, threshold: float, last: int, digits: int = 30
) -> mp.mpf:
    """E[N | released value], value 0 for a count that vanished: two sums over n from 0 to ``last``, in mpmath."""
    with mp.workdps(digits):
        mass = mass_of(noise)
        first = math.floor(threshold) + 1
        a, t = mp.mpf(shape), mp.mpf(theta)
        prior, top, bottom = mp.mpf(1), mp.mpf(0), mp.mpf(0)
        # P(released as 0 | n) = P(noise <= first - 1 - n): a running sum from the far tail upwards.
        below: dict[int, mp.mpf] = {}
        if value == 0:
            running = mp.fsum(mass(first - 1 - n) for n in range(last + 1, 2 * last + 2))
            for n in range(last, -1, -1):
                running += mass(first - 1 - n)
                below[n] = running
        for n in range(last + 1):
            term = prior * (below[n] if value == 0 else mass(value - n))
            top, bottom = top + n * term, bottom + term
            prior *= (a + n) / (n + 1) * t
        return top / bottom


@cache
def posterior_table(shape: float, theta: float, noise: Noise, threshold: float, last: int, cut: int) -> Floats:
    """E[N | v] for v = 0 (vanished), 1, ..., last, with sums over n up to ``cut``; by floats."""
    steps, chance = law(noise)
    mass = dict(zip(steps.tolist(), chance.tolist(), strict=True))
    first = math.floor(threshold) + 1
    n = np.arange(cut + 1)
    logs = np.concatenate([[0.0], np.cumsum(np.log((shape + n[:-1]) / (n[:-1] + 1.0) * theta))]) if shape else None
    found = np.zeros(last + 1)
    if logs is None:
        return found
    prior = np.exp(logs)
    for value in range(last + 1):
        if value == 0:
            seen = np.array([chance[steps + each < first].sum() for each in n.tolist()])
        elif value < first:
            continue
        else:
            seen = np.array([mass.get(value - each, 0.0) for each in n.tolist()])
        weight = prior * seen
        found[value] = (weight * n).sum() / weight.sum() if weight.sum() > 0 else value
    return found


def name_by_shares(
    counts: Sequence[int],
    noise: Noise,
    threshold: float,
    behind: Sequence[Floats],
    certainty: float,
) -> Floats:
    """P(share of label k is at least the certainty), for each label, over every released vector."""
    values, chance = grid(counts, noise, threshold)
    parts = [np.asarray(table)[value] for table, value in zip(behind, values, strict=True)]
    total = np.zeros(())
    for part in parts:
        total = total + part
    return np.array([float((chance * (part >= (certainty - TIE) * total)).sum()) for part in parts])


def name_by_table(
    vectors: Sequence[Sequence[int]], cells: Sequence[int], noise: Noise, threshold: float, certainty: float
) -> tuple[float, float]:
    """The belief "table": right and named, over every released vector, with the posterior over all vectors."""
    largest = max(max(vector) for vector in vectors) + len(law(noise)[0]) // 2
    first = math.floor(threshold) + 1
    steps, chance = law(noise)
    rows = {}
    for count in {each for vector in vectors for each in vector}:
        row = np.zeros(largest + 1)
        shown = count + steps
        row[0] = chance[shown < first].sum()
        row[shown[shown >= first]] = chance[shown >= first]
        rows[count] = row
    n_levels = len(vectors[0])
    numbers = [np.zeros((largest + 1,) * n_levels) for _ in range(n_levels)]
    for vector, times in zip(vectors, cells, strict=True):
        joint = np.ones(())
        for count in vector:
            joint = np.multiply.outer(joint, rows[count])
        for label, count in enumerate(vector):
            numbers[label] += times * count * joint
    total = np.sum(numbers, axis=0)
    right = named = 0.0
    for number in numbers:
        sure = number >= (certainty - TIE) * total
        right += float(number[sure].sum())
        named += float(total[sure].sum())
    return right, named
