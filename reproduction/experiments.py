"""The paper's tables, and what cellrisk computes on them: risks along epsilon, and distances of released marginals."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import cellrisk as cr
from reproduction.bankruptcy import COLUMNS, DIGEST, Rows

ADULT, BANKRUPTCY, SUBSET = "Adult", "Bankruptcy", "Bankruptcy subset"
PUBLISHED, DEFINED = "as published", "as defined"
ADULT_QIDS = ("age", "relationship", "education", "race", "sex", "hours-per-week")
ADULT_BINS = {"age": 5, "hours-per-week": 10}
SUBSET_QIDS = ("IR", "MR", "CR", "CO", "OR")
ADULT_DELTAS = (0.00003, 0.001, 0.01, 0.1)  # the deltas of the authors' published code, github.com/zhao-xingyuan/DR-HA
BANKRUPTCY_DELTAS = (0.001, 0.01, 0.1)
MECHANISMS = ("laplace", "gaussian", "gaussian-pdp")
"""The paper's mechanisms: Laplace, the classical Gaussian, and the Gaussian of probabilistic DP."""
WEIGHTINGS = {"uniform": "each cell alike", "records": "by records"}
NAMED_EPSILONS = (0.1, 1.0, 10.0, 10.0**1.5)  # epsilons that the paper's text names; they are on every grid
BOX_EPSILONS = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
CLASSICAL_EPSILONS = (1e-3, 1e-2, 1e-1, math.nextafter(1.0, 0.0))
"""The authors use 1 itself, where the classical Gaussian mechanism has no guarantee."""
WAYS = (1, 2, 3)

Line: TypeAlias = Any
"""One of the lines of a `cr.RiskCurve`: setting, attack, measure, form, weights, epsilon, risk and limits."""


@dataclass(frozen=True, eq=False)
class Experiment:
    """One table of the paper, in one reading, with its risks along epsilon."""

    name: str
    reading: str
    table: cr.FrequencyTable
    deltas: tuple[float, ...]
    source: str
    sha256: str
    points: int

    @property
    def label(self) -> str:
        return f"{self.name} {self.reading}" if self.name == ADULT else self.name

    @cached_property
    def rates(self) -> tuple[float, float]:
        """The Poisson rate of the cell sizes by maximum likelihood: plain, and truncated at zero."""
        priors = (cr.Priors(zero_truncation=each) for each in (False, True))
        plain, truncated = (each.fit(self.table.attribute(), ["marginal"]).to_dict() for each in priors)
        return plain["sizes"]["rate"], truncated["sizes"]["rate"]

    @cached_property
    def lines(self) -> list[Line]:
        """All lines: those of the paper and those beyond it."""
        epsilons = make_grid(self.points)
        return [line for asked in self._curves() for line in cr.curve(self.table, epsilon=epsilons, **asked).lines]

    def _curves(self) -> Iterator[dict[str, Any]]:
        """The arguments of each `cr.curve`."""
        paper = {"measures": ("local", "expected"), "forms": "published"}
        yield {"mechanism": MECHANISMS, "delta": self.deltas, **paper}
        yield {"mechanism": "laplace", "measures": "local", "forms": ("exact", "tight")}
        if self.label != f"{ADULT} {PUBLISHED}":
            yield {"mechanism": "geometric", "measures": "local"}
        for attack in ("plurality", "proportional") if self.name == ADULT else ():
            yield {"mechanism": "laplace", "attack": attack}

    def find(self, **words: Any) -> list[Line]:
        """The lines with these words, or one of a tuple; by default homogeneity attack, local risk, published form."""
        words = {"attack": "homogeneity", "measure": "local", "form": "published", **words}
        allowed = {name: word if isinstance(word, tuple) else (word,) for name, word in words.items()}
        return [line for line in self.lines if all(describe(line)[name] in each for name, each in allowed.items())]

    def weighted(self, mechanism: str = "laplace", **words: Any) -> list[Line]:
        """Two lines of one mechanism: each cell alike, and by records."""
        return [self.find(mechanism=mechanism, weights=weights, **words)[0] for weights in WEIGHTINGS]

    def to_dict(self) -> dict[str, Any]:
        profiles = self.table.profiles()
        names = ("records", "cells", "levels", "homogeneous", "heterogeneous")
        about = {"experiment": self.name, "reading": self.reading, "source": self.source, "sha256": self.sha256}
        rates = {"rate_plain": self.rates[0], "rate_zero_truncated": self.rates[1], "deltas": list(self.deltas)}
        return {**about, **{name: getattr(profiles, f"n_{name}") for name in names}, **rates}


def describe(line: Line) -> dict[str, Any]:
    """Return what sets a line apart from the others of its experiment."""
    words = {name: getattr(line, name) for name in ("attack", "measure", "form", "weights")}
    return {"mechanism": line.setting.name, "delta": line.setting.delta, **words}


def make_grid(points: int) -> npt.NDArray[np.float64]:
    """Return epsilons from 10^-3 to 10^2, evenly spaced in the exponent, and those that the paper names.

    >>> [float(f"{epsilon:.4g}") for epsilon in make_grid(6)]
    [0.001, 0.01, 0.1, 1.0, 10.0, 31.62, 100.0]
    """
    exponents = [*np.linspace(-3.0, 2.0, points), *np.log10(NAMED_EPSILONS)]
    return np.asarray(10.0 ** np.unique(np.round(exponents, 12)))


