"""An attacker who does the mathematics on several tables: how sure he is of people's values.

In each table he believes counts to be negative binomial, and expects w_k(v) people behind the value v that is released
for label k, so that label k has the share s_k = w_k / sum_j w_j in the person's cell. He puts the tables together by

    P(k) ~ pi_k prod_t (s_tk / pi_k)^lambda,

pi being the shares of the labels among all people. The tempering lambda = 1 takes the tables for independent given the
person's label, which holds if his cells have only him in common; tables of the same people tell less than that, and he
is overconfident. A lambda that is fitted to the true labels is that of an attacker who is helped. The figures are those
of the true tables, given lambda.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from cellrisk.counts.joint import JointCells
from cellrisk.counts.profiles import LevelCounts
from cellrisk.errors import InvalidInput
from cellrisk.repeat.together.sets import SetTable
from cellrisk.risk.certainty import NamedPeople, NegativeBinomial
from cellrisk.risk.certainty.beliefs import fit_negative_binomial
from cellrisk.risk.certainty.channel import Channel, expected_counts
from cellrisk.risk.certainty.two_labels import odds_against
from cellrisk.system.arrays import Floats, Integers
from cellrisk.system.checks import require_within

DRAWS = 200_000
MOST_PAIRS = 40_000
"""Pairs of values of a cell's two counts up to which they are listed."""
MOST_EXACT = 60_000_000
"""Pairs in all that are sorted and searched before sums are rounded to a grid: some seconds."""
MOST_ROWS = 100_000
"""Rows of people up to which sums are put on a grid; more are simulated."""
GRID = 1 << 14
FARTHEST = 1 << 16
"""Noise that reaches farther has all but drowned the counts."""
LEAST_CHANCE = 1e-15
"""Values of a count that are less likely are left out of sums; both ends allow for that."""
FIT = "fit"


@dataclass(frozen=True, kw_only=True)
class Certain(NamedPeople):
    """The people whose value is named with at least a given certainty, on average over releases of all tables."""

    tempering: float
    fitted: bool
    """Whether the tempering was fitted to the true labels: a helped attacker."""

    def __post_init__(self) -> None:
        if not 0 <= self.right_low <= self.right_high * (1 + 1e-12) + 1e-9:
            raise InvalidInput("the ends of a figure must be in their order")

    @property
    def how(self) -> str:
        """Whether the figure is exact, lies between two ends, or was simulated."""
        if self.error is not None:
            return f"simulated, +- {self.error:.2g}"
        width = self.right_high - self.right_low
        return "exact" if width <= 1e-6 * max(self.right, 1.0) else f"exact to +- {0.5 * width:.2g}"

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "certainty": self.certainty,
            "tempering": self.tempering,
            "fitted": self.fitted,
            "right": self.right,
            "named": self.named,
            "precision": self.precision,
            "right_ends": [self.right_low, self.right_high],
            "named_ends": [self.named_low, self.named_high],
        }
        return found if self.error is None else {**found, "standard_error": self.error}


def read_tempering(given: float | str | None) -> tuple[float | str, ...]:
    """The temperings that are asked for; by default none, and the fitted one."""
    if given is None:
        return 1.0, FIT
    if given == FIT:
        return (FIT,)
    if isinstance(given, str):
        raise InvalidInput("unknown tempering", got=repr(given[:40]), allowed="a number above 0 and up to 1, or fit")
    require_within("the tempering", given, above=0, most=1)
    return (float(given),)


def find_certain(
    joint: JointCells,
    asked: Sequence[SetTable],
    certainties: Sequence[float],
    temperings: Sequence[float | str],
    seed: int,
    beliefs: Sequence[NegativeBinomial] | None = None,
) -> tuple[Certain, ...]:
    """How many people's value does he name with at least each certainty, and how many of them rightly?

    Two labels: exact for two tables, and within the ends of sums that are rounded to a grid for more or for much noise.
    More labels: people and noise are drawn, with the error told.
    """
    attacker = BayesAttacker.of(joint, asked, beliefs)
    simulated = joint.n_levels > 2 or len(attacker.rows) > MOST_ROWS
    drawn = attacker.draw(seed) if simulated or FIT in temperings else None
    found = []
    for given in temperings:
        tempering = drawn.fit() if drawn is not None and given == FIT else float(given)
        ends: Iterable[tuple[float, ...]]
        if drawn is not None and simulated:
            ends = [drawn.count(each, tempering) for each in certainties]
        else:
            ends = attacker.name_two(certainties, tempering)
        found += [
            Certain(each, "negbin", *some, tempering=tempering, fitted=given == FIT)
            for each, some in zip(certainties, ends, strict=True)
        ]
    return tuple(found)


