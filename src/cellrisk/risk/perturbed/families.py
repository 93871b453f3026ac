"""At equal risk, the other way round: which of a family of perturbations gives away no more than a mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cellrisk.counts.table import require_table
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.noise.mechanisms import mechanism as read_mechanism
from cellrisk.noise.perturbations import FULLEST, Perturbation, read_perturbation
from cellrisk.risk.caused import caused_shares
from cellrisk.risk.certainty import USUAL_BELIEF, USUAL_CERTAINTY, CountPrior, find_certainty, why_unknown
from cellrisk.risk.figures import Attacker
from cellrisk.risk.perturbed.equal_risk import find_distance
from cellrisk.system.choices import MechanismName, Neighbours
from cellrisk.system.results import Result, find_words

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute, FrequencyTable

LARGEST_NUMBER = 100
"""The largest base or threshold that is looked at."""
VARIANCES = 25
NAMED = "random-rounding, round, suppress-below, suppress-below,round:5, or cell-key:5 (whose variance is looked for)"


@dataclass(frozen=True)
class Family:
    """Perturbations that differ by one number, the mildest first."""

    name: str
    what: str
    """What the number is."""
    rule: Callable[[float], str]
    """The perturbation of one number, as `read_perturbation` takes it."""
    numbers: tuple[float, ...]
    whole: bool = True

    @staticmethod
    def of(given: str) -> Family | None:
        """The family of that name; None for what is no family.

        >>> [Family.of(name).rule(7) for name in ("random-rounding", "suppress-below,round:5", "cell-key:9")]
        ['random-rounding:7', 'suppress-below:7,round:5', 'cell-key:9/7']
        >>> Family.of("random-rounding:3") is None
        True
        """
        numbers = tuple(float(number) for number in range(2, LARGEST_NUMBER + 1))
        if given in ("random-rounding", "round"):
            return Family(given, "the base", lambda number: f"{given}:{number:g}", numbers)
        first, _, rest = given.partition(",")
        if first == "suppress-below" and (rest == "" or rest.startswith("round:")):
            ending = f",{rest}" if rest else ""
            return Family(given, "the threshold", lambda number: f"suppress-below:{number:g}{ending}", numbers)
        most = given.removeprefix("cell-key:")
        if given.startswith("cell-key:") and most.isascii() and most.isdigit() and 0 < len(most) < 4 and int(most):
            ends = 0.01, FULLEST * int(most)
            steps = [ends[0] * (ends[1] / ends[0]) ** (step / (VARIANCES - 1)) for step in range(VARIANCES)]
            numbers = (*steps[:-1], ends[1])
            return Family(given, "the variance", lambda number: f"{given}/{number:.6g}", numbers, whole=False)
        return None


@dataclass(frozen=True)
class EqualNumber:
    """The mildest perturbation of a family that gives away no more people than a mechanism at its epsilon."""

    sensitive: str
    by: str
    """``caused``, or ``certainty``."""
    figure: float
    """The figure of the mechanism, in people."""
    mechanism_distance: float
    perturbation: str | None
    """None where none of the family gives away as few."""
    people: float | None
    """What it gives away itself."""
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
        return {
            "family": self.family.name,
            "mechanism": self.mechanism.to_dict(),
            "equal_risk": [
                {**vars(number), "sentence": find_words(self.wording).sentence(number, self)} for number in self.numbers
            ],
            "headline": self.headline,
        }

    def _numbers(self) -> list[dict[str, Any]]:
        return [vars(each) for each in self.numbers]


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
    """Which perturbation of a family gives away no more people than a mechanism at this epsilon?

    Its number is looked for from the mildest on: the base of a rounding, the threshold of a suppression, the variance
    of cell keys. The first that gives away no more is the answer, by the people given away because of their own record,
    and by those whom an attacker can be sure of. Beside both stands how far they lie from the true table.

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
        Of the attacker who does the mathematics, as in `assess`.

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
    found: list[EqualNumber] = []
    for attribute in table.attributes:
        found += _find_numbers(attribute, chosen, made, attacker)
    return EqualPerturbation(chosen, made, tuple(found))


def _find_numbers(
    attribute: Attribute, family: Family, mechanism: Mechanism, attacker: Attacker
) -> Iterator[EqualNumber]:
    profiles = attribute.profiles
    moved = find_distance(profiles, mechanism.channel)

    def count_caused(method: Mechanism | Perturbation) -> float:
        return profiles.n_records * float(caused_shares(profiles, method.channel)[0])

    figures: list[tuple[str, float, Callable[[Perturbation], float]]] = [
        ("caused", count_caused(mechanism), count_caused)
    ]
    if why_unknown(attribute) is None:
        belief, sure = attacker.believe(attribute), attacker.certainties[-1:]
        named = find_certainty(attribute, mechanism.channel, sure, belief)[0]

        def count_sure(made: Perturbation) -> float:
            return find_certainty(attribute, made.channel, sure, belief)[0].right

        figures.append(("certainty", named.right_high, count_sure))
    for by, figure, count in figures:
        rule, people = find_mildest(family, figure, count)
        made = None if rule is None else read_perturbation(rule)
        distance = None if made is None else find_distance(profiles, made.channel)
        yield EqualNumber(attribute.name, by, figure, moved, rule, people, distance)


def find_mildest(
    family: Family, figure: float, count: Callable[[Perturbation], float]
) -> tuple[str | None, float | None]:
    """The first rule that gives away no more, and what it gives away; between two variances, halved."""

    def ask(number: float) -> float:
        return count(read_perturbation(family.rule(number)))

    before: float | None = None
    for number in family.numbers:
        people = ask(number)
        if people <= figure:
            if not family.whole and before is not None:
                number, people = _halve(ask, figure, before, number)
            return family.rule(number), people
        before = number
    return None, None


def _halve(ask: Callable[[float], float], figure: float, above: float, below: float) -> tuple[float, float]:
    while below / above > 1.0 + 1e-4:
        middle = math.sqrt(above * below)
        above, below = (above, middle) if ask(middle) <= figure else (middle, below)
    below = float(f"{below:.6g}")
    return below, ask(below)
