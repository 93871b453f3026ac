"""What would help: the same records without a quasi-identifier, with a coarser one, or with another setting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from cellrisk.counts.cells import Cells, Domain
from cellrisk.counts.columns import make_label
from cellrisk.noise.channel import CountChannel
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.attackers.attacker import Attacker
from cellrisk.risk.explanation.risky_cells import attack_cells
from cellrisk.risk.measures import Local
from cellrisk.risk.people import caused_shares
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
class Outcome:
    """What is revealed in a table, as it is or after a change."""

    cells: int
    risk: float
    """The local risk."""
    people: float
    """Expected number of people revealed, for any reason."""
    caused: float
    """Expected number of people revealed because of their own record, by the homogeneity attack."""
    own: float | None = None
    """The same by the attack that reveals most of them; None if the table is too large to be attacked so."""
    largest_own: float | None = None
    """The largest share of a category so revealed by any of the attacks: what ``max_caused`` limits."""
    largest_learnt: float | None = None
    """The largest share of a category that the informed attacker learns: what ``max_certain`` limits."""


@dataclass(frozen=True, kw_only=True)
class Change(Outcome):
    """A change, and what is revealed after it."""

    change: float
    """The change of the local risk: negative if it helps."""
    quasi_identifier: str | None = None
    """The one that is left out, or made coarser."""
    how: str | None = None
    """How its values were merged; None if it was left out."""
    labels: int | None = None
    """How many values are left."""
    labels_before: int | None = None
    epsilon: float | None = None
    """Of another setting: its epsilon, and below which number counts are suppressed."""
    threshold: float | None = None


@dataclass(frozen=True, eq=False)
class Remedies:
    """What is revealed in a table at one setting, and after each change. Exact."""

    cells: Cells
    channel: CountChannel
    form: str
    weights: str
    attacker: Attacker = field(default_factory=Attacker)

    @cached_property
    def now(self) -> Outcome:
        """The table as it is."""
        return Outcome(**self._find(self.cells, self.channel))

    def _find(self, cells: Cells, channel: CountChannel) -> dict[str, Any]:
        """Return the fields of `Outcome`."""
        profiles = cells.profiles()
        risks = Local().average(profiles, channel, tuple({self.form, "tight"}))
        figures: dict[str, Any] = {
            "cells": cells.n_cells,
            "risk": float(risks[self.form, self.weights][0]),
            "people": profiles.n_records * float(risks["tight", "records"][0]),
            "caused": profiles.n_records * float(caused_shares(profiles, channel)[0]),
        }
        attacked = attack_cells(cells, channel, self.attacker)
        if attacked is None:
            return figures
        table, _ = attacked
        own = max(table.figures(name).own for name in table.names)
        return {**figures, "own": own, "largest_own": table.largest_own(), "largest_learnt": table.largest_learnt()}

    def _try(self, cells: Cells, channel: CountChannel, **words: Any) -> Change:
        figures = self._find(cells, channel)
        return Change(**figures, change=figures["risk"] - self.now.risk, **words)

    def drop(self, name: str) -> Change:
        """Without one quasi-identifier; without the only one, all records are in one cell."""
        return self._try(self.cells.drop(name), self.channel, quasi_identifier=name)

    def coarsen(self, name: str, given: Groups | None = None) -> Iterator[Change]:
        """With values of one quasi-identifier made one, as `propose_groups` proposes, and as they are given."""
        column = self.cells.place(name)
        domain = self.cells.domains[column]
        records = np.bincount(self.cells.codes[:, column], self.cells.sizes, minlength=len(domain)).astype(np.int64)
        for how, groups in [*propose_groups(domain, records), *([] if given is None else [(AS_GIVEN, given)])]:
            changed = self.cells.merge(name, groups)
            words = {"how": how, "labels": len(changed.domains[column]), "labels_before": len(domain)}
            yield self._try(changed, self.channel, quasi_identifier=name, **words)

    def try_settings(self, mechanism: Mechanism) -> Iterator[Change]:
        """Half and a quarter of the epsilon, and counts below 2, 6 and 11 suppressed."""
        settings = [(mechanism.epsilon * part, mechanism.threshold) for part in SMALLER]
        settings += [(mechanism.epsilon, threshold) for threshold in THRESHOLDS if threshold > mechanism.threshold]
        for epsilon, threshold in settings:
            channel = replace(mechanism, epsilon=epsilon, threshold=threshold).channel
            yield self._try(self.cells, channel, epsilon=epsilon, threshold=threshold)


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
            yield how, {make_label(OTHER_LABEL, domain.labels): [named[value] for value in rarest]}
        left_before = left
