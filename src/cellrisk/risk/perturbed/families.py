"""Equal risk, the other way round: which of a family of perturbations reveals no more people than a mechanism."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.table import require_table
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.noise.mechanisms import mechanism as read_mechanism
from cellrisk.noise.perturbations import FULLEST, read_perturbation
from cellrisk.risk.certainty import USUAL_BELIEF, USUAL_CERTAINTY, CountPrior, why_unknown
from cellrisk.risk.figures import Attacker
from cellrisk.risk.perturbed.equal_risk import CountPeople, find_distance, find_edge, people_counters
from cellrisk.system.choices import MechanismName, Neighbours
from cellrisk.system.results import Result, find_words

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute, FrequencyTable

LARGEST_NUMBER = 100
"""The largest base or threshold that is tried."""
LEAST_VARIANCE, VARIANCES, SAME_VARIANCE = 0.01, 25, 1e-4
"""The smallest variance of cell keys, how many are tried, and how closely the answer is bisected between two."""
NAMED = "random-rounding, round, suppress-below, suppress-below,round:5, or cell-key:5 (whose variance is searched)"


@dataclass(frozen=True)
class Family:
    """Perturbations that differ by one number, the mildest first."""

    name: str
    what: str
    """What the number is."""
    before: str
    """The rule up to the number."""
    after: str
    """The rule after the number."""
    numbers: tuple[float, ...]

    @staticmethod
    def of(given: str) -> Family | None:
        """Return the family of that name; None if there is none.

        >>> [Family.of(name).rule(7) for name in ("random-rounding", "suppress-below,round:5", "cell-key:9")]
        ['random-rounding:7', 'suppress-below:7,round:5', 'cell-key:9/7']
        >>> Family.of("random-rounding:3") is None
        True
        """
        numbers = tuple(float(number) for number in range(2, LARGEST_NUMBER + 1))
        if given in ("random-rounding", "round"):
            return Family(given, "the base", f"{given}:", "", numbers)
        if re.fullmatch(r"suppress-below(,round:.*)?", given):
            return Family(given, "the threshold", "suppress-below:", given.removeprefix("suppress-below"), numbers)
        if re.fullmatch(r"cell-key:(?!0+$)[0-9]{1,3}", given):
            largest = FULLEST * int(given.removeprefix("cell-key:"))
            variances = tuple(np.geomspace(LEAST_VARIANCE, largest, VARIANCES).tolist())
            return Family(given, "the variance", f"{given}/", "", variances)
        return None

    def rule(self, number: float) -> str:
        """Return the perturbation of one number, as `read_perturbation` takes it."""
        return f"{self.before}{number:.6g}{self.after}"


@dataclass(frozen=True)
class EqualNumber:
    """The mildest perturbation of a family that reveals no more people than a mechanism at its epsilon."""

    sensitive: str
    by: str
    """``caused``, or ``certainty``."""
    figure: float
    """The figure of the mechanism, in people."""
    mechanism_distance: float
    perturbation: str | None
    """None if none of the family reveals as few."""
    people: float | None
    """The people whom it reveals itself."""
    distance: float | None
    """How far it lies from the true table: half the expected differences of counts, as a share of the records."""


@dataclass(frozen=True, repr=False)
class EqualPerturbation(Result):
    """The answer of `find_equal_perturbation`."""

    wording = "equal_perturbation"

    family: Family
    mechanism: Mechanism
    numbers: tuple[EqualNumber, ...]

    def to_dict(self) -> dict[str, Any]:
        sentence = find_words(self.wording).sentence
        return {
            "family": self.family.name,
            "mechanism": self.mechanism.to_dict(),
            "equal_risk": [{**vars(number), "sentence": sentence(number, self)} for number in self.numbers],
            "headline": self.headline,
        }

    def _numbers(self) -> list[dict[str, Any]]:
        return [vars(number) for number in self.numbers]


def find_equal_perturbation(
    table: FrequencyTable,
    family: str,
    mechanism: Mechanism | MechanismName = USUAL_MECHANISM,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: Neighbours | None = None,
    threshold: float | None = None,
    certainty: float = USUAL_CERTAINTY,
    belief: str | CountPrior | Mapping[str, str | CountPrior] = USUAL_BELIEF,
) -> EqualPerturbation:
    """Return the mildest perturbation of a family that reveals no more people than a mechanism at this epsilon.

    Its number is searched from the mildest on: the base of a rounding, the threshold of a suppression, the variance of
    cell keys. The first that reveals no more is the answer, by the people revealed because of their own record, and by
    those whom the informed attacker infers; with both, how far they lie from the true table.

    Parameters
    ----------
    table
        Made by `tabulate`.
    family
        ``"random-rounding"``, ``"round"``, ``"suppress-below"``, ``"suppress-below,round:5"``, or ``"cell-key:5"`` for
        keys that add at most 5.
    mechanism, epsilon, delta, neighbours, threshold
        The noise that it is compared with.
    certainty, belief
        Of the informed attacker, as in `assess`.

    >>> import cellrisk as cr
    >>> table = cr.tabulate(cr.datasets.adult_as_published(), ["age", "sex"], "income", bins={"age": 5})
    >>> found = find_equal_perturbation(table, "suppress-below", epsilon=0.5)
    >>> found.numbers[0].perturbation
    'suppress-below:2'
    """
    require_table(table)
    made = read_mechanism(mechanism, epsilon=epsilon, delta=delta, neighbours=neighbours, threshold=threshold)
    chosen = Family.of(family) if isinstance(family, str) else None
    if chosen is None:
        raise InvalidInput("unknown family of perturbations", got=repr(family)[:60], allowed=NAMED)
    attacker = Attacker.of(certainty, belief)
    numbers = [number for each in table.attributes for number in _find_numbers(each, chosen, made, attacker)]
    return EqualPerturbation(chosen, made, tuple(numbers))


def _find_numbers(
    attribute: Attribute, family: Family, mechanism: Mechanism, attacker: Attacker
) -> Iterator[EqualNumber]:
    profiles = attribute.profiles
    moved = find_distance(profiles, mechanism.channel)
    prior = None if why_unknown(attribute) else attacker.believe(attribute)
    for by, count in people_counters(attribute, attacker.certainties[-1], prior).items():
        figure = float(count(mechanism.channel)[0])
        rule, people = find_mildest(family, figure, count)
        distance = None if rule is None else find_distance(profiles, read_perturbation(rule).channel)
        yield EqualNumber(attribute.name, by, figure, moved, rule, people, distance)


def find_mildest(family: Family, figure: float, count: CountPeople) -> tuple[str | None, float | None]:
    """Return the first rule that reveals no more people, and how many; between two variances, by bisection."""

    def people(number: float) -> float:
        return float(count(read_perturbation(family.rule(number)).channel)[0])

    before: float | None = None
    for number in family.numbers:
        if people(number) <= figure:
            if family.what == "the variance" and before is not None:
                number = find_edge(lambda tried: people(tried) <= figure, number, before, SAME_VARIANCE)
            return family.rule(number), people(number)
        before = number
    return None, None
