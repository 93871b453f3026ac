"""Figures to decide by of a release in hand: by enumeration, and over many releases those of `assess`."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.errors import InvalidInput
from cellrisk.publish.auditing import audit
from cellrisk.risk.certainty.count_priors import NegativeBinomial
from tests.near import near
from tests.publish.simulation.cases import make

TWO = [[3, 0], [1, 1], [0, 2], [5, 1], [1, 0], [0, 1]] * 6
THREE = [[3, 0, 0], [1, 1, 0], [0, 2, 1], [4, 1, 1], [1, 0, 0], [0, 0, 1]] * 6
MECHANISMS = {
    "geometric": cr.Geometric(epsilon=1.0),
    "laplace, threshold": cr.Laplace(epsilon=1.2, threshold=1.5),
    "discrete-gaussian": cr.DiscreteGaussian(epsilon=1.5, delta=0.05),
}
CERTAINTIES = (0.7, 0.9)


def frame_of(released: np.ndarray) -> pd.DataFrame:
    """A release that lists every count."""
    return pd.DataFrame(
        [
            (f"{place:04}", "abc"[label], count)
            for place, row in enumerate(released.tolist())
            for label, count in enumerate(row)
        ],
        columns=["cell", "y", "n"],
    )


def draw(cells: list[list[int]], mechanism: cr.Mechanism, generator: np.random.Generator) -> np.ndarray:
    true = np.array(cells)
    noisy = true + np.rint(mechanism.noise.sample(generator, true.shape)).astype(np.int64)
    return np.where(noisy < mechanism.threshold, 0, noisy)


def share(belief: NegativeBinomial, mechanism: cr.Mechanism, released: tuple[int, ...]) -> list[float]:
    """P(label | released cell), from a sum over all counts up to 80 of every label."""
    first, counts = int(mechanism.threshold + 0.5), np.arange(81)
    behind = []
    for shape, value in zip(belief.shapes, released, strict=True):
        logs = [math.lgamma(shape + n) - math.lgamma(shape) - math.lgamma(n + 1) for n in counts]
        prior = np.exp(logs) * belief.theta**counts
        if value < first:
            chance = mechanism.noise.p_zero(counts, mechanism.threshold)
        else:
            chance = mechanism.noise.cdf(value - counts + 0.5) - mechanism.noise.cdf(value - counts - 0.5)
        behind.append(float((counts * prior * chance).sum() / (prior * chance).sum()))
    return [each / sum(behind) for each in behind]


def informed(found: cr.Audit) -> float:
    """The people whom the informed attacker names correctly."""
    (row,) = (row for row in found.attackers if row["attack"] == "informed")
    return float(row["revealed"])


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS.keys())
def test_every_cell_is_named_as_by_a_sum_over_all_counts(mechanism: cr.Mechanism) -> None:
    belief = NegativeBinomial((0.4, 0.3, 0.2), 0.6)
    released = draw(THREE, mechanism, np.random.default_rng(4))
    expected = dict.fromkeys(CERTAINTIES, 0)
    lone = 0
    for counts, row in zip(THREE, released.tolist(), strict=True):
        shares = share(belief, mechanism, tuple(row))
        for certainty in CERTAINTIES:
            if max(shares) >= certainty:
                expected[certainty] += counts[shares.index(max(shares))]
        if sorted(row)[:2] == [0, 0] and max(row) == mechanism.threshold + 0.5:
            lone += counts[row.index(max(row))]
    for certainty, people in expected.items():
        given: Any = {"count": "n", "mechanism": mechanism, "certainty": certainty, "belief": belief}
        found = audit(make(THREE), frame_of(released), **given)
        assert informed(found) == people
        assert found.attackers[0]["own"] == found.facts["alone"] == lone
    assert sum(expected.values()) > 0


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS.keys())
def test_over_many_releases_it_is_what_assess_expects(mechanism: cr.Mechanism) -> None:
    """60 releases: people named, and because of their own record, within 4.5 standard errors of their mean."""
    table, generator = make(TWO), np.random.default_rng(8)
    expected = cr.assess(table, mechanism, certainty=0.7).to_dict()["attackers"][:4]
    found = []
    for _ in range(60):
        rows = audit(table, frame_of(draw(TWO, mechanism, generator)), count="n", mechanism=mechanism, certainty=0.7)
        found.append([row[part] for row in rows.attackers for part in ("revealed", "own")])
    numbers = np.array(found)
    error = np.maximum(numbers.std(axis=0, ddof=1), 0.05) / math.sqrt(len(numbers))
    means = [row[part] for row in expected for part in ("revealed", "own")]
    assert (np.abs(numbers.mean(axis=0) - means) < 4.5 * error).all()


def test_counts_that_keep_their_sign_tell_more() -> None:
    """Below zero, geometric noise says what zero says, as it forgets; the discrete Gaussian's says more."""
    belief = NegativeBinomial((0.4, 0.3), 0.6)
    table = make([[2, 0], [0, 0]])
    for mechanism in (cr.Geometric(epsilon=1.0), cr.DiscreteGaussian(epsilon=1.5, delta=0.05)):
        shares = {}
        for value in (0, -1, -3):
            means = [behind(belief, mechanism, *pair) for pair in ((0, 3), (1, value))]
            shares[value] = means[0] / sum(means)
        for value in (-1, -3):
            for certainty, people in ((shares[value] - 1e-9, 2.0), (shares[value] + 1e-9, 0.0)):
                seen = frame_of(np.array([[3, value], [-1, -1]]))
                given: Any = {"count": "n", "mechanism": mechanism, "certainty": certainty, "belief": belief}
                assert informed(audit(table, seen, **given)) == people
        assert (shares[-3] > shares[-1] + 1e-6) == (mechanism.name == "discrete-gaussian")


