"""The largest epsilon of a public grid that keeps a limit on caused, chosen so that the choice may be published.

Let E_j be the largest number of people revealed because of their own record at the first j epsilons of the grid, and
E_0 = 0 for none of them. The answer wanted is the last j with E_j <= L, and its score

    u_j = min(L - E_j, E_{j+1} - L)        (E_{g+1} is infinite)

is the only one that is not negative. One record moves every E_j, and so every score, by at most the largest sensitivity
S on the grid. So permute-and-flip chooses with a loss of epsilon, and with probability 1 - b a j with u_j >= -e. With L
lowered by e, E_j then keeps the limit asked for.
Scores are whole numbers, and exp(-x) is drawn exactly for a fraction x, so that no digit leaks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from random import SystemRandom
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.table import require_table
from cellrisk.decide.policies import Policies
from cellrisk.errors import InvalidInput, argument
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism, describe_mechanism
from cellrisk.publish.dp_risk import FIGURE_EPSILON, PublishedFigure, forbid_figure, read_declared, read_ledger
from cellrisk.publish.dp_risk.sensitivity import MOST_UNITS, UNIT, count_units, find_sensitivity, sum_cells
from cellrisk.publish.releasing.exact_sampling import draw_survivals
from cellrisk.risk.sweep import LEAST_EPSILON
from cellrisk.system.checks import is_number, require_within
from cellrisk.system.choices import MechanismName, Neighbours
from cellrisk.system.formatting import as_given
from cellrisk.system.results import find_words

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable
    from cellrisk.decide.policies import Policy

__all__ = ["PrivateChoice", "choose_privately"]

USUAL_GRID = tuple(float(f"{epsilon:.3g}") for epsilon in np.geomspace(0.01, 10.0, 50))
MOST_POINTS = 1000
DOUBT = 0.05
WAY = "permute-and-flip"


def find_exponents(envelope: Sequence[int], limit: int, units: int, epsilon: float) -> list[Fraction]:
    """x_0, ..., x_g, x_j = epsilon (max u - u_j) / (2 S), from E_1, ..., E_g, L (lowered already) and S, in units.

    >>> [str(x) for x in find_exponents([30, 55, 90], limit=60, units=10, epsilon=0.5)]  # u = -30, -5, 5, -30
    ['7/8', '1/4', '0', '7/8']
    """
    ends = [0, *envelope, MOST_UNITS * 2]
    scores = [min(limit - here, after - limit) for here, after in pairwise(ends)]
    return [Fraction(epsilon) * (max(scores) - score) / (2 * units) for score in scores]


def permute_and_flip(exponents: Sequence[Fraction]) -> int:
    """Permute-and-flip (McKenna and Sheldon 2020): in random order, each j is taken with probability exp(-x_j)."""
    order = list(range(len(exponents)))
    SystemRandom().shuffle(order)

    def survives(place: int) -> bool:
        return bool(draw_survivals(np.array([float(exponents[place])]), lambda _: exponents[place])[0])

    return next(filter(survives, order))


def find_error(units: int, epsilon: float, points: int, doubt: float) -> int:
    """(2 S / epsilon) ln((g + 1)/b), as for the exponential mechanism, to which permute-and-flip is never inferior."""
    return math.ceil(2.0 * units / epsilon * math.log((points + 1) / doubt) * (1.0 + 1e-12))


@dataclass(frozen=True, repr=False, kw_only=True)
class PrivateChoice(PublishedFigure):
    """The answer of `choose_privately`. It and everything printed with it may be published."""

    epsilon: float | None
    """What was chosen; None where no epsilon of the grid was seen to keep the limit."""
    like: Mechanism
    """The mechanism, at some epsilon of the grid."""
    grid: tuple[float, ...]
    max_caused_people: float
    error: float
    """By how many people the limit was lowered, so that the choice keeps it in 95 of 100 choices."""
    private: float
    """What the choice costs."""

    @property
    def total(self) -> float:
        """The most that choice and release cost together: the choice, and the largest epsilon of the grid."""
        return self.private + self.grid[-1]

    @property
    def why(self) -> str:
        """Why this epsilon, in a sentence."""
        return str(find_words(self.wording).why(self))

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {
            "epsilon": self.epsilon,
            "why": self.why,
            "unit": self.like.unit.to_dict(),
            "mechanism": self.like.name,
            "delta": self.like.delta,
            "neighbours": self.like.neighbours,
            "threshold": self.like.threshold,
            "max_caused_people": self.max_caused_people,
            "lowered_by": self.error,
            "confidence": 1.0 - DOUBT,
            "private": self.private,
            "total": self.total,
            "way": WAY,
            "grid": list(self.grid),
        }

    def _numbers(self) -> list[dict[str, Any]]:
        return [{"epsilon": self.epsilon, "max_caused_people": self.max_caused_people, "lowered_by": self.error}]


def choose_privately(
    table: FrequencyTable,
    mechanism: Mechanism | MechanismName = USUAL_MECHANISM,
    *,
    private: float,
    max_caused_people: float,
    grid: Sequence[float] | None = None,
    delta: float | None = None,
    neighbours: Neighbours | None = None,
    threshold: float | None = None,
    sensitive: str | None = None,
    may_be_missing: str | Sequence[str] = (),
    observed_levels: bool | str | Sequence[str] = (),
    ledger: Any = None,
    cohort: str | None = None,
    purpose: str = "",
    new_cohort: bool = False,
    part_of: str | None = None,
    policy: Policy | Policies | None = None,
) -> PrivateChoice:
    """Which epsilon keeps a limit on caused, so that the answer itself may be published?

    `choose` looks at the raw data, so its answer discloses something about them. This choice has a loss of its own.

    Parameters
    ----------
    table
        Made with declared labels and ``outside="drop"``, as for `release`.
    mechanism, delta, neighbours, threshold
        How the release would be made; the epsilon of an object does not matter.
    private
        What the choice may cost.
    max_caused_people
        The most people that may be expected to be revealed because of their own record: a number, and not a share,
        because the number of records is raw data.
    grid
        The epsilons to choose from, ascending numbers that do not depend on the data; left out, 50 from 0.01 to 10.
    sensitive, may_be_missing, observed_levels, ledger, cohort, purpose, new_cohort, part_of
        As in `publish_risk`: the loss is recorded before anything is drawn.
    policy
        One to obey beside those that are in force: no epsilon of the grid, nor that of the choice, may be above what
        their limits on epsilon and on the ceiling allow. The usual grid ends there.

    >>> import cellrisk as cr
    >>> levels = {"sex": ["Female", "Male"], "income": ["<=50K", ">50K"]}
    >>> table = cr.tabulate(cr.datasets.adult_path(), "sex", "income", levels=levels, outside="drop")
    >>> choose_privately(table, private=0.5, max_caused_people=100, grid=[0.1, 1.0]).epsilon  # four large counts
    1.0
    """
    require_table(table, single="private choices")
    given = describe_mechanism(mechanism, delta=delta, neighbours=neighbours, threshold=threshold)
    policies = Policies.in_force(policy)
    points = read_grid(grid)
    setting = given.with_epsilon(LEAST_EPSILON).with_unit(table.unit)
    if policies:
        given_points, largest = points, policies.largest_epsilon(setting)
        points = tuple(point for point in points if point <= largest)
        if not points or (grid is not None and len(points) < len(given_points)):
            what, fix = (
                "the grid goes beyond what the policy allows",
                f"end it there: {argument('grid', '[0.01, 0.1]')}",
            )
            got = f"epsilon {given_points[-1]:g}"
            raise InvalidInput(what, got=got, allowed=f"up to {largest:.6g}", fix=fix, code="policy")
    made = [setting.with_epsilon(point) for point in points]
    loss = require_within("private", private, **FIGURE_EPSILON)
    forbid_figure(policies, made[-1], loss)
    require_within("max_caused_people", max_caused_people, above=0)
    record = read_ledger(ledger, cohort=cohort, purpose=purpose, new_cohort=new_cohort, part_of=part_of)
    domain, notes = read_declared(table, sensitive, may_be_missing, observed_levels)
    units = max(count_units(find_sensitivity(each, domain.n_levels)) for each in made)
    error = find_error(units, loss, len(points), DOUBT)
    lowered = math.floor(min(max_caused_people / UNIT, MOST_UNITS)) - error
    if lowered <= 0:
        got = f"{as_given(max_caused_people)} people, and an error of {error * UNIT:.4g}"
        fix = "allow more people, a larger private epsilon, or fewer points of the grid"
        raise InvalidInput("the limit is not above what the choice may be off by", got=got, fix=fix, code="limit-range")
    profiles = domain.cells.profiles()
    sums = [sum_cells(profiles, each) for each in made]
    exponents = find_exponents(list(accumulate(sums, max)), lowered, units, loss)
    purpose_of_choice = "the choice of an epsilon by a limit on the people revealed because of their own record"
    record(domain, loss, given.neighbours, purpose_of_choice)
    place = permute_and_flip(exponents)
    return PrivateChoice(
        epsilon=points[place - 1] if place else None,
        like=made[0],
        grid=points,
        max_caused_people=float(max_caused_people),
        error=error * UNIT,
        private=loss,
        sensitive=domain.sensitive,
        quasi_identifiers=domain.quasi_identifiers,
        notes=notes,
        policies=policies,
    )


def read_grid(given: Sequence[float] | None) -> tuple[float, ...]:
    """The epsilons of a grid; refuses what is not a list of ascending numbers, known beforehand."""
    if given is None:
        return USUAL_GRID
    if isinstance(given, (str, bytes)) or callable(given) or not hasattr(given, "__iter__"):
        what, allowed = "a grid is a list of numbers that do not depend on the data", "for example [0.1, 0.5, 1, 2]"
        raise InvalidInput(what, got=type(given).__name__, allowed=allowed, code="type")
    points = tuple(float(each) if is_number(each) else math.nan for each in given)
    if not 0 < len(points) <= MOST_POINTS:
        what, allowed = "a grid needs at least one epsilon, and not too many", f"from 1 to {MOST_POINTS:,}"
        raise InvalidInput(what, got=len(points), allowed=allowed, code="grid")
    if not all(before < after for before, after in pairwise((0.0, *points))):
        what = "must be ascending numbers above 0"
        raise InvalidInput(what, option="grid", allowed="for example 0.1, 0.5, 1", code="grid")
    return points