def why_not(joint: JointCells, asked: Sequence[SetTable]) -> str | None:
    """Why nothing can be told of him; None where it can."""
    for inner, outer in permutations(range(len(asked)), 2):
        if set(joint.tables[inner].columns) < set(joint.tables[outer].columns):
            return (
                f"the columns of {asked[inner].title} are among those of {asked[outer].title}, so that their cells are "
                "never independent"
            )
    if any(Channel(each.mechanism.noise, each.mechanism.threshold).reach > FARTHEST for each in asked):
        return "the noise of a table has all but drowned its counts"
    return None


@dataclass(frozen=True, eq=False)
class CountTerm:
    """What a count of one label in one table says: the logarithm of the people expected behind each value."""

    channel: Channel
    values: Integers
    log_behind: Floats

    def of(self, count: int) -> tuple[Floats, Floats]:
        """The terms that a count may become, and how likely each is."""
        first, last = self.channel.window(count)
        inside = slice(*np.searchsorted(self.values, [first, last + 1]))
        chance = self.channel.chance(np.array([count]), self.values[inside])[0]
        likely = chance > LEAST_CHANCE
        return self.log_behind[inside][likely], chance[likely]


@dataclass(frozen=True, eq=False)
class BayesAttacker:
    """What he believes, and the people: those of the same label and the same counts in all their cells are one row."""

    shares: Floats
    terms: tuple[tuple[CountTerm, ...], ...]
    """Of each table, and each label."""
    rows: Integers
    """(rows, tables, labels): counts; -1 in a table that they are not in."""
    level: Integers
    count: Floats
    """(rows,): people."""

    @staticmethod
    def of(
        joint: JointCells, asked: Sequence[SetTable], beliefs: Sequence[NegativeBinomial] | None = None
    ) -> BayesAttacker:
        terms = []
        for number, (each, table) in enumerate(zip(asked, joint.tables, strict=True)):
            counts = table.counts.astype(np.int64)
            levels = LevelCounts.from_cells(counts, joint.levels)
            belief = fit_negative_binomial(levels, table.n_cells) if beliefs is None else beliefs[number]
            channel = Channel(each.mechanism.noise, each.mechanism.threshold)
            own = []
            for label, believed in enumerate(belief.by_label):
                values = channel.values(counts[:, label])
                behind = expected_counts(believed, channel, values)
                own.append(CountTerm(channel, values, np.log(np.maximum(behind, 1e-300))))
            terms.append(tuple(own))
        stacked = np.concatenate(
            [
                joint.level[:, None].astype(np.int64),
                *(
                    np.where(own[:, None] >= 0, table.counts[own].astype(np.int64), -1)
                    for table, own in zip(joint.tables, joint.cell, strict=True)
                ),
            ],
            axis=1,
        )
        distinct, place = np.unique(stacked, axis=0, return_inverse=True)
        people = np.bincount(place.ravel(), joint.count, minlength=len(distinct)).astype(np.float64)
        shares = np.bincount(joint.level, joint.count, minlength=joint.n_levels).astype(np.float64)
        return BayesAttacker(
            np.maximum(shares, 1e-300) / shares.sum(),
            tuple(terms),
            distinct[:, 1:].reshape(len(distinct), len(asked), joint.n_levels),
            distinct[:, 0],
            people,
        )

    def name_two(self, certainties: Sequence[float], tempering: float) -> Iterator[tuple[float, float, float, float]]:
        """Right and named, two ends each, for two labels.

        The log odds are (1 - r lambda) ln(pi_1/pi_2) + lambda sum_t (ln w_t1 - ln w_t2): 2 r independent terms.
        """
        cells, group = np.unique(self.rows.reshape(len(self.rows), -1), axis=0, return_inverse=True)
        counts = cells.reshape(len(cells), *self.rows.shape[1:])
        inside = (counts[:, :, 0] >= 0).sum(axis=1)
        prior = (1.0 - inside * tempering) * math.log(self.shares[0] / self.shares[1])
        needs = np.array([-math.log(odds_against(each)) for each in certainties])
        # P(sum of terms >= bound), and <= -bound for the second label.
        upper, lower = (needs - prior[:, None]) / tempering, (-needs - prior[:, None]) / tempering
        above, below = self._tails(counts, upper, lower)
        people = np.stack(
            [np.bincount(group.ravel(), self.count * (self.level == label), minlength=len(cells)) for label in (0, 1)]
        )
        everybody = people.sum(axis=0)
        for place in range(len(certainties)):
            right = [people[0] @ above[end][:, place] + people[1] @ below[end][:, place] for end in (0, 1)]
            named = [everybody @ (above[end][:, place] + below[end][:, place]) for end in (0, 1)]
            yield float(right[0]), float(right[1]), float(named[0]), float(named[1])

    def _tails(
        self, counts: Integers, upper: Floats, lower: Floats
    ) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        """P(sum >= upper) and P(sum <= lower) for each row of counts and each bound: two ends each."""
        tables = counts.shape[1]
        widths = [(2 * own[0].channel.reach + 1) ** 2 for own in self.terms]
        if tables <= 2 and max(widths) <= MOST_PAIRS and len(counts) * max(widths) <= MOST_EXACT:
            above, below = self._search(counts, upper, lower)
            return (above, above), (below, below)
        return self._on_grid(counts, upper, lower)

    def _search(self, counts: Integers, upper: Floats, lower: Floats) -> tuple[Floats, Floats]:
        """One table's sums are sorted, and searched from the other's."""
        above, below = np.zeros(upper.shape), np.zeros(lower.shape)
        order = np.lexsort(counts.reshape(len(counts), -1).T[::-1])
        known: dict[tuple[int, ...], tuple[Floats, Floats]] = {}
        last: tuple[int, ...] | None = None
        values, rising, falling = np.zeros(1), np.zeros(2), np.zeros(2)
        for row in order:
            first = tuple(counts[row, 0].tolist())
            if first != last:
                last = first
                terms, chance = self._differences(0, first)
                place = np.argsort(terms)
                values, chance = terms[place], chance[place]
                rising = np.concatenate([[0.0], np.cumsum(chance)])
                falling = np.concatenate([np.cumsum(chance[::-1])[::-1], [0.0]])
            if counts.shape[1] == 1:
                others, weight = np.zeros(1), np.ones(1)
            else:
                second = tuple(counts[row, 1].tolist())
                if second not in known:
                    known[second] = self._differences(1, second)
                others, weight = known[second]
            for bound in range(upper.shape[1]):
                above[row, bound] = weight @ falling[np.searchsorted(values, upper[row, bound] - others, side="left")]
                below[row, bound] = weight @ rising[np.searchsorted(values, lower[row, bound] - others, side="right")]
        return above, below

    def _differences(self, table: int, counts: tuple[int, ...]) -> tuple[Floats, Floats]:
        """ln w_1 - ln w_2 of one cell, and how likely each value is."""
        if counts[0] < 0:
            return np.zeros(1), np.ones(1)
        (first, chance), (second, other) = (self.terms[table][label].of(counts[label]) for label in (0, 1))
        return np.subtract.outer(first, second).ravel(), np.multiply.outer(chance, other).ravel()

    def _on_grid(
        self, counts: Integers, upper: Floats, lower: Floats
    ) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        """Terms are rounded down to a grid, and their laws multiplied as characteristic functions: the sum is above
        what it is made of by at most one step a term."""
        ends = [(float(term.log_behind.min()), float(term.log_behind.max())) for own in self.terms for term in own]
        span = sum(high - low for low, high in ends)
        step = max(span, 1e-9) / (GRID - 4 * len(ends))
        laws: list[list[dict[int, Any]]] = [
            [
                {
                    int(count): self._transform(table, label, int(count), step)
                    for count in np.unique(counts[:, table, label])
                    if count >= 0
                }
                for label in (0, 1)
            ]
            for table in range(counts.shape[1])
        ]
        starts = [[float(term.log_behind.min()) for term in own] for own in self.terms]
        tops = [float(own[1].log_behind.max()) for own in self.terms]
        above = np.zeros((2, *upper.shape))
        below = np.zeros((2, *lower.shape))
        for row in range(len(counts)):
            product, base, terms = np.ones(GRID // 2 + 1, np.complex128), 0.0, 0
            for table in range(counts.shape[1]):
                own = counts[row, table]
                if own[0] >= 0:
                    product = product * laws[table][0][int(own[0])] * laws[table][1][int(own[1])]
                    base += starts[table][0] - tops[table]
                    terms += 2
            law = np.maximum(np.fft.irfft(product, GRID), 0.0)
            rising = np.concatenate([[0.0], np.cumsum(law)])
            total = rising[-1]
            slack = terms * 4 * LEAST_CHANCE * GRID
            for bound in range(upper.shape[1]):
                low = (upper[row, bound] - base) / step
                place = [int(np.clip(math.ceil(each - 1e-9), 0, GRID)) for each in (low, low - terms)]
                above[0, row, bound] = max(total - rising[place[0]] - slack, 0.0)
                above[1, row, bound] = min(total - rising[place[1]] + slack, 1.0)
                high = (lower[row, bound] - base) / step
                place = [int(np.clip(math.floor(each + 1e-9) + 1, 0, GRID)) for each in (high - terms, high)]
                below[0, row, bound] = max(rising[place[0]] - slack, 0.0)
                below[1, row, bound] = min(rising[place[1]] + slack, 1.0)
        return (above[0], above[1]), (below[0], below[1])

    def _transform(self, table: int, label: int, count: int, step: float) -> Any:
        """The characteristic function of a term on the grid: ln w_1 from its least value, ln w_2 down from its
        largest."""
        term = self.terms[table][label]
        values, chance = term.of(count)
        away = values - term.log_behind.min() if label == 0 else term.log_behind.max() - values
        place = np.floor(away / step).astype(np.int64)
        return np.fft.rfft(np.bincount(place, chance, minlength=GRID)[:GRID])

    def draw(self, seed: int) -> DrawnPeople:
        """People and noise, drawn at random."""
        generator = np.random.default_rng(seed)
        chosen = generator.choice(len(self.rows), DRAWS, p=self.count / self.count.sum())
        level = self.level[chosen]
        shares = np.zeros((DRAWS, len(self.shares)))
        inside = np.zeros(DRAWS)
        for table, own in enumerate(self.terms):
            counts = self.rows[chosen, table]
            here = counts[:, 0] >= 0
            logs = np.zeros((DRAWS, len(own)))
            for label, term in enumerate(own):
                noise = np.rint(term.channel.noise.sample(generator, (DRAWS,))).astype(np.int64)
                shown = np.maximum(counts[:, label] + noise, term.channel.zero)
                place = np.clip(np.searchsorted(term.values, shown), 0, len(term.values) - 1)
                logs[:, label] = term.log_behind[place]
            logs -= np.log(np.exp(logs - logs.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True)) + logs.max(
                axis=1, keepdims=True
            )
            shares += np.where(here[:, None], logs, 0.0)
            inside += here
        return DrawnPeople(shares, inside, level, np.log(self.shares), float(self.count.sum()))


@dataclass(frozen=True, eq=False)
class DrawnPeople:
    """People who were drawn, with what the tables together say of them."""

    log_shares: Floats
    """(people, labels): the logarithms of the shares, added up over the tables."""
    inside: Floats
    """In how many tables each is."""
    level: Integers
    log_prior: Floats
    records: float

    def posterior(self, tempering: float) -> Floats:
        """(people, labels): the logarithm of P(k)."""
        logs = (1.0 - self.inside * tempering)[:, None] * self.log_prior + tempering * self.log_shares
        top = logs.max(axis=1, keepdims=True)
        return np.asarray(logs - top - np.log(np.exp(logs - top).sum(axis=1, keepdims=True)))

    def fit(self) -> float:
        """The tempering with the least log loss on the true labels."""

        def loss(tempering: float) -> float:
            return -float(np.mean(self.posterior(tempering)[np.arange(len(self.level)), self.level]))

        found = minimize_scalar(loss, bounds=(0.01, 1.0), method="bounded", options={"xatol": 1e-3})
        return round(float(found.x), 3)

    def count(self, certainty: float, tempering: float) -> tuple[float, float, float, float, float]:
        """Right and named, both ends of each the same, and the standard error of the first."""
        sure = self.posterior(tempering) >= math.log(certainty - 1e-12)
        right = sure[np.arange(len(self.level)), self.level].mean()
        named = sure.any(axis=1).mean()
        error = self.records * math.sqrt(max(right * (1.0 - right), 1.0 / len(self.level)) / len(self.level))
        people, told = float(right * self.records), float(named * self.records)
        return people, people, told, told, float(error)
