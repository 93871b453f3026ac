"""What would help: the same records without a quasi-identifier, with a coarser one, or with another setting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from cellrisk.counts.cells import Cells, Domain
from cellrisk.counts.levels import make_label
from cellrisk.counts.profiles import Profiles
from cellrisk.noise.channel import CountChannel
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.caused import caused_shares
from cellrisk.risk.explanation.attacked import AttackedCells
from cellrisk.risk.figures import Attacker
from cellrisk.risk.measures import Local
from cellrisk.system.arrays import Integers

Groups = Mapping[str, Sequence[str]]
"""As `Cells.merge` takes them: a new value, and the old ones that become it."""

AS_GIVEN = "as given"
NEIGHBOURS = {"neighbours in pairs": 2, "neighbours in fours": 4}
RAREST = {"rarest values, half left": 2, "rarest values, a quarter left": 4}
FEWEST_VALUES = 3
"""A quasi-identifier with fewer values than this cannot be coarser and still say something."""
OTHER_LABEL = "(other)"
SMALLER = (0.5, 0.25)
"""Parts of the epsilon that are tried."""
THRESHOLDS = (1.5, 5.5, 10.5)
"""Thresholds that are tried: counts below 2, 6 and 11 are suppressed."""


@dataclass(frozen=True, kw_only=True)
class AttackSummary:
    """What the four attacks reveal after a change; None if the table is too large to be explained so."""

    own: float | None = None
    """People revealed because of their own record, by the attack that reveals most of them."""
    largest_own: float | None = None
    """The largest share of a category so revealed by any of the attacks: what ``max_caused`` limits."""
    largest_learnt: float | None = None
    """The largest share of a category that the informed attacker learns: what ``max_certain`` limits."""


@dataclass(frozen=True)
class Removal(AttackSummary):
    """The table without one quasi-identifier, through the same mechanism."""

    quasi_identifier: str
    cells: int
    risk: float
    change: float
    """The change from the risk with all quasi-identifiers as they are: negative if it helps."""
    caused: float
    """People revealed because of their own record."""


@dataclass(frozen=True)
class Coarsening(Removal):
    """The table with some values of one quasi-identifier made one, through the same mechanism."""

    how: str
    labels: int
    """How many values are left."""
    labels_before: int


@dataclass(frozen=True)
class OtherSetting(AttackSummary):
    """The same table through the same mechanism with a smaller epsilon, or with small counts suppressed."""

    epsilon: float
    threshold: float
    caused: float
    """People revealed because of their own record."""
    people: float
    """People revealed, for any reason: suppression can raise this, because other labels vanish also."""


def summarise(cells: Cells, channel: CountChannel, attacker: Attacker) -> dict[str, Any]:
    """Return the fields of `AttackSummary`."""
    attacked = AttackedCells.of(cells, channel, attacker)
    return {} if attacked is None else attacked.summary()


def try_settings(cells: Cells, mechanism: Mechanism, attacker: Attacker) -> Iterator[OtherSetting]:
    """Caused and revealed at half and a quarter of the epsilon, and with counts below 2, 6 and 11 suppressed."""
    settings = [(mechanism.epsilon * part, mechanism.threshold) for part in SMALLER]
    settings += [(mechanism.epsilon, threshold) for threshold in THRESHOLDS if threshold > mechanism.threshold]
    profiles = cells.profiles()
    for epsilon, threshold in settings:
        channel = replace(mechanism, epsilon=epsilon, threshold=threshold).channel
        exposed = Local().average(profiles, channel, ("tight",))["tight", "records"]
        people = (profiles.n_records * float(share[0]) for share in (caused_shares(profiles, channel), exposed))
        yield OtherSetting(epsilon, threshold, *people, **summarise(cells, channel, attacker))


@dataclass(frozen=True, eq=False)
class Remedies:
    """The local risk of a table at one setting after each change, exact, and the people revealed because of their own
    record.

    >>> from cellrisk import Laplace
    >>> codes, cell, level = np.array([[0], [1]]), np.array([0, 0, 1]), np.array([0, 1, 1])
    >>> cells = Cells("job", ("cook", "smith"), (Domain("sex", ("f", "m")),), codes, cell, level, np.array([1, 2, 3]))
    >>> remedies = Remedies(cells, Laplace(epsilon=1.0).channel, "tight", "records")
    >>> round(remedies.baseline, 4), round(remedies.drop("sex").risk, 4)
    (0.4368, 0.252)
    """

    cells: Cells
    channel: CountChannel
    form: str
    weights: str
    attacker: Attacker = field(default_factory=Attacker)

    @cached_property
    def baseline(self) -> float:
        """The risk with all quasi-identifiers as they are."""
        return self._risk(self.cells.profiles())

    def drop(self, name: str) -> Removal:
        """Without one quasi-identifier; without the only one, all records are in one cell."""
        changed = self.cells.drop(name)
        return Removal(name, *self._change(changed), **summarise(changed, self.channel, self.attacker))

    def merge(self, name: str, groups: Groups, how: str = AS_GIVEN) -> Coarsening:
        """The table with some values of one quasi-identifier made one."""
        changed, place = self.cells.merge(name, groups), self.cells.place(name)
        labels = (len(cells.domains[place]) for cells in (changed, self.cells))
        summary = summarise(changed, self.channel, self.attacker)
        return Coarsening(name, *self._change(changed), how, *labels, **summary)

    def coarsen(self, name: str) -> Iterator[Coarsening]:
        """The table with values of one quasi-identifier made one in the ways that `propose_groups` proposes."""
        place = self.cells.place(name)
        domain = self.cells.domains[place]
        records = np.bincount(self.cells.codes[:, place], self.cells.sizes, minlength=len(domain)).astype(np.int64)
        for how, groups in propose_groups(domain, records):
            yield self.merge(name, groups, how)

    def _risk(self, profiles: Profiles) -> float:
        return float(Local().average(profiles, self.channel, (self.form,))[self.form, self.weights][0])

    def _change(self, changed: Cells) -> tuple[int, float, float, float]:
        """Cells, risk, its change, and the people revealed because of their own record."""
        profiles = changed.profiles()
        risk, caused = self._risk(profiles), float(caused_shares(profiles, self.channel)[0])
        return changed.n_cells, risk, risk - self.baseline, profiles.n_records * caused


def propose_groups(domain: Domain, records: Integers) -> Iterator[tuple[str, Groups]]:
    """How a quasi-identifier could be coarser: each way by name, with the values that it makes one.

    If order has a meaning, neighbours are made one in pairs and in fours. Otherwise the values with the fewest
    ``records`` become "(other)", and half or a quarter of the values are left; of two as rare, the earlier is kept. At
    least two are always left, and missing values stay apart and are not counted among them.

    >>> jobs = Domain("job", ("cook", "nurse", "smith", "tailor"))
    >>> list(propose_groups(jobs, np.array([7, 9, 2, 1])))
    [('rarest values, half left', {'(other)': ['cook', 'smith', 'tailor']})]
    >>> [groups for _, groups in propose_groups(Domain("age", ("1", "2", "3", "4"), ordered=True), np.ones(4, int))]
    [{'1 to 2': ['1', '2'], '3 to 4': ['3', '4']}]
    """
    named = domain.labels[: len(domain) - domain.missing]
    if len(named) < FEWEST_VALUES:
        return
    if domain.ordered:
        for how, width in NEIGHBOURS.items():
            if len(named) > width:
                runs = [list(named[start : start + width]) for start in range(0, len(named), width)]
                yield how, {make_label(f"{run[0]} to {run[-1]}", domain.labels): run for run in runs if len(run) > 1}
        return
    commonest_first = np.argsort(-records[: len(named)], kind="stable")
    left_before = len(named)
    for how, divisor in RAREST.items():
        left = max(2, -(-len(named) // divisor))
        if left < left_before:
            rarest = sorted(commonest_first[left - 1 :].tolist())
            yield how, {make_label(OTHER_LABEL, domain.labels): [named[place] for place in rarest]}
        left_before = left
