"""`assess_sequence`, the risk along releases to the same people, and `largest_epsilon`, what the next one may spend."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.cells import Cells
from cellrisk.counts.profiles import LevelCounts
from cellrisk.counts.table import require_table
from cellrisk.decide.limits import SMALLEST_EPSILON
from cellrisk.decide.policies import Policies, Policy
from cellrisk.decide.search import find_admissible
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.noise.distributions import USUAL_THRESHOLD
from cellrisk.noise.mechanisms import (
    MECHANISMS,
    USUAL_MECHANISM,
    AnalyticGaussian,
    DiscreteGaussian,
    Mechanism,
    describe_mechanism,
    gaussian_log_delta,
)
from cellrisk.repeat.accounting.ceilings import describe_ceiling, find_ceiling
from cellrisk.repeat.accounting.composition import Composition, compose, find_epsilon
from cellrisk.repeat.accounting.distributions import Parts
from cellrisk.repeat.accounting.loss import Loss, require_alike, widest
from cellrisk.risk.ceilings import Ceiling
from cellrisk.risk.explanation.risky_cells import profile_cells
from cellrisk.risk.measures import FORMS, MEASURES, WEIGHTS, Local
from cellrisk.risk.people import Caused, count_caused
from cellrisk.risk.priors import USUAL_PRIORS, Priors
from cellrisk.risk.sweep import LARGEST_EPSILON
from cellrisk.system.arrays import Floats, Integers, find_distinct
from cellrisk.system.checks import read_list, read_texts, require_kind, require_within
from cellrisk.system.choices import (
    CompositionMethod,
    Form,
    MeasureName,
    MechanismName,
    Neighbours,
    OverallKind,
    list_words,
    require_word,
)
from cellrisk.system.results import Result, find_words

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

LEAST_EPSILON = 1e-9
"""Gaussian noise that is wide for its delta composes to epsilon 0, which no mechanism has."""
KINDS: tuple[OverallKind, ...] = list_words(OverallKind)
"""How the attributes of a group are taken together: bounded, and unbounded."""


@dataclass(frozen=True)
class Step:
    """A release to the same people as the others of its sequence.

    Parameters
    ----------
    given
        The mechanism, or what is known of its loss.
    attribute
        The sensitive attribute that is released; None if only the counts of the groups are, FD(X).
    quasi_identifiers
        Those of this release; None for all that the table has.

    >>> from cellrisk import Geometric
    >>> Step(Geometric(0.5), "job").describe()
    'job at 0.5-DP'
    """

    given: InitVar[Mechanism | Loss]
    attribute: str | None = None
    quasi_identifiers: str | Sequence[str] | None = None
    loss: Loss = field(init=False)

    def __post_init__(self, given: Mechanism | Loss) -> None:
        if not isinstance(given, (Mechanism, Loss)):
            got, fix = type(given).__name__, "for example Geometric(0.5)"
            raise InvalidInput("a step needs a mechanism or a loss", got=got, fix=fix)
        if self.attribute is not None and not isinstance(self.attribute, str):
            raise InvalidInput("the attribute of a step must be a name", got=type(self.attribute).__name__)
        names = self.quasi_identifiers
        if names is not None:
            names = (names,) if isinstance(names, str) else read_texts("quasi_identifiers", names, "names")
            if not names or len(set(names)) != len(names):
                raise InvalidInput(
                    "the quasi-identifiers of a step must be named once each, and one at least",
                    got=f"{len(names)} names",
                    fix="None stands for all that the table has",
                )
        object.__setattr__(self, "quasi_identifiers", names)
        object.__setattr__(self, "loss", Loss.of(given) if isinstance(given, Mechanism) else given)

    def describe(self) -> str:
        """The release in a few words."""
        return f"{self.attribute or 'counts of the groups'} at {self.loss.describe()}"


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of some quasi-identifiers, and the finest groups, of all of them, that each is made of."""

    names: tuple[str, ...]
    parent: Integers
    """For each of the finest groups, the group that it is a part of."""
    sizes: Integers
    """Records in each of the finest groups."""
    cells: Mapping[str, Cells]
    """The cells of each sensitive attribute; attributes may differ in their cells."""
    places: Mapping[str, Integers]
    """For each of an attribute's own cells, its group."""


