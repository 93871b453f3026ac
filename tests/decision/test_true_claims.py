"""What `choose` prints about epsilons is recomputed on a fine grid, from plain formulas that share no code with it.

The tables are random and have humps: the risk rises and falls along epsilon, so that a limit is kept, broken and kept
again. A sentence is parsed, and each claim in it is held to the grid.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

import cellrisk as cr
from cellrisk.risk.sweep import Setting

matplotlib.use("Agg")

GRID = np.geomspace(1e-6, 100.0, 800)
NEAR = 2e-4
"""Epsilons as near as this to a printed end are not judged: ends are printed to five digits."""
NUMBER = r"\d+(?:\.\d+)?(?:e[+-]?\d+)?"
SPANS = rf"from {NUMBER} to {NUMBER}(?:, and from {NUMBER} to {NUMBER})*"


@dataclass(frozen=True)
class Oracle:
    """The risk, caused and the ceiling of one table under one mechanism, at any epsilon."""

    counts: Any
    """(cells, labels)"""
    mechanism: str
    threshold: float
    delta: float

    def below(self, count: Any, epsilon: float) -> Any:
        """P(a count is published as 0): it is, with its noise, below the threshold."""
        if self.mechanism == "geometric":
            step, ratio = math.ceil(self.threshold) - 1 - count, math.exp(-epsilon)
            return np.where(
                step < 0,
                ratio ** np.maximum(-step, 0) / (1 + ratio),
                1 - ratio ** (np.maximum(step, 0) + 1) / (1 + ratio),
            )
        distance = self.threshold - count
        if self.mechanism == "laplace":
            tail = 0.5 * np.exp(-np.abs(distance) * epsilon)
            return np.where(distance < 0, tail, 1 - tail)
        return ndtr(distance / Setting(self.mechanism, self.delta).at(epsilon).scale)  # type: ignore[arg-type]

    def sums(self, epsilon: float) -> tuple[float, float]:
        """Shares of the people: whose cell shows their value alone; and would not without their record."""
        counts = self.counts
        vanish = self.below(counts, epsilon)
        fewer = self.below(np.maximum(counts - 1, 0), epsilon)
        risk = caused = 0.0
        for label in range(counts.shape[1]):
            others = np.delete(vanish, label, axis=1).prod(axis=1)
            risk += float((counts[:, label] * (1 - vanish[:, label]) * others).sum())
            caused += float((counts[:, label] * (fewer - vanish)[:, label] * others).sum())
        return risk / counts.sum(), caused / counts.sum()

    def ceiling(self, epsilon: float) -> float:
        if self.mechanism == "geometric":
            return 1 / (1 + math.exp(-epsilon))
        if self.mechanism == "laplace":
            return 1 - math.exp(-epsilon) * (1 + epsilon / 2) / 2
        return float(ndtr(math.sqrt(2) / 2 / Setting(self.mechanism, self.delta).at(epsilon).scale))  # type: ignore[arg-type]

    def figure(self, name: str, epsilon: float) -> float:
        risk, caused = self.sums(epsilon)
        return {
            "max_risk": risk,
            "max_people": risk * float(self.counts.sum()),
            "max_caused": caused,
            "max_ceiling": self.ceiling(epsilon),
            "max_epsilon": epsilon,
        }[name]


def make_table(counts: Any) -> cr.FrequencyTable:
    cells, labels = np.nonzero(counts >= 0)
    rows = pd.DataFrame({"q": cells, "y": labels, "n": counts[cells, labels]})
    return cr.tabulate(rows, "q", "y", count="n", levels={"y": list(range(counts.shape[1]))})


def draw_counts(rng: np.random.Generator) -> Any:
    """Small and large counts side by side: single people vanish at epsilons at which large groups still stand."""
    labels = int(rng.choice([2, 2, 2, 3]))
    sizes = rng.choice([1, 2, 5, 30, 400, 4000], size=(int(rng.integers(2, 9)), labels))
    counts = rng.integers(0, sizes + 1) * (rng.random(sizes.shape) < 0.7)
    counts[:, 0] += counts.sum(axis=1) == 0
    return counts


def draw_case(seed: int) -> tuple[Oracle, dict[str, Any], dict[str, float]]:
    rng = np.random.default_rng(seed)
    mechanism = str(rng.choice(["geometric", "geometric", "laplace", "gaussian-analytic"]))
    delta = 0.0 if mechanism in ("geometric", "laplace") else 0.01
    threshold = float(rng.choice([0.5, 0.5, 2.5, 7.5]))
    oracle = Oracle(draw_counts(rng), mechanism, threshold, delta)
    names = rng.choice(["max_risk", "max_people", "max_caused", "max_caused", "max_ceiling", "max_epsilon"], size=2)
    limits = {}
    for name in dict.fromkeys(names[: int(rng.integers(1, 3))].tolist()):
        least, most = {"max_epsilon": (1e-4, 5.0), "max_ceiling": (0.50001, 0.95)}.get(name, (0.0, 0.0))
        if not most:  # a level between the ends of the curve, so that it is crossed, and often more than once
            along = [oracle.figure(name, epsilon) for epsilon in np.geomspace(1e-4, 50, 60)]
            least, most = min(along), max(along)
        limits[name] = float(f"{least + (most - least) * rng.uniform(0.02, 1.02):.6g}")
        if name in ("max_caused", "max_risk"):
            limits[name] = min(max(limits[name], 1e-9), 1.0)
    how: dict[str, Any] = {"mechanism": mechanism, "threshold": threshold}
    how |= {"delta": delta} if delta else {}
    if rng.random() < 0.25:
        how |= {"least_epsilon": 0.05, "largest_epsilon": float(rng.choice([2.0, 20.0]))}
    return oracle, how, limits


def find_spans(text: str) -> list[tuple[float, float]]:
    return [(float(low), float(high)) for low, high in re.findall(rf"from ({NUMBER}) to ({NUMBER})", text)]


def hold(claims: str, keeps: Callable[[float, str | None], bool], searched: tuple[float, float]) -> set[str]:
    """Holds every claim of a text to the grid, and returns which kinds of claims there were.

    ``keeps`` judges one epsilon by one limit, or by all of them.
    """
    made = set()

    def inside(spans: list[tuple[float, float]]) -> list[float]:
        return [float(e) for low, high in spans for e in GRID[(low * (1 + NEAR) < GRID) & (high * (1 - NEAR) > GRID)]]

    def outside(spans: list[tuple[float, float]], low: float, high: float) -> list[float]:
        free = GRID[(low * (1 + NEAR) < GRID) & (high * (1 - NEAR) > GRID)]
        return [float(e) for e in free if not any(a * (1 - NEAR) <= e <= b * (1 + NEAR) for a, b in spans)]

    again = re.search(rf"(larger )?epsilons ({SPANS}) keep every limit, but some smaller ones do not", claims)
    spans = find_spans(again[2]) if again else []
    chosen = re.search(rf"({NUMBER}) is the largest epsilon", claims)
    if chosen:
        epsilon = float(chosen[1])
        assert keeps(epsilon, None), "the epsilon that is recommended breaks a limit"
        assert not any(keeps(e, None) for e in outside(spans, epsilon, searched[1])), "a larger one keeps every limit"
        every = re.search(rf"up to which every smaller one, from ({NUMBER}) on, keeps (?:the limit on (\w+))?", claims)
        if every:
            made.add("every smaller one")
            limit = every[2] and f"max_{every[2]}"
            assert all(keeps(e, limit) for e in inside([(float(every[1]), epsilon)])), "a smaller one breaks the limit"
        elif "largest epsilon that keeps" in claims:
            made.add("the largest")
            assert not again
    if again:
        made.add("again")
        assert all(keeps(e, None) for e in inside(spans)), "it is not kept again"
        assert any(not keeps(float(e), None) for e in GRID[spans[0][0] > GRID]), "every smaller one keeps it"
    none = re.search(rf"no epsilon ({SPANS}) is admissible", claims)
    if none:
        made.add("none")
        (low, high), *_ = find_spans(none[1])
        assert not any(keeps(e, None) for e in outside(spans, low, high)), "an epsilon keeps every limit"
    if "no limit binds" in claims:
        made.add("no limit binds")
        assert all(keeps(e, None) for e in inside([searched])), "a limit binds"
    broken = re.search(rf"({SPANS}) the limit on the risk is broken", claims)
    if broken:
        made.add("gap")
        assert not any(keeps(e, None) for e in inside(find_spans(broken[1]))), "the limit is kept in the gap"
        if "the limits hold, but not everywhere" in claims:
            assert all(keeps(e, None) for e in outside(find_spans(broken[1]), *searched)), "another gap"
    allowed = re.search(rf"the limits allow epsilon ({SPANS})", claims)
    if allowed:
        assert all(keeps(e, None) for e in inside(find_spans(allowed[1]))), "what is allowed breaks a limit"
    return made


def judge(oracle: Oracle, limits: dict[str, float]) -> Callable[[float, str | None], bool]:
    known: dict[float, dict[str, float]] = {}

    def keeps(epsilon: float, name: str | None) -> bool:
        if epsilon not in known:
            known[epsilon] = {each: oracle.figure(each, epsilon) for each in limits}
        asked = [name] if name is not None else list(limits)
        return all(known[epsilon][each] <= limits[each] * (1 + 1e-9) for each in asked)

    return keeps


def test_the_oracle_is_the_figures_that_are_printed() -> None:
    for seed in range(12):
        oracle, how, _ = draw_case(seed)
        mechanism = Setting(how["mechanism"], oracle.delta, threshold=oracle.threshold).at(0.7)
        found = cr.assess(make_table(oracle.counts), mechanism, measures="local")
        risk, caused = oracle.sums(0.7)
        assert found.value() == pytest.approx(risk, rel=1e-8, abs=1e-12)
        assert found.figures[0].caused.share == pytest.approx(caused, rel=1e-6, abs=1e-12)
        assert found.figures[0].ceiling.even_two == pytest.approx(oracle.ceiling(0.7), rel=1e-8, abs=0)


@pytest.fixture(scope="module")
def claims_made() -> dict[str, int]:
    return {}


@pytest.mark.parametrize("part", range(8))
def test_every_claim_is_true(part: int, claims_made: dict[str, int]) -> None:
    made: dict[str, int] = {}
    for seed in range(1000 + 12 * part, 1012 + 12 * part):
        oracle, how, limits = draw_case(seed)
        choice = cr.choose(make_table(oracle.counts), **how, **limits)
        claims = f"{choice.headline} {choice.why}."
        keeps = judge(oracle, limits)
        try:
            for kind in hold(claims, keeps, choice.options[0].searched):
                made[kind] = made.get(kind, 0) + 1
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, {how}, {limits}: {error}: {claims}") from None
    print(made)
    assert made
