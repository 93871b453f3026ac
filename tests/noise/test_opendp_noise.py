"""The scale of a release is rounded up until OpenDP's privacy map confirms it; here, maps ask for more or for less."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import opendp.prelude as dp
import pytest

import cellrisk as cr
from cellrisk.errors import InvalidInput
from cellrisk.noise import opendp_noise
from cellrisk.noise.opendp_noise import calibrate_noise, load_opendp

GUARANTEE = (1.0, 1e-6)


def use(monkeypatch: pytest.MonkeyPatch, loss: Callable[[float], float], epsilon: float = 0.0) -> None:
    """A map by which noise of a scale costs this, and so much as an epsilon at a delta."""

    def make(scale: float, *, gaussian: bool) -> Any:
        return SimpleNamespace(map=lambda _: loss(scale))

    profile = SimpleNamespace(epsilon=lambda _: epsilon)
    converted = SimpleNamespace(make_zCDP_to_approxDP=lambda _: SimpleNamespace(map=lambda _: profile))
    monkeypatch.setattr(opendp_noise, "load_opendp", lambda: SimpleNamespace(c=converted))
    monkeypatch.setattr(opendp_noise, "make_noise", make)


@pytest.mark.parametrize("needed", [0.0, 3e-16, 5e-16, 1e-15, 2e-14, 4.6e-13, 9e-13])
def test_a_scale_is_rounded_up_by_no_more_than_twice_what_is_needed(
    needed: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    least = 2.0 * (1.0 + needed)
    use(monkeypatch, lambda scale: 0.5 if scale >= least else 0.6)
    for scale, loss in (calibrate_noise(2.0, 1.0, 0.5), calibrate_noise(2.0, 1.0, 0.5, GUARANTEE)):
        assert loss == 0.5  # as much as is allowed is allowed
        assert least <= scale <= 2.0 * (1.0 + max(2.0 * needed, 2.0**-51 if needed else 0.0))


@pytest.mark.parametrize("needed", [1.1e-12, 1e-9])
def test_more_than_one_part_in_a_million_millions_is_refused(needed: float, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, lambda scale: 0.5 if scale >= 2.0 * (1.0 + needed) else 0.6)
    told = "the noise of the mechanism is too small for what it promises: OpenDP's privacy map gives more; got"
    with pytest.raises(InvalidInput, match=f"^{told} geometric with scale 2$"):
        calibrate_noise(2.0, 1.0, 0.5)
    with pytest.raises(InvalidInput, match=f"^{told} discrete-gaussian with scale 2$"):
        calibrate_noise(2.0, 1.0, 0.5, GUARANTEE)


@pytest.mark.parametrize(("rho", "epsilon", "kept"), [(0.5, 1.0, True), (0.6, 1.0, False), (0.5, 1.1, False)])
def test_both_losses_of_gaussian_noise_are_kept(
    rho: float, epsilon: float, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, lambda _: rho, epsilon)
    if kept:
        assert calibrate_noise(3.0, 1.0, 0.5, GUARANTEE) == (3.0, 0.5)
    else:
        with pytest.raises(InvalidInput, match="too small for what it promises"):
            calibrate_noise(3.0, 1.0, 0.5, GUARANTEE)


def test_without_opendp_a_release_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)  # type: ignore[misc]
    with pytest.raises(InvalidInput, match=r"^a release needs OpenDP; pip install 'cellrisk\[release\]'$"):
        load_opendp()


def test_noise_is_drawn_on_whole_numbers() -> None:
    made = [cr.Geometric(epsilon=0.5).to_opendp(), cr.DiscreteGaussian(epsilon=0.5, delta=1e-6).to_opendp()]
    assert [str(each.input_metric) for each in made] == ["L1Distance(i64)", "L2Distance(f64)"]
    for each in made:
        assert each.input_domain == dp.vector_domain(dp.atom_domain(T="i64"))
        assert all(isinstance(count, int) for count in each([3, 0]))
