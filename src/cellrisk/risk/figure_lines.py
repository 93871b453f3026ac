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
    say_bounds,
    say_most,
    total_variation,
)
from cellrisk.risk.certainty import Belief, NamedPeople, find_certainty, why_unknown
from cellrisk.risk.certainty.named_people import say_named
from cellrisk.risk.figures import Attacker
from cellrisk.risk.sweep import NO_NOISE, Limits, find_limits
from cellrisk.system.arrays import Floats
from cellrisk.system.progress import StepCounter
from cellrisk.system.text import number_of, percent, whole_people
from cellrisk.system.words import FigureName

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute

FIGURES: tuple[FigureName, ...] = ("caused", "certainty", "ceiling")


@dataclass(frozen=True, eq=False)
class CausedLine:
    """People given away because of their own record, and people exposed for whatever reason, at each epsilon."""

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
    """People whose value an attacker who does the mathematics names with one certainty, at each epsilon."""

    certainty: float
    points: tuple[NamedPeople, ...]
    chance: NamedPeople
    """The people named as epsilon falls to 0."""
    raw: NamedPeople
    """The people named without noise."""

    @property
    def right(self) -> Floats:
        """People named rightly; the middle where only two ends are known."""
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

    def times(self, place: int) -> str:
        """How often in 100 the worst case of two equally likely values is right, never too low."""
        return say_most(float(self.even_two[place]))

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
    belief: Belief | None = None
    ceiling: CeilingLine | None = None

    def __post_init__(self) -> None:
        if not (self.caused or self.certainty or self.ceiling):
            raise InvalidInput("no figure was chosen", allowed=", ".join(FIGURES))

    def place(self, epsilon: float) -> int:
        """The place of the epsilon that is nearest to this one."""
        return int(np.argmin(np.abs(np.log(self.epsilon / epsilon))))

    @property
    def sentence(self) -> str:
        """The figures at a small, a middle and a large epsilon."""
        places = sorted({self.place(epsilon) for epsilon in (0.1, 1.0, 10.0)})

        def along(values: Sequence[str]) -> str:
            return _list(
                [f"{value} at epsilon {self.epsilon[at]:.3g}" for value, at in zip(values, places, strict=True)]
            )

        parts = []
        if self.caused is not None:
            points = [self.caused.points[place] for place in places]
            because = along([f"{whole_people(point.people)} ({percent(point.share)})" for point in points])
            exposed = _list([whole_people(point.exposed) for point in points])
            noise = "chance alone" if math.isinf(self.setting.limit_noise.scale) else "the noise that delta leaves"
            parts.append(
                f"Of {number_of(self.records, 'person')}, {because} would be given away only because of their own "
                f"record; {exposed} would be at all, and {percent(self.caused.exposed_limits.chance)} by {noise}."
            )
        for line in self.certainty[-1:]:
            named = [line.points[place].number for place in places]
            parts.append(say_named(self.sensitive, along(named), line.certainty))
        if self.ceiling is not None:
            gains = [f"{say_most(float(self.ceiling.advantage[place]))} percentage points" for place in places]
            often = [f"{self.ceiling.times(place)}%" for place in places]
            worst = along([f"{often[0]} of the time", *often[1:]])
            parts.append(say_bounds(along(gains), worst, self.setting.neighbours))
        return f"{self.sensitive}, {self.setting.describe()}: {' '.join(parts)}"

    @property
    def words(self) -> str:
        """The ends of each figure, for a reader who sees no picture."""
        parts = []
        if self.caused is not None:
            limits, exposed = self.caused.limits, self.caused.exposed_limits
            parts.append(
                f"As epsilon falls to 0, the people given away only because of their own record tend to "
                f"{percent(limits.chance)}, and {percent(exposed.chance)} are exposed. Without noise they are "
                f"{percent(limits.raw)}, of {percent(exposed.raw)} exposed."
            )
        if self.certainty:
            told = [
                f"{percent(line.chance.right / self.records)} and {percent(line.raw.right / self.records)} "
                f"({100 * line.certainty:g}%)"
                for line in self.certainty
            ]
            parts.append(
                "People named rightly with a certainty, as epsilon falls to 0 and without noise: "
                + ", ".join(told)
                + "."
            )
        if self.ceiling is not None:
            low, high = (say_most(level) for level in (self.ceiling.limits.chance, self.ceiling.limits.raw))
            parts.append(f"The worst case goes from {low}% to {high}%; it uses no data.")
        return f"{self.sensitive}, {self.setting.describe()}: {' '.join(parts)}"

    def shown(self) -> Iterator[tuple[str, list[str]]]:
        """Rows of the table that is printed: what is counted, and a text for each epsilon."""
        if self.caused is not None:
            yield "caused, people", [f"{point.people:,.1f}" for point in self.caused.points]
            yield "exposed, people", [f"{point.exposed:,.1f}" for point in self.caused.points]
        for line in self.certainty:
            yield f"{100 * line.certainty:g}% sure and right, people", [point.number for point in line.points]
        if self.ceiling is not None:
            yield "worst case, %", [self.ceiling.times(place) for place in range(len(self.epsilon))]

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


def _list(values: Sequence[str]) -> str:
    """Several values in words.

    >>> _list(["1", "2", "3"]), _list(["1"])
    ('1, 2 and 3', '1')
    """
    return " and ".join([", ".join(values[:-1]), values[-1]] if len(values) > 1 else values)


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
    belief: Belief,
    report: StepCounter,
) -> tuple[CertaintyLine, ...]:
    def name(noise: Noise) -> tuple[NamedPeople, ...]:
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