def align_cells(several: Sequence[Cells]) -> list[Cells]:
    """Cells of several attributes with the values of all of them as their domains, so that codes can be compared."""
    for place in range(len(several[0].domains)):
        labels = tuple(dict.fromkeys(label for cells in several for label in cells.domains[place].labels))
        number = {label: code for code, label in enumerate(labels)}
        aligned = []
        for cells in several:
            codes, domains = cells.codes.copy(), [*cells.domains]
            codes[:, place] = np.array([number[label] for label in domains[place].labels])[codes[:, place]]
            domains[place] = replace(domains[place], labels=labels)
            aligned.append(replace(cells, domains=tuple(domains), codes=codes))
        several = aligned
    if not any(cells.n_cells for cells in several):
        raise InvalidInput("a table without records has no risk")
    return list(several)


def merge_groups(aligned: Sequence[Cells], names: tuple[str, ...]) -> Groups:
    """The groups of some quasi-identifiers, in the order of the table."""
    codes, widths = np.concatenate([cells.codes for cells in aligned]), list(map(len, aligned[0].domains))
    first, finest = find_distinct(codes.T, widths)
    sizes = np.zeros(len(first), np.int64)
    np.maximum.at(sizes, finest, np.concatenate([cells.sizes for cells in aligned]))
    kept = [aligned[0].names.index(name) for name in names]
    merged = [reduce(Cells.drop, set(cells.names) - set(names), cells) for cells in aligned]
    codes = np.concatenate([codes[first][:, kept], *(cells.codes for cells in merged)])
    _, where = find_distinct(codes.T, [widths[place] for place in kept])
    parent, *places = np.split(where, np.cumsum([len(first), *(cells.n_cells for cells in merged)])[:-1])
    attributes = [cells.sensitive for cells in merged]
    return Groups(
        names, parent, sizes, dict(zip(attributes, merged, strict=True)), dict(zip(attributes, places, strict=True))
    )


@dataclass(frozen=True)
class Overall:
    """The overall risk after some releases: each cell's, averaged over cells or over records."""

    max_uniform: float
    max_records: float
    sum_uniform: float
    sum_records: float

    @staticmethod
    def of(risks: Mapping[str, Floats], groups: Groups) -> Overall:
        """The averages of the risks of each attribute in each of the finest groups."""
        weights = 1.0 / np.bincount(groups.parent)[groups.parent], groups.sizes
        combined = [reduce(combine, risks.values(), np.zeros(len(groups.sizes))) for combine in (np.maximum, np.add)]
        return Overall(*(float(np.average(risk, weights=weight)) for risk in combined for weight in weights))

    def value(self, kind: str = "max", weights: str = "records") -> float:
        require_word("kind", kind, KINDS)
        require_word("weights", weights, WEIGHTS)
        return float(getattr(self, f"{kind}_{weights}"))


@dataclass(frozen=True)
class Released:
    """One release of a sequence, and the risks after it."""

    number: int
    attribute: str | None
    quasi_identifiers: tuple[str, ...]
    """The quasi-identifiers of this release; the cells are those of all releases so far."""
    loss: Loss
    cumulative: Composition
    cells: int
    assessed: tuple[str, ...]
    """The attributes whose risk was assessed at this cumulative loss."""
    mechanism: Mechanism | None
    """That of this cumulative loss; None if nothing was assessed."""
    uniform: float | None
    """The released attribute's own risk at this cumulative loss, each cell alike; None if none was released."""
    records: float | None
    """The risk of the attribute by records; None if no attribute was released."""
    overall: Overall
    caused: Caused | None
    """People revealed only because of their own record, of the attribute released, were it released once at this
    cumulative loss; None if none was released. Its cap holds for any attack on all releases so far: the people times
    the total variation of the composed losses, or if that is not known, times what their guarantee allows at most."""
    overall_caused: Overall
    """The share caused in each cell, kept and averaged as the overall risk is."""
    ceiling: Ceiling | None
    """The ceiling of all releases so far, of two labels; None if it is not known."""
    why_no_ceiling: str

    @property
    def name(self) -> str:
        return self.attribute or "cells"

    def to_dict(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "attribute": self.attribute,
            "quasi_identifiers": list(self.quasi_identifiers),
            "loss": self.loss.to_dict(),
            "cumulative": {
                **{name: getattr(self.cumulative, name) for name in ("epsilon", "delta", "dp_definition")},
                "method": self.cumulative.chosen.method,
            },
            "cells": self.cells,
            "assessed": list(self.assessed),
            "mechanism": None if self.mechanism is None else self.mechanism.to_dict(),
            "risk": None if self.records is None else {"uniform": self.uniform, "records": self.records},
            "overall": vars(self.overall),
            "caused": None if self.caused is None else self.caused.to_dict(),
            "overall_caused": {"max": self.overall_caused.max_records, "sum": self.overall_caused.sum_records},
            "ceiling": describe_ceiling(self.ceiling),
            **({"ceiling_unknown": self.why_no_ceiling} if self.ceiling is None else {}),
        }


