"""Risk at many settings of a mechanism at once: what curves are drawn from and searches look through."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cellrisk.counts.profiles import Profiles
from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import AdditiveChannel, CountChannel
from cellrisk.noise.distributions import NoNoise
from cellrisk.noise.mechanisms import MECHANISMS, Mechanism, describe_mechanism
from cellrisk.risk.attacks import people_risk
from cellrisk.risk.measures import Measure
from cellrisk.system.arrays import Floats
from cellrisk.system.checks import read_array, read_list
from cellrisk.system.choices import MechanismName, Neighbours

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute, FrequencyTable

LEAST_EPSILON, LARGEST_EPSILON = 1e-3, 1e2
DEFAULT_POINTS = 201
NO_NOISE = NoNoise()


@dataclass(frozen=True)
class Limits:
    """Where a risk goes at the two ends of epsilon."""

    chance: float
    """As epsilon goes to 0: what is read off a cell is luck, unless the mechanism's delta keeps its noise finite."""
    raw: float
    """As epsilon grows without bound: the raw table's own risk."""


def covered(mechanism: Mechanism, epsilons: Floats) -> Floats:
    """Those epsilons, ascending, for which the mechanism has a guarantee; refused if there are none."""
    mechanism.check_epsilon(float(epsilons[0]))
    return epsilons[epsilons <= mechanism.largest_epsilon]


def find_limits(
    profiles: Profiles, measure: Measure, forms: Sequence[str], setting: Mechanism
) -> dict[tuple[str, str], Limits]:
    """The risk as epsilon falls to 0, under the mechanism's ``limit_noise``, and under no noise at all.

    One pair for each form and weighting. Noise without bound has closed forms, whatever the size of a cell.
    """
    ends = measure.average(profiles, AdditiveChannel((setting.limit_noise, NO_NOISE), setting.threshold), forms)
    return {key: Limits(float(chance), float(raw)) for key, (chance, raw) in ends.items()}


def read_epsilons(given: float | Sequence[float] | Floats | None) -> Floats:
    """Epsilons as a user gives them, ascending; the default runs from 0.001 to 100, evenly spaced in the logarithm."""
    if given is None:
        return np.geomspace(LEAST_EPSILON, LARGEST_EPSILON, DEFAULT_POINTS)
    values = read_array("epsilon", given)
    if not len(values):
        raise InvalidInput("the list of epsilons is empty", allowed="one number above 0, or more")
    wrong = values[~(np.isfinite(values) & (values > 0))]
    if len(wrong):
        raise InvalidInput("must be a finite number above 0", option="epsilon", got=float(wrong[0]))
    return np.unique(values)


def usual_delta(records: int) -> float:
    """The usual delta: one over the number of records, rounded down to one digit.

    >>> usual_delta(27504), usual_delta(250)
    (3e-05, 0.004)
    """
    if records <= 1:
        return 0.5
    size = 10.0 ** math.floor(math.log10(1.0 / records))
    return float(f"{max(1, math.floor(1.0 / records / size + 1e-9)) * size:.0e}")


def read_settings(
    mechanisms: Mechanism | MechanismName | Sequence[Mechanism | MechanismName],
    delta: float | Sequence[float] | None,
    neighbours: Neighbours | None,
    threshold: float | None,
    table: FrequencyTable,
) -> tuple[Mechanism, ...]:
    """Each mechanism with each delta where it takes one; the usual delta where none is given.

    A mechanism that is an object brings its own delta, neighbours and threshold; the table has the unit. Its epsilon
    is not used: all are returned at the least epsilon, and `Mechanism.with_epsilon` gives any other.
    """
    given = list_mechanisms(mechanisms)
    if not given:
        raise InvalidInput("no mechanism was chosen", allowed=", ".join(MECHANISMS))
    described = [describe_mechanism(made, delta=delta, neighbours=neighbours, threshold=threshold) for made in given]
    pure = [MECHANISMS[words.name].pure for words in described]
    if delta is None:
        deltas = [0.0 if all(pure) else usual_delta(table.n_records)]
    else:
        deltas = [delta] if isinstance(delta, (int, float)) else read_list("delta", delta, "numbers")
        if not deltas:
            raise InvalidInput("the list of deltas is empty", allowed="one number between 0 and 1, or more")
    for_pure = deltas if all(pure) and delta is not None else [0.0]  # a mechanism refuses what it does not take
    settings = [
        words._replace(delta=value).with_epsilon(LEAST_EPSILON).with_unit(table.unit)
        for made, words, is_pure in zip(given, described, pure, strict=True)
        for value in (for_pure if is_pure else [words.delta] if isinstance(made, Mechanism) else deltas)
    ]
    return tuple(dict.fromkeys(settings))


def list_mechanisms(
    given: Mechanism | MechanismName | Sequence[Mechanism | MechanismName],
) -> list[Mechanism | MechanismName]:
    """Mechanisms as a user gives them, one or several: names alone, or objects alone.

    What stands beside them, such as a delta, is for names; in a mixed list it would be for some and not for others.
    """
    if isinstance(given, str) or not isinstance(given, Iterable):
        return [given]
    listed = list(given)
    if len({isinstance(mechanism, Mechanism) for mechanism in listed}) > 1:
        raise InvalidInput("a list of mechanisms holds objects and names", allowed="names alone, or objects alone")
    return listed


@dataclass(frozen=True, eq=False)
class MeasuredRisk:
    """One risk of each sensitive attribute of a table, to be asked at any epsilon."""

    attributes: tuple[Attribute, ...]
    measures: tuple[Measure, ...]
    """The measure with each attribute's own priors."""
    form: str
    weights: str
    attack: str = "homogeneity"

    @property
    def people(self) -> MeasuredRisk:
        """The expected share of people whose value the same attacker gets right."""
        measures = (people_risk(self.attack),) * len(self.attributes)
        return MeasuredRisk(self.attributes, measures, "tight", "records", self.attack)

    def at(self, setting: Mechanism, epsilons: Floats) -> Floats:
        """(attributes, epsilons): the risk of each attribute at each epsilon."""
        return self.under(setting.channel_at(epsilons))

    def under(self, channel: CountChannel) -> Floats:
        """(attributes, noises): the risk of each attribute under each noise."""
        return np.stack(
            [
                measure.average(attribute.profiles, channel, (self.form,))[self.form, self.weights]
                for attribute, measure in zip(self.attributes, self.measures, strict=True)
            ]
        )

    def limits(self, setting: Mechanism) -> tuple[Limits, ...]:
        """Return the two ends of each attribute's risk."""
        return tuple(
            find_limits(attribute.profiles, measure, (self.form,), setting)[self.form, self.weights]
            for attribute, measure in zip(self.attributes, self.measures, strict=True)
        )
