"""What a table gives away that is published with a perturbation, and no epsilon: every measure, and what to decide by.

Nothing here asks for a guarantee. A measure needs q(m) and s(m) alone, and the rest the rows P(m -> r).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.profiles import Profiles
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import MECHANISMS, USUAL_MECHANISM, Mechanism
from cellrisk.noise.perturbations import Perturbation, read_perturbation
from cellrisk.risk.assessment import CURATOR_NOTE, Risk
from cellrisk.risk.attacks import Confidence, choose_risks, find_confidence
from cellrisk.risk.caused import caused_shares
from cellrisk.risk.certainty import (
    USUAL_BELIEF,
    USUAL_CERTAINTY,
    Belief,
    NamedPeople,
    NegativeBinomial,
    find_certainty,
    why_unknown,
)
from cellrisk.risk.certainty.channel import last_likely
from cellrisk.risk.figures import Attacker
from cellrisk.risk.measures import Survival, average_risks
from cellrisk.risk.measures.survival import each_alone
from cellrisk.risk.people import People, count_people, split_profiles
from cellrisk.risk.priors import USUAL_PRIORS, Fitted, Priors
from cellrisk.system.arrays import Floats
from cellrisk.system.results import Result
from cellrisk.system.text import aligned, percent, round_down

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute, FrequencyTable

MOST_OUTCOMES = 20_000_000
"""Of published vectors that are gone through for what an attacker can be sure of."""
TIE = 1e-12
LEAST_EPSILON, LARGEST_EPSILON, POINTS = 1e-3, 100.0, 401
CERTAINTY_POINTS = 33


@dataclass(frozen=True)
class EqualRisk:
    """The epsilon at which a mechanism gives away as many people, and how far each moves the table."""

    mechanism: str
    by: str
    """``caused``, or ``certainty``."""
    figure: float
    """That of the perturbation, in people."""
    epsilon: float | None
    """The largest up to which every smaller one gives away no more; None where there is none, or no end."""
    why: str | None
    """Why there is none."""
    distance: float
    """That of the perturbation: half the expected differences of counts, as a share of the records."""
    mechanism_distance: float | None
    """That of the mechanism at this epsilon."""
    scanned: tuple[tuple[float, float], ...] = ()
    """Epsilons that were looked at, and the people given away there."""

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.why is None):
            raise InvalidInput("an equal risk has an epsilon, or a reason why there is none")

    def sentence(self) -> str:
        """What an office gains or loses by moving to differential privacy."""
        what = "because of their own record" if self.by == "caused" else "to an attacker who is sure of them"
        if self.epsilon is None:
            return f"No epsilon of {self.mechanism} noise gives away as many people {what}: {self.why}."
        return (
            f"At equal risk, {round(self.figure):,} people given away {what} and no more, {self.mechanism} noise has "
            f"epsilon {self.epsilon:g} and lies {percent(self.mechanism_distance or 0.0)} of the records away from the "
            f"true table; the perturbation lies {percent(self.distance)} away."
        )

    def to_dict(self) -> dict[str, Any]:
        named = {name: value for name, value in vars(self).items() if name != "scanned"}
        return {**named, "sentence": self.sentence()}


@dataclass(frozen=True)
class PerturbedFigures:
    """What to decide by, of one sensitive attribute."""

    sensitive: str
    records: int
    caused: float
    """People read off correctly who would not be, had their record been left out, less those of whom it is the other
    way round: a perturbation can hide somebody because of his own record, so that it may be negative."""
    people: People
    certainty: tuple[NamedPeople, ...]
    unknown: str | None
    belief: Belief | None
    ceiling: float
    """How often anybody tells which of two equally likely values a person has, at the worst counts of all others."""
    worst_counts: tuple[int, int]
    """Those counts."""
    confidence: Confidence
    raw_share: float
    equal: tuple[EqualRisk, ...] = ()

    def sentence(self, name: str) -> str:
        """The figures for somebody who reads nothing else."""
        own = f"{round(abs(self.caused)):,} of {self.records:,} people ({percent(abs(self.caused) / self.records)})"
        read = f"have their {self.sensitive} read off the table correctly"
        if self.caused >= 0:
            told = f"With {name}, about {own} would {read} only because their own record is in it; "
        else:
            told = f"With {name}, about {own} more would {read} were their own record left out; "
        parts = [
            f"{told}about {round(self.people.mean):,} ({percent(self.people.mean / self.records)}) would at all, and "
            f"the raw table exposes {percent(self.raw_share)}."
        ]
        if self.certainty:
            surest = self.certainty[-1]
            parts.append(
                f"Somebody who knows the method and does the mathematics could name the {self.sensitive} of "
                f"{surest.people} people rightly and with at least {100 * surest.certainty:g}% certainty."
            )
        often = 100.0 * self.ceiling
        known = " and ".join(f"{count:,}" for count in self.worst_counts)
        parts.append(
            f"Somebody who knew everybody else would tell which of two equally likely values a person has up to "
            f"{math.ceil(often - 1e-9)} times in 100, instead of 50 (where {known} others have them)."
        )
        return " ".join([*parts, *(each.sentence() for each in self.equal)])

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "sensitive": self.sensitive,
            "caused": {"people": self.caused, "share": self.caused / self.records},
            "certainty": [row.to_dict() for row in self.certainty],
            "ceiling": {"even_two": self.ceiling, "worst_counts": list(self.worst_counts)},
            "people": vars(self.people),
            "raw_share": self.raw_share,
            "equal_risk": [each.to_dict() for each in self.equal],
        }
        if self.unknown is not None:
            found["certainty_unknown"] = self.unknown
        return found


@dataclass(frozen=True, repr=False)
class PerturbedAssessment(Result):
    """The answer of `assess_perturbation`."""

    picture = "draw_equal_risk"

    table: FrequencyTable
    perturbation: Perturbation
    risks: tuple[Risk, ...]
    figures: tuple[PerturbedFigures, ...]
    fitted: Mapping[str, Fitted]

    @property
    def headline(self) -> str:
        return "\n".join(each.sentence(self.perturbation.name) for each in self.figures)

    def to_dict(self) -> dict[str, Any]:
        return {
            "table": {"records": self.table.n_records, "cells": self.table.n_cells},
            "perturbation": self.perturbation.to_dict(),
            "risks": [vars(row) for row in self.risks],
            "decision": [each.to_dict() for each in self.figures],
            "headline": self.headline,
        }

    def _numbers(self) -> list[dict[str, Any]]:
        return [vars(row) for row in self.risks]

    def _paragraphs(self) -> list[str]:
        parts = [f"{self.perturbation.describe()}. {NOT_TOLD}"]
        for each in self.figures:
            lines = [
                f"{each.sensitive}: with {100 * row.certainty:g}% certainty or more {row.people} people named rightly, "
                f"of {round(row.named):,} named."
                for row in each.certainty
            ]
            if each.unknown is not None:
                lines.append(f"What an attacker could be sure of is not computed: {each.unknown}.")
            lines.append(f"People exposed: {each.people.describe()}.")
            rows = [
                [row.measure, row.weights or "-", row.form, f"{row.risk:.4f}"]
                for row in self.risks
                if row.sensitive == each.sensitive
            ]
            lines.append(aligned(["measure", "weights", "form", "risk"], rows, left=3))
            parts.append("\n".join(lines))
        return [*parts, CURATOR_NOTE]


NOT_TOLD = (
    "It has no epsilon, so that there is no curve, no entry in a ledger and no bound by a guarantee; the same cell "
    "gets the same perturbation every time, so that nothing is averaged; overlapping tables can undo it, which is not "
    "computed."
)


def assess_perturbation(
    table: FrequencyTable,
    perturbation: str | Perturbation,
    *,
    measures: str | Sequence[str] | None = None,
    forms: str | Sequence[str] | None = None,
    weights: str | Sequence[str] | None = None,
    priors: Priors = USUAL_PRIORS,
    certainty: float | Sequence[float] = USUAL_CERTAINTY,
    belief: str | Belief | Mapping[str, str | Belief] = USUAL_BELIEF,
    compare: str | None = USUAL_MECHANISM,
    delta: float | None = None,
) -> PerturbedAssessment:
    """What can somebody learn from this table, if it is published with cell keys, rounding or suppression?

    Parameters
    ----------
    table
        Made by `tabulate`.
    perturbation
        A rule or a file, as `read_perturbation` reads it: ``"random-rounding:3"``, ``"cell-key"``,
        ``"suppress-below:10,round:5"``, or the path of a table P(m -> r).
    measures, forms, weights, priors, certainty, belief
        As in `assess`; the belief "table" is not offered.
    compare
        The mechanism whose epsilon at equal risk is looked for; None for no comparison.
    delta
        Its delta, where it takes one.

    >>> import cellrisk as cr
    >>> table = cr.tabulate(cr.datasets.adult_as_published(), ["age", "sex"], "income", bins={"age": 5})
    >>> found = assess_perturbation(table, "random-rounding:3", measures="local", compare=None)
    >>> round(found.figures[0].ceiling, 6), found.figures[0].worst_counts
    (0.777778, (0, 2))
    """
    made = read_perturbation(perturbation)
    asked = choose_risks("homogeneity", measures, forms, weights)
    attacker = Attacker.of(certainty, belief)
    survival = Survival((made.noise,), made.threshold)
    limit, counts = find_ceiling(made)
    risks, figures, fitted = [], [], {}
    for name in table.sensitive:
        attribute = table.attribute(name)
        profiles = attribute.profiles
        made.check_reach(max(int(block.counts.max()) for block in profiles.blocks))
        fitted[name] = priors.fit(attribute, asked.measures)
        chosen = [asked.make(measure, fitted[name].measure) for measure in asked.measures]
        for measure, form, weight, values in average_risks(profiles, chosen, survival, asked.forms, asked.weights):
            risks.append(Risk(name, "homogeneity", measure, form, weight, float(values[0])))
        unknown = why_unknown(attribute) or _why_too_many(attribute, made)
        believed = None if unknown else attacker.believe(attribute)
        sure = () if believed is None else find_perturbed_certainty(attribute, made, attacker.certainties, believed)
        caused = sum_caused(profiles, made)
        equal = [] if compare is None else [_equal_caused(profiles, made, caused, compare, delta)]
        if compare is not None and sure and believed is not None:
            equal.append(_equal_certainty(attribute, made, sure[-1], believed, compare, delta))
        figures.append(
            PerturbedFigures(
                sensitive=name,
                records=profiles.n_records,
                caused=caused,
                people=count_people(profiles, made),  # type: ignore[arg-type]
                certainty=sure,
                unknown=unknown,
                belief=believed,
                ceiling=limit,
                worst_counts=counts,
                confidence=find_confidence(profiles, survival)[0],
                raw_share=attribute.exposed_share,
                equal=tuple(equal),
            )
        )
    return PerturbedAssessment(table, made, tuple(risks), tuple(figures), fitted)


def sum_caused(profiles: Profiles, perturbation: Perturbation) -> float:
    """D = sum_i sum_k n_ik d(n_ik) prod_{j != k} q(n_ij), d(m) = q(m - 1) - q(m), which may be negative. Exact.

    >>> sum_caused(Profiles.from_cells([[10, 0], [12, 3]], n_levels=2), read_perturbation("suppress-below:10,round:5"))
    10.0
    """
    noise, total = perturbation.noise, 0.0
    for block in split_profiles(profiles):
        vanish = noise.vanish(block.counts)
        gained = noise.vanish(block.counts - 1) - vanish
        absent = float(noise.vanish(0)) ** (profiles.n_levels - block.counts.shape[1])
        alone = np.stack(each_alone(list(vanish.T), list(gained.T)), axis=1) * absent
        total += float(block.cells @ (block.counts * alone).sum(axis=1))
    return total


def find_ceiling(perturbation: Perturbation) -> tuple[float, tuple[int, int]]:
    """How often can anybody tell which of two equally likely labels a person has, at the worst counts a, b of others?

    The release is that of (a + 1, b) or of (a, b + 1): C = 1/2 sum_{r, r'} max(P(a+1 -> r) P(b -> r'),
    P(a -> r) P(b+1 -> r')). Pairs of neighbouring rows that are alike but for a shift are gone through once.
    """
    kinds: dict[tuple[tuple[float, float], ...], tuple[int, Floats, Floats]] = {}
    for count in range(perturbation.last + perturbation.period if perturbation.period else perturbation.last):
        (values, chances), (more, others) = perturbation.row(count), perturbation.row(count + 1)
        every = np.union1d(values, more)
        without, having = np.zeros(len(every)), np.zeros(len(every))
        without[np.searchsorted(every, values)] = chances
        having[np.searchsorted(every, more)] = others
        key = tuple(sorted(zip(without.round(12).tolist(), having.round(12).tolist(), strict=True)))
        kinds.setdefault(key, (count, without, having))
    best, counts = 0.5, (0, 0)
    for (a, without, having), (b, without_b, having_b) in product(kinds.values(), repeat=2):
        if a <= b:
            first, second = np.outer(having, without_b), np.outer(without, having_b)
            found = 0.5 * float(np.maximum(first, second).sum())
            if found > best + TIE:
                best, counts = found, (a, b)
    return min(best, 1.0), counts


# Certainty


def _why_too_many(attribute: Attribute, perturbation: Perturbation) -> str | None:
    vectors = attribute.vectors
    if vectors is None:
        return None
    lengths = {count: len(perturbation.row(count)[0]) for count in np.unique(vectors.counts).tolist()}
    sizes = [math.prod(lengths[count] for count in vector) for vector in vectors.counts.tolist()]
    return "too many labels to go through all that may be published" if sum(sizes) > MOST_OUTCOMES else None


def find_perturbed_certainty(
    attribute: Attribute, perturbation: Perturbation, certainties: Sequence[float], belief: Belief
) -> tuple[NamedPeople, ...]:
    """How many people's value is named with each certainty, rightly or not, over everything that may be published.

    As `find_certainty`, with rows in place of noise: w_k(r) = sum n pi_k(n) P(n -> r) / sum pi_k(n) P(n -> r), which
    need not rise with r. Exact.
    """
    if not isinstance(belief, NegativeBinomial):
        raise InvalidInput(
            "the belief table is not offered for a perturbation", allowed="negbin, or shapes and theta: 0.4,0.15/0.9"
        )
    vectors = attribute.vectors
    if vectors is None:
        raise InvalidInput(f"no certainty can be told for '{attribute.name}'", got=why_unknown(attribute) or "")
    behind = [
        expect_behind(perturbation, shape, belief.theta, int(column.max()))
        for shape, column in zip(belief.shapes, vectors.counts.T, strict=True)
    ]
    right, named = np.zeros(len(certainties)), np.zeros(len(certainties))
    for vector, cells in zip(vectors.counts.tolist(), vectors.cells.tolist(), strict=True):
        chance, parts = _published(perturbation, behind, vector)
        whole = sum(parts[1:], parts[0])
        for place, certainty in enumerate(certainties):
            for count, part in zip(vector, parts, strict=True):
                sure = float(chance[(part >= (certainty - TIE) * whole) & (whole > 0)].sum())
                right[place] += cells * count * sure
                named[place] += cells * sum(vector) * sure
    return tuple(
        NamedPeople(certainty, belief.name, float(r), float(r), float(n), float(n))
        for certainty, r, n in zip(certainties, right, named, strict=True)
    )


def expect_behind(perturbation: Perturbation, shape: float, theta: float, largest: int) -> dict[int, float]:
    """How many people the attacker expects behind each published value, for counts believed negative binomial."""
    from scipy import special

    if shape == 0:
        return {}
    end = max(math.ceil(last_likely(shape, theta, 50.0)), largest)
    if not perturbation.period:
        end = min(end, perturbation.last)
    counts = np.arange(end + 1.0)
    logs = special.gammaln(shape + counts) - special.gammaln(counts + 1.0) + counts * math.log(theta)
    prior = np.exp(logs - logs.max())
    top: dict[int, float] = {}
    bottom: dict[int, float] = {}
    for count, weight in enumerate(prior.tolist()):
        values, chances = perturbation.row(count)
        for value, chance in zip(values.tolist(), chances.tolist(), strict=True):
            top[value] = top.get(value, 0.0) + count * weight * chance
            bottom[value] = bottom.get(value, 0.0) + weight * chance
    return {value: top[value] / total if total > 0 else float(value) for value, total in bottom.items()}


def _published(
    perturbation: Perturbation, behind: Sequence[Mapping[int, float]], vector: Sequence[int]
) -> tuple[Floats, list[Floats]]:
    """Every vector that a cell may be published as: its probability, and what is expected behind each label."""
    chance: Floats = np.ones(1)
    parts: list[Floats] = []
    for count, expected in zip(vector, behind, strict=True):
        values, chances = perturbation.row(count)
        seen = np.array([expected.get(value, 0.0) for value in values.tolist()])
        parts = [np.repeat(part, len(values)) for part in parts]
        parts.append(np.tile(seen, len(chance)))
        chance = np.outer(chance, chances).ravel()
    return chance, parts


# At equal risk


def find_distance(profiles: Profiles, perturbation: Perturbation) -> float:
    """Half the expected sum of |published - true| over cells that hold people, all labels, as a share of the records.

    The total variation distance of the two tables, but for the change of their total. Exact.
    """
    return _distance(profiles, lambda count: _moved(*perturbation.row(count), count))


def find_mechanism_distance(profiles: Profiles, mechanism: Mechanism) -> float:
    """The same for a mechanism, on the same cells."""
    from cellrisk.risk.certainty.channel import Channel

    channel = Channel(mechanism.noise, mechanism.threshold)

    def expect(count: int) -> float:
        first, last = channel.window(count)
        values = np.arange(min(first, channel.zero), last + 1)
        chances = channel.chance(np.array([count]), values)[0]
        return _moved(np.where(values == channel.zero, 0, values), chances, count)

    return _distance(profiles, expect)


def _moved(values: Any, chances: Floats, count: int) -> float:
    return float(chances @ np.abs(values - count))


def _distance(profiles: Profiles, expect: Any) -> float:
    known: dict[int, float] = {0: expect(0)}
    total = 0.0
    for block in profiles.blocks:
        for counts, cells in zip(block.counts.tolist(), block.cells.tolist(), strict=True):
            for count in counts:
                if count not in known:
                    known[count] = expect(count)
                total += cells * known[count]
            total += cells * (profiles.n_levels - len(counts)) * known[0]
    return total / (2.0 * profiles.n_records)


def _equal_caused(
    profiles: Profiles, perturbation: Perturbation, caused: float, compare: str, delta: float | None
) -> EqualRisk:
    make = _maker(compare, delta)
    epsilons = np.geomspace(LEAST_EPSILON, LARGEST_EPSILON, POINTS)

    def people(points: Any) -> Floats:
        noises = tuple(make(float(point)).noise for point in np.atleast_1d(points))
        return caused_shares(profiles, Survival(noises)) * profiles.n_records

    return _equal(profiles, perturbation, compare, "caused", caused, epsilons, people, make)


def _equal_certainty(
    attribute: Attribute, perturbation: Perturbation, sure: NamedPeople, belief: Belief, compare: str, delta: Any
) -> EqualRisk:
    make = _maker(compare, delta)
    epsilons = np.geomspace(0.01, LARGEST_EPSILON, CERTAINTY_POINTS)

    def people(points: Any) -> Floats:
        found = []
        for point in np.atleast_1d(points):
            made = make(float(point))
            found.append(find_certainty(attribute, made.noise, made.threshold, (sure.certainty,), belief)[0].right_high)
        return np.array(found)

    return _equal(attribute.profiles, perturbation, compare, "certainty", sure.right, epsilons, people, make)


def _maker(compare: str, delta: float | None) -> Any:
    if compare not in MECHANISMS:
        raise InvalidInput("unknown mechanism to compare with", got=repr(compare), allowed=", ".join(MECHANISMS))
    return lambda epsilon: MECHANISMS[compare](epsilon=epsilon, delta=0.0 if delta is None else delta)


def _equal(
    profiles: Profiles,
    perturbation: Perturbation,
    compare: str,
    by: str,
    figure: float,
    epsilons: Floats,
    people: Any,
    make: Any,
) -> EqualRisk:
    """The first crossing from below: up to it, no point of the scan gives away more."""
    distance = find_distance(profiles, perturbation)

    found = people(epsilons)
    scanned = tuple(zip(epsilons.tolist(), found.tolist(), strict=True))

    def none(why: str) -> EqualRisk:
        return EqualRisk(compare, by, figure, None, why, distance, None, scanned)

    if figure <= 0.5:
        return none("the perturbation gives away nobody")
    above = np.flatnonzero(found > figure)
    if not len(above):
        return none("it gives away fewer at every epsilon")
    if above[0] == 0:
        return none(f"it gives away more already at epsilon {epsilons[0]:g}")
    low, high = float(epsilons[above[0] - 1]), float(epsilons[above[0]])
    while high - low > 1e-6 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if float(people(middle)[0]) > figure else (middle, high)
    epsilon = round_down(low)
    moved = find_mechanism_distance(profiles, make(epsilon))
    return EqualRisk(compare, by, figure, epsilon, None, distance, moved, scanned)