@dataclass(frozen=True, repr=False)
class RiskSequence(Result):
    """The answer of `assess_sequence`. Prints as a sentence and a table; `plot` draws it."""

    picture = "draw_sequence"
    wording = "several_releases"

    n_records: int
    measure: str
    form: str
    rows: tuple[Released, ...]
    ceiling: Ceiling | None
    """The ceiling of all releases, of as many labels as the attribute released last has."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that were released, in the order of their first release."""
        return tuple(dict.fromkeys(row.attribute for row in self.rows if row.attribute is not None))

    @property
    def statements(self) -> tuple[str, ...]:
        """Return what is exact, what is a bound, and what is neither."""
        return tuple(find_words(self.wording).statements(self))

    def _numbers(self) -> list[dict[str, Any]]:
        """One row a risk: that of the attribute released, and the overall one of each kind and weighting. Then what was
        caused, likewise, as shares by records, and the ceiling of two labels."""
        found: list[tuple[Any, ...]] = []
        for row in self.rows:
            about = (row.number, row.attribute, row.cumulative.epsilon, row.cumulative.delta)
            if row.records is not None:
                found += [(*about, "attribute", "uniform", row.uniform), (*about, "attribute", "records", row.records)]
            found += [
                (*about, kind, weights, row.overall.value(kind, weights)) for kind in KINDS for weights in WEIGHTS
            ]
            if row.caused is not None:
                found.append((*about, "caused", "records", row.caused.share))
            found += [(*about, f"caused_{kind}", "records", row.overall_caused.value(kind)) for kind in KINDS]
            if row.ceiling is not None:
                found.append((*about, "ceiling", None, row.ceiling.even_two))
        columns = ["release", "attribute", "cumulative_epsilon", "cumulative_delta", "kind", "weights", "risk"]
        return [dict(zip(columns, row, strict=True)) for row in found]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {
            "records": self.n_records,
            "measure": self.measure,
            "form": self.form,
            "releases": [row.to_dict() for row in self.rows],
            "ceiling": describe_ceiling(self.ceiling),
            "statements": list(self.statements),
            "sentence": self.headline,
        }


