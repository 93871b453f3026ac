"""What would help: the same records through the same mechanism, without a quasi-identifier or with a coarser one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cellrisk.counts.cells import Cells, Domain
from cellrisk.counts.levels import make_label
from cellrisk.counts.profiles import Profiles
from cellrisk.noise.channel import AdditiveChannel, CountChannel
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.caused import caused_shares
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


@dataclass(frozen=True)
class Removal:
    """The table without one quasi-identifier, through the same mechanism."""

    quasi_identifier: str
    cells: int
    risk: float
    change: float
    """The change from the risk with all quasi-identifiers: negative where the removal helps."""
    caused: float
    """People given away only because of their own record."""


@dataclass(frozen=True)
class Coarsening:
    """The table with some values of one quasi-identifier made one, through the same mechanism."""

    quasi_identifier: str
    how: str
    labels: int
    """How many values are left."""
    labels_before: int
    """How many there were."""
    cells: int
    risk: float
    change: float
    """The change from the risk with all values: negative where the coarsening helps."""
    caused: float
    """People given away only because of their own record."""

    def describe(self) -> str:
        """What was done, to be read after the name of the quasi-identifier."""
        if self.how in RAREST:
            return f"merging its rarest values to {self.labels:,} of {self.labels_before:,}"
        return f"merging its {self.how}" if self.how in NEIGHBOURS else f"merging its values {self.how}"

    def describe_with_name(self) -> str:
        """What was done, with the name of the quasi-identifier."""
        name = f"of '{self.quasi_identifier}'"
        if self.how in RAREST:
            return f"merging the rarest values {name} to {self.labels:,} of {self.labels_before:,}"
        way = self.how.removeprefix("neighbours ")
        return f"merging {'neighbours' if self.how in NEIGHBOURS else 'values'} {name} {way}"


@dataclass(frozen=True)
class OtherSetting:
    """The same table through the same mechanism with a smaller epsilon, or with small counts suppressed."""

    epsilon: float
    threshold: float
    caused: float
    """People given away only because of their own record."""
    people: float
    """People exposed, for whatever reason: suppression can raise this, as other labels vanish too."""


def try_settings(profiles: Profiles, mechanism: Mechanism) -> Iterator[OtherSetting]:
    """Caused and exposed at half and a quarter of the epsilon, and with counts below 2, 6 and 11 suppressed."""
    settings = [(mechanism.epsilon * part, mechanism.threshold) for part in SMALLER]
    settings += [(mechanism.epsilon, each) for each in THRESHOLDS if each > mechanism.threshold]
    for epsilon, threshold in settings:
        channel = AdditiveChannel((replace(mechanism, epsilon=epsilon).noise,), threshold)
        exposed = Local().average(profiles, channel, ("tight",))["tight", "records"]
        caused = caused_shares(profiles, channel)
        records = profiles.n_records
        yield OtherSetting(epsilon, threshold, records * float(caused[0]), records * float(exposed[0]))


@dataclass(frozen=True, eq=False)
class Remedies:
    """What would lower the risk of a table at one setting? The local risk, exact, after each change, and the people
    given away only because of their own record.

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

    @cached_property
    def _baselines(self) -> tuple[float, float]:
        return self._find(self.cells)

    @property
    def baseline(self) -> float:
        """The risk with all quasi-identifiers as they are."""
        return self._baselines[0]

    @property
    def caused(self) -> float:
        """People given away only because of their own record, with all quasi-identifiers as they are."""
        return self._baselines[1]

    def drop(self, name: str) -> Removal:
        """Without one quasi-identifier; without the only one, all records are in one cell."""
        changed = self.cells.drop(name)
        risk, caused = self._find(changed)
        return Removal(name, changed.n_cells, risk, risk - self.baseline, caused)

    def merge(self, name: str, groups: Groups, how: str = AS_GIVEN) -> Coarsening:
        """The table with some values of one quasi-identifier made one."""
        changed = self.cells.merge(name, groups)
        (risk, caused), place = self._find(changed), self.cells.place(name)
        after, before = len(changed.domains[place]), len(self.cells.domains[place])
        return Coarsening(name, how, after, before, changed.n_cells, risk, risk - self.baseline, caused)

    def coarsen(self, name: str) -> Iterator[Coarsening]:
        """The table with values of one quasi-identifier made one in the ways that `propose_groups` proposes."""
        place = self.cells.place(name)
        domain = self.cells.domains[place]
        records = np.bincount(self.cells.codes[:, place], self.cells.sizes, minlength=len(domain)).astype(np.int64)
        for how, groups in propose_groups(domain, records):
            yield self.merge(name, groups, how)

    def _find(self, cells: Cells) -> tuple[float, float]:
        """The risk, and the people given away only because of their own record."""
        profiles = cells.profiles()
        averages = Local().average(profiles, self.channel, (self.form,))
        caused = profiles.n_records * float(caused_shares(profiles, self.channel)[0])
        return float(averages[self.form, self.weights][0]), caused


def propose_groups(domain: Domain, records: Integers) -> Iterator[tuple[str, Groups]]:
    """How could this quasi-identifier be coarser? Each way by name, with the values that it makes one.

    Where order has a meaning, neighbours are made one in pairs and in fours. Elsewhere the values with the fewest
    ``records`` become "(other)", so that half or a quarter of the values are left. At least two are always left, and
    missing values stay apart and are not counted among them.

    >>> jobs = Domain("job", ("cook", "nurse", "smith", "tailor"))
    >>> list(propose_groups(jobs, np.array([7, 9, 2, 1])))
    [('rarest values, half left', {'(other)': ['cook', 'smith', 'tailor']})]
    """
    named = domain.labels[: len(domain) - domain.missing]
    if len(named) < FEWEST_VALUES:
        return
    if domain.ordered:
        for how, width in NEIGHBOURS.items():
            if len(named) > width:
                yield how, merge_neighbours(named, width, domain.labels)
        return
    left_before = len(named)
    for how, divisor in RAREST.items():
        left = max(2, -(-len(named) // divisor))
        if left < left_before:
            yield how, merge_rarest(named, records[: len(named)], left, domain.labels)
        left_before = left


def merge_neighbours(named: Sequence[str], width: int, taken: Sequence[str] = ()) -> Groups:
    """Each ``width`` values in a row become one; where one is left over at the end, it stays as it is.

    >>> merge_neighbours(["1", "2", "3", "4", "5"], 2)
    {'1 to 2': ['1', '2'], '3 to 4': ['3', '4']}
    """
    runs = [list(named[start : start + width]) for start in range(0, len(named), width)]
    return {make_label(f"{run[0]} to {run[-1]}", taken): run for run in runs if len(run) > 1}


def merge_rarest(named: Sequence[str], records: Integers, left: int, taken: Sequence[str] = ()) -> Groups:
    """The rarest values become one, so that ``left`` values are left; of two as rare, the earlier one is kept.

    >>> merge_rarest(["a", "b", "c"], np.array([5, 1, 5]), left=2)
    {'(other)': ['b', 'c']}
    """
    commonest_first = np.argsort(-records, kind="stable")
    rarest = sorted(commonest_first[left - 1 :].tolist())
    return {make_label(OTHER_LABEL, taken): [named[place] for place in rarest]}
