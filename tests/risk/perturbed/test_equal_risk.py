"""The sentence at equal risk, read again and compared with plain formulas at epsilons of its own."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import cellrisk as cr
from cellrisk.risk.perturbed import find_equal_risk
from cellrisk.show.wording.assessment import say_equal
from tests.risk.perturbed.test_assess_perturbation import make_table

SENTENCE = re.compile(
    r"The perturbation reveals (?P<figure>-?[\d.,]+|fewer than 1) (?:person|people) because of their own record, "
    r"by the homogeneity attack\. It moves counts by (?P<distance>[\d.]+)% of the records\. Geometric noise reveals "
    r"(?:more people at every epsilon searched|no more people at epsilon (?P<ranges>[^;]+)); "
    r"401 epsilons from 0\.001 to 100 were searched\."
    r"(?: At epsilon (?P<epsilon>[\d.]+), noise moves counts by (?P<moved>[\d.]+)%\.)?"
)
SHARES = {  # of a count, how it is published: values and probabilities
    "random-rounding:3": lambda m: ([m - m % 3, m - m % 3 + 3], [1 - m % 3 / 3, m % 3 / 3]),
    "suppress-below:2": lambda m: ([m if m >= 2 else 0], [1.0]),
    "suppress-below:1": lambda m: ([m], [1.0]),
    "suppress-below:100": lambda m: ([0], [1.0]),
}


def count_caused(cells: np.ndarray, vanish: Callable[[int], float]) -> float:
    """Sum over people of P(their value alone is shown), less the same with their record left out."""

    def alone(counts: list[int], label: int) -> float:
        others = np.prod([vanish(count) for place, count in enumerate(counts) if place != label])
        return float((1 - vanish(counts[label])) * others)

    total = 0.0
    for counts in cells.tolist():
        for label, count in enumerate(counts):
            if count:
                less = [number - (place == label) for place, number in enumerate(counts)]
                total += count * (alone(counts, label) - alone(less, label))
    return total


def find_moved(cells: np.ndarray, epsilon: float) -> float:
    """Half the expected differences of counts under geometric noise, as a share of the records."""
    a = np.exp(-epsilon)
    noise = np.arange(-int(60 / epsilon) - 60, int(60 / epsilon) + 61)
    chances = (1 - a) / (1 + a) * a ** np.abs(noise)
    moved = {count: float(chances @ np.abs(np.maximum(count + noise, 0) - count)) for count in set(cells.ravel())}
    return sum(moved[count] for count in cells.ravel()) / (2 * cells.sum())


def draw_cells(seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    cells = generator.poisson(generator.choice([0.4, 2.0, 6.0]), size=(generator.integers(1, 12), 2))
    cells[0] += 1
    return cells[cells.sum(axis=1) > 0]


@pytest.mark.parametrize("rule", SHARES)
def test_the_sentence_holds_at_every_epsilon(rule: str) -> None:
    said_none = several = 0
    for seed in range(8):
        cells = draw_cells(seed)
        profiles, channel = make_table(cells.tolist()).profiles(), cr.read_perturbation(rule).channel
        sentence = say_equal(find_equal_risk(profiles, channel, cr.Geometric(1.0)))
        said = SENTENCE.fullmatch(sentence)
        assert said is not None, sentence
        rows = {count: SHARES[rule](count) for count in range(int(cells.max()) + 1)}
        vanish = {count: sum(c for v, c in zip(*row, strict=True) if v == 0) for count, row in rows.items()}
        figure = count_caused(cells, vanish.__getitem__)
        shown = 0.5 if said["figure"] == "fewer than 1" else float(said["figure"].replace(",", ""))
        assert abs(shown - figure) <= 0.5 + 1e-9
        distance = sum(
            c * abs(v - count) for count in cells.ravel() for v, c in zip(*rows[int(count)], strict=True)
        ) / (2 * cells.sum())
        assert float(said["distance"]) == pytest.approx(100 * distance, abs=0.051)
        ranges = [tuple(map(float, each.split(" to "))) for each in (said["ranges"] or "").split(", ") if each]
        said_none += not ranges
        several += len(ranges) > 1 or (len(ranges) == 1 and ranges[0][0] > 0.001)
        for epsilon in np.geomspace(0.001, 100, 103):
            if any(abs(np.log(epsilon / end)) < 1e-4 for each in ranges for end in each):
                continue
            a = np.exp(-epsilon)
            noisy = count_caused(cells, lambda count, a=a: a**count / (1 + a))  # type: ignore[misc]
            within = any(low <= epsilon <= high for low, high in ranges)
            more = (noisy - figure) / max(figure, 1)
            assert within if more < 5e-10 else not within or more < 2e-9, (seed, epsilon)
        if ranges:
            assert float(said["epsilon"]) == ranges[-1][1]
            assert float(said["moved"]) == pytest.approx(100 * find_moved(cells, ranges[-1][1]), abs=0.051)
    assert said_none or rule != "suppress-below:100"
    assert several or rule == "suppress-below:100"  # otherwise the tables have no humps, and show nothing