def assess_sequence(
    table: FrequencyTable,
    steps: Sequence[Step],
    *,
    method: CompositionMethod = "tightest",
    total_delta: float | None = None,
    measure: MeasureName = "local",
    form: Form = "tight",
    priors: Priors = USUAL_PRIORS,
) -> RiskSequence:
    """Assess the risk release by release, as sensitive attributes of the same people are released in turn.

    The table has all quasi-identifiers and sensitive attributes of the sequence. After each release:

    - The cumulative loss composes all losses so far, by the ``method`` of `compose`, at ``total_delta`` (None: the sum
      of the deltas so far).
    - The attribute released is assessed at that loss (paper, section 4.3: eps_0 o eps_1 o ... o eps_j), in noise of
      the release's own kind if that can have it (`find_mechanism`). That is the paper's rule, and neither exact nor a
      bound: the loss is an upper bound, but risk is not monotone in epsilon.
    - The cells are those of all quasi-identifiers so far, for a release on fewer of them too. Where new ones split
      the cells, every attribute released so far is assessed again, at the new loss and in the same noise.
    - What was revealed stays revealed: in each cell, an attribute keeps the larger of its old risk and its new
      one, and a child starts from its parent's risks. The overall risk of a cell is the largest over the attributes
      (max, bounded by 1) or their sum (unbounded; an attribute released again adds what is beyond its old risk).

    Beside the risk stand figures to decide by. ``caused``: people revealed only because of their own record, by the
    same rule, local and tight whatever the measure; ``overall_caused`` is kept like the overall risk. Of one release
    both are exact; of several they are neither exact nor a bound, but ``cap`` is a bound on what any attack on all
    releases causes. ``ceiling``: the worst case for one record in all of them, from their losses composed
    (`compose_ceiling`); exact where all are of one attribute and their noise is known, else an upper bound.

    Averaged by records, the overall risk never falls, of either kind. Averaged with each cell alike it never falls
    while the cells stay the same; splitting a cell of low risk into many can lower it.

    New people (vertical growth) are a table of their own with their own releases: disjoint cohorts are assessed apart,
    and what they spend together is the most that one of them spends. Where only some people get new releases, their
    table is assessed with the releases of all followed by their own.

    Parameters
    ----------
    table
        Made by `tabulate` of all quasi-identifiers and sensitive attributes of the sequence.
    steps
        The releases in their order.
    method, total_delta
        How losses are added up, as in `compose`.
    measure, form
        The words of the risk, as in `assess`.
    priors
        How the priors of the measures that need any are found.

    >>> import cellrisk as cr
    >>> table = cr.tabulate(cr.datasets.adult_as_published(), ["age", "sex"], ["income", "race"], bins={"age": 5})
    >>> found = assess_sequence(table, [Step(cr.Laplace(epsilon=0.5), name) for name in ("income", "race")])
    >>> [(row.cumulative.epsilon, round(row.overall.max_records, 4)) for row in found.rows]
    [(0.5, 0.0351), (1.0, 0.0353)]
    """
    require_table(table, single="sequences of releases")
    require_kind("priors", priors, Priors)
    require_word("measure", measure, MEASURES)
    require_word("form", form, FORMS)
    steps = read_steps(table, steps)
    if several := [step.loss.unit for step in steps if step.loss.unit.contributions > 1]:
        raise InvalidInput(
            "the risk of a sequence is known for people with one record each alone",
            got=str(several[0]),
            fix="add up the losses alone, with ledger show, or ledger plan",
            code="several-records",
        )
    if total_delta is not None:
        require_within("total_delta", total_delta, least=0, below=1)
    released = [name for name in dict.fromkeys(step.attribute for step in steps) if name is not None]
    finest = align_cells([table.cells(name) for name in released or table.sensitive[:1]])
    risk: dict[str, Floats] = {}  # of each attribute so far, in each of the finest groups
    caused: dict[str, Floats] = {}
    groups, used, rows = None, set[str](), []
    for number, step in enumerate(steps, start=1):
        so_far, name = steps[:number], step.attribute
        used |= {*(step.quasi_identifiers or table.quasi_identifiers)}
        names = tuple(name for name in table.quasi_identifiers if name in used)
        split = groups is None or groups.names != names
        groups = merge_groups(finest, names) if split or groups is None else groups
        n_groups = int(groups.parent.max()) + 1
        anew = dict.fromkeys([*(risk if split else ()), *([] if name is None else [name])])
        cumulative = compose([step.loss for step in so_far], method=method, delta=total_delta)
        ceiling, why_no_ceiling = _find_ceiling(so_far)
        mechanism, uniform, records, own = None, None, None, None
        if anew:
            mechanism = find_mechanism(cumulative)
            channel = mechanism.channel
            for attribute in anew:
                cells = groups.cells[attribute]
                profiled, place = profile_cells(cells)
                once = np.ones(len(cells.count), np.int64)
                levels = LevelCounts.from_pairs(cells.levels, cells.level, cells.count, once, cells.sizes[cells.cell])
                alone = replace(table.attribute(attribute), levels=levels, profiles=cells.profiles(), vectors=None)
                fitted = priors.fit(alone, [measure]).measure(measure)  # as if the table had these groups
                own_risk = fitted.risks(profiled, channel, form)[place, 0]
                own_caused = Local().risks(profiled, channel, "own")[place, 0]
                for kept, found in ((risk, own_risk), (caused, own_caused)):
                    of_groups = np.zeros(n_groups)
                    of_groups[groups.places[attribute]] = found
                    kept[attribute] = np.maximum(kept.get(attribute, 0.0), of_groups[groups.parent])
                if attribute == name:
                    sizes, profiles = cells.sizes, cells.profiles()
                    uniform, records = float(own_risk.mean()), float(sizes @ own_risk / sizes.sum())
                    exposed = Local().average(profiles, channel, ("tight",))["tight", "records"][0]
                    own = count_caused(profiles, mechanism, profiles.n_records * float(exposed))
                    # Without a known total variation, what the guarantee of all releases allows.
                    guaranteed = min(math.tanh(0.5 * cumulative.epsilon) + cumulative.delta, 1.0)
                    own = replace(own, cap=own.records * (guaranteed if ceiling is None else ceiling.advantage))
        rows.append(
            Released(
                number=number,
                attribute=name,
                quasi_identifiers=tuple(step.quasi_identifiers or table.quasi_identifiers),
                loss=step.loss,
                cumulative=cumulative,
                cells=n_groups,
                assessed=tuple(anew),
                mechanism=mechanism,
                uniform=uniform,
                records=records,
                overall=Overall.of(risk, groups),
                caused=own,
                overall_caused=Overall.of(caused, groups),
                ceiling=ceiling,
                why_no_ceiling=why_no_ceiling,
            )
        )
    last = next((step.attribute for step in reversed(steps) if step.attribute is not None), None)
    labels = 2 if last is None else max(table.attribute(last).n_levels, 2)
    return RiskSequence(table.n_records, measure, form, tuple(rows), _find_ceiling(steps, labels)[0])


