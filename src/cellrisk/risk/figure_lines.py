"""The figures to decide by along epsilon: caused, certainty, ceiling, each with the two ends that it tends to."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import AdditiveChannel
from cellrisk.noise.distributions import Noise
from cellrisk.noise.mechanisms import Mechanism, make_noises
from cellrisk.risk.attacks import people_risk
from cellrisk.risk.caused import Caused, caused_shares, count_caused_on_average
from cellrisk.risk.ceilings import (
    Labels,
    find_success,
    odds_bound,
    require_labels,
    total_variation,
)
from cellrisk.risk.certainty import ConfidentInferences, CountPrior, find_certainty, why_unknown
from cellrisk.risk.figures import Attacker
from cellrisk.risk.sweep import NO_NOISE, Limits, find_limits
from cellrisk.system.arrays import Floats
from cellrisk.system.choices import FigureName
from cellrisk.system.progress import StepCounter

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute

FIGURES: tuple[FigureName, ...] = ("caused", "certainty", "ceiling")


@dataclass(frozen=True, eq=False)
class CausedLine:
    """People revealed because of their own record, and people revealed for any reason, at each epsilon."""

    points: tuple[Caused, ...]
    limits: Limits
    """The share of people as epsilon falls to 0, and without noise."""
    exposed_limits: Limits
    """The share of people exposed as epsilon falls to 0, and without noise."""

    @property
    def people(self) -> Floats:
        return np.array([point.people for point in self.points])

    @property
    def share(self) -> Floats:
        return np.array([point.share for point in self.points])

    @property
    def exposed_share(self) -> Floats:
        return np.array([point.exposed / point.records for point in self.points])


@dataclass(frozen=True, eq=False)
class CertaintyLine:
    """People whose value the informed attacker infers with one certainty, at each epsilon."""

    certainty: float
    points: tuple[ConfidentInferences, ...]
    chance: ConfidentInferences
    """The people named as epsilon falls to 0."""
    raw: ConfidentInferences
    """The people named without noise."""

    @property
    def right(self) -> Floats:
        """People inferred correctly; the middle if only two ends are known."""
        return np.array([point.right for point in self.points])


@dataclass(frozen=True, eq=False)
class CeilingLine:
    """The worst case at each epsilon, where two values, or all of them, are equally likely beforehand."""

    labels: int
    even_two: Floats
    even: Floats
    advantage: Floats
    odds: tuple[float | None, ...]
    limits: Limits
    """Where ``even_two`` goes at the two ends of epsilon."""

    def to_dict(self, place: int) -> dict[str, Any]:
        """What stands under ``ceiling`` in JSON, of one epsilon."""
        odds = self.odds[place]
        return {
            "even_two": float(self.even_two[place]),
            "even": float(self.even[place]),
            "labels": self.labels,
            "advantage": float(self.advantage[place]),
            "odds": odds if odds is not None and math.isfinite(odds) else None,
        }


@dataclass(frozen=True, eq=False)
class FigureLines:
    """The figures of one sensitive attribute under one mechanism, along epsilon; None or empty where not asked for."""

    setting: Mechanism
    sensitive: str
    attack: str
    records: int
    epsilon: Floats
    caused: CausedLine | None = None
    certainty: tuple[CertaintyLine, ...] = ()
    """One line a certainty, ascending."""
    belief: CountPrior | None = None
    ceiling: CeilingLine | None = None

    def place(self, epsilon: float) -> int:
        """The place of the epsilon that is nearest to this one."""
        return int(np.argmin(np.abs(np.log(self.epsilon / epsilon))))

    def _start(self, epsilon: float) -> dict[str, Any]:
        """What a row and an entry begin with."""
        setting = {"mechanism": self.setting.name, "delta": self.setting.delta}
        return {**setting, "epsilon": epsilon, "sensitive": self.sensitive}

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row a figure and epsilon: ``risk`` is a share of the people, or of the ceiling a probability."""
        for place, epsilon in enumerate(self.epsilon):
            start = self._start(float(epsilon))
            if self.caused is not None:
                point = self.caused.points[place]
                words = {"attack": self.attack, "measure": "caused", "form": "tight", "weights": "records"}
                found = {"people": point.people, "exposed": point.exposed, "sd": point.deviation, "bound": point.bound}
                yield {**start, **words, "risk": point.share, **vars(self.caused.limits), **found}
            for line in self.certainty:
                named = line.points[place]
                words = {"attack": "bayes", "measure": "certainty", "form": "tight", "weights": "records"}
                ends = {"chance": line.chance.right / self.records, "raw": line.raw.right / self.records}
                found = {"people": named.right, **named.to_dict()}
                yield {**start, **words, "risk": named.right / self.records, **ends, **found}
            if self.ceiling is not None:
                level = self.ceiling.to_dict(place)
                nothing = {"attack": "informed", "measure": "ceiling", "form": None, "weights": None}
                found = {"even_two": level["even_two"], "even": level["even"], "labels": level["labels"]}
                yield {**start, **nothing, "risk": level["even_two"], **vars(self.ceiling.limits), **found}

    def entries(self) -> Iterator[dict[str, Any]]:
        """The entries of ``decision``, as `assess` has them, for each epsilon; the interval of caused is left out."""
        for place, epsilon in enumerate(self.epsilon):
            entry = self._start(float(epsilon))
            if self.caused is not None:
                point = self.caused.points[place]
                found = point.to_dict() | {"exposed": point.exposed}
                entry["caused"] = {key: value for key, value in found.items() if key not in ("low", "high")}
            if self.certainty:
                entry["certainty"] = [line.points[place].to_dict() for line in self.certainty]
            if self.ceiling is not None:
                entry["ceiling"] = self.ceiling.to_dict(place)
            yield entry


