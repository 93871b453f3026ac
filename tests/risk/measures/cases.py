"""Cases that every noise and every measure is run on. A new noise or measure is one line here."""

from __future__ import annotations

import math
from functools import cache, partial

import mpmath as mp

from cellrisk.counts.profiles import Profiles
from cellrisk.noise.channel import AdditiveChannel
from cellrisk.noise.distributions import DiscreteGaussianNoise, GaussianNoise, GeometricNoise, LaplaceNoise, Noise
from cellrisk.risk.measures import Local, Measure
from cellrisk.risk.measures.dirichlet import Dirichlet
from cellrisk.risk.measures.given_total import Expected, MarginalShrinkage, Shrinkage
from cellrisk.risk.measures.marginal import Marginal
from cellrisk.risk.measures.sizes import SizeDistribution
from tests.risk.measures import oracle

poisson_sizes = partial(SizeDistribution, "poisson", math.inf)
negative_binomial_sizes = partial(SizeDistribution, "negbin")
NOISES: dict[str, tuple[Noise, float, oracle.Probability]] = {
    f"{kind.__name__}({scale})-{threshold}": (kind(scale), threshold, cache(make(scale, threshold)))
    for kind, make in (
        (LaplaceNoise, oracle.laplace),
        (GaussianNoise, oracle.gaussian),
        (GeometricNoise, oracle.geometric),
        (DiscreteGaussianNoise, oracle.discrete_gaussian),
    )
    for scale, threshold in ((0.4, 0.5), (1.3, 0.5), (9.0, 0.5), (1.3, 2.5))
}

CELLS = [(1, 0), (3, 0), (1, 1), (3, 1), (4, 3), (2, 0, 0), (3, 1, 0), (2, 2, 1), (4, 1, 1), (1, 1, 1, 0), (2, 1, 1, 1)]


def alpha_for(n_levels: int) -> list[float]:
    return [0.3, 1.7, 0.9, 2.2][:n_levels]


SIZES: dict[str, SizeDistribution] = {
    "poisson": poisson_sizes(0.9, truncated=True, source="given"),
    "poisson-plain": poisson_sizes(0.9, truncated=False, source="given"),
    "negbin": negative_binomial_sizes(0.7, 0.5, truncated=True, source="given"),
    "negbin-plain": negative_binomial_sizes(2.5, 0.4, truncated=False, source="given"),
}
"""Small means, so that enumeration to LAST leaves out less than 1e-9."""
LAST = {"poisson": 12, "poisson-plain": 12, "negbin": 24, "negbin-plain": 14}


@cache
def size_law(name: str, n: int) -> mp.mpf:
    law = SIZES[name]
    if law.family == "poisson":
        rate = mp.mpf(law.mean)
        chance, empty = mp.exp(-rate) * rate**n / mp.factorial(n), mp.exp(-rate)
    else:
        shape, mean = mp.mpf(law.shape), mp.mpf(law.mean)
        empty = (shape / (shape + mean)) ** shape
        chance = mp.rf(shape, n) / mp.factorial(n) * empty * (mean / (shape + mean)) ** n
    return chance / (1 - empty) if law.truncated else chance


def prior_for(n_levels: int) -> Dirichlet:
    return Dirichlet.given(alpha_for(n_levels), n_levels)


def measures_for(n_levels: int) -> dict[str, Measure]:
    prior = prior_for(n_levels)
    named: dict[str, Measure] = {"local": Local(), "expected": Expected(), "shrinkage": Shrinkage(prior)}
    for name, sizes in SIZES.items():
        named[f"marginal/{name}"] = Marginal(sizes)
        named[f"marginal_shrinkage/{name}"] = MarginalShrinkage(prior, sizes)
    return named


MEASURES = tuple(measures_for(2))


def ours(measure: str, cell: tuple[int, ...], noise: Noise, threshold: float, form: str) -> float:
    """The package's risk of one cell."""
    profiles = Profiles.from_cells([cell], n_levels=len(cell))
    averages = measures_for(len(cell))[measure].average(profiles, AdditiveChannel((noise,), threshold), (form,))
    assert set(averages) == {(form, "uniform"), (form, "records")}
    assert math.isclose(averages[form, "uniform"][0], averages[form, "records"][0], rel_tol=1e-15)
    return float(averages[form, "uniform"][0])


def theirs(measure: str, cell: tuple[int, ...], vanish: oracle.Probability, form: str) -> mp.mpf:
    """The oracle's."""
    n, n_levels = sum(cell), len(cell)
    kind, _, sizes = measure.partition("/")
    if kind == "local":
        return oracle.local(cell, vanish, form)
    if kind == "expected":
        return oracle.expected(cell, vanish, form)
    if kind == "shrinkage":
        return oracle.shrinkage(n, alpha_for(n_levels), vanish, form)
    shares = tuple(mp.mpf(count) / n for count in cell)
    if kind == "marginal":
        laws = lambda drawn: oracle.multinomial(drawn, shares)  # noqa: E731
    else:
        laws = lambda drawn: oracle.dirichlet_multinomial(drawn, tuple(alpha_for(n_levels)))  # noqa: E731
    return oracle.over_sizes(
        lambda size: oracle.over_counts(size, n_levels, laws, vanish, form),
        lambda size: size_law(sizes, size),
        LAST[sizes],
    )