def adult_experiments(points: int) -> tuple[Experiment, Experiment]:
    """Return Adult as published, where each pair of a cell and an income is a cell, and as defined.

    The authors took the 5,974 rows of their count table, cells times income, for cells. A copy of income among the
    quasi-identifiers does the same: every cell is then homogeneous.

    >>> [experiment.table.n_cells for experiment in adult_experiments(2)]
    [5974, 5009]
    """
    records = cr.datasets.adult_as_published()
    doubled = records.append_column("income of the row", records["income"])
    digest = hashlib.sha256(cr.datasets.adult_path().read_bytes()).hexdigest()
    rows = cr.tabulate(doubled, [*ADULT_QIDS, "income of the row"], "income", bins=ADULT_BINS)
    cells = cr.tabulate(records, ADULT_QIDS, "income", bins=ADULT_BINS)
    about = (ADULT_DELTAS, "UCI Adult, shipped with cellrisk", digest, points)
    return Experiment(ADULT, PUBLISHED, rows, *about), Experiment(ADULT, DEFINED, cells, *about)


def bankruptcy_experiments(rows: Rows, source: str, points: int) -> tuple[Experiment, Experiment]:
    """Return Bankruptcy with its class, and the subset of its attributes with financial flexibility, as sensitive."""
    records = pa.table(dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)))
    whole = cr.tabulate(records, COLUMNS[:-1], "CLASS")
    subset = cr.tabulate(records, SUBSET_QIDS, "FF")
    about = (BANKRUPTCY_DELTAS, f"UCI Qualitative Bankruptcy, from {source}", DIGEST, points)
    return Experiment(BANKRUPTCY, PUBLISHED, whole, *about), Experiment(SUBSET, PUBLISHED, subset, *about)


class Results(NamedTuple):
    """The experiments, and the distances of figure 4; both parts of Bankruptcy are None if the data are missing."""

    rows: Experiment  # Adult as published: rows taken for cells
    adult: Experiment
    bankruptcy: Any = None
    subset: Any = None
    distances: tuple[cr.Utility, ...] = ()  # with noise on the observed cells as the authors did, and on all cells

    @property
    def published(self) -> list[Experiment]:
        """The experiments as the paper has them."""
        return [each for each in (self.rows, self.bankruptcy, self.subset) if each is not None]

    @property
    def homogeneous(self) -> list[Experiment]:
        """The experiments in which the paper has homogeneous cells only."""
        return self.published[:2]

    @property
    def experiments(self) -> list[Experiment]:
        return [self.rows, self.adult, *self.published[1:]]


def compute(bankruptcy: Rows | None, source: str, points: int, releases: int, seed: int) -> Results:
    """Return all experiments, and the distances of figure 4."""
    adult = adult_experiments(points)
    if bankruptcy is None:
        return Results(*adult)
    both = bankruptcy_experiments(bankruptcy, source, points)
    about: dict[str, Any] = {"ways": WAYS, "releases": releases, "seed": seed}
    domain = cr.utility(both[1].table, box_mechanisms(), **about)
    return Results(*adult, *both, (replace(domain, tvd=distances_of_observed(domain)), domain))


def distances_of_observed(domain: cr.Utility) -> npt.NDArray[np.float64]:
    """Return the distances as in the domain's, with noise on the cells that hold people alone, as the authors drew it.

    >>> table = cr.tabulate(pa.table({"q": ["a", "b"], "y": ["c", "d"]}), "q", "y")
    >>> bool(distances_of_observed(cr.utility(table, cr.Laplace(1e6), releases=1)).any())
    False
    """
    cells = domain.table.cells(domain.sensitive)
    true = np.zeros((cells.n_cells, len(cells.levels)))
    true[cells.cell, cells.level] = cells.count
    names = [*cells.names, domain.sensitive]
    level = np.broadcast_to(np.arange(len(cells.levels)), true.shape).ravel()
    values = np.column_stack([np.repeat(cells.codes, len(cells.levels), axis=0), level])
    margins = [
        np.unique(values[:, [names.index(name) for name in each]], axis=0, return_inverse=True)[1].ravel()
        for each in domain.marginals
    ]
    tvd = np.ones_like(domain.tvd)
    for place, mechanism in enumerate(domain.mechanisms):
        random = np.random.default_rng(domain.seed)
        for release in range(domain.releases):
            noisy = true.ravel() + mechanism.noise.sample(random, (true.size,))
            released = np.where(noisy < mechanism.threshold, 0.0, np.rint(noisy))
            for number, margin in enumerate(margins):
                if released.any():
                    p, q = (np.bincount(margin, counts) / counts.sum() for counts in (true.ravel(), released))
                    tvd[place, number, release] = np.abs(p - q).sum() / 2
    return tvd


def box_mechanisms() -> list[cr.Mechanism]:
    """Return the mechanisms of the paper's figure 4, by name, delta and epsilon.

    >>> len(box_mechanisms())
    36
    """
    settings: list[tuple[Any, Any, tuple[float, ...]]] = [("laplace", None, BOX_EPSILONS)]
    settings += [("gaussian", delta, CLASSICAL_EPSILONS) for delta in BANKRUPTCY_DELTAS]
    settings += [("gaussian-pdp", delta, BOX_EPSILONS) for delta in BANKRUPTCY_DELTAS]
    return [cr.mechanism(name, epsilon=each, delta=delta) for name, delta, epsilons in settings for each in epsilons]