def find_figure_lines(
    attribute: Attribute,
    setting: Mechanism,
    epsilons: Floats,
    figures: Sequence[str],
    attack: str,
    attacker: Attacker,
    report: StepCounter,
) -> FigureLines:
    """The figures asked for, of one sensitive attribute under one mechanism, at each epsilon."""
    caused = ceilings = belief = None
    certainty: tuple[CertaintyLine, ...] = ()
    if "caused" in figures:
        caused = _trace_caused(attribute, setting, epsilons, attack)
        report.add(len(epsilons))
    if "certainty" in figures:
        unknown = why_unknown(attribute)
        if unknown:
            raise InvalidInput(
                f"no certainty can be told for '{attribute.name}'", got=unknown, fix="leave the measure certainty out"
            )
        belief = attacker.believe(attribute)
        certainty = _trace_certainty(attribute, setting, epsilons, attacker, belief, report)
    if "ceiling" in figures:
        ceilings = _trace_ceiling(attribute.n_levels, setting, epsilons)
        report.add(len(epsilons))
    records = attribute.profiles.n_records
    return FigureLines(setting, attribute.name, attack, records, epsilons, caused, certainty, belief, ceilings)


def _trace_caused(attribute: Attribute, setting: Mechanism, epsilons: Floats, attack: str) -> CausedLine:
    profiles = attribute.profiles
    measure = people_risk(attack)
    exposed = (
        profiles.n_records * measure.average(profiles, setting.channel_at(epsilons), ("tight",))["tight", "records"]
    )
    points = tuple(
        count_caused_on_average(profiles, setting.with_epsilon(float(epsilon)), float(people), attack)
        for epsilon, people in zip(epsilons, exposed, strict=True)
    )
    ends = AdditiveChannel((setting.limit_noise, NO_NOISE), setting.threshold)
    shares = caused_shares(profiles, ends, attack=attack).tolist()
    exposed_limits = find_limits(profiles, measure, ("tight",), setting)
    return CausedLine(points, Limits(*shares), exposed_limits["tight", "records"])


def _trace_certainty(
    attribute: Attribute,
    setting: Mechanism,
    epsilons: Floats,
    attacker: Attacker,
    belief: CountPrior,
    report: StepCounter,
) -> tuple[CertaintyLine, ...]:
    def name(noise: Noise) -> tuple[ConfidentInferences, ...]:
        return find_certainty(attribute, AdditiveChannel((noise,), setting.threshold), attacker.certainties, belief)

    chance, raw = name(setting.limit_noise), name(NO_NOISE)
    points = []
    for noise in make_noises(setting, epsilons):
        points.append(name(noise))
        report.add(1)
    return tuple(
        CertaintyLine(certainty, tuple(point[place] for point in points), chance[place], raw[place])
        for place, certainty in enumerate(attacker.certainties)
    )


def _trace_ceiling(n_levels: int, setting: Mechanism, epsilons: Floats) -> CeilingLine:
    labels, _ = require_labels(n_levels, None)
    mechanisms = [setting.with_epsilon(float(epsilon)) for epsilon in epsilons]
    two, every = Labels.even(2), Labels.even(labels)
    even_two = np.array([find_success(each.noise, two) for each in mechanisms])
    return CeilingLine(
        labels,
        even_two,
        even_two if labels == 2 else np.array([find_success(each.noise, every) for each in mechanisms]),
        np.array([total_variation(each) for each in mechanisms]),
        tuple(odds_bound(each) for each in mechanisms),
        Limits(find_success(setting.limit_noise, two), 1.0),
    )
