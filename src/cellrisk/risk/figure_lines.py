"""The figures to decide by along epsilon: caused, certainty, ceiling, each with the two ends that it tends to."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import AdditiveChannel
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.attacks import people_risk
from cellrisk.risk.caused import Caused, caused_shares, count_caused
from cellrisk.risk.ceilings import Ceiling, Labels, ceiling, find_success
from cellrisk.risk.certainty import ConfidentInferences, CountPrior, find_certainty, why_unknown
from cellrisk.risk.figures import Attacker
from cellrisk.risk.sweep import NO_NOISE, Limits, find_limits
from cellrisk.system.arrays import Floats
from cellrisk.system.choices import FigureName, list_words
from cellrisk.system.progress import StepCounter

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute

FIGURES: tuple[FigureName, ...] = list_words(FigureName)


def _along(points: Sequence[Any], name: str) -> Floats:
    return np.array([getattr(point, name) for point in points])


@dataclass(frozen=True, eq=False)
class CausedLine:
    """People revealed because of their own record, and people revealed for any reason, at each epsilon."""

    points: tuple[Caused, ...]
    limits: Limits
    """The share of people as epsilon falls to 0, and without noise."""
    exposed_limits: Limits
    """The share of people revealed for any reason as epsilon falls to 0, and without noise."""

    @property
    def people(self) -> Floats:
        return _along(self.points, "people")

    @property
    def share(self) -> Floats:
        return _along(self.points, "share")

    @property
    def exposed_share(self) -> Floats:
        return _along(self.points, "exposed") / self.points[0].records


@dataclass(frozen=True, eq=False)
class CertaintyLine:
    """People whose value the informed attacker infers with one certainty, at each epsilon."""

    certainty: float
    points: tuple[ConfidentInferences, ...]
    chance: ConfidentInferences
    """The people inferred as epsilon falls to 0."""
    raw: ConfidentInferences
    """The people inferred without noise."""

    @property
    def right(self) -> Floats:
        """People inferred correctly; the middle if only two ends are known."""
        return _along(self.points, "right")


@dataclass(frozen=True, eq=False)
class CeilingLine:
    """The worst case at each epsilon, if two values, or all of them, are equally likely beforehand."""

    points: tuple[Ceiling, ...]
    limits: Limits
    """Where ``even_two`` goes at the two ends of epsilon."""

    @property
    def labels(self) -> int:
        return self.points[0].labels

    @property
    def even_two(self) -> Floats:
        return _along(self.points, "even_two")

    @property
    def even(self) -> Floats:
        return _along(self.points, "even")

    @property
    def advantage(self) -> Floats:
        return _along(self.points, "advantage")


@dataclass(frozen=True, eq=False)
class FigureLines:
    """The figures of one sensitive attribute under one mechanism, along epsilon; None or empty if not asked for."""

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
        """Return the place of the epsilon that is nearest to this one."""
        return int(np.argmin(np.abs(np.log(self.epsilon / epsilon))))

    def _start(self, place: int) -> dict[str, Any]:
        mechanism = {"mechanism": self.setting.name, "delta": self.setting.delta}
        return {**mechanism, "epsilon": float(self.epsilon[place]), "sensitive": self.sensitive}

    def entry(self, place: int) -> dict[str, Any]:
        """Return an entry of ``decision``, as `assess` has it, without the interval of caused."""
        entry = self._start(place)
        if self.caused is not None:
            point = self.caused.points[place]
            row = point.to_dict() | {"exposed": point.exposed}
            entry["caused"] = {key: value for key, value in row.items() if key not in ("low", "high")}
        if self.certainty:
            entry["certainty"] = [line.points[place].to_dict() for line in self.certainty]
        if self.ceiling is not None:
            worst = self.ceiling.points[place]
            row = {key: getattr(worst, key) for key in ("even_two", "even", "labels", "advantage")}
            finite = worst.odds is not None and math.isfinite(worst.odds)
            entry["ceiling"] = {**row, "odds": worst.odds if finite else None}
        return entry

    def rows(self, place: int) -> Iterator[dict[str, Any]]:
        """Yield one row a figure: ``risk`` is a share of the people, or of the ceiling a probability."""
        start, entry = self._start(place), self.entry(place)
        weighting: dict[str, Any] = {"form": "tight", "weights": "records"}
        if self.caused is not None:
            row = entry["caused"]
            words = {"attack": self.attack, "measure": "caused", **weighting}
            people = {key: row[key] for key in ("people", "exposed", "sd", "bound")}
            yield {**start, **words, "risk": row["share"], **vars(self.caused.limits), **people}
        for line in self.certainty:
            row = line.points[place].to_dict()
            words = {"attack": "bayes", "measure": "certainty", **weighting}
            shares = [people / self.records for people in (row["right"], line.chance.right, line.raw.right)]
            ends = dict(zip(("risk", "chance", "raw"), shares, strict=True))
            yield {**start, **words, **ends, "people": row["right"], **row}
        if self.ceiling is not None:
            row = entry["ceiling"]
            levels = {key: row[key] for key in ("even_two", "even", "labels")}
            words = {"attack": "informed", "measure": "ceiling", **dict.fromkeys(weighting)}
            yield {**start, **words, "risk": row["even_two"], **vars(self.ceiling.limits), **levels}


def find_figure_lines(
    attribute: Attribute,
    setting: Mechanism,
    epsilons: Floats,
    figures: Sequence[str],
    attack: str,
    attacker: Attacker,
    report: StepCounter,
) -> FigureLines:
    """Return the figures asked for, of one sensitive attribute under one mechanism, at each epsilon."""
    profiles = attribute.profiles
    mechanisms = [setting.with_epsilon(epsilon) for epsilon in epsilons.tolist()]
    ends = AdditiveChannel((setting.limit_noise, NO_NOISE), setting.threshold)
    caused = ceilings = prior = None
    certainty: tuple[CertaintyLine, ...] = ()
    if "caused" in figures:
        measure = people_risk(attack)
        exposed = measure.average(profiles, setting.channel_at(epsilons), ("tight",))["tight", "records"]
        points = tuple(
            count_caused(profiles, mechanism, profiles.n_records * share, attack, interval=False)
            for mechanism, share in zip(mechanisms, exposed.tolist(), strict=True)
        )
        limits = Limits(*caused_shares(profiles, ends, attack).tolist())
        caused = CausedLine(points, limits, find_limits(profiles, measure, ("tight",), setting)["tight", "records"])
        report.add(len(epsilons))
    if "certainty" in figures:
        unknown = why_unknown(attribute)
        if unknown:
            raise InvalidInput(
                f"no certainty can be computed for '{attribute.name}'",
                got=unknown,
                fix="leave out the measure certainty",
            )
        prior = attacker.believe(attribute)
        inferred = []
        for channel in (ends[:1], ends[1:], *(mechanism.channel for mechanism in mechanisms)):
            inferred.append(find_certainty(attribute, channel, attacker.certainties, prior))
            report.add(int(len(inferred) > 2))
        certainty = tuple(
            CertaintyLine(sure, tuple(points), chance, raw)
            for sure, (chance, raw, *points) in zip(attacker.certainties, zip(*inferred, strict=True), strict=True)
        )
    if "ceiling" in figures:
        worst = tuple(ceiling(mechanism, labels=attribute.n_levels) for mechanism in mechanisms)
        ceilings = CeilingLine(worst, Limits(find_success(setting.limit_noise, Labels.even(2)), 1.0))
        report.add(len(epsilons))
    return FigureLines(
        setting, attribute.name, attack, profiles.n_records, epsilons, caused, certainty, prior, ceilings
    )
