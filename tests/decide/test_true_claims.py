"""What `choose` prints about epsilons is recomputed on a fine grid, from plain formulas that share no code with it.

The tables are random and have humps: the risk rises and falls along epsilon, so that a limit is kept, broken and kept
again. A sentence is parsed, and each claim in it is held to the grid.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import matplotlib
import numpy as np
import pytest
from scipy.special import ndtr

import cellrisk as cr
from cellrisk.decide.policies import Policies
from cellrisk.noise.mechanisms import mechanism as make_mechanism
from tests.tables import from_counts

matplotlib.use("Agg")

GRID = np.geomspace(1e-6, 100.0, 240)
NEAR = 2e-4
"""Epsilons as near as this to a printed end are not judged: ends are printed to five digits."""
NUMBER = r"\d+(?:\.\d+)?(?:e[+-]?\d+)?"
SPANS = rf"from {NUMBER} to {NUMBER}(?:, and from {NUMBER} to {NUMBER})*"


@lru_cache(maxsize=4096)
def scale_of(mechanism: str, delta: float, epsilon: float) -> float:
    return make_mechanism(mechanism, epsilon=1e-3, delta=delta).with_epsilon(epsilon).scale  # type: ignore[arg-type]


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
        return ndtr(distance / scale_of(self.mechanism, self.delta, epsilon))

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
        return float(ndtr(math.sqrt(2) / 2 / scale_of(self.mechanism, self.delta, epsilon)))

    def figure(self, name: str, epsilon: float) -> float:
        risk, caused = self.sums(epsilon)
        return {
            "max_risk": risk,
            "max_people": risk * float(self.counts.sum()),
            "max_caused": caused,
            "max_ceiling": self.ceiling(epsilon),
            "max_epsilon": epsilon,
        }[name]


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
    names = rng.choice(["max_risk", "max_risk", "max_people", "max_ceiling", "max_epsilon"], size=2)
    limits = {}
    for name in dict.fromkeys(names[: int(rng.integers(1, 3))].tolist()):
        least, most = {"max_epsilon": (1e-4, 5.0), "max_ceiling": (0.50001, 0.95)}.get(name, (0.0, 0.0))
        if not most:  # a level between the ends of the curve, so that it is crossed, and often more than once
            along = [oracle.figure(name, epsilon) for epsilon in np.geomspace(1e-4, 50, 60)]
            least, most = min(along), max(along)
        limits[name] = float(f"{least + (most - least) * rng.uniform(0.02, 1.02):.6g}")
        if name == "max_risk":
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
    chosen = re.search(rf"Recommended: epsilon ({NUMBER}) ", claims)
    if chosen:
        made.add("recommended")
        epsilon = float(chosen[1])
        assert keeps(epsilon, None), "the epsilon that is recommended breaks a limit"
        every = re.search(rf"Every epsilon from ({NUMBER}) up to it keeps", claims)
        if every:
            made.add("every smaller one")
            assert all(keeps(e, None) for e in inside([(float(every[1]), epsilon)])), "a smaller one breaks the limit"
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
        allowed_spans = find_spans(allowed[1])
        assert all(keeps(e, None) for e in inside(allowed_spans)), "what is allowed breaks a limit"
        assert not any(keeps(e, None) for e in outside(allowed_spans + spans, *searched)), (
            "another one keeps every limit"
        )
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
    for seed in range(5):
        oracle, how, _ = draw_case(seed)
        mechanism = make_mechanism(
            how["mechanism"], epsilon=1e-3, delta=oracle.delta, threshold=oracle.threshold
        ).with_epsilon(0.7)
        found = cr.assess(from_counts(oracle.counts), mechanism, measures="local")
        risk, caused = oracle.sums(0.7)
        assert found.value() == pytest.approx(risk, rel=1e-8, abs=1e-12)
        assert found.figures[0].caused.share == pytest.approx(caused, rel=1e-6, abs=1e-12)
        assert found.figures[0].ceiling.even_two == pytest.approx(oracle.ceiling(0.7), rel=1e-8, abs=0)


@pytest.mark.parametrize("part", range(5))
def test_every_claim_is_true(part: int) -> None:
    for seed in range(1000 + 8 * part, 1008 + 8 * part):
        oracle, how, limits = draw_case(seed)
        choice = cr.choose(from_counts(oracle.counts), **how, **limits)
        claims = f"{choice.headline} {choice.why}."
        try:
            hold(claims, judge(oracle, limits), choice.options[0].searched)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, {how}, {limits}: {error}: {claims}") from None
        for level in re.findall(
            rf"as epsilon falls to 0(?:, with delta fixed,)? the risk tends to ({NUMBER})%", claims
        ):
            assert float(level) == pytest.approx(100 * oracle.figure("max_risk", 1e-9), abs=0.051)


HUMP = np.array([[400, 3], [3, 400], [1, 1]])
"""The risk rises between chance and the raw table, and falls again."""


def test_a_case_of_every_claim() -> None:
    """Which sentences there are is known: none goes unseen because no table leads to it."""
    oracle = Oracle(HUMP, "geometric", 0.5, 0.0)
    along = [oracle.sums(epsilon) for epsilon in GRID]
    assert max(risk for risk, _ in along) > 0.3 > along[0][0]
    cases: dict[str, dict[str, float]] = {
        "the limits hold, but not everywhere": {"max_risk": 0.3},
        "no limit binds": {"max_risk": 0.999},
        "no epsilon from 1e-06 to 100 is admissible": {"max_people": 0.0},
        "Every epsilon from 0.001 up to it keeps a worst case of at most 60%": {"max_ceiling": 0.6},
        "Recommended: epsilon 0.00098765432 ": {"max_epsilon": 0.00098765432},
    }
    for said, limits in cases.items():
        choice = cr.choose(from_counts(HUMP), **limits)  # type: ignore[arg-type]
        claims = f"{choice.headline} {choice.why}."
        assert said in claims
        hold(claims, judge(oracle, limits), choice.options[0].searched)


@pytest.mark.parametrize("limits", [{"max_risk": 0.3}, {"max_ceiling": 0.7}, {"max_risk": 0.4, "max_ceiling": 0.8}])
def test_what_is_shaded_keeps_every_limit(limits: dict[str, float]) -> None:
    """On the map, points of the curve inside the shading; along epsilon, what is admissible."""
    counts = np.array([[40, 3], [3, 40], [1, 0], [0, 1], [2, 1]])
    oracle = Oracle(counts, "geometric", 0.5, 0.0)
    keeps = judge(oracle, limits)
    found = cr.choose(from_counts(counts), max_tvd=0.2, way=1, releases=2, **limits)  # type: ignore[arg-type]
    assert found.trade_off is not None
    figure = found.plot()
    (axes,) = figure.axes
    shaded = [path for area in axes.collections for path in area.get_paths()]
    for epsilon, tvd in zip(found.trade_off.epsilon, found.trade_off.tvd, strict=True):
        point = (tvd, oracle.figure(found.shown.name, float(epsilon)))
        if any(path.contains_point(point) for path in shaded):
            assert tvd <= 0.2
            assert keeps(float(epsilon), None)
    texts = " ".join(text.get_text() for text in [*axes.texts, *figure.legends[0].get_texts()]).replace("\n", " ")
    assert ("within both" in texts) == bool(shaded) == (len(limits) == 1)
    along = cr.choose(from_counts(counts), **limits)  # type: ignore[arg-type]
    assert all(keeps(float(e), None) for low, high in along.admissible for e in GRID[(low < GRID) & (high > GRID)])


@pytest.mark.parametrize("limit", [0.2344, 0.23441234, 0.3, 0.00021234, 0.00019876, 1 / 3, 1e-7])
def test_a_limit_is_printed_as_it_was_given(limit: float) -> None:
    table = from_counts(np.array([[9, 3], [1, 0], [4, 4]]))
    told = [
        cr.choose(table, max_risk=limit).headline,
        cr.choose(table, max_caused=limit).headline,
        str(Policies((cr.Policy(max_caused=limit),)).disclosures),
        str(Policies((cr.Policy(max_risk=limit),)).disclosures),
    ]
    for text in told:
        numbers = re.findall(rf"({NUMBER})%", text)
        assert any(float(number) == pytest.approx(100 * limit, rel=1e-15, abs=0) for number in numbers), text
