"""The ceiling beside riskcal, which computes the same operational risks from trade-off curves."""

from __future__ import annotations

from typing import Literal

import pytest

import cellrisk as cr

analysis = pytest.importorskip("riskcal.analysis", reason="riskcal is not installed")
privacy_loss_distribution = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_gaussian(epsilon: float, neighbours: Literal["add-remove", "replace"]) -> None:
    """A record moves one count by 1, so mu = 1/sigma; a changed value moves two, so mu = sqrt(2)/sigma."""
    mechanism = cr.AnalyticGaussian(epsilon, delta=1e-5, neighbours=neighbours)
    two = 2.0**0.5 / mechanism.scale
    found = cr.ceiling(mechanism, labels=2)
    moved = 1.0 / mechanism.scale if neighbours == "add-remove" else two
    assert found.advantage == pytest.approx(float(analysis.get_advantage_from_gdp(moved)), rel=0, abs=1e-9)
    assert found.even_two == pytest.approx(1.0 - float(analysis.get_bayes_risk_from_gdp(two, 0.5)), rel=0, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_laplace(epsilon: float) -> None:
    """Privacy loss distributions are upper bounds on a grid of losses, here of step 0.0001."""
    mechanism = cr.Laplace(epsilon)
    one = privacy_loss_distribution.from_laplace_mechanism(mechanism.scale, value_discretization_interval=1e-4)
    two = one.compose(one)
    assert cr.ceiling(mechanism).advantage == pytest.approx(analysis.get_advantage_from_pld(one), rel=0, abs=2e-4)
    success, beside = cr.ceiling(mechanism).even_two, 1.0 - float(analysis.get_bayes_risk_from_pld(two, 0.5))
    assert success == pytest.approx(beside, rel=0, abs=2e-4)
    assert success <= beside + 1e-9