def _find_ceiling(steps: Sequence[Step], labels: int = 2) -> tuple[Ceiling | None, str]:
    """The ceiling of some releases; or None, and why it is not known.

    A release of another attribute, or of the counts of cells alone, may show nothing of a person's value, and is
    counted as if it did: then it is an upper bound.
    """
    found, why_not = find_ceiling(tuple(step.loss for step in steps), labels)
    attributes = {step.attribute for step in steps}
    alike = None not in attributes and len(attributes) == 1
    return None if found is None else replace(found, exact=found.exact and alike), why_not


def read_steps(table: FrequencyTable, steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps, if there is one and the table has every column that they name."""
    listed = tuple(read_list("steps", steps, "steps"))
    if not listed:
        fix = "for example [Step(Laplace(epsilon=0.5))]"
        raise InvalidInput("a sequence needs one release at least", fix=fix, code="no-steps")
    for number, step in enumerate(listed, start=1):
        if not isinstance(step, Step):
            got, fix = type(step).__name__, "write Step(mechanism)"
            raise InvalidInput(f"release {number} is not a Step", got=got, fix=fix, code="no-step")
        if step.attribute is not None:
            table.attribute(step.attribute)
        for name in step.quasi_identifiers or ():
            if name not in table.quasi_identifiers:
                allowed = ", ".join(table.quasi_identifiers)
                raise UnknownName(f"the table has no quasi-identifier '{name}'", allowed=allowed)
    return listed


def find_mechanism(composition: Composition) -> Mechanism:
    """The mechanism that the last of some releases is assessed in, at their composition.

    One release is assessed in its own. Several: Gaussian noises are one Gaussian together, 1/sigma^2 = sum 1/sigma_t^2,
    which the analytic Gaussian has at their exact composition. A discrete Gaussian is assessed at the sum of the rhos,
    by which it was made. Otherwise the noise is of the last release's kind if that is pure and no delta is spent, and
    geometric or the analytic Gaussian's if not.
    """
    losses, delta, known = composition.losses, composition.delta, composition.losses[-1].mechanism
    if known is not None and len(losses) == 1 and delta == losses[0].delta:
        return known
    threshold = USUAL_THRESHOLD if known is None else known.threshold
    neighbours, rhos = losses[-1].neighbours, [loss.total_rho for loss in losses]
    epsilon = max(composition.epsilon, LEAST_EPSILON)
    if not delta:
        kind = USUAL_MECHANISM if known is None or not known.pure else known.name
        return MECHANISMS[kind](epsilon, neighbours=neighbours, threshold=threshold)
    if known is not None and known.name == "discrete-gaussian" and None not in rhos:
        total = find_epsilon(math.fsum(rho for rho in rhos if rho is not None), delta)
        return DiscreteGaussian(max(total, LEAST_EPSILON), delta=delta, neighbours=neighbours, threshold=threshold)
    mu = Parts.of(composition.events).gaussian
    if mu is not None and composition.method != "basic":
        delta = min(delta, math.exp(gaussian_log_delta(1.0 / mu, epsilon)))  # less, of noise that is wide for it
    return AnalyticGaussian(epsilon, delta=delta, neighbours=neighbours, threshold=threshold)


@dataclass(frozen=True, eq=False, repr=False)
class NextEpsilon(Result):
    """The answer of `largest_epsilon`."""

    wording = "several_releases"

    setting: Mechanism
    max_ceiling: float
    epsilon: float | None
    """The largest epsilon up to which every smaller one keeps the limit; None if none does."""
    searched: tuple[float, float]
    before: Ceiling
    """The worst case of the releases so far."""
    cumulative: Composition | None
    """The loss of all releases, the next one at ``epsilon``; None if there is none."""
    ceiling: Ceiling | None
    """The worst case then."""

    @property
    def binds(self) -> bool:
        """Return whether the limit ends the range, and not the search or a policy."""
        return self.epsilon != self.searched[1]

    def _numbers(self) -> list[dict[str, float | None]]:
        then = None if self.ceiling is None else self.ceiling.even_two
        return [{"epsilon": self.epsilon, "before": self.before.even_two, "ceiling": then}]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {
            "mechanism": self.setting.name,
            "delta": self.setting.delta,
            "max_ceiling": self.max_ceiling,
            "epsilon": self.epsilon,
            "binds": self.binds,
            "searched": list(self.searched),
            "before": describe_ceiling(self.before),
            "ceiling": describe_ceiling(self.ceiling),
            "cumulative": None if self.cumulative is None else self.cumulative.to_dict(),
            "sentence": self.headline,
        }


def largest_epsilon(
    past: Sequence[Loss],
    mechanism: Mechanism | MechanismName = USUAL_MECHANISM,
    *,
    max_ceiling: float,
    delta: float | None = None,
    neighbours: Neighbours | None = None,
    threshold: float | None = None,
    method: CompositionMethod = "tightest",
    total_delta: float | None = None,
    policy: Policy | Policies | None = None,
) -> NextEpsilon:
    """Find the largest epsilon for the next release that keeps the worst case of all releases within a limit.

    It uses no data. The worst case rises with epsilon, so every smaller epsilon keeps the limit too. The end is on the
    safe side, and one part in a million beyond it is not within the limit.

    Parameters
    ----------
    past
        What the releases so far have cost.
    mechanism, delta, neighbours, threshold
        The next release. Of a mechanism that is an object, the epsilon does not matter.
    max_ceiling
        How often an attacker who already knows every other record, and finds two values equally likely, may be
        right: above 0.5, below 1.
    method, total_delta
        How losses are added up, as in `compose`.
    policy
        One to obey beside those that are in force: their limits on the ceiling and on epsilon end the search.

    >>> found = largest_epsilon([], max_ceiling=0.75)  # geometric: e^eps/(1 + e^eps)
    >>> round(found.epsilon, 5)
    1.09861
    """
    losses = tuple(read_list("past", past, "losses"))
    require_alike(losses)
    require_within("max_ceiling", max_ceiling, above=0.5, below=1.0)
    given = describe_mechanism(mechanism, delta=delta, neighbours=neighbours, threshold=threshold)
    setting = given.with_epsilon(SMALLEST_EPSILON)
    if losses:
        setting = setting.with_unit(widest(losses))
    end = min(LARGEST_EPSILON, setting.largest_epsilon, Policies.in_force(policy).largest_epsilon(setting))
    searched = SMALLEST_EPSILON, max(SMALLEST_EPSILON, end)

    def after(*epsilons: float) -> Ceiling:
        """The ceiling of the releases so far and of next ones; refused if it is not known."""
        found, why_not = find_ceiling((*losses, *(Loss.of(setting.with_epsilon(epsilon)) for epsilon in epsilons)))
        if found is None:
            raise InvalidInput(f"these releases have no ceiling: {why_not}", code="no-ceiling")
        return found

    def excess(epsilons: Floats) -> Floats:
        return np.array([after(epsilon).even_two - max_ceiling for epsilon in epsilons.tolist()])

    intervals = find_admissible(excess, *searched, np.inf).intervals
    if not intervals or intervals[0][0] > searched[0]:
        return NextEpsilon(setting, max_ceiling, None, searched, after(), None, None)
    epsilon = intervals[0][1]
    cumulative = compose([*losses, Loss.of(setting.with_epsilon(epsilon))], method=method, delta=total_delta)
    return NextEpsilon(setting, max_ceiling, epsilon, searched, after(), cumulative, after(epsilon))
