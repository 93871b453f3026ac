"""What the paper says of its formulas, before any data (section 4)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from cellrisk.counts.profiles import Profiles
from cellrisk.noise.mechanisms import Laplace
from cellrisk.paper.bundles import Bundle, make_grid
from cellrisk.paper.claims.comparing import Evidence, judge, same, span
from cellrisk.paper.panels import Statement
from cellrisk.risk.curves import Line, curve
from cellrisk.risk.measures import Local, Survival
from cellrisk.system.arrays import Floats

COROLLARY = "4.1, Corollary 2"
SURVIVING = ((4, "0.985"), (3, "0.959"), (2, "0.888"))
SIZES = (2, 3, 5, 10, 50, 240)
NOT_EXACT = 1e-9
"""Rounding of a sum of thousands of terms stays far below this."""


def state_formulas(evidence: Evidence) -> Iterator[Statement]:
    """Every claim about the formulas."""
    yield _bound()
    yield _second_term()
    for size, paper in SURVIVING:
        yield _survival(size, paper)
    yield _lower_bound(evidence)
    yield _growth(evidence)
    bundle = evidence.homogeneous[-1]
    flat = {"alpha": (1.0,) * bundle.experiment.table.profiles().n_levels}
    yield _range(bundle, "shrinkage", flat)
    yield _range(bundle, "marginal", {"zero_truncation": False})
    yield _range(bundle, "marginal_shrinkage", flat)


def _bound() -> Statement:
    """Definition 6 and Theorem 1 write "<"; with three labels in a cell the closed form can be too small."""
    epsilon = 0.001
    published, exact = _local_risks([[4, 2, 1]], [epsilon])
    pairs = _local_risks([[one, other] for one in range(1, 9) for other in range(1, one + 1)], list(make_grid(51)))
    return judge(
        "4.1, Theorem 1",
        "The closed form is above the local risk of a heterogeneous cell",
        "always",
        f"{published.item():.4f} against {exact.item():.4f} for a cell with counts 4, 2, 1 (K = 3) at epsilon "
        f"{epsilon:g}",
        holds=bool(published.item() >= exact.item()),
        partly=bool((pairs[0] >= pairs[1] - NOT_EXACT).all()),
        why="With two labels in a cell it is a bound. It is built from two counts, n - 1 and 1, and with three labels "
        "or more it can be too small.",
    )


def _local_risks(cells: list[list[int]], epsilons: list[float]) -> tuple[Floats, Floats]:
    """Published and exact local risk with K = 3 under Laplace noise: (profiles, epsilons)."""
    survival = Survival(tuple(Laplace(epsilon=float(epsilon)).noise for epsilon in epsilons))
    (block,) = Profiles.from_cells(cells, n_levels=3).blocks
    found = Local().risk(block, 3, survival, ("published", "exact"))
    return found["published"], found["exact"]


def _second_term() -> Statement:
    """e^(-eps/2) + e^((1.5-n) eps) - e^((1-n) eps), twice what a heterogeneous cell adds; falls with epsilon."""
    epsilon = make_grid(501)
    risen = 0.0
    for n in SIZES:
        term = np.exp(-0.5 * epsilon) + np.exp((1.5 - n) * epsilon) - np.exp((1.0 - n) * epsilon)
        risen = max(risen, float(np.diff(term).max()))
    return judge(
        "4.1, special case K = 2",
        "The term of heterogeneous cells decreases in epsilon for any cell of 2 or more",
        "always",
        f"it never rises along {len(epsilon)} epsilons, for cells of {', '.join(str(n) for n in SIZES)}"
        if risen <= 0
        else f"it rises by up to {risen:.2g}",
        holds=risen <= 0,
        why="It rises somewhere.",
    )


def _survival(size: int, paper: str) -> Statement:
    """1 - e^((0.5-n) eps)/2, the probability that a count of n is not released as zero."""
    at = {epsilon: float(Laplace(epsilon=epsilon).noise.survive(size)) for epsilon in (0.1, 1.0)}
    return judge(
        COROLLARY,
        f"1 - exp((0.5 - n) epsilon)/2 for cells of {size} or more is at least",
        paper,
        f"{at[1.0]:.4f} at epsilon 1, {at[0.1]:.4f} at epsilon 0.1",
        holds=at[0.1] >= float(paper),
        partly=same(paper, at[1.0]),
        why="It holds from epsilon 1 on; the text does not say so, and at smaller epsilons the factor falls to 1/2.",
    )


def _homogeneous_lines(evidence: Evidence) -> list[Line]:
    """The paper's curves of the experiments whose cells are all homogeneous."""
    words = {"measure": "local", "form": "published", "attack": "homogeneity"}
    return [line for bundle in evidence.homogeneous for line in bundle.pick(**words)]


def _lower_bound(evidence: Evidence) -> Statement:
    lines = _homogeneous_lines(evidence)
    least = min(float(line.risk.min()) for line in lines)
    ends = [line.limits.chance for line in lines]
    return judge(
        COROLLARY,
        "Where all cells are homogeneous the risk is never below 2^-K, 25% for K = 2",
        "0.25",
        f"{least:.4f} is the least on the curves; they tend to {span(ends, 4)}",
        holds=least >= 0.25 - NOT_EXACT and all(same("0.25", end) for end in ends),
        why="Some curve goes below.",
    )


def _growth(evidence: Evidence) -> Statement:
    lines = _homogeneous_lines(evidence)
    falls = sum(bool((np.diff(line.risk) < -NOT_EXACT).any()) for line in lines)
    return judge(
        COROLLARY,
        "Where all cells are homogeneous the risk grows with epsilon",
        "always",
        f"{len(lines) - falls} of {len(lines)} curves never fall",
        holds=falls == 0,
        why="Some curve falls.",
    )


def _range(bundle: Bundle, measure: str, priors: dict[str, Any]) -> Statement:
    """The two ends of a measure on a table of homogeneous cells, with a prior that leaves A(n) or f below 1."""
    experiment = bundle.experiment
    asked: dict[str, Any] = {"measures": measure, "forms": "published", "weights": "uniform", "epsilon": [1.0]}
    free, fitted = (curve(experiment.table, "laplace", **asked, **given).lines[0].limits for given in (priors, {}))
    floor = 0.5 ** experiment.table.profiles().n_levels
    within = [
        math.isclose(ends.chance, floor, abs_tol=5e-4) and math.isclose(ends.raw, 1.0, abs_tol=5e-4)
        for ends in (free, fitted)
    ]
    name = measure.replace("_", " ")
    prior = "all alpha 1" if "alpha" in priors else "Poisson sizes that are not zero-truncated"
    condition = (
        "It holds only where A(n) = 1, that is where the prior allows homogeneous cells alone."
        if "alpha" in priors
        else "It holds only where sizes of 0 are ruled out; with a plain Poisson distribution empty cells take a share."
    )
    return judge(
        "4, Corollaries 2 and 4",
        f"Where all cells are homogeneous the {name} risk lies between 2^-K and 1 ({experiment.label})",
        "0.25 to 1",
        f"{free.chance:.3f} to {free.raw:.3f} with {prior}; {fitted.chance:.3f} to {fitted.raw:.3f} with fitted priors",
        holds=all(within),
        partly=any(within),
        why=condition,
    )