def behind(belief: NegativeBinomial, mechanism: cr.Mechanism, label: int, value: int) -> float:
    """People expected behind a value that noise was added to and that was not cut at zero."""
    counts = np.arange(81)
    logs = [math.lgamma(belief.shapes[label] + n) - math.lgamma(n + 1) for n in counts]
    prior = np.exp(logs) * belief.theta**counts
    chance = mechanism.noise.cdf(value - counts + 0.5) - mechanism.noise.cdf(value - counts - 0.5)
    return float((counts * prior * chance).sum() / (prior * chance).sum())


def test_the_answer_of_release_says_its_mechanism() -> None:
    pytest.importorskip("opendp", reason="OpenDP is not installed; run: pip install 'cellrisk[release]'")
    table = make(TWO)
    for clamp in (True, False):
        released = cr.release(table, cr.Geometric(epsilon=1.0), observed_levels=True, clamp=clamp)
        found = audit(table, released)
        document = json.loads(json.dumps(found.to_dict()))["decision"]
        assert document["mechanism"]["epsilon"] == 1.0
        assert document["ceiling"]["even_two"] == near(cr.ceiling("geometric", epsilon=1.0).even_two)
        assert [row["attack"] for row in found.attackers] == ["homogeneity", "plurality", "best-guess", "informed"]
        assert "would not be without their own record" in found.headline
        frame = found.to_frame().set_index("figure").value
        assert frame["informed, revealed"] == informed(found)
        assert frame["homogeneity, own"] == found.facts["alone"]


def test_what_cannot_be_told_has_a_reason() -> None:
    table = make(TWO)
    seen = frame_of(draw(TWO, cr.Geometric(epsilon=1.0), np.random.default_rng(1)))
    for released, given, words in (
        (seen, {}, "the mechanism of the release is not known"),
        (seen.assign(n=seen.n + 0.25), {"epsilon": 1.0}, "not whole numbers"),
    ):
        found = audit(table, released, count="n", **given)  # type: ignore[arg-type]
        assert [row["attack"] for row in found.attackers] == ["homogeneity", "plurality"]
        assert words in found.to_dict()["decision"]["certainty_unknown"]
        assert f"is not computed: {found.to_dict()['decision']['certainty_unknown']}." in " ".join(str(found).split())
    records = pd.DataFrame({"cell": ["0000", "0001", "0001"], "y": ["a", "a", "b"]})
    assert audit(table, records, count=False, epsilon=1.0).made.mechanism is None


def test_what_would_mislead_is_refused() -> None:
    table, mechanism = make(TWO), cr.Geometric(epsilon=1.0)
    seen = frame_of(draw(TWO, mechanism, np.random.default_rng(1)))
    for changed, words in (
        ({"certainty": 0.9}, "depends on the mechanism"),
        ({"belief": "table"}, "depends on the mechanism"),
        ({"epsilon": 1.0, "certainty": 0.5}, "above 0.5 and below 1"),
        ({"epsilon": 1.0, "belief": "0.1,0.2,0.3/0.9"}, "one shape for each label"),
        ({"epsilon": 1.0, "threshold": 4.5}, "below the smallest that this mechanism releases"),
        ({"mechanism": mechanism, "epsilon": 2.0}, "epsilon"),
    ):
        with pytest.raises(InvalidInput, match=words):
            audit(table, seen, count="n", **changed)  # type: ignore[arg-type]
    for given in ({"epsilon": 1e-8}, {"epsilon": 1.0, "belief": "table"}):
        found = audit(table, seen, count="n", **given)  # type: ignore[arg-type]
        assert "the prior looks at the table, or the counts or the noise are too large" in " ".join(str(found).split())
